// The modules of the arena on one server, whose time the test moves: what buffs, days, mails and
// recharges promise; and that the check at the end of the demo sees when a promise was broken.

#include "game.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arena/Buff.h"
#include "arena/Mail.h"
#include "arena/Player.h"
#include "arena/Recharge.h"
#include "buffs.h"
#include "daily.h"
#include "mail.h"
#include "players.h"
#include "recharge.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/config/config.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr std::int64_t kAnn = 11;
constexpr std::int64_t kBob = 12;

class GameTest : public ::testing::Test {
 protected:
  explicit GameTest(bool in_memory = true)
      : url(in_memory ? "memory:" : "rocksdb:" + directory.File("db")) {
    Start();
  }
  ~GameTest() override {
    if (application == nullptr) return;
    EXPECT_TRUE(application->Stop().ok());
  }

  void Start() {
    game = std::make_unique<Game>(
        GameOptions{.deleted_kept = seconds(60), .shop_acceptors = {{.ip = "127.0.0.1"}}});
    application = zeze::Application::Open("arena", {.server_id = 1,
                                                    .storage = {.url = url},
                                                    .worker_threads = 4,
                                                    .checkpoint_period = seconds(0),
                                                    .liveness = {.period = seconds(0)},
                                                    .clock = &clock})
                      .value();
    game->AddTo(*application);
    const auto started = application->Start();
    ASSERT_TRUE(started.ok()) << started.error().message();
    ASSERT_TRUE(game->timers.AwaitLoaded(seconds(20)));
  }
  std::int64_t Run(const std::function<std::int64_t(zeze::Transaction&)>& body) {
    return application->Call("test", body);
  }
  void Enter(std::int64_t role, const std::string& account) {
    ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
                game->players.Enter(tx, role, account);
                return zeze::result_code::kSuccess;
              }));
  }
  void Send(std::int64_t role, std::int64_t gold) {
    ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
                game->mails.Send(tx, role, "hello", gold);
                return zeze::result_code::kSuccess;
              }));
  }
  std::int64_t Claim(std::int64_t role, std::int64_t id) {
    return Run([&](zeze::Transaction& tx) { return game->mails.Claim(tx, role, id); });
  }
  std::int64_t Delete(std::int64_t role, std::int64_t id) {
    return Run([&](zeze::Transaction& tx) { return game->mails.Delete(tx, role, id); });
  }
  std::int64_t Drink(std::int64_t role) {
    return Run([&](zeze::Transaction& tx) { return game->buffs.Drink(tx, role); });
  }

  arena::Player::BPlayer Player(std::int64_t role) {
    return game->players.tPlayer.ReadCopy(role).value().value();
  }
  arena::Buff::BBuff Buff(std::int64_t role) {
    return game->buffs.tBuff.ReadCopy(role).value().value();
  }
  std::vector<arena::Mail::BShownMail> MailsOf(std::int64_t role) {
    const auto list = game->mails.List(role, 100).value();
    return {list.mails.begin(), list.mails.end()};
  }

  // What others do in their own time.
  static bool Eventually(const std::function<bool()>& condition) {
    const auto end = zeze::SystemClock().Now() + seconds(20);
    while (!condition()) {
      if (zeze::SystemClock().Now() > end) return false;
      zeze::SystemClock().SleepFor(std::chrono::milliseconds(1));
    }
    return true;
  }
  // Timers and jobs need time that goes on.
  bool EventuallyWithTime(const std::function<bool()>& condition) {
    return Eventually([&] {
      clock.Advance(std::chrono::milliseconds(10));
      return condition();
    });
  }
  bool AllHaveDay(std::int64_t day) {
    return EventuallyWithTime([&] {
      const auto today = game->daily.tToday.ReadCopy(1).value();
      return today && today->allHaveIt == day;
    });
  }

  zeze::TempDirectory directory;
  const std::string url;
  zeze::testing::ManualClock clock;  // From midnight on.
  std::unique_ptr<Game> game;
  std::unique_ptr<zeze::Application> application;
};

class GameOnDiskTest : public GameTest {
 protected:
  GameOnDiskTest() : GameTest(/*in_memory=*/false) {}

  void Restart() {
    ASSERT_TRUE(application->Stop().ok());
    application.reset();
    game.reset();
    Start();
  }
};

// --- Mails ---

