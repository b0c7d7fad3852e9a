#include "daily.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "arena/Daily.h"
#include "arena/Player.h"
#include "mail.h"
#include "players.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/components/timer/cron.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/patient_call.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Daily::BProgress;
using arena::Daily::BToday;
using arena::Player::BPlayer;

namespace {

constexpr const char* kReset = "daily reset";
constexpr const char* kBeginJob = "a day begins";
constexpr const char* kZone = "UTC";
constexpr std::int32_t kOnly = 1;  // The key of tToday.

// Few: others play meanwhile, and whoever touches one of these players makes the step run again.
constexpr std::size_t kPlayersInOneStep = 5;

std::string Encode(const BProgress& progress) {
  zeze::ByteWriter out;
  progress.Encode(out);
  return out.Release();
}

}  // namespace

Daily::Daily(const Parts& parts, std::string schedule)
    : players_(parts.players),
      mails_(parts.mails),
      timers_(parts.timers),
      delay_remove_(parts.delay_remove),
      schedule_(std::move(schedule)) {
  timers_.RegisterHandler(kReset, [this](zeze::Transaction& tx, zeze::TimerContext& timer) {
    return NextDay(tx, timer);
  });
  delay_remove_.OnJob(kBeginJob, [this](zeze::Transaction& tx, std::string& state) {
    return BeginForSome(tx, state);
  });
}

// Every server does it, and the first one's timer is everybody's.
zeze::Result<void> Daily::Start(zeze::Application& application) {
  application_ = &application;
  zeze::Result<bool> scheduled = false;
  const std::int64_t code =
      zeze::PatientCall(application.engine(), "plan days", [&](zeze::Transaction& tx) {
        scheduled =
            timers_.ScheduleNamed(tx, kReset, zeze::TimerSpec::Cron(kReset, schedule_, kZone),
                                  zeze::Timers::Existing::kReplaceHere);
        return zeze::result_code::kSuccess;
      });
  if (!scheduled.ok()) return scheduled.error();
  if (code == zeze::result_code::kSuccess) return {};
  return zeze::Error(zeze::ErrorCode::kUnavailable,
                     fmt::format("the daily reset could not be planned: result code {}", code));
}

std::int64_t Daily::Today(zeze::Transaction& tx) {
  const BToday* today = tToday.Get(tx, kOnly);
  return today == nullptr ? 0 : today->day;
}

std::int64_t Daily::NextDay(zeze::Transaction& tx, const zeze::TimerContext& timer) {
  const auto today = tToday.GetOrAdd(tx, kOnly);
  ++today->day;
  today->planned = timer.planned_time_ms();
  tDay.Insert(tx, today->day,
              {.planned = today->planned, .server = application_->options().server_id});
  delay_remove_.StartJob(tx, kBeginJob, Encode({.day = today->day, .role = -1}));
  return zeze::result_code::kSuccess;
}

// A step of the job. Who comes next is read beside the transaction: players are never removed, and
// one who comes meanwhile begins with the day that has begun, or is brought up to date when he
// enters.
bool Daily::BeginForSome(zeze::Transaction& tx, std::string& state) {
  BProgress progress;
  zeze::ByteReader in(state);
  progress.Decode(in);
  if (!in.ok()) throw std::runtime_error("the progress of a day cannot be read");

  std::vector<std::int64_t> roles;
  const auto next =
      players_.tPlayer.WalkPage(progress.role < 0 ? std::nullopt : std::optional(progress.role),
                                kPlayersInOneStep, [&](std::int64_t role, const BPlayer&) {
                                  roles.push_back(role);
                                  return true;
                                });
  if (!next.ok()) throw std::runtime_error(next.error().message());
  players_.tPlayer.Prefetch(tx, roles, zeze::Right::kModify);
  for (const std::int64_t role : roles) Begin(tx, role, progress.day);
  if (next.value()) {
    progress.role = *next.value();
    state = Encode(progress);
    return true;
  }
  const auto today = tToday.Edit(tx, kOnly);
  if (today->allHaveIt < progress.day) today->allHaveIt = progress.day;
  return false;
}

void Daily::Begin(zeze::Transaction& tx, std::int64_t role, std::int64_t day) {
  const BPlayer* seen = players_.tPlayer.Get(tx, role);
  if (seen == nullptr || seen->day >= day) return;
  const auto player = players_.tPlayer.Edit(tx, role);
  while (player->day < day) {
    ++player->day;
    ++player->resets;
    const std::int64_t gold = kDailyGold + player->wonToday;
    mails_.Send(tx, role, fmt::format("Day {}: you won {} fights.", player->day, player->wonToday),
                gold);
    player->wonToday = 0;
    // Noted here, and not in a record of the day: everybody would wait for that one.
    player->gifts += gold;
  }
}

zeze::Result<DailyTotals> Daily::Check() {
  const auto wrong = [](std::string what) {
    return zeze::Error(zeze::ErrorCode::kCorrupt, std::move(what));
  };
  const auto schedule = zeze::CronExpression::Parse(schedule_, kZone);
  if (!schedule.ok()) return schedule.error();
  const auto read = tToday.ReadCopy(kOnly);
  if (!read.ok()) return read.error();
  const BToday today = read.value().value_or(BToday());

  DailyTotals totals{.days = today.day};
  std::string unequal;
  const auto players = players_.tPlayer.Walk([&](std::int64_t role, const BPlayer& player) {
    // Who came while the job went by may have been overlooked by it, that day only.
    const bool just_came = player.firstDay == today.allHaveIt - 1;
    const bool left_out = player.day < today.allHaveIt && !just_came;
    if (left_out || player.resets != player.day - player.firstDay) {
      unequal = fmt::format("{} came on day {}, is at day {} of {} and had {} resets", role,
                            player.firstDay, player.day, today.day, player.resets);
    }
    if (player.day < today.day) ++totals.waiting;
    totals.begun += player.resets;
    totals.gold += player.gifts;
    return true;
  });
  if (!players.ok()) return players.error();
  if (!unequal.empty()) return wrong(unequal);

  std::int64_t last = 0;
  for (std::int64_t number = 1; number <= today.day; ++number) {
    const auto day = tDay.ReadCopy(number);
    if (!day.ok()) return day.error();
    if (!day.value()) return wrong(fmt::format("day {} of {} is missing", number, today.day));
    const std::int64_t planned = day.value()->planned;
    if (planned <= last || schedule.value().NextAfter(planned - 1) != planned) {
      return wrong(fmt::format("day {} began for {} ms, which is {}", number, planned,
                               planned <= last ? "no later than the day before" : "not planned"));
    }
    last = planned;
  }
  return totals;
}

}  // namespace arena_example
