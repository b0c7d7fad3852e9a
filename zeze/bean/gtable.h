// GTableRow: a row of a gtable. A variable of type gtable[R,C,V] is a Map of rows, and a row is a
// bean with one map from column to value:
//
//   zeze::Map<std::int32_t, zeze::GTableRow<std::int32_t, BCell>> grid;
//   grid.UpdateOrAdd(y, [&](auto& row) { row.cells.Put(x, BCell{}); });

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/bean/map.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

template <typename C, typename V>
struct GTableRow {
  static constexpr std::int64_t kTypeId = 0;
  static constexpr std::string_view kFullName = "zeze.GTableRow";

  Map<C, V> cells;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "cells"}, &GTableRow::cells);
  }

  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const GTableRow& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

}  // namespace zeze
