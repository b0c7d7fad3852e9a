// How Global judges servers (rules 59 to 61): by the renewals of their leases in the database, each
// server by its own. A server that is merely silent, or paused for less than its lease, lives.

#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/commanded_cluster.h"
#include "tests/cluster/server_program.h"
#include "tests/cluster/way.h"
#include "zeze/base/clock.h"

namespace zeze::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLease = seconds(6);

// The duration itself is what these tests are about.
void WaitUntil(const Stopwatch& watch, milliseconds duration) {
  SystemClock().SleepFor(duration - watch.elapsed());
}

class EvidenceOfLifeTest : public ::testing::Test {
 protected:
  explicit EvidenceOfLifeTest(std::vector<std::string> global_options = {})
      : cluster_(std::move(global_options)) {}

  void ExpectNobodyEnded() {
    for (const auto& server : cluster_.servers()) {
      EXPECT_TRUE(server->process().running()) << server->said();
    }
    EXPECT_FALSE(cluster_.ToldOfEvictions()) << cluster_.global().said();
  }

  CommandedCluster cluster_;
  CommandedServer& holder_ = cluster_.AddServer(1);
  CommandedServer& other_ = cluster_.AddServer(2);
};

// --- cut from the database only ---

TEST_F(EvidenceOfLifeTest, OthersGoOnAfterAServerWasCutFromTheDatabase) {
  CommandedServer& third = cluster_.AddServer(3);
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();

  Cut(holder_.database());
  const Stopwatch cut;
  const int order = other_.Begin("add 0 100");
  EXPECT_TRUE(cluster_.AwaitTold("cut_from_database", 1)) << cluster_.global().said();
  EXPECT_LT(cut.elapsed(), kLease + seconds(5));
  EXPECT_FALSE(cluster_.ToldOfEvictions()) << "operators are told before anything is done";
  EXPECT_EQ(100, other_.Await(order).done) << other_.said() << cluster_.global().said();
  EXPECT_LT(cut.elapsed(), seconds(40));
  EXPECT_EQ(100, third.Do("add 0 100").done) << third.said();

  Heal(holder_.database());
  EXPECT_EQ(kFencedStatus, holder_.AwaitFenced()) << holder_.said();
}

TEST_F(EvidenceOfLifeTest, ServerCutFromTheDatabaseLivesIfNobodyWaitsForIt) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  Cut(holder_.database());
  const Stopwatch cut;
  WaitUntil(cut, kLease * 2);
  EXPECT_EQ(100, other_.Do("add 1000 100").done) << other_.said();

  Heal(holder_.database());
  EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  EXPECT_EQ(200, other_.Do("sum 0 100").sum);
  ExpectNobodyEnded();
}

class ShortDatabaseWaitTest : public EvidenceOfLifeTest {
 protected:
  ShortDatabaseWaitTest() : EvidenceOfLifeTest({"--database-wait", "10000"}) {}
};

// Its sessions in the database stay open, perhaps in the middle of a flush.
TEST_F(ShortDatabaseWaitTest, ServerWhoseDatabaseIsSilentIsEvictedAfterDatabaseWait) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  cluster_.AwaitRenewal(1);
  Cut(holder_.database(), Fault::kSilent);
  const Stopwatch cut;
  const int order = other_.Begin("add 0 100");
  EXPECT_TRUE(cluster_.AwaitTold("cut_from_database", 1)) << cluster_.global().said();
  EXPECT_TRUE(cluster_.AwaitTold("evicted", 1)) << cluster_.global().said();
  // A renewal that was on its way may have been written a moment before the cut.
  EXPECT_GE(cut.elapsed(), seconds(9));
  EXPECT_EQ(100, other_.Await(order).done) << other_.said();
  EXPECT_LT(cut.elapsed(), seconds(20));
  Heal(holder_.database());
  EXPECT_EQ(kFencedStatus, holder_.AwaitFenced()) << holder_.said();
}

// Nobody can renew, and nobody can see whether others do.
TEST_F(EvidenceOfLifeTest, DatabaseThatIsAwayEndsNobody) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  ASSERT_EQ(100, other_.Do("add 100 100").done) << other_.said();
  const std::vector<Way*> ways = {&holder_.database(), &other_.database(),
                                  &cluster_.global_database()};
  for (Way* way : ways) Cut(*way, Fault::kSilent);
  const Stopwatch away;
  const int from_holder = other_.Begin("add 0 100");
  const int from_other = holder_.Begin("add 100 100");
  WaitUntil(away, seconds(14));
  for (Way* way : ways) Heal(*way);

  EXPECT_EQ(100, other_.Await(from_holder).done) << other_.said();
  EXPECT_EQ(100, holder_.Await(from_other).done) << holder_.said();
  EXPECT_EQ(400, other_.Do("sum 0 200").sum);
  ExpectNobodyEnded();
}

// --- several servers die together ---

