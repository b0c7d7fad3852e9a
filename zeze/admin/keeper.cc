#include "zeze/admin/keeper.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/text.h"

namespace zeze::admin {

namespace {

// Doubling further means nothing.
constexpr int kDoublingsMax = 30;

std::string Describe(const ProcessEnd& end) {
  if (end.signal == 0) return fmt::format("ended with status {}", end.status);
  const char* name = sigdescr_np(end.signal);  // NOLINT(misc-include-cleaner): of <cstring>.
  return fmt::format("was killed by signal {} ({})", end.signal, name == nullptr ? "?" : name);
}

std::string Text(std::chrono::nanoseconds duration) {
  return FormatDuration(std::chrono::duration_cast<std::chrono::milliseconds>(duration));
}

}  // namespace

Keeper::Keeper(const KeeperOptions& options, std::function<std::uint64_t()> random)
    : options_(options), random_(std::move(random)) {}

Keeper::Time Keeper::LivenessDeadline() const {
  if (options_.liveness_timeout == Time{0}) return Time::max();
  if (!beaten_ && options_.start_timeout == Time{0}) return Time::max();
  return last_beat_ + (beaten_ ? options_.liveness_timeout : options_.start_timeout);
}

Keeper::Time Keeper::NextDeadline() const {
  switch (state_) {
    case State::kWaiting:
      return start_at_;
    case State::kRunning:
      return LivenessDeadline();
    case State::kStopping:
      return kill_at_;
    default:
      return Time::max();
  }
}

Keeper::Wish Keeper::Next(Time now) {
  switch (state_) {
    case State::kWaiting:
      if (now < start_at_) return Wish::kNothing;
      state_ = State::kStarting;
      return Wish::kStart;
    case State::kRunning: {
      const Time deadline = LivenessDeadline();
      if (now < deadline) return Wish::kNothing;
      // Woken so late, this process was paused, and the other one perhaps together with it (a
      // machine that slept): it gets another chance.
      if (now - deadline > options_.liveness_timeout / 2) {
        last_beat_ = now;
        return Wish::kNothing;
      }
      state_ = State::kHung;
      return Wish::kKill;
    }
    case State::kStopping:
      if (!std::exchange(told_to_end_, true)) return Wish::kTerminate;
      if (now < kill_at_) return Wish::kNothing;
      kill_at_ = Time::max();
      return Wish::kKill;
    case State::kFinished:
      return Wish::kFinish;
    default:
      return Wish::kNothing;
  }
}

void Keeper::OnStarted(Time now) {
  ZEZE_CHECK(state_ == State::kStarting);
  state_ = State::kRunning;
  started_ = now;
  last_beat_ = now;
  beaten_ = false;
}

void Keeper::OnStartFailed(Time now, const std::string& why) {
  ZEZE_CHECK(state_ == State::kStarting);
  Crashed(now, "could not be started: " + why);
}

void Keeper::OnBeat(Time now) {
  last_beat_ = now;
  beaten_ = true;
}

void Keeper::Crashed(Time now, const std::string& what) {
  const int doublings = std::min(crashes_, kDoublingsMax);
  ++crashes_;
  const double delay = std::min(static_cast<double>(options_.first_delay.count()) *
                                    static_cast<double>(std::int64_t{1} << doublings),
                                static_cast<double>(options_.delay_max.count()));
  const double part = static_cast<double>(random_() % 1001) / 500.0 - 1;  // -1 to 1.
  const Time wait(static_cast<Time::rep>(delay * (1 + part * options_.jitter)));
  start_at_ = now + wait;
  state_ = State::kWaiting;
  story_ = fmt::format("{}; it is started again in {}", what, Text(wait));
}

void Keeper::OnEnded(Time now, ProcessEnd end) {
  const bool hung = state_ == State::kHung;
  if (state_ == State::kStopping || (!hung && end.signal == 0 && end.status == 0)) {
    exit_code_ = end.signal == 0 ? end.status : 128 + end.signal;
    state_ = State::kFinished;
    story_ = Describe(end);
    return;
  }
  if (now - started_ >= options_.steady) crashes_ = 0;
  const Time patience = beaten_ ? options_.liveness_timeout : options_.start_timeout;
  Crashed(now, hung ? fmt::format("did not say for {} that it lives and was killed", Text(patience))
                    : Describe(end));
}

void Keeper::OnStopRequested(Time now) {
  if (state_ == State::kStopping || state_ == State::kFinished) return;
  if (state_ == State::kWaiting || state_ == State::kStarting) {
    state_ = State::kFinished;
    return;
  }
  // One that hangs is being killed already.
  told_to_end_ = state_ == State::kHung;
  state_ = State::kStopping;
  kill_at_ = options_.stop_timeout == Time{0} ? Time::max() : now + options_.stop_timeout;
}

}  // namespace zeze::admin
