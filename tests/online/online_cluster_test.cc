// Logins on servers with caches of their own, over one database and one Global, behind a gateway on
// real sockets.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/redirect_sender.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/provider/testing/fake_linkd.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

namespace game = Zeze::Builtin::Game::Online;
using ::testing::ElementsAre;
using Zeze::Builtin::LinkdBase::ReportError;
using Zeze::Builtin::Online::BNotifyQueue;

constexpr std::int32_t kModule = 11013;
constexpr RoleId kRole = 7;
constexpr std::string_view kPrefix = "Game.Server.Module#";
constexpr std::chrono::seconds kLease(30);
// What has happened to each role, written in the transactions in which it happened.
constexpr TableDescriptor kHistory{.id = 5, .name = "test_history"};

// Something that happens, and can be waited for.
class Event {
 public:
  void Happen() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  int count() const {
    MutexLock lock(mutex_);
    return count_;
  }
  bool Await(int count) {
    const auto deadline = SystemClock().Now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (count_ < count) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int count_ ZEZE_GUARDED_BY(mutex_) = 0;
};

class Server {
 public:
  Server(testing::TestRegistry& registry, const std::string& url, std::uint16_t global_port,
         std::int32_t server_id, OnlineOptions options)
      : io_({.name = "server-io"}), agent_(registry.NewAgent()), online(options) {
    auto opened = Application::Open(fmt::format("server {}", server_id),
                                    {.server_id = server_id,
                                     .storage = {.url = url},
                                     .globals = {{.host = "127.0.0.1", .port = global_port}},
                                     .lease = kLease,
                                     .worker_threads = 8,
                                     .checkpoint_period = std::chrono::milliseconds(200),
                                     .liveness = {.period = std::chrono::seconds(0)}});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    application = std::move(opened).value();
    Prepare();
    application->AddModule(online);
    application->AddTable(history);
    const Result<void> started = application->Start();
    EXPECT_TRUE(started.ok()) << started.error().message();

    redirect_ = std::make_unique<Redirect>(
        *application, io_, *agent_,
        RedirectOptions{.name_prefix = std::string(kPrefix),
                        .direct = {.server_id = server_id, .ip = "127.0.0.1"},
                        .register_modules = false});
    direct_ = std::make_unique<RedirectSender>(*redirect_);
    direct_->Serve(online);
    const Result<void> listening = redirect_->Start();
    EXPECT_TRUE(listening.ok()) << listening.error().message();

    ProviderOptions provider_options{.name_prefix = std::string(kPrefix),
                                     .direct_ip = redirect_->links().ip(),
                                     .direct_port = redirect_->links().port()};
    provider_options.link_connector.first_delay = std::chrono::milliseconds(20);
    provider_options.link_connector.delay_max = std::chrono::milliseconds(50);
    provider_ = std::make_unique<Provider>(*application, io_, *agent_, provider_options);
    provider_->AddModule(online);
    provider_->OnLinkBroken(
        [this](const LinkAddress& link, const auto&) { online.LinkBroken(link); });
    const Result<void> offered = provider_->Start(false);
    EXPECT_TRUE(offered.ok()) << offered.error().message();
    online.Connect(provider_->links(), direct_.get());
    provider_->SetReady(true);
  }
  ~Server() {
    provider_->Stop();
    redirect_->Stop();
    const Result<void> stopped = application->Stop();
    EXPECT_TRUE(stopped.ok());
    agent_->Stop();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  NetAddress direct_address() const {
    return NetAddress::FromText(redirect_->links().ip(), redirect_->links().port()).value();
  }
  bool AwaitPeers() { return redirect_->AwaitReady(std::chrono::seconds(20)).ok(); }

  std::optional<Login<RoleId>> Find(RoleId role) {
    std::optional<Login<RoleId>> found;
    EXPECT_EQ(application->Call("find",
                                [&](Transaction& tx) {
                                  found = online.logins().Find(tx, role);
                                  return 0;
                                }),
              0);
    return found;
  }

 private:
  void Prepare() {
    const auto write = [this](std::string what) {
      return [this, what](Transaction& tx, const Login<RoleId>& login) -> std::int64_t {
        history.GetOrAdd(tx, login.key)
            ->Frames.PushBack(Binary{fmt::format("{} {}", what, login.version)});
        return 0;
      };
    };
    online.logins().On(LoginChange::kLocalRemoved,
                       {.outside = [this](const auto&) { local_removed.Happen(); }});
    online.logins().OnTransmit(
        "greet", [this](Transaction& tx, RoleId sender, RoleId, std::string_view text) {
          EXPECT_EQ(sender, 8);
          EXPECT_EQ(text, "hi");
          tx.AfterCommit([this] { greeted.Happen(); });
          return 0;
        });
    online.logins().On(LoginChange::kLogin, {.in_transaction = write("login")});
    online.logins().On(LoginChange::kReLogin, {.in_transaction = write("login")});
    online.logins().On(LoginChange::kLogout, {.in_transaction = write("logout")});
    online.logins().On(LoginChange::kLogin,
                       {.in_transaction = [this](Transaction& tx, const auto& login) {
                         online.logins().Listen(tx, login.key, "mail");
                         online.logins().SendAfterCommit<ReportError>(tx, login.key, {.code = 1});
                         return 0;
                       }});
  }

  IoThreads io_;
  std::unique_ptr<registry::RegistryAgent> agent_;

 public:
  Event local_removed;
  Event greeted;
  RoleOnline online;
  Table<RoleId, BNotifyQueue> history{kHistory};
  std::unique_ptr<Application> application;

 private:
  std::unique_ptr<Redirect> redirect_;
  std::unique_ptr<RedirectSender> direct_;
  std::unique_ptr<Provider> provider_;
};

class OnlineClusterTest : public ::testing::Test {
 protected:
  OnlineClusterTest()
      : url_(SharedPostgresServer().NewDatabase()),
        io_({.name = "test-io"}),
        pool_({.name = "blocking", .thread_count = 4}),
        storage_(OpenStorage({.url = url_}).value()),
        agent_(registry_.NewAgent()) {
    global_ = std::make_unique<global::GlobalService>(
        io_, *storage_->fence(), pool_,
        global::GlobalServiceOptions{.acceptor = {.ip = "127.0.0.1", .port = 0},
                                     .machine = {.lease = {.duration = kLease}},
                                     .holder = "test"});
    const Result<void> started = global_->Start();
    EXPECT_TRUE(started.ok());
    linkd_ = std::make_unique<testing::FakeLinkd>(io_, agent_.get());
  }
  ~OnlineClusterTest() override {
    servers_.clear();
    linkd_.reset();
    agent_->Stop();
    global_->Stop();
  }

