// MariaDbConnection: one session with the database, through libmariadb, with a bound on every wait.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

namespace zeze {

enum class MariaDbFailure : std::uint8_t {
  kNone,
  kCollision,  // Deadlock, certification failure, a lock not had in time: nothing happened.
  kError,      // Another error: nothing happened.
  kLost,       // The connection is gone; what was asked for has happened or not.
};

// What the database said to one statement.
struct MariaDbAnswer {
  using Cell = std::optional<std::string>;  // Absent: NULL.

  MariaDbFailure failure = MariaDbFailure::kNone;
  unsigned code = 0;  // Of the error.
  std::string message = {};
  std::vector<std::vector<Cell>> rows = {};
  std::uint64_t affected_rows = 0;  // That were met, changed or not.

  bool ok() const { return failure == MariaDbFailure::kNone; }
  const std::string& text(std::size_t row, std::size_t column) const { return *rows[row][column]; }
  std::int64_t number(std::size_t row, std::size_t column) const;
};

// How long the statements of a session may take.
struct MariaDbSession {
  std::chrono::milliseconds statement_timeout = {};
};

// The nodes that the options name. Errors: kInvalidArgument.
Result<DatabaseUrl> ParseMariaDbUrl(const MariaDbOptions& options);

// Not thread-safe.
class MariaDbConnection {
 public:
  // To one node of the address, by its place there. Of a Galera cluster only to a node that is
  // ready and belongs to the primary component. If `copy` is given, only if it has the copy of the
  // database that counts (rule 73). Errors: kUnavailable, kInvalidArgument, kFenced.
  static Result<std::unique_ptr<MariaDbConnection>> Connect(const MariaDbOptions& options,
                                                            const MariaDbSession& session,
                                                            std::size_t node, DatabaseCopy* copy);

  // What the copy of the database says of itself.
  struct Facts {
    std::string identity;
    std::optional<HomeRow> row;  // Absent: nobody has made the framework's tables.
  };
  Result<Facts> ReadFacts();
  MariaDbConnection(const MariaDbConnection&) = delete;
  MariaDbConnection& operator=(const MariaDbConnection&) = delete;
  ~MariaDbConnection();

  // False if the connection is known to be gone, also when the database has closed it meanwhile, or
  // if its node may have lost its cluster.
  bool IsOpen();

  const std::string& place() const { return place_; }  // "db1:3306/game"
  const std::shared_ptr<MariaDbActivity>& activity() const { return activity_; }
  bool is_galera() const { return is_galera_; }
  bool takes_arrays() const { return takes_arrays_; }
  // max_allowed_packet of this session: no statement with its rows may be longer.
  std::size_t packet_bytes_max() const { return packet_bytes_max_; }
  // Of a Galera cluster: no transaction may be larger.
  std::size_t write_set_bytes_max() const { return write_set_bytes_max_; }
  std::uint64_t id() { return mysql_thread_id(connection_); }

  // One statement as text. Never several in one packet: when a Galera node aborts the transaction
  // between two of them, nobody is told, and a COMMIT at the end says yes to nothing (seen with
  // MariaDB 10.11).
  MariaDbAnswer Query(const std::string& sql);

  // One statement with byte strings for its question marks; prepared at its first use. All columns
  // of the answer are byte strings too.
  MariaDbAnswer Execute(const std::string& sql, std::span<const std::string_view> parameters);

  // The same statement for each row; `columns` are as many as it has question marks, all of the
  // same length. Needs takes_arrays().
  MariaDbAnswer ExecuteForEach(const std::string& sql,
                               std::span<const std::vector<std::string_view>> columns);

  // Leaves a transaction that failed.
  void RollBack();

  // A text literal.
  std::string Quoted(std::string_view text);

 private:
  struct CloseStatement {
    void operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }
  };
  using Statement = std::unique_ptr<MYSQL_STMT, CloseStatement>;

  explicit MariaDbConnection(std::string place) : place_(std::move(place)) {}

  MariaDbAnswer SetUp(const MariaDbOptions& options, const MariaDbSession& session);
  MariaDbAnswer CheckNode();
  MariaDbAnswer Refused(std::string message);
  MariaDbAnswer Failed(unsigned code, const char* message);
  MYSQL_STMT* Prepare(const std::string& sql, MariaDbAnswer& failed);
  MariaDbAnswer FetchAll(MYSQL_STMT* statement);

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
