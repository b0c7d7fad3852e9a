// Gateways, servers with logins, and clients of both implementations in one cluster. Only with the
// Java peer: ./dev interop.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "tests/interop/interop_fixture.h"
#include "tests/interop/talk.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/client/client.h"
#include "zeze/client/login_as.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::interop {
namespace {

using Zeze::Builtin::LinkdAuth::Auth;
using Zeze::Builtin::LinkdBase::BReportError;

// A C++ client that is logged in as a role.
class Player {
 public:
  Player(IoThreads& io, int gateway, std::int64_t role)
      : role_(role),
        client_(io, {.gateways = {{"127.0.0.1", static_cast<std::uint16_t>(gateway)}},
                     .authenticate = AuthenticateBy<Auth>([role] {
                       Auth::Argument argument;
                       argument.token.bytes = fmt::format("account{}", role);
                       return argument;
                     }),
                     .login = RoleLogin{.role_id = role}}) {
    client_.On<Heard>([this](const Words& words) {
      MutexLock lock(mutex_);
      heard_.insert(words.code);
      changed_.NotifyAll();
    });
    client_.OnReportError([this](const BReportError& report) {
      MutexLock lock(mutex_);
      reports_.push_back(report.code);
      changed_.NotifyAll();
    });
    EXPECT_TRUE(client_.Start().ok());
  }

  bool AwaitReady() {
    const Result<void> ready = client_.AwaitReady(kPatience);
    EXPECT_TRUE(ready.ok()) << "role " << role_ << ": " << ready.error().message();
    return ready.ok();
  }
  // Which server answered; -1 if none did.
  std::int32_t Tell(std::int64_t to, std::string_view words = "hello") {
    const auto reply =
        client_.CallAndWait<Say>({.linksid = to,
                                  .code = static_cast<std::int32_t>(role_ * 1000 + to),
                                  .desc = std::string(words)},
                                 {.timeout = std::chrono::seconds(30)});
    if (!reply.ok() || !reply.value().ok()) return -1;
    return reply.value().result.control;
  }
  bool AwaitHeard(std::int32_t number, std::chrono::nanoseconds patience = kPatience) {
    return Await([&] { return heard_.contains(number); }, patience);
  }
  bool AwaitReport(std::int32_t code) {
    return Await([&] { return !reports_.empty() && reports_.back() == code; }, kPatience);
  }

 private:
  template <typename Condition>
  bool Await(const Condition& condition, std::chrono::nanoseconds patience) {
    const auto deadline = SystemClock().Now() + patience;
    MutexLock lock(mutex_);
    while (!condition()) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }

  const std::int64_t role_;
  Mutex mutex_;
  CondVar changed_;
  std::multiset<std::int32_t> heard_;
  std::vector<std::int32_t> reports_;
  Client client_;
};

constexpr std::int32_t kOurServer = 11;
constexpr std::int32_t kPeersServer = 12;
constexpr int kRolesEach = 6;

class LoginsInteropTest : public InteropFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (JavaCommand() == nullptr) GTEST_SKIP() << "only with the Java peer: ./dev interop";
    const std::string url = SharedPostgresServer().NewDatabase();
    StartRegistry(GetParam());
    ASSERT_NO_FATAL_FAILURE(StartGlobal(url));
    const std::vector<std::string> cluster = {"--database",  url,
                                              "--global",    std::to_string(global_port_),
                                              "--registry",  std::to_string(registry_port_),
                                              "--directory", directory_.path()};
    our_server_ = RunServer({ZEZE_INTEROP_CPP_PROVIDER}, kOurServer, cluster);
    peers_server_ = RunServer(Java("PeerProvider"), kPeersServer, cluster);
    StartGateways();
    for (ServerProcess* one : {our_server_.get(), peers_server_.get()}) {
      ASSERT_TRUE(one->AwaitLine("ready", kPatience)) << one->said();
    }
  }

  static std::unique_ptr<ServerProcess> RunServer(std::vector<std::string> command, std::int32_t id,
                                                  const std::vector<std::string>& cluster) {
    command.insert(command.end(), cluster.begin(), cluster.end());
    command.insert(command.end(), {"--id", std::to_string(id)});
    return Run(command);
  }

  void StartGateways() {
    Tell("linkd.xml", fmt::format(R"(<zeze>
  <ServiceConf Name="LinkdService"><Acceptor Ip="127.0.0.1" Port="0"/></ServiceConf>
  <ServiceConf Name="ProviderService"><Acceptor Ip="127.0.0.1" Port="0"/></ServiceConf>
  <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
    <Connector HostNameOrAddress="127.0.0.1" Port="{}"/>
  </ServiceConf>
  <CustomizeConf Name="Zeze.Linkd" ServiceName="Game.Linkd" ExemptAddresses="127.0.0.1"/>
</zeze>)",
                                  registry_port_));
    our_gateway_ = Listen(
        {ZEZE_BINARY, "linkd", "--config", directory_.File("linkd.xml"), "--insecure-accounts"},
        our_port_, "clients on port");
    std::vector<std::string> command = Java("PeerLinkd");
    command.insert(command.end(), {"--registry", std::to_string(registry_port_)});
    peers_gateway_ = Listen(command, peers_port_);
  }

  std::unique_ptr<ServerProcess> RunClients(const std::string& name, int gateway,
                                            const std::vector<std::int64_t>& roles) {
    std::vector<std::string> command = Java("PeerClient");
    command.insert(command.end(),
                   {"--name", name, "--linkd", std::to_string(gateway), "--roles",
                    fmt::format("{}", fmt::join(roles, ",")), "--directory", directory_.path()});
    return Run(command);
  }

  int our_port_ = 0;
  int peers_port_ = 0;
  std::unique_ptr<ServerProcess> our_server_;
  std::unique_ptr<ServerProcess> peers_server_;
  std::unique_ptr<ServerProcess> our_gateway_;
  std::unique_ptr<ServerProcess> peers_gateway_;
};

