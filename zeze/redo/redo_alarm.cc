#include "zeze/redo/redo_alarm.h"

#include <string_view>

#include "zeze/base/log.h"

namespace zeze {

std::string_view ToString(RedoAlarmKind kind) {
  switch (kind) {
    case RedoAlarmKind::kTaskRefused:
      return "task refused";
    case RedoAlarmKind::kBacklogOld:
      return "backlog old";
    case RedoAlarmKind::kRolledBack:
      return "server rolled back";
    case RedoAlarmKind::kTooOld:
      return "server too old";
    case RedoAlarmKind::kOtherStore:
      return "another store";
    case RedoAlarmKind::kOtherHistory:
      return "another history";
    case RedoAlarmKind::kStoreFailed:
      return "store failed";
    case RedoAlarmKind::kTaskParked:
      return "task parked";
    case RedoAlarmKind::kQueueStopped:
      return "queue stopped";
  }
  return "unknown";
}

void LogRedoAlarm(const RedoAlarm& alarm) {
  const bool goes_on =
      alarm.kind == RedoAlarmKind::kRolledBack || alarm.kind == RedoAlarmKind::kTaskParked;
  ZEZE_LOG(goes_on ? LogLevel::kWarning : LogLevel::kError, "redo queue '{}': {}: {}", alarm.queue,
           ToString(alarm.kind), alarm.text);
}

}  // namespace zeze
