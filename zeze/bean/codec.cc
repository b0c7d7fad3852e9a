#include "zeze/bean/codec.h"

#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/serialize/byte_reader.h"

namespace zeze::internal {

Result<void> CheckAllRead(ByteReader& in, std::string_view what) {
  if (in.ok() && in.remaining() > 0) {
    in.Fail(std::to_string(in.remaining()) + " bytes follow behind its end");
  }
  if (!in.ok()) return in.ToError("decoding " + std::string(what));
  return {};
}

}  // namespace zeze::internal
