// RedoAlarm: what an operator should know about a redo queue.
//
//   options.on_alarm = [](const RedoAlarm& alarm) { pager.Send(alarm.queue, alarm.text); };

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zeze {

// Each is raised once, and again only after it was over.
enum class RedoAlarmKind : std::uint8_t {
  kTaskRefused,   // Again and again: by its handler, or because there is none.
  kBacklogOld,    // A task waits for long.
  kRolledBack,    // The server has forgotten tasks; they are sent again. It goes on.
  kTooOld,        // It has forgotten tasks that are no longer kept. Halted.
  kOtherStore,    // The server has done tasks of another store: a store was lost. Halted.
  kOtherHistory,  // The server has done other tasks of this store: it was set back. Halted.
  kStoreFailed,   // The disk.
  kTaskParked,    // At the server: set aside.
  kQueueStopped,  // At the server: a task has failed too often.
};

std::string_view ToString(RedoAlarmKind kind);

struct RedoAlarm {
  RedoAlarmKind kind = RedoAlarmKind::kTaskRefused;
  std::string queue = {};
  std::int64_t task_id = 0;  // 0: not about one task.
  std::string text = {};     // What happened, and what can be done.
};

// As an error, or a warning if the queue goes on.
void LogRedoAlarm(const RedoAlarm& alarm);

}  // namespace zeze
