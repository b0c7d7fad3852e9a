// TimerPlan: when a timer is due: arithmetic on its stored form, without clocks and tables.
//
//   BTimer timer = ...;
//   while (DueTime(timer) <= now) {
//     Run(timer);
//     if (!AdvanceTimer(timer, now, kGrace)) return Remove(timer);    // That was the last time.
//   }
//
// Times are Unix milliseconds.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "Zeze/Builtin/Timer.h"
#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"

namespace zeze {

using TimerBean = Zeze::Builtin::Timer::BTimer;

// What becomes of occurrences that passed while nobody could run them. A timer that happens only
// once is not missed: it runs late. Stored; do not renumber.
enum class MisfirePolicy : std::uint8_t {
  kSkip = 0,           // They are left out; a period begins anew, from now.
  kOnce = 1,           // Once, now, for all of them; a period begins anew.
  kOnceKeepPhase = 2,  // Once, now; then at the moments that were planned from the beginning.
  kAll = 3,            // Each of them, but of very many only the last (TimerSpec::misfire_max).
};

// When, how often and what.
struct TimerSpec {
  std::string handler = {};

  // Either these: after the delay, and if there is a period, again and again.
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds period{0};
  bool repeats = false;  // A period of 0 is refused then.
  // Or this: cron.h says what it may be. An empty zone is that of the process.
  std::string cron = {};
  std::string time_zone = {};

  std::int64_t times = -1;       // At most; -1: without end.
  std::int64_t end_time_ms = 0;  // Nothing is planned behind it; 0: none.
  MisfirePolicy misfire = MisfirePolicy::kOnceKeepPhase;
  std::int32_t misfire_max = 100;
  std::string one_by_one_key = {};  // Of timers and tasks with the same key one runs at a time.
  AnyBean data = {};                // For the handler.

  static TimerSpec After(std::string handler, std::chrono::milliseconds delay, AnyBean data = {});
  static TimerSpec Every(std::string handler, std::chrono::milliseconds delay,
                         std::chrono::milliseconds period, AnyBean data = {});
  static TimerSpec Cron(std::string handler, std::string expression, std::string time_zone = {},
                        AnyBean data = {});
};

// The stored form. Errors: kInvalidArgument, with what is wrong; also if it would never happen.
Result<TimerBean> PlanTimer(const TimerSpec& spec, std::int64_t now);

// Of one that somebody else has planned: kInvalidArgument, with what cannot be.
Result<void> CheckPlan(const TimerBean& timer);

// When it is to run next: the planned time, or that of the next try after a failure.
std::int64_t DueTime(const TimerBean& timer);
// The occurrence that comes next.
std::int64_t PlannedTime(const TimerBean& timer);
std::int64_t HappenTimes(const TimerBean& timer);
std::int64_t RemainTimes(const TimerBean& timer);
std::int64_t EndTime(const TimerBean& timer);
const std::string& OneByOneKey(const TimerBean& timer);
void SetPlannedTime(TimerBean& timer, std::int64_t time);

// The planned occurrence happens now: counts it and plans the next one. False: there is none. What
// is later than `grace` is missed, and its policy counts.
bool AdvanceTimer(TimerBean& timer, std::int64_t now, std::int64_t grace);

// Nobody looked at the timer until now. False: nothing is left of it.
bool ApplyMisfire(TimerBean& timer, std::int64_t now, std::int64_t grace);

// Whose clock has planned a timer.
enum class PlannedBy : std::uint8_t {
  kThisServer,     // It has been set back, if the timer ran in what is the future now.
  kAnotherServer,  // Clocks of servers may differ by an hour.
};

// The clock has been set back since the timer was planned. False: nothing changed.
//   - A period goes on: by whole periods the timer is planned earlier, so that it is as far ahead
//     as it was, give or take half a period.
//   - A cron timer for every hour, if several of its moments come again, goes on with them. One
//     that names hours does not repeat those that it has had.
//   - By more than an hour, the clock was wrong. The timer is planned anew, as far ahead as it was
//     then, a cron timer by the calendar.
bool HealPlan(TimerBean& timer, std::int64_t now, PlannedBy by = PlannedBy::kAnotherServer);

// Whether both mean the same, apart from how far they are.
bool SamePlan(const TimerBean& a, const TimerBean& b);

}  // namespace zeze
