// The side of a gateway to which clients connect: who is let in, and stays.

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
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {

namespace linkd_auth = Zeze::Builtin::LinkdAuth;
namespace provider = Zeze::Builtin::Provider;
using Zeze::Builtin::LinkdBase::BReportError;

namespace {

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

Result<void> Linkd::Impl::OnKeepAlive(Connection& client, const Frame& frame) {
  auto& session = *client.state<ClientSession>();
  if (!TakeUnauthenticatedBytes(client, session, frame)) return {};
  if (!TakeOwnMessage(client, session)) return {};
  static constexpr ProtocolDescriptor kKeepAlive{.protocol_id = kKeepAliveId, .is_rpc = true};
  return client.SendAnswer(kKeepAlive, frame.session_id, 0, kEmpty);
}

}  // namespace zeze::arch
