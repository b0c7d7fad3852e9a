// Operators at work: real processes and a real database; what docs/operations.md promises.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/http/testing/web_listener.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using zeze::testing::WebListener;

constexpr int kFencedStatus = 86;
constexpr auto kPatience = std::chrono::seconds(60);

class OperationsTest : public ::testing::Test {
 protected:
  OperationsTest() : url_(SharedPostgresServer().NewDatabase()) {
    for (const char* name : {"alice", "bob", "carol"}) {
      const ProgramResult made = Zeze({"admin", "keygen", "--name", name, "--out", Key(name)});
      EXPECT_EQ(0, made.exit_code) << made.said;
      const std::string line = made.said.substr(made.said.find(std::string(name) + " ed25519:"));
      std::ofstream(directory_.File("operators"), std::ios::app) << line;
    }
    // Mallory has a key, too, but nobody knows it.
    EXPECT_EQ(0, Zeze({"admin", "keygen", "--name", "mallory", "--out", Key("mallory")}).exit_code);
  }

  static ProgramResult Zeze(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ZEZE_BINARY);
    return RunProgram({.command = std::move(arguments)});
  }
  // `zeze admin`, at this Global.
  ProgramResult Admin(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "admin");
    arguments.insert(arguments.end(), {"--global", fmt::format("127.0.0.1:{}", global_port_)});
    return Zeze(std::move(arguments));
  }
  std::string Key(const std::string& name) const { return directory_.File(name + ".key"); }
  std::string Log() const { return directory_.File("audit.log"); }

  // The next message of this kind to the web service, as it was posted.
  std::string NextPost(const std::string& kind) {
    while (const std::optional<WebListener::Request> request = listener_.Next(kPatience)) {
      if (request->body().starts_with("{\"kind\":\"" + kind + "\"")) return request->body();
    }
    return "nothing";
  }

  std::vector<std::string> GlobalCommand(const std::string& delay) const {
    return {ZEZE_BINARY,
            "global",
            "--database",
            url_,
            "--ip",
            "127.0.0.1",
            "--port",
            "0",
            "--lease",
            "2000",
            "--silence",
            "500",
            "--operators",
            directory_.File("operators"),
            "--approvals",
            "2",
            "--audit-log",
            Log(),
            "--cleanup-delay",
            delay,
            "--alert-command",
            "echo \"ALERT $ZEZE_ALERT_KIND $ZEZE_ALERT_SERVER_ID\""};
  }
  void StartGlobal(std::vector<std::string> command) {
    global_ = std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
    ASSERT_TRUE(global_->AwaitLine("listening on port", kPatience)) << global_->said();
    const std::string said = global_->said();
    const std::string mark = "listening on port ";
    global_port_ = std::stoi(said.substr(said.find(mark) + mark.size()));
  }
  std::unique_ptr<ServerProcess> StartServer() {
    const std::string history = directory_.File(fmt::format("history{}", ++servers_));
    auto server = std::make_unique<ServerProcess>(ServerProcessOptions{
        .command = {ZEZE_CLUSTER_SERVER, "--id", "7", "--database", url_, "--global",
                    std::to_string(global_port_), "--history", history, "--seed", "1",
                    "--transactions", "0", "--threads", "1"}});
    EXPECT_TRUE(server->AwaitLine("receipt", kPatience)) << server->said();
    return server;
  }
  // Alice asks for the cleanup of server 7; the id of her request.
  std::string Propose(const std::string& reason = "it is lost") {
    const ProgramResult asked =
        Admin({"cleanup", "7", "--key", Key("alice"), "--reason", reason, "--yes"});
    EXPECT_EQ(0, asked.exit_code) << asked.said;
    EXPECT_THAT(asked.said, AllOf(HasSubstr("server      7"), HasSubstr("to write"),
                                  HasSubstr("has 1 of 2 approvals")));
    const std::size_t at = asked.said.rfind("request ");
    return at == std::string::npos ? "" : asked.said.substr(at + 8, 32);
  }
  ProgramResult Approve(const std::string& id, const std::string& name) {
    return Admin({"approve", id, "--key", Key(name), "--yes"});
  }

  TempDirectory directory_;
  std::string url_;
  // The first message is refused. Outlives Global.
  WebListener listener_{{.statuses = {503, 204}}};
  std::unique_ptr<ServerProcess> global_;
  int global_port_ = 0;
  int servers_ = 0;
};

