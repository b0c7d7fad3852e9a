// Sockets: Asio's acceptors and connecting sockets, bound to a loop at compile time, which spares
// their type erasure; and the descriptor of a connected one, which is read and written without
// Asio (socket_poller.h).

#pragma once

#include <utility>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "zeze/net/net_address.h"

namespace zeze::internal {

using TcpSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;
using TcpAcceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp,
                                                       boost::asio::io_context::executor_type>;
using TcpEndpoint = boost::asio::ip::tcp::endpoint;

// Closes what it owns.
class SocketDescriptor {
 public:
  SocketDescriptor() = default;
  explicit SocketDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~SocketDescriptor() { Close(); }

  SocketDescriptor(SocketDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  SocketDescriptor& operator=(SocketDescriptor&&) = delete;
  SocketDescriptor(const SocketDescriptor&) = delete;
  SocketDescriptor& operator=(const SocketDescriptor&) = delete;

  int get() const { return descriptor_; }  // -1: none.
  void Close();

 private:
  int descriptor_ = -1;
};

NetAddress ToNetAddress(const TcpEndpoint& endpoint);
TcpEndpoint ToEndpoint(const NetAddress& address);

// Empty if there is none.
NetAddress LocalAddressOf(int descriptor);
NetAddress PeerAddressOf(int descriptor);

}  // namespace zeze::internal
