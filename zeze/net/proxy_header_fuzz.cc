// Fuzzes the parser of proxy headers, which meets bytes of anybody before anything else does.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/proxy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view whole = bytes;
  const zeze::Result<std::optional<zeze::ProxyHeader>> header = zeze::TakeProxyHeader(whole);
  if (!header.ok()) {
    ZEZE_CHECK(whole.size() == size);
    return 0;
  }
  if (!header.value().has_value()) {
    ZEZE_CHECK(whole.size() == size);
    ZEZE_CHECK(size < zeze::kProxyHeaderBytesMax);
    return 0;
  }
  const std::size_t length = size - whole.size();
  ZEZE_CHECK(length > 0);
  ZEZE_CHECK(length <= zeze::kProxyHeaderBytesMax);
  // Every beginning of a header waits for the rest of it.
  std::string_view part = bytes.substr(0, length - 1);
  const zeze::Result<std::optional<zeze::ProxyHeader>> cut = zeze::TakeProxyHeader(part);
  ZEZE_CHECK(cut.ok());
  ZEZE_CHECK(!cut.value().has_value());
  return 0;
}
