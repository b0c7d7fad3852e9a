#include "buffs.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "arena/Buff.h"
#include "players.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Buff::BBuff;
using arena::Buff::BBuffEnd;
using arena::Buff::BDrink;
using arena::Buff::BShownBuff;

namespace {

constexpr const char* kBuffEnds = "buff ends";

}  // namespace

Buffs::Buffs(Players& players, zeze::Timers& timers) : players_(players), timers_(timers) {
  timers.RegisterHandler(kBuffEnds, [this](zeze::Transaction& tx, zeze::TimerContext& timer) {
    return End(tx, timer.data().As<BBuffEnd>().value());
  });
}

zeze::Result<void> Buffs::Start(zeze::Application& application) {
  application_ = &application;
  return {};
}

std::int64_t Buffs::UnixNow() const {
  const auto now = application_->options().clock->SystemNow().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

int Buffs::PowerOf(zeze::Transaction& tx, std::int64_t role) {
  const BBuff* buff = tBuff.Get(tx, role);
  return buff == nullptr ? 0 : buff->power;
}

std::int64_t Buffs::Drink(zeze::Transaction& tx, std::int64_t role) {
  const auto buff = tBuff.GetOrAdd(tx, role);
  if (buff->power > 0) return ErrorCode(arena::Buff::StillStrong);
  if (!players_.TakeGood(tx, role, kPotion)) return ErrorCode(arena::Buff::NoPotion);

  ++buff->begun;
  const BBuffEnd end{.role = role, .number = buff->begun};
  const auto timer =
      timers_.Schedule(tx, zeze::TimerSpec::After(kBuffEnds, kBuffTime, zeze::AnyBean::Of(end)));
  if (!timer.ok()) return ErrorCode(arena::Buff::NotPlanned);
  buff->power = kBuffPower;
  buff->until = UnixNow() + std::chrono::milliseconds(kBuffTime).count();
  buff->timer = timer.value();
  return zeze::result_code::kSuccess;
}

// It does not defend itself against ends that come twice: it counts them.
std::int64_t Buffs::End(zeze::Transaction& tx, const BBuffEnd& end) {
  const auto buff = tBuff.GetOrAdd(tx, end.role);
  if (buff->power == 0 || buff->begun != end.number) {
    ++buff->strays;
    return zeze::result_code::kSuccess;
  }
  ++buff->ended;
  buff->power = 0;
  buff->timer.clear();
  if (logins_ != nullptr) logins_->SendAfterCommit<arena::Buff::SBuff>(tx, end.role, {});
  return zeze::result_code::kSuccess;
}

BShownBuff Buffs::Show(zeze::Transaction& tx, std::int64_t role) {
  const BBuff* buff = tBuff.Get(tx, role);
  if (buff == nullptr || buff->power == 0) return {};
  return {.power = buff->power, .milliseconds = std::max<std::int64_t>(buff->until - UnixNow(), 0)};
}

std::int64_t Buffs::ProcessDrink(zeze::Transaction& tx, zeze::Session& session,
                                 const BDrink& argument, BShownBuff& result) {
  const std::int64_t role = RoleOf(session.account());
  const std::int64_t code =
      players_.Once(tx, role, argument.request, [&] { return Drink(tx, role); });
  result = Show(tx, role);
  return code;
}

std::int64_t Buffs::ProcessLook(zeze::Transaction& tx, zeze::Session& session, BShownBuff& result) {
  result = Show(tx, RoleOf(session.account()));
  return zeze::result_code::kSuccess;
}

zeze::Result<BuffTotals> Buffs::Count() {
  BuffTotals totals;
  zeze::Result<void> read;
  const auto walked = tBuff.Walk([&](std::int64_t, const BBuff& buff) {
    totals.begun += buff.begun;
    totals.ended += buff.ended;
    totals.strays += buff.strays;
    if (buff.power == 0) return true;
    ++totals.active;
    const auto timer = timers_.tIndexs.ReadCopy(buff.timer);
    if (!timer.ok()) read = timer.error();
    if (timer.ok() && !timer.value()) ++totals.forgotten;
    return read.ok();
  });
  if (!walked.ok()) return walked.error();
  if (!read.ok()) return read.error();
  return totals;
}

}  // namespace arena_example
