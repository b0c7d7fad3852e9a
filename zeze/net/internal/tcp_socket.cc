#include "zeze/net/internal/tcp_socket.h"

#include <algorithm>
#include <string_view>

#include <boost/asio/ip/address.hpp>

#include "zeze/net/net_address.h"

namespace zeze::internal {

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

}  // namespace zeze::internal
