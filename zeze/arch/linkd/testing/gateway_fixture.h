// A gateway on loopback, servers that speak only what is on the wire, and raw clients.
//
//   Gateway gateway;
//   TestProvider provider(gateway, "1");
//   provider.Offer({100});
//   TestClient client(gateway, "alice");
//   client.Request(100, 5, "hello");
//   EXPECT_EQ("hello", client.Answer());

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch::testing {

namespace provider = Zeze::Builtin::Provider;

inline constexpr std::chrono::seconds kPatience{30};

// Something that callbacks change and a test waits for.
template <typename T>
class Watched {
 public:
  void Change(const std::function<void(T&)>& change) {
    const MutexLock lock(mutex_);
    change(value_);
    changed_.NotifyAll();
  }
  bool Await(const std::function<bool(const T&)>& condition) {
    const auto deadline = SystemClock().Now() + kPatience;
    const MutexLock lock(mutex_);
    while (!condition(value_)) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }
  T value() {
    const MutexLock lock(mutex_);
    return value_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  T value_ ZEZE_GUARDED_BY(mutex_) = {};
};

// Asks the gateway until what it says is as expected.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = SystemClock().Now() + kPatience;
  while (!condition()) {
    if (SystemClock().Now() > deadline) return false;
    SystemClock().SleepFor(std::chrono::milliseconds(1));
  }
  return true;
}

// A token is the account's name, and perhaps "@" and a version; "bad" is refused.
class TrustingAuthenticator final : public Authenticator {
 public:
  Result<ClientIdentity> Authenticate(const Credentials& given) override {
    if (given.token == "bad") return Error(ErrorCode::kInvalidArgument, "a bad token");
    if (given.token == "used") return Error(ErrorCode::kConflict, "a used token");
    if (given.token == "unavailable") return Error(ErrorCode::kUnavailable, "nobody knows");
    return ClientIdentity{.account = std::string(given.token), .app_version = given.app_version};
  }
};

// Without limits that a test does not ask for, on free ports.
inline LinkdOptions TestOptions() {
  LinkdOptions options;
  options.client_acceptors = {{.ip = "127.0.0.1"}};
  options.provider_acceptors = {{.ip = "127.0.0.1"}};
  options.authenticator = std::make_shared<TrustingAuthenticator>();
  options.limits.address.exempt = {"127.0.0.1"};
  options.limits.ramp.last = 0;
  options.limits.session_messages = {};
  options.limits.session_bytes = {};
  options.limits.account_messages = {};
  options.limits.in_flight_max = 0;
  return options;
}

class Gateway {
 public:
  explicit Gateway(LinkdOptions options = TestOptions(), IoThreads::Options io_options = {})
      : io(std::move(io_options)), linkd(io, workers, std::move(options)) {
    const Result<void> started = linkd.Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
  }
  ~Gateway() { linkd.Stop(); }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  bool AwaitSessions(std::size_t count) const {
    return Eventually([&] { return linkd.GetStatistics().sessions == count; });
  }
  std::uint64_t refused(Refusal refusal) const { return linkd.GetStatistics().of(refusal); }

  ThreadPool workers{{.name = "gateway", .thread_count = 2}};
  IoThreads io;
  Linkd linkd;
};

struct Dispatched {
  std::int64_t sid = 0;
  std::string account = {};
  std::int64_t type = 0;
  std::string body = {};
  provider::BUserState state = {};
};

// Answers every request by returning its payload, unless told otherwise.
class TestProvider {
 public:
  static constexpr std::string_view kPrefix = "Game.Module#";
  // Servers of this kind are of Zeze 1.6.
  static constexpr std::string_view kOldPrefix = "Old.Module#";

  explicit TestProvider(const Gateway& gateway, const std::string& identity,
                        std::int64_t version = 0, bool echo = true,
                        std::string_view prefix = kPrefix)
      : TestProvider(gateway.linkd.provider_address(), identity, version, echo, prefix) {}
  TestProvider(const NetAddress& at, const std::string& identity, std::int64_t version = 0,
               bool echo = true, std::string_view prefix = kPrefix)
      : echo_(echo),
        io_({.name = "provider"}),
        service_(io_, {.name = "provider", .handshake = HandshakeOptions{}}) {
    service_.Handle<provider::Dispatch>(
        [this](const Message<provider::Dispatch>& message) { OnDispatch(message.argument); });
    service_.Handle<provider::LinkBroken>([this](const Message<provider::LinkBroken>& message) {
      broken.Change([&](auto& all) { all.push_back(message.argument); });
    });
    service_.Handle<provider::Unbound>([this](const Message<provider::Unbound>& message) {
      unbound.Change([&](auto& all) { all.push_back(message.argument); });
    });
    service_.OnClose([this](const ConnectionPtr&, const Error&) {
      closed.Change([](bool& value) { value = true; });
    });
    Result<ConnectionPtr> ready =
        service_.Connect({.host = at.IpText(), .port = at.port(), .reconnect = false})
            ->WaitReady(kPatience);
    EXPECT_TRUE(ready.ok()) << ready.error().message();
    connection_ = ready.value();
    EXPECT_TRUE(
        connection_
            ->Send<provider::AnnounceProviderInfo>({.ServiceNamePrefix = std::string(prefix),
                                                    .ServiceIdentity = identity,
                                                    .ProviderDirectIp = "10.0.0." + identity,
                                                    .ProviderDirectPort = 7000,
                                                    .AppVersion = version << 48,
                                                    .DisableChoice = true,
                                                    .HearsUnbound = prefix != kOldPrefix})
            .ok());
  }
  ~TestProvider() { service_.Stop(); }
  TestProvider(const TestProvider&) = delete;
  TestProvider& operator=(const TestProvider&) = delete;

  // Static modules, and ready.
  void Offer(const std::vector<std::int32_t>& modules,
             std::int32_t choice_type = provider::BModule::ChoiceTypeRoundRobin) {
    EXPECT_EQ(0, TryOffer(modules, choice_type));
    SetDisableChoice(false);
  }
  void OfferDynamic(const std::vector<std::int32_t>& modules) {
    EXPECT_EQ(0, TryOfferDynamic(modules));
  }
  // The gateway's answers.
  std::int64_t TryOffer(const std::vector<std::int32_t>& modules,
                        std::int32_t choice_type = provider::BModule::ChoiceTypeRoundRobin) {
    provider::BBind bind;
    for (const std::int32_t module : modules) bind.modules.Put(module, {.ChoiceType = choice_type});
    return CodeOf(connection_->CallAndWait<provider::Bind>(bind));
  }
  std::int64_t TryOfferDynamic(const std::vector<std::int32_t>& modules) {
    provider::BSubscribe subscribe;
    for (const std::int32_t module : modules) subscribe.modules.Put(module, {.Dynamic = true});
    return CodeOf(connection_->CallAndWait<provider::Subscribe>(subscribe));
  }
  // What Offer did.
  std::int64_t Unbind(const std::vector<std::int32_t>& modules) {
    provider::BBind bind;
    for (const std::int32_t module : modules) bind.modules.Put(module, {});
    return CodeOf(connection_->CallAndWait<provider::UnBind>(bind));
  }
  void SetDisableChoice(bool disabled) {
    EXPECT_EQ(
        0,
        CodeOf(connection_->CallAndWait<provider::SetDisableChoice>({.DisableChoice = disabled})));
  }

  std::int64_t BindClient(std::int64_t sid, std::int32_t module) {
    return CodeOf(connection_->CallAndWait<provider::Bind>(BindOf(sid, module)));
  }
  std::int64_t UnbindClient(std::int64_t sid, std::int32_t module) {
    return CodeOf(connection_->CallAndWait<provider::UnBind>(BindOf(sid, module)));
  }

  template <typename P>
  void Tell(const typename P::Argument& argument) {
    EXPECT_TRUE(connection_->Send<P>(argument).ok());
  }

  // Returns the sids that could not be reached.
  std::vector<std::int64_t> Send(const std::vector<std::int64_t>& sids, std::int64_t type,
                                 const std::string& frame) {
    provider::BSend send{.protocolType = type};
    for (const std::int64_t sid : sids) send.linkSids.PushBack(sid);
    send.protocolWholeData = Binary(frame);
    Result<RpcReply<provider::Send>> reply = connection_->CallAndWait<provider::Send>(send);
    EXPECT_EQ(0, CodeOf(reply));
    std::vector<std::int64_t> lost;
    if (reply.ok()) {
      for (const std::int64_t sid : reply.value().result.ErrorLinkSids) lost.push_back(sid);
    }
    return lost;
  }

  // Everything that was sent before has been handled by the gateway.
  void Settle() { SetDisableChoice(false); }

  Connection& connection() { return *connection_; }
  void Close() { connection_->Close("the test says so"); }

  bool AwaitDispatched(std::size_t count) {
    return dispatched.Await([count](const auto& all) { return all.size() >= count; });
  }

  Watched<std::vector<Dispatched>> dispatched;
  Watched<std::vector<provider::BLinkBroken>> broken;
  Watched<std::vector<provider::BUnbound>> unbound;
  Watched<bool> closed;

 private:
  template <typename Reply>
  static std::int64_t CodeOf(const Reply& reply) {
    EXPECT_TRUE(reply.ok());
    return reply.ok() ? reply.value().result_code : -1;
  }
  static provider::BBind BindOf(std::int64_t sid, std::int32_t module) {
    provider::BBind bind;
    bind.modules.Put(module, {});
    bind.linkSids.Add(sid);
    return bind;
  }

  void OnDispatch(const provider::BDispatch& one) {
    dispatched.Change([&](auto& all) {
      all.push_back({.sid = one.linkSid,
                     .account = one.account,
                     .type = one.protocolType,
                     .body = one.protocolData.bytes,
                     .state = {.context = one.context,
                               .contextx = one.contextx,
                               .onlineSetName = one.onlineSetName}});
    });
    if (!echo_) return;
    const RawFrame raw{.module_id = static_cast<std::int32_t>(one.protocolType >> 32),
                       .protocol_id = static_cast<std::int32_t>(one.protocolType),
                       .body = one.protocolData.bytes};
    const Result<Frame> request = ParseFrame(raw);
    if (!request.ok() || request.value().family != FrameFamily::kRequest) return;
    Frame answer = request.value();
    answer.family = FrameFamily::kResponse;
    ByteWriter out;
    EncodeFrame(answer, out);
    provider::BSend send{.protocolType = one.protocolType};
    send.linkSids.PushBack(one.linkSid);
    send.protocolWholeData = Binary(std::string(out.view()));
    EXPECT_TRUE(connection_ != nullptr);
    (void)connection_->Call<provider::Send>(send, {}, [](const RpcReply<provider::Send>&) {});
  }

  const bool echo_;
  IoThreads io_;
  Service service_;
  ConnectionPtr connection_;
};

// What a client got: an answer, a report, or another message.
struct Received {
  std::int64_t type = 0;
  FrameFamily family = FrameFamily::kOneWay;
  std::int64_t session_id = 0;
  std::int64_t code = 0;
  std::string payload = {};
};

inline std::string FrameOf(std::int32_t module, std::int32_t protocol, std::string_view payload,
                           FrameFamily family = FrameFamily::kOneWay, std::int64_t call = 0) {
  ByteWriter out;
  EncodeFrame({.module_id = module,
               .protocol_id = protocol,
               .family = family,
               .session_id = call,
               .payload = payload},
              out);
  return std::string(out.view());
}

class TestClient {
 public:
  // Connects only; see Authenticate.
  explicit TestClient(const Gateway& gateway) : TestClient(gateway.linkd.client_address()) {}
  explicit TestClient(const NetAddress& address) : raw_(address) {}
  // Authenticates, too.
  TestClient(const Gateway& gateway, std::string_view account, std::int64_t version = 0)
      : TestClient(gateway) {
    EXPECT_TRUE(raw_.EndHandshake());
    EXPECT_EQ(0, Authenticate(account, version));
  }

  bool EndHandshake() { return raw_.EndHandshake(); }

  // The code of the answer; -1000 if there was none.
  std::int64_t Authenticate(std::string_view token, std::int64_t version = 0) {
    using Zeze::Builtin::LinkdAuth::Auth;
    Zeze::Builtin::LinkdAuth::BAuth argument{.appVersion = version << 48};
    argument.token.bytes = token;
    if (!raw_.Send(zeze::testing::RawClient::RequestFrame<Auth>(1, argument))) return -1000;
    const std::optional<Frame> answer = raw_.ReadFrame();
    if (!answer.has_value()) return -1000;
    Zeze::Builtin::LinkdAuth::BAuthResult result;
    ByteReader in(answer->payload);
    result.Decode(in);
    sid_ = result.linkSid;
    return answer->result_code;
  }

  std::int64_t sid() const { return sid_; }

  bool Request(std::int32_t module, std::int32_t protocol, std::string_view payload,
               std::int64_t call = 7) {
    return raw_.Send(FrameOf(module, protocol, payload, FrameFamily::kRequest, call));
  }
  bool Note(std::int32_t module, std::int32_t protocol, std::string_view payload) {
    return raw_.Send(FrameOf(module, protocol, payload));
  }

  // None: the gateway has closed the connection.
  std::optional<Received> Receive() {
    const std::optional<Frame> frame = raw_.ReadFrame();
    if (!frame.has_value()) return std::nullopt;
    return Received{.type = ProtocolTypeId(frame->module_id, frame->protocol_id),
                    .family = frame->family,
                    .session_id = frame->session_id,
                    .code = frame->result_code,
                    .payload = std::string(frame->payload)};
  }

  // The payload of the next message, which is an answer.
  std::string Answer() {
    const std::optional<Received> got = Receive();
    if (!got.has_value()) return "closed";
    if (got->family != FrameFamily::kResponse) return "not an answer";
    return got->code == 0 ? got->payload : fmt::format("code {}", got->code);
  }

  // The next message, which is a report: "from code", with the text behind it if asked for.
  std::string Report(bool with_text = false) {
    using Zeze::Builtin::LinkdBase::ReportError;
    const std::optional<Received> got = Receive();
    if (!got.has_value()) return "closed";
    if (got->type != ReportError::kDescriptor.type_id()) return "not a report";
    Zeze::Builtin::LinkdBase::BReportError report;
    ByteReader in(got->payload);
    report.Decode(in);
    std::string text = fmt::format("{} {}", report.from, report.code);
    return with_text ? text + " " + report.desc : text;
  }

  // Everything that was sent before has been handled by the gateway, and everything that it sent
  // before that has arrived: those messages.
  std::vector<Received> Settle() {
    EXPECT_TRUE(raw_.Send(
        FrameOf(0, kKeepAliveId, std::string_view("\0", 1), FrameFamily::kRequest, 999'999)));
    std::vector<Received> before;
    while (std::optional<Received> got = Receive()) {
      if (got->session_id == 999'999 && got->type == static_cast<std::uint32_t>(kKeepAliveId)) {
        return before;
      }
      before.push_back(*std::move(got));
    }
    ADD_FAILURE() << "the gateway has closed the connection";
    return before;
  }

  zeze::testing::RawClient& raw() { return raw_; }

 private:
  zeze::testing::RawClient raw_;
  std::int64_t sid_ = 0;
};

}  // namespace zeze::arch::testing
