#include "zeze/net/internal/tcp_socket.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/net/net_address.h"

namespace zeze::internal {

namespace {

template <typename Ask>
NetAddress AddressOf(int descriptor, Ask ask) {
  TcpEndpoint endpoint;
  auto length = static_cast<socklen_t>(endpoint.capacity());
  if (ask(descriptor, endpoint.data(), &length) != 0) return {};
  endpoint.resize(length);
  return ToNetAddress(endpoint);
}

}  // namespace

void SocketDescriptor::Close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

NetAddress ToNetAddress(const TcpEndpoint& endpoint) {
  const auto from = [&endpoint](const auto& bytes) {
    return NetAddress::FromBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                 endpoint.port());
  };
  const boost::asio::ip::address address = endpoint.address();
  return address.is_v4() ? from(address.to_v4().to_bytes()) : from(address.to_v6().to_bytes());
}

TcpEndpoint ToEndpoint(const NetAddress& address) {
  const std::string_view bytes = address.bytes();
  if (bytes.size() == 4) {
    boost::asio::ip::address_v4::bytes_type v4 = {};
    std::copy(bytes.begin(), bytes.end(), v4.begin());
    return {boost::asio::ip::address_v4(v4), address.port()};
  }
  boost::asio::ip::address_v6::bytes_type v6 = {};
  std::copy(bytes.begin(), bytes.end(), v6.begin());
  return {boost::asio::ip::address_v6(v6), address.port()};
}

NetAddress LocalAddressOf(int descriptor) {
  return AddressOf(descriptor, &::getsockname);
}

NetAddress PeerAddressOf(int descriptor) {
  return AddressOf(descriptor, &::getpeername);
}

}  // namespace zeze::internal
