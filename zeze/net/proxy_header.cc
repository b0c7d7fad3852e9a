#include "zeze/net/proxy_header.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "zeze/base/result.h"
#include "zeze/net/net_address.h"

namespace zeze {
namespace {

constexpr std::string_view kLineStart = "PROXY ";
constexpr std::size_t kLineBytesMax = 107;
constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kBinaryHeadBytes = 16;

Error Corrupt(const char* what) {
  return {ErrorCode::kCorrupt, std::string("proxy header: ") + what};
}

bool StartsAs(std::string_view stream, std::string_view start) {
  const std::size_t length = stream.size() < start.size() ? stream.size() : start.size();
  return stream.substr(0, length) == start.substr(0, length);
}

// The next word of the line; words are separated by exactly one blank.
std::string_view TakeWord(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

std::optional<std::uint16_t> ParsePort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

Result<std::optional<ProxyHeader>> TakeLine(std::string_view& stream) {
  const std::size_t end = stream.substr(0, kLineBytesMax).find("\r\n");
  if (end == std::string_view::npos) {
    if (stream.size() >= kLineBytesMax) return Corrupt("a line of more than 107 bytes");
    return std::optional<ProxyHeader>();
  }
  std::string_view line = stream.substr(kLineStart.size(), end - kLineStart.size());
  const std::string_view family = TakeWord(line);
  ProxyHeader header;
  if (family != "UNKNOWN") {
    if (family != "TCP4" && family != "TCP6") return Corrupt("neither TCP4, TCP6 nor UNKNOWN");
    const std::string_view source = TakeWord(line);
    const std::string_view destination = TakeWord(line);
    const std::optional<std::uint16_t> source_port = ParsePort(TakeWord(line));
    const std::optional<std::uint16_t> destination_port = ParsePort(TakeWord(line));
    if (!source_port || !destination_port || !line.empty()) return Corrupt("bad ports");
    Result<NetAddress> from = NetAddress::FromText(source, *source_port);
    Result<NetAddress> to = NetAddress::FromText(destination, *destination_port);
    if (!from.ok() || !to.ok()) return Corrupt("bad addresses");
    header = {.source = from.value(), .destination = to.value()};
  }
  stream.remove_prefix(end + 2);
  return std::optional<ProxyHeader>(header);
}

std::uint16_t BigEndian(std::string_view bytes) {
  return static_cast<std::uint16_t>((static_cast<unsigned char>(bytes[0]) << 8) |
                                    static_cast<unsigned char>(bytes[1]));
}

Result<std::optional<ProxyHeader>> TakeBinary(std::string_view& stream) {
  if (stream.size() < kBinaryHeadBytes) return std::optional<ProxyHeader>();
  const auto version_and_command = static_cast<unsigned char>(stream[12]);
  const auto family = static_cast<unsigned char>(stream[13]);
  const std::size_t length = BigEndian(stream.substr(14, 2));
  if ((version_and_command >> 4) != 2) return Corrupt("its version is not 2");
  const unsigned command = version_and_command & 0x0F;
  if (command > 1) return Corrupt("a command that does not exist");
  if (kBinaryHeadBytes + length > kProxyHeaderBytesMax) return Corrupt("too long");
  if (stream.size() < kBinaryHeadBytes + length) return std::optional<ProxyHeader>();
  const std::string_view body = stream.substr(kBinaryHeadBytes, length);
  ProxyHeader header;
  // 0x11 and 0x21: TCP over IPv4 and IPv6. Others say nothing about us.
  const std::size_t address_bytes = family == 0x11 ? 4 : family == 0x21 ? 16 : 0;
  if (command == 1 && address_bytes != 0) {
    if (length < 2 * address_bytes + 4) return Corrupt("too short for its addresses");
    const std::string_view ports = body.substr(2 * address_bytes);
    header.source = NetAddress::FromBytes(body.substr(0, address_bytes), BigEndian(ports));
    header.destination = NetAddress::FromBytes(body.substr(address_bytes, address_bytes),
                                               BigEndian(ports.substr(2)));
  }
  stream.remove_prefix(kBinaryHeadBytes + length);
  return std::optional<ProxyHeader>(header);
}

}  // namespace

Result<std::optional<ProxyHeader>> TakeProxyHeader(std::string_view& stream) {
  if (StartsAs(stream, kLineStart)) {
    if (stream.size() < kLineStart.size()) return std::optional<ProxyHeader>();
    return TakeLine(stream);
  }
  if (StartsAs(stream, kSignature)) return TakeBinary(stream);
  return Corrupt("the connection does not begin with one");
}

}  // namespace zeze