TEST_F(GameTest, GoldThatComesWithAMailIsClaimedOnce) {
  Enter(kAnn, "ann");
  Send(kAnn, 30);
  const std::int64_t id = MailsOf(kAnn).at(0).id;

  EXPECT_EQ(Claim(kBob, id), Mails::ErrorCode(arena::Mail::NoSuchMail));
  EXPECT_EQ(Claim(kAnn, id), 0);
  EXPECT_EQ(Claim(kAnn, id), Mails::ErrorCode(arena::Mail::NothingToClaim));

  EXPECT_EQ(Player(kAnn).gold, kGoldAtStart + 30);
  EXPECT_EQ(game->mails.Check().value().gold_waiting, 0);
}

TEST_F(GameTest, AMailIsNotDeletedBeforeItsGoldIsClaimed) {
  Enter(kAnn, "ann");
  Send(kAnn, 30);
  const std::int64_t id = MailsOf(kAnn).at(0).id;

  EXPECT_EQ(Delete(kAnn, id), Mails::ErrorCode(arena::Mail::NotClaimed));
  EXPECT_EQ(Claim(kAnn, id), 0);
  EXPECT_EQ(Delete(kAnn, id), 0);
  EXPECT_EQ(Delete(kAnn, id), Mails::ErrorCode(arena::Mail::NoSuchMail));

  const MailTotals totals = game->mails.Check().value();
  EXPECT_EQ(totals.sent, 1);
  EXPECT_EQ(totals.present, 0);
  EXPECT_EQ(totals.deleted, 1);
}

TEST_F(GameTest, TheNewestMailsComeFirst) {
  for (int gold = 1; gold <= 70; ++gold) Send(kAnn, gold);

  const auto mails = MailsOf(kAnn);

  ASSERT_EQ(mails.size(), 70U);
  EXPECT_EQ(mails.front().mail.gold, 70);
  EXPECT_EQ(mails.back().mail.gold, 1);
}

TEST_F(GameTest, ADeletedMailIsKeptForAWhile) {
  Send(kAnn, 0);
  const std::int64_t id = MailsOf(kAnn).at(0).id;
  ASSERT_EQ(Delete(kAnn, id), 0);
  const auto kept = [&] { return game->mails.tDeleted.ReadCopy(id).value().has_value(); };

  clock.Advance(seconds(59));
  EXPECT_TRUE(kept());
  EXPECT_TRUE(EventuallyWithTime([&] { return !kept(); }));
}

TEST_F(GameTest, ASellerGetsHisGoldByMail) {
  Enter(kAnn, "ann");
  Enter(kBob, "bob");

  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              return game->players.Trade(tx, kAnn,
                                         {.request = 1, .seller = kBob, .good = 2, .price = 7});
            }));

  EXPECT_EQ(Player(kAnn).gold, kGoldAtStart - 7);
  EXPECT_EQ(Player(kBob).gold, kGoldAtStart);
  EXPECT_EQ(MailsOf(kBob).at(0).mail.gold, 7);
}

TEST_F(GameTest, TheCheckSeesAMailThatWasLost) {
  Enter(kAnn, "ann");
  Send(kAnn, 30);
  auto box = game->linked_maps.Open<arena::Mail::BMail>("mail of 11").value();
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              return box.Remove(tx, std::to_string(MailsOf(kAnn).at(0).id))
                         ? zeze::result_code::kSuccess
                         : zeze::result_code::kLogicError;
            }));

  const auto checked = game->mails.Check();

  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message(), HasSubstr("11 was sent 1 mails, deleted 0 and has 0"));
}

TEST_F(GameTest, TheCheckSeesAMailThatWasClaimedTwice) {
  Enter(kAnn, "ann");
  Send(kAnn, 30);
  ASSERT_EQ(Claim(kAnn, MailsOf(kAnn).at(0).id), 0);
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              const auto box = game->mails.tBox.Edit(tx, kAnn);
              ++box->claims;
              box->goldClaimed += 30;
              return zeze::result_code::kSuccess;
            }));

  EXPECT_THAT(game->mails.Check().error().message(), HasSubstr("has claimed 60"));
}

// --- Buffs ---

