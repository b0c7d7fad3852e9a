// Fuzzes the decoders of the service manager's messages: connections and datagrams of anybody in
// the network get there.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/registry/service/wire.h"
#include "zeze/serialize/testing/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = zeze::registry::wire;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 9) {
    case 0:
      zeze::testing::RoundTrip<wire::EditArgument>(bytes);
      break;
    case 1:
      zeze::testing::RoundTrip<wire::SubscribeArgument>(bytes);
      break;
    case 2:
      zeze::testing::RoundTrip<wire::SubscribeResult>(bytes);
      break;
    case 3:
      zeze::testing::RoundTrip<wire::UnsubscribeArgument>(bytes);
      break;
    case 4:
      zeze::testing::RoundTrip<wire::AllocateIdArgument>(bytes);
      break;
    case 5:
      zeze::testing::RoundTrip<wire::LoadArgument>(bytes);
      break;
    case 6:
      zeze::testing::RoundTrip<wire::OfflineArgument>(bytes);
      break;
    case 7:
      zeze::testing::RoundTrip<wire::AnnounceArgument>(bytes);
      break;
    default: {
      zeze::ByteReader in(bytes);
      while (in.ok() && in.remaining() > 0) wire::DecodeDatagramRequest(in);
    }
  }
  return 0;
}
