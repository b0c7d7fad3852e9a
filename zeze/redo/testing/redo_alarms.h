// RedoAlarms: collects the alarms of a redo queue, and waits for them.
//
//   RedoAlarms alarms;
//   options.on_alarm = alarms.callback();
//   EXPECT_EQ(alarms.Await(RedoAlarmKind::kTaskParked).queue, "recharge");

#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/redo/redo_alarm.h"

namespace zeze::testing {

// Thread-safe.
class RedoAlarms {
 public:
  std::function<void(const RedoAlarm&)> callback() {
    return [this](const RedoAlarm& alarm) {
      MutexLock lock(mutex_);
      alarms_.push_back(alarm);
      changed_.NotifyAll();
    };
  }
  RedoAlarm Await(RedoAlarmKind kind) {
    MutexLock lock(mutex_);
    while (true) {
      for (const RedoAlarm& alarm : alarms_) {
        if (alarm.kind == kind) return alarm;
      }
      changed_.Wait(mutex_);
    }
  }
  std::size_t count() const {
    MutexLock lock(mutex_);
    return alarms_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<RedoAlarm> alarms_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::testing
