#include "tests/components/timer_ledger.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/timer_plan.h"

namespace zeze::crash_test {

namespace {

using std::chrono::milliseconds;

constexpr const char* kHandler = "ledger";
constexpr std::int64_t kKinds = 16;
constexpr std::int64_t kNames = 8;

// TimersOptions::misfire_after, which is left as it is.
constexpr std::int64_t kGrace = 1000;

// When what comes `period` after `time` is planned.
std::int64_t NextOf(bool by_calendar, std::int64_t time, std::int64_t period) {
  return by_calendar ? (time / period + 1) * period : time + period;
}

std::int64_t UnixNow() {
  return std::chrono::duration_cast<milliseconds>(SystemClock().SystemNow().time_since_epoch())
      .count();
}

TimerSpec EveryTime(MisfirePolicy misfire, milliseconds delay, std::int64_t times) {
  TimerSpec spec = TimerSpec::Every(kHandler, delay, milliseconds(400));
  spec.misfire = misfire;
  spec.times = times;
  return spec;
}

// Every second second: a grid that can be computed without a calendar.
TimerSpec EverySecondSecond(MisfirePolicy misfire) {
  TimerSpec spec = TimerSpec::Cron(kHandler, "*/2 * * * * ?", "Asia/Shanghai");
  spec.misfire = misfire;
  return spec;
}

}  // namespace

TimerLedger::TimerLedger(Ledger& ledger, Timers& timers) : ledger_(ledger), timers_(timers) {
  timers.RegisterHandler(kHandler,
                         [this](Transaction& tx, TimerContext& timer) { return Run(tx, timer); });
}

void TimerLedger::Begin(Transaction& tx) {
  const std::chrono::hours period(1);
  const Result<bool> scheduled =
      timers_.ScheduleNamed(tx, kStays, TimerSpec::Every(kHandler, period, period));
  if (!scheduled.ok()) throw std::runtime_error(scheduled.error().message());
  if (scheduled.value()) ledger_.Count(tx, kStays);
}

std::int64_t TimerLedger::Schedule(Transaction& tx, std::int32_t server, std::int64_t slot) {
  const milliseconds delay(slot * 7919 % 3000);
  const std::int64_t now = UnixNow();
  TimerSpec once = TimerSpec::After(kHandler, delay);
  once.data = AnyBean::Of(crash::Ledger::BSlot{.server = server, .slot = slot});
  switch (slot % kKinds) {
    case 0:
      return ScheduleSome(tx, once);
    case 1:
      once.misfire = MisfirePolicy::kSkip;  // Once is late, but never skipped.
      once.one_by_one_key = "one by one";
      return ScheduleSome(tx, once);
    case 2:
      return ScheduleSome(tx, once, true);
    case 3:
      return ScheduleSome(tx, EveryTime(MisfirePolicy::kSkip, delay, 3));
    case 4:
      return ScheduleSome(tx, EveryTime(MisfirePolicy::kOnce, delay, 3));
    case 5:
      return ScheduleSome(tx, EveryTime(MisfirePolicy::kOnceKeepPhase, delay, 3));
    case 6:
      return ScheduleSome(tx, EveryTime(MisfirePolicy::kAll, delay, 3), true);
    case 7:
    case 8:
    case 9:
    case 10: {
      // Until an end, by every policy.
      TimerSpec spec = EveryTime(static_cast<MisfirePolicy>(slot % kKinds - 7), delay, -1);
      spec.end_time_ms = now + delay.count() + 1500;
      spec.misfire_max = 1'000'000;
      return ScheduleSome(tx, spec);
    }
    case 11: {
      TimerSpec spec = EverySecondSecond(static_cast<MisfirePolicy>(slot / kKinds % 4));
      spec.times = 2;
      return ScheduleSome(tx, spec);
    }
    case 12: {
      TimerSpec spec = EverySecondSecond(static_cast<MisfirePolicy>(slot / kKinds % 4));
      spec.end_time_ms = now + 5000;
      spec.misfire_max = 1'000'000;
      return ScheduleSome(tx, spec);
    }
    case 13:
      return ScheduleNamed(tx, fmt::format("named {}", slot / kKinds % kNames),
                           EveryTime(MisfirePolicy::kAll, delay, 2));
    case 14: {
      CancelEndless(tx, server);
      const TimerSpec spec = EveryTime(MisfirePolicy::kOnceKeepPhase, delay, -1);
      const Result<std::string> id = timers_.Schedule(tx, spec);
      if (!id.ok()) throw std::runtime_error(id.error().message());
      ledger_.tSchedules.GetOrAdd(tx, server)->endless = id.value();
      return Note(tx, id.value(), spec, false);
    }
    default: {
      TimerSpec spec = EveryTime(MisfirePolicy::kAll, delay, 2);
      spec.one_by_one_key = "server " + std::to_string(server);
      return ScheduleSome(tx, spec);
    }
  }
}

std::int64_t TimerLedger::Finish(Transaction& tx, std::int32_t server) {
  CancelEndless(tx, server);
  return result_code::kSuccess;
}

std::int64_t TimerLedger::ScheduleSome(Transaction& tx, const TimerSpec& spec, bool fails) {
  const Result<std::string> id = timers_.Schedule(tx, spec);
  if (!id.ok()) throw std::runtime_error(id.error().message());
  return Note(tx, id.value(), spec, fails);
}

std::int64_t TimerLedger::ScheduleNamed(Transaction& tx, const std::string& name,
                                        const TimerSpec& spec) {
  const Result<bool> scheduled = timers_.ScheduleNamed(tx, name, spec);
  if (!scheduled.ok()) throw std::runtime_error(scheduled.error().message());
  const BTimer* before = ledger_.tTimers.Get(tx, name);
  const bool runs = before != nullptr && before->count < before->exactly;
  if (scheduled.value() == runs) {
    ledger_.Fault(tx, fmt::format("timer \"{}\" {}", name,
                                  runs ? "was scheduled although it is there" : "is not there"));
  }
  if (!scheduled.value()) return ScheduleSome(tx, spec);
  ledger_.Count(tx, "named");
  ledger_.tTimers.Remove(tx, name);
  return Note(tx, name, spec, false);
}

std::int64_t TimerLedger::Note(Transaction& tx, const std::string& id, const TimerSpec& spec,
                               bool fails) {
  const std::optional<TimerInfo> timer = timers_.Find(tx, id);
  if (!timer) {
    ledger_.Fault(tx, "timer " + id + " is not there although it was scheduled");
    return result_code::kSuccess;
  }
  if (ledger_.tTimers.Contains(tx, id)) {
    ledger_.Fault(tx, "the id " + id + " was given to two timers");
    return result_code::kSuccess;
  }
  BTimer record{.misfire = static_cast<std::int32_t>(spec.misfire),
                .period = spec.cron.empty() ? spec.period.count() : 2000,
                .by_calendar = !spec.cron.empty(),
                .exactly = spec.times,
                .next = timer->next_time_ms,
                .end = spec.end_time_ms,
                .fails_first = fails};
  if (record.period == 0) {
    record.exactly = 1;
  } else if (spec.end_time_ms != 0 && spec.misfire == MisfirePolicy::kAll) {
    record.exactly = (spec.end_time_ms - record.next) / record.period + 1;
  }
  if (record.by_calendar && record.next % record.period != 0) {
    ledger_.Fault(tx, fmt::format("timer {} is planned for {}", id, record.next));
  }
  ledger_.tTimers.Insert(tx, id, record);
  return result_code::kSuccess;
}

void TimerLedger::CancelEndless(Transaction& tx, std::int32_t server) {
  const auto schedule = ledger_.tSchedules.GetOrAdd(tx, server);
  if (schedule->endless.empty()) return;
  if (!timers_.Cancel(tx, schedule->endless)) {
    ledger_.Fault(tx, "timer " + schedule->endless + " is gone, though it has no end");
  }
  ledger_.tTimers.Edit(tx, schedule->endless)->canceled = true;
  schedule->endless.clear();
}

std::int64_t TimerLedger::Run(Transaction& tx, TimerContext& timer) {
  const std::string id(timer.id());
  const auto record = ledger_.tTimers.Edit(tx, id);
  if (!record) {
    ledger_.Fault(tx, "timer " + id + " runs, but nobody has scheduled it");
    return result_code::kSuccess;
  }
  if (record->fails_first && timer.failed_times() == 0) throw std::runtime_error("not yet");
  const std::int64_t planned = timer.planned_time_ms();
  std::string what;
  if (record->canceled) what = "runs after it was canceled";
  if (planned > timer.now_ms()) what = "runs early";
  if (record->end != 0 && planned > record->end && record->misfire != 1) what = "runs too late";
  if (record->exactly >= 0 && record->count >= record->exactly) what = "runs once too often";
  if (!MayFollow(*record, planned)) what = "does not do what its misfire policy says";
  if (timer.happened_times() != record->count) what = "has lost count";
  if (!what.empty()) {
    ledger_.Fault(tx, fmt::format("timer {} {}: planned for {} at {}; {}", id, what, planned,
                                  timer.now_ms(), record->ToString()));
  }
  record->count += 1;
  record->passed = timer.now_ms();
  if (record->period > 0) record->next = NextOf(record->by_calendar, planned, record->period);
  return result_code::kSuccess;
}

bool TimerLedger::MayFollow(const BTimer& record, std::int64_t planned) {
  if (planned == record.next) return true;
  const auto policy = static_cast<MisfirePolicy>(record.misfire);
  if (record.period == 0 || policy == MisfirePolicy::kAll || planned < record.next) return false;
  // Some are left out that had passed when it ran last.
  const bool in_phase = (planned - record.next) % record.period == 0;
  if (in_phase && planned - record.period <= record.passed) return true;
  // It was missed, by a server that was not there; another one, or its next life, has found it.
  switch (policy) {
    case MisfirePolicy::kSkip:
      return planned > record.next + kGrace && (in_phase || !record.by_calendar);
    case MisfirePolicy::kOnce:
      return planned > record.next + kGrace;
    default:
      return false;
  }
}

}  // namespace zeze::crash_test