  void StartServers(int count, OnlineOptions options = {}) {
    for (int id = 1; id <= count; ++id) {
      servers_.push_back(
          std::make_unique<Server>(registry_, url_, global_->address().port(), id, options));
    }
    ASSERT_TRUE(linkd_->AwaitServers(kModule, static_cast<std::size_t>(count)));
    for (const auto& server : servers_) ASSERT_TRUE(server->AwaitPeers());
  }

  std::int64_t LogIn(std::int64_t sid, RoleId role = kRole) {
    return linkd_->Call<game::Login>(sid, {.RoleId = role}).result_code;
  }

  // "login 1, logout 1, login 2 ...": each login ends before the next begins; the last may be open.
  static void CheckHistory(const BNotifyQueue& history, bool may_be_open) {
    std::optional<std::int64_t> open;
    std::int64_t last = 0;
    for (const Binary& entry : history.Frames) {
      const auto space = entry.bytes.find(' ');
      const std::int64_t version = std::stoll(entry.bytes.substr(space));
      if (entry.bytes.starts_with("login")) {
        ASSERT_FALSE(open) << entry.bytes;
        ASSERT_GT(version, last);
        open = last = version;
      } else {
        ASSERT_EQ(open, version) << entry.bytes;
        open.reset();
      }
    }
    if (!may_be_open) {
      ASSERT_FALSE(open);
    }
  }

