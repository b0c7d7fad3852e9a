// DatabaseHome: what operators do with the copies of a database (rules 73 to 75 of
// docs/architecture.md). Works on exactly the copy that the address names, whatever its state.
//
//   Result<std::string> marker = old_copy->BeginSwitchOver();     // Then promote the replica.
//   Result<void> finished = new_copy->FinishSwitchOver(marker.value());

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/sql/database_copy.h"

namespace zeze {

class SqlConnection;
class SqlDialect;

// Not thread-safe. Errors of all calls: kUnavailable (nothing happened), kUnknownOutcome (it
// happened or not: repeat it), kInvalidArgument (it cannot be done here; the message says why).
class DatabaseHome {
 public:
  DatabaseHome(std::unique_ptr<SqlConnection> connection, const SqlDialect& dialect);
  DatabaseHome(const DatabaseHome&) = delete;
  DatabaseHome& operator=(const DatabaseHome&) = delete;
  ~DatabaseHome();

  struct Facts {
    std::string identity;  // Of this copy.
    HomeRow row;
  };
  // Errors: kInvalidArgument also for a replica that takes no writes.
  Result<Facts> Read();

  // In the copy that counts: it takes no flush, renewal, start or eviction any more, all sessions
  // of the framework end, and every process waits. Returns the marker, which is the last thing this
  // copy took. Repeated, it returns the same.
  Result<std::string> BeginSwitchOver();

  // In the copy that was promoted: it counts from now on, and every process goes on with it.
  Result<void> FinishSwitchOver(const std::string& marker);

  // In the copy in which it was begun: it goes on. Never after FinishSwitchOver elsewhere.
  Result<void> CancelSwitchOver(const std::string& marker);

  // Makes a copy that may lack what was acknowledged the one that counts. Epochs, terms and the
  // number of the home rise by `margin`, which must be more than the lost copy can have counted on.
  Result<void> Adopt(std::int64_t margin);

 private:
  // The statements that fit the state of the copy, or why there are none.
  using Judge = FunctionRef<Result<std::vector<std::string>>(const Facts&)>;

  // Locks the row of zeze_home, reads, judges, runs the statements: one transaction.
  Result<void> Change(std::string_view what, Judge judge);

  const std::unique_ptr<SqlConnection> connection_;
  const SqlDialect& dialect_;
};

// The copy that the address names. Errors: kInvalidArgument, kUnavailable.
Result<std::unique_ptr<DatabaseHome>> OpenDatabaseHome(const std::string& url);

}  // namespace zeze
