#include "zeze/components/timer/timer_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "Zeze/Builtin/Timer.h"
#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/cron.h"

namespace zeze {

using Zeze::Builtin::Timer::BCronTimer;
using Zeze::Builtin::Timer::BSimpleTimer;

namespace {

// So that sums of times stay numbers.
constexpr std::int64_t kTimeMax = std::int64_t{1} << 60;
constexpr std::int32_t kMisfireMaxDefault = 100;
// Clocks of servers may differ so much.
constexpr std::int64_t kClockErrorMax = 3'600'000;

const BSimpleTimer* Simple(const TimerBean& timer) {
  return timer.TimerObj.As<BSimpleTimer>();
}
const BCronTimer* Cron(const TimerBean& timer) {
  return timer.TimerObj.As<BCronTimer>();
}

// Calls edit with the bean of either kind, which have most variables in common.
template <typename Edit>
void EditKind(TimerBean& timer, Edit&& edit) {
  if (!timer.TimerObj.Update<BSimpleTimer>(edit)) timer.TimerObj.Update<BCronTimer>(edit);
}

template <typename Member>
auto OfKind(const TimerBean& timer, const Member& member) -> decltype(member(*Simple(timer))) {
  using Answer = decltype(member(*Simple(timer)));
  if (const BSimpleTimer* simple = Simple(timer)) return member(*simple);
  if (const BCronTimer* cron = Cron(timer)) return member(*cron);
  return Answer{};
}

MisfirePolicy PolicyOf(std::int32_t stored) {
  return stored >= 0 && stored <= 3 ? static_cast<MisfirePolicy>(stored) : MisfirePolicy::kSkip;
}

std::int64_t MaxOf(std::int32_t stored) {
  return stored > 0 ? stored : kMisfireMaxDefault;
}

std::optional<std::int64_t> CronAfter(const BCronTimer& timer, std::int64_t time) {
  const Result<CronExpression> cron =
      CronExpression::ParseStored(timer.CronExpression, timer.TimeZone);
  if (!cron.ok()) return std::nullopt;
  return cron.value().NextAfter(time);
}

std::int64_t CountUntil(const CronExpression& cron, std::int64_t after, std::int64_t until,
                        std::int64_t enough) {
  std::int64_t count = 0;
  for (std::optional<std::int64_t> at = cron.NextAfter(after); at && *at <= until && count < enough;
       at = cron.NextAfter(*at)) {
    ++count;
  }
  return count;
}

// Of the occurrences from `first` until now the first of the last `most`.
std::int64_t FirstOfLast(const BCronTimer& timer, std::int64_t first, std::int64_t now,
                         std::int64_t most) {
  if ((now - first) / 1000 < most) return first;  // At most one each second.
  const Result<CronExpression> cron =
      CronExpression::ParseStored(timer.CronExpression, timer.TimeZone);
  if (!cron.ok()) return first;
  if (CountUntil(cron.value(), first, now, most) < most) return first;
  std::int64_t low = first;  // Behind it there are `most` or more.
  std::int64_t high = now;   // Behind it there are fewer.
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (CountUntil(cron.value(), middle, now, most) >= most ? low : high) = middle;
  }
  return cron.value().NextAfter(low).value_or(first);
}

// How many steps of `period` lead from `time` to behind `limit`.
std::int64_t StepsPast(std::int64_t time, std::int64_t limit, std::int64_t period) {
  return time > limit ? 0 : (limit - time) / period + 1;
}

std::optional<std::int64_t> NextOf(const BSimpleTimer& timer, std::int64_t now,
                                   std::int64_t grace) {
  if (timer.Period <= 0) return std::nullopt;
  const std::int64_t planned = timer.NextExpectedTime;
  const std::int64_t next = planned + timer.Period;
  if (PolicyOf(timer.MissfirePolicy) == MisfirePolicy::kAll) {
    const std::int64_t missed = StepsPast(next, now, timer.Period);
    const std::int64_t most = MaxOf(timer.MisfireMax);
    return missed > most ? next + (missed - most) * timer.Period : next;
  }
  if (now - planned > grace) return next + StepsPast(next, now, timer.Period) * timer.Period;
  if (PolicyOf(timer.MissfirePolicy) == MisfirePolicy::kOnceKeepPhase) return next;
  // The others do not catch up: what is late is one occurrence at most.
  return next + StepsPast(next, now - timer.Period, timer.Period) * timer.Period;
}

std::optional<std::int64_t> NextOf(const BCronTimer& timer, std::int64_t now, std::int64_t grace) {
  const std::int64_t planned = timer.NextExpectedTime;
  const std::optional<std::int64_t> next = CronAfter(timer, planned);
  if (!next || PolicyOf(timer.MissfirePolicy) == MisfirePolicy::kAll) return next;
  return now - planned > grace ? CronAfter(timer, now) : next;
}

template <typename Kind>
bool Advance(Kind& timer, std::int64_t now, std::int64_t grace) {
  timer.HappenTimes += 1;
  timer.ExpectedTime = timer.NextExpectedTime;
  timer.HappenTime = now;
  if (timer.RemainTimes >= 0) {
    timer.RemainTimes = std::max<std::int64_t>(timer.RemainTimes - 1, 0);
    if (timer.RemainTimes == 0) return false;
  }
  const std::optional<std::int64_t> next = NextOf(timer, now, grace);
  if (!next || (timer.EndTime > 0 && *next > timer.EndTime)) return false;
  timer.NextExpectedTime = *next;
  return true;
}

bool HappensOnce(const BSimpleTimer& timer) {
  return timer.Period <= 0;
}
bool HappensOnce(const BCronTimer&) {
  return false;
}

std::optional<std::int64_t> Skipped(const BSimpleTimer& timer, std::int64_t now) {
  return now + timer.Period;
}
std::optional<std::int64_t> Skipped(const BCronTimer& timer, std::int64_t now) {
  return CronAfter(timer, now);
}

std::int64_t FirstOfMany(const BSimpleTimer& timer, std::int64_t now) {
  const std::int64_t missed = StepsPast(timer.NextExpectedTime, now, timer.Period);
  const std::int64_t most = MaxOf(timer.MisfireMax);
  return timer.NextExpectedTime + std::max<std::int64_t>(missed - most, 0) * timer.Period;
}
std::int64_t FirstOfMany(const BCronTimer& timer, std::int64_t now) {
  return FirstOfLast(timer, timer.NextExpectedTime, now, MaxOf(timer.MisfireMax));
}

template <typename Kind>
bool Misfire(Kind& timer, std::int64_t now, std::int64_t grace) {
  if (now - timer.NextExpectedTime <= grace || HappensOnce(timer)) return true;
  switch (PolicyOf(timer.MissfirePolicy)) {
    case MisfirePolicy::kSkip: {
      const std::optional<std::int64_t> next = Skipped(timer, now);
      if (!next || (timer.EndTime > 0 && *next > timer.EndTime)) return false;
      timer.NextExpectedTime = *next;
      break;
    }
    case MisfirePolicy::kOnce:
      timer.NextExpectedTime = now;
      break;
    case MisfirePolicy::kOnceKeepPhase:
      break;  // Runs late; then Advance goes on with what is to come.
    case MisfirePolicy::kAll:
      timer.NextExpectedTime = FirstOfMany(timer, now);
      break;
  }
  return true;
}

bool Heal(BSimpleTimer& timer, std::int64_t now, PlannedBy by) {
  const bool goes_on = by == PlannedBy::kThisServer && timer.Period > 0;
  const std::int64_t planned_at = std::max(timer.StartTime, timer.HappenTime);
  if (planned_at <= now + (goes_on ? 0 : kClockErrorMax)) return false;
  std::int64_t back = planned_at - now;
  if (timer.Period > 0) back = (back + timer.Period / 2) / timer.Period * timer.Period;
  if (back == 0) return false;
  timer.NextExpectedTime -= back;
  timer.StartTime = std::min(timer.StartTime, now);
  timer.HappenTime = std::min(timer.HappenTime, now);
  return true;
}

// Several of the moments that it has had, or could have had, are to come again.
bool GoesOn(const BCronTimer& timer, std::int64_t now) {
  const Result<CronExpression> cron =
      CronExpression::ParseStored(timer.CronExpression, timer.TimeZone);
  if (!cron.ok() || timer.NextExpectedTime <= now) return false;
  if (timer.HappenTime == 0) {  // It has had none.
    return timer.NextExpectedTime > cron.value().NextAfter(now).value_or(timer.NextExpectedTime);
  }
  // Not if its handler has said when it is to run.
  const std::int64_t had = std::max(timer.ExpectedTime, timer.HappenTime);
  return cron.value().every_hour() && timer.HappenTime > now &&
         timer.NextExpectedTime <= cron.value().NextAfter(had).value_or(0) &&
         CountUntil(cron.value(), now, timer.ExpectedTime, 2) == 2;
}

bool Heal(BCronTimer& timer, std::int64_t now, PlannedBy by) {
  if (by == PlannedBy::kAnotherServer || !GoesOn(timer, now)) {
    if (timer.HappenTime != 0 && timer.HappenTime <= now + kClockErrorMax) return false;
    const std::optional<std::int64_t> latest = CronAfter(timer, now + kClockErrorMax);
    if (!latest || timer.NextExpectedTime <= *latest) return false;
  }
  timer.NextExpectedTime = CronAfter(timer, now).value_or(timer.NextExpectedTime);
  timer.HappenTime = std::min(timer.HappenTime, now);
  return true;
}

Error Wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument, "timer: " + what};
}

