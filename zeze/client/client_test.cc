// Clients and services that stand for gateways, over real connections.

#include "zeze/client/client.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/handshake.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/service_fixture.h"
#include "zeze/net/tls.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using testing::Echo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MustListen;
using ::testing::Not;
using testing::Text;
using Zeze::Builtin::LinkdAuth::RetryAfter;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;

constexpr seconds kPatience(20);

// Who the client is.
struct Auth {
  using Argument = Text;
  using Result = Text;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 1, .protocol_id = 77, .full_name = "test.Auth", .is_rpc = true};
};

// A request that is never answered.
struct Forget {
  using Argument = Text;
  using Result = Text;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 1, .protocol_id = 78, .full_name = "test.Forget", .is_rpc = true};
};

struct Push {
  using Argument = Text;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 1, .protocol_id = 79, .full_name = "test.Push"};
};

struct UnknownPush {
  using Argument = Text;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 1, .protocol_id = 80, .full_name = "test.UnknownPush"};
};

// What happened, in order.
class Story {
 public:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.NotifyAll();
  }
  std::vector<std::string> AwaitLines(std::size_t count) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (lines_.size() < count) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) break;
    }
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ ZEZE_GUARDED_BY(mutex_);
};

class Gate {
 public:
  explicit Gate(IoThreads& io, AcceptorOptions acceptor = {})
      : service_(io, {.name = "gate", .handshake = HandshakeOptions{}}) {
    testing::HandleEcho(service_);
    service_.Handle<Auth>([this](Request<Auth> request) {
      story.Add("auth " + request.argument().text);
      (void)request.AnswerCode(request.argument().text.starts_with("bad") ? -20 : 0);
    });
    service_.Handle<Forget>([this](Request<Forget> request) {
      MutexLock lock(mutex_);
      forgotten_.push_back(std::move(request));
      story.Add("forget");
    });
    address_ = MustListen(service_, acceptor);
  }

  ClientOptions::Gateway gateway() const { return {address_.IpText(), address_.port()}; }
  ConnectionPtr client() {
    const std::vector<ConnectionPtr> clients = service_.connections();
    return clients.empty() ? nullptr : clients.front();
  }
  void CloseClients() {
    for (const ConnectionPtr& connection : service_.connections()) connection->Close("test");
  }
  void Stop() { service_.Stop(); }

  Story story;

 private:
  Mutex mutex_;
  std::vector<Request<Forget>> forgotten_ ZEZE_GUARDED_BY(mutex_);
  Service service_;
  NetAddress address_;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest()
      : io_({.name = "client-io"}),
        gate_io_({.name = "gate-io"}),
        gate_(gate_io_),
        dead_{"127.0.0.1", dead_port_.Bind()} {}

  ClientOptions Options() {
    return {.gateways = {gate_.gateway()},
            .first_delay = milliseconds(10),
            .delay_max = milliseconds(50)};
  }
  std::unique_ptr<Client> NewClient(ClientOptions options) {
    auto client = std::make_unique<Client>(io_, std::move(options));
    client->OnReady([this] { story_.Add("ready"); });
    client->OnLost([this](const Error&) { story_.Add("lost"); });
    client->OnAttemptFailed([this](const Error& why) { story_.Add("failed: " + why.message()); });
    client->OnReportError([this](const BReportError& report) {
      story_.Add("report " + std::to_string(report.from) + " " + std::to_string(report.code) + " " +
                 report.desc);
    });
    client->On<Push>([this](const Text& text) { story_.Add("push " + text.text); });
    return client;
  }
  std::unique_ptr<Client> StartClient(ClientOptions options) {
    std::unique_ptr<Client> client = NewClient(std::move(options));
    EXPECT_TRUE(client->Start().ok());
    const Result<void> ready = client->AwaitReady(kPatience);
    EXPECT_TRUE(ready.ok()) << ready.error().message();
    EXPECT_TRUE(client->CallAndWait<Echo>({"there?"}).ok());  // The gate has it, too.
    return client;
  }