TEST_F(OperationsTest, TwoOfThreeOperatorsCleanUpAServer) {
  StartGlobal(GlobalCommand("100ms"));
  auto server = StartServer();

  const std::string id = Propose();
  EXPECT_THAT(Approve(id, "alice").said, HasSubstr("alice has approved"));
  EXPECT_THAT(Approve(id, "mallory").said, HasSubstr("\"mallory\" is not an operator"));
  EXPECT_THAT(Admin({"approve", id, "--key", Key("mallory"), "--name", "bob", "--yes"}).said,
              HasSubstr("the signature is not bob's"));
  const ProgramResult approved = Approve(id.substr(0, 8), "bob");
  EXPECT_EQ(0, approved.exit_code) << approved.said;
  EXPECT_THAT(approved.said, HasSubstr("is approved by alice, bob"));

  EXPECT_EQ(kFencedStatus, server->AwaitEnd()) << server->said();
  EXPECT_TRUE(global_->AwaitLine("ALERT freed 7", kPatience)) << global_->said();
  EXPECT_THAT(Admin({"list"}).said, HasSubstr("done: server 7 is evicted"));
  EXPECT_THAT(Approve(id, "carol").said, HasSubstr("is done"));
  global_->Stop();
  const ProgramResult verified = Zeze({"admin", "verify-log", Log()});
  EXPECT_EQ(0, verified.exit_code) << verified.said;
  EXPECT_THAT(verified.said, HasSubstr("5 lines, none changed"))
      << "start, propose, approve, run, done";
}

// What a message about server 7 looks like.
std::string Posted(const std::string& kind, const std::string& text) {
  return R"(\{"kind":")" + kind + R"(","text":"server 7 \(epoch 1\) )" + text +
         R"(","source":"global 0 on [^"]+","server_id":"7","epoch":"1"\})";
}

TEST_F(OperationsTest, AWebServiceIsToldWhatHappensToAServer) {
  std::vector<std::string> command = GlobalCommand("0");
  command.insert(command.end(), {"--alert-webhook", listener_.Url("http", "/zeze?key=1")});
  StartGlobal(std::move(command));
  const std::string serving = R"(\{"kind":"serving","text":"serves, term 1, 0 servers, 0 keys",)"
                              R"("source":"global 0 on [^"]+"\})";
  EXPECT_THAT(NextPost("serving"), MatchesRegex(serving));
  EXPECT_THAT(NextPost("serving"), MatchesRegex(serving)) << "what was refused is posted again";

  auto server = StartServer();
  server->Kill();
  EXPECT_THAT(NextPost("lost"),
              MatchesRegex(Posted("lost",
                                  "is lost; it has [1-9][0-9]* rights to write and "
                                  "[0-9]+ to read")));

  const std::string id = Propose();
  EXPECT_THAT(NextPost("admin"), HasSubstr("alice"));
  EXPECT_EQ(0, Approve(id, "bob").exit_code);
  EXPECT_THAT(NextPost("admin"), HasSubstr("bob"));
  EXPECT_THAT(NextPost("evicted"),
              MatchesRegex(Posted("evicted", "is evicted: operators asked for it")));
  EXPECT_THAT(NextPost("freed"), MatchesRegex(Posted("freed", "has lost its rights, .*")));
}

TEST_F(OperationsTest, AGlobalDoesNotStartWithAnAddressThatIsNone) {
  std::vector<std::string> command = GlobalCommand("0");
  command.insert(command.end(), {"--alert-webhook", "hooks.example.com/zeze"});
  const ProgramResult started = RunProgram({.command = std::move(command)});
  EXPECT_EQ(1, started.exit_code);
  EXPECT_THAT(started.said, HasSubstr("expected http://host[:port][/path]"));
}

TEST_F(OperationsTest, ACancelledCleanupDoesNothing) {
  StartGlobal(GlobalCommand("1h"));
  auto server = StartServer();
  const std::string id = Propose();
  EXPECT_THAT(Approve(id, "bob").said, HasSubstr("carried out in 1h"));

  const ProgramResult cancelled = Admin({"cancel", id, "--key", Key("carol")});

  EXPECT_EQ(0, cancelled.exit_code) << cancelled.said;
  EXPECT_THAT(Admin({"list"}).said, HasSubstr("cancelled: by carol"));
  server->Signal(SIGTERM);
  EXPECT_EQ(0, server->AwaitEnd()) << server->said();
}

TEST_F(OperationsTest, ARestartedServerIsNotTheOneThatWasMeant) {
  StartGlobal(GlobalCommand("100ms"));
  auto server = StartServer();
  const std::string id = Propose();
  server->Kill();
  EXPECT_TRUE(global_->AwaitLine("ALERT lost 7", kPatience)) << global_->said();
  server = StartServer();

  const ProgramResult approved = Approve(id, "bob");

  EXPECT_EQ(1, approved.exit_code);
  EXPECT_THAT(approved.said, HasSubstr("the server has restarted or ended"));
  EXPECT_THAT(Admin({"list"}).said, HasSubstr("refused: the server has restarted"));
  server->Signal(SIGTERM);
  EXPECT_EQ(0, server->AwaitEnd()) << server->said();
}

