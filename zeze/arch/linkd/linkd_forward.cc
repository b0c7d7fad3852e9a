// The way of a message through the gateway, which is all that most of them ever meet: a client's to
// a server, and a server's to clients. docs/linkd.md walks it.
//
// net has parsed the frame; nothing here looks at a client's body, and it is copied once, into the
// output of the other side. On the network thread of whoever sent the message.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/bindings.h"
#include "zeze/arch/linkd/client_session.h"
#include "zeze/arch/linkd/gateway_messages.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_impl.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/linkd/provider_directory.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/net_address.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {

namespace provider = Zeze::Builtin::Provider;
using Zeze::Builtin::LinkdBase::BReportError;

namespace {

// Outstanding requests of a client that are remembered where their number has no limit.
constexpr std::size_t kOutstandingMax = 1024;

// Of Zeze 1.6: the socket of the server that was chosen is gone.
constexpr int kFailureGone = 101;

// What the choice by source address goes by.
std::string SourceOf(const NetAddress& peer) {
  std::string source(peer.bytes());
  source.push_back(static_cast<char>(peer.port() >> 8));
  source.push_back(static_cast<char>(peer.port() & 0xff));
  return source;
}

}  // namespace

// --- A client's message. -------------------------------------------------------------------------

Result<void> Linkd::Impl::OnClientMessage(Connection& client, const Frame& frame,
                                          std::string_view body) {
  auto& session = *client.state<ClientSession>();
  const Phase phase = session.phase();
  if (phase == Phase::kClosing) return {};
  if (phase != Phase::kAuthenticated) {
    RefuseUnauthenticated(client, session, "it has to authenticate itself first");
    return {};
  }
  ClientMessage message{.module = frame.module_id,
                        .type = ProtocolTypeId(frame.module_id, frame.protocol_id),
                        .body = body};
  if (frame.family == FrameFamily::kRequest) message.call = frame.session_id;
  if (limits_rates_ && !WithinLimits(client, session, message)) return {};

  Forwarded forwarded = SendToServer(session, message);
  if (forwarded.outcome == Outcome::kNotBound || forwarded.outcome == Outcome::kNoServer) {
    forwarded = ChooseAndSend(client, session, message, forwarded.outcome);
  }
  if (forwarded.outcome == Outcome::kSent) {
    forwarded_.fetch_add(1, std::memory_order_relaxed);
  } else {
    AnswerUnsent(client, session, message, forwarded);
  }
  return {};
}

// To the server that its module is bound to.
Linkd::Impl::Forwarded Linkd::Impl::SendToServer(ClientSession& session,
                                                 const ClientMessage& message) const {
  const MutexLock lock(session.mutex);
  ProviderLink* link = session.bindings.Find(message.module);
  if (link == nullptr) return {Outcome::kNotBound};
  if (link->overloaded()) return {Outcome::kBusy};
  // The other half is for answers to what the server sends, which is read whatever waits.
  if (link->connection->QueuedBytesApprox() > options_.providers.output_bytes_max / 2) {
    return {Outcome::kFull};
  }
  if (message.call.has_value() && !HasRoomForRequest(session)) return {Outcome::kInFlight};
  DispatchFields fields{.link_sid = session.sid,
                        .account = session.account,
                        .type = message.type,
                        .body = message.body};
  if (session.user_state != nullptr) {
    fields.context = session.user_state->context;
    fields.context_bytes = session.user_state->contextx.bytes;
    fields.online_set_name = session.user_state->onlineSetName;
  }
  const Result<void> sent =
      link->connection->SendOneWay(provider::Dispatch::kDescriptor, 0,
                                   [&fields](ByteWriter& out) { WriteDispatch(fields, out); });
  if (!sent.ok()) {
    return {sent.error().code() == ErrorCode::kOverloaded ? Outcome::kFull : Outcome::kNoServer};
  }
  if (message.call.has_value()) {
    const std::int32_t max = options_.limits.in_flight_max;
    session.outstanding.Add({.type = message.type, .call = *message.call, .provider = link->id},
                            max > 0 ? static_cast<std::size_t>(max) : kOutstandingMax);
  }
  link->gauge.requests.fetch_add(1, std::memory_order_relaxed);
  return {Outcome::kSent};
}

