// MariaDbConnection: one session with the database, through libmariadb, with a bound on every wait.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mysql.h>

#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/database_url.h"
#include "zeze/storage/sql/sql_connection.h"

namespace zeze {

// How long the statements of a session may take.
struct MariaDbSession {
  std::chrono::milliseconds statement_timeout = {};
};

// The nodes that the options name. Errors: kInvalidArgument.
Result<DatabaseUrl> ParseMariaDbUrl(const MariaDbOptions& options);

// Not thread-safe.
class MariaDbConnection final : public SqlConnection {
 public:
  // To one node of the address, by its place there. Of a Galera cluster only to a node that is
  // ready and belongs to the primary component. If `copy` is given, only if it has the copy of the
  // database that counts (rule 73). Errors: kUnavailable, kInvalidArgument, kFenced.
  static Result<std::unique_ptr<MariaDbConnection>> Connect(const MariaDbOptions& options,
                                                            const MariaDbSession& session,
                                                            std::size_t node, DatabaseCopy* copy);

  ~MariaDbConnection() override;

  // Also false if its node may have lost its cluster.
  bool IsOpen() override;
  std::string Place() const override { return place_; }
  Result<CopyFacts> ReadCopy() override;

  // Statements go as text, with literals for the parameters. Never several in one packet: when a
  // Galera node aborts the transaction between two of them, nobody is told, and a COMMIT at the end
  // says yes to nothing (seen with MariaDB 10.11).
  SqlAnswer Run(const std::string& sql, const std::vector<SqlParameter>& parameters) override;
  using SqlConnection::Run;
  SqlAnswer RunOnce(const std::string& sql) override;

  // All columns of the answer are byte strings too.
  SqlAnswer Execute(const std::string& sql, std::span<const SqlParameter> parameters) override;

  // The same statement for each row; `columns` are as many as it has question marks, all of the
  // same length. Needs takes_arrays().
  SqlAnswer ExecuteForEach(const std::string& sql,
                           std::span<const std::vector<std::string_view>> columns);

  SqlAnswer Begin() override { return RunOnce("START TRANSACTION"); }
  SqlAnswer Commit() override;
  void RollBack() override;

  const std::shared_ptr<MariaDbActivity>& activity() const { return activity_; }
  bool is_galera() const { return is_galera_; }
  bool takes_arrays() const { return takes_arrays_; }
  // max_allowed_packet of this session: no statement with its rows may be longer.
  std::size_t packet_bytes_max() const { return packet_bytes_max_; }
  // Of a Galera cluster: no transaction may be larger.
  std::size_t write_set_bytes_max() const { return write_set_bytes_max_; }
  std::uint64_t id() { return mysql_thread_id(connection_); }

 private:
  struct CloseStatement {
    void operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }
  };
  using Statement = std::unique_ptr<MYSQL_STMT, CloseStatement>;

  explicit MariaDbConnection(std::string place) : place_(std::move(place)) {}

  SqlAnswer SetUp(const MariaDbOptions& options, const MariaDbSession& session);
  SqlAnswer CheckNode();
  SqlAnswer Refused(std::string message);
  SqlAnswer Failed(unsigned code, const char* message);
  MYSQL_STMT* Prepare(const std::string& sql, SqlAnswer& failed);
  SqlAnswer FetchAll(MYSQL_STMT* statement);

  const std::string place_;
  MYSQL* connection_ = nullptr;
  std::shared_ptr<MariaDbActivity> activity_;
  bool lost_ = false;
  bool leave_ = false;  // It works, but perhaps not its node: use another one next.
  bool is_galera_ = false;
  bool takes_arrays_ = false;
  std::size_t packet_bytes_max_ = 0;
  std::size_t write_set_bytes_max_ = 0;
  std::map<std::string, Statement, std::less<>> prepared_;
};

}  // namespace zeze