TEST_F(OperationsTest, NothingIsDoneThatCannotBeWrittenDown) {
  // The audit log may grow to 1024 bytes; signal 25 is that of larger files.
  std::vector<std::string> command = {"/bin/sh", "-c", "ulimit -f 2; trap '' 25; exec \"$@\"",
                                      "sh"};
  for (const std::string& word : GlobalCommand("0")) command.push_back(word);
  StartGlobal(std::move(command));
  auto server = StartServer();

  const ProgramResult asked =
      Admin({"cleanup", "7", "--key", Key("alice"), "--reason", std::string(450, 'x'), "--yes"});

  EXPECT_EQ(1, asked.exit_code);
  EXPECT_THAT(asked.said, HasSubstr("the audit log cannot be written"));
  EXPECT_THAT(Admin({"list"}).said, HasSubstr("There are no requests"));
  EXPECT_EQ(0, Zeze({"admin", "verify-log", Log()}).exit_code);
  server->Signal(SIGTERM);
  EXPECT_EQ(0, server->AwaitEnd()) << server->said();
}

TEST_F(OperationsTest, AsksBeforeItActs) {
  StartGlobal(GlobalCommand("0"));
  auto server = StartServer();
  const ProgramResult asked = Admin({"cleanup", "7", "--key", Key("alice")});
  EXPECT_THAT(asked.said, HasSubstr("Nothing was done"));
  EXPECT_THAT(Admin({"list"}).said, HasSubstr("There are no requests"));
  EXPECT_THAT(Admin({"cleanup", "8", "--key", Key("alice")}).said, HasSubstr("servers here: 7"));
}

TEST_F(OperationsTest, AGlobalDoesNotStartWithFilesThatAreWrong) {
  std::ofstream(directory_.File("operators"), std::ios::app) << "dave ed25519:12\n";
  ProgramResult started = RunProgram({.command = GlobalCommand("0")});
  EXPECT_EQ(1, started.exit_code);
  EXPECT_THAT(started.said, HasSubstr("operators:4: \"ed25519:12\" is not a public key"));

  std::ofstream(Log()) << "1\tno\tlog\n";
  std::ofstream(directory_.File("operators")) << "";
  ASSERT_EQ(0, Zeze({"admin", "keygen", "--name", "eve", "--out", Key("eve")}).exit_code);
  started = RunProgram({.command = GlobalCommand("0")});
  EXPECT_THAT(started.said, HasSubstr("there are no operators in it"));
  EXPECT_THAT(Zeze({"admin", "verify-log", Log()}).said, HasSubstr("audit.log:1: "));
}

// A server of Zeze 1.6, as far as Global sees it.
class OldPeer {
 public:
  OldPeer(int port, std::int32_t server_id)
      : io_({.name = "old-peer"}), service_(io_, {.name = "OldPeer"}) {
    service_.HandleRaw(global::wire::Reduce::kDescriptor, {});
    connection_ =
        service_
            .Connect(
                {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port), .reconnect = false})
            ->WaitReady(kPatience)
            .value();
    accepted_ =
        connection_->CallAndWait<global::wire::Login>({.server_id = server_id}).value().ok();
  }
  ~OldPeer() { service_.Stop(); }

  bool accepted() const { return accepted_; }
  bool Acquire() {
    const auto reply = connection_->CallAndWait<global::wire::Acquire>({.key = "key", .state = 2});
    return reply.ok() && reply.value().ok();
  }
  void Vanish() { connection_->Close("the test says so"); }

 private:
  IoThreads io_;
  Service service_;
  ConnectionPtr connection_;
  bool accepted_ = false;
};

TEST_F(OperationsTest, AnOldPeerThatIsStoppedForCertainFreesItsRightsAtOnce) {
  std::vector<std::string> command = GlobalCommand("0");
  command.insert(command.end(), {"--unfenced-wait", "200", "--fence-command",
                                 "echo \"FENCE $ZEZE_SERVER_ID\"; [ $ZEZE_SERVER_ID = 1 ]"});
  StartGlobal(std::move(command));
  ASSERT_TRUE(global_->AwaitLine("serves, term", kPatience)) << global_->said();
  OldPeer lost(global_port_, 1);
  OldPeer other(global_port_, 2);
  ASSERT_TRUE(lost.accepted() && other.accepted());
  ASSERT_TRUE(lost.Acquire());
  lost.Vanish();

  while (!other.Acquire() && !HasFailure()) {
    ASSERT_EQ(std::string::npos, global_->said().find("stop_failed")) << global_->said();
  }

  EXPECT_TRUE(global_->AwaitLine("FENCE 1", kPatience)) << global_->said();
  EXPECT_TRUE(global_->AwaitLine("ALERT freed 1", kPatience)) << global_->said();
  EXPECT_THAT(global_->said(), Not(HasSubstr("FENCE 2")));
}

}  // namespace
}  // namespace zeze::cluster
