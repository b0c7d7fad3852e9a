// Fuzzes the decoders of Global's messages: what a stranger sends gets there before anybody knows
// who it is.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeze/global/service/wire.h"
#include "zeze/serialize/testing/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = zeze::global::wire;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 7) {
    case 0:
      zeze::testing::RoundTrip<wire::KeyState>(bytes);
      break;
    case 1:
      zeze::testing::RoundTrip<wire::LoginArgument>(bytes);
      break;
    case 2:
      zeze::testing::RoundTrip<wire::CleanupArgument>(bytes);
      break;
    case 3:
      zeze::testing::RoundTrip<wire::FencedLoginArgument>(bytes);
      break;
    case 4:
      zeze::testing::RoundTrip<wire::GreetingArgument>(bytes);
      break;
    case 5:
      zeze::testing::RoundTrip<wire::GreetingResult>(bytes);
      break;
    default:
      zeze::testing::RoundTrip<wire::FencedLoginResult>(bytes);
      break;
  }
  return 0;
}
