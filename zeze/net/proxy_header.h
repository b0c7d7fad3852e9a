// TakeProxyHeader: reads the header by which a proxy says for whom it connects (PROXY protocol,
// versions 1 and 2).
//
//   Result<std::optional<ProxyHeader>> header = TakeProxyHeader(stream);
//   if (header.ok() && header.value()) peer = header.value()->source;

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/net_address.h"

namespace zeze {

struct ProxyHeader {
  // Both empty if the proxy speaks for itself (health checks) or does not know.
  NetAddress source = {};
  NetAddress destination = {};
};

// No header of use is longer: version 1 has at most 107 bytes, version 2 may carry extensions,
// which are passed over.
inline constexpr std::size_t kProxyHeaderBytesMax = 4096;

// Removes the header from the stream. None while it is incomplete; the stream is then left alone.
// Fails with kCorrupt as soon as the bytes cannot become a header.
Result<std::optional<ProxyHeader>> TakeProxyHeader(std::string_view& stream);

}  // namespace zeze
