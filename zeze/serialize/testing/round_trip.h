// RoundTrip: what can be decoded comes back the same when it is encoded and decoded again.
//
//   RoundTrip<wire::KeyState>(bytes);   // Stops the program if not.

#pragma once

#include <string_view>

#include "zeze/base/check.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::testing {

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

}  // namespace zeze::testing