TEST_F(EvidenceOfLifeTest, LastOfThreeServersGetsTheRecordsOfTheOthers) {
  CommandedServer& third = cluster_.AddServer(3);
  ASSERT_EQ(10, holder_.Do("add 0 10").done) << holder_.said();
  ASSERT_EQ(10, other_.Do("add 10 10").done) << other_.said();
  holder_.process().Kill();
  other_.process().Kill();

  const Stopwatch waiting;
  EXPECT_EQ(20, third.Do("add 0 20").done) << third.said() << cluster_.global().said();
  EXPECT_LT(waiting.elapsed(), kLease + seconds(10));
}

TEST_F(EvidenceOfLifeTest, RestartedGlobalGrantsAgainWhenTwoOfThreeServersAreDead) {
  CommandedServer& third = cluster_.AddServer(3);
  ASSERT_EQ(10, holder_.Do("add 0 10").done) << holder_.said();
  ASSERT_EQ(10, other_.Do("add 10 10").done) << other_.said();
  ASSERT_EQ(10, third.Do("add 20 10").done) << third.said();
  holder_.process().Kill();
  other_.process().Kill();
  cluster_.global().Kill();
  cluster_.StartGlobal();

  const Stopwatch waiting;
  EXPECT_EQ(1, third.Do("add 1000 1").done) << third.said() << cluster_.global().said();
  EXPECT_LT(waiting.elapsed(), kLease + seconds(10));
  EXPECT_EQ(20, third.Do("add 0 20").done) << "the records of the dead";
  EXPECT_EQ(10, third.Do("sum 20 10").sum) << "its own";
}

// --- paused processes ---

class PauseTest : public EvidenceOfLifeTest, public ::testing::WithParamInterface<milliseconds> {};

TEST_P(PauseTest, ShorterThanTheLeaseIsSurvivedWhileOthersWait) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  cluster_.AwaitRenewal(1);
  holder_.process().Signal(SIGSTOP);
  const Stopwatch paused;
  const int order = other_.Begin("add 0 100");
  WaitUntil(paused, GetParam());
  holder_.process().Signal(SIGCONT);

  EXPECT_EQ(100, other_.Await(order).done) << other_.said();
  EXPECT_EQ(200, other_.Do("sum 0 100").sum) << "nothing is lost";
  EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  ExpectNobodyEnded();
}

INSTANTIATE_TEST_SUITE_P(Pauses, PauseTest,
                         ::testing::Values(milliseconds(3000), milliseconds(4500)),
                         [](const auto& chosen) {
                           return fmt::format("{}ms", chosen.param.count());
                         });

TEST_F(EvidenceOfLifeTest, PauseLongerThanTheLeaseEndsAServerThatOthersWaitFor) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  cluster_.AwaitRenewal(1);
  holder_.process().Signal(SIGSTOP);
  const Stopwatch paused;
  const int order = other_.Begin("add 0 100");

  ASSERT_TRUE(cluster_.AwaitTold("evicted", 1)) << cluster_.global().said();
  // Global may have seen that renewal a moment before this test did.
  EXPECT_GE(paused.elapsed(), kLease - milliseconds(500)) << "never before its lease is over";
  EXPECT_EQ(100, other_.Await(order).done) << other_.said();
  EXPECT_LT(paused.elapsed(), kLease + seconds(4)) << "its records are free soon after";
  WaitUntil(paused, kLease + seconds(2));
  holder_.process().Signal(SIGCONT);
  EXPECT_EQ(kFencedStatus, holder_.AwaitFenced()) << holder_.said();
  EXPECT_TRUE(other_.process().running()) << other_.said();
}

// --- silence is not death ---

TEST_F(EvidenceOfLifeTest, SilentConnectionEndsNobodyIfNobodyAsks) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  Cut(holder_.global(), Fault::kSilent);
  const Stopwatch silent;
  const int busy = other_.Begin("work 1000 100");
  WaitUntil(silent, seconds(10));
  EXPECT_EQ(100, holder_.Do("try 0 100").done) << "it has its rights and its lease";

  Heal(holder_.global());
  EXPECT_EQ(1, holder_.Do("add 200 1").done) << holder_.said();
  other_.Begin("rest");
  EXPECT_GT(other_.Await(busy).done, 0) << other_.said();
  EXPECT_EQ(200, other_.Do("sum 0 100").sum);
  ExpectNobodyEnded();
}

TEST_F(EvidenceOfLifeTest, PauseLongerThanTheLeaseEndsNobodyIfNobodyAsks) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  holder_.process().Signal(SIGSTOP);
  const Stopwatch paused;
  const int busy = other_.Begin("work 1000 100");
  WaitUntil(paused, kLease + seconds(4));
  holder_.process().Signal(SIGCONT);

  EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  // Only then does Global know that it lives.
  EXPECT_TRUE(cluster_.AwaitTold("returned", 1)) << cluster_.global().said();
  other_.Begin("rest");
  EXPECT_GT(other_.Await(busy).done, 0) << other_.said();
  EXPECT_EQ(200, other_.Do("sum 0 100").sum);
  ExpectNobodyEnded();
}

}  // namespace
}  // namespace zeze::cluster
