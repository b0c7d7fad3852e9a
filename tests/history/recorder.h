// Recorder: writes down what procedures do while many threads run them.
//
//   Recorder recorder({.thread_count = 8});
//   ... in thread 3, for each procedure:
//   Attempt attempt = recorder.Begin(3, "transfer");
//   attempt.Read(from, from_state);
//   attempt.Append(from, attempt.NewElement());
//   attempt.Commit();                        // Or Fail(), Abort(); Restart() for another try.
//   ... when all threads are done:
//   const Report report = Check(recorder.Finish(), {});
//
// A test that kills its server process gives the recorder a directory: what was recorded up to the
// kill is then found there by LoadRecording, with the outcome of open attempts unknown.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/history/history.h"
#include "zeze/base/result.h"

namespace zeze::history {

namespace internal {
class ThreadLog;
}  // namespace internal

// One attempt of one procedure. Record an operation after it has happened (a read when its value is
// known). Movable; destroyed without an outcome it counts as unknown.
class Attempt {
 public:
  Attempt(Attempt&& other) noexcept;
  Attempt& operator=(Attempt&& other) noexcept;
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  TransactionId id() const { return id_; }

  // An element that nobody else uses: id() and a counter.
  Element NewElement();

  void Read(Key key, const ListState& state);
  void Read(Key key, std::span<const Element> elements);
  void Append(Key key, Element element);

  // For nested procedures: RollbackTo(savepoint) says that the appends recorded since then have
  // been undone. What was read since then still counts as read.
  using Savepoint = std::uint32_t;
  Savepoint CreateSavepoint() const { return operation_count_; }
  void RollbackTo(Savepoint savepoint);

  // The outcome, once. The end stamp is taken here: call it as soon as the caller of the procedure
  // knows.
  void Commit();
  void Fail();   // Rolled back by its own decision.
  void Abort();  // Rolled back by the system.

  // Abort(), then a new attempt of the same procedure with a new id. What a retried body calls.
  void Restart();

 private:
  friend class Recorder;
  Attempt(internal::ThreadLog& log, std::string_view procedure);
  void End(Outcome outcome);

  internal::ThreadLog* log_;  // Null after the end.
  internal::ThreadLog* home_;
  TransactionId id_ = 0;
  std::uint32_t operation_count_ = 0;
  std::uint32_t element_count_ = 0;
};

// Guarantees: no locks, no system calls and no allocation for most operations (a log grows by
// chunks); what one thread records is never reordered.
//
// Requires: one thread at a time per log, and one open attempt at a time per log. A simulator that
// runs many clients in one thread gives each client a log.
class Recorder {
 public:
  struct Options {
    std::size_t thread_count = 8;

    // Added to every id. A test with several processes, or with restarts, gives each its own range.
    TransactionId id_base = 0;

    // Called at the begin and the end of each attempt, by any thread; must never run backwards
    // across threads. Empty: a shared counter, which orders exactly but makes every attempt
    // synchronise with every other, and so hides data races from ThreadSanitizer. Where that
    // matters pass SteadyClockStamp, in a simulation the simulated time.
    std::function<std::uint64_t()> now = nullptr;
  };

  explicit Recorder(Options options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Records into files of this directory (created if missing; must hold no recording yet), mapped
  // into memory, so that nothing recorded is lost when the process is killed. A disk that fills up
  // while recording stops the process.
  static Result<std::unique_ptr<Recorder>> Open(const std::string& directory, Options options);

  Attempt Begin(std::size_t thread, std::string_view procedure);

  // Everything recorded so far, once; the recorder is then empty. No thread may be recording.
  History Finish();

 private:
  friend class Attempt;

  std::uint64_t Now();

  Options options_;
  std::vector<std::unique_ptr<internal::ThreadLog>> logs_;
  std::atomic<std::uint64_t> counter_ = 0;
};

// Nanoseconds of the steady clock, for Recorder::Options::now.
std::uint64_t SteadyClockStamp();

// What a Recorder made by Open wrote, up to its last complete operation. kNotFound if the directory
// holds no recording, kCorrupt if it was not written by a Recorder.
Result<History> LoadRecording(const std::string& directory);

}  // namespace zeze::history