TEST_F(GameTest, ABuffEndsByItsTimer) {
  Enter(kAnn, "ann");

  ASSERT_EQ(Drink(kAnn), 0);
  EXPECT_EQ(Drink(kAnn), Buffs::ErrorCode(arena::Buff::StillStrong));
  EXPECT_EQ(*Player(kAnn).goods.Find(kPotion), kGoodsAtStart - 1);
  clock.Advance(kBuffTime - std::chrono::milliseconds(1));
  EXPECT_EQ(Buff(kAnn).power, kBuffPower);

  clock.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(EventuallyWithTime([&] { return Buff(kAnn).power == 0; }));
  const BuffTotals totals = game->buffs.Count().value();
  EXPECT_EQ(totals.begun, 1);
  EXPECT_EQ(totals.ended, 1);
  EXPECT_EQ(totals.strays + totals.active, 0);
}

TEST_F(GameOnDiskTest, ABuffEndsAlthoughTheServerWasAwayThen) {
  Enter(kAnn, "ann");
  ASSERT_EQ(Drink(kAnn), 0);
  EXPECT_EQ(game->buffs.Count().value().forgotten, 0);

  clock.Advance(seconds(1));
  Restart();
  EXPECT_EQ(Buff(kAnn).power, kBuffPower);
  clock.Advance(kBuffTime);

  EXPECT_TRUE(EventuallyWithTime([&] { return Buff(kAnn).ended == 1; }));
}

TEST_F(GameTest, WhoHasNoPotionStaysWeak) {
  Enter(kAnn, "ann");
  for (int i = 1; i <= kGoodsAtStart; ++i) {
    ASSERT_EQ(Drink(kAnn), 0);
    clock.Advance(kBuffTime);
    ASSERT_TRUE(EventuallyWithTime([&] { return Buff(kAnn).ended == i; }));
  }

  EXPECT_EQ(Drink(kAnn), Buffs::ErrorCode(arena::Buff::NoPotion));
  EXPECT_EQ(game->buffs.Count().value().begun, kGoodsAtStart);
}

TEST_F(GameTest, TheCheckSeesABuffWithoutATimer) {
  Enter(kAnn, "ann");
  ASSERT_EQ(Drink(kAnn), 0);
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              return game->timers.Cancel(tx, game->buffs.tBuff.Get(tx, kAnn)->timer)
                         ? zeze::result_code::kSuccess
                         : zeze::result_code::kLogicError;
            }));

  EXPECT_EQ(game->buffs.Count().value().forgotten, 1);
}

// --- Days ---

TEST_F(GameTest, ADayBeginsOnceForEverybody) {
  for (std::int64_t role = 1; role <= 50; ++role) Enter(role, "player");
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              game->players.tPlayer.Edit(tx, 7)->wonToday = 3;
              return zeze::result_code::kSuccess;
            }));

  clock.Advance(std::chrono::hours(5));
  ASSERT_TRUE(AllHaveDay(1));

  const DailyTotals totals = game->daily.Check().value();
  EXPECT_EQ(totals.days, 1);
  EXPECT_EQ(totals.begun, 50);
  EXPECT_EQ(totals.gold, 50 * kDailyGold + 3);
  EXPECT_EQ(MailsOf(7).at(0).mail.gold, kDailyGold + 3);
  EXPECT_EQ(Player(7).wonToday, 0);
}

TEST_F(GameTest, WhoComesLaterHasTodayAndNoMail) {
  Enter(kAnn, "ann");
  clock.Advance(std::chrono::hours(5));
  ASSERT_TRUE(AllHaveDay(1));

  Enter(kBob, "bob");

  EXPECT_EQ(Player(kBob).day, 1);
  EXPECT_TRUE(MailsOf(kBob).empty());
  clock.Advance(std::chrono::hours(24));
  ASSERT_TRUE(AllHaveDay(2));
  EXPECT_EQ(Player(kAnn).resets, 2);
  EXPECT_EQ(Player(kBob).resets, 1);
  EXPECT_TRUE(game->daily.Check().ok());
}

TEST_F(GameOnDiskTest, ADayGoesOnAfterARestart) {
  for (std::int64_t role = 1; role <= 50; ++role) Enter(role, "player");
  clock.Advance(std::chrono::hours(5));
  ASSERT_TRUE(EventuallyWithTime([&] {
    const auto today = game->daily.tToday.ReadCopy(1).value();
    return today && today->day == 1;
  }));

  Restart();

  ASSERT_TRUE(AllHaveDay(1));
  EXPECT_EQ(game->daily.Check().value().begun, 50);
}

