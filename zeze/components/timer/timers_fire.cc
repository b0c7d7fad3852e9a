// The run of a timer that is due.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/components/timer/alarm_clock.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timer_retry.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A handler that takes longer runs without its node, if it has to run again.
constexpr nanoseconds kLong = milliseconds(1);

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
  LongRun run;
  const auto fire = [&] {
    return application_->Call("fire timer",
                              [&](Transaction& tx) { return FireIn(tx, alarm, run); });
  };
  std::int64_t code = fire();
  if (code != result_code::kSuccess && run.refuted) {
    run.timer.reset();
    code = fire();
  }
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

std::int64_t Timers::FireIn(Transaction& tx, const Alarm& alarm, LongRun& run) {
  const std::string& id = alarm.timer_id;
  const Index* index = tIndexs.Get(tx, id);
  // Canceled, registered anew, or with another server now.
  if (index == nullptr || index->SerialId != alarm.key || index->ServerId != server_id_) {
    return result_code::kSuccess;
  }
  const std::int64_t now = UnixNow();
  const bool again = run.timer.has_value();
  TimerBean timer;
  if (again) {
    timer = *run.timer;
  } else if (!LookUp(tx, alarm, Index(*index), now, timer)) {
    return result_code::kSuccess;
  }
  const auto handler = handlers_.find(timer.HandleName);
  if (handler == handlers_.end()) {
    // Of a program that knows more; whoever has the handler runs it.
    ZEZE_LOG_ERROR("timer {} waits: no handler \"{}\" is registered on server {}", id,
                   timer.HandleName, server_id_);
    return result_code::kSuccess;
  }
  TimerContext context(id, timer, now, options_.misfire_after.count());
  const Clock& clock = *application_->options().clock;
  const nanoseconds begin = clock.Now();
  const std::int64_t code = tx.Call(
      "timer handler", [&](Transaction& nested) { return handler->second(nested, context); });
  if (again && !IsAsBefore(tx, alarm, timer)) {
    run.refuted = true;
    return result_code::kRedoAndRelease;
  }
  if (!run.refuted && clock.Now() - begin >= kLong) run.timer = timer;
  if (IsPassing(code) || code == result_code::kNotImplement) return code;
  return FinishFiring(tx, id, timer, context, alarm.key, code);
}

// False: it is not to run now.
bool Timers::LookUp(Transaction& tx, const Alarm& alarm, const Index& index, std::int64_t now,
                    TimerBean& timer) {
  const std::string& id = alarm.timer_id;
  const auto* node = tNodes.Get(tx, index.NodeId);
  const TimerBean* found = node == nullptr ? nullptr : node->Timers.Find(id);
  if (found == nullptr) {
    ZEZE_LOG_ERROR("timer {} is not in its node {}", id, index.NodeId);
    return false;
  }
  timer = *found;
  if (timer.Parked) return false;
  // Somebody else ran it; or the wall clock was set back.
  if (timer.ConcurrentFireSerialNo != alarm.serial || DueTime(timer) > now) {
    ArmAfterCommit(tx, id, index, timer);
    return false;
  }
  return LeaveOutMissed(tx, id, index, timer, now);
}

// Whether the stored timer is the one that was given to its handler.
bool Timers::IsAsBefore(Transaction& tx, const Alarm& alarm, const TimerBean& timer) {
  const Index* index = tIndexs.Get(tx, alarm.timer_id);
  if (index == nullptr || index->SerialId != alarm.key) return false;
  const auto* node = tNodes.Get(tx, index->NodeId);
  const TimerBean* found = node == nullptr ? nullptr : node->Timers.Find(alarm.timer_id);
  return found != nullptr && found->ConcurrentFireSerialNo == timer.ConcurrentFireSerialNo &&
         found->CustomData == timer.CustomData;
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

std::int64_t Timers::FinishFiring(Transaction& tx, const std::string& id, TimerBean timer,
                                  TimerContext& context, std::int64_t serial_id,
                                  std::int64_t code) {
  const std::int64_t now = context.now_ms();
  const std::int64_t serial = timer.ConcurrentFireSerialNo;
  timer.ConcurrentFireSerialNo += 1;
  bool more = true;
  if (code == result_code::kSuccess) {
    more = AdvanceTimer(timer, now, options_.misfire_after.count());
    if (more && context.next_time()) SetPlannedTime(timer, *context.next_time());
    timer.CustomData = context.data();
    timer.FailedTimes = 0;
    timer.RetryTime = 0;
    tx.AfterCommit([this] { fired_.fetch_add(1, std::memory_order_relaxed); });
  } else {
    NoteFailure(tx, id, serial_id, timer, code);
  }
  // The handler may have canceled the timer, or registered it anew.
  const Index* index = tIndexs.Get(tx, id);
  if (index == nullptr) return result_code::kSuccess;
  const auto* node = tNodes.Get(tx, index->NodeId);
  const TimerBean* found = node == nullptr ? nullptr : node->Timers.Find(id);
  if (found == nullptr || index->ServerId != server_id_ ||
      found->ConcurrentFireSerialNo != serial || index->SerialId != serial_id) {
    return result_code::kSuccess;
  }
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
