#include "zeze/arch/linkd/linkd.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/client_session.h"
#include "zeze/arch/linkd/linkd_impl.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/linkd/sid_source.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {

namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::seconds kSweep{10};

constexpr std::array<std::string_view, static_cast<std::size_t>(Refusal::kCount)> kRefusalNames = {
    "connections",
    "banned",
    "address connections",
    "address attempts",
    "accept ramp",
    "accept ramp, silent",
    "no session id",
    "handshake timeout",
    "handshake displaced",
    "upgrade",
    "authentication timeout",
    "unauthenticated",
    "unauthenticated bytes",
    "repeated authentication",
    "bad token",
    "forged token",
    "expired token",
    "replayed token",
    "unbound token",
    "unsuitable token",
    "token not checked",
    "too many tokens",
    "oversize frame",
    "oversize protocol",
    "malformed",
    "bad compression",
    "compression bomb",
    "session rate",
    "session bytes",
    "account rate",
    "address rate",
    "protocol rate",
    "in flight",
    "flood",
    "unknown module",
    "no provider",
    "not bound",
    "lost with server",
    "busy",
    "provider full",
    "slow reader",
    "shed",
    "bandwidth",
    "provider rights",
    "bad provider frame",
    "module of other servers",
};

Result<std::string> Advertised(const std::string& configured, const NetAddress& bound,
                               std::string_view what) {
  if (!configured.empty()) return configured;
  if (!bound.IsAny()) return bound.IpText();
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{} listen on every address of the machine: say which one of them "
                           "others shall use (Ip of the acceptor, \"@internal\" for one, or the "
                           "advertised ip)",
                           what));
}

}  // namespace

std::string_view ToString(Refusal refusal) {
  return kRefusalNames[static_cast<std::size_t>(refusal)];
}

ServiceOptions DefaultClientServiceOptions() {
  ServiceOptions options;
  options.name = "linkd.clients";
  options.handshake = HandshakeOptions{};
  // Of WebSockets, which are pinged. Others are watched by the system.
  options.keep_alive = {.check_period = std::chrono::seconds(10),
                        .send_timeout = std::chrono::seconds(30),
                        .answer_timeout = std::chrono::seconds(90)};
  options.frame_bytes_max = 64 << 10;
  options.output_bytes_max = 1 << 20;
  options.write_stall_timeout = std::chrono::seconds(20);
  options.connections_max = 100'000;
  options.handshakes_max = 4096;
  options.calls_max = 16;
  return options;
}

ServiceOptions DefaultProviderServiceOptions() {
  ServiceOptions options;
  options.name = "linkd.providers";
  options.handshake = HandshakeOptions{};
  options.frame_bytes_max = 16 << 20;
  options.output_bytes_max = 64 << 20;
  options.connections_max = 4096;
  options.socket.unconfirmed_max = kUnconfirmedInside;
  return options;
}

Linkd::Impl::Impl(IoThreads& io, Executor& workers, LinkdOptions options)
    : io_(io),
      workers_(workers),
      options_(std::move(options)),
      session_messages_(options_.limits.session_messages),
      session_bytes_(options_.limits.session_bytes),
      account_messages_(options_.limits.account_messages),
      refused_messages_(options_.limits.refused_messages),
      retry_hints_(options_.limits.retry_hints),
      limits_rates_(!session_messages_.unlimited() || !session_bytes_.unlimited() ||
                    !account_messages_.unlimited() ||
                    options_.limits.address.messages.per_second > 0 ||
                    !options_.limits.protocols.empty()),
      book_(std::make_shared<AddressBook>(options_.limits.address)),
      fuse_(options_.limits.bandwidth),
      directory_([&io] { return io.Random(); }),
      ramp_(options_.limits.ramp, io.clock().Now()) {
  for (const auto& [type, rule] : options_.limits.protocols) {
    const std::size_t index = rules_.size();
    rules_.emplace(type, Rule{.rule = rule, .rate = BucketRate(rule.rate), .index = index});
  }
}

