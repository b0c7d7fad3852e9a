// Fuzzes the decoders of the service manager's messages: connections and datagrams of anybody in
// the network get there.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/registry/service/wire.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::registry {
namespace {

// What can be decoded comes back the same when it is encoded and decoded again.
template <typename T>
void RoundTrip(std::string_view bytes) {
  T first;
  ByteReader in(bytes);
  first.Decode(in);
  if (!in.ok()) return;
  ByteWriter once;
  first.Encode(once);
  T second;
  ByteReader again(once.view());
  second.Decode(again);
  ZEZE_CHECK(again.ok());
  ZEZE_CHECK(again.remaining() == 0);
  ByteWriter twice;
  second.Encode(twice);
  ZEZE_CHECK(once.view() == twice.view());
}

}  // namespace
}  // namespace zeze::registry

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = zeze::registry::wire;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 9) {
    case 0:
      zeze::registry::RoundTrip<wire::EditArgument>(bytes);
      break;
    case 1:
      zeze::registry::RoundTrip<wire::SubscribeArgument>(bytes);
      break;
    case 2:
      zeze::registry::RoundTrip<wire::SubscribeResult>(bytes);
      break;
    case 3:
      zeze::registry::RoundTrip<wire::UnsubscribeArgument>(bytes);
      break;
    case 4:
      zeze::registry::RoundTrip<wire::AllocateIdArgument>(bytes);
      break;
    case 5:
      zeze::registry::RoundTrip<wire::LoadArgument>(bytes);
      break;
    case 6:
      zeze::registry::RoundTrip<wire::OfflineArgument>(bytes);
      break;
    case 7:
      zeze::registry::RoundTrip<wire::AnnounceArgument>(bytes);
      break;
    default: {
      zeze::ByteReader in(bytes);
      while (in.ok() && in.remaining() > 0) wire::DecodeDatagramRequest(in);
    }
  }
  return 0;
}
