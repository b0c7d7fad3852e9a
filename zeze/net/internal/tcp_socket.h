// TcpSocket: Asio's socket, bound to a loop at compile time, which spares its type erasure.

#pragma once

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

NetAddress ToNetAddress(const TcpEndpoint& endpoint);
TcpEndpoint ToEndpoint(const NetAddress& address);

}  // namespace zeze::internal
