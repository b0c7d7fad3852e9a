// RawClient: a blocking socket that sends and receives bytes as a test says, whatever they are.
//
//   RawClient client(address);
//   client.Send(client.RequestFrame<Echo>(1, {"hello"}));
//   std::optional<Frame> answer = client.ReadFrame();   // None: the peer has closed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/net_address.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::testing {

// IPv4 only.
class RawClient {
 public:
  RawClient() = default;
  explicit RawClient(const NetAddress& address) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ZEZE_CHECK(socket_ >= 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port());
    std::memcpy(&to.sin_addr, address.bytes().data(), 4);
    const int done = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to);
    ZEZE_CHECK(done == 0);
  }
  ~RawClient() { Close(); }

  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // Instead of connecting: takes a port on which connections are refused.
  std::uint16_t Bind() {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ZEZE_CHECK(::bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    socklen_t length = sizeof at;
    ZEZE_CHECK(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &length) == 0);
    return ntohs(at.sin_port);
  }

  // The same, as a server that lets clients connect and never says anything.
  std::uint16_t Listen() {
    const std::uint16_t port = Bind();
    ZEZE_CHECK(::listen(socket_, 16) == 0);
    return port;
  }

  // After Listen: takes the next connection in place of the listening socket.
  void Accept() {
    const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    ZEZE_CHECK(accepted >= 0);
    ::close(socket_);
    socket_ = accepted;
  }

  // As a client of a service with the handshake and without encryption: takes the server's offer
  // and says "done". False if the peer has closed.
  bool EndHandshake() {
    const std::string header = ReadBytes(kFrameHeaderBytes);
    if (header.size() < kFrameHeaderBytes) return false;
    ReadBytes(static_cast<unsigned char>(header[8]));  // It is short.
    ByteWriter out;
    EncodeFrame({.module_id = 0,
                 .protocol_id = kClientDoneId,
                 .family = FrameFamily::kOneWay,
                 .payload = std::string_view("\0", 1)},
                out);
    return Send(out.view());
  }

  // False if the peer has closed.
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // False once nothing more fits for a while, that is, the peer does not read.
  bool TrySend(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count =
          ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
        continue;
      }
      pollfd waiting{.fd = socket_, .events = POLLOUT, .revents = 0};
      constexpr int kLongMs = 300;
      if (::poll(&waiting, 1, kLongMs) == 0) {
        unsent_ = bytes;
        return false;
      }
    }
    return true;
  }

  // Blocks. The frame is valid until the next call.
  std::optional<Frame> ReadFrame() {
    input_.erase(0, consumed_);
    consumed_ = 0;
    while (true) {
      std::string_view stream = input_;
      Result<std::optional<RawFrame>> raw = TakeFrame(stream, 64 << 20);
      ZEZE_CHECK(raw.ok());
      if (raw.value().has_value()) {
        consumed_ = input_.size() - stream.size();
        return ParseFrame(*raw.value()).value();
      }
      if (!ReadSome()) return std::nullopt;
    }
  }

  // Blocks until so many bytes have come, or the peer has closed.
  std::string ReadBytes(std::size_t count) {
    while (input_.size() < count && ReadSome()) {
    }
    const std::string bytes = input_.substr(0, count);
    input_.erase(0, count);
    return bytes;
  }

  template <typename P>
  static std::string RequestFrame(std::int64_t session_id, const typename P::Argument& argument) {
    ByteWriter payload;
    argument.Encode(payload);
    ByteWriter out;
    EncodeFrame({.module_id = P::kDescriptor.module_id,
                 .protocol_id = P::kDescriptor.protocol_id,
                 .family = FrameFamily::kRequest,
                 .session_id = session_id,
                 .payload = payload.view()},
                out);
    return out.Release();
  }

 private:
  bool ReadSome() {
    // What did not fit before may fit now that something is read.
    if (!unsent_.empty()) {
      const ssize_t count =
          ::send(socket_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) unsent_.erase(0, static_cast<std::size_t>(count));
    }
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int socket_ = -1;
  std::string input_;
  std::size_t consumed_ = 0;
  std::string unsent_;
};

}  // namespace zeze::testing
