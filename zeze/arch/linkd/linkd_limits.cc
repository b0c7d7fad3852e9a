// What a gateway does not let through: the limits of clients, and what they are told.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/client_session.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_impl.h"
#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {

using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;

// --- Before it is authenticated, and what the gateway answers itself. ----------------------------

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

void Linkd::Impl::RefuseUnauthenticated(Connection& client, ClientSession& session,
                                        std::string_view why) {
  Count(Refusal::kUnauthenticated);
  Strike(session, Now());
  Report(client, BReportError::FromLink, BReportError::CodeNotAuthed, why);
  CloseClient(client, why);
}

// --- Messages to servers. ------------------------------------------------------------------------

bool Linkd::Impl::WithinLimits(Connection& client, ClientSession& session,
                               const ClientMessage& message) {
  const Time now = Now();
  const Refusal exceeded = FindExceeded(session, message, now);
  if (exceeded == Refusal::kCount) return true;
  RefuseMessage(client, session, message, exceeded, now);
  return false;
}

// kCount: nothing is.
Refusal Linkd::Impl::FindExceeded(ClientSession& session, const ClientMessage& message, Time now) {
  const std::size_t bytes = kFrameHeaderBytes + message.body.size();
  if (!session.messages.Take(session_messages_, now)) return Refusal::kSessionRate;
  if (!session.bytes.Take(session_bytes_, now, static_cast<double>(bytes))) {
    return Refusal::kSessionBytes;
  }
  if (!session.account_entry->messages.Take(account_messages_, now)) return Refusal::kAccountRate;
  if (book_->limits_messages() && !book_->TakeMessage(*session.address, now)) {
    return Refusal::kAddressRate;
  }
  const Rule* rule = RuleOf(message.type);
  if (rule == nullptr) return Refusal::kCount;
  if (rule->rule.bytes_max != 0 && bytes > rule->rule.bytes_max) return Refusal::kOversizeProtocol;
  if (rule->rate.unlimited()) return Refusal::kCount;
  if (session.protocols.empty()) session.protocols = std::vector<TokenBucket>(rules_.size());
  return session.protocols[rule->index].Take(rule->rate, now) ? Refusal::kCount
                                                              : Refusal::kProtocolRate;
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

void Linkd::Impl::RefuseMessage(Connection& client, ClientSession& session,
                                const ClientMessage& message, Refusal why, Time now) {
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
  AnswerCode(client, message, result_code::kBusy);
  if (report) {
    Report(client, BReportError::FromLink, BReportError::CodeProviderBusy, ToString(why));
  }
}

// --- What clients are told. ----------------------------------------------------------------------

// As a whole frame: Zeze 1.6 forgets its header, and what comes behind it is lost for the client.
void Linkd::Impl::AnswerCode(Connection& client, const ClientMessage& message, std::int64_t code) {
  if (message.call.has_value()) AnswerCall(client, message.type, *message.call, code);
}

void Linkd::Impl::AnswerCall(Connection& client, std::int64_t type, std::int64_t call,
                             std::int64_t code) {
  const ProtocolDescriptor protocol{.module_id = static_cast<std::int32_t>(type >> 32),
                                    .protocol_id = static_cast<std::int32_t>(type),
                                    .is_rpc = true};
  static_cast<void>(
      client.SendAnswer(protocol, call, code, [](ByteWriter& out) { out.WriteEnd(); }));
}

void Linkd::Impl::AnswerBusy(Connection& client, const ClientMessage& message) {
  AnswerCode(client, message, result_code::kBusy);
  Report(client, BReportError::FromLink, BReportError::CodeProviderBusy, "the server is busy");
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
