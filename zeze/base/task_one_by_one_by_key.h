// TaskOneByOneByKey: runs tasks of the same key one at a time, in the order they were posted.
//
// This is how the framework keeps the messages of one account, one role or one record in order
// without a thread or a lock per key:
//
//   TaskOneByOneByKey serial(executor, {});
//   serial.Post(account, [] { HandleLogin(); });
//   serial.Post(account, [] { HandleMove(); });   // Starts after HandleLogin has returned.
//   serial.Post(other, [] { HandleLogin(); });    // May run at the same time as either.
//   serial.PostBatch({account, other}, [] { Trade(); });   // After all above, alone in both.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/hash.h"
#include "zeze/base/result.h"

namespace zeze {

// Guarantees:
//   - Tasks posted with equal keys never overlap and start in the order of their Post calls, where
//     those calls are themselves ordered (same thread, or one happens before the other). A batch
//     counts as posted with each of its keys. Batches never wait for each other in a circle.
//   - What a task wrote is visible to every later task of the same key.
//   - A task that throws does not stop the tasks behind it.
//   - Every accepted task runs once, or is reported (Options::on_discard), or was canceled.
//
// Does not guarantee that tasks of different keys run in parallel: keys share a fixed number of
// lanes, so two keys may fall into one lane and wait for each other. A task must therefore never
// wait for a task of another key.
//
// Thread-safe, except that the destructor must not run while another thread is inside a call. The
// executor must run what is posted to it until Shutdown has returned.
class TaskOneByOneByKey {
 public:
  struct Options {
    // Rounded up to a power of two. More lanes mean fewer keys that share one; an idle lane costs
    // about 192 bytes.
    std::size_t lane_count = 1024;

    // Post fails with kOverloaded once this many tasks wait in the key's lane, so that a peer
    // that sends faster than we work is pushed back instead of filling the memory.
    std::size_t lane_length_max = 65536;

    // Called on the task's thread with what the task threw. Must not throw. Empty: a log line.
    std::function<void(const char* task_name, const std::exception_ptr& error)> on_task_error =
        nullptr;

    // Called for each task that Shutdown discards, before it is destroyed. Must neither throw nor
    // post. The log says how many there were, whether this is set or not.
    std::function<void(const char* task_name)> on_discard = nullptr;
  };

  // What Shutdown does with tasks that have not started.
  enum class Pending { kRun, kDiscard };

  // Throws UsageError if a count in the options is 0.
  TaskOneByOneByKey(Executor& executor, Options options);

  // Calls Shutdown(Pending::kDiscard).
  ~TaskOneByOneByKey();

  TaskOneByOneByKey(const TaskOneByOneByKey&) = delete;
  TaskOneByOneByKey& operator=(const TaskOneByOneByKey&) = delete;

  // Fails with kOverloaded or kShuttingDown; the task is then destroyed and never runs. Throws
  // UsageError, as PostBatch does, if the task is empty.
  template <typename Key>
  Result<void> Post(const Key& key, Task task) {
    return PostHash(HashOf(key), std::move(task));
  }

  // One task that is in order with every one of the keys, and alone in all of them while it runs.
  // No thread is blocked while it waits for its turn. Fails as Post does, for all keys or none, and
  // with kInvalidArgument if there is no key. Not free: every lane it touches stands still until
  // all of them have come to it.
  template <std::ranges::input_range Keys>
  Result<void> PostBatch(const Keys& keys, Task task) {
    std::vector<std::uint64_t> hashes;
    if constexpr (std::ranges::sized_range<Keys>) hashes.reserve(std::ranges::size(keys));
    for (const auto& key : keys) hashes.push_back(HashOf(key));
    return PostHashes(std::move(hashes), std::move(task));
  }

  template <typename Key>
  Result<void> PostBatch(std::initializer_list<Key> keys, Task task) {
    return PostBatch<std::initializer_list<Key>>(keys, std::move(task));
  }

  // Destroys the tasks of this key that have not started, batches with this key included, and
  // returns how many there were. None of them starts after this has returned; one that is running
  // runs on. (Keys with the same 64-bit hash are the same key here.)
  template <typename Key>
  std::size_t Cancel(const Key& key) {
    return CancelHash(HashOf(key));
  }

  // Rejects further posts, then blocks until every accepted task has run or been discarded. After
  // it returns no task is running. May be called again. Must not be called from a task of this
  // object, which would wait for itself.
  void Shutdown(Pending pending);

  // The same, but fails with kUnavailable if that takes longer than patience, naming what runs.
  Result<void> ShutdownWithin(std::chrono::nanoseconds patience, Pending pending);

  // Tasks that wait, a batch counted once for each of its lanes. Takes every lane's lock in turn.
  std::size_t PendingCountApprox() const;

 private:
  struct Batch;
  struct Entry;
  struct Lane;

  Result<void> PostHash(std::uint64_t hash, Task task);
  Result<void> PostHashes(std::vector<std::uint64_t> hashes, Task task);
  std::size_t CancelHash(std::uint64_t hash);

  Lane& LaneOf(std::uint64_t hash) const;
  Result<void> CheckRoom(const Lane& lane, const Task& task) const;
  void ScheduleDrain(Lane& lane);
  void Drain(Lane& lane);
  bool RunNext(Lane& lane);
  void RunBatch(Batch& batch, const Lane& here);
  void Run(Task& task);
  void Discard(Task& task);
  static bool WaitUntilIdle(Lane& lane, std::chrono::nanoseconds deadline);
  std::string DescribeRunning() const;

  Executor& executor_;
  const Options options_;
  const std::size_t lane_mask_;
  const std::unique_ptr<Lane[]> lanes_;
  std::atomic<bool> discarding_ = false;
  std::atomic<std::uint64_t> discarded_ = 0;
};

}  // namespace zeze
