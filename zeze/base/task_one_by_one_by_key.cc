#include "zeze/base/task_one_by_one_by_key.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"

namespace zeze {

namespace {

// The object whose task this thread is running, to catch a Shutdown that would wait for itself.
thread_local const TaskOneByOneByKey* running_on_this_thread = nullptr;

// A lane that was once long gives its memory back when it is empty.
constexpr std::size_t kKeptEntriesMax = 256;

constexpr std::size_t kLanesMax = std::size_t{1} << 24;

std::size_t LaneMask(std::size_t lane_count) {
  ZEZE_REQUIRE(lane_count > 0 && lane_count <= kLanesMax,
               fmt::format("one-by-one queues: lane_count is {}: it must be from 1 to {}",
                           lane_count, kLanesMax));
  return std::bit_ceil(lane_count) - 1;
}

}  // namespace

// A task with several keys. It stands in the lanes of all of them; a lane that comes to it stops
// there, and the last one to come runs it. Freed by whoever ran it, once no lane refers to it.
struct TaskOneByOneByKey::Batch {
  enum class State : std::uint8_t { kWaiting, kStarted, kCanceled };

  Task task;  // Belongs to whoever made the state leave kWaiting.
  const char* name = nullptr;
  std::vector<std::uint64_t> hashes;
  std::vector<Lane*> lanes;  // Without repetition, by address.
  std::atomic<std::size_t> lanes_to_come = 0;
  std::atomic<State> state = State::kWaiting;

  bool Become(State next) {
    State waiting = State::kWaiting;
    return state.compare_exchange_strong(waiting, next);
  }
};

struct TaskOneByOneByKey::Entry {
  std::uint64_t hash = 0;
  Batch* batch = nullptr;  // If set, the task is there and the hash means nothing.
  Task task;
};

// Invariant: draining is true exactly while one Drain job for this lane is posted or running, or
// the lane stands at a batch, whose end will post one. So there is never more than one, which is
// what keeps the tasks of a key from overlapping.
struct alignas(64) TaskOneByOneByKey::Lane {
  mutable Mutex mutex;
  CondVar idle;  // Signalled when draining becomes false.
  std::vector<Entry> entries ZEZE_GUARDED_BY(mutex);
  std::size_t first ZEZE_GUARDED_BY(mutex) = 0;          // Entries before it have been taken out.
  Batch* stands_at ZEZE_GUARDED_BY(mutex) = nullptr;     // Taken out, but not yet run.
  const char* running ZEZE_GUARDED_BY(mutex) = nullptr;  // Name of what was taken out last.
  bool draining ZEZE_GUARDED_BY(mutex) = false;
  bool closed ZEZE_GUARDED_BY(mutex) = false;

  std::size_t size() const ZEZE_REQUIRES(mutex) { return entries.size() - first; }

  // True if the caller must schedule a drain.
  bool Append(Entry entry) ZEZE_REQUIRES(mutex) {
    entries.push_back(std::move(entry));
    return !std::exchange(draining, true);
  }

  Entry TakeFirst() ZEZE_REQUIRES(mutex) {
    Entry entry = std::move(entries[first++]);
    if (first == entries.size()) {
      entries.clear();
      if (entries.capacity() > kKeptEntriesMax) entries.shrink_to_fit();
      first = 0;
    } else if (first >= kKeptEntriesMax && first * 2 >= entries.size()) {
      entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(first));
      first = 0;
    }
    return entry;
  }

  // Notified under the lock: once it is released, Shutdown may return and the lane be destroyed.
  void BecomeIdle() ZEZE_REQUIRES(mutex) {
    draining = false;
    running = nullptr;
    idle.NotifyAll();
  }
};

TaskOneByOneByKey::TaskOneByOneByKey(Executor& executor, Options options)
    : executor_(executor),
      options_(std::move(options)),
      lane_mask_(LaneMask(options_.lane_count)),
      lanes_(std::make_unique<Lane[]>(lane_mask_ + 1)) {
  ZEZE_REQUIRE(
      options_.lane_length_max > 0,
      "one-by-one queues: lane_length_max is 0, so no task would be accepted: set at least "
      "1");
}

TaskOneByOneByKey::~TaskOneByOneByKey() {
  Shutdown(Pending::kDiscard);
}

TaskOneByOneByKey::Lane& TaskOneByOneByKey::LaneOf(std::uint64_t hash) const {
  return lanes_[hash & lane_mask_];
}

Result<void> TaskOneByOneByKey::CheckRoom(const Lane& lane, const Task& task) const
    ZEZE_NO_THREAD_SAFETY_ANALYSIS {  // The caller holds the lane's lock, maybe among others.
  if (lane.closed) {
    return Error(
        ErrorCode::kShuttingDown,
        fmt::format("one-by-one queues are shut down, so \"{}\" was not accepted", task.name()));
  }
  if (lane.size() >= options_.lane_length_max) {
    return Error(ErrorCode::kOverloaded,
                 fmt::format("{} tasks already wait in the lane of this key, so \"{}\" was not "
                             "accepted; try again later",
                             lane.size(), task.name()));
  }
  return {};
}

