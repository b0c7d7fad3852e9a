// A server that crashes and starts again (rules 60 and 62): if the daemon can say that the process
// before has ended, its records are free when the next one logs in; otherwise after its lease.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "tests/cluster/commanded_cluster.h"
#include "zeze/base/clock.h"

namespace zeze::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLease = seconds(6);
constexpr auto kSoon = seconds(3);  // On a busy machine, and well below the lease.

// The place after the given occurrence of a word in what was said, from 1; npos: not said yet.
std::size_t PlaceAfter(const std::string& said, const std::string& word, int occurrence) {
  std::size_t at = 0;
  for (int i = 0; i < occurrence; ++i) {
    at = said.find(word, at);
    if (at == std::string::npos) return at;
    at += word.size();
  }
  return at;
}

bool AwaitNth(const CommandedServer& server, const std::string& word, int occurrence) {
  const auto deadline = SystemClock().Now() + kPatience;
  while (PlaceAfter(server.said(), word, occurrence) == std::string::npos) {
    if (SystemClock().Now() > deadline) return false;
    SystemClock().SleepFor(milliseconds(1));
  }
  return true;
}

// The process that the daemon has started as its n-th.
pid_t ProcessOf(const CommandedServer& server, int n) {
  const std::string said = server.said();
  const std::size_t at = PlaceAfter(said, "runs as process ", n);
  return at == std::string::npos ? 0 : static_cast<pid_t>(std::stol(said.substr(at)));
}

class DaemonRestartTest : public ::testing::Test {
 protected:
  // Kills the n-th process of the server and returns when the next one has logged in.
  static void KillAndAwaitNext(CommandedServer& server, int n) {
    const pid_t process = ProcessOf(server, n);
    ASSERT_GT(process, 0) << server.said();
    ASSERT_EQ(0, ::kill(process, SIGKILL));
    ASSERT_TRUE(AwaitNth(server, "ready\n", n + 1)) << server.said();
  }

  CommandedCluster cluster_;
};

TEST_F(DaemonRestartTest, RecordsOfAKilledServerAreFreeWhenTheNextOneLogsIn) {
  CommandedServer& kept = cluster_.AddServer({.id = 1, .lease = kLease, .under_daemon = true});
  CommandedServer& other = cluster_.AddServer(2);
  ASSERT_EQ(10, kept.Do("add 0 10").done) << kept.said();
  ASSERT_EQ(10, kept.Do("add 100 10").done) << kept.said();

  KillAndAwaitNext(kept, 1);
  const Stopwatch waiting;
  const int for_other = other.Begin("add 0 10");
  const int for_itself = kept.Begin("add 100 10");
  EXPECT_EQ(10, other.Await(for_other).done) << other.said() << cluster_.global().said();
  EXPECT_EQ(10, kept.Await(for_itself).done) << kept.said() << cluster_.global().said();
  const milliseconds waited = waiting.elapsed();
  EXPECT_LT(waited, kSoon);
  RecordProperty("waited_ms", static_cast<int>(waited.count()));
  EXPECT_FALSE(cluster_.ToldOfEvictions()) << cluster_.global().said();
}

// The daemon says of all its children that they have ended, not only of the last one.
TEST_F(DaemonRestartTest, RecordsAreFreeSoonAfterEachOfSeveralCrashes) {
  constexpr int kCrashes = 3;
  CommandedServer& kept = cluster_.AddServer({.id = 1, .lease = kLease, .under_daemon = true});
  CommandedServer& other = cluster_.AddServer(2);
  for (int crash = 1; crash <= kCrashes && !HasFailure(); ++crash) {
    ASSERT_EQ(10, kept.Do("add 0 10").done) << kept.said();
    KillAndAwaitNext(kept, crash);
    const Stopwatch waiting;
    EXPECT_EQ(10, other.Do("add 0 10").done) << other.said();
    EXPECT_LT(waiting.elapsed(), kSoon);
  }
}

// Nobody can say that the process before does not run any more.
TEST_F(DaemonRestartTest, WithoutADaemonRecordsAreFreeAfterTheLease) {
  CommandedServer& restarted = cluster_.AddServer({.id = 1, .lease = kLease});
  CommandedServer& other = cluster_.AddServer(2);
  ASSERT_EQ(10, restarted.Do("add 0 10").done) << restarted.said();
  cluster_.AwaitRenewal(1);
  const Stopwatch since_renewal;

  restarted.process().Kill();
  restarted.Start();
  ASSERT_TRUE(restarted.AwaitReady()) << restarted.said();
  EXPECT_EQ(10, other.Do("add 0 10").done) << other.said() << cluster_.global().said();
  // Global may have seen that renewal a moment before this test did.
  EXPECT_GE(since_renewal.elapsed(), kLease - milliseconds(500));
  EXPECT_LT(since_renewal.elapsed(), kLease + seconds(4));
}

}  // namespace
}  // namespace zeze::cluster