// The module is not bound, or its server is gone (`why`): a static one gets a server, with all
// static modules of that server.
Linkd::Impl::Forwarded Linkd::Impl::ChooseAndSend(Connection& client, ClientSession& session,
                                                  const ClientMessage& message, Outcome why) {
  const std::string source = SourceOf(client.peer_address());
  std::string context;
  {
    const MutexLock lock(session.mutex);
    if (session.user_state != nullptr) context = session.user_state->context;
  }
  Forwarded forwarded{Outcome::kNoServer};
  // The second time only if the server that was chosen has just gone.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ProviderLinkPtr link;
    std::vector<std::int32_t> modules;
    std::uint64_t offer = 0;
    {
      const MutexLock lock(directory_mutex_);
      if (directory_.IsDynamic(message.module)) {
        return why == Outcome::kNotBound ? Forwarded{Outcome::kNotBound} : forwarded;
      }
      const Choice choice =
          directory_.Choose(message.module, {.account = session.account,
                                             .context = context,
                                             .source_address = source,
                                             .main_version = session.main_version});
      if (choice.provider == 0) {
        return {choice.busy ? Outcome::kBusy : Outcome::kNoServer, choice.failure};
      }
      link = links_.at(choice.provider);
      modules = directory_.StaticModules(choice.provider);
      offer = link->offer;
    }
    if (!BindChosen(session, link, modules, offer)) continue;
    forwarded = SendToServer(session, message);
    if (forwarded.outcome != Outcome::kNotBound && forwarded.outcome != Outcome::kNoServer) break;
    forwarded = {Outcome::kNoServer, kFailureGone};
  }
  return forwarded;
}

bool Linkd::Impl::BindChosen(ClientSession& session, const ProviderLinkPtr& link,
                             const std::vector<std::int32_t>& modules, std::uint64_t offer) {
  const MutexLock lock(session.mutex);
  if (link->closed || session.closed || offer != link->offer) return false;
  for (const std::int32_t module : modules) {
    const ProviderLink* before = session.bindings.Find(module);
    // The client stays at the servers that it has for other modules.
    if (before != nullptr && !before->closed && before->connection->IsOpen()) continue;
    session.bindings.Bind(module, link);
  }
  return true;
}

void Linkd::Impl::AnswerUnsent(Connection& client, ClientSession& session,
                               const ClientMessage& message, const Forwarded& forwarded) {
  switch (forwarded.outcome) {
    case Outcome::kSent:
      return;
    case Outcome::kBusy:
      Count(Refusal::kBusy);
      return AnswerBusy(client, message);
    case Outcome::kFull:
      Count(Refusal::kProviderFull);
      return AnswerBusy(client, message);
    case Outcome::kInFlight:
      return RefuseMessage(client, session, message, Refusal::kInFlight, Now());
    case Outcome::kNotBound: {
      Count(Refusal::kNotBound);
      AnswerCode(client, message, result_code::kProviderNotExist);
      const Time now = Now();
      if (now - session.unbound_reported_at < kReportPeriod) return;
      session.unbound_reported_at = now;
      return Report(client, BReportError::FromDynamicModule, message.module, {});
    }
    case Outcome::kNoServer:
      Count(forwarded.failure == kFailureUnknownModule ? Refusal::kUnknownModule
                                                       : Refusal::kNoProvider);
      AnswerCode(client, message, result_code::kProviderNotExist);
      return Report(client, BReportError::FromLink, BReportError::CodeNoProvider,
                    fmt::format("no server for module {} ({})", message.module, forwarded.failure));
  }
}

// --- A server's message. -------------------------------------------------------------------------

Result<void> Linkd::Impl::OnSend(Connection& connection, const Frame& frame) {
  Result<SendView> parsed = ParseSend(frame.payload);
  if (!parsed.ok()) return parsed.error();
  const SendView& send = parsed.value();
  const bool only_check = send.type == provider::CheckLinkSession::kDescriptor.type_id();
  const ClientFrames frames = only_check ? ClientFrames{} : ParseClientFrames(send.frame);
  if (!only_check && !frames.whole) {
    Count(Refusal::kBadProviderFrame);
    ZEZE_LOG_WARNING("{}: what it sends to a client (type {:x}) is no frame", connection.Describe(),
                     send.type);
  }
  const ProviderLinkPtr link = LinkOf(connection);
  provider::BSendResult result;
  send.ForEachSid([&](std::int64_t sid) {
    const ConnectionPtr client = FindClient(sid, *link);
    const bool done =
        client != nullptr &&
        (only_check ? client->IsOpen() : frames.whole && SendToClient(*client, send.type, frames));
    if (!done) result.ErrorLinkSids.PushBack(sid);
  });
  if (frame.session_id == 0) return {};  // Nobody waits for it.
  // The client is in a hurry, the server is not.
  return connection.SendAnswerSoon(provider::Send::kDescriptor, frame.session_id, 0,
                                   [&result](ByteWriter& out) { result.Encode(out); });
}

