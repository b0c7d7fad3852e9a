#include "zeze/net/net_address.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "zeze/base/result.h"

namespace zeze {

NetAddress NetAddress::FromBytes(std::string_view bytes, std::uint16_t port) {
  constexpr std::string_view kMappedPrefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (bytes.size() == 16 && bytes.starts_with(kMappedPrefix)) bytes.remove_prefix(12);
  NetAddress address;
  if (bytes.size() != 4 && bytes.size() != 16) return address;
  std::memcpy(address.bytes_.data(), bytes.data(), bytes.size());
  address.length_ = bytes.size();
  address.port_ = port;
  return address;
}

Result<NetAddress> NetAddress::FromText(std::string_view ip, std::uint16_t port) {
  const std::string text(ip);
  std::array<char, 16> bytes = {};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1)
    return FromBytes({bytes.data(), 4}, port);
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) {
    return FromBytes({bytes.data(), 16}, port);
  }
  return Error(ErrorCode::kInvalidArgument, fmt::format("'{}' is no IP address", ip));
}

bool NetAddress::IsLoopback() const {
  if (length_ == 4) return bytes_[0] == 127;
  constexpr std::string_view kLoopback("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
  return bytes() == kLoopback;
}

bool NetAddress::IsAny() const {
  return !empty() && bytes().find_first_not_of('\0') == std::string_view::npos;
}

std::string NetAddress::IpText() const {
  if (empty()) return "unknown";
  std::array<char, INET6_ADDRSTRLEN> text = {};
  inet_ntop(length_ == 4 ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

std::string NetAddress::ToString() const {
  if (empty()) return "unknown";
  if (length_ == 4) return fmt::format("{}:{}", IpText(), port_);
  return fmt::format("[{}]:{}", IpText(), port_);
}

}  // namespace zeze
