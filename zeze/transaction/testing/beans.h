// Beans for tests of the transaction layer.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"

namespace zeze::testing {

struct BAccount {
  static constexpr std::int64_t kTypeId = 1;
  static constexpr std::string_view kFullName = "test.BAccount";
  std::int64_t balance = 0;
  std::string owner;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "balance"}, &BAccount::balance);
    visit(Field{2, "owner"}, &BAccount::owner);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BAccount&) const = default;
  std::string ToString() const { return FormatFields(*this); }
};

struct BBag {
  static constexpr std::int64_t kTypeId = 2;
  static constexpr std::string_view kFullName = "test.BBag";
  std::int64_t version = 0;
  List<std::int64_t> items;
  Map<std::int32_t, std::string> names;
  static constexpr auto kVersion = &BBag::version;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "version"}, &BBag::version);
    visit(Field{2, "items"}, &BBag::items);
    visit(Field{3, "names"}, &BBag::names);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BBag&) const = default;
  std::string ToString() const { return FormatFields(*this); }
};

}  // namespace zeze::testing