Result<void> TaskOneByOneByKey::PostHash(std::uint64_t hash, Task task) {
  ZEZE_REQUIRE(static_cast<bool>(task), "an empty task was posted to one-by-one queues");
  Lane& lane = LaneOf(hash);
  {
    MutexLock lock(lane.mutex);
    Result<void> room = CheckRoom(lane, task);
    if (!room.ok()) return room;
    if (!lane.Append({.hash = hash, .batch = nullptr, .task = std::move(task)})) return {};
  }
  ScheduleDrain(lane);
  return {};
}

// All lanes are locked at once, in the order of their addresses, so that any two batches stand in
// the same order in every lane they share: that is why they cannot wait for each other in a circle.
Result<void> TaskOneByOneByKey::PostHashes(std::vector<std::uint64_t> hashes,
                                           Task task) ZEZE_NO_THREAD_SAFETY_ANALYSIS {
  if (hashes.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" was posted as a batch without a key", task.name()));
  }
  ZEZE_REQUIRE(static_cast<bool>(task), "an empty task was posted to one-by-one queues");
  if (hashes.size() == 1) return PostHash(hashes.front(), std::move(task));
  auto batch = std::make_unique<Batch>();
  batch->hashes = std::move(hashes);
  for (const std::uint64_t hash : batch->hashes) batch->lanes.push_back(&LaneOf(hash));
  std::sort(batch->lanes.begin(), batch->lanes.end());
  batch->lanes.erase(std::unique(batch->lanes.begin(), batch->lanes.end()), batch->lanes.end());
  batch->lanes_to_come = batch->lanes.size();

  const std::vector<Lane*> lanes = batch->lanes;
  std::vector<Lane*> to_drain;
  for (Lane* lane : lanes) lane->mutex.Lock();
  Result<void> room;
  for (const Lane* lane : lanes) {
    if (room.ok()) room = CheckRoom(*lane, task);
  }
  if (room.ok()) {
    batch->name = task.name();
    batch->task = std::move(task);
    for (Lane* lane : lanes) {
      if (lane->Append({.hash = 0, .batch = batch.get(), .task = {}})) to_drain.push_back(lane);
    }
    static_cast<void>(batch.release());  // NOLINT(bugprone-unused-return-value): the lanes own it.
  }
  for (Lane* lane : lanes) lane->mutex.Unlock();
  for (Lane* lane : to_drain) ScheduleDrain(*lane);
  return room;
}

std::size_t TaskOneByOneByKey::CancelHash(std::uint64_t hash) {
  std::vector<Task> canceled;  // Destroyed after the lock is released: captures may be anything.
  const auto cancel_batch = [&](Batch* batch) {
    if (batch == nullptr) return;
    const auto& hashes = batch->hashes;
    if (std::find(hashes.begin(), hashes.end(), hash) == hashes.end()) return;
    // The empty batch stays in its lanes and is passed over when its turn comes.
    if (batch->Become(Batch::State::kCanceled)) canceled.push_back(std::move(batch->task));
  };
  Lane& lane = LaneOf(hash);
  MutexLock lock(lane.mutex);
  cancel_batch(lane.stands_at);
  const auto begin = lane.entries.begin() + static_cast<std::ptrdiff_t>(lane.first);
  for (auto entry = begin; entry != lane.entries.end(); ++entry) {
    if (entry->batch != nullptr) {
      cancel_batch(entry->batch);
    } else if (entry->hash == hash) {
      canceled.push_back(std::move(entry->task));
    }
  }
  const auto gone = [hash](const Entry& entry) {
    return entry.batch == nullptr && entry.hash == hash;
  };
  lane.entries.erase(std::remove_if(begin, lane.entries.end(), gone), lane.entries.end());
  return canceled.size();
}

void TaskOneByOneByKey::ScheduleDrain(Lane& lane) {
  executor_.Post(Task("one-by-one lane", [this, &lane] { Drain(lane); }));
}

// Runs what has been posted so far, then gives the thread back: a busy key goes to the end of the
// executor's queue instead of starving the others.
void TaskOneByOneByKey::Drain(Lane& lane) {
  std::size_t turns = 0;
  {
    MutexLock lock(lane.mutex);
    turns = lane.size();
  }
  for (; turns > 0; --turns) {
    if (!RunNext(lane)) return;
  }
  {
    MutexLock lock(lane.mutex);
    if (lane.size() == 0) {
      lane.BecomeIdle();
      return;
    }
  }
  ScheduleDrain(lane);
}