  IoThreads io_;
  IoThreads gate_io_;
  Gate gate_;
  testing::RawClient dead_port_;
  const ClientOptions::Gateway dead_;
  Story story_;
};

TEST_F(ClientTest, CallsAndIsAnswered) {
  const auto client = StartClient(Options());

  const Result<RpcReply<Echo>> reply = client->CallAndWait<Echo>({"hello"});

  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().result.text, "hello");
}

TEST_F(ClientTest, NothingIsSentBeforeItIsAuthenticated) {
  Mutex mutex;
  std::function<void(const Result<void>&)> let_in;
  CondVar changed;
  ClientOptions options = Options();
  options.authenticate = [&](const ConnectionPtr&, std::function<void(const Result<void>&)> done) {
    MutexLock lock(mutex);
    let_in = std::move(done);
    changed.NotifyAll();
  };
  const auto client = NewClient(options);
  ASSERT_TRUE(client->Start().ok());
  {
    MutexLock lock(mutex);
    while (!let_in) changed.Wait(mutex);
  }

  EXPECT_FALSE(client->ready());
  const Result<RpcReply<Echo>> refused = client->CallAndWait<Echo>({"x"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);

  let_in({});
  ASSERT_TRUE(client->AwaitReady(kPatience).ok());
  EXPECT_TRUE(client->CallAndWait<Echo>({"x"}).ok());
}

TEST_F(ClientTest, AuthenticatesOnEveryConnectionWithANewArgument) {
  int tokens = 0;
  ClientOptions options = Options();
  options.authenticate = AuthenticateBy<Auth>([&] { return Text{std::to_string(++tokens)}; });
  const auto client = StartClient(options);

  gate_.CloseClients();

  EXPECT_THAT(story_.AwaitLines(3), ElementsAre("ready", "lost", "ready"));
  EXPECT_THAT(gate_.story.AwaitLines(2), ElementsAre("auth 1", "auth 2"));
}

// A login may be answered on any thread, while the network's thread sees the connection end.
TEST_F(ClientTest, WhatHappensIsToldInOrder) {
  std::thread answering;
  ClientOptions options = Options();
  options.authenticate = [&](const ConnectionPtr&,
                             const std::function<void(const Result<void>&)>& done) {
    if (answering.joinable()) return;  // The second one is never let in.
    answering = std::thread([done] { done({}); });
  };
  const auto client = NewClient(options);
  client->OnReady([&] {
    client->connection()->Close("test");
    const auto deadline = SystemClock().Now() + kPatience;
    while (client->ready() && SystemClock().Now() < deadline) std::this_thread::yield();
    story_.Add("ready");
  });
  ASSERT_TRUE(client->Start().ok());

  EXPECT_THAT(story_.AwaitLines(2), ElementsAre("ready", "lost"));

  answering.join();
}

TEST_F(ClientTest, TriesAgainWhenItIsRefused) {
  int tokens = 0;
  ClientOptions options = Options();
  options.authenticate = AuthenticateBy<Auth>([&] { return Text{++tokens < 3 ? "bad" : "good"}; });

  const auto client = StartClient(options);

  EXPECT_THAT(story_.AwaitLines(3),
              ElementsAre(HasSubstr("code -20"), HasSubstr("code -20"), "ready"));
}

TEST_F(ClientTest, GetsWhatServersSend) {
  const auto client = StartClient(Options());

  ASSERT_TRUE(gate_.client()->Send<UnknownPush>({"ignored"}).ok());
  ASSERT_TRUE(gate_.client()->Send<Push>({"a"}).ok());
  ASSERT_TRUE(gate_.client()->Send<ReportError>({.from = 0, .code = 4, .desc = "gone"}).ok());

  EXPECT_THAT(story_.AwaitLines(3), ElementsAre("ready", "push a", "report 0 4 gone"));
  EXPECT_TRUE(client->ready());
}

TEST_F(ClientTest, CallsWithoutAnAnswerFailAtOnceWhenTheConnectionIsLost) {
  const auto client = StartClient(Options());
  ASSERT_TRUE(client
                  ->Call<Forget>({"x"}, {.timeout = std::chrono::hours(1)},
                                 [this](const RpcReply<Forget>& reply) {
                                   story_.Add("code " + std::to_string(reply.result_code));
                                 })
                  .ok());
  gate_.story.AwaitLines(1);

  gate_.CloseClients();

  EXPECT_THAT(story_.AwaitLines(4), ElementsAre("ready", "code -18", "lost", "ready"));
}

TEST_F(ClientTest, GoesToAnotherGatewayWhenOneIsLost) {
  Gate other(gate_io_);
  ClientOptions options = Options();
  options.gateways.push_back(other.gateway());
  const auto client = StartClient(options);
  const bool first = gate_.client() != nullptr;

  (first ? gate_ : other).Stop();

  EXPECT_THAT(story_.AwaitLines(3), ElementsAre("ready", "lost", "ready"));
  EXPECT_EQ(client->CallAndWait<Echo>({"x"}).value().result.text, "x");
  EXPECT_NE((first ? other : gate_).client(), nullptr);
}

TEST_F(ClientTest, LeavesAGatewayThatDoesNotLetItIn) {
  Gate silent(gate_io_);
  ClientOptions options = Options();
  options.gateways = {silent.gateway()};
  options.attempt_timeout = milliseconds(50);
  options.authenticate = [](const ConnectionPtr&, const auto&) {};  // Never ends.
  const auto client = NewClient(options);
  ASSERT_TRUE(client->Start().ok());

  EXPECT_THAT(story_.AwaitLines(2)[1],
              HasSubstr("did not let the client in within 50 ms: connected, the authentication or "
                        "the login has not ended"));

  const Result<void> ready = client->AwaitReady(milliseconds(1));
  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error().message(), HasSubstr("did not let the client in"));
}

