// IoThreads: the few threads that read and write all sockets of a process.
//
//   IoThreads io({.thread_count = 1});
//   Service service(io, {.name = "Game"});

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"

namespace zeze {

namespace internal {
class IoLoop;
}  // namespace internal

// A connection belongs to one of the threads for its whole life, so everything that is handled
// inline (see Dispatch) happens on one thread for each connection, and with thread_count = 1 on one
// thread for the whole process: state that only such code touches needs no lock.
//
// Nothing that runs on these threads may wait: while it does, no connection of the thread moves.
//
// Thread-safe. Outlives the services that use it.
class IoThreads {
 public:
  struct Options {
    std::string name = "io";  // Threads are called name-1, name-2 ...
    std::size_t thread_count = 1;

    // Of time-outs, keep-alive and reconnection. Another clock than the system's is looked at every
    // millisecond, so that a test can move it.
    Clock* clock = &SystemClock();

    // For jitter; called by one thread at a time. Empty: seeded by the system.
    std::function<std::uint64_t()> random = nullptr;

    // Of the one buffer of each thread that all its sockets are read into.
    std::size_t read_buffer_bytes = 256 << 10;
  };

  explicit IoThreads(Options options);

  // Calls Stop.
  ~IoThreads();

  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Ends the threads; waits for them. Stop the services first: what is posted later never runs.
  // Must not be called from one of the threads.
  void Stop();

  // Runs a task on the first thread, after what is already due there. It must neither wait nor
  // throw.
  void Post(Task task);

  // The same, not before the delay has passed. Tasks whose time has not come at Stop never run.
  void PostAfter(std::chrono::nanoseconds delay, Task task);

  // Whether the caller runs on a thread of any IoThreads: then it must not wait.
  static bool IsIoThread();

  Clock& clock() const;
  std::size_t thread_count() const;

  // Of this layer: the loops, and a random number.
  internal::IoLoop& Loop(std::size_t index) const;
  internal::IoLoop& NextLoop();
  std::uint64_t Random();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace zeze
