// LivenessProbe: runs a real transaction again and again, and says whether the process still works.
//
//   LivenessStatus status = app.liveness();       // For whoever asks: a load balancer, a person.
//
// Under `zeze daemon --liveness-timeout` it also beats: it writes a byte to the descriptor named by
// ZEZE_LIVENESS_FD after each success, and the daemon kills and restarts a process that does not.
// A process whose database or Global cannot be reached beats all the same: it works, answers
// nothing wrong, and a restart would only lose what it has not saved yet.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/transaction/engine.h"

namespace zeze {

struct LivenessOptions {
  std::chrono::nanoseconds period = std::chrono::seconds(1);  // 0: no probe.
  // A process whose last success is longer ago is not alive.
  std::chrono::nanoseconds limit = std::chrono::seconds(10);
  // A checkpoint that neither succeeds nor fails for so long hangs.
  std::chrono::nanoseconds checkpoint_limit = std::chrono::minutes(2);
  // To beat on; -1: what ZEZE_LIVENESS_FD says, if it is set.
  int descriptor = -1;
  // Without a thread nothing happens until Look is called.
  bool start_thread = true;
};

enum class Liveness : std::uint8_t {
  kAlive,
  kWaiting,  // It works but cannot serve: its database cannot be reached, or it is stopping.
  kHung,
  kUnknown,  // There is no probe.
};
std::string_view ToString(Liveness liveness);

struct LivenessStatus {
  Liveness state = Liveness::kAlive;
  std::string why;  // If it is not alive.
  std::chrono::nanoseconds since_success{0};
  std::uint64_t probes = 0;     // That have ended,
  std::uint64_t successes = 0;  // and of these well.
};

// Made before the engine starts, ended after it. Thread-safe after Start.
class LivenessProbe {
 public:
  // Adds a table in memory of its own to the engine.
  LivenessProbe(Engine& engine, const LivenessOptions& options, Clock& clock);
  ~LivenessProbe();
  LivenessProbe(const LivenessProbe&) = delete;
  LivenessProbe& operator=(const LivenessProbe&) = delete;

  // Whether somebody listens: ZEZE_LIVENESS_FD is set.
  static bool IsExpected();

  // An error: ZEZE_LIVENESS_FD is no descriptor. After Engine::Start.
  Result<void> Start(ThreadPool& workers);
  // The workers end soon, and everything is saved then: goes on to beat for that time.
  void BeginStop();
  // Ends its thread. No probe may be under way: the workers have ended.
  void Stop();

  LivenessStatus status() const;
  // One step. Not together with a thread of its own.
  void Look();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace zeze
