// RedirectCluster: some servers in this process, each with its application, over real connections
// and a real service manager.
//
//   RedirectCluster cluster;
//   RedirectServer& one = cluster.Add(1);
//   cluster.Add(2);
//   cluster.AwaitReady();

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/serialize/binary.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze::arch::testing {

// Far beyond what anything takes: a test that waits for it has failed.
inline constexpr std::chrono::seconds kPatience{30};

// A door that methods wait at until the test opens it.
class Door {
 public:
  void Close() { Set(false); }
  void Open() { Set(true); }
  void Pass() {
    MutexLock lock(mutex_);
    ++arrived_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  bool AwaitArrived(int count) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (arrived_ < count) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  void Set(bool open) {
    MutexLock lock(mutex_);
    open_ = open;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  bool open_ ZEZE_GUARDED_BY(mutex_) = true;
  int arrived_ ZEZE_GUARDED_BY(mutex_) = 0;
};

struct Place {
  std::int32_t server_id = 0;
  std::string text = {};

  static constexpr auto RedirectFields() { return std::tuple(&Place::server_id, &Place::text); }
  bool operator==(const Place&) const = default;
};

constexpr TableDescriptor kAccounts{.id = 1, .name = "test_Redirect_tAccount"};

// A module with methods of all kinds.
class ModuleBank final : public Module {
 public:
  static constexpr std::int32_t kModuleId = 77;
  static constexpr std::string_view kFullName = "Test.Bank";
  static constexpr std::int64_t kNoMoney = -1000;
  static constexpr std::size_t kLarge = 300'000;

  explicit ModuleBank(std::int32_t server_id) : server_id_(server_id) {}

  std::int32_t id() const override { return kModuleId; }
  std::string_view name() const override { return kFullName; }
  std::vector<TableBase*> Tables() override { return {&accounts}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

  // The new balance.
  std::int64_t Deposit(Transaction& tx, std::int32_t hash, std::int64_t id, std::int64_t amount,
                       std::int64_t& result) {
    auto account = accounts.GetOrAdd(tx, id);
    account->balance += amount;
    if (account->balance < 0) return kNoMoney;
    result = account->balance;
    tx.AfterCommit([this, hash, id] { Note(hash, id); });
    return result_code::kSuccess;
  }
  void Where(std::int32_t, const std::string& text, Place& result) {
    result = {.server_id = server_id_, .text = text};
  }
  void Slow(std::int32_t hash, std::int64_t number) {
    door.Pass();
    Note(hash, number);
  }
  // Only one group waits at the door.
  void SlowIn(std::int32_t group, std::int32_t slow_group, std::int32_t& result) {
    if (group == slow_group) door.Pass();
    result = server_id_;
  }
  std::int64_t Large(std::int32_t group, std::string& result) {
    result.assign(kLarge, static_cast<char>('a' + group % 26));
    return 0;
  }
  std::int64_t Fails(Transaction& tx, std::int32_t, std::int64_t id, std::string& result) {
    accounts.GetOrAdd(tx, id)->balance += 1;
    result = "never seen";
    return kNoMoney;
  }
  void Throws(std::int32_t) { throw std::runtime_error("as the test wants it"); }
  // NOLINTNEXTLINE(readability-make-member-function-const): as users write them.
  std::int64_t GroupName(Transaction&, std::int32_t group, const std::string& prefix,
                         std::string& result) {
    result = prefix + std::to_string(group) + "@" + std::to_string(server_id_);
    return 0;
  }
  // How many of one hash ran at a time, at most.
  void Overlap(std::int32_t hash, std::int32_t& result) {
    std::atomic<int>& running = running_[static_cast<std::uint32_t>(hash) % 16];
    const int now = ++running;
    std::this_thread::yield();
    result = std::max(now, running.load());
    --running;
  }
  void Undeclared(std::int32_t) {}

  using Redirects = RedirectMethods<
      RedirectMethod<&ModuleBank::Deposit, "deposit">, RedirectMethod<&ModuleBank::Where, "where">,
      RedirectMethod<&ModuleBank::Slow, "slow">, RedirectMethod<&ModuleBank::Large, "large">,
      RedirectMethod<&ModuleBank::Fails, "fails">, RedirectMethod<&ModuleBank::Throws, "throws">,
      RedirectMethod<&ModuleBank::Overlap, "overlap">,
      RedirectMethod<&ModuleBank::SlowIn, "slowIn">,
      RedirectMethod<&ModuleBank::GroupName, "groupName", RedirectMethodOptions{.version = 3}>>;

  std::int64_t BalanceOf(std::int64_t id) {
    const auto account = accounts.ReadCopy(id);
    return account.ok() && account.value().has_value() ? account.value()->balance : 0;
  }
  void Note(std::int32_t hash, std::int64_t number) {
    MutexLock lock(mutex_);
    story_.emplace_back(hash, number);
    changed_.NotifyAll();
  }
  // What ran here, in its order.
  using Story = std::vector<std::pair<std::int32_t, std::int64_t>>;
  Story AwaitStory(std::size_t length) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (story_.size() < length) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) break;
    }
    return story_;
  }

  Table<std::int64_t, zeze::testing::BAccount> accounts{kAccounts};
  Door door;

 private:
  const std::int32_t server_id_;
  std::array<std::atomic<int>, 16> running_ = {};
  Mutex mutex_;
  CondVar changed_;
  Story story_ ZEZE_GUARDED_BY(mutex_);
};

// One server. Ends as a crash would end it, unless it was stopped.
class RedirectServer {
 public:
  RedirectServer(std::int32_t server_id, const registry::RegistryAgentOptions& agent_options,
                 RedirectOptions options, bool only_calls = false)
      : bank(server_id),
        application(OpenApplication(server_id)),
        io({.name = "io"}),
        callbacks({.name = "callbacks", .thread_count = 1}),
        agent(io, callbacks, agent_options) {
    application->AddModule(bank);
    EXPECT_TRUE(application->Start().ok());
    EXPECT_TRUE(agent.Start().ok());
    redirect.emplace(*application, io, agent, std::move(options));
    if (only_calls) {
      redirect->AddRemoteModule<ModuleBank>();
    } else {
      redirect->AddModule(bank);
    }
  }
  ~RedirectServer() {
    bank.door.Open();
    redirect.reset();
    agent.Abandon();
    EXPECT_TRUE(application->Stop().ok());
    io.Stop();
  }

  ModuleBank bank;
  std::unique_ptr<Application> application;
  IoThreads io;
  ThreadPool callbacks;
  registry::RegistryAgent agent;
  std::optional<Redirect> redirect;

 private:
  static std::unique_ptr<Application> OpenApplication(std::int32_t server_id) {
    auto opened = Application::Open("bank", {.server_id = server_id,
                                             .storage = {.url = "memory:"},
                                             .worker_threads = 8,
                                             .liveness = {.period = {}}});
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }
};

class RedirectCluster {
 public:
  // Servers 1, 2 ... up to that id, connected.
  static std::unique_ptr<RedirectCluster> Of(std::int32_t last_id) {
    auto cluster = std::make_unique<RedirectCluster>();
    for (std::int32_t id = 1; id <= last_id; ++id) cluster->Add(id);
    cluster->AwaitReady();
    return cluster;
  }

  RedirectCluster()
      : pool_({.name = "registry", .thread_count = 2}),
        io_({.name = "registry-io"}),
        storage_(OpenMemoryStorage()) {
    registry::RegistryServiceOptions options;
    options.acceptors = {{.ip = "127.0.0.1", .port = 0}};
    registry_ = std::make_unique<registry::RegistryService>(io_, *storage_, pool_, options);
    EXPECT_TRUE(registry_->Start().ok());
  }
  ~RedirectCluster() {
    servers_.clear();
    registry_->Stop();
  }

  static RedirectOptions Options() {
    RedirectOptions options;
    options.name_prefix = "Test.Server.Module#";
    options.direct.ip = "127.0.0.1";
    options.direct.reconnect_first = std::chrono::milliseconds(20);
    options.direct.reconnect_max = std::chrono::milliseconds(50);
    return options;
  }
  registry::RegistryAgentOptions AgentOptions() const {
    registry::RegistryAgentOptions options;
    options.connector = {.host = "127.0.0.1",
                         .port = registry_->address().port(),
                         .first_delay = std::chrono::milliseconds(20),
                         .delay_max = std::chrono::milliseconds(50)};
    options.hold = std::chrono::milliseconds(500);
    return options;
  }

  // Not started yet.
  RedirectServer& Prepare(std::int32_t server_id, RedirectOptions options = Options(),
                          bool only_calls = false) {
    auto& server = servers_[server_id];
    server =
        std::make_unique<RedirectServer>(server_id, AgentOptions(), std::move(options), only_calls);
    return *server;
  }
  RedirectServer& Add(std::int32_t server_id, RedirectOptions options = Options()) {
    RedirectServer& server = Prepare(server_id, std::move(options));
    const Result<void> started = server.redirect->Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
    return server;
  }
  RedirectServer& at(std::int32_t server_id) { return *servers_.at(server_id); }
  Redirect& redirect(std::int32_t server_id) { return *at(server_id).redirect; }
  ModuleBank& bank(std::int32_t server_id) { return at(server_id).bank; }

  // A hash that belongs to a server, as server 1 sees it.
  std::int32_t HashOf(std::int32_t server_id, std::uint32_t level = 0) {
    for (std::int32_t hash = 0; hash < 100'000; ++hash) {
      if (redirect(1).OwnerOf(bank(1), {hash, level}) == server_id) return hash;
    }
    ADD_FAILURE() << "no hash belongs to server " << server_id;
    return 0;
  }
  // Between two servers, as a broken network does.
  void Cut(std::int32_t from, std::int32_t to) {
    const ConnectionPtr connection = redirect(from).links().Find(to);
    ASSERT_NE(nullptr, connection);
    connection->Close("the test cuts it");
  }
  void Kill(std::int32_t server_id) { servers_.erase(server_id); }

  // Until every server knows and is connected to all the others.
  void AwaitReady() {
    for (auto& [id, server] : servers_) {
      const Result<void> ready = server->redirect->AwaitReady(kPatience);
      EXPECT_TRUE(ready.ok()) << ready.error().message();
      EXPECT_TRUE(AwaitRing(*server, servers_.size())) << "server " << id;
    }
    for (auto& [id, server] : servers_) {
      EXPECT_TRUE(
          server->redirect->links().AwaitConnected(kPatience, {"Test.Server.Module#77"}).ok());
    }
  }
  static bool AwaitRing(RedirectServer& server, std::size_t size) {
    return AwaitTrue([&server, size] {
      const auto ring = server.redirect->links().Ring("Test.Server.Module#77");
      return ring != nullptr && ring->identities().size() == size;
    });
  }

  // For what nobody tells: looks again and again.
  static bool AwaitTrue(const std::function<bool()>& condition) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (!condition()) {
      if (SystemClock().Now() > deadline) return false;
      SystemClock().SleepFor(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  ThreadPool pool_;
  IoThreads io_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<registry::RegistryService> registry_;
  std::map<std::int32_t, std::unique_ptr<RedirectServer>> servers_;
};

}  // namespace zeze::arch::testing