Result<std::int64_t> FirstTime(const TimerSpec& spec, std::int64_t now) {
  if (spec.cron.empty()) {
    if (!spec.time_zone.empty()) {
      return Wrong(fmt::format("a time zone '{}' without a cron expression", spec.time_zone));
    }
    if (spec.delay.count() < 0 || spec.delay.count() > kTimeMax) {
      return Wrong(fmt::format("a delay of {} ms", spec.delay.count()));
    }
    if (spec.period.count() < 0 || spec.period.count() > kTimeMax) {
      return Wrong(fmt::format("a period of {} ms", spec.period.count()));
    }
    if (spec.repeats && spec.period.count() == 0) {
      return Wrong("a period of 0 ms: TimerSpec::After runs once");
    }
    return now + spec.delay.count();
  }
  if (spec.delay.count() != 0 || spec.period.count() != 0 || spec.repeats) {
    return Wrong("it has a cron expression and a delay or period: only one of the two can be");
  }
  const Result<CronExpression> cron = CronExpression::Parse(spec.cron, spec.time_zone);
  if (!cron.ok()) return cron.error();
  const std::optional<std::int64_t> first = cron.value().NextAfter(now);
  if (!first) return Wrong(fmt::format("\"{}\" never happens again", spec.cron));
  return *first;
}

}  // namespace

