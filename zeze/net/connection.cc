#include "zeze/net/connection.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

Connection::Connection(Service& service, std::int64_t id, std::shared_ptr<Connector> connector)
    : service_(service), service_name_(service.name()), id_(id), connector_(std::move(connector)) {}

std::string Connection::Describe() const {
  return fmt::format("{} connection {} {} {}", service_name_, id_, accepted() ? "from" : "to",
                     peer_address_.ToString());
}

void Connection::CheckMayWait() {
  // Who waits there for an answer waits for himself.
  ZEZE_CHECK(!IoThreads::IsIoThread());
}

Responder::Responder(ConnectionPtr connection, const ProtocolDescriptor& protocol,
                     std::int64_t session_id)
    : connection_(std::move(connection)), protocol_(&protocol), session_id_(session_id) {}

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    Abandon();
    connection_ = std::move(other.connection_);
    protocol_ = other.protocol_;
    session_id_ = other.session_id_;
  }
  return *this;
}

Responder::~Responder() {
  Abandon();
}

void Responder::Abandon() {
  if (answered()) return;
  // Nobody is left to hear of a failure.
  static_cast<void>(AnswerEmpty(std::uncaught_exceptions() > 0 ? result_code::kException
                                                               : result_code::kCancelException));
}

Result<void> Responder::AnswerEmpty(std::int64_t result_code) {
  if (answered()) {
    return Error(ErrorCode::kInvalidArgument, "this request has been answered before");
  }
  const ProtocolDescriptor* protocol = std::exchange(protocol_, nullptr);
  return connection_->SendAnswer(*protocol, session_id_, result_code,
                                 [](ByteWriter& out) { out.WriteEnd(); });
}

}  // namespace zeze
