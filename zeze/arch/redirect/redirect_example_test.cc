// The example of docs/redirect.md, whole: two servers, a wallet that is cut into groups, and
// payments that arrive exactly once although connections break.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze::arch {
namespace {

using zeze::testing::BAccount;

constexpr TableDescriptor kPurses{.id = 1, .name = "example_Wallet_tPurse"};
constexpr TableDescriptor kPaid{.id = 2, .name = "example_Wallet_tPaid"};

// The generator writes a base class with most of this.
class ModuleWallet final : public Module {
 public:
  static constexpr std::uint32_t kLevel = 128;

  std::int32_t id() const override { return 20; }
  std::string_view name() const override { return "example.Wallet"; }
  std::vector<TableBase*> Tables() override { return {&purses_, &paid_}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

  static RedirectHash HashOf(std::int64_t role) {
    return {static_cast<std::int32_t>(RoutingHash(role)), kLevel};
  }

  // However often it is called with one request id, it pays once.
  std::int64_t Pay(Transaction& tx, std::int32_t, const std::string& request_id, std::int64_t role,
                   std::int64_t amount) {
    if (paid_.Get(tx, request_id)) return 0;
    paid_.Put(tx, request_id, BAccount{.balance = amount, .owner = {}});
    purses_.GetOrAdd(tx, role)->balance += amount;
    return 0;
  }
  std::int64_t Gold(Transaction& tx, std::int32_t, std::int64_t role, std::int64_t& result) {
    if (const auto purse = purses_.Get(tx, role)) result = purse->balance;
    return 0;
  }

  using Redirects = RedirectMethods<RedirectMethod<&ModuleWallet::Pay, "pay">,
                                    RedirectMethod<&ModuleWallet::Gold, "gold">>;

 private:
  Table<std::int64_t, BAccount> purses_{kPurses};
  Table<std::string, BAccount> paid_{kPaid};
};

// A server process.
class Server {
 public:
  Server(std::int32_t server_id, std::uint16_t registry_port)
      : application_(std::move(Application::Open("wallet", {.server_id = server_id,
                                                            .storage = {.url = "memory:"},
                                                            .worker_threads = 4}))
                         .value()),
        agent_(io_, callbacks_, {.connector = {.host = "127.0.0.1", .port = registry_port}}),
        redirect_(
            *application_, io_, agent_,
            {.name_prefix = "Example.Server.Module#",
             .direct = {.ip = "127.0.0.1", .reconnect_first = std::chrono::milliseconds(5)}}) {
    application_->AddModule(wallet_);
    redirect_.AddModule(wallet_);
  }
  bool Start() {
    return application_->Start().ok() && agent_.Start().ok() && redirect_.Start().ok();
  }
  ~Server() {
    redirect_.Stop();
    agent_.Stop();
    EXPECT_TRUE(application_->Stop().ok());
  }

  Redirect& redirect() { return redirect_; }

 private:
  ModuleWallet wallet_;  // Outlives the application.
  std::unique_ptr<Application> application_;
  IoThreads io_{{}};
  ThreadPool callbacks_{{.name = "callbacks", .thread_count = 1}};
  registry::RegistryAgent agent_;
  Redirect redirect_;
};

TEST(RedirectExample, PaymentsArriveExactlyOnceAlthoughConnectionsBreak) {
  ThreadPool pool({.name = "registry", .thread_count = 2});
  IoThreads io({});
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  registry::RegistryServiceOptions options;
  options.acceptors = {{.ip = "127.0.0.1", .port = 0}};
  registry::RegistryService registry(io, *storage, pool, options);
  ASSERT_TRUE(registry.Start().ok());
  {
    Server one(1, registry.address().port());
    Server two(2, registry.address().port());
    ASSERT_TRUE(one.Start());
    ASSERT_TRUE(two.Start());
    ASSERT_TRUE(one.redirect().AwaitReady(std::chrono::seconds(30)).ok());
    ASSERT_TRUE(two.redirect().AwaitReady(std::chrono::seconds(30)).ok());

    constexpr std::int64_t kPayments = 300;
    for (std::int64_t i = 0; i < kPayments; ++i) {
      const std::int64_t role = i % 10;
      const std::string request_id = "payment-" + std::to_string(i);
      for (;;) {
        auto call = one.redirect().ToHash<&ModuleWallet::Pay>(ModuleWallet::HashOf(role),
                                                              request_id, role, 5);
        if (i % 7 == 0) {
          // Begins, and the connection breaks before or after it has run.
          std::move(call).Send();
          if (const ConnectionPtr connection = two.redirect().links().Find(1)) {
            connection->Close("the example breaks it");
          }
          call = one.redirect().ToHash<&ModuleWallet::Pay>(ModuleWallet::HashOf(role), request_id,
                                                           role, 5);
        }
        if (std::move(call).Wait().outcome == RedirectOutcome::kDone) break;
      }
    }
    for (std::int64_t role = 0; role < 10; ++role) {
      const auto gold =
          two.redirect().ToHash<&ModuleWallet::Gold>(ModuleWallet::HashOf(role), role).Wait();
      EXPECT_TRUE(gold.ok());
      EXPECT_EQ(kPayments / 10 * 5, gold.result);
    }
  }
  registry.Stop();
}

}  // namespace
}  // namespace zeze::arch
