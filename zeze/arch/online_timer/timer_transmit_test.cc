// Online timers that other servers send, for accounts and roles; also servers of Zeze 1.6, and such
// as make mistakes.

#include "zeze/arch/online_timer/timer_transmit.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Timer.h"
#include "zeze/arch/online_timer/login_timer_wire.h"
#include "zeze/arch/online_timer/testing/login_timers_fixture.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timers.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Zeze::Builtin::Timer::BCronTimer;
using Zeze::Builtin::Timer::BSimpleTimer;
using Zeze::Builtin::Timer::BTransmitCronTimer;
using Zeze::Builtin::Timer::BTransmitSimpleTimer;

constexpr std::int64_t kFirstLogin = 1;

template <typename Side>
class TimerTransmitTest : public LoginTimersTest<Side> {
 protected:
  using Wire = internal::LoginTimerWire<typename Side::Key>;

  void Arrive(const char* action, const std::string& parameter) {
    this->Logins().Transmitted(action, std::span(&this->key, 1), this->key, parameter);
    this->Pass(0ms);
  }
  // As another server sends it: in one second, once.
  BTransmitSimpleTimer Simple(const std::string& id) {
    return {.TimerId = id,
            .SimpleTimer = {.RemainTimes = 1, .NextExpectedTime = this->Now() + 1000},
            .HandleClass = "count",
            .LoginVersion = kFirstLogin};
  }
  void Arrive(const BTransmitSimpleTimer& message) {
    Arrive(Wire::kSendSimple, EncodeBean(message));
  }
  void Arrive(const BTransmitCronTimer& message) { Arrive(Wire::kSendCron, EncodeBean(message)); }
  void ArriveCancel(const std::string& id, std::int64_t version) {
    typename Wire::TransmitCancel message;
    message.TimerId = id;
    message.LoginVersion = version;
    Wire::SetKey(message, this->key);
    Arrive(Wire::kSendCancel, EncodeBean(message));
  }
};
TYPED_TEST_SUITE(TimerTransmitTest, Sides);

TYPED_TEST(TimerTransmitTest, ATimerOfAnotherServerRunsHere) {
  TimedServer& s = this->Open();
  this->LogIn();

  this->Arrive(this->Simple("@Abc"));

  ASSERT_TRUE(this->Find(this->Online(), "@Abc"));
  this->Pass(900ms);
  EXPECT_EQ(s.told.count(), 0U);
  this->Pass(100ms);
  EXPECT_EQ(s.Effects("online @Abc"), 1);
  EXPECT_EQ(this->StoredOnline(), 0U);
}

TYPED_TEST(TimerTransmitTest, SoDoesOneWithACronExpression) {
  TimedServer& s = this->Open();
  this->LogIn();
  const std::int64_t next = this->Now() / 60'000 * 60'000 + 60'000;

  this->Arrive(
      {.TimerId = "@Abc",
       .CronTimer = {.CronExpression = "0 * * * * ?", .NextExpectedTime = next, .RemainTimes = -1},
       .HandleClass = "count",
       .LoginVersion = kFirstLogin});

  this->Pass(std::chrono::milliseconds(next - this->Now()));
  this->Pass(60s);
  EXPECT_EQ(s.Effects("online @Abc"), 2);
}

// Zeze 1.6 names the class of the data; ours knows the id of the type as well.
TYPED_TEST(TimerTransmitTest, ItsDataComeWithIt) {
  std::vector<std::int64_t> seen;
  this->Open({.extra = [&](Transaction&, TimerContext& timer) {
    const std::optional<BCount> data = timer.data().As<BCount>();
    seen.push_back(data ? data->NextId : timer.data().empty() ? 0 : -1);
    return 0;
  }});
  this->LogIn();
  const Binary five{EncodeBean(BCount{.NextId = 5})};

  BTransmitSimpleTimer message = this->Simple("named by its class");
  message.CustomClass = std::string(BCount::kFullName);
  message.CustomBean = five;
  this->Arrive(message);
  this->Pass(1s);
  message = this->Simple("named by its id");
  message.CustomTypeId = BCount::kTypeId;
  message.CustomBean = five;
  this->Arrive(message);
  this->Pass(1s);
  message = this->Simple("none");
  message.CustomClass = "Zeze.Transaction.EmptyBean";
  this->Arrive(message);
  this->Pass(1s);

  EXPECT_THAT(seen, ElementsAre(5, 5, 0));
}

TYPED_TEST(TimerTransmitTest, OnlyForTheLoginThatItWasMeantFor) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->LogIn();  // The second version.
  BTransmitSimpleTimer message = this->Simple("late");
  this->Arrive(message);
  EXPECT_EQ(this->StoredOnline(), 0U);

  message.LoginVersion = 2;
  this->Arrive(message);
  EXPECT_EQ(this->StoredOnline(), 1U);
  this->LogOut();
  this->Arrive(message);
  this->Pass(5s);
  EXPECT_EQ(this->StoredOnline(), 0U);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(TimerTransmitTest, ACancelOfAnotherServerCounts) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Arrive(this->Simple("@Abc"));
  this->Schedule(this->Online(), TimerSpec::After("count", 1s));

  this->ArriveCancel("@Abc", kFirstLogin + 1);
  this->ArriveCancel("@Def", kFirstLogin);
  EXPECT_EQ(this->StoredOnline(), 2U);
  this->ArriveCancel("@Abc", kFirstLogin);
  this->ArriveCancel("@1.1", kFirstLogin);

  EXPECT_EQ(this->StoredOnline(), 0U);
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 0U);
}

