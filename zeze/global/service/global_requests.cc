// Every request that servers send to a Global, and how it is answered, on the network thread:
// Acquire and Release, Reduce to those who hold what others want, signs of life, goodbye. What they
// mean is for the machine (GlobalServer) to say. Logins are in global_logins.cc.
// docs/architecture.md walks Acquire and Reduce.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/global_service_impl.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

namespace {

std::uint32_t StateOf(Right right) {
  return static_cast<std::uint32_t>(right);
}

}  // namespace

void GlobalService::Impl::HandleRequests() {
  // Without a copy of the key: there are more of these than of everything else together.
  service_.HandleRaw(
      wire::Acquire::kDescriptor,
      [this](Connection& connection, const Frame& frame) { return OnAcquire(connection, frame); });
  service_.Handle<wire::KeepAlive>(
      [this](Request<wire::KeepAlive> request) { OnKeepAlive(std::move(request)); });
  service_.Handle<wire::NormalClose>(
      [this](Request<wire::NormalClose> request) { OnNormalClose(std::move(request)); });
  // The key of old consoles is no secret: see `zeze admin cleanup`.
  service_.Handle<wire::Cleanup>(
      [](Request<wire::Cleanup> request) { (void)request.AnswerCode(wire::kCleanupRefused); });
}

// --- Acquire and Release -------------------------------------------------------------------------

Result<void> GlobalService::Impl::OnAcquire(Connection& connection, const Frame& frame) {
  ByteReader in(frame.payload);
  wire::KeyState argument;
  argument.Decode(in);
  if (!in.ok()) return in.ToError(wire::Acquire::kDescriptor.full_name);
  const ConnectionId from = IdOf(connection);
  const auto request = static_cast<std::uint64_t>(frame.session_id);
  const auto answer = [&](std::int64_t code) {
    (void)connection.SendAnswer(
        wire::Acquire::kDescriptor, frame.session_id, code,
        [&argument](ByteWriter& out) { wire::KeyState{.key = argument.key}.Encode(out); });
  };
  if (argument.state > StateOf(Right::kModify)) {
    answer(machine_.LoggedIn(from) ? wire::kBadState : wire::kNotLoggedIn);
    return {};
  }
  asking_ = &connection;
  const bool known = argument.state == StateOf(Right::kInvalid)
                         ? machine_.OnRelease(recent_now_, from, request, argument.key)
                         : machine_.OnAcquire(recent_now_, from, request, argument.key,
                                              static_cast<Right>(argument.state));
  asking_ = nullptr;
  if (!known) answer(wire::kNotLoggedIn);
  return {};
}

void GlobalService::Impl::SendGrant(ConnectionId to, std::uint64_t request, std::string_view key,
                                    Right right) {
  AnswerAcquire(to, request, 0, key, StateOf(right));
}

void GlobalService::Impl::SendRefusal(ConnectionId to, std::uint64_t request, std::string_view key,
                                      Right wanted, Refusal refusal) {
  std::int64_t code = wanted == Right::kModify ? wire::kModifyFailed : wire::kShareFailed;
  if (refusal == Refusal::kHolderFresh) code = wire::kHolderFresh;
  if (refusal == Refusal::kDeadlock) {
    code = wanted == Right::kModify ? wire::kModifyDeadlock : wire::kShareDeadlock;
  }
  AnswerAcquire(to, request, code, key, StateOf(Right::kInvalid));
}

void GlobalService::Impl::SendReleased(ConnectionId to, std::uint64_t request,
                                       std::string_view key) {
  AnswerAcquire(to, request, 0, key, StateOf(Right::kInvalid));
}

void GlobalService::Impl::AnswerAcquire(ConnectionId to, std::uint64_t request, std::int64_t code,
                                        std::string_view key, std::uint32_t state) {
  Connection* connection = Find(to);
  if (connection == nullptr) return;
  // An answer that does not fit closes the connection, which is what a lost one must do.
  (void)connection->SendAnswer(
      wire::Acquire::kDescriptor, static_cast<std::int64_t>(request), code,
      [key, state](ByteWriter& out) { wire::KeyState{.key = key, .state = state}.Encode(out); });
}

// --- Reduce --------------------------------------------------------------------------------------

void GlobalService::Impl::SendReduce(ConnectionId to, std::uint64_t serial, std::string_view key,
                                     Right right) {
  Connection* connection = Find(to);
  if (connection == nullptr) return;
  const wire::KeyState argument{.key = key, .state = StateOf(right)};
  // The machine has its own, shorter time-out.
  const CallOptions call{.timeout = options_.machine.reduce_timeout * 2};
  Result<void> sent = connection->Call<wire::Reduce>(
      argument, call,
      [this, to, serial, key = std::string(key)](const RpcReply<wire::Reduce>& reply) {
        OnReduceReply(to, serial, key, reply);
      });
  if (!sent.ok()) connection->Close(sent.error().message());
}

void GlobalService::Impl::OnReduceReply(ConnectionId from, std::uint64_t serial,
                                        std::string_view key, const RpcReply<wire::Reduce>& reply) {
  if (reply.outcome != RpcOutcome::kAnswered) return;  // The close tells the machine.
  // A negative code is of the framework: nothing was lowered. Old peers add codes of their own.
  if (reply.result_code >= 0 && reply.result.state <= StateOf(Right::kModify)) {
    machine_.OnReduced(Now(), from, serial, key, static_cast<Right>(reply.result.state));
  } else {
    machine_.OnReduceFailed(
        Now(), from, serial, key,
        reply.result.state == wire::kStateFresh ? Refusal::kHolderFresh : Refusal::kHolderFailed);
  }
}

// --- signs of life, goodbye ----------------------------------------------------------------------

void GlobalService::Impl::OnKeepAlive(Request<wire::KeepAlive> request) {
  const ConnectionId from = IdOf(*request.connection());
  const bool known = machine_.LoggedIn(from);
  machine_.OnKeepAlive(Now(), from);
  (void)request.AnswerCode(known ? 0 : wire::kNotLoggedIn);
}

void GlobalService::Impl::OnNormalClose(Request<wire::NormalClose> request) {
  const ConnectionId from = IdOf(*request.connection());
  if (!machine_.LoggedIn(from)) {
    (void)request.AnswerCode(wire::kNotLoggedIn);
    return;
  }
  (void)request.Answer({});
  machine_.OnNormalClose(Now(), from);
}

}  // namespace zeze::global
