#include "zeze/components/timer/alarm_clock.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;

// The wall clock is looked at so often, and followed if it was set by more than that.
constexpr std::uint64_t kLookTicks = 1000;
constexpr std::int64_t kWallClockToleranceMs = 20;
constexpr std::int64_t kSetBackMs = 1000;

// Told at a time: 100,000 that are due together must not take a core from others for long.
constexpr std::size_t kTurn = 256;

}  // namespace

AlarmClock::AlarmClock(const Options& options, Due due)
    : options_(options), due_(std::move(due)), wheel_(TickNow()) {
  unix_at_tick_0_ = UnixNow() - static_cast<std::int64_t>(TickNow());
  thread_ = std::thread([this] { Run(); });
}

AlarmClock::~AlarmClock() {
  Stop();
}

void AlarmClock::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

std::int64_t AlarmClock::UnixNow() const {
  return std::chrono::duration_cast<milliseconds>(options_.clock->SystemNow().time_since_epoch())
      .count();
}

std::uint64_t AlarmClock::TickNow() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<milliseconds>(options_.clock->Now()).count());
}

// One millisecond on top: the two clocks do not tick together, and nothing may be early.
std::uint64_t AlarmClock::TickOf(std::int64_t unix_ms) const {
  return static_cast<std::uint64_t>(std::max(unix_ms, unix_at_tick_0_) - unix_at_tick_0_ + 1);
}

void AlarmClock::Set(Alarm alarm, std::int64_t unix_ms) {
  const MutexLock lock(mutex_);
  SetLocked(std::move(alarm), unix_ms, TickOf(unix_ms));
}

void AlarmClock::SetAll(std::vector<std::pair<Alarm, std::int64_t>> alarms) {
  const MutexLock lock(mutex_);
  for (auto& [alarm, unix_ms] : alarms) SetLocked(std::move(alarm), unix_ms, TickOf(unix_ms));
}

void AlarmClock::SetIn(Alarm alarm, milliseconds delay) {
  const MutexLock lock(mutex_);
  const auto ticks = static_cast<std::uint64_t>(std::max<std::int64_t>(delay.count(), 0));
  SetLocked(std::move(alarm), std::nullopt, TickNow() + (ticks == 0 ? 0 : ticks + 1));
}

void AlarmClock::SetLocked(Alarm alarm, std::optional<std::int64_t> unix_ms, std::uint64_t tick) {
  const Key key{.key = alarm.key, .is_local = alarm.is_local};
  const auto [at, added] = armed_.try_emplace(key);
  if (!added && at->second.alarm.serial > alarm.serial) return;
  at->second = {.alarm = std::move(alarm), .unix_ms = unix_ms, .tick = tick};
  if (IsDue(at->second)) {
    overdue_.push_back(key);
    changed_.NotifyAll();
    return;
  }
  wheel_.Add(tick, key);
  // Left-overs of what was cleared or set again.
  if (wheel_.size() > 2 * armed_.size() + 4096) Rebuild();
  if (tick < sleeps_until_) changed_.NotifyAll();
}

bool AlarmClock::IsDue(const Armed& armed) const {
  return armed.unix_ms ? *armed.unix_ms <= UnixNow() : armed.tick <= TickNow();
}

bool AlarmClock::Clear(std::int64_t key, bool is_local) {
  const MutexLock lock(mutex_);
  return armed_.erase({.key = key, .is_local = is_local}) != 0;
}

std::size_t AlarmClock::size() const {
  const MutexLock lock(mutex_);
  return armed_.size();
}

// Somebody has set the wall clock, or it is being slewed: everything moves along.
void AlarmClock::FollowWallClock() {
  const std::int64_t at_0 = UnixNow() - static_cast<std::int64_t>(TickNow());
  if (std::abs(at_0 - unix_at_tick_0_) <= kWallClockToleranceMs) return;
  set_back_ = set_back_ || at_0 < unix_at_tick_0_ - kSetBackMs;
  unix_at_tick_0_ = at_0;
  for (auto& [key, armed] : armed_) {
    if (armed.unix_ms) armed.tick = TickOf(*armed.unix_ms);
  }
  Rebuild();
}

void AlarmClock::Rebuild() {
  wheel_.EraseIf([](const Key&) { return true; });
  for (const auto& [key, armed] : armed_) wheel_.Add(armed.tick, key);
}

void AlarmClock::TakeDue(std::vector<Alarm>& due) {
  wheel_.Advance(TickNow(), [this](Key key, std::uint64_t deadline) {
    mutex_.AssertHeld();
    const auto at = armed_.find(key);
    const bool counts = at != armed_.end() && at->second.tick <= deadline;
    if (counts) overdue_.push_back(key);  // Else it was cleared, or set again for later.
  });
  while (!overdue_.empty() && due.size() < kTurn) {
    const Key key = overdue_.front();
    overdue_.pop_front();
    const auto at = armed_.find(key);
    if (at == armed_.end()) continue;
    if (!IsDue(at->second)) {  // Set again; or the wall clock was set back.
      wheel_.Add(at->second.tick, key);
      continue;
    }
    due.push_back(std::move(at->second.alarm));
    armed_.erase(at);
  }
}

bool AlarmClock::TellSetBack() {
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(set_back_, false)) return false;
  }
  if (options_.on_set_back) options_.on_set_back();
  return true;
}

void AlarmClock::Run() {
  SetThreadName("alarm-clock");
  std::vector<Alarm> due;
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (due.empty()) {
        if (stopped_) return;
        FollowWallClock();
        if (set_back_) break;
        TakeDue(due);
        if (!due.empty() || !overdue_.empty()) continue;
        const std::uint64_t look = TickNow() + kLookTicks;
        sleeps_until_ = std::min(wheel_.NextWake().value_or(look), look);
        options_.clock->WaitUntil(changed_, mutex_, milliseconds(sleeps_until_));
        sleeps_until_ = 0;
      }
    }
    if (TellSetBack()) continue;
    due_(std::move(due));
    due.clear();
  }
}

}  // namespace zeze
