// Fuzzes the decoder of redirected methods' parameters: other servers' bytes get there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/redirect/redirect_codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/testing/round_trip.h"

namespace {

using zeze::testing::BItem;
using zeze::testing::BRole;

// In the shape that RoundTrip wants.
template <typename... P>
struct Parameters {
  std::tuple<P...> values;

  void Encode(zeze::ByteWriter& out) const { zeze::arch::WriteRedirectParameters(out, values); }
  void Decode(zeze::ByteReader& in) { zeze::arch::ReadRedirectParameters(in, values); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace direct = Zeze::Builtin::ProviderDirect;
  using zeze::testing::RoundTrip;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 6) {
    case 0:
      RoundTrip<Parameters<bool, std::int8_t, std::int32_t, std::int64_t, float, double>>(bytes);
      break;
    case 1:
      RoundTrip<Parameters<std::string, zeze::Binary, BRole>>(bytes);
      break;
    case 2:
      RoundTrip<Parameters<zeze::Dynamic<zeze::testing::BRole_extra_Choices>, std::set<std::string>,
                           std::map<std::int32_t, BItem>>>(bytes);
      break;
    case 3:
      RoundTrip<Parameters<std::vector<std::vector<std::string>>, zeze::List<BItem>,
                           zeze::Set<std::int64_t>, zeze::Map<std::string, double>>>(bytes);
      break;
    case 4:
      RoundTrip<direct::BModuleRedirectArgument>(bytes);
      break;
    default:
      RoundTrip<direct::BModuleRedirectAllResult>(bytes);
  }
  return 0;
}
