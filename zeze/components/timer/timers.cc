#include "zeze/components/timer/timers.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/alarm_clock.h"
#include "zeze/components/timer/due_runner.h"
#include "zeze/components/timer/errands.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timer_ring.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

// Of all implementations that share a database.
constexpr const char* kNodeIds = "Zeze.Component.Timer.NodeId";
constexpr const char* kTimerIds = "Zeze.Component.Timer.TimerId";
constexpr const char* kSerialIds = "Zeze.Component.Timer.SerialId";

constexpr std::size_t kIdsAhead = 64;

}  // namespace

Timers::Timers(AutoKeys& auto_keys, TimersOptions options)
    : auto_keys_(auto_keys), options_(std::move(options)) {}

Timers::~Timers() = default;

void Timers::RegisterHandler(std::string name, TimerHandler handler) {
  ZEZE_REQUIRE(!started(), fmt::format("timer handler \"{}\" was registered after the start: call "
                                       "RegisterHandler before Application::Start",
                                       name));
  ZEZE_REQUIRE(!name.empty(), "a timer handler needs a name");
  ZEZE_REQUIRE(handler != nullptr, fmt::format("timer handler \"{}\" is empty", name));
  const auto [at, added] = handlers_.emplace(std::move(name), std::move(handler));
  ZEZE_REQUIRE(added, fmt::format("timer handler \"{}\" was registered twice", at->first));
}

void Timers::CheckStarted() const {
  ZEZE_REQUIRE(started(),
               "the timers have not started: add the module to the application and start that "
               "first");
}

Result<void> Timers::CheckOptions() const {
  const auto refuse = [](const char* option, auto value, const char* expected) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("TimersOptions::{} is {}: set {}", option, value, expected));
  };
  if (options_.timers_per_node == 0) {
    return refuse("timers_per_node", options_.timers_per_node, "at least 1");
  }
  if (options_.node_bytes_max == 0) {
    return refuse("node_bytes_max", options_.node_bytes_max, "at least 1");
  }
  if (options_.running_max == 0) return refuse("running_max", options_.running_max, "at least 1");
  if (options_.retries < 0) return refuse("retries", options_.retries, "0 or more");
  return {};
}

Result<void> Timers::Start(Application& application) {
  if (Result<void> good = CheckOptions(); !good.ok()) return good;
  if (!auto_keys_.started()) {
    return Error(ErrorCode::kInvalidArgument,
                 "timers need the module AutoKeys: add it to the application before them");
  }
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
  }
  joining_ = false;
  application_ = &application;
  server_id_ = application.options().server_id;
  version_ = options_.version.value_or(application.options().app_main_version);
  timer_ids_ = &auto_keys_.GetOrAdd(kTimerIds);
  serial_ids_ = &auto_keys_.GetOrAdd(kSerialIds);
  errands_ = std::make_unique<Errands>(*application.options().clock);
  ThreadPool& pool = application.AddPool({.name = "timer",
                                          .thread_count = options_.running_max,
                                          .queue_length_max = 2 * options_.running_max,
                                          .eager_thread_count = options_.running_max});
  alarms_.reset();  // Of an earlier start.
  runner_ = std::make_unique<DueRunner>(
      DueRunner::Options{.running_max = options_.running_max, .clock = application.options().clock},
      pool, application.one_by_one(),
      DueRunner::Callbacks{.run = [this](Alarm& alarm) { RunAlarm(alarm); },
                           .fetch = [this](const std::deque<Alarm>& batch) { Fetch(batch); },
                           .put_off = [this](Alarm alarm) { PutOff(std::move(alarm)); }});
  alarms_ = std::make_unique<AlarmClock>(
      AlarmClock::Options{.clock = application.options().clock,
                          .on_set_back = [this] { LoadAll(); }},
      [this](std::vector<Alarm>&& due) { runner_->Add(std::move(due)); });
  ring_ = std::make_unique<TimerRing>(
      *this, auto_keys_.GetOrAdd(kNodeIds),
      TimerRing::Options{.server_id = server_id_,
                         .version = version_,
                         .timers_per_node = options_.timers_per_node,
                         .node_bytes_max = options_.node_bytes_max,
                         .on_taken_over = [this] { JoinAgain(); },
                         .on_empty =
                             [this](std::int64_t node_id) {
                               errands_->AddUnhurried([this, node_id] {
                                 return Run("unlink timer node", [&](Transaction& tx) {
                                   ring_->Unlink(tx, node_id);
                                   return result_code::kSuccess;
                                 });
                               });
                             }});
  // What an earlier life of this server held may not be free yet.
  Clock& clock = *application.options().clock;
  const auto until = clock.Now() + options_.start_patience;
  std::chrono::nanoseconds pause = std::chrono::milliseconds(100);
  while (!Join()) {
    if (clock.Now() >= until) {
      Stop(application);
      return Error(
          ErrorCode::kUnavailable,
          fmt::format("the timers of server {} cannot be had; the log says why", server_id_));
    }
    // Each attempt that fails is a line in the log.
    clock.SleepFor(std::min(pause, until - clock.Now()));
    pause = std::min<std::chrono::nanoseconds>(2 * pause, std::chrono::seconds(2));
  }
  return {};
}

