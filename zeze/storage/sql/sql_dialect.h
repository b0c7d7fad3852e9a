// SqlDialect: what differs between SQL databases in what SqlStorage, SqlTable, SqlFence and
// DatabaseHome do. Words are parts of statements; the functions are steps that are other statements
// altogether. A driver for one more database derives from SqlDialect, SqlConnection, SqlDriver and
// SqlFlushConnection, and from nothing else.
//
// The steps run inside a transaction of the caller unless they say otherwise, and return the first
// answer that failed, else the last.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/table_name.h"
#include "zeze/storage/storage.h"

namespace zeze {

struct SqlWords {
  std::string engine;  // "postgresql"; for people.
  std::string layout;  // What a table must be, for people: "a table of the columns ...".
  SqlNameRules names = {};
  char quote = '"';  // Around the names of relations.

  // Reads that collide are tried again.
  bool reads_again = false;
  // How many rows one statement looks up at most.
  std::size_t keys_per_read = 1;

  // The relations with their comments, whether they have the columns of a table, and whether their
  // engine has transactions; and the condition on the name ($1).
  std::string list_relations = {};
  std::string and_name_is = {};
  std::string load_versioned = {};  // Data and version; for Execute.
  std::string make_home = {};       // The row of zeze_home, if there is none: $1 its home.

  // --- the fence ---

  // Start and Share read what the guard protects. False: there is no share lock that holds between
  // all nodes; then every holder of the guard has it alone, and Share holds it too.
  bool shares_guard = true;
  std::string share_lock = {};  // Behind a SELECT.
  std::string lock_guard = {};
  std::string share_guard = {};
  std::string hold_term = {};      // Of the shard $1, if it is $2: nobody raises it before the end.
  std::string hold_live = {};      // The live epoch $2 of server $1, against an eviction.
  std::string hold_renewals = {};  // The same, in the lane of renewals.
  std::string and_lock_yield = {};  // Behind a SELECT of a mark that is judged under locks.
  std::string write_cluster = {};   // $1 to $5, in the order of ClusterRow.
  std::string make_cluster = {};    // The same by a start; a row with shards keeps them.
  std::string add_table_id = {};
  std::string list_live = {};
  std::string note_lease = {};
  std::string note_yield = {};
  std::string want = {};
  std::vector<std::string> lease_over = {};
};

// The statements on the rows of one table; for Execute.
struct SqlTableWords {
  std::string find;
  std::string put;
  std::string remove;
};

// Stateless: used by every thread.
class SqlDialect {
 public:
  SqlDialect(const SqlDialect&) = delete;
  SqlDialect& operator=(const SqlDialect&) = delete;
  virtual ~SqlDialect() = default;

  const SqlWords& words() const { return words_; }
  std::string Quoted(
      std::string_view relation) const;  // Names of relations have no quotes in them.

  // --- rows; each a statement of its own. `relation` is quoted ---

  virtual SqlTableWords TableWords(const std::string& relation) const = 0;
  virtual SqlAnswer ReadRows(SqlConnection& connection, const std::string& relation,
                             std::span<const std::string_view> keys) const = 0;
  // At most `rows` rows behind `after`, in the order of the walk.
  virtual SqlAnswer ReadPage(SqlConnection& connection, const std::string& relation,
                             const StorageWalk& walk, const std::optional<std::string>& after,
                             std::size_t rows) const = 0;
  // About how many rows the table has, for little effort.
  virtual SqlAnswer GuessRows(SqlConnection& connection, std::string_view bare_relation,
                              std::int64_t& rows) const = 0;
  // Version 0 makes the row, or changes one that has it. No row met: it has another version.
  virtual SqlAnswer WriteVersioned(SqlConnection& connection, std::string_view id,
                                   std::string_view data, std::int64_t version) const = 0;

  // --- definitions; `relation` is quoted ---

