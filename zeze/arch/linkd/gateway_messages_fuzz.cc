// Whatever a server sends: it is read within its bytes, or refused.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeze/arch/linkd/gateway_messages.h"
#include "zeze/base/check.h"
#include "zeze/base/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const zeze::Result<zeze::arch::SendView> send = zeze::arch::ParseSend(bytes);
  if (send.ok()) {
    std::size_t sids = 0;
    send.value().ForEachSid([&sids](std::int64_t) { ++sids; });
    ZEZE_CHECK(sids == send.value().sid_count);
    zeze::arch::ParseClientFrames(send.value().frame);
  }
  const zeze::Result<zeze::arch::BroadcastView> broadcast = zeze::arch::ParseBroadcast(bytes);
  if (broadcast.ok()) zeze::arch::ParseClientFrames(broadcast.value().frame);
  return 0;
}