  const std::string url_;
  testing::TestRegistry registry_;
  IoThreads io_;
  ThreadPool pool_;
  const std::unique_ptr<Storage> storage_;
  std::unique_ptr<global::GlobalService> global_;
  std::unique_ptr<registry::RegistryAgent> agent_;
  std::unique_ptr<testing::FakeLinkd> linkd_;
  std::vector<std::unique_ptr<Server>> servers_;
};

// The protocols of what a client has got, in order.
std::vector<std::int32_t> ProtocolsOf(const testing::FakeLinkd::Client& client) {
  std::vector<std::int32_t> protocols;
  for (const std::string& whole : client.frames) {
    std::string_view stream = whole;
    protocols.push_back(TakeFrame(stream, whole.size()).value()->protocol_id);
  }
  return protocols;
}

TEST_F(OnlineClusterTest, AClientLivesThroughABrokenLinkAndAnotherServer) {
  StartServers(2);
  const std::int64_t first = linkd_->AddClient("ann");

  ASSERT_EQ(LogIn(first), 0);
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(first).frames.size() == 2; }));
  EXPECT_THAT(ProtocolsOf(linkd_->client(first)),
              ElementsAre(game::Login::kProtocolId, ReportError::kProtocolId));
  EXPECT_EQ(linkd_->client(first).state.context, "7");

  // From whichever server, wherever the client is.
  for (const auto& server : servers_) {
    ASSERT_EQ(server->application->Call("notify",
                                        [&](Transaction& tx) {
                                          return server->online.logins().SendReliable<ReportError>(
                                              tx, kRole, "mail", {.code = 5});
                                        }),
              0);
  }
  ASSERT_TRUE(
      linkd_->Await([&] { return linkd_->Received<game::SReliableNotify>(first).size() == 2; }));

  linkd_->CloseClient(first);
  const std::int64_t second = linkd_->AddClient("ann");  // The next one in turn: another server.
  EXPECT_EQ(linkd_->Call<game::ReLogin>(second, {.RoleId = kRole, .ReliableNotifyConfirmIndex = 1})
                .result_code,
            0);
  ASSERT_TRUE(
      linkd_->Await([&] { return linkd_->Received<game::SReliableNotify>(second).size() == 1; }));
  EXPECT_EQ(linkd_->Received<game::SReliableNotify>(second)[0].ReliableNotifyIndex, 1);
  EXPECT_EQ(linkd_->Call<game::ReliableNotifyConfirm>(second, {.ReliableNotifyConfirmIndex = 2})
                .result_code,
            0);
  EXPECT_EQ(linkd_->Call<game::Logout>(second, {}).result_code, 0);
  EXPECT_EQ(linkd_->Call<game::Logout>(second, {}).result_code, ModuleErrorCode(kModule, 7));
  EXPECT_FALSE(servers_[0]->Find(kRole));
}

TEST_F(OnlineClusterTest, ALoginOnAnotherServerKicksTheFirst) {
  StartServers(2);
  const std::int64_t first = linkd_->AddClient("ann");
  const std::int64_t second = linkd_->AddClient("ann");
  ASSERT_EQ(LogIn(first), 0);
  const std::int32_t was_at = servers_[0]->Find(kRole)->server_id;

  ASSERT_EQ(LogIn(second), 0);

  EXPECT_NE(servers_[0]->Find(kRole)->server_id, was_at);
  ASSERT_TRUE(linkd_->Await([&] { return linkd_->client(first).closed; }));
  ASSERT_EQ(linkd_->client(first).kicks.size(), 1);
  EXPECT_EQ(linkd_->client(first).kicks[0].code,
            Zeze::Builtin::Provider::BKick::ErrorDuplicateLogin);
  EXPECT_FALSE(linkd_->client(second).closed);
  // The other server has heard that its local data are of no use any more.
  Server& left = *servers_[static_cast<std::size_t>(was_at) - 1];
  EXPECT_TRUE(left.local_removed.Await(1));
}

