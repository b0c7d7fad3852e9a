#include "zeze/global/global_server.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/global/directory.h"
#include "zeze/global/lease.h"
#include "zeze/global/messages.h"
#include "zeze/global/testing/global_server_fixture.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Hole 30. What contradicts the book is not in it; so one of the two may be gone, and the other
// still use the right.
TEST_F(GlobalServerTest, NothingIsGrantedUntilAllWhoContradictEachOtherAreGone) {
  Start();
  Login(3, {});
  Login(1, {{.key = "a", .right = Right::kModify}});
  Login(2, {{.key = "a", .right = Right::kModify}});
  EXPECT_THAT(Take(), ElementsAre("evict 1", "evict 2"));

  Evicted(1);
  WaitOut(3);
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  EXPECT_THAT(Take(), IsEmpty()) << "server 2 is not even fenced";

  Evicted(2);
  WaitOut(3);
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
}

TEST_F(GlobalServerTest, NothingIsGrantedWhileSomebodyClaimsMoreThanTheBookSays) {
  Start();
  for (const std::int32_t id : {1, 2, 3}) Login(id, {});
  ASSERT_TRUE(global.serving());

  Login(2, {{.key = "a", .right = Right::kModify}});
  EXPECT_THAT(Take(), ElementsAre("evict 2"));
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  EXPECT_THAT(Take(), IsEmpty());

  Evicted(2);
  WaitOut(3);
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
}

// Hole 31. The lease of a server is what the server says, not what its Global was started with.
TEST_F(GlobalServerTest, Hole31ALongerLeaseIsWaitedFor) {
  constexpr std::chrono::milliseconds kLong = std::chrono::seconds(20);
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}}, kLong);
  const auto freed = TimeUntilFreed();
  EXPECT_GE(freed, FreeAfter(kLong));
  EXPECT_LE(freed, FreeAfter(kLong) + kStep);
}

TEST_F(GlobalServerTest, Hole31AShorterLeaseIsOverSooner) {
  constexpr std::chrono::milliseconds kShort = std::chrono::seconds(1);
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}}, kShort);
  const auto freed = TimeUntilFreed();
  EXPECT_GE(freed, FreeAfter(kShort));
  EXPECT_LE(freed, FreeAfter(kShort) + kStep);
}

TEST_F(GlobalServerTest, Hole31WhoSaysNothingHasTheLeaseThatGlobalWasStartedWith) {
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}});
  const auto freed = TimeUntilFreed();
  EXPECT_GE(freed, options.lease.free_after());
  EXPECT_LE(freed, options.lease.free_after() + kStep);
}

TEST_F(GlobalServerTest, Hole31TheLongerOfWhatTheDatabaseAndTheServerSayCounts) {
  constexpr std::chrono::milliseconds kLong = std::chrono::seconds(20);
  Start(kLong);
  Login(1, {{.key = "a", .right = Right::kModify}}, std::chrono::seconds(1));
  EXPECT_GE(TimeUntilFreed(), FreeAfter(kLong));
}

// Numbers that no server would send must not wrap around into a short wait.
TEST_F(GlobalServerTest, Hole31NonsenseIsTakenForTheLongestLease) {
  Start(std::chrono::milliseconds(-1));
  Login(1, {{.key = "a", .right = Right::kModify}}, std::chrono::milliseconds::max());
  EXPECT_GE(TimeUntilFreed(), FreeAfter(kLeaseMax));
}

// It never logs in: what it said is in the database only.
TEST_F(GlobalServerTest, Hole31AFencedEpochOfTheListIsWaitedForAsItSaid) {
  constexpr std::chrono::milliseconds kLong = std::chrono::seconds(20);
  rows[1] = {.server_id = 1, .epoch = kEpoch, .holder = {}, .fenced = true, .lease = kLong};
  rows[3] = {.server_id = 3, .epoch = kEpoch, .holder = {}};
  StartWithRows();
  Login(3, {});
  WaitOut(3);
  EXPECT_FALSE(global.serving());
  Wait(FreeAfter(kLong) - options.lease.free_after(), 3);
  EXPECT_TRUE(global.serving());
}