// False if the lane now stands at a batch; whoever runs the batch will go on with the lane, and may
// be doing so already.
bool TaskOneByOneByKey::RunNext(Lane& lane) {
  Entry entry;
  bool complete = false;
  {
    MutexLock lock(lane.mutex);
    if (lane.size() == 0) return true;  // Canceled meanwhile.
    entry = lane.TakeFirst();
    lane.running = entry.batch != nullptr ? entry.batch->name : entry.task.name();
    if (entry.batch != nullptr) {
      complete = entry.batch->lanes_to_come.fetch_sub(1) == 1;
      if (!complete) lane.stands_at = entry.batch;
    }
  }
  if (entry.batch == nullptr) {
    Run(entry.task);
    return true;
  }
  if (!complete) return false;
  RunBatch(*entry.batch, lane);
  return true;
}

void TaskOneByOneByKey::RunBatch(Batch& batch, const Lane& here) {
  const std::unique_ptr<Batch> owned(&batch);
  if (batch.Become(Batch::State::kStarted)) Run(batch.task);
  for (Lane* lane : batch.lanes) {
    if (lane == &here) continue;
    {
      MutexLock lock(lane->mutex);
      lane->stands_at = nullptr;
      if (lane->size() == 0) {
        lane->BecomeIdle();
        continue;
      }
    }
    ScheduleDrain(*lane);
  }
}

void TaskOneByOneByKey::Run(Task& task) {
  if (discarding_.load(std::memory_order_relaxed)) {
    Discard(task);
    return;
  }
  const char* const name = task.name();
  const ScopedActivity activity(name);
  const auto* outer = std::exchange(running_on_this_thread, this);
  try {
    task();
  } catch (const std::exception& error) {
    if (options_.on_task_error) {
      options_.on_task_error(name, std::current_exception());
    } else {
      ZEZE_LOG_ERROR("task \"{}\" threw: {}", name, error.what());
    }
  } catch (...) {
    if (options_.on_task_error) {
      options_.on_task_error(name, std::current_exception());
    } else {
      ZEZE_LOG_ERROR("task \"{}\" threw something that is not a std::exception", name);
    }
  }
  task = Task();  // What it captured is gone before Shutdown can return.
  running_on_this_thread = outer;
}

void TaskOneByOneByKey::Discard(Task& task) {
  discarded_.fetch_add(1, std::memory_order_relaxed);
  if (options_.on_discard) options_.on_discard(task.name());
  ZEZE_LOG_DEBUG("discarded \"{}\" at shutdown", task.name());
  task = Task();
}

void TaskOneByOneByKey::Shutdown(Pending pending) {
  const Result<void> stopped = ShutdownWithin(std::chrono::nanoseconds::max(), pending);
  ZEZE_CHECK(stopped.ok());
}

Result<void> TaskOneByOneByKey::ShutdownWithin(std::chrono::nanoseconds patience, Pending pending) {
  ZEZE_CHECK(running_on_this_thread != this);
  const std::chrono::nanoseconds now = SystemClock().Now();
  const std::chrono::nanoseconds deadline = patience > std::chrono::nanoseconds::max() - now
                                                ? std::chrono::nanoseconds::max()
                                                : now + patience;
  if (pending == Pending::kDiscard) discarding_.store(true, std::memory_order_relaxed);
  for (std::size_t i = 0; i <= lane_mask_; ++i) {
    MutexLock lock(lanes_[i].mutex);
    lanes_[i].closed = true;
  }
  for (std::size_t i = 0; i <= lane_mask_; ++i) {
    if (!WaitUntilIdle(lanes_[i], deadline)) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("one-by-one queues did not stop in time: {}", DescribeRunning()));
    }
  }
  const std::uint64_t discarded = discarded_.exchange(0);
  if (discarded > 0) {
    ZEZE_LOG_WARNING("one-by-one queues discarded {} waiting tasks at shutdown", discarded);
  }
  return {};
}

bool TaskOneByOneByKey::WaitUntilIdle(Lane& lane, std::chrono::nanoseconds deadline) {
  MutexLock lock(lane.mutex);
  while (lane.draining) {
    if (!SystemClock().WaitUntil(lane.idle, lane.mutex, deadline)) return !lane.draining;
  }
  return true;
}

std::string TaskOneByOneByKey::DescribeRunning() const {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> running;
  for (std::size_t i = 0; i <= lane_mask_ && running.size() < kNamed; ++i) {
    const Lane& lane = lanes_[i];
    MutexLock lock(lane.mutex);
    if (!lane.draining || lane.stands_at != nullptr) continue;
    running.push_back(fmt::format("\"{}\" with {} tasks behind it",
                                  lane.running != nullptr ? lane.running : "a lane that starts",
                                  lane.size()));
  }
  return fmt::format("{}", fmt::join(running, ", "));
}

std::size_t TaskOneByOneByKey::PendingCountApprox() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i <= lane_mask_; ++i) {
    MutexLock lock(lanes_[i].mutex);
    count += lanes_[i].size();
  }
  return count;
}

}  // namespace zeze
