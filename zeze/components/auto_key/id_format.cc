#include "zeze/components/auto_key/id_format.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <absl/strings/escaping.h>

#include "zeze/base/check.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

IdFormat::IdFormat(std::int32_t server_id) {
  ZEZE_CHECK(server_id >= 0);
  std::uint64_t server = 0;
  std::size_t server_bytes = 0;
  if (server_id != 0) {
    ByteWriter out;
    out.WriteUint(static_cast<std::uint32_t>(server_id));
    for (const char byte : out.view()) server = server << 8 | static_cast<unsigned char>(byte);
    server_bytes = out.size();
  }
  const std::size_t number_bytes = kBytesMax - server_bytes;
  number_max_ = (std::uint64_t{1} << 7 * number_bytes) - 1;
  if (server_bytes == 0) return;
  for (std::size_t bytes = 1; bytes <= number_bytes; ++bytes) {
    server_at_[bytes] = server << 8 * bytes;
  }
}

std::uint64_t IdFormat::FirstNumberFrom(std::int64_t id) const {
  const auto wanted = std::bit_cast<std::uint64_t>(id);
  std::uint64_t low = 1;
  std::uint64_t high = number_max_ + 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (std::bit_cast<std::uint64_t>(IdOf(middle)) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::string IdBytes(std::int64_t id) {
  auto rest = std::bit_cast<std::uint64_t>(id);
  std::string bytes(static_cast<std::size_t>(std::bit_width(rest | 1) + 7) / 8, '\0');
  for (std::size_t i = bytes.size(); i > 0; --i, rest >>= 8) {
    bytes[i - 1] = static_cast<char>(rest & 0xff);
  }
  return bytes;
}

std::string IdText(std::int64_t id) {
  return absl::Base64Escape(IdBytes(id));
}

}  // namespace zeze
