// Servers as processes that are killed without a warning: those that live end their logins.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Game/Online.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/testing/fake_linkd.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::arch {
namespace {

namespace game = Zeze::Builtin::Game::Online;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int32_t kModule = 11013;
constexpr std::size_t kServers = 5;  // Two are few: Global evicts nobody if most are silent.
constexpr RoleId kRoles = 15;
constexpr seconds kPatience(60);

class LostServerTest : public ::testing::Test {
 protected:
  explicit LostServerTest(milliseconds offline_retry = milliseconds(200))
      : url_(SharedPostgresServer().NewDatabase()),
        // Sooner than the lease of a killed server is over.
        registry_({.offline_delay = milliseconds(200), .offline_retry = offline_retry}),
        io_({.name = "test-io"}),
        pool_({.name = "blocking", .thread_count = 4}),
        storage_(OpenStorage({.url = url_}).value()),
        agent_(registry_.NewAgent()),
        global_(io_, *storage_->fence(), pool_,
                {.acceptor = {.ip = "127.0.0.1", .port = 0}, .machine = {}, .holder = "test"}),
        linkd_(io_, agent_.get()) {
    const Result<void> started = global_.Start();
    EXPECT_TRUE(started.ok());
    for (std::size_t id = 1; id <= kServers; ++id) Start(static_cast<int>(id));
    EXPECT_TRUE(linkd_.AwaitServers(kModule, kServers));
  }
  ~LostServerTest() override {
    servers_.clear();
    linkd_.Stop();
    agent_->Stop();
    global_.Stop();
  }

  void Start(int id) {
    auto server = std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_ONLINE_SERVER, "--id", std::to_string(id), "--url", url_, "--global",
                    std::to_string(global_.address().port()), "--registry",
                    std::to_string(registry_.Connector().port)}});
    ASSERT_TRUE(server->AwaitLine("ready", kPatience)) << server->said();
    servers_[id] = std::move(server);
  }

  std::int64_t LogIn(RoleId role) {
    const std::int64_t sid = linkd_.AddClient(fmt::format("account {}", role));
    return linkd_.Call<game::Login>(sid, {.RoleId = role}).result_code;
  }

  // As clients do it: again while the records of a killed server cannot be had.
  bool LogInPatiently(RoleId role) {
    return Eventually([&] { return LogIn(role) == 0; });
  }

  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (!condition()) {
      if (SystemClock().Now() > deadline) return false;
      SystemClock().SleepFor(milliseconds(1));
    }
    return true;
  }

  // Who said a line, and how often all of them did.
  std::optional<int> WhoSaid(const std::string& line) {
    for (const auto& [id, server] : servers_) {
      if (server->said().find(line + "\n") != std::string::npos) return id;
    }
    return std::nullopt;
  }
  int TimesSaid(const std::string& line) {
    int count = 0;
    for (const auto& [id, server] : servers_) {
      const std::string said = server->said();
      for (auto at = said.find(line + "\n"); at != std::string::npos;
           at = said.find(line + "\n", at + 1)) {
        ++count;
      }
    }
    return count;
  }
  bool AwaitSaid(const std::string& line) {
    return Eventually([&] { return WhoSaid(line).has_value(); });
  }

  const std::string url_;
  testing::TestRegistry registry_;
  IoThreads io_;
  ThreadPool pool_;
  const std::unique_ptr<Storage> storage_;
  std::unique_ptr<registry::RegistryAgent> agent_;
  global::GlobalService global_;
  testing::FakeLinkd linkd_;
  std::map<int, std::unique_ptr<ServerProcess>> servers_;
};

TEST_F(LostServerTest, ItsLoginsEndOnceAndNobodyElses) {
  std::map<int, std::set<RoleId>> roles_at;
  for (RoleId role = 1; role <= kRoles; ++role) {
    ASSERT_EQ(LogIn(role), 0) << role;
    const std::string line = fmt::format("login {} v1", role);
    ASSERT_TRUE(AwaitSaid(line));
    roles_at[*WhoSaid(line)].insert(role);
  }
  const int victim = 1;
  std::set<RoleId> lost = roles_at[victim];
  ASSERT_GE(lost.size(), 2);

  servers_[victim]->Kill();
  servers_.erase(victim);
  // One does not wait for that: the old login ends before the new one.
  const RoleId back = *lost.begin();
  lost.erase(back);
  ASSERT_TRUE(LogInPatiently(back));

  for (const RoleId role : lost) {
    EXPECT_TRUE(AwaitSaid(fmt::format("logout {} v1", role))) << role;
  }
  // Whoever is asked next finds nothing to do, and a server that is back neither.
  Start(victim);
  ASSERT_TRUE(linkd_.AwaitServers(kModule, kServers));
  for (RoleId role = 1; role <= kRoles; ++role) {
    const bool ended = lost.contains(role) || role == back;
    EXPECT_EQ(TimesSaid(fmt::format("logout {} v1", role)), ended ? 1 : 0) << role;
  }
  EXPECT_EQ(TimesSaid(fmt::format("logout {} v2", back)), 0);
  for (const RoleId role : lost) {
    EXPECT_EQ(LogIn(role), 0);
    EXPECT_TRUE(AwaitSaid(fmt::format("login {} v2", role)));
  }
}

// Each is asked once, before the lease of the lost server is over.
class LostServerAskedOnceTest : public LostServerTest {
 protected:
  LostServerAskedOnceTest() : LostServerTest(std::chrono::hours(1)) {}
};

TEST_F(LostServerAskedOnceTest, ARefusedTakeOverGoesOnByItself) {
  std::set<RoleId> lost;
  for (RoleId role = 1; role <= kRoles; ++role) {
    ASSERT_EQ(LogIn(role), 0) << role;
    const std::string line = fmt::format("login {} v1", role);
    ASSERT_TRUE(AwaitSaid(line));
    if (*WhoSaid(line) == 1) lost.insert(role);
  }
  ASSERT_FALSE(lost.empty());

  servers_[1]->Kill();
  servers_.erase(1);

  for (const RoleId role : lost) {
    EXPECT_TRUE(AwaitSaid(fmt::format("logout {} v1", role))) << role;
    EXPECT_EQ(TimesSaid(fmt::format("logout {} v1", role)), 1) << role;
  }
}

// One of them may be asked to take over from the other.
TEST_F(LostServerTest, TwoAtOnce) {
  std::set<RoleId> lost;
  std::set<RoleId> rest;
  for (RoleId role = 1; role <= kRoles; ++role) {
    ASSERT_EQ(LogIn(role), 0) << role;
    const std::string line = fmt::format("login {} v1", role);
    ASSERT_TRUE(AwaitSaid(line));
    (*WhoSaid(line) > 2 ? rest : lost).insert(role);
  }
  ASSERT_FALSE(lost.empty());
  ASSERT_FALSE(rest.empty());

  for (const int id : {1, 2}) {
    servers_[id]->Kill();
    servers_.erase(id);
  }

  for (const RoleId role : lost) {
    EXPECT_TRUE(AwaitSaid(fmt::format("logout {} v1", role))) << role;
    EXPECT_EQ(TimesSaid(fmt::format("logout {} v1", role)), 1) << role;
  }
  for (const RoleId role : rest) EXPECT_EQ(TimesSaid(fmt::format("logout {} v1", role)), 0) << role;
}

}  // namespace
}  // namespace zeze::arch
