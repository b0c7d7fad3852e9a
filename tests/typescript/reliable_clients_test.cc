// Reliable notifies from servers to both clients, through real gateways, while connections are cut,
// and gateways and servers are killed: every notify is seen once, in order.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/client/client.h"
#include "zeze/client/login_as.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/binary.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Zeze::Builtin::LinkdAuth::Auth;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;

constexpr int kServers = 5;  // Two are few: Global evicts nobody if most are silent.
constexpr int kGateways = 2;
constexpr int kCxxRoles = 3;
constexpr int kRoles = 6;
constexpr seconds kPatience(180);

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = SystemClock().Now() + kPatience;
  while (!condition()) {
    if (SystemClock().Now() > deadline) return false;
    SystemClock().SleepFor(milliseconds(20));
  }
  return true;
}

// What one role has seen.
struct Seen {
  std::int64_t last = 0;
  int fresh = 0;
  int resumed = 0;
  std::string wrong = {};  // The first thing that must not be.

  void Add(const std::string& what) {
    if (what == "fresh") {
      ++fresh;
    } else if (what == "resumed") {
      ++resumed;
    } else if (what.starts_with("kicked")) {
      Wrong(what);
    } else {
      const std::int64_t number = std::stoll(what);
      if (number != last + 1) Wrong(fmt::format("{} after {}", number, last));
      last = number;
    }
  }
  void Wrong(std::string text) {
    if (wrong.empty()) wrong = std::move(text);
  }
};

class ReliableClientsTest : public ::testing::Test {
 protected:
  ReliableClientsTest()
      : url_(SharedPostgresServer().NewDatabase()),
        io_({.name = "test-io"}),
        pool_({.name = "blocking", .thread_count = 4}),
        storage_(OpenStorage({.url = url_}).value()),
        global_(io_, *storage_->fence(), pool_,
                {.acceptor = {.ip = "127.0.0.1", .port = 0}, .machine = {}, .holder = "test"}) {
    std::string pattern = std::filesystem::temp_directory_path() / "zeze_reliable_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    const Result<void> started = global_.Start();
    EXPECT_TRUE(started.ok());
    for (int gateway = 0; gateway < kGateways; ++gateway) {
      WriteConfiguration(gateway);
      StartGateway(gateway);
    }
    for (int server = 1; server <= kServers; ++server) StartServer(server);
    StartClients();
  }
  ~ReliableClientsTest() override {
    clients_.clear();
    node_.reset();
    servers_.clear();
    gateways_.clear();
    global_.Stop();
    std::filesystem::remove_all(directory_);
  }