TEST_F(GameTest, TheCheckSeesADayThatBeganTwice) {
  Enter(kAnn, "ann");
  clock.Advance(std::chrono::hours(5));
  ASSERT_TRUE(AllHaveDay(1));
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              const auto today = game->daily.tToday.Edit(tx, 1);
              today->day = 2;
              game->daily.tDay.Insert(tx, 2, {.planned = today->planned});
              return zeze::result_code::kSuccess;
            }));

  EXPECT_THAT(game->daily.Check().error().message(), HasSubstr("no later than the day before"));
}

TEST_F(GameTest, TheCheckSeesAPlayerWhoWasResetTwice) {
  Enter(kAnn, "ann");
  clock.Advance(std::chrono::hours(5));
  ASSERT_TRUE(AllHaveDay(1));
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              ++game->players.tPlayer.Edit(tx, kAnn)->resets;
              return zeze::result_code::kSuccess;
            }));

  EXPECT_THAT(game->daily.Check().error().message(), HasSubstr("had 2 resets"));
}

// --- Recharges ---

class RechargeTest : public GameTest {
 protected:
  RechargeTest() {
    auto store = zeze::RedoStore::Open({.directory = directory.File("shop")});
    queue = zeze::RedoQueueClient::Open(
                store.value(), {.name = kRechargeQueue,
                                .servers = {{"127.0.0.1", game->redo.addresses().front().port()}}})
                .value();
  }
  ~RechargeTest() override { queue.reset(); }

  std::int64_t Pay(const arena::Recharge::BRecharge& order) {
    std::ofstream(orders, std::ios::app)
        << order.order << ' ' << order.role << ' ' << order.gold << '\n';
    return queue->Add(kRechargeTask, order).value();
  }

  const std::string orders = directory.File("orders");
  std::unique_ptr<zeze::RedoQueueClient> queue;
};

TEST_F(RechargeTest, GoldThatWasPaidForIsCredited) {
  Enter(kAnn, "ann");

  Pay({.order = 1, .role = kAnn, .gold = 648});
  ASSERT_TRUE(queue->WaitDone(Pay({.order = 2, .role = kAnn, .gold = 6}), seconds(20)).ok());

  EXPECT_EQ(Player(kAnn).gold, kGoldAtStart + 654);
  EXPECT_EQ(game->recharges.Check(orders).value().gold, 654);
}

TEST_F(RechargeTest, AnOrderWaitsForItsPlayer) {
  const std::int64_t task = Pay({.order = 1, .role = kAnn, .gold = 648});
  ASSERT_TRUE(Eventually([&] { return queue->GetStatus().refusals > 0; }));
  EXPECT_FALSE(game->recharges.Check(orders).ok());

  Enter(kAnn, "ann");

  ASSERT_TRUE(queue->WaitDone(task, seconds(20)).ok());
  EXPECT_TRUE(game->recharges.Check(orders).ok());
}

TEST_F(RechargeTest, TheCheckSeesGoldThatNobodyPaidFor) {
  Enter(kAnn, "ann");
  ASSERT_TRUE(queue->WaitDone(Pay({.order = 1, .role = kAnn, .gold = 6}), seconds(20)).ok());
  ASSERT_EQ(0, Run([&](zeze::Transaction& tx) {
              return game->recharges.Credit(tx, {.order = 2, .role = kAnn, .gold = 6})
                         ? zeze::result_code::kSuccess
                         : zeze::result_code::kLogicError;
            }));

  EXPECT_THAT(game->recharges.Check(orders).error().message(),
              HasSubstr("2 orders of 12 gold were credited, but 1 of 6 confirmed"));
}

// --- Options ---

TEST(GameOptionsTest, AreInTheConfiguration) {
  const zeze::TempDirectory directory;
  const auto read = [&](const std::string& arena) {
    const std::string file = directory.File("zeze.xml");
    std::ofstream(file) << "<zeze>" << arena << "</zeze>";
    return GameOptions::FromConfig(zeze::Config::Load(file).value());
  };

  EXPECT_EQ(read("").value().daily_reset, "0 0 5 * * ?");
  const GameOptions options =
      read(R"(<CustomizeConf Name="Arena" DailyReset="0 * * * * ?" DeletedKept="10"/>)").value();
  EXPECT_EQ(options.daily_reset, "0 * * * * ?");
  EXPECT_EQ(options.deleted_kept, seconds(10));
  EXPECT_THAT(read(R"(<CustomizeConf Name="Arena" DeletedKept="1d"/>)").error().message(),
              HasSubstr("'1d'"));
}

}  // namespace
}  // namespace arena_example
