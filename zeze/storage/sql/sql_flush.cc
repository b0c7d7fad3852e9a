#include "zeze/storage/sql/sql_flush.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/flush_lane.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/storage.h"

namespace zeze {

// FOR UPDATE waits for a flush that still runs, and then shows what it has done.
Result<FenceLaneRow> SqlFlushConnection::ReadLane(std::int32_t server_id, FenceLane lane) {
  const SqlAnswer answer = connection_.Run(
      "SELECT epoch, flush_seq, live, holder, frozen FROM zeze_fence WHERE server_id = $1"
      " AND lane = $2 FOR UPDATE",
      {server_id, static_cast<int>(lane)});
  connection_.RollBack();  // Where every statement of this session begins a transaction.
  if (!answer.ok()) return Error(ErrorCode::kUnavailable, answer.message());
  if (answer.row_count() == 0) return FenceLaneRow{};
  if (answer.number(0, 4) != 0) {
    return Error(ErrorCode::kUnavailable, "the database is frozen for a planned switch-over");
  }
  return FenceLaneRow{.epoch = answer.number(0, 0),
                      .flush_seq = answer.number(0, 1),
                      .live = answer.number(0, 2) != 0,
                      .holder = answer.text(0, 3)};
}

FlushAttemptResult ToFlushAttempt(const SqlAnswer& answer) {
  switch (answer.failure()) {
    case SqlFailure::kNone:
      return {.attempt = FlushAttempt::kCommitted};
    case SqlFailure::kCollision:
      return {.attempt = FlushAttempt::kCollided, .message = answer.message()};
    case SqlFailure::kError:
      return {.attempt = FlushAttempt::kFailed, .message = answer.message()};
    case SqlFailure::kLost:
      break;
  }
  return {.attempt = FlushAttempt::kLost, .message = answer.message()};
}

SqlAnswer ForEachChunk(std::span<const StorageWrite> writes, const FlushCut& cut,
                       FunctionRef<SqlAnswer(std::span<const StorageWrite>)> write) {
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const std::size_t row_bytes =
        writes[i].key.size() + writes[i].value.size() + cut.row_overhead_bytes;
    const bool other = i > begin && (writes[i].table != writes[begin].table ||
                                     (cut.puts_apart && writes[i].remove != writes[begin].remove));
    if (other || (i > begin && bytes + row_bytes > cut.bytes_max)) {
      SqlAnswer answer = write(writes.subspan(begin, i - begin));
      if (!answer.ok()) return answer;
      begin = i;
      bytes = 0;
    }
    bytes += row_bytes;
  }
  return begin < writes.size() ? write(writes.subspan(begin)) : SqlAnswer();
}

}  // namespace zeze