Result<void> Linkd::Impl::OnBroadcast(Connection& connection, const Frame& frame) {
  Result<BroadcastView> parsed = ParseBroadcast(frame.payload);
  if (!parsed.ok()) return parsed.error();
  const BroadcastView& broadcast = parsed.value();
  const ClientFrames frames = ParseClientFrames(broadcast.frame);
  if (!frames.whole) {
    Count(Refusal::kBadProviderFrame);
    return {};
  }
  const ProviderLinkPtr link = LinkOf(connection);
  std::int64_t main_version = 0;
  {
    const MutexLock lock(directory_mutex_);
    main_version = directory_.main_version(link->id);
  }
  sessions_.ForEach([&](const ConnectionPtr& client) {
    auto& session = *client->state<ClientSession>();
    if (session.phase() != Phase::kAuthenticated) return;
    if (broadcast.only_same_version && session.main_version != main_version) return;
    {
      const MutexLock lock(session.mutex);
      if (session.user_state == nullptr || session.user_state->context.empty()) return;
      if (options_.strict_provider_rights && !session.bindings.Has(*link)) return;
    }
    SendToClient(*client, broadcast.type, frames);
  });
  return {};
}

bool Linkd::Impl::SendToClient(Connection& client, std::int64_t type, const ClientFrames& frames) {
  const Rule* rule = RuleOf(type);
  const CriticalLevel level = rule == nullptr ? CriticalLevel::kCritical : rule->rule.level;
  auto& session = *client.state<ClientSession>();
  // Also if they are discarded below: there is no other answer.
  if (!frames.answers.empty()) NoteAnswers(session, frames);
  if (!fuse_.Admit(type, level, frames.bytes.size())) {
    Count(Refusal::kBandwidth);
    return true;
  }
  switch (JudgeReader(client, session, level)) {
    case Reader::kTooSlow:
      Count(Refusal::kSlowReader);
      session.SetClosing();
      client.Close("it reads too slowly");
      return false;
    case Reader::kShed:
      Count(Refusal::kShed);
      return true;
    case Reader::kReads:
      break;
  }
  const Result<void> sent = client.SendFrames(frames.bytes);
  if (!sent.ok()) {
    if (sent.error().code() == ErrorCode::kOverloaded) {
      Count(Refusal::kSlowReader);
      session.SetClosing();
      client.Close("it has no room for what it must get");
    }
    return false;
  }
  delivered_.fetch_add(1, std::memory_order_relaxed);
  if (session.phase() == Phase::kClosing) [[unlikely]]
    CloseIfAnswered(client, session);
  return true;
}

void Linkd::Impl::NoteAnswers(ClientSession& session, const ClientFrames& frames) {
  const MutexLock lock(session.mutex);
  for (const ClientFrames::Answer& answer : frames.answers) {
    session.outstanding.Answered(answer.type, answer.call);
  }
  session.stuck_since = Time(0);
}

// By how much of its output bound waits, and since when.
Linkd::Impl::Reader Linkd::Impl::JudgeReader(Connection& client, ClientSession& session,
                                             CriticalLevel level) const {
  const std::size_t waiting = client.QueuedBytesApprox();
  const std::size_t bound = options_.clients.output_bytes_max;
  if (waiting <= bound / 2) [[likely]] {
    if (session.slow_since.load(std::memory_order_relaxed) != 0) session.slow_since = 0;
    return Reader::kReads;
  }
  const Time now = Now();
  const Time since(session.slow_since.load(std::memory_order_relaxed));
  if (since.count() == 0) {
    session.slow_since = now.count();
  } else if (now - since > options_.limits.slow_timeout) {
    return Reader::kTooSlow;
  }
  const bool shed = level == CriticalLevel::kSheddable ||
                    (level == CriticalLevel::kNormal && waiting > bound / 4 * 3);
  return shed ? Reader::kShed : Reader::kReads;
}

}  // namespace zeze::arch