TYPED_TEST(TimerTransmitTest, WhatComesTwiceRunsOnce) {
  TimedServer& s = this->Open();
  this->LogIn();
  this->Arrive(this->Simple("buff"));
  this->Arrive(this->Simple("buff"));
  this->Pass(5s);
  EXPECT_EQ(s.Effects("online buff"), 1);
}

TYPED_TEST(TimerTransmitTest, WhatCannotBeIsLeftOut) {
  TimedServer& s = this->Open();
  this->LogIn();
  const auto arrive = [&](const auto& change) {
    BTransmitSimpleTimer message = this->Simple("x");
    change(message);
    this->Arrive(message);
  };
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

  arrive([](auto& m) { m.HandleClass = "nobody"; });
  arrive([](auto& m) { m.TimerId = ""; });
  arrive([](auto& m) { m.SimpleTimer.Period = -1; });
  arrive([](auto& m) { m.SimpleTimer.Period = kMax; });
  arrive([](auto& m) { m.SimpleTimer.NextExpectedTime = kMin; });
  arrive([](auto& m) { m.SimpleTimer.NextExpectedTime = kMax; });
  arrive([](auto& m) { m.SimpleTimer.HappenTimes = -1; });
  arrive([](auto& m) { m.SimpleTimer.HappenTimes = kMax; });
  BTransmitCronTimer cron{.TimerId = "x",
                          .CronTimer = {.CronExpression = "every day",
                                        .NextExpectedTime = this->Now(),
                                        .RemainTimes = 1},
                          .HandleClass = "count",
                          .LoginVersion = kFirstLogin};
  this->Arrive(cron);
  cron.CronTimer.CronExpression = "0 * * * * ?";
  cron.CronTimer.TimeZone = "Mars/Olympus";
  this->Arrive(cron);
  for (const char* action : {TestFixture::Wire::kSendSimple, TestFixture::Wire::kSendCron,
                             TestFixture::Wire::kSendCancel}) {
    this->Arrive(action, "\xff\xff");
  }

  EXPECT_EQ(this->StoredOnline(), 0U);
  this->Pass(5s);
  EXPECT_EQ(s.told.count(), 0U);
  this->Arrive(this->Simple("x"));
  EXPECT_EQ(this->StoredOnline(), 1U);
}

TYPED_TEST(TimerTransmitTest, LimitsCountForThemToo) {
  this->Open({.options = {.online_timers_max = 2}});
  this->LogIn();
  for (const char* id : {"a", "b", "c"}) this->Arrive(this->Simple(id));
  EXPECT_EQ(this->Count(this->Online()), 2U);
  EXPECT_FALSE(this->Find(this->Online(), "c"));
}

// --- going ---

TYPED_TEST(TimerTransmitTest, WhoIsOnlineHereHasThemHere) {
  TimedServer& s = this->Open();
  this->LogIn();
  std::string id;
  ASSERT_EQ(0, s.Call([&](Transaction& tx) {
    OnlineTimers<typename TypeParam::Key>& online = this->Online();
    id = online.ScheduleWhereOnline(tx, this->key, TimerSpec::After("count", 1s)).value();
    const TimerSpec other = TimerSpec::After("count", 2s);
    EXPECT_TRUE(online.ScheduleNamedWhereOnline(tx, this->key, "buff", other).ok());
    EXPECT_TRUE(online.ScheduleNamedWhereOnline(tx, this->key, "buff", other).ok());
    EXPECT_TRUE(online.ScheduleNamedWhereOnline(tx, this->key, "gone", other).ok());
    EXPECT_TRUE(online.CancelWhereOnline(tx, this->key, "gone"));
    EXPECT_FALSE(online.CancelWhereOnline(tx, this->key, "gone"));
  }));
  this->Pass(1s);
  this->Pass(1s);
  EXPECT_THAT(s.told.Await(2), ElementsAre("online " + id, "online buff"));
}

TYPED_TEST(TimerTransmitTest, WhoIsOnlineNowhereHasNone) {
  TimedServer& s = this->Open();
  this->BeOffline();
  ASSERT_EQ(0, s.Call([&](Transaction& tx) {
    OnlineTimers<typename TypeParam::Key>& online = this->Online();
    const TimerSpec spec = TimerSpec::After("count", 1s);
    const auto refused = online.ScheduleWhereOnline(tx, this->key, spec);
    EXPECT_EQ(refused.error().code(), ErrorCode::kNotFound);
    EXPECT_THAT(refused.error().message(), HasSubstr("is not logged in"));
    EXPECT_FALSE(online.ScheduleNamedWhereOnline(tx, this->key, "x", spec).ok());
    EXPECT_FALSE(online.CancelWhereOnline(tx, this->key, "x"));
  }));
}

}  // namespace
}  // namespace zeze::arch