void Linkd::Impl::AddHandlers() {
  // The handshake, and then the authentication, within one time.
  ServiceOptions clients = options_.clients;
  clients.dispatch = Dispatch::kInline;
  clients.handshake_timeout =
      std::min(clients.handshake_timeout, options_.limits.authentication_timeout);
  clients.admit = [this](const NetAddress& peer) { return Admit(peer); };
  clients_ = std::make_unique<Service>(io_, std::move(clients));
  clients_->OnOpen([this](const ConnectionPtr& client) { OnClientOpen(client); });
  clients_->OnClose(
      [this](const ConnectionPtr& client, const Error& reason) { OnClientClose(client, reason); });
  clients_->ForwardOthers([this](Connection& client, const Frame& frame, std::string_view body) {
    return OnClientMessage(client, frame, body);
  });
  static constexpr ProtocolDescriptor kKeepAlive{.protocol_id = kKeepAliveId,
                                                 .full_name = "Zeze.Services.Handshake.KeepAlive",
                                                 .is_rpc = true};
  clients_->HandleRaw(kKeepAlive, [this](Connection& client, const Frame& frame) {
    return OnKeepAlive(client, frame);
  });
  if (options_.authenticator != nullptr) {
    clients_->HandleRaw(
        Zeze::Builtin::LinkdAuth::Auth::kDescriptor,
        [this](Connection& client, const Frame& frame) { return OnAuth(client, frame); });
  }
  ServiceOptions providers = options_.providers;
  providers.dispatch = Dispatch::kInline;
  providers.read_always = true;
  providers.inside = true;
  providers_ = std::make_unique<Service>(io_, std::move(providers));
  AddProviderHandlers();
}

Result<void> Linkd::Impl::Start() {
  if (options_.client_acceptors.empty() || options_.provider_acceptors.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "a linkd needs a port for clients and one for servers");
  }
  if (options_.registry.has_value()) {
    registry::RegistryAgentOptions agent = *options_.registry;
    agent.on_load = [this](const registry::ServerLoad& load) { OnLoad(load); };
    agent_ = std::make_unique<registry::RegistryAgent>(io_, workers_, std::move(agent));
    if (Result<void> started = agent_->Start(); !started.ok()) return started;
  }
  if (!options_.sid_file.empty()) {
    Result<std::unique_ptr<SidSource>> file = OpenSidFile(options_.sid_file);
    if (!file.ok()) return file.error();
    sid_source_ = std::move(file).value();
  } else {
    sid_source_ =
        agent_ != nullptr ? SidsOfRegistry(*agent_, options_.name + ".sid") : SidsInMemory();
  }
  sids_ = std::make_unique<SidCounter>(*sid_source_, options_.sid_block);
  if (Result<void> filled = sids_->Refill(); !filled.ok()) return filled;

  for (const AcceptorOptions& acceptor : options_.provider_acceptors) {
    Result<std::shared_ptr<Acceptor>> listening = providers_->Listen(acceptor);
    if (!listening.ok()) return listening.error();
    if (provider_address_.empty()) provider_address_ = listening.value()->address();
  }
  for (const AcceptorOptions& acceptor : options_.client_acceptors) {
    Result<std::shared_ptr<Acceptor>> listening = clients_->Listen(acceptor);
    if (!listening.ok()) return listening.error();
    if (client_address_.empty()) client_address_ = listening.value()->address();
    client_addresses_.push_back(listening.value()->address());
  }
  ScheduleTick();
  return agent_ == nullptr ? Result<void>() : Register();
}

Result<void> Linkd::Impl::Register() {
  Result<std::string> inner =
      Advertised(options_.advertised_provider_ip, provider_address_, "connections of servers");
  if (!inner.ok()) return inner.error();
  Result<std::string> outer =
      Advertised(options_.advertised_client_ip, client_address_, "connections of clients");
  if (!outer.ok()) return outer.error();
  const Zeze::Builtin::LinkdBase::BLinkInfo info{.Ip = outer.value(),
                                                 .Port = client_address_.port()};
  ByteWriter extra;
  info.Encode(extra);
  return agent_->Register({
      .name = options_.name,
      .identity = fmt::format("@{}_{}", inner.value(), provider_address_.port()),
      .passive_ip = inner.value(),
      .passive_port = provider_address_.port(),
      .extra_info = std::string(extra.view()),
  });
}

void Linkd::Impl::Stop() {
  if (stopping_->exchange(true)) return;
  // A tick that runs is the last one.
  WaitGroup ticked(1);
  io_.Post(Task("last tick of linkd", [&ticked] { ticked.Done(); }));
  ticked.Wait();
  // First, so that no server tries to connect again.
  if (agent_ != nullptr) agent_->Stop();
  clients_->Stop();
  providers_->Stop();
}

void Linkd::Impl::ScheduleTick() {
  // Not by a reference to this: the last one must not go on a network thread.
  io_.PostAfter(kTick, Task("tick of linkd", [this, stopping = stopping_] {
                  if (*stopping) return;
                  Tick();
                  ScheduleTick();
                }));
}

void Linkd::Impl::Tick() {
  const Time now = Now();
  ExpireUnauthenticated(now);
  fuse_.Tick(now);
  {
    const MutexLock lock(directory_mutex_);
    directory_.Tick(now);
  }
  if (now - swept_at_ < kSweep) return;
  swept_at_ = now;
  book_->Sweep(now);
}

