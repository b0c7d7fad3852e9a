// The run of a timer that is due.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeze/app/application.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result_code.h"
#include "zeze/components/timer/alarm_clock.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timer_retry.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;

// So often at most a timer is run before its run counts.
constexpr int kRefutedMax = 3;

constexpr milliseconds kOverloadedPutOff(500);
constexpr milliseconds kUnableMin = std::chrono::seconds(1);
constexpr milliseconds kUnableMax = std::chrono::minutes(5);

// What one throws concerns neither the rest of its batch nor those that wait for its end.
void RunLocal(Task& task) {
  try {
    task();
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("local timer {} threw: {}", task.name(), error.what());
  } catch (...) {
    ZEZE_LOG_ERROR("local timer {} threw something that is not a std::exception", task.name());
  }
}

}  // namespace

void Timers::RunAlarm(Alarm& alarm) {
  if (alarm.is_local) {
    RunLocal(alarm.local);
  } else {
    Fire(alarm);
  }
}

// The lane of its key is full.
void Timers::PutOff(Alarm alarm) {
  put_off_.fetch_add(1, std::memory_order_relaxed);
  alarms_->Set(std::move(alarm), UnixNow() + kOverloadedPutOff.count());
}

// The records of all in one round trip.
void Timers::Fetch(const std::deque<Alarm>& batch) {
  if (!application_->engine().FetchesInBatches()) return;
  std::vector<std::string> ids;
  std::vector<std::int64_t> nodes;
  for (const Alarm& alarm : batch) {
    if (alarm.is_local) continue;
    ids.push_back(alarm.timer_id);
    nodes.push_back(alarm.node_id);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  application_->Call("fetch timers", [&](Transaction& tx) {
    tIndexs.Prefetch(tx, ids, Right::kModify);
    tNodes.Prefetch(tx, nodes, Right::kModify);
    return result_code::kSuccess;
  });
}

void Timers::Fire(Alarm& alarm) {
  Firing firing{.alarm = alarm};
  std::int64_t code = result_code::kSuccess;
  int refuted = 0;
  do {
    refuted = firing.refuted;
    code = application_->Call("fire timer", [&](Transaction& tx) { return FireIn(tx, firing); });
  } while (code != result_code::kSuccess && firing.refuted > refuted &&
           firing.refuted < kRefutedMax);
  if (code == result_code::kSuccess || !application_->engine().running()) return;
  // Not the timer's fault: a conflict, a lease, a storage. It is as it was, and is tried again.
  put_off_.fetch_add(1, std::memory_order_relaxed);
  const milliseconds delay = code == result_code::kNotImplement
                                 ? RetryDelay(alarm.attempts + 1, kUnableMin, kUnableMax)
                                 : PutOffDelay(alarm.attempts);
  ++alarm.attempts;
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(5),
                         "timer {} could not be run (result code {}); it is tried again",
                         alarm.timer_id, code);
  alarms_->Set(std::move(alarm), UnixNow() + delay.count());
}

std::int64_t Timers::FireIn(Transaction& tx, Firing& firing) {
  const Alarm& alarm = firing.alarm;
  const Index* index = tIndexs.Get(tx, alarm.timer_id);
  // Canceled, registered anew, or with another server now.
  if (index == nullptr || index->SerialId != alarm.key || index->ServerId != server_id_) {
    return result_code::kSuccess;
  }
  const std::int64_t now = UnixNow();
  if (!LookUp(tx, Index(*index), now, firing)) return result_code::kSuccess;
  const TimerBean& timer = firing.timer;
  const auto handler = handlers_.find(timer.HandleName);
  if (handler == handlers_.end()) {
    // Of a program that knows more; whoever has the handler runs it.
    ZEZE_LOG_ERROR("timer {} waits: no handler \"{}\" is registered on server {}", alarm.timer_id,
                   timer.HandleName, server_id_);
    return result_code::kSuccess;
  }
  firing.context.emplace(alarm.timer_id, timer, now, options_.misfire_after.count());
  firing.code = tx.Call("timer handler", [&](Transaction& nested) {
    return CallTimerHandler("timer", alarm.timer_id, timer.HandleName,
                            [&] { return handler->second(nested, *firing.context); });
  });
  if (IsPassing(firing.code) || firing.code == result_code::kNotImplement) return firing.code;
  tx.EndWith([this, &firing](Transaction& end) { return FinishFiring(end, firing); });
  return result_code::kSuccess;
}

const TimerBean* Timers::Stored(Transaction& tx, const std::string& id, const Index& index) {
  const auto* node = tNodes.Get(tx, index.NodeId);
  return node == nullptr ? nullptr : node->Timers.Find(id);
}

// False: it is not to run now.
bool Timers::LookUp(Transaction& tx, const Index& index, std::int64_t now, Firing& firing) {
  const Alarm& alarm = firing.alarm;
  bool runs = false;
  if (firing.refuted < kRefutedMax - 1) {
    tx.Peek([&] {
      const TimerBean* found = Stored(tx, alarm.timer_id, index);
      if (found == nullptr) return;
      firing.stored = *found;
      firing.timer = *found;
      runs = IsToRun(firing.timer, alarm, now);
    });
  }
  return runs || LookAgain(tx, index, now, firing);
}