void Timers::Stop(Application& /*application*/) {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  runner_->Stop();
  alarms_->Stop();
  errands_->Stop();
}

// False: not now.
bool Timers::Run(ProcedureName name, ProcedureBody body) {
  return application_->Call(name, body) == result_code::kSuccess;
}

// --- scheduling ---

Result<TimerBean> Timers::Plan(const TimerSpec& spec) const {
  CheckStarted();
  if (!handlers_.contains(spec.handler)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("timer: no handler \"{}\" is registered here", spec.handler));
  }
  return PlanTimer(spec, UnixNow());
}

std::string Timers::NewTimerId(Transaction& tx) {
  if (!tx.engine().FetchesInBatches()) return "@" + timer_ids_->NextKeyText(tx);
  {
    const MutexLock lock(ids_mutex_);
    if (!ids_.empty()) {
      std::string id = std::move(ids_.back());
      ids_.pop_back();
      return id;
    }
  }
  std::vector<std::string> ids(kIdsAhead);
  for (std::string& id : ids) id = "@" + timer_ids_->NextKeyText(tx);
  tIndexs.Prefetch(tx, ids, Right::kModify);
  std::string id = std::move(ids.back());
  ids.pop_back();
  const MutexLock lock(ids_mutex_);
  ids_.insert(ids_.end(), std::make_move_iterator(ids.begin()), std::make_move_iterator(ids.end()));
  return id;
}

Result<std::string> Timers::Schedule(Transaction& tx, const TimerSpec& spec) {
  Result<TimerBean> timer = Plan(spec);
  if (!timer.ok()) return timer.error();
  std::string id = NewTimerId(tx);
  Insert(tx, id, std::move(timer).value());
  return id;
}

Result<bool> Timers::ScheduleNamed(Transaction& tx, const std::string& name, const TimerSpec& spec,
                                   Existing existing) {
  if (name.empty() || name.starts_with('@')) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("timer: the name \"{}\" is empty or begins with '@', as those that "
                             "get their name by themselves",
                             name));
  }
  Result<TimerBean> timer = Plan(spec);
  if (!timer.ok()) return timer.error();
  if (const Index* index = tIndexs.Get(tx, name)) {
    if (existing == Existing::kKeep || index->ServerId != server_id_) return false;
    const auto* node = tNodes.Get(tx, index->NodeId);
    const TimerBean* old = node == nullptr ? nullptr : node->Timers.Find(name);
    if (old != nullptr && !old->Parked && SamePlan(*old, timer.value())) return true;
    Remove(tx, name, Index(*index));
  }
  Insert(tx, name, std::move(timer).value());
  return true;
}

void Timers::Insert(Transaction& tx, const std::string& id, TimerBean timer) {
  timer.TimerName = id;
  Index index{.ServerId = server_id_, .SerialId = serial_ids_->NextId(tx), .Version = version_};
  index.NodeId = ring_->Add(tx, id, timer);
  tIndexs.Put(tx, id, index);
  ArmAfterCommit(tx, id, index, timer);
}

Timers::Index Timers::Store(Transaction& tx, const std::string& id, Index index, TimerBean timer) {
  const std::int64_t node_id = ring_->Put(tx, index.NodeId, id, std::move(timer));
  if (node_id != index.NodeId) {
    index.NodeId = node_id;
    tIndexs.Put(tx, id, index);
  }
  return index;
}

Alarm Timers::AlarmOf(const std::string& id, const Index& index, const TimerBean& timer) {
  return {.key = index.SerialId,
          .serial = timer.ConcurrentFireSerialNo,
          .timer_id = id,
          .node_id = index.NodeId,
          .one_by_one_key = OneByOneKey(timer)};
}

void Timers::ArmAfterCommit(Transaction& tx, const std::string& id, const Index& index,
                            const TimerBean& timer) {
  tx.AfterCommit([this, alarm = std::make_shared<Alarm>(AlarmOf(id, index, timer)),
                  due = DueTime(timer)] { alarms_->Set(std::move(*alarm), due); });
}

void Timers::Remove(Transaction& tx, const std::string& id, const Index& index) {
  ring_->Remove(tx, index.NodeId, id);
  tIndexs.Remove(tx, id);
  tx.AfterCommit([this, key = index.SerialId] { alarms_->Clear(key); });
}

bool Timers::Cancel(Transaction& tx, const std::string& id) {
  const Index* index = tIndexs.Get(tx, id);
  if (index == nullptr) return false;
  Remove(tx, id, Index(*index));
  return true;
}