std::vector<std::int64_t> RolesFrom(std::int64_t first) {
  std::vector<std::int64_t> roles;
  for (int i = 0; i < kRolesEach; ++i) roles.push_back(first + i);
  return roles;
}

// The servers that answered a Java client's roles.
std::set<std::int32_t> ServersOf(const ServerProcess& clients) {
  std::set<std::int32_t> servers;
  const std::string said = clients.said();
  for (std::size_t at = said.find("said "); at != std::string::npos;
       at = said.find("said ", at + 1)) {
    const std::size_t second = said.find(' ', at + 5);
    servers.insert(std::stoi(said.substr(second + 1)));
  }
  return servers;
}

// A Java server looks up the connection of a role by a dirty read of the database: words for a role
// that has just logged in elsewhere may go to its former connection.
template <typename Arrived>
bool TellUntil(Player& from, std::int64_t to, const Arrived& arrived) {
  const auto deadline = SystemClock().Now() + kPatience;
  while (SystemClock().Now() < deadline) {
    EXPECT_NE(-1, from.Tell(to));
    if (arrived(std::chrono::seconds(1))) return true;
  }
  return false;
}

TEST_P(LoginsInteropTest, LoginsAndWordsCrossKinds) {
  struct Group {
    std::string name;
    int port = 0;
    std::vector<std::int64_t> roles;
    std::map<std::int64_t, std::unique_ptr<Player>> players = {};  // C++ clients, or
    std::unique_ptr<ServerProcess> java = nullptr;
    std::set<std::int32_t> servers = {};
  };
  IoThreads io({});
  std::vector<Group> groups;
  groups.push_back({"cpp-at-ours", our_port_, RolesFrom(1)});
  groups.push_back({"cpp-at-peers", peers_port_, RolesFrom(101)});
  groups.push_back({"java-at-ours", our_port_, RolesFrom(201)});
  groups.push_back({"java-at-peers", peers_port_, RolesFrom(301)});
  std::vector<std::int64_t> all;
  for (Group& group : groups) {
    all.insert(all.end(), group.roles.begin(), group.roles.end());
    if (group.name.starts_with("java")) {
      group.java = RunClients(group.name, group.port, group.roles);
      continue;
    }
    for (const std::int64_t role : group.roles) {
      group.players[role] = std::make_unique<Player>(io, group.port, role);
    }
  }
  for (const Group& group : groups) {
    if (group.java != nullptr) {
      ASSERT_TRUE(group.java->AwaitLine("ready", kPatience)) << group.java->said();
    }
    for (const auto& [role, player] : group.players) ASSERT_TRUE(player->AwaitReady());
  }

  // A Java server finds the logins at ours only in the database.
  Tell("save");
  ASSERT_TRUE(our_server_->AwaitLine("saved\n", kPatience)) << our_server_->said();

  // Everybody says a word to everybody.
  for (Group& group : groups) {
    if (group.java != nullptr) Tell("talk-" + group.name, fmt::format("{}", fmt::join(all, ",")));
    for (const std::int64_t to : all) {
      for (const auto& [role, player] : group.players) {
        const std::int32_t server = player->Tell(to);
        EXPECT_NE(-1, server) << role << " to " << to;
        group.servers.insert(server);
      }
    }
  }
  std::size_t heard = 0;
  for (Group& group : groups) {
    if (group.java != nullptr) {
      ASSERT_TRUE(group.java->AwaitLine("talked", kPatience)) << group.java->said();
      group.servers = ServersOf(*group.java);
    }
    for (const std::int64_t role : group.roles) {
      for (const std::int64_t from : all) {
        const std::int64_t number = from * 1000 + role;
        ++heard;
        if (group.java != nullptr) {
          EXPECT_TRUE(
              group.java->AwaitLine(fmt::format("heard {} {} {}\n", role, from, number), kPatience))
              << group.name << ": " << role << " did not hear " << from;
        } else {
          EXPECT_TRUE(group.players.at(role)->AwaitHeard(static_cast<std::int32_t>(number)))
              << group.name << ": " << role << " did not hear " << from;
        }
      }
    }
    std::cout << fmt::format("{}: {} roles, on servers {}\n", group.name, group.roles.size(),
                             fmt::join(group.servers, " and "));
  }
  std::cout << fmt::format("{} words arrived, from all {} roles at all\n", heard, all.size());
  const auto together = [&](std::size_t a, std::size_t b) {
    std::set<std::int32_t> servers = groups[a].servers;
    servers.insert(groups[b].servers.begin(), groups[b].servers.end());
    return servers;
  };
  const std::set<std::int32_t> both = {kOurServer, kPeersServer};
  EXPECT_EQ(both, together(0, 2)) << "our gateway uses both servers";
  EXPECT_EQ(both, together(1, 3)) << "the peer's gateway uses both servers";

  // A login of the same role elsewhere ends the first one, whichever kinds they are.
  const std::unique_ptr<ServerProcess> newer = RunClients("newer", peers_port_, {1, 2, 3});
  ASSERT_TRUE(newer->AwaitLine("ready", kPatience)) << newer->said();
  for (const std::int64_t role : {1, 2, 3}) {
    EXPECT_TRUE(groups[0].players.at(role)->AwaitReport(4)) << role;
  }
  std::map<std::int64_t, std::unique_ptr<Player>> newer_players;
  for (const std::int64_t role : {301, 302, 303}) {
    newer_players[role] = std::make_unique<Player>(io, our_port_, role);
    ASSERT_TRUE(newer_players[role]->AwaitReady());
    EXPECT_TRUE(groups[3].java->AwaitLine(fmt::format("kicked {} 4", role), kPatience))
        << groups[3].java->said();
    EXPECT_TRUE(TellUntil(*groups[1].players.at(101), role,
                          [&](auto patience) {
                            return newer_players[role]->AwaitHeard(
                                static_cast<std::int32_t>(101 * 1000 + role), patience);
                          }))
        << role << "\n"
        << our_server_->said() << peers_server_->said();
  }
  for (const std::int64_t role : {1, 2, 3}) {
    EXPECT_TRUE(TellUntil(*newer_players.at(301), role, [&](auto patience) {
      return newer->AwaitLine(fmt::format("heard {} 301 {}\n", role, 301 * 1000 + role), patience);
    })) << newer->said();
  }
  // Of redirectRemoveLocal, by which a Java server tells ours of such logins.
  EXPECT_EQ(std::string::npos, our_server_->said().find("which is not here"))
      << our_server_->said();
  std::cout << "6 roles logged in again with the other kind of client at the other gateway\n";

  // Whoever is kicked while it asks still gets its answer.
  for (const std::size_t i : {0U, 1U}) {
    for (const std::int64_t role : groups[i].roles) {
      if (role <= 3) continue;
      EXPECT_NE(-1, groups[i].players.at(role)->Tell(0, "kick me")) << groups[i].name;
      EXPECT_TRUE(groups[i].players.at(role)->AwaitReport(5));
    }
  }
  Tell("kick-java-at-ours");
  ASSERT_TRUE(groups[2].java->AwaitLine("done", kPatience)) << groups[2].java->said();
  for (const std::int64_t role : groups[2].roles) {
    const std::string said = groups[2].java->said();
    const std::size_t last = said.rfind(fmt::format("said {} ", role));
    EXPECT_TRUE(said.substr(last, said.find('\n', last) - last).ends_with(" 0")) << said;
    EXPECT_TRUE(groups[2].java->AwaitLine(fmt::format("kicked {} 5", role), kPatience));
  }
  std::cout << "roles that were kicked while they asked got their answers\n";
  for (const std::int32_t id : {kPeersServer, kOurServer}) Tell(fmt::format("stop-{}", id));
  EXPECT_TRUE(our_server_->AwaitLine("stopped", kPatience)) << our_server_->said();
  EXPECT_TRUE(peers_server_->AwaitLine("stopped", kPatience)) << peers_server_->said();
}

INSTANTIATE_TEST_SUITE_P(ServiceManager, LoginsInteropTest, ::testing::Bool(),
                         [](const auto& peers) { return peers.param ? "OfThePeer" : "Ours"; });

}  // namespace
}  // namespace zeze::interop