  // The same ports in each life.
  void WriteConfiguration(int gateway) {
    zeze::testing::RawClient port;
    zeze::testing::RawClient web_port;
    ports_.push_back(port.Bind());
    web_ports_.push_back(web_port.Bind());
    std::ofstream(Configuration(gateway)) << fmt::format(
        R"(<zeze>
  <ServiceConf Name="LinkdService">
    <Acceptor Ip="127.0.0.1" Port="{}"/>
    <Websocket Path="/game" Ip="127.0.0.1" Port="{}"/>
  </ServiceConf>
  <ServiceConf Name="ProviderService"><Acceptor Ip="127.0.0.1" Port="0"/></ServiceConf>
  <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
    <Connector HostNameOrAddress="127.0.0.1" Port="{}"/>
  </ServiceConf>
  <CustomizeConf Name="Zeze.Linkd" SidFile="{}/{}.sids" ExemptAddresses="127.0.0.1"/>
</zeze>
)",
        ports_.back(), web_ports_.back(), registry_.Connector().port, directory_.string(), gateway);
  }
  std::string Configuration(int gateway) const {
    return (directory_ / fmt::format("{}.xml", gateway)).string();
  }

  void StartGateway(int gateway) {
    gateways_[gateway] = std::make_unique<ServerProcess>(
        ServerProcessOptions{.command = {ZEZE_BINARY, "linkd", "--insecure-accounts", "--config",
                                         Configuration(gateway)}});
    ASSERT_TRUE(gateways_[gateway]->AwaitLine("clients on port", kPatience))
        << gateways_[gateway]->said();
  }
  void StartServer(int id) {
    servers_[id] = std::make_unique<ServerProcess>(
        ServerProcessOptions{.command = {ZEZE_ONLINE_SERVER, "--id", std::to_string(id), "--url",
                                         url_, "--global", std::to_string(global_.address().port()),
                                         "--registry", std::to_string(registry_.Connector().port),
                                         "--notify", std::to_string(kRoles)}});
    ASSERT_TRUE(servers_[id]->AwaitLine("ready", kPatience)) << servers_[id]->said();
  }
  void StartClients() {
    std::vector<ClientOptions::Gateway> gateways;
    for (const std::uint16_t port : ports_) gateways.push_back({"127.0.0.1", port});
    for (int role = 1; role <= kCxxRoles; ++role) {
      auto client = std::make_unique<Client>(
          io_,
          ClientOptions{.gateways = gateways,
                        .authenticate = AuthenticateBy<Auth>([role] {
                          return Auth::Argument{.token = Binary{fmt::format("account {}", role)}};
                        }),
                        .login = RoleLogin{.role_id = role},
                        .first_delay = milliseconds(100),
                        .delay_max = seconds(1)});
      client->OnReliable<ReportError>(
          [this, role](const BReportError& notify) { Note(role, std::to_string(notify.code)); });
      client->OnLogin([this, role](LoginOutcome outcome) {
        Note(role, outcome == LoginOutcome::kFresh ? "fresh" : "resumed");
      });
      client->OnKicked([this, role](const BReportError& kick) {
        Note(role, fmt::format("kicked {} {}", kick.code, kick.desc));
      });
      ASSERT_TRUE(client->Start().ok());
      clients_.push_back(std::move(client));
    }
    std::vector<std::string> command = {ZEZE_NODE, ZEZE_RELIABLE_CLIENT, ZEZE_TYPESCRIPT_PACKAGE,
                                        std::to_string(kCxxRoles + 1), std::to_string(kRoles)};
    for (const std::uint16_t port : web_ports_) {
      command.push_back(fmt::format("ws://127.0.0.1:{}/game", port));
    }
    node_ = std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
  }

  void CutConnections() {
    for (const auto& client : clients_) {
      if (const ConnectionPtr connection = client->connection()) connection->Close("cut");
    }
    node_->Signal(SIGUSR2);
  }

  void Note(int role, const std::string& what) {
    MutexLock lock(mutex_);
    seen_[role].Add(what);
  }
  Seen SeenBy(int role) {
    if (role <= kCxxRoles) {
      MutexLock lock(mutex_);
      return seen_[role];
    }
    Seen seen;
    std::istringstream lines(node_->said());
    std::string line;
    while (std::getline(lines, line)) {
      const std::string prefix = fmt::format("role {} ", role);
      // The last line may not be whole yet.
      if (line.starts_with(prefix) && !lines.eof()) seen.Add(line.substr(prefix.size()));
    }
    return seen;
  }
  // Everybody sees something new.
  void ExpectProgress(const std::string& after) {
    for (int role = 1; role <= kRoles; ++role) {
      const std::int64_t before = SeenBy(role).last;
      ASSERT_TRUE(Eventually([&] { return SeenBy(role).last >= before + 10; }))
          << "role " << role << " after " << after << ": " << before << "\n"
          << node_->said().substr(std::max<std::size_t>(node_->said().size(), 2000) - 2000);
    }
  }

  const std::string url_;
  testing::TestRegistry registry_;
  IoThreads io_;
  ThreadPool pool_;
  const std::unique_ptr<Storage> storage_;
  global::GlobalService global_;
  std::filesystem::path directory_;
  std::vector<std::uint16_t> ports_;
  std::vector<std::uint16_t> web_ports_;
  std::map<int, std::unique_ptr<ServerProcess>> gateways_;
  std::map<int, std::unique_ptr<ServerProcess>> servers_;
  Mutex mutex_;
  std::map<int, Seen> seen_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<ServerProcess> node_;
};

TEST_F(ReliableClientsTest, EveryNotifyIsSeenOnceAndInOrderWhateverIsKilled) {
  ExpectProgress("the start");
  for (int round = 0; round < 3; ++round) {
    CutConnections();
    ExpectProgress("a cut");
  }
  for (int gateway = 0; gateway < kGateways; ++gateway) {
    gateways_[gateway]->Kill();
    ExpectProgress("a killed gateway");
    StartGateway(gateway);
  }
  for (int server = 1; server <= 2; ++server) {
    servers_[server]->Kill();
    ExpectProgress("a killed server");
    StartServer(server);
  }
  servers_[3]->Stop();
  ExpectProgress("a stopped server");
  StartServer(3);
  // Everything together.
  servers_[4]->Kill();
  gateways_[0]->Kill();
  CutConnections();
  ExpectProgress("everything together");
  StartServer(4);
  StartGateway(0);
  ExpectProgress("the end of it");

  // All that was sent has come.
  for (const auto& [id, server] : servers_) server->Signal(SIGUSR1);
  const std::string last = fmt::format("total {} ", kRoles);
  for (const auto& [id, server] : servers_) ASSERT_TRUE(server->AwaitLine(last, kPatience));
  // Each may have stopped before others sent more; the last one to say it is right.
  servers_[1]->Signal(SIGUSR1);
  std::map<int, std::int64_t> totals;
  ASSERT_TRUE(Eventually([&] {
    const std::string said = servers_[1]->said();
    return said.find(last, said.find(last) + 1) != std::string::npos && said.ends_with('\n');
  }));
  std::istringstream lines(servers_[1]->said());
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("total ")) continue;
    std::istringstream words(line.substr(6));
    int role = 0;
    std::int64_t total = 0;
    words >> role >> total;
    totals[role] = total;
  }
  for (int role = 1; role <= kRoles; ++role) {
    EXPECT_TRUE(Eventually([&] { return SeenBy(role).last >= totals[role]; })) << role;
    const Seen seen = SeenBy(role);
    EXPECT_EQ(seen.wrong, "") << role;
    EXPECT_EQ(seen.last, totals[role]) << role;
    EXPECT_EQ(seen.fresh, 1) << role;
    fmt::print("role {} ({}): {} notifies, {} resumed, {} fresh logins\n", role,
               role <= kCxxRoles ? "C++" : "TypeScript", seen.last, seen.resumed, seen.fresh);
  }
}

}  // namespace
}  // namespace zeze::arch
