// The side of a gateway to which clients connect.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
#include "zeze/arch/linkd/bindings.h"
#include "zeze/arch/linkd/client_session.h"
#include "zeze/arch/linkd/gateway_messages.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_impl.h"
#include "zeze/arch/linkd/provider_directory.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/result_code.h"

namespace zeze::arch {

namespace linkd_auth = Zeze::Builtin::LinkdAuth;
namespace provider = Zeze::Builtin::Provider;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;

namespace {

// How often a client hears of what it cannot help at the moment.
constexpr std::chrono::seconds kReportPeriod{1};

// Of what an authenticator says.
Refusal RefusalOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kCorrupt:
      return Refusal::kForgedToken;
    case ErrorCode::kNotFound:
      return Refusal::kExpiredToken;
    case ErrorCode::kConflict:
      return Refusal::kReplayedToken;
    case ErrorCode::kInUse:
      return Refusal::kUnboundToken;
    case ErrorCode::kOverloaded:
      return Refusal::kTooManyTokens;
    case ErrorCode::kInvalidArgument:
      return Refusal::kBadToken;
    case ErrorCode::kIncompatible:
      return Refusal::kUnsuitableToken;
    default:
      return Refusal::kNotChecked;
  }
}

// Outstanding requests of a client that are remembered where their number has no limit.
constexpr std::size_t kOutstandingMax = 1024;

constexpr auto kEmpty = [](ByteWriter& out) { out.WriteEnd(); };

}  // namespace

std::shared_ptr<ConnectionState> Linkd::Impl::Admit(const NetAddress& peer) {
  const Time now = Now();
  const AddressBook::Admission admission = book_->Admit(peer, now);
  switch (admission.verdict) {
    case AddressVerdict::kAdmitted:
      break;
    case AddressVerdict::kBanned:
      Count(Refusal::kBanned);
      return nullptr;
    case AddressVerdict::kTooManyConnections:
      Count(Refusal::kAddressConnections);
      return nullptr;
    case AddressVerdict::kTooManyAttempts:
      Count(Refusal::kAddressAttempts);
      return nullptr;
  }
  auto session = std::make_shared<ClientSession>(book_, admission.entry, now);
  std::optional<std::chrono::milliseconds> later;
  {
    const MutexLock lock(ramp_mutex_);
    later = ramp_.Refuse(now);
  }
  if (later.has_value()) {
    if (!retry_bucket_.Take(retry_hints_, now)) {
      Count(Refusal::kRampSilent);
      return nullptr;
    }
    session->retry_after = *later;
  }
  return session;
}

void Linkd::Impl::OnClientOpen(const ConnectionPtr& client) {
  auto& session = *client->state<ClientSession>();
  if (session.retry_after.count() != 0) {
    Count(Refusal::kRamp);
    const auto milliseconds = static_cast<std::int32_t>(session.retry_after.count());
    Report(*client, BReportError::FromLink, BReportError::CodeProviderBusy,
           fmt::format("retry after {} ms", milliseconds));
    static_cast<void>(client->Send<linkd_auth::RetryAfter>({.milliseconds = milliseconds}));
    return CloseClient(*client, "too many clients at once after the start");
  }
  const std::optional<std::int64_t> sid = sids_->Next();
  if (sids_->WantsRefill()) RefillSids();
  if (!sid.has_value()) {
    Count(Refusal::kNoSessionId);
    return CloseClient(*client, "there are no session ids");
  }
  session.sid = *sid;
  client->set_frame_bytes_max(
      std::min(options_.limits.unauthenticated_bytes_max, options_.clients.frame_bytes_max));
  sessions_.Add(*sid, client);
  const MutexLock lock(waiting_mutex_);
  waiting_.emplace(session.accepted_at + options_.limits.authentication_timeout, client);
}