TimerSpec TimerSpec::After(std::string handler, std::chrono::milliseconds delay, AnyBean data) {
  return {.handler = std::move(handler), .delay = delay, .data = std::move(data)};
}

TimerSpec TimerSpec::Every(std::string handler, std::chrono::milliseconds delay,
                           std::chrono::milliseconds period, AnyBean data) {
  return {.handler = std::move(handler),
          .delay = delay,
          .period = period,
          .repeats = true,
          .data = std::move(data)};
}

TimerSpec TimerSpec::Cron(std::string handler, std::string expression, std::string time_zone,
                          AnyBean data) {
  return {.handler = std::move(handler),
          .cron = std::move(expression),
          .time_zone = std::move(time_zone),
          .data = std::move(data)};
}

Result<TimerBean> PlanTimer(const TimerSpec& spec, std::int64_t now) {
  if (spec.times == 0 || spec.times < -1) {
    return Wrong(fmt::format("{} times: say 1 or more, or -1 for no end", spec.times));
  }
  if (spec.misfire_max < 1) {
    return Wrong(fmt::format("a misfire_max of {}: say 1 or more", spec.misfire_max));
  }
  if (spec.end_time_ms < 0) {
    return Wrong(fmt::format("it ends at {}: say a time in Unix milliseconds, or 0 for no end",
                             spec.end_time_ms));
  }
  if (spec.misfire > MisfirePolicy::kAll) {
    return Wrong(fmt::format("a misfire policy of {}: MisfirePolicy has no such value",
                             static_cast<int>(spec.misfire)));
  }
  const Result<std::int64_t> first = FirstTime(spec, now);
  if (!first.ok()) return first.error();
  if (spec.end_time_ms > 0 && first.value() > spec.end_time_ms) {
    return Wrong(
        fmt::format("it ends at {}, before it happens at {}", spec.end_time_ms, first.value()));
  }
  TimerBean timer;
  timer.HandleName = spec.handler;
  timer.CustomData = spec.data;
  const auto policy = static_cast<std::int32_t>(spec.misfire);
  if (spec.cron.empty()) {
    timer.TimerObj.Set(BSimpleTimer{.Delay = spec.delay.count(),
                                    .Period = spec.period.count(),
                                    .RemainTimes = spec.times,
                                    .StartTime = now,
                                    .EndTime = spec.end_time_ms,
                                    .NextExpectedTime = first.value(),
                                    .MissfirePolicy = policy,
                                    .OneByOneKey = spec.one_by_one_key,
                                    .MisfireMax = spec.misfire_max});
  } else {
    timer.TimerObj.Set(BCronTimer{.CronExpression = spec.cron,
                                  .NextExpectedTime = first.value(),
                                  .RemainTimes = spec.times,
                                  .EndTime = spec.end_time_ms,
                                  .MissfirePolicy = policy,
                                  .OneByOneKey = spec.one_by_one_key,
                                  .MisfireMax = spec.misfire_max,
                                  .TimeZone = spec.time_zone});
  }
  return timer;
}