  virtual std::vector<std::string> CreateTable(const std::string& relation,
                                               std::string_view table) const = 0;
  // For a table that has no name of ours.
  virtual std::vector<std::string> NameTable(const std::string& relation,
                                             std::string_view table) const;
  virtual std::vector<std::string> RenameTable(const std::string& from, const std::string& to,
                                               std::string_view table) const = 0;
  // The statements as the database takes them: each alone, or as one transaction.
  virtual std::vector<std::string> Scripts(std::vector<std::string> statements) const;
  // Whether another process that does the same was in the way of a definition.
  virtual bool DefinitionCollided(const SqlAnswer& answer) const;

  // --- the fence ---

  // How names of relations are folded here.
  virtual SqlAnswer ReadNameRules(SqlConnection& connection, SqlNameRules& rules) const;

  // Ends the lane sessions of this server's epochs up to `epoch`. If that is not allowed, whoever
  // waits for their locks waits longer. The answer fails only if the connection is lost.
  virtual SqlAnswer EndSessions(SqlConnection& connection, std::int32_t server_id,
                                std::int64_t epoch) const = 0;

  // Start: notes the process that loses its epoch if its lease may not be over, forgets what it has
  // yielded, and makes the next epoch live.
  virtual SqlAnswer RaiseEpoch(SqlConnection& connection, const FenceStartOptions& options,
                               std::int64_t& epoch) const = 0;
  // Finish: no row met if the epoch is over.
  virtual SqlAnswer EndEpoch(SqlConnection& connection, const FenceOwner& owner) const = 0;
  // EvictSilent: raises the epoch of a server that has not renewed since it was seen.
  virtual SqlAnswer TakeSilentEpoch(SqlConnection& connection, const LiveServer& seen,
                                    bool& taken) const = 0;
  // Evict: raises the epoch to `epoch` + 1 if it is lower, notes the process that loses it and
  // forgets what it has yielded.
  virtual SqlAnswer TakeEpoch(SqlConnection& connection, std::int32_t server_id,
                              std::int64_t epoch) const = 0;
  // Where the nodes of a database do not see each other's row locks: the statement that takes the
  // epoch as a transaction of its own, behind the one that has checked the term. Nothing elsewhere.
  virtual std::optional<std::string> TakeEpochAlone(SqlConnection& connection,
                                                    std::int32_t server_id,
                                                    std::int64_t epoch) const;
  // The number of renewals of this epoch; absent if it is not live. `lock`: and keeps it so.
  virtual SqlAnswer ReadRenewals(SqlConnection& connection, std::int32_t server_id,
                                 std::int64_t epoch, bool lock,
                                 std::optional<std::int64_t>& renewals) const = 0;

  // RaiseTerm, with its compare-and-swap by holder.
  virtual SqlAnswer RaiseTerm(SqlConnection& connection, const GlobalStart& start,
                              std::int64_t& term) const = 0;
  // Absent: forgets it. No row met: there is no such table.
  virtual SqlAnswer ChangeTableId(SqlConnection& connection, const std::string& relation,
                                  const std::optional<std::int32_t>& id) const = 0;

  // --- copies of the database; without a transaction ---

  // Ends all other sessions of the framework that are there when it is called.
  virtual Result<void> EndAllSessions(SqlConnection& connection) const = 0;
  // A literal of the bytes that hexadecimal digits say.
  virtual std::string BytesLiteral(std::string_view digits) const = 0;

 protected:
  explicit SqlDialect(SqlWords words) : words_(std::move(words)) {}

 private:
  const SqlWords words_;
};

// Runs each statement with the same parameters.
SqlAnswer RunEach(SqlConnection& connection, std::span<const std::string> statements,
                  const std::vector<SqlParameter>& parameters);

// What a Global wants of epochs up to `epoch_max`, and what they have yielded, is over with them.
SqlAnswer ForgetYields(SqlConnection& connection, std::int32_t server_id, std::int64_t epoch_max);

}  // namespace zeze
