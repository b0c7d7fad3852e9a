#include "zeze/storage/sql/sql_driver.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/storage.h"

namespace zeze {

Result<SqlAnswer> SqlRead(SqlPool& pool, const SqlDialect& dialect, const StorageTable* table,
                          std::string_view what, FunctionRef<SqlAnswer(SqlConnection&)> read) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    Result<SqlPool::Lease> lease = pool.Take(table);
    if (!lease.ok()) return lease.error();
    SqlAnswer answer = read(*lease.value());
    if (answer.ok()) return answer;
    const bool again = answer.failure() == SqlFailure::kLost ||
                       (answer.failure() == SqlFailure::kCollision && dialect.words().reads_again);
    if (!again || tries == kTries) {
      return SqlError(ErrorCode::kUnavailable, what, answer.message());
    }
  }
}

Result<void> SqlDefine(SqlPool& pool, const SqlDialect& dialect, std::string_view what,
                       std::vector<std::string> statements, std::chrono::nanoseconds retry_for) {
  for (const std::string& script : dialect.Scripts(std::move(statements))) {
    RetryPause pause(retry_for);
    for (;;) {
      Result<SqlPool::Lease> lease = pool.Take();
      if (!lease.ok()) return lease.error();
      const SqlAnswer answer = lease.value()->RunOnce(script);
      if (answer.ok()) break;
      lease.value()->RollBack();
      if (answer.failure() == SqlFailure::kLost) {
        return SqlError(ErrorCode::kUnknownOutcome, what, answer.message());
      }
      if (!dialect.DefinitionCollided(answer) || !pause.Wait()) {
        return SqlError(ErrorCode::kUnavailable, what, answer.message());
      }
    }
  }
  return {};
}

}  // namespace zeze
