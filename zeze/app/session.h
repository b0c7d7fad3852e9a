// Session: who sent a message, and the way back to it. Handlers get the one of their message:
//
//   std::int64_t ProcessMove(zeze::Transaction& tx, zeze::Session& session, const BMove& move) {
//     session.SendAfterCommit<SMoved>(tx, {.x = move.x});
//     return 0;
//   }

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// A message that needs no answer, as it travels. Throws EncodeError if no peer could read it.
template <OneWayProtocol P>
std::string EncodeOneWayFrame(const typename P::Argument& argument) {
  ByteWriter payload;
  argument.Encode(payload);
  ByteWriter out;
  EncodeFrame({.module_id = P::kDescriptor.module_id,
               .protocol_id = P::kDescriptor.protocol_id,
               .family = FrameFamily::kOneWay,
               .payload = payload.view()},
              out);
  return std::string(out.view());
}

// Lives as long as anybody holds it, the connection behind it may be gone before: sends then fail.
// Thread-safe.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session();

  // Who it is, as whoever authenticated it says; empty before that.
  virtual const std::string& account() const = 0;
  // What the application noted about the client, often its role; empty before that.
  virtual const std::string& context() const = 0;

  // Queued immediately, whatever becomes of the transaction around it. Success does not mean
  // arrival. Both throw EncodeError if no peer could read the message.
  template <OneWayProtocol P>
  Result<void> Send(const typename P::Argument& argument) {
    return SendFrame(EncodeOneWayFrame<P>(argument));
  }

  // Queued if and when the transaction commits: in the order of these calls, before the answer.
  template <OneWayProtocol P>
  void SendAfterCommit(Transaction& tx, const typename P::Argument& argument) {
    tx.AfterCommit(Task("send after commit",
                        [self = shared_from_this(), frame = EncodeOneWayFrame<P>(argument)] {
                          self->LogIfLost(self->SendFrame(frame));
                        }));
  }

  // A whole frame, as it travels.
  virtual Result<void> SendFrame(std::string_view frame) = 0;

  // Tells the client why, and ends its connection.
  virtual void Kick(std::int32_t code, std::string_view description) = 0;

  // For log lines.
  virtual std::string Describe() const = 0;

 protected:
  Session() = default;

 private:
  void LogIfLost(const Result<void>& sent) const;
};

using SessionPtr = std::shared_ptr<Session>;

// Of calls that this process makes itself: nobody is there to send to, sends fail.
class LocalSession final : public Session {
 public:
  explicit LocalSession(std::string account = {}, std::string context = {})
      : account_(std::move(account)), context_(std::move(context)) {}

  const std::string& account() const override { return account_; }
  const std::string& context() const override { return context_; }
  Result<void> SendFrame(std::string_view frame) override;
  void Kick(std::int32_t code, std::string_view description) override;
  std::string Describe() const override { return "the session of a local call"; }

 private:
  const std::string account_;
  const std::string context_;
};

}  // namespace zeze
