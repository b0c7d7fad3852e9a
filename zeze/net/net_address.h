// NetAddress: an IP address with a port.
//
//   NetAddress peer = connection.peer_address();
//   ZEZE_LOG_INFO("hello {}", peer.ToString());      // "10.0.0.7:5004", "[::1]:5004"

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze {

// A value. IPv4 addresses that arrive mapped into IPv6 are kept as IPv4.
class NetAddress {
 public:
  NetAddress() = default;  // No address: bytes() is empty.

  // From 4 or 16 bytes in network order; other lengths give no address.
  static NetAddress FromBytes(std::string_view bytes, std::uint16_t port);

  // From text such as "127.0.0.1" or "::1"; names are not looked up. Fails with kInvalidArgument.
  static Result<NetAddress> FromText(std::string_view ip, std::uint16_t port);

  bool empty() const { return length_ == 0; }

  // 4 or 16 bytes in network order.
  std::string_view bytes() const { return {bytes_.data(), length_}; }
  std::uint16_t port() const { return port_; }

  bool IsLoopback() const;  // 127.x.x.x, ::1: reached by processes of the same machine only.
  bool IsAny() const;       // 0.0.0.0, ::

  // The address alone, and with its port. "unknown" if there is none.
  std::string IpText() const;
  std::string ToString() const;

  bool operator==(const NetAddress&) const = default;

 private:
  std::array<char, 16> bytes_ = {};
  std::size_t length_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace zeze
