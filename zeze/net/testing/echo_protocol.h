// Echo, Note: an rpc that returns its text, and a one-way message, for tests and benchmarks.
//
//   connection->CallAndWait<testing::Echo>({"hello"}).value().result.text

#pragma once

#include <string>

#include "zeze/base/name_hash.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::testing {

struct Text {
  std::string text = {};

  void Encode(ByteWriter& out) const { out.WriteBytes(text); }
  void Decode(ByteReader& in) { text = in.ReadBytes(); }
  bool operator==(const Text&) const = default;
};

struct Echo {
  using Argument = Text;
  using Result = Text;
  static constexpr ProtocolDescriptor kDescriptor{.module_id = 7,
                                                  .protocol_id = HashName32("zeze.test.Echo"),
                                                  .full_name = "zeze.test.Echo",
                                                  .is_rpc = true};
};

struct Note {
  using Argument = Text;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 7, .protocol_id = HashName32("zeze.test.Note"), .full_name = "zeze.test.Note"};
};

}  // namespace zeze::testing
