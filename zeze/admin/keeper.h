// Keeper: decides when a process that should run for ever is started, killed and started again.
//
//   Keeper keeper({.liveness_timeout = std::chrono::seconds(30)}, random);
//   switch (keeper.Next(now)) { case Keeper::Wish::kStart: ...; keeper.OnStarted(now); ... }
//   keeper.OnBeat(now);                         // It has said that it lives.
//   keeper.OnEnded(now, {.status = 86});
//
// A process that ends with status 0 has done what it should; any other end is a crash, after which
// it is started again: after first_delay, then twice as long each time up to delay_max, and from
// the beginning once it has run for `steady`.
//
// A state machine without I/O, threads or clocks.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace zeze::admin {

struct KeeperOptions {
  std::chrono::nanoseconds first_delay = std::chrono::seconds(1);
  std::chrono::nanoseconds delay_max = std::chrono::minutes(1);
  // Each delay is longer or shorter by up to this part, so that the servers of a cluster that
  // crashed together do not come back together.
  double jitter = 0.2;
  std::chrono::nanoseconds steady = std::chrono::minutes(1);

  // Killed if it does not say for so long that it lives. 0: it need not.
  std::chrono::nanoseconds liveness_timeout{0};
  // The same for the first time after a start, which may read a lot.
  std::chrono::nanoseconds start_timeout = std::chrono::minutes(5);
  // Killed if it has not ended so long after it was asked to. 0: it has all the time it needs to
  // save its data.
  std::chrono::nanoseconds stop_timeout{0};
};

struct ProcessEnd {
  int status = 0;
  int signal = 0;  // That ended it; 0: it exited with the status.
};

// Not thread-safe.
class Keeper {
 public:
  using Time = std::chrono::nanoseconds;

  enum class Wish : std::uint8_t {
    kNothing,    // Until NextDeadline or an event.
    kStart,      // Answered by OnStarted or OnStartFailed.
    kTerminate,  // SIGTERM. Once.
    kKill,       // SIGKILL. Once; answered by OnEnded.
    kFinish,     // End with exit_code().
  };

  // `random`: any number, for the jitter.
  Keeper(const KeeperOptions& options, std::function<std::uint64_t()> random);

  Wish Next(Time now);
  // Time::max(): nothing is due.
  Time NextDeadline() const;

  void OnStarted(Time now);
  // Like a crash.
  void OnStartFailed(Time now, const std::string& why);
  void OnBeat(Time now);
  void OnEnded(Time now, ProcessEnd end);
  // Somebody wants all of it to end.
  void OnStopRequested(Time now);

  bool finished() const { return state_ == State::kFinished; }
  int exit_code() const { return exit_code_; }
  // The last end, and what comes next: "was killed by signal 11 (Segmentation fault); it is started
  // again in 4s".
  const std::string& story() const { return story_; }
  int crashes() const { return crashes_; }  // In a row.

 private:
  enum class State : std::uint8_t { kWaiting, kStarting, kRunning, kHung, kStopping, kFinished };

  void Crashed(Time now, const std::string& what);
  Time LivenessDeadline() const;

  const KeeperOptions options_;
  const std::function<std::uint64_t()> random_;
  State state_ = State::kWaiting;
  Time start_at_{0};
  Time started_{0};
  Time last_beat_{0};
  bool beaten_ = false;
  bool told_to_end_ = false;
  Time kill_at_ = Time::max();
  int crashes_ = 0;
  int exit_code_ = 0;
  std::string story_;
};

}  // namespace zeze::admin