TEST_F(ClientTest, DeadGatewaysAreFollowedByTheNextImmediately) {
  ClientOptions options = Options();
  options.first_delay = std::chrono::hours(1);  // Nobody waits for that.
  options.delay_max = std::chrono::hours(1);
  options.attempt_timeout = std::chrono::hours(1);
  options.gateways = {dead_, dead_, gate_.gateway(), dead_, dead_};

  for (int i = 0; i < 5; ++i) {  // Whichever is the first.
    EXPECT_TRUE(StartClient(options)->ready());
  }
}

TEST_F(ClientTest, SaysOfEachGatewayWhyItCannotBeReached) {
  ClientOptions options = Options();
  options.gateways = {dead_, {"no-such-name.invalid", 1}};
  const auto client = NewClient(options);
  ASSERT_TRUE(client->Start().ok());
  story_.AwaitLines(2);

  const Result<void> ready = client->AwaitReady(milliseconds(1));

  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error().message(), HasSubstr("Connection refused"));
  EXPECT_THAT(ready.error().message(), HasSubstr("no-such-name.invalid cannot be looked up"));
}

TEST_F(ClientTest, WaitsAsLongAsItIsTold) {
  const auto client = StartClient(Options());
  const auto before = SystemClock().Now();

  client->Reconnect(milliseconds(300));

  EXPECT_THAT(story_.AwaitLines(3), ElementsAre("ready", "lost", "ready"));
  EXPECT_GE(SystemClock().Now() - before, milliseconds(300));
}

TEST_F(ClientTest, ComesAgainWhenTheGatewaySaysSo) {
  const auto client = StartClient(Options());
  const auto before = SystemClock().Now();

  ASSERT_TRUE(gate_.client()->Send<RetryAfter>({.milliseconds = 300}).ok());
  gate_.client()->CloseWhenSent("too many at once");

  EXPECT_THAT(story_.AwaitLines(3), ElementsAre("ready", "lost", "ready"));
  EXPECT_GE(SystemClock().Now() - before, milliseconds(300));
}

