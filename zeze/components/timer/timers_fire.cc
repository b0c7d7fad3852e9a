// The run of timers that are due: in batches, a bounded number at a time.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
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

// Long enough that one round trip for all of their records pays, short enough that others get their
// turn soon.
constexpr std::size_t kBatch = 32;

// Run without a rest. Whoever shares the core waits for one of them only (RunSome); shorter strides
// would spend most of a burst in waking up.
constexpr std::size_t kStride = 32;

// So many that others would feel it: then timers rest for several times as long as they compute. If
// that has gone on for a while they are late enough, and rest less.
constexpr std::size_t kCrowd = 256;
constexpr int kRests = 5;
constexpr int kRestsLate = 3;
constexpr nanoseconds kLate = std::chrono::seconds(1);
constexpr std::size_t kDueMax = 1024;  // The rest stays where it is, and may still be canceled.
constexpr nanoseconds kRestMax = milliseconds(5);

constexpr milliseconds kOverloadedPutOff(500);

// Of the calling thread.
struct Usage {
  nanoseconds cpu{0};
  long waits = 0;

  static Usage Now() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto time = [](const timeval& value) {
      return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
    };
    return {.cpu = time(usage.ru_utime) + time(usage.ru_stime), .waits = usage.ru_nvcsw};
  }
};

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

void Timers::Receive(std::vector<Alarm>&& due) {
  {
    const MutexLock lock(mutex_);
    for (Alarm& alarm : due) due_.push_back(std::move(alarm));
  }
  Pump();
  const MutexLock lock(mutex_);
  while (due_.size() > kDueMax && !stopping_) room_.Wait(mutex_);
}

// Starts as many as may run now.
void Timers::Pump() {
  while (true) {
    auto batch = std::make_shared<std::vector<Alarm>>();
    {
      const MutexLock lock(mutex_);
      if (stopping_ || due_.empty() || running_ >= pace_.limit()) return;
      ++running_;
      const bool keyed = !due_.front().one_by_one_key.empty();
      do {
        batch->push_back(std::move(due_.front()));
        due_.pop_front();
        if (due_.size() == kDueMax / 2) room_.NotifyAll();
      } while (!keyed && batch->size() < kBatch && !due_.empty() &&
               due_.front().one_by_one_key.empty());
    }
    const std::string key = batch->front().one_by_one_key;
    Task task("fire timers", [this, batch] { RunBatch(*batch); });
    const Result<void> posted = key.empty() ? application_->workers().TryPost(std::move(task))
                                            : application_->one_by_one().Post(key, std::move(task));
    if (posted.ok()) continue;
    const MutexLock lock(mutex_);
    --running_;
    if (posted.error().code() == ErrorCode::kShuttingDown) return;
    // The workers have too much to do: all of it later.
    const std::int64_t later = UnixNow() + kOverloadedPutOff.count();
    put_off_ += batch->size() + due_.size();
    for (Alarm& alarm : *batch) alarms_->Set(std::move(alarm), later);
    for (Alarm& alarm : due_) alarms_->Set(std::move(alarm), later);
    due_.clear();
    room_.NotifyAll();
    return;
  }
}

void Timers::RunBatch(std::vector<Alarm>& batch) {
  if (batch.size() > 1) Fetch(batch);
  for (std::size_t begin = 0; begin < batch.size(); begin += kStride) {
    RunSome(std::span(batch).subspan(begin, std::min(kStride, batch.size() - begin)));
  }
  {
    const MutexLock lock(mutex_);
    --running_;
  }
  Pump();
}

