// Request, Message, RpcReply: what handlers get, and what callers get back.
//
//   service.Handle<Login>([](Request<Login> request) {
//     pool.Post([request = std::move(request)]() mutable { request.Answer(Check(request)); });
//   });

#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/unique_function.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_reader.h"

namespace zeze {

class Connection;
using ConnectionPtr = std::shared_ptr<Connection>;

enum class RpcOutcome : std::uint8_t {
  kAnswered,
  kTimedOut,   // The peer may or may not have done what was asked.
  kClosed,     // The connection closed first: the same.
  kBadAnswer,  // The answer could not be decoded; the connection closes.
};

// An answer before it is decoded. The payload is valid during the call only.
struct RawReply {
  RpcOutcome outcome = RpcOutcome::kAnswered;
  std::int64_t result_code = 0;
  std::string_view payload = {};
};

// Returns false if the payload could not be decoded; the connection is then closed.
using RawCompletion = UniqueFunction<bool(const RawReply& reply)>;

template <RpcProtocol P>
struct RpcReply {
  RpcOutcome outcome = RpcOutcome::kAnswered;

  // What the peer said; kTimeout, kClosed or kException if it said nothing usable.
  std::int64_t result_code = 0;

  typename P::Result result = {};

  bool ok() const { return result_code == 0; }
};

// Where an answer goes: a connection and the id of a request. Movable, so that a handler can return
// and somebody else answer later, on any thread. Only the first answer is sent. A request that is
// dropped without an answer is answered with kCanceled (kException while an exception flies), so
// that no caller waits for nothing.
class Responder {
 public:
  Responder(ConnectionPtr connection, const ProtocolDescriptor& protocol, std::int64_t session_id);
  Responder(Responder&& other) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  // Fails with kUnavailable if the connection has closed, with kInvalidArgument if it was answered
  // before.
  template <Payload T>
  Result<void> Answer(std::int64_t result_code, const T& result);  // In connection.h.
  Result<void> AnswerEmpty(std::int64_t result_code);

  bool answered() const { return protocol_ == nullptr || connection_ == nullptr; }

  const ConnectionPtr& connection() const { return connection_; }

 private:
  void Abandon();

  ConnectionPtr connection_;                      // Null once moved from.
  const ProtocolDescriptor* protocol_ = nullptr;  // Null once answered.
  std::int64_t session_id_ = 0;
};

// A received request with its decoded argument.
template <RpcProtocol P>
class Request {
 public:
  Request(Responder responder, std::int64_t request_code, typename P::Argument argument)
      : responder_(std::move(responder)),
        request_code_(request_code),
        argument_(std::move(argument)) {}

  typename P::Argument& argument() { return argument_; }
  const typename P::Argument& argument() const { return argument_; }

  const ConnectionPtr& connection() const { return responder_.connection(); }

  // Requests may carry a code, too.
  std::int64_t request_code() const { return request_code_; }

  Result<void> Answer(const typename P::Result& result) {
    return responder_.Answer(result_code::kSuccess, result);
  }
  Result<void> Answer(std::int64_t result_code, const typename P::Result& result) {
    return responder_.Answer(result_code, result);
  }
  // With a default result.
  Result<void> AnswerCode(std::int64_t result_code) {
    return responder_.Answer(result_code, typename P::Result{});
  }

  bool answered() const { return responder_.answered(); }

 private:
  Responder responder_;
  std::int64_t request_code_;
  typename P::Argument argument_;
};

// A received one-way message.
template <OneWayProtocol P>
struct Message {
  ConnectionPtr connection;
  std::int64_t result_code = 0;
  typename P::Argument argument = {};
};

namespace internal {

// A thread that waits for a completion.
class RpcWaiter {
 public:
  void Finish() {
    // Notified under the lock: the waiter destroys this object as soon as it sees it done.
    MutexLock lock(mutex_);
    done_ = true;
    finished_.NotifyOne();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!done_) finished_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar finished_;
  bool done_ ZEZE_GUARDED_BY(mutex_) = false;
};

template <RpcProtocol P>
bool DecodeReply(const RawReply& raw, RpcReply<P>& reply) {
  reply.outcome = raw.outcome;
  reply.result_code = raw.result_code;
  if (raw.outcome != RpcOutcome::kAnswered) return true;
  ByteReader in(raw.payload);
  reply.result.Decode(in);
  if (in.ok()) return true;
  if (raw.result_code != 0) {
    // Whoever refuses a request need not know how its result would look.
    reply.result = {};
    return true;
  }
  reply = RpcReply<P>{.outcome = RpcOutcome::kBadAnswer, .result_code = result_code::kException};
  return false;
}

}  // namespace internal

}  // namespace zeze