TEST_F(ClientTest, NobodyIsSentAwayForLongerThanTheClientAllows) {
  ClientOptions options = Options();
  options.retry_after_max = milliseconds(100);
  const auto client = StartClient(options);

  ASSERT_TRUE(gate_.client()->Send<RetryAfter>({.milliseconds = INT32_MAX}).ok());
  gate_.client()->CloseWhenSent("too many at once");

  EXPECT_THAT(story_.AwaitLines(3), ElementsAre("ready", "lost", "ready"));
}

TEST_F(ClientTest, NeedsAGateway) {
  Client client(io_, {});
  const Result<void> started = client.Start();
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ClientTest, MayEndAtAnyMoment) {
  for (int i = 0; i < 50; ++i) {
    const auto client = NewClient(Options());
    ASSERT_TRUE(client->Start().ok());
    if (i % 2 == 0) gate_.CloseClients();
  }
}

TEST_F(ClientTest, CallbacksMayRunOnAnExecutor) {
  ThreadPool pool({.name = "pool", .thread_count = 2});
  ClientOptions options = Options();
  options.service.dispatch = Dispatch::kOrdered;
  options.service.executor = &pool;
  auto client = NewClient(options);
  client->OnReady(
      [&] { story_.Add("answered " + client->CallAndWait<Echo>({"x"}).value().result.text); });
  ASSERT_TRUE(client->Start().ok());

  EXPECT_THAT(story_.AwaitLines(1), ElementsAre("answered x"));
  client.reset();
}

TEST_F(ClientTest, SpeaksTls) {
  const testing::Certificates& certificates = testing::Certificates::Get();
  Gate secure(gate_io_,
              {.tls = TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                             .private_key_file = certificates.server_key})
                          .value()});
  ClientOptions options = Options();
  options.gateways = {secure.gateway()};
  options.tls = TlsContext::ForClient({.authorities_file = certificates.authority}).value();
  options.tls_name = "zeze.test";

  const auto client = StartClient(options);

  EXPECT_EQ(client->CallAndWait<Echo>({"secret"}).value().result.text, "secret");
}

class ClientTlsTest : public ClientTest {
 protected:
  // What the first attempt says. Long before it would take too long.
  std::string FirstFailure(const ClientOptions::Gateway& gateway, const std::string& authority,
                           const std::string& name) {
    ClientOptions options = Options();
    options.gateways = {gateway};
    options.attempt_timeout = std::chrono::hours(1);
    if (!authority.empty()) {
      options.tls = TlsContext::ForClient({.authorities_file = authority}).value();
    }
    options.tls_name = name;
    const auto client = NewClient(options);
    EXPECT_TRUE(client->Start().ok());
    return story_.AwaitLines(1).at(0);
  }

  const testing::Certificates& certificates_ = testing::Certificates::Get();
  Gate secure_{gate_io_,
               {.tls = TlsContext::ForServer({.certificate_file = certificates_.server_certificate,
                                              .private_key_file = certificates_.server_key})
                           .value()}};
};

TEST_F(ClientTlsTest, SaysThatTheAuthorityIsNotTrusted) {
  EXPECT_THAT(FirstFailure(secure_.gateway(), certificates_.other_authority, "zeze.test"),
              HasSubstr("certificate is refused"));
}

TEST_F(ClientTlsTest, SaysThatTheCertificateIsForAnotherName) {
  EXPECT_THAT(FirstFailure(secure_.gateway(), certificates_.authority, "other.test"),
              HasSubstr("it is not for \"other.test\""));
}

