// Lease: how long a server may believe that its rights are its own, and how long a Global must wait
// before it gives them to others. Rules 36, 37 and 40 of docs/architecture.md.
//
//   const LeaseOptions lease{.duration = 6s};
//   fence.Start({..., .lease = lease.said()});                // Global waits for that (hole 31).
//   if (!renewal.ok()) ...; else lease.Renewed(sent_at);      // sent_at: before the call.
//   if (!lease.Valid(clock.Now())) return Suspended();
//
// The lease is in the database: each renewal is a fenced transaction, so that the last successful
// one was sent before an eviction took effect. Whatever the clocks show, only their rates matter.

#pragma once

#include <chrono>

namespace zeze::global {

// A shorter one is over before it can be renewed in peace; during a longer one the records of a
// server that crashed would be out of reach.
inline constexpr std::chrono::milliseconds kLeaseMin{500};
inline constexpr std::chrono::milliseconds kLeaseMax = std::chrono::minutes(10);

struct LeaseOptions {
  std::chrono::nanoseconds duration = std::chrono::seconds(6);
  // A clock may run faster or slower than another by this part of the time.
  double clock_rate_error = 0.01;
  // For being scheduled late between looking at the clock and acting.
  std::chrono::nanoseconds scheduling = std::chrono::milliseconds(200);

  // As a server tells others.
  std::chrono::milliseconds said() const {
    return std::chrono::ceil<std::chrono::milliseconds>(duration);
  }
  std::chrono::nanoseconds renew_period() const { return duration / 5; }
  // From the moment a renewal was sent, by the server's clock.
  std::chrono::nanoseconds valid_for() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration * (1 - clock_rate_error)) -
           scheduling;
  }
  // From the moment the eviction was seen in the database, by Global's clock.
  std::chrono::nanoseconds free_after() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration * (1 + clock_rate_error)) +
           scheduling;
  }
};

// Use CLOCK_BOOTTIME (Clock::Now): it goes on while the machine sleeps. Not thread-safe.
class Lease {
 public:
  explicit Lease(const LeaseOptions& options) : options_(options) {}

  void Renewed(std::chrono::nanoseconds sent_at) {
    const auto until = sent_at + options_.valid_for();
    if (until > until_) until_ = until;
  }
  bool Valid(std::chrono::nanoseconds now) const { return now < until_; }
  std::chrono::nanoseconds until() const { return until_; }
  const LeaseOptions& options() const { return options_; }

 private:
  LeaseOptions options_;
  std::chrono::nanoseconds until_ = std::chrono::nanoseconds::min();
};

}  // namespace zeze::global