void Timers::RunSome(std::span<Alarm> alarms) {
  Clock& clock = *application_->options().clock;
  const Usage before = Usage::Now();
  const nanoseconds begin = clock.Now();
  for (Alarm& alarm : alarms) {
    if (alarm.is_local) {
      RunLocal(alarm.local);
    } else {
      Fire(alarm);
    }
    // Whoever was woken on this core meanwhile waits for one timer, not for a stride of them.
    std::this_thread::yield();
  }
  const Usage after = Usage::Now();
  const nanoseconds cpu = after.cpu - before.cpu;
  const MutexLock lock(mutex_);
  const nanoseconds now = clock.Now();
  pace_.Note(cpu, now - begin, after.waits != before.waits);
  if (due_.size() <= kCrowd) crowded_since_.reset();
  if (due_.size() > kCrowd && !stopping_) {
    if (!crowded_since_) crowded_since_ = now;
    const int rests = now - *crowded_since_ < kLate ? kRests : kRestsLate;
    clock.WaitUntil(changed_, mutex_, now + std::min(rests * cpu, kRestMax));
  }
}

// The records of all in one round trip.
void Timers::Fetch(const std::vector<Alarm>& batch) {
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
  const std::int64_t code = application_->Call(
      "fire timer", [&](Transaction& tx) -> std::int64_t { return FireIn(tx, alarm); });
  if (code == result_code::kSuccess || !application_->engine().running()) return;
  // Not the timer's fault: a conflict, a lease, a storage. It is as it was, and is tried again.
  put_off_.fetch_add(1, std::memory_order_relaxed);
  const milliseconds delay = PutOffDelay(alarm.attempts);
  ++alarm.attempts;
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(5),
                         "timer {} could not be run (result code {}); it is tried again",
                         alarm.timer_id, code);
  alarms_->Set(std::move(alarm), UnixNow() + delay.count());
}

std::int64_t Timers::FireIn(Transaction& tx, const Alarm& alarm) {
  const std::string& id = alarm.timer_id;
  const Index* index = tIndexs.Get(tx, id);
  // Canceled, registered anew, or with another server now.
  if (index == nullptr || index->SerialId != alarm.key || index->ServerId != server_id_) {
    return result_code::kSuccess;
  }
  const auto* node = tNodes.Get(tx, index->NodeId);
  const TimerBean* found = node == nullptr ? nullptr : node->Timers.Find(id);
  if (found == nullptr) {
    ZEZE_LOG_ERROR("timer {} is not in its node {}", id, index->NodeId);
    return result_code::kSuccess;
  }
  TimerBean timer = *found;
  if (timer.Parked) return result_code::kSuccess;
  const std::int64_t now = UnixNow();
  // Somebody else ran it; or the wall clock was set back.
  if (timer.ConcurrentFireSerialNo != alarm.serial || DueTime(timer) > now) {
    ArmAfterCommit(tx, id, *index, timer);
    return result_code::kSuccess;
  }
  if (!LeaveOutMissed(tx, id, Index(*index), timer, now)) return result_code::kSuccess;
  const auto handler = handlers_.find(timer.HandleName);
  if (handler == handlers_.end()) {
    // Of a program that knows more; whoever has the handler runs it.
    ZEZE_LOG_ERROR("timer {} waits: no handler \"{}\" is registered on server {}", id,
                   timer.HandleName, server_id_);
    return result_code::kSuccess;
  }
  TimerContext context(id, timer, now, options_.misfire_after.count());
  const std::int64_t code = tx.Call(
      "timer handler", [&](Transaction& nested) { return handler->second(nested, context); });
  if (IsPassing(code)) return code;
  // The same, of what is inside of this timer. The handler has said so.
  if (code == result_code::kNotImplement) return result_code::kSuccess;
  return FinishFiring(tx, id, timer, context, alarm.key, code);
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
  tNodes.Edit(tx, index.NodeId)->Timers.Put(id, timer);
  ArmAfterCommit(tx, id, index, timer);
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
  const auto node = tNodes.Edit(tx, index->NodeId);
  const TimerBean* found = node ? node->Timers.Find(id) : nullptr;
  if (found == nullptr || index->ServerId != server_id_ ||
      found->ConcurrentFireSerialNo != serial || index->SerialId != serial_id) {
    return result_code::kSuccess;
  }
  if (!more) {
    Remove(tx, id, Index(*index));
    return result_code::kSuccess;
  }
  node->Timers.Put(id, timer);
  if (!timer.Parked) ArmAfterCommit(tx, id, *index, timer);
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