void Linkd::Impl::OnClientClose(const ConnectionPtr& client, const Error& reason) {
  auto& session = *client->state<ClientSession>();
  if (reason.code() == ErrorCode::kCorrupt) Strike(session, Now());
  session.SetClosing();
  sessions_.Remove(session.sid);
  bool authenticated = false;
  {
    // Every server that it was bound to hears of it once; nobody is bound to it any more.
    const MutexLock lock(session.mutex);
    session.closed = true;
    authenticated = session.account_entry != nullptr;
    if (authenticated) {
      provider::BLinkBroken broken{.account = session.account,
                                   .linkSid = session.sid,
                                   .reason = provider::BLinkBroken::REASON_PEERCLOSE};
      if (session.user_state != nullptr) broken.userState = *session.user_state;
      for (const ProviderLinkPtr& link : session.bindings.links()) {
        // A server that cannot be told has gone, or is as good as gone.
        static_cast<void>(link->connection->Send<provider::LinkBroken>(broken));
      }
    }
    session.bindings = Bindings();
  }
  if (!authenticated) return;
  const MutexLock lock(accounts_mutex_);
  if (--session.account_entry->sessions == 0) accounts_.erase(session.account);
}

void Linkd::Impl::ExpireUnauthenticated(Time now) {
  while (true) {
    ConnectionPtr late;
    {
      const MutexLock lock(waiting_mutex_);
      if (waiting_.empty() || waiting_.begin()->first > now) return;
      late = waiting_.begin()->second.lock();
      waiting_.erase(waiting_.begin());
    }
    if (late == nullptr) continue;
    auto& session = *late->state<ClientSession>();
    if (!session.Advance(Phase::kNew, Phase::kClosing) &&
        !session.Advance(Phase::kAuthenticating, Phase::kClosing)) {
      continue;
    }
    Count(Refusal::kAuthTimeout);
    late->Close("it did not authenticate itself in time");
  }
}

Result<void> Linkd::Impl::OnAuth(Connection& client, const Frame& frame) {
  auto& session = *client.state<ClientSession>();
  if (!TakeUnauthenticatedBytes(client, session, frame)) return {};
  linkd_auth::BAuth given;
  ByteReader in(frame.payload);
  given.Decode(in);
  if (!in.ok()) return in.ToError(linkd_auth::Auth::kDescriptor.full_name);
  if (!session.Advance(Phase::kNew, Phase::kAuthenticating)) {
    if (!TakeOwnMessage(client, session)) return {};
    Count(Refusal::kRepeatedAuth);
    return client.SendAnswer(linkd_auth::Auth::kDescriptor, frame.session_id,
                             result_code::kDuplicateRequest, kEmpty);
  }
  workers_.Post(
      Task("authenticate a client",
           [self = shared_from_this(), connection = client.shared_from_this(),
            call = frame.session_id, binding = client.TlsBinding(),
            given = std::move(given)] { self->Authenticate(connection, call, given, binding); }));
  return {};
}

void Linkd::Impl::Authenticate(const ConnectionPtr& client, std::int64_t call,
                               const linkd_auth::BAuth& given, std::string_view binding) {
  auto& session = *client->state<ClientSession>();
  Result<ClientIdentity> identity =
      options_.authenticator->Authenticate({.token = given.token.bytes,
                                            .app_version = given.appVersion,
                                            .address = client->peer_address(),
                                            .tls_binding = binding});
  if (!identity.ok()) {
    const Refusal refusal = RefusalOf(identity.error());
    Count(refusal);
    if (refusal == Refusal::kForgedToken || refusal == Refusal::kBadToken) Strike(session, Now());
    const bool later = refusal == Refusal::kTooManyTokens || refusal == Refusal::kNotChecked;
    ZEZE_LOG_INFO("{}: not authenticated: {}", client->Describe(), identity.error().message());
    AnswerCall(*client, linkd_auth::Auth::kDescriptor.type_id(), call,
               later ? result_code::kBusy : result_code::kAuthFail);
    return CloseClient(*client, "it was not authenticated");
  }
  if (Result<void> accepted = Accept(*client, identity.value()); !accepted.ok()) return;
  const linkd_auth::BAuthResult result{.account = identity.value().account, .linkSid = session.sid};
  static_cast<void>(client->SendAnswer(linkd_auth::Auth::kDescriptor, call, 0,
                                       [&result](ByteWriter& out) { result.Encode(out); }));
}

