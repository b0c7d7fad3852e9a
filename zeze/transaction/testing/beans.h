// Beans for tests of the transaction layer.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"

namespace zeze::testing {

// The tests are compiled twice: with a text the values of accounts are apart from their records,
// without one in them (value.h).
#if defined(ZEZE_TEST_FLAT_ACCOUNTS)
using Owner = std::int64_t;
inline Owner LongName(std::size_t length) {
  return static_cast<std::int64_t>(length);
}
inline constexpr bool kFlatAccounts = true;
#else
using Owner = std::string;
inline Owner LongName(std::size_t length) {
  return std::string(length, 'x');
}
inline constexpr bool kFlatAccounts = false;
#endif

struct BAccount {
  static constexpr std::int64_t kTypeId = 1;
  static constexpr std::string_view kFullName = "test.BAccount";
  std::int64_t balance = 0;
  Owner owner = {};

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
