// Servers on hosts of their own (network namespaces), whose packets are lost in both directions or
// in one. Nobody is told, connections stay open on both sides, and after the end of the trouble TCP
// takes its time to notice: what proxies cannot show.

#include <chrono>
#include <optional>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/cluster/commanded_cluster.h"
#include "tests/cluster/server_program.h"
#include "tests/cluster/test_host.h"
#include "tests/cluster/way.h"
#include "zeze/base/clock.h"

namespace zeze::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLease = seconds(6);

std::string NameOf(const ::testing::TestParamInfo<Fault>& chosen) {
  switch (chosen.param) {
    case Fault::kLostOut:
      return "FromTheServer";
    case Fault::kLostIn:
      return "ToTheServer";
    default:
      return "InBothDirections";
  }
}

class LostPacketsTest : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    if (const std::string why = EnterTestNetwork(); !why.empty()) GTEST_SKIP() << why;
    cluster_.emplace(std::vector<std::string>(), 1, Machines::kHosts);
    holder_ = &cluster_->AddServer(1);
    other_ = &cluster_->AddServer(2);
  }

  void ExpectNobodyEnded() {
    for (const auto& server : cluster_->servers()) {
      EXPECT_TRUE(server->process().running()) << server->said();
    }
    EXPECT_FALSE(cluster_->ToldOfEvictions()) << cluster_->global().said();
  }

  std::optional<CommandedCluster> cluster_;
  CommandedServer* holder_ = nullptr;
  CommandedServer* other_ = nullptr;
};

TEST_P(LostPacketsTest, CutFromGlobalOnlyLosesNoCommitAndEndsNobody) {
  ASSERT_EQ(1000, holder_->Do("add 0 1000").done) << holder_->said();
  ASSERT_EQ(0, cluster_->SavedSum());

  Cut(holder_->global(), GetParam());
  const Stopwatch cut;
  EXPECT_EQ(1000, other_->Do("add 0 1000").done) << other_->said();
  const milliseconds waited = cut.elapsed();
  EXPECT_LT(waited, seconds(8)) << "others do not wait for it";
  EXPECT_EQ(2000, other_->Do("sum 0 1000").sum) << "no acknowledged commit is lost";
  ExpectNobodyEnded();

  Heal(holder_->global());
  const Stopwatch healed;
  EXPECT_EQ(1, holder_->Do("add 0 1").done) << holder_->said();
  const milliseconds back = healed.elapsed();
  EXPECT_LT(back, kLease) << "back in service within the lease, without a restart";
  EXPECT_EQ(999, holder_->Do("add 1 999").done) << holder_->said();
  EXPECT_EQ(3000, other_->Do("sum 0 1000").sum);
  ExpectNobodyEnded();
  fmt::print("others waited {} ms; back in service {} ms after the cut was healed\n",
             waited.count(), back.count());
}

// It may use what it has, and learns soon that it gets nothing else.
TEST_P(LostPacketsTest, CallsDoNotWaitForAGlobalThatIsNotHeard) {
  ASSERT_EQ(100, holder_->Do("add 0 100").done) << holder_->said();
  Cut(holder_->global(), GetParam());
  const Stopwatch first;
  EXPECT_EQ(1, holder_->Do("try 1000 1").refused);
  EXPECT_LT(first.elapsed(), seconds(5));
  const Stopwatch next;
  EXPECT_EQ(100, holder_->Do("try 1000 100").refused);
  EXPECT_LT(next.elapsed(), seconds(5)) << "a hundred more are refused immediately";
  EXPECT_EQ(100, holder_->Do("try 0 100").done) << "it commits under the rights it has";

  // Long enough for a connection attempt to wait for its next try.
  SystemClock().SleepFor(seconds(10) - first.elapsed());
  Heal(holder_->global());
  const Stopwatch healed;
  EXPECT_EQ(1, holder_->Do("add 1000 1").done) << holder_->said();
  EXPECT_LT(healed.elapsed(), kLease);
  ExpectNobodyEnded();
}

TEST_P(LostPacketsTest, OthersGoOnWhenAServerIsCutFromTheDatabaseOnly) {
  ASSERT_EQ(100, holder_->Do("add 0 100").done) << holder_->said();
  Cut(holder_->database(), GetParam());
  const Stopwatch cut;
  const int order = other_->Begin("add 0 100");
  EXPECT_TRUE(cluster_->AwaitTold("cut_from_database", 1)) << cluster_->global().said();
  EXPECT_LT(cut.elapsed(), kLease + seconds(5));
  EXPECT_FALSE(cluster_->ToldOfEvictions()) << "operators are told before anything is done";
  EXPECT_EQ(100, other_->Await(order).done) << other_->said() << cluster_->global().said();
  EXPECT_LT(cut.elapsed(), seconds(40));

  Heal(holder_->database());
  EXPECT_EQ(kFencedStatus, holder_->AwaitFenced()) << holder_->said();
}

TEST_P(LostPacketsTest, OthersGoOnSoonWhenAServerIsCutFromEverything) {
  ASSERT_EQ(100, holder_->Do("add 0 100").done) << holder_->said();
  Cut(holder_->global(), GetParam());
  Cut(holder_->database(), GetParam());
  const Stopwatch cut;
  EXPECT_EQ(100, other_->Do("add 0 100").done) << other_->said() << cluster_->global().said();
  EXPECT_LT(cut.elapsed(), kLease + seconds(10));
  EXPECT_EQ(100, other_->Do("sum 0 100").sum) << "what was not saved is lost, as in a crash";

  Heal(holder_->global());
  Heal(holder_->database());
  EXPECT_EQ(kFencedStatus, holder_->AwaitFenced()) << holder_->said();
  EXPECT_TRUE(other_->process().running()) << other_->said();
}

INSTANTIATE_TEST_SUITE_P(Packets, LostPacketsTest,
                         ::testing::Values(Fault::kLost, Fault::kLostOut, Fault::kLostIn), NameOf);

}  // namespace
}  // namespace zeze::cluster
