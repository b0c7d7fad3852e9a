// A server that is cut off from its Global but reaches the database (rules 63 to 66): it saves and
// goes on, gives its records back through the database when others want them, and loses nothing.

#include <chrono>
#include <cstdint>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/commanded_cluster.h"
#include "tests/cluster/server_program.h"
#include "tests/cluster/way.h"

namespace zeze::cluster {
namespace {

// About 1.5 s on a machine with nothing else to do. Without passive close it is a lease and 2 s.
constexpr auto kFewSeconds = std::chrono::seconds(5);

std::string NameOf(const ::testing::TestParamInfo<Fault>& chosen) {
  return chosen.param == Fault::kClosed ? "Closed" : "Silent";
}

class PassiveCloseTest : public ::testing::TestWithParam<Fault> {
 protected:
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

TEST_P(PassiveCloseTest, OthersGetTheRecordsSoonAndNoCommitIsLost) {
  ASSERT_EQ(1000, holder_.Do("add 0 1000").done) << holder_.said();
  ASSERT_EQ(0, cluster_.SavedSum());

  Cut(holder_.global(), GetParam());
  const Stopwatch waiting;
  EXPECT_EQ(1, other_.Do("add 0 1").done) << other_.said();
  const auto waited = waiting.elapsed();
  EXPECT_LT(waited, kFewSeconds) << cluster_.global().said() << other_.said() << holder_.said();
  RecordProperty("waited_ms", static_cast<int>(waited.count()));
  EXPECT_EQ(999, other_.Do("add 1 999").done) << other_.said();

  const std::int64_t sum = other_.Do("sum 0 1000").sum;
  EXPECT_EQ(2000, sum) << 2000 - sum << " of 1000 acknowledged commits are lost";
  ExpectNobodyEnded();

  Heal(holder_.global());
  EXPECT_EQ(1000, holder_.Do("add 0 1000").done) << "it serves again, without a restart";
  EXPECT_EQ(3000, other_.Do("sum 0 1000").sum);
  ExpectNobodyEnded();
}

TEST_P(PassiveCloseTest, KeepsItsRightsAndItsCacheWhenNobodyAsks) {
  ASSERT_EQ(1000, holder_.Do("add 0 1000").done) << holder_.said();

  Cut(holder_.global(), GetParam());
  ASSERT_TRUE(cluster_.AwaitSavedSum(1000)) << "it saves as soon as it has lost its Global";
  EXPECT_EQ(1000, holder_.Do("try 0 1000").done) << "it commits under the rights it has";
  EXPECT_TRUE(cluster_.AwaitSavedSum(2000)) << "it goes on saving";
  EXPECT_EQ(1, holder_.Do("try 1000 1").refused) << "nobody gives it new rights";
  EXPECT_TRUE(cluster_.AwaitTold("lost", 1)) << cluster_.global().said();

  Heal(holder_.global());
  EXPECT_TRUE(cluster_.AwaitTold("returned", 1)) << cluster_.global().said();
  // Whatever it has in its cache, it does not look for here.
  cluster_.RunSql("DELETE FROM cluster_counters");
  EXPECT_EQ(2000, holder_.Do("sum 0 1000").sum);
  EXPECT_EQ(1, holder_.Do("add 1000 1").done) << "it gets new rights";
  EXPECT_FALSE(cluster_.Told("yielded", 1)) << cluster_.global().said();
  ExpectNobodyEnded();
}

TEST_P(PassiveCloseTest, CommitsMadeWhileItGivesItsRecordsBackAreNotLost) {
  const int work = holder_.Begin("work 0 100");
  ASSERT_EQ(1000, holder_.Do("add 1000 1000").done) << "meanwhile it works";

  Cut(holder_.global(), GetParam());
  EXPECT_EQ(100, other_.Do("add 0 100").done) << other_.said();
  Heal(holder_.global());
  EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  holder_.Begin("rest");
  const std::int64_t worked = holder_.Await(work).done;
  EXPECT_GT(worked, 0) << holder_.said();
  EXPECT_EQ(worked + 200, other_.Do("sum 0 100").sum);
  ExpectNobodyEnded();
}

TEST_P(PassiveCloseTest, GivesItsRecordsBackEachTimeItIsCutOff) {
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
    Cut(holder_.global(), GetParam());
    EXPECT_EQ(100, other_.Do("add 0 100").done) << other_.said();
    Heal(holder_.global());
  }
  EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();  // It is connected again.
  EXPECT_EQ(kRounds * 200 + 100, holder_.Do("sum 0 100").sum);
  ExpectNobodyEnded();
}

// The new Global does not know what the holder has, and the holder cannot announce it.
TEST_P(PassiveCloseTest, RestartedGlobalDoesNotWaitForAServerThatIsCutOff) {
  ASSERT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  Cut(holder_.global(), GetParam());
  cluster_.global().Kill();
  cluster_.StartGlobal();

  EXPECT_EQ(100, other_.Do("add 0 100").done) << other_.said() << cluster_.global().said();
  EXPECT_EQ(200, other_.Do("sum 0 100").sum);
  Heal(holder_.global());
  EXPECT_EQ(100, holder_.Do("add 0 100").done) << holder_.said();
  EXPECT_EQ(300, other_.Do("sum 0 100").sum);
  ExpectNobodyEnded();
}

INSTANTIATE_TEST_SUITE_P(Networks, PassiveCloseTest,
                         ::testing::Values(Fault::kClosed, Fault::kSilent), NameOf);

// The other Global grants and asks as ever, and commits that touch records of both stay whole.
TEST(PassiveClose, ServerCutFromOneOfTwoGlobalsGivesBackOnlyWhatThatOneGranted) {
  constexpr std::int64_t kPairs = 100;
  CommandedCluster cluster({}, 2);
  CommandedServer& holder = cluster.AddServer(1);
  CommandedServer& other = cluster.AddServer(2);
  const int trade = holder.Begin(fmt::format("trade 0 {}", kPairs));
  ASSERT_EQ(1000, holder.Do("add 1000 1000").done) << "meanwhile it trades";

  Cut(holder.global(1));
  EXPECT_EQ(1000, other.Do("add 1000 1000").done) << other.said();
  EXPECT_EQ(2000, other.Do("sum 1000 1000").sum) << "nothing is lost";
  const CommandedAnswer half = holder.Do("try 2000 100");
  EXPECT_GT(half.done, 0) << "new records of the Global that it reaches";
  EXPECT_GT(half.refused, 0);

  Heal(holder.global(1));
  EXPECT_EQ(1000, holder.Do("add 1000 1000").done) << holder.said();
  holder.Begin("rest");
  const std::int64_t traded = holder.Await(trade).done;
  EXPECT_GT(traded, 0) << holder.said();
  EXPECT_EQ(traded, other.Do(fmt::format("sum 0 {}", kPairs)).sum);
  EXPECT_EQ(traded, other.Do(fmt::format("sum {0} {0}", kPairs)).sum);
  EXPECT_EQ(3000, other.Do("sum 1000 1000").sum);
  EXPECT_TRUE(holder.process().running()) << holder.said();
  EXPECT_FALSE(cluster.ToldOfEvictions()) << cluster.global(1).said();
}

// It renews its lease, so it is given time; but not for ever.
TEST(PassiveClose, ServerThatCannotSaveIsEvictedAfterPassiveWait) {
  constexpr auto kPassiveWait = std::chrono::seconds(4);
  CommandedCluster cluster({"--passive-wait", "4000"});
  CommandedServer& holder = cluster.AddServer(1);
  CommandedServer& other = cluster.AddServer(2);
  ASSERT_EQ(10, holder.Do("add 0 10").done) << holder.said();
  cluster.RunSql(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE EXCEPTION 'nothing is saved here'; END $$; "
      "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON cluster_counters "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");

  Cut(holder.global());
  const Stopwatch waiting;
  const int order = other.Begin("add 0 10");
  EXPECT_TRUE(cluster.AwaitTold("evicted", 1)) << cluster.global().said();
  // It counts from the last message of the server, which may be older than the cut.
  EXPECT_GE(waiting.elapsed(), kPassiveWait - std::chrono::milliseconds(500));
  EXPECT_EQ(10, other.Await(order).done) << other.said();
  EXPECT_EQ(10, other.Do("sum 0 10").sum) << "what was not saved is lost, as in a crash";
  EXPECT_EQ(kFencedStatus, holder.AwaitFenced()) << holder.said();
}

}  // namespace
}  // namespace zeze::cluster
