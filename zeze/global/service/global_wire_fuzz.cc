// Fuzzes the decoders of Global's messages: what a stranger sends gets there before anybody knows
// who it is.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/global/service/wire.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::global {
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
}  // namespace zeze::global

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = zeze::global::wire;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 5) {
    case 0:
      zeze::global::RoundTrip<wire::KeyState>(bytes);
      break;
    case 1:
      zeze::global::RoundTrip<wire::LoginArgument>(bytes);
      break;
    case 2:
      zeze::global::RoundTrip<wire::CleanupArgument>(bytes);
      break;
    case 3:
      zeze::global::RoundTrip<wire::FencedLoginArgument>(bytes);
      break;
    default:
      zeze::global::RoundTrip<wire::FencedLoginResult>(bytes);
      break;
  }
  return 0;
}