// Leaves out what it missed.
bool Timers::IsToRun(TimerBean& timer, const Alarm& alarm, std::int64_t now) const {
  if (timer.Parked || timer.ConcurrentFireSerialNo != alarm.serial || DueTime(timer) > now) {
    return false;
  }
  if (timer.FailedTimes > 0) return true;  // This occurrence has begun.
  return ApplyMisfire(timer, now, options_.misfire_after.count()) && DueTime(timer) <= now;
}

// The same, and the node is read as everything else is. What does not run now is armed for later,
// or ends.
bool Timers::LookAgain(Transaction& tx, const Index& index, std::int64_t now, Firing& firing) {
  const std::string& id = firing.alarm.timer_id;
  const TimerBean* found = Stored(tx, id, index);
  if (found == nullptr) {
    ZEZE_LOG_ERROR("timer {} is not in its node {}", id, index.NodeId);
    return false;
  }
  firing.stored = *found;
  firing.timer = *found;
  if (firing.timer.Parked) return false;
  // Somebody else ran it; or the wall clock was set back.
  if (firing.timer.ConcurrentFireSerialNo != firing.alarm.serial || DueTime(firing.timer) > now) {
    ArmAfterCommit(tx, id, index, firing.timer);
    return false;
  }
  return LeaveOutMissed(tx, id, index, firing.timer, now);
}

// False: what is due is left out.
bool Timers::LeaveOutMissed(Transaction& tx, const std::string& id, const Index& index,
                            TimerBean& timer, std::int64_t now) {
  if (timer.FailedTimes > 0) return true;  // This occurrence has begun.
  if (!ApplyMisfire(timer, now, options_.misfire_after.count())) {
    Remove(tx, id, index);
    return false;
  }
  if (DueTime(timer) <= now) return true;
  timer.ConcurrentFireSerialNo += 1;
  ArmAfterCommit(tx, id, Store(tx, id, index, timer), timer);
  return false;
}

// The last part of the transaction.
std::int64_t Timers::FinishFiring(Transaction& tx, Firing& firing) {
  const std::string& id = firing.alarm.timer_id;
  // The handler may have canceled the timer, or registered it anew.
  const Index* index = tIndexs.Get(tx, id);
  const bool gone = index == nullptr || index->SerialId != firing.alarm.key;
  if (firing.code == result_code::kSuccess) {
    tx.AfterCommit([this] { fired_.fetch_add(1, std::memory_order_relaxed); });
  }
  if (gone) return result_code::kSuccess;
  const TimerBean* found = Stored(tx, id, *index);
  if (firing.refuted < kRefutedMax - 1 && (found == nullptr || !(*found == firing.stored))) {
    ++firing.refuted;
    return result_code::kRedoAndRelease;
  }
  TimerBean timer = firing.timer;
  timer.ConcurrentFireSerialNo += 1;
  bool more = true;
  if (firing.code == result_code::kSuccess) {
    const TimerContext& context = *firing.context;
    more = AdvanceTimer(timer, context.now_ms(), options_.misfire_after.count());
    if (more && context.next_time()) SetPlannedTime(timer, *context.next_time());
    timer.CustomData = context.data();
    timer.FailedTimes = 0;
    timer.RetryTime = 0;
  } else {
    NoteFailure(tx, id, firing.alarm.key, timer, firing.code);
  }
  if (found == nullptr) return result_code::kSuccess;
  if (!more) {
    Remove(tx, id, Index(*index));
    return result_code::kSuccess;
  }
  const Index stored = Store(tx, id, Index(*index), timer);
  if (!timer.Parked) ArmAfterCommit(tx, id, stored, timer);
  return result_code::kSuccess;
}

void Timers::NoteFailure(Transaction& tx, const std::string& id, std::int64_t serial_id,
                         TimerBean& timer, std::int64_t code) {
  timer.FailedTimes += 1;
  tx.AfterCommit([this] { failed_.fetch_add(1, std::memory_order_relaxed); });
  if (timer.FailedTimes <= options_.retries) {
    timer.RetryTime =
        UnixNow() +
        RetryDelay(timer.FailedTimes, options_.retry_delay, options_.retry_delay_max).count();
    return;
  }
  timer.Parked = true;
  tx.AfterCommit([this, id, serial_id, code, parked = std::make_shared<TimerBean>(timer)] {
    parked_.fetch_add(1, std::memory_order_relaxed);
    ZEZE_LOG_ERROR(
        "timer {} is parked: its handler \"{}\" failed {} times, the last time with result code "
        "{}; Timers::Resume lets it run again",
        id, parked->HandleName, parked->FailedTimes, code);
    if (!options_.on_parked) return;
    options_.on_parked(InfoOf(id, *parked, server_id_, serial_id), code);
  });
}

}  // namespace zeze
