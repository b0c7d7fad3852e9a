// EmptyBean: the argument or result of a protocol that has none. One byte when encoded.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"

namespace zeze {

struct EmptyBean {
  static constexpr std::int64_t kTypeId = 0;
  static constexpr std::string_view kFullName = "zeze.EmptyBean";

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&&) {}

  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  // Fields that a newer peer sends are skipped.
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const EmptyBean&) const = default;
  std::string ToString() const { return "{}"; }
  bool HasNegative() const { return false; }
};

}  // namespace zeze