// Hole 17. Nothing fences an old peer, so nothing but time makes its rights free.
TEST_F(GlobalServerTest, Hole17OldPeersAreRefusedUnlessTimeIsGivenToThem) {
  Start();
  EXPECT_FALSE(global.OnUnfencedLogin(now, 9, 9, false));
}

class GlobalServerWithOldPeersTest : public GlobalServerTest {
 protected:
  static constexpr auto kWait = std::chrono::seconds(75);
  GlobalServerWithOldPeersTest() : GlobalServerTest({.lease = {}, .unfenced_wait = kWait}) {}
};

TEST_F(GlobalServerWithOldPeersTest, Hole17NothingIsGrantedWhileAnUnknownOneMayHaveRights) {
  Start();
  for (const std::int32_t id : {1, 2, 3}) Login(id, {});
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  EXPECT_THAT(Take(), IsEmpty());
  now += kWait;
  global.OnKeepAlive(now, 3);
  global.Tick(now);
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
}

TEST_F(GlobalServerWithOldPeersTest, Hole17ASilentOneIsNotEvictedAndACleanUpWaits) {
  Start();
  for (const std::int32_t id : {1, 2, 3}) Login(id, {});
  ASSERT_TRUE(global.OnUnfencedLogin(now, 9, 9, false));
  now += kWait;
  for (const std::int32_t id : {1, 2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
  global.Tick(now);
  global.OnAcquire(now, 9, 1, "a", Right::kModify);
  EXPECT_THAT(Take(), ElementsAre("grant 9 a 2"));

  global.OnClosed(now, 9);
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  now += options.acquire_wait;
  for (const std::int32_t id : {1, 2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
  global.Tick(now);
  EXPECT_THAT(Take(), ElementsAre("refuse 3 a"));
  global.OnAcquire(now, 3, 2, "a", Right::kModify);
  now += kWait * 10;
  for (const std::int32_t id : {1, 2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
  global.Tick(now);
  EXPECT_THAT(Take(), ElementsAre("refuse 3 a")) << "only an operator can know that it is dead";

  ASSERT_TRUE(global.Cleanup(now, 9));
  now += kWait - std::chrono::seconds(1);
  for (const std::int32_t id : {1, 2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
  global.Tick(now);
  global.OnAcquire(now, 3, 3, "a", Right::kModify);
  EXPECT_THAT(Take(), IsEmpty()) << "its time is not over";
  now += std::chrono::seconds(1);
  for (const std::int32_t id : {1, 2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
  global.Tick(now);
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2"));
}

// Rule 67. What was asked of a server that closes in order is answered by its close.
TEST_F(GlobalServerTest, AnOrderlyCloseRefusesNobody) {
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}, {.key = "b", .right = Right::kShare}});
  Login(2, {{.key = "b", .right = Right::kShare}});
  Login(3, {});
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  global.OnAcquire(now, 2, 1, "b", Right::kModify);
  global.OnAcquire(now, 3, 2, "b", Right::kShare);
  EXPECT_THAT(asked, ElementsAre(1, 1));

  global.OnNormalClose(now, 1);

  EXPECT_THAT(Take(), ElementsAre("grant 3 a 2", "grant 2 b 2"));
  EXPECT_THAT(asked, ElementsAre(1, 1, 2));
}

TEST_F(GlobalServerTest, ARequestWaitsForAHolderThatIsLostAndComesBack) {
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}});
  for (const std::int32_t id : {2, 3}) Login(id, {});
  global.OnAcquire(now, 2, 1, "a", Right::kModify);
  global.OnClosed(now, 1);  // Asked, and not answered.
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  now += options.silence_max / 2;
  Login(1, {{.key = "a", .right = Right::kModify}});
  global.Tick(now);
  EXPECT_THAT(asked, ElementsAre(1, 1));
  EXPECT_THAT(Take(), IsEmpty());

  global.OnReduced(now, 1, last_serial, "a", Right::kInvalid);
  EXPECT_THAT(Take(), ElementsAre("grant 2 a 2"));
  EXPECT_THAT(asked, ElementsAre(1, 1, 2)) << "the next one in the queue is served";
}

// Also those who have waited behind the first one.
TEST_F(GlobalServerTest, AHolderThatStaysAwayMakesRequestsFailAfterAWhile) {
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}});
  for (const std::int32_t id : {2, 3}) Login(id, {});
  global.OnClosed(now, 1);
  global.OnAcquire(now, 2, 1, "a", Right::kModify);
  global.OnAcquire(now, 3, 1, "a", Right::kModify);
  now += options.acquire_wait - std::chrono::nanoseconds(1);
  for (const std::int32_t id : {2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
  global.Tick(now);
  EXPECT_THAT(Take(), ElementsAre("want 1"));
  now += std::chrono::nanoseconds(1);
  global.Tick(now);
  EXPECT_THAT(Take(), ElementsAre("refuse 2 a", "refuse 3 a"));
}

// Reconnecting does not make a question younger.
TEST_F(GlobalServerTest, AHolderThatNeverAnswersFailsHoweverOftenItComesBack) {
  Start();
  Login(1, {{.key = "a", .right = Right::kModify}});
  for (const std::int32_t id : {2, 3}) Login(id, {});
  const auto begin = now;
  global.OnAcquire(now, 2, 1, "a", Right::kModify);
  while (Take().empty()) {
    ASSERT_LE(now, begin + options.reduce_timeout);
    Login(1, {{.key = "a", .right = Right::kModify}});
    now += options.silence_max / 2;
    for (const std::int32_t id : {1, 2, 3}) global.OnKeepAlive(now, static_cast<ConnectionId>(id));
    global.Tick(now);
  }
  EXPECT_EQ(begin + options.reduce_timeout, now);
}

// Rule 58. A stranger claims a later epoch of server 1, or its own epoch without its secret.
TEST_F(GlobalServerTest, AStrangersLoginChangesNothing) {
  Start();
  LoginAs(1, kEpoch, "right");
  AnswerRow("right");
  for (const std::int32_t id : {2, 3}) Login(id, {});
  ASSERT_TRUE(global.serving());
  Take();

  constexpr ConnectionId kStranger = 99;
  LoginAs(kStranger, 999, "wrong");
  EXPECT_THAT(Take(), ElementsAre());
  AnswerRow("right");  // Perhaps read before the login came: it is read once more.
  AnswerRow("right");
  EXPECT_THAT(Take(), ElementsAre(HasSubstr("a login as server 1 (epoch 999) is refused: "
                                            "the database has epoch 1")));
  LoginAs(kStranger, kEpoch, "wrong");
  EXPECT_THAT(Take(), ElementsAre(HasSubstr("does not prove")));
  EXPECT_FALSE(global.LoggedIn(kStranger));

  EXPECT_TRUE(global.OnAcquire(now, 1, 1, "a", Right::kModify));
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 2"));
  // It is still who it was after a break of its connection.
  global.OnClosed(now, 1);
  LoginAs(5, kEpoch, "right");
  EXPECT_TRUE(global.LoggedIn(5));
}

// While a Global recovers it knows no session yet, and the stranger comes first.
TEST_F(GlobalServerTest, AStrangerDoesNotAnnounceForAServerThatIsAway) {
  Start();
  for (const std::int32_t id : {2, 3}) Login(id, {});
  LoginAs(99, kEpoch, "wrong");
  AnswerRow("right");
  EXPECT_FALSE(global.serving());
  LoginAs(99, kEpoch + 1, "wrong");
  AnswerRow("right");
  AnswerRow("right");
  EXPECT_FALSE(global.serving());

  LoginAs(1, kEpoch, "right");
  AnswerRow("right");
  EXPECT_TRUE(global.serving());
}

TEST_F(GlobalServerTest, LooksUpABoundedNumberOfLogins) {
  Start();
  constexpr ConnectionId kStrangers = 40;
  for (ConnectionId id = 100; id < 100 + kStrangers; ++id) LoginAs(id, 999, "wrong");
  EXPECT_EQ(Take().size(), kStrangers - 16);  // Busy: come again.
  for (ConnectionId id = 100; id < 100 + kStrangers; ++id) global.OnClosed(now, id);
  LoginAs(1, kEpoch, "right");
  AnswerRow("right");
  EXPECT_TRUE(global.LoggedIn(1));
}

}  // namespace
}  // namespace zeze::global