Result<void> Linkd::Impl::Accept(Connection& client, const ClientIdentity& identity) {
  auto& session = *client.state<ClientSession>();
  session.Advance(Phase::kNew, Phase::kAuthenticating);
  {
    const MutexLock lock(session.mutex);
    if (session.closed || session.account_entry != nullptr) {
      return Error(ErrorCode::kConflict, "the client is closed, or was authenticated before");
    }
    const MutexLock accounts_lock(accounts_mutex_);
    std::shared_ptr<AccountEntry>& entry = accounts_[identity.account];
    if (entry == nullptr) entry = std::make_shared<AccountEntry>();
    ++entry->sessions;
    session.account = identity.account;
    session.main_version = MainVersion(identity.app_version);
    session.account_entry = entry;
    if (!identity.context.empty()) {
      session.user_state = std::make_unique<provider::BUserState>();
      session.user_state->context = identity.context;
    }
  }
  client.set_frame_bytes_max(options_.clients.frame_bytes_max);
  if (!session.Advance(Phase::kAuthenticating, Phase::kAuthenticated)) {
    return Error(ErrorCode::kConflict, "the client is closing");
  }
  authenticated_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

bool Linkd::Impl::TakeUnauthenticatedBytes(Connection& client, ClientSession& session,
                                           const Frame& frame) {
  const Phase phase = session.phase();
  if (phase == Phase::kAuthenticated) return true;
  if (phase == Phase::kClosing) return false;
  session.unauthenticated_bytes += kFrameHeaderBytes + frame.payload.size();
  if (session.unauthenticated_bytes <= options_.limits.unauthenticated_bytes_max) return true;
  Count(Refusal::kUnauthenticatedBytes);
  Strike(session, Now());
  CloseClient(client, "too many bytes before it was authenticated");
  return false;
}

// Counted like every message, or it would be the one for floods.
bool Linkd::Impl::TakeOwnMessage(Connection& client, ClientSession& session) {
  const Time now = Now();
  if (session.messages.Take(session_messages_, now)) return true;
  Count(Refusal::kSessionRate);
  if (session.refusals.Take(refused_messages_, now)) return false;
  Count(Refusal::kFlood);
  Strike(session, now);
  CloseClient(client, "a flood of messages to the gateway itself");
  return false;
}

Result<void> Linkd::Impl::OnKeepAlive(Connection& client, const Frame& frame) {
  auto& session = *client.state<ClientSession>();
  if (!TakeUnauthenticatedBytes(client, session, frame)) return {};
  if (!TakeOwnMessage(client, session)) return {};
  static constexpr ProtocolDescriptor kKeepAlive{.protocol_id = kKeepAliveId, .is_rpc = true};
  return client.SendAnswer(kKeepAlive, frame.session_id, 0, kEmpty);
}

Result<void> Linkd::Impl::OnClientFrame(Connection& client, const RawFrame& frame) {
  auto& session = *client.state<ClientSession>();
  switch (session.phase()) {
    case Phase::kAuthenticated:
      break;
    case Phase::kClosing:
      return {};
    default:
      RefuseUnauthenticated(client, session, "it has to authenticate itself first");
      return {};
  }
  if (limits_rates_ && !WithinLimits(client, session, frame)) return {};
  const Forward message{.frame = frame, .call = CallOfRequest(frame.body)};
  switch (TryForward(session, message)) {
    case Forwarded::kSent:
      forwarded_.fetch_add(1, std::memory_order_relaxed);
      break;
    case Forwarded::kBusy:
      Count(Refusal::kBusy);
      AnswerBusy(client, frame);
      break;
    case Forwarded::kFull:
      Count(Refusal::kProviderFull);
      AnswerBusy(client, frame);
      break;
    case Forwarded::kInFlight:
      RefuseMessage(client, session, frame, Refusal::kInFlight, Now());
      break;
    case Forwarded::kNotBound:
      ForwardUnbound(client, session, message, false);
      break;
    case Forwarded::kGone:
      ForwardUnbound(client, session, message, true);
      break;
  }
  return {};
}

void Linkd::Impl::RefuseUnauthenticated(Connection& client, ClientSession& session,
                                        std::string_view why) {
  Count(Refusal::kUnauthenticated);
  Strike(session, Now());
  Report(client, BReportError::FromLink, BReportError::CodeNotAuthed, why);
  CloseClient(client, why);
}

bool Linkd::Impl::HasRoomForRequest(ClientSession& session) const {
  const std::int32_t max = options_.limits.in_flight_max;
  if (max <= 0 || session.outstanding.size() < static_cast<std::size_t>(max)) return true;
  const Time now = Now();
  if (session.stuck_since.count() == 0) session.stuck_since = now;
  if (now - session.stuck_since <= options_.limits.in_flight_lost) return false;
  session.outstanding.Clear();
  session.stuck_since = Time(0);
  return true;
}

// kCount: nothing is.
Refusal Linkd::Impl::FindExceeded(ClientSession& session, std::int64_t type, std::size_t bytes,
                                  Time now) {
  if (!session.messages.Take(session_messages_, now)) return Refusal::kSessionRate;
  if (!session.bytes.Take(session_bytes_, now, static_cast<double>(bytes))) {
    return Refusal::kSessionBytes;
  }
  if (!session.account_entry->messages.Take(account_messages_, now)) return Refusal::kAccountRate;
  if (book_->limits_messages() && !book_->TakeMessage(*session.address, now)) {
    return Refusal::kAddressRate;
  }
  const Rule* rule = RuleOf(type);
  if (rule == nullptr) return Refusal::kCount;
  if (rule->rule.bytes_max != 0 && bytes > rule->rule.bytes_max) return Refusal::kOversizeProtocol;
  if (rule->rate.unlimited()) return Refusal::kCount;
  if (session.protocols.empty()) session.protocols = std::vector<TokenBucket>(rules_.size());
  return session.protocols[rule->index].Take(rule->rate, now) ? Refusal::kCount
                                                              : Refusal::kProtocolRate;
}

bool Linkd::Impl::WithinLimits(Connection& client, ClientSession& session, const RawFrame& frame) {
  const Time now = Now();
  const std::int64_t type = ProtocolTypeId(frame.module_id, frame.protocol_id);
  const Refusal exceeded = FindExceeded(session, type, frame.body.size() + kFrameHeaderBytes, now);
  if (exceeded == Refusal::kCount) return true;
  RefuseMessage(client, session, frame, exceeded, now);
  return false;
}

void Linkd::Impl::RefuseMessage(Connection& client, ClientSession& session, const RawFrame& frame,
                                Refusal why, Time now) {
  Count(why);
  if (why == Refusal::kOversizeProtocol || !session.refusals.Take(refused_messages_, now)) {
    if (why != Refusal::kOversizeProtocol) Count(Refusal::kFlood);
    Strike(session, now);
    Report(client, BReportError::FromLink, BReportError::CodeMuteKick, ToString(why));
    return CloseClient(client, ToString(why));
  }
  // Of the reports one a second is enough, or they would be the flood.
  const bool report = now - session.limit_reported_at >= kReportPeriod;
  if (report) session.limit_reported_at = now;
  AnswerCode(client, frame, result_code::kBusy);
  if (report) {
    Report(client, BReportError::FromLink, BReportError::CodeProviderBusy, ToString(why));
  }
}

// As a whole frame: Zeze 1.6 forgets its header, and what comes behind it is lost for the client.
void Linkd::Impl::AnswerCode(Connection& client, const RawFrame& frame, std::int64_t code) {
  if (const std::optional<std::int64_t> call = CallOfRequest(frame.body)) {
    AnswerCall(client, ProtocolTypeId(frame.module_id, frame.protocol_id), *call, code);
  }
}

void Linkd::Impl::AnswerCall(Connection& client, std::int64_t type, std::int64_t call,
                             std::int64_t code) {
  const ProtocolDescriptor protocol{.module_id = static_cast<std::int32_t>(type >> 32),
                                    .protocol_id = static_cast<std::int32_t>(type),
                                    .is_rpc = true};
  static_cast<void>(client.SendAnswer(protocol, call, code, kEmpty));
}

void Linkd::Impl::AnswerBusy(Connection& client, const RawFrame& frame) {
  AnswerCode(client, frame, result_code::kBusy);
  Report(client, BReportError::FromLink, BReportError::CodeProviderBusy, "the server is busy");
}

Linkd::Impl::Forwarded Linkd::Impl::TryForward(ClientSession& session,
                                               const Forward& message) const {
  const RawFrame& frame = message.frame;
  const MutexLock lock(session.mutex);
  ProviderLink* link = session.bindings.Find(frame.module_id);
  if (link == nullptr) return Forwarded::kNotBound;
  if (link->overloaded()) return Forwarded::kBusy;
  // The other half is for answers to what the server sends, which is read whatever waits.
  if (link->connection->QueuedBytesApprox() > options_.providers.output_bytes_max / 2) {
    return Forwarded::kFull;
  }
  if (message.call.has_value() && !HasRoomForRequest(session)) return Forwarded::kInFlight;
  DispatchFields fields{.link_sid = session.sid,
                        .account = session.account,
                        .type = ProtocolTypeId(frame.module_id, frame.protocol_id),
                        .body = frame.body};
  if (session.user_state != nullptr) {
    fields.context = session.user_state->context;
    fields.context_bytes = session.user_state->contextx.bytes;
    fields.online_set_name = session.user_state->onlineSetName;
  }
  const Result<void> sent =
      link->connection->SendOneWay(provider::Dispatch::kDescriptor, 0,
                                   [&fields](ByteWriter& out) { WriteDispatch(fields, out); });
  if (sent.ok()) {
    if (message.call.has_value()) {
      const std::int32_t max = options_.limits.in_flight_max;
      session.outstanding.Add({.type = fields.type, .call = *message.call, .provider = link->id},
                              max > 0 ? static_cast<std::size_t>(max) : kOutstandingMax);
    }
    link->gauge.requests.fetch_add(1, std::memory_order_relaxed);
    return Forwarded::kSent;
  }
  return sent.error().code() == ErrorCode::kOverloaded ? Forwarded::kFull : Forwarded::kGone;
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

// The module is not bound, or its server does not answer any more.
void Linkd::Impl::ForwardUnbound(Connection& client, ClientSession& session, const Forward& message,
                                 bool was_bound) {
  const RawFrame& frame = message.frame;
  const NetAddress& peer = client.peer_address();
  std::string source(peer.bytes());
  source.push_back(static_cast<char>(peer.port() >> 8));
  source.push_back(static_cast<char>(peer.port() & 0xff));
  std::string context;
  {
    const MutexLock lock(session.mutex);
    if (session.user_state != nullptr) context = session.user_state->context;
  }
  // The second time only if the server that was chosen has just gone.
  constexpr int kAttempts = 3;
  Choice choice;
  bool dynamic = false;
  bool full = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ProviderLinkPtr link;
    std::vector<std::int32_t> modules;
    std::uint64_t offer = 0;
    {
      const MutexLock lock(directory_mutex_);
      dynamic = directory_.IsDynamic(frame.module_id);
      if (dynamic) break;
      choice = directory_.Choose(frame.module_id, {.account = session.account,
                                                   .context = context,
                                                   .source_address = source,
                                                   .main_version = session.main_version});
      if (choice.provider == 0) break;
      link = links_.at(choice.provider);
      modules = directory_.StaticModules(choice.provider);
      offer = link->offer;
    }
    if (!BindChosen(session, link, modules, offer)) continue;
    const Forwarded sent = TryForward(session, message);
    if (sent == Forwarded::kSent) {
      forwarded_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (sent == Forwarded::kInFlight) {
      return RefuseMessage(client, session, frame, Refusal::kInFlight, Now());
    }
    full = sent == Forwarded::kFull;
    choice.busy = sent == Forwarded::kBusy || full;
    if (choice.busy) break;
    choice.failure = 101;  // Of Zeze 1.6: its socket is gone.
  }
  if (dynamic && !was_bound) {
    Count(Refusal::kNotBound);
    AnswerCode(client, frame, result_code::kProviderNotExist);
    const Time now = Now();
    if (now - session.unbound_reported_at < kReportPeriod) return;
    session.unbound_reported_at = now;
    return Report(client, BReportError::FromDynamicModule, frame.module_id, {});
  }
  if (choice.busy) {
    Count(full ? Refusal::kProviderFull : Refusal::kBusy);
    return AnswerBusy(client, frame);
  }
  Count(choice.failure == kFailureUnknownModule ? Refusal::kUnknownModule : Refusal::kNoProvider);
  AnswerCode(client, frame, result_code::kProviderNotExist);
  Report(client, BReportError::FromLink, BReportError::CodeNoProvider,
         fmt::format("no server for module {} ({})", frame.module_id, choice.failure));
}

void Linkd::Impl::Report(Connection& client, std::int32_t from, std::int32_t code,
                         std::string_view description) {
  // Who has no room for it has worse to worry about.
  static_cast<void>(
      client.Send<ReportError>({.from = from, .code = code, .desc = std::string(description)}));
}

void Linkd::Impl::CloseClient(Connection& client, std::string_view reason) {
  client.state<ClientSession>()->SetClosing();
  client.CloseWhenSent(reason);
}

}  // namespace zeze::arch
