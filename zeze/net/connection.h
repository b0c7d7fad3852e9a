// Connection: one open connection of a service, to send on.
//
//   connection->Send<Kick>({.reason = "duplicate"});
//   connection->Call<Login>(argument, {}, [](RpcReply<Login> reply) { ... });
//   Result<RpcReply<Login>> reply = connection->CallAndWait<Login>(argument);   // Worker threads.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

class Connector;
class Service;

struct CallOptions {
  // 0: what the descriptor says, else ServiceOptions::call_timeout.
  std::chrono::nanoseconds timeout{0};

  // Where the completion runs. Absent: where the service's messages are handled, and then in order
  // with them.
  std::optional<Dispatch> dispatch = std::nullopt;

  // Sent with the request; peers of some protocols look at it.
  std::int64_t request_code = 0;
};

// What a service keeps for each of its connections: derive from it.
class ConnectionState {
 public:
  virtual ~ConnectionState() = default;
};

// Guarantees:
//   - What one thread sends arrives in the order of its calls, or not at all.
//   - A call that was accepted completes exactly once: by its answer, by its time-out, or by the
//     end of the connection, and then at once. An answer that comes later is dropped.
//   - After OnClose of the service has run nothing happens on the connection any more.
//
// Thread-safe. Nothing here waits, except CallAndWait.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Unique in the process, never used again.
  std::int64_t id() const { return id_; }
  Service& service() const { return service_; }

  // By an acceptor of ours; otherwise by one of our connectors, which is then not null.
  bool accepted() const { return connector_ == nullptr; }
  const std::shared_ptr<Connector>& connector() const { return connector_; }

  // Known when OnOpen runs, and then fixed. Behind a proxy peer_address is the client's.
  const NetAddress& local_address() const { return local_address_; }
  const NetAddress& peer_address() const { return peer_address_; }

  // What only the two ends of this TLS connection know (RFC 9266, "tls-exporter"): who shows it
  // speaks on this very connection. Empty without TLS. In handlers that run kInline only.
  virtual std::string TlsBinding() const = 0;

  // For log lines: service, id and peer.
  std::string Describe() const;

  // False from the moment at which nothing can be sent any more.
  virtual bool IsOpen() const = 0;

  // Fail with kUnavailable once the connection has closed, with kOverloaded when its output is full
  // or too many calls are open, and with kInvalidArgument when no peer could read the argument
  // (EncodeError). Success means queued: only an answer proves arrival.
  template <OneWayProtocol P>
  Result<void> Send(const typename P::Argument& argument, std::int64_t result_code = 0) {
    return SendOneWay(P::kDescriptor, result_code,
                      [&argument](ByteWriter& out) { argument.Encode(out); });
  }

  // If this fails the completion is dropped without being called.
  template <RpcProtocol P, typename Completion>
    requires std::is_invocable_v<Completion&, RpcReply<P>>
  Result<void> Call(const typename P::Argument& argument, const CallOptions& options,
                    Completion completion) {
    return SendRequest(
        P::kDescriptor, options, [&argument](ByteWriter& out) { argument.Encode(out); },
        [completion = std::move(completion)](const RawReply& raw) mutable {
          RpcReply<P> reply;
          const bool decoded = internal::DecodeReply<P>(raw, reply);
          completion(std::move(reply));
          return decoded;
        });
  }

  // Blocks until the answer, the time-out or the end of the connection. Not on network threads.
  template <RpcProtocol P>
  Result<RpcReply<P>> CallAndWait(const typename P::Argument& argument, CallOptions options = {}) {
    CheckMayWait();
    RpcReply<P> reply;
    internal::RpcWaiter waiter;
    options.dispatch = Dispatch::kInline;
    Result<void> sent = SendRequest(
        P::kDescriptor, options, [&argument](ByteWriter& out) { argument.Encode(out); },
        [&reply, &waiter](const RawReply& raw) {
          const bool decoded = internal::DecodeReply<P>(raw, reply);
          waiter.Finish();
          return decoded;
        });
    if (!sent.ok()) return sent.error();
    waiter.Wait();
    return reply;
  }

  // Closes at once; queued output is lost. The first reason given is the one that is reported.
  virtual void Close(std::string_view reason) = 0;

  // Accepts no more output, closes when what is queued has been written, or after
  // ServiceOptions::write_stall_timeout without progress.
  virtual void CloseWhenSent(std::string_view reason) = 0;

  // Set in OnOpen, before any message is handled, unless ServiceOptions::admit gave one; then only
  // read, until the connection is destroyed. What is inside is the service's to protect.
  void set_state(std::shared_ptr<ConnectionState> state) { state_ = std::move(state); }
  template <typename T>
  T* state() const {
    return static_cast<T*>(state_.get());
  }

  // Of this connection, in place of ServiceOptions::frame_bytes_max: of one of the next frames on.
  virtual void set_frame_bytes_max(std::size_t bytes_max) = 0;

  // Bytes that wait to be written.
  virtual std::size_t QueuedBytesApprox() const = 0;

  // --- Below the types: for forwarding, and for the hot paths of the framework. ---

  using PayloadWriter = FunctionRef<void(ByteWriter& out)>;

  virtual Result<void> SendOneWay(const ProtocolDescriptor& protocol, std::int64_t result_code,
                                  PayloadWriter payload) = 0;
  virtual Result<void> SendRequest(const ProtocolDescriptor& protocol, const CallOptions& options,
                                   PayloadWriter payload, RawCompletion completion) = 0;
  // If no peer could read the payload, an answer with result_code::kException is sent instead.
  virtual Result<void> SendAnswer(const ProtocolDescriptor& protocol, std::int64_t session_id,
                                  std::int64_t result_code, PayloadWriter payload) = 0;

  // For answers that nobody is in a hurry for: may wait a millisecond for other output to leave
  // with, which spares the peer a wake-up. On a network thread; elsewhere like SendAnswer.
  virtual Result<void> SendAnswerSoon(const ProtocolDescriptor& protocol, std::int64_t session_id,
                                      std::int64_t result_code, PayloadWriter payload) = 0;

  // Whole frames, header included, as they are.
  virtual Result<void> SendFrames(std::string_view frames) = 0;

 protected:
  Connection(Service& service, std::int64_t id, std::shared_ptr<Connector> connector);

  NetAddress local_address_;
  NetAddress peer_address_;

 private:
  static void CheckMayWait();

  Service& service_;
  const std::string service_name_;  // A connection may outlive its service.
  const std::int64_t id_;
  const std::shared_ptr<Connector> connector_;
  std::shared_ptr<ConnectionState> state_;
};

template <Payload T>
Result<void> Responder::Answer(std::int64_t result_code, const T& result) {
  if (answered()) {
    return Error(ErrorCode::kInvalidArgument, "this request has been answered before");
  }
  const ProtocolDescriptor* protocol = std::exchange(protocol_, nullptr);
  return connection_->SendAnswer(*protocol, session_id_, result_code,
                                 [&result](ByteWriter& out) { result.Encode(out); });
}

}  // namespace zeze