std::optional<TimerInfo> Timers::Find(Transaction& tx, const std::string& id) {
  const Index* index = tIndexs.Get(tx, id);
  if (index == nullptr) return std::nullopt;
  const auto* node = tNodes.Get(tx, index->NodeId);
  const TimerBean* timer = node == nullptr ? nullptr : node->Timers.Find(id);
  if (timer == nullptr) return std::nullopt;
  return InfoOf(id, *timer, index->ServerId, index->SerialId);
}

std::int64_t Timers::SerialIdOf(Transaction& tx, const std::string& id) {
  const Index* index = tIndexs.Get(tx, id);
  return index == nullptr ? 0 : index->SerialId;
}

TimerInfo Timers::InfoOf(const std::string& id, const TimerBean& timer, std::int32_t server_id,
                         std::int64_t serial_id) {
  return {.id = id,
          .handler = timer.HandleName,
          .server_id = server_id,
          .next_time_ms = timer.Parked ? PlannedTime(timer) : DueTime(timer),
          .happened_times = HappenTimes(timer),
          .remaining_times = RemainTimes(timer),
          .end_time_ms = EndTime(timer),
          .failed_times = timer.FailedTimes,
          .parked = timer.Parked,
          .data = timer.CustomData,
          .serial_id = serial_id};
}

Result<std::size_t> Timers::Walk(FunctionRef<bool(const TimerInfo& timer)> visit) {
  std::size_t count = 0;
  const Result<std::size_t> walked = tNodes.Walk([&](std::int64_t, const auto& node) {
    for (const auto& [id, timer] : node.Timers) {
      ++count;
      if (!visit(InfoOf(id, timer, node.OwnerServerId, 0))) return false;
    }
    return true;
  });
  if (!walked.ok()) return walked.error();
  return count;
}

bool Timers::SetData(Transaction& tx, const std::string& id, AnyBean data) {
  const Index* index = tIndexs.Get(tx, id);
  if (index == nullptr) return false;
  const auto* node = tNodes.Get(tx, index->NodeId);
  const TimerBean* found = node == nullptr ? nullptr : node->Timers.Find(id);
  if (found == nullptr) return false;
  TimerBean timer = *found;
  timer.CustomData = std::move(data);
  if (index->ServerId == server_id_) {
    Store(tx, id, Index(*index), std::move(timer));
  } else if (ring_->HasRoom(*node, id, timer) || !handlers_.contains(timer.HandleName)) {
    tNodes.Edit(tx, index->NodeId)->Timers.Put(id, std::move(timer));
  } else {
    Remove(tx, id, Index(*index));
    Insert(tx, id, std::move(timer));  // In the ring of this server.
  }
  return true;
}

bool Timers::Resume(Transaction& tx, const std::string& id) {
  const Index* index = tIndexs.Get(tx, id);
  if (index == nullptr) return false;
  const auto* node = tNodes.Get(tx, index->NodeId);
  const TimerBean* found = node == nullptr ? nullptr : node->Timers.Find(id);
  if (found == nullptr || !found->Parked) return false;
  TimerBean timer = *found;
  timer.Parked = false;
  timer.FailedTimes = 1;  // It has begun, so it is not missed, however late it is.
  timer.RetryTime = 0;
  timer.ConcurrentFireSerialNo += 1;
  Remove(tx, id, Index(*index));
  Insert(tx, id, std::move(timer));  // In the ring of this server, wherever it was.
  return true;
}

std::int64_t Timers::ScheduleLocal(std::chrono::milliseconds delay, Task task) {
  CheckLocal(task);
  const std::int64_t local_timer = NewLocal();
  alarms_->SetIn({.key = local_timer, .local = std::move(task), .is_local = true}, delay);
  return local_timer;
}

void Timers::CheckLocal(const Task& task) const {
  CheckStarted();
  ZEZE_REQUIRE(static_cast<bool>(task), "a local timer was given an empty task");
}

void Timers::SetLocal(std::int64_t local_timer, std::int64_t unix_ms, Task task) {
  CheckLocal(task);
  alarms_->Set({.key = local_timer, .local = std::move(task), .is_local = true}, unix_ms);
}

bool Timers::AwaitLoaded(std::chrono::nanoseconds patience) {
  CheckStarted();
  return errands_->AwaitIdle(patience);
}

bool Timers::CancelLocal(std::int64_t local_timer) {
  CheckStarted();
  return alarms_->Clear(local_timer, true);
}

TimersStatistics Timers::statistics() const {
  TimersStatistics statistics{.armed = alarms_ == nullptr ? 0 : alarms_->size(),
                              .fired = fired_,
                              .failed = failed_,
                              .parked = parked_,
                              .put_off = put_off_,
                              .taken_over = taken_over_};
  if (runner_ != nullptr) {
    statistics.waiting = runner_->waiting();
    statistics.running = runner_->running();
  }
  return statistics;
}

}  // namespace zeze