TEST_F(ClientTlsTest, SaysThatTheGatewayDoesNotSpeakTls) {
  EXPECT_THAT(FirstFailure(gate_.gateway(), certificates_.authority, "zeze.test"),
              HasSubstr("does not speak TLS"));
}

TEST_F(ClientTest, SaysThatThePeerIsNotAGateway) {
  testing::RawClient other;
  ClientOptions options = Options();
  options.gateways = {{"127.0.0.1", other.Listen()}};
  const auto client = NewClient(options);
  ASSERT_TRUE(client->Start().ok());
  other.Accept();
  ASSERT_TRUE(other.Send("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"));

  EXPECT_THAT(story_.AwaitLines(1).at(0), HasSubstr("not be a zeze service"));
}

TEST_F(ClientTest, SaysThatTheGatewayMayExpectTls) {
  testing::RawClient silent;  // As servers with TLS are, until the client speaks.
  ClientOptions options = Options();
  options.gateways = {{"127.0.0.1", silent.Listen()}};
  options.attempt_timeout = milliseconds(50);
  const auto client = NewClient(options);
  ASSERT_TRUE(client->Start().ok());

  EXPECT_THAT(story_.AwaitLines(1).at(0), HasSubstr("it may expect TLS"));
}

TEST_F(ClientTest, RefusesAGatewayWithoutTheConfiguredEncryption) {
  ClientOptions options = Options();
  options.service.handshake->encrypt = EncryptType::kAes;
  const auto client = NewClient(options);
  ASSERT_TRUE(client->Start().ok());

  EXPECT_THAT(story_.AwaitLines(1).at(0),
              AllOf(HasSubstr("offers encryption type 0"), Not(HasSubstr("before the greeting"))));
  EXPECT_FALSE(client->ready());
}

class ClientKickTest : public ClientTest {
 protected:
  void Kick(int code) {
    ASSERT_TRUE(
        gate_.client()
            ->Send<ReportError>(
                {.from = BReportError::FromProvider, .code = code, .desc = "logged in elsewhere"})
            .ok());
    gate_.client()->CloseWhenSent("kicked");
  }
  std::unique_ptr<Client> StartKickable() {
    ClientOptions options = Options();
    options.authenticate = AuthenticateBy<Auth>([] { return Text{"ann"}; });
    auto client = NewClient(options);
    client->OnKicked([this](const BReportError& report) {
      story_.Add("kicked " + std::to_string(report.code));
    });
    EXPECT_TRUE(client->Start().ok());
    EXPECT_TRUE(client->AwaitReady(kPatience).ok());
    EXPECT_TRUE(client->CallAndWait<Echo>({"there?"}).ok());
    return client;
  }
};

TEST_F(ClientKickTest, ANewerLoginElsewhereKeepsTheClientAwayUntilItIsToldToReconnect) {
  const auto client = StartKickable();

  Kick(4);

  EXPECT_THAT(story_.AwaitLines(4),
              ElementsAre("ready", "report 1 4 logged in elsewhere", "lost", "kicked 4"));
  const Result<void> ready = client->AwaitReady(kPatience);  // Does not wait in vain.
  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error().message(), HasSubstr("logged in elsewhere"));
  EXPECT_THAT(client->Send<Push>({"x"}).error().message(), HasSubstr("kicked"));
  EXPECT_THAT(gate_.story.AwaitLines(1), ElementsAre("auth ann"));

  client->Reconnect(milliseconds(0));

  EXPECT_THAT(story_.AwaitLines(5).back(), "ready");
  EXPECT_THAT(gate_.story.AwaitLines(2), ElementsAre("auth ann", "auth ann"));
}

TEST_F(ClientKickTest, OtherKicksAreFollowedByAReconnection) {
  const auto client = StartKickable();

  Kick(7);

  EXPECT_THAT(story_.AwaitLines(4),
              ElementsAre("ready", "report 1 7 logged in elsewhere", "lost", "ready"));
}

}  // namespace
}  // namespace zeze
