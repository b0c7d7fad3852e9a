// Nodes of a Galera cluster that stop working while others go on. On a cluster of their own.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fenced_home.h"

namespace zeze {
namespace {

constexpr std::size_t kNodes = 3;

class GaleraNodesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Result<std::unique_ptr<DatabaseServer>> started = StartGaleraCluster(kNodes);
    ASSERT_TRUE(started.ok()) << started.error().message();
    cluster = std::move(started).value();
    // As clusters are by default, and not as patient as tests are.
    for (std::size_t node = 0; node < kNodes; ++node) {
      SetProvider(node,
                  "evs.suspect_timeout=PT3S;evs.inactive_timeout=PT5S;evs.install_timeout=PT5S");
    }
  }
  static void TearDownTestSuite() { cluster.reset(); }

  static void SetProvider(std::size_t node, const std::string& options) {
    cluster->RunSqlOnNode(node, "SET GLOBAL wsrep_provider_options = '" + options + "'");
  }

  static void AwaitStatus(std::size_t node, const std::string& status) {
    const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
    while (cluster->RunSqlOnNode(node, "SHOW STATUS LIKE 'wsrep_cluster_status'") !=
           "wsrep_cluster_status\t" + status + "\n") {
      ASSERT_LT(SystemClock().Now(), deadline) << "node " << node << " is not " << status;
      std::this_thread::yield();
    }
  }

  static void AwaitReady(std::size_t node) {
    const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
    while (cluster->RunSqlOnNode(node, "SHOW STATUS LIKE 'wsrep_ready'") != "wsrep_ready\tON\n") {
      ASSERT_LT(SystemClock().Now(), deadline) << "node " << node << " is not ready";
      std::this_thread::yield();
    }
  }

  // The nodes in the order of the address, the first one first.
  std::string UrlOfAllNodes() const {
    std::string hosts;
    for (const std::string& url : urls_) {
      const std::size_t at = url.find('@') + 1;
      hosts += (hosts.empty() ? "" : ",") + url.substr(at, url.rfind('/') - at);
    }
    return "mysql://root@" + hosts + urls_.front().substr(urls_.front().rfind('/'));
  }

  std::unique_ptr<FencedProcess> Open() const {
    Result<std::unique_ptr<Storage>> opened = OpenMariaDbStorage({.url = UrlOfAllNodes()});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::make_unique<FencedProcess>(std::move(opened).value()) : nullptr;
  }

  static std::chrono::nanoseconds TimeOf(const auto& call) {
    const auto begin = SystemClock().Now();
    call();
    return SystemClock().Now() - begin;
  }

  static std::unique_ptr<DatabaseServer> cluster;
  const std::vector<std::string> urls_ = cluster->NewDatabaseOnEachNode();
};

std::unique_ptr<DatabaseServer> GaleraNodesTest::cluster;

TEST_F(GaleraNodesTest, ANodeThatWasSplitOffIsLeftForTheNext) {
  const std::unique_ptr<FencedProcess> process = Open();
  ASSERT_NE(process, nullptr);
  process->Start(1);
  ASSERT_EQ(process->FlushOutcome("k", "before"), "ok");

  SetProvider(0, "gmcast.isolate=1");
  AwaitStatus(0, "non-Primary");

  const auto took = TimeOf([&] {
    EXPECT_EQ(process->FlushUntilKnown("k", "after"), "ok");
    EXPECT_EQ(process->Find("k"), "after");
    EXPECT_EQ(FencedProcess::Outcome(process->fence().Renew()), "ok");
  });
  EXPECT_LT(took, std::chrono::seconds(15));
  const std::unique_ptr<FencedProcess> later = Open();
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->Find("k"), "after");

  SetProvider(0, "gmcast.isolate=0");
  AwaitStatus(0, "Primary");
  AwaitReady(0);
}

TEST_F(GaleraNodesTest, AHungNodeIsLeftInBoundedTime) {
  const std::unique_ptr<FencedProcess> process = Open();
  ASSERT_NE(process, nullptr);
  process->Start(1);
  ASSERT_EQ(process->FlushOutcome("k", "before"), "ok");

  cluster->SignalNode(0, SIGSTOP);

  const auto flushing = TimeOf([&] { EXPECT_EQ(process->FlushUntilKnown("k", "after"), "ok"); });
  const auto reading = TimeOf([&] { EXPECT_EQ(process->Find("k"), "after"); });
  EXPECT_LT(flushing + reading, std::chrono::seconds(25));
  // From now on it is known which one to ask.
  EXPECT_LT(TimeOf([&] { EXPECT_NE(Open(), nullptr); }) +
                TimeOf([&] { EXPECT_EQ(FencedProcess::Outcome(process->fence().Renew()), "ok"); }),
            std::chrono::seconds(15));

  cluster->SignalNode(0, SIGCONT);
  AwaitStatus(0, "Primary");
  AwaitReady(0);
}

}  // namespace
}  // namespace zeze