// A server of Zeze 1.6 names the module differently.
TEST_F(OnlineClusterTest, RemoveLocalIsAnsweredUnderThePeersName) {
  namespace direct = Zeze::Builtin::ProviderDirect;
  StartServers(1);
  zeze::testing::RawClient peer(servers_[0]->direct_address());
  ASSERT_TRUE(peer.EndHandshake());
  ByteWriter parameters;
  parameters.WriteLong(kRole);
  parameters.WriteBytes("");
  const direct::BModuleRedirectArgument call{
      .ModuleId = kModule,
      .HashCode = 1,
      .MethodFullName = "Zeze.Game.Online:redirectRemoveLocal",
      .Params = Binary(parameters.Release()),
      .ServiceNamePrefix = std::string(kPrefix)};
  ASSERT_TRUE(peer.Send(zeze::testing::RawClient::RequestFrame<direct::ModuleRedirect>(7, call)));
  const std::optional<Frame> answer = peer.ReadFrame();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(0, answer->result_code);
}

TEST_F(OnlineClusterTest, AnActionIsTransmittedToTheServerOfItsTarget) {
  StartServers(2);
  ASSERT_EQ(LogIn(linkd_->AddClient("ann")), 0);
  const std::int32_t at = servers_[0]->Find(kRole)->server_id;
  Server& other = *servers_[static_cast<std::size_t>(2 - at)];

  EXPECT_EQ(other.online.logins().Transmit("greet", std::vector<RoleId>{kRole}, 8, "hi"), 1);

  Server& target = *servers_[static_cast<std::size_t>(at) - 1];
  EXPECT_TRUE(target.greeted.Await(1));
  EXPECT_EQ(other.greeted.count(), 0);
}

TEST_F(OnlineClusterTest, ManyClientsOfFewRolesLogInAtOnce) {
  StartServers(2, {.logout_delay = std::chrono::milliseconds(1)});
  constexpr int kThreads = 6;
  constexpr RoleId kRoles = 2;
  std::atomic<int> logged_in = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 15; ++round) {
        const std::int64_t sid = linkd_->AddClient("ann");
        if (LogIn(sid, (i + round) % kRoles) == 0) ++logged_in;
        if (round % 3 != 0) linkd_->CloseClient(sid);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_GT(logged_in, kThreads);
  std::int64_t last = 0;
  for (RoleId role = 0; role < kRoles; ++role) {
    const auto history = servers_[0]->history.ReadCopy(role);
    ASSERT_TRUE(history.ok());
    ASSERT_TRUE(history.value());
    CheckHistory(*history.value(), true);
    last += static_cast<std::int64_t>(history.value()->Frames.size());
  }
  EXPECT_GE(last, logged_in);

  // Everybody is out when the servers have stopped.
  servers_.erase(servers_.begin());
  Server& rest = *servers_.back();
  ASSERT_TRUE(rest.online.LogoutAllOf(2).ok());
  for (RoleId role = 0; role < kRoles; ++role) {
    const auto history = rest.history.ReadCopy(role);
    ASSERT_TRUE(history.ok() && history.value());
    CheckHistory(*history.value(), false);
  }
}

TEST_F(OnlineClusterTest, AGatewayConnectionThatBreaksAndComesBackLogsNobodyOut) {
  StartServers(1, {.suspect_period = std::chrono::milliseconds(20)});
  const std::int64_t sid = linkd_->AddClient("ann");
  ASSERT_EQ(LogIn(sid), 0);

  linkd_->CloseServers();
  ASSERT_TRUE(linkd_->AwaitServers(kModule, 1));
  EXPECT_EQ(servers_[0]->online.logins().Send<ReportError>(std::vector<RoleId>{kRole}, {}), 1);

  EXPECT_EQ(servers_[0]->Find(kRole)->state, LoginState::kLoggedIn);
  EXPECT_EQ(servers_[0]->Find(kRole)->version, 1);
}

}  // namespace
}  // namespace zeze::arch