Result<void> CheckPlan(const TimerBean& timer) {
  const auto in_range = [](std::int64_t number) { return number >= 0 && number <= kTimeMax; };
  if (!in_range(PlannedTime(timer))) {
    return Wrong(fmt::format("it is planned at {}", PlannedTime(timer)));
  }
  if (!in_range(HappenTimes(timer))) {
    return Wrong(fmt::format("it happened {} times", HappenTimes(timer)));
  }
  if (const BSimpleTimer* simple = Simple(timer)) {
    if (in_range(simple->Period)) return {};
    return Wrong(fmt::format("a period of {} ms", simple->Period));
  }
  const BCronTimer* cron = Cron(timer);
  if (cron == nullptr) return Wrong("it is of no known kind");
  const Result<CronExpression> parsed =
      CronExpression::ParseStored(cron->CronExpression, cron->TimeZone);
  return parsed.ok() ? Result<void>() : parsed.error();
}

std::int64_t PlannedTime(const TimerBean& timer) {
  return OfKind(timer, [](const auto& kind) { return kind.NextExpectedTime; });
}

std::int64_t DueTime(const TimerBean& timer) {
  const std::int64_t planned = PlannedTime(timer);
  return timer.FailedTimes == 0 ? planned : std::max(timer.RetryTime, planned);
}

std::int64_t HappenTimes(const TimerBean& timer) {
  return OfKind(timer, [](const auto& kind) { return kind.HappenTimes; });
}

std::int64_t RemainTimes(const TimerBean& timer) {
  return OfKind(timer, [](const auto& kind) { return kind.RemainTimes; });
}

std::int64_t EndTime(const TimerBean& timer) {
  return OfKind(timer, [](const auto& kind) { return kind.EndTime; });
}

const std::string& OneByOneKey(const TimerBean& timer) {
  static const std::string none;
  if (const BSimpleTimer* simple = Simple(timer)) return simple->OneByOneKey;
  if (const BCronTimer* cron = Cron(timer)) return cron->OneByOneKey;
  return none;
}

void SetPlannedTime(TimerBean& timer, std::int64_t time) {
  time = std::clamp<std::int64_t>(time, 0, kTimeMax);
  EditKind(timer, [time](auto& kind) { kind.NextExpectedTime = time; });
}

bool AdvanceTimer(TimerBean& timer, std::int64_t now, std::int64_t grace) {
  bool more = false;
  EditKind(timer, [&](auto& kind) { more = Advance(kind, now, grace); });
  return more;
}

bool ApplyMisfire(TimerBean& timer, std::int64_t now, std::int64_t grace) {
  if (now - PlannedTime(timer) <= grace) return true;
  bool more = true;
  EditKind(timer, [&](auto& kind) { more = Misfire(kind, now, grace); });
  return more;
}

bool HealPlan(TimerBean& timer, std::int64_t now, PlannedBy by) {
  bool healed = false;
  EditKind(timer, [&](auto& kind) { healed = Heal(kind, now, by); });
  // What failed then is not to wait for that time either.
  if (healed && timer.FailedTimes > 0) timer.RetryTime = std::min(timer.RetryTime, now);
  return healed;
}

bool SamePlan(const TimerBean& a, const TimerBean& b) {
  if (a.HandleName != b.HandleName || !(a.CustomData == b.CustomData)) return false;
  const BCronTimer* x = Cron(a);
  const BCronTimer* y = Cron(b);
  return x != nullptr && y != nullptr && x->CronExpression == y->CronExpression &&
         x->TimeZone == y->TimeZone && x->EndTime == y->EndTime &&
         x->MissfirePolicy == y->MissfirePolicy && x->MisfireMax == y->MisfireMax &&
         x->OneByOneKey == y->OneByOneKey && (x->RemainTimes < 0) == (y->RemainTimes < 0) &&
         x->RemainTimes < 0;
}

}  // namespace zeze