void Linkd::Impl::RefillSids() {
  workers_.Post(Task("fetch session ids", [weak = weak_from_this()] {
    const std::shared_ptr<Impl> self = weak.lock();
    if (self == nullptr || *self->stopping_) return;
    if (Result<void> filled = self->sids_->Refill(); !filled.ok()) {
      ZEZE_LOG_ERROR("{}: no session ids: {}", self->options_.name, filled.error().message());
    }
  }));
}

void Linkd::Impl::Strike(ClientSession& session, Time now) {
  if (!book_->Strike(*session.address, now)) return;
  ZEZE_LOG_WARNING("{}: {} is banned for a while", options_.name,
                   session.address->address.IpText());
}

Linkd::Statistics Linkd::Impl::GetStatistics() const {
  Statistics all;
  const Service::Statistics clients = clients_->GetStatistics();
  all.sessions = sessions_.size();
  all.providers = providers_->connection_count();
  all.accepted = clients.accepted;
  all.authenticated = authenticated_;
  all.forwarded = forwarded_;
  all.delivered = delivered_;
  for (std::size_t i = 0; i < counts_.size(); ++i) all.refused[i] = counts_[i];
  const auto add = [&all](Refusal refusal, std::uint64_t count) {
    all.refused[static_cast<std::size_t>(refusal)] += count;
  };
  add(Refusal::kConnections, clients.refused);
  add(Refusal::kHandshakeTimeout, clients.handshake_timeouts);
  add(Refusal::kHandshakeDisplaced, clients.handshakes_displaced);
  add(Refusal::kUpgrade, clients.upgrades_refused);
  add(Refusal::kOversizeFrame, clients.oversize_frames);
  add(Refusal::kBadCompression, clients.bad_compression);
  add(Refusal::kSlowReader, clients.write_stalls);
  add(Refusal::kCompressionBomb, clients.compression_bombs);
  // These are counted a moment before protocol_errors is.
  const std::uint64_t known =
      clients.oversize_frames + clients.bad_compression + clients.compression_bombs;
  add(Refusal::kMalformed, clients.protocol_errors - std::min(known, clients.protocol_errors));
  return all;
}

std::string Linkd::Statistics::Format() const {
  std::string text = fmt::format(
      "sessions {}\nproviders {}\naccepted {}\nauthenticated {}\nforwarded {}\ndelivered {}\n",
      sessions, providers, accepted, authenticated, forwarded, delivered);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    if (refused[i] == 0) continue;
    text += fmt::format("refused, {}: {}\n", kRefusalNames[i], refused[i]);
  }
  return text;
}

std::string Linkd::Statistics::FormatMetrics() const {
  std::string text;
  const auto one = [&text](std::string_view name, std::string_view type, std::uint64_t value) {
    text += fmt::format("# TYPE zeze_linkd_{0} {1}\nzeze_linkd_{0} {2}\n", name, type, value);
  };
  one("sessions", "gauge", sessions);
  one("providers", "gauge", providers);
  one("accepted_total", "counter", accepted);
  one("authenticated_total", "counter", authenticated);
  one("forwarded_total", "counter", forwarded);
  one("delivered_total", "counter", delivered);
  text += "# TYPE zeze_linkd_refused_total counter\n";
  for (std::size_t i = 0; i < refused.size(); ++i) {
    text +=
        fmt::format("zeze_linkd_refused_total{{reason=\"{}\"}} {}\n", kRefusalNames[i], refused[i]);
  }
  return text;
}

Linkd::Linkd(IoThreads& io, Executor& workers, LinkdOptions options)
    : impl_(std::make_shared<Impl>(io, workers, std::move(options))) {
  impl_->AddHandlers();
}

Linkd::~Linkd() {
  Stop();
}

Service& Linkd::clients() {
  return impl_->clients();
}

Result<void> Linkd::Accept(Connection& client, const ClientIdentity& identity) {
  return impl_->Accept(client, identity);
}

Result<void> Linkd::Start() {
  return impl_->Start();
}

void Linkd::Stop() {
  impl_->Stop();
}

NetAddress Linkd::client_address() const {
  return impl_->client_address();
}

std::vector<NetAddress> Linkd::client_addresses() const {
  return impl_->client_addresses();
}

NetAddress Linkd::provider_address() const {
  return impl_->provider_address();
}

Linkd::Statistics Linkd::GetStatistics() const {
  return impl_->GetStatistics();
}

std::vector<AddressBook::Ban> Linkd::Bans() const {
  return impl_->Bans();
}

}  // namespace zeze::arch
