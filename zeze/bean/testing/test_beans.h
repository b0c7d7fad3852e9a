// Beans for the tests of codec, difference and schema, written as the generator writes them.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/gtable.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/bean/unknown_fields.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

// The members of a bean that follow from its ForEachField. Real beans declare them in the header
// and define them in the .cc file.
#define ZEZE_TEST_BEAN_MEMBERS(Bean)           \
  void Encode(::zeze::ByteWriter& out) const { \
    ::zeze::EncodeFields(*this, out);          \
  }                                            \
  void Decode(::zeze::ByteReader& in) {        \
    ::zeze::DecodeFields(*this, in);           \
  }                                            \
  bool operator==(const Bean& other) const {   \
    return ::zeze::EqualFields(*this, other);  \
  }                                            \
  std::string ToString() const {               \
    return ::zeze::FormatFields(*this);        \
  }                                            \
  bool HasNegative() const {                   \
    return ::zeze::HasNegativeFields(*this);   \
  }

namespace zeze::testing {

// A bean with one variable.
template <typename T>
struct One {
  static constexpr std::int64_t kTypeId = 1;
  static constexpr std::string_view kFullName = "test.One";
  T value{};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "value"}, &One::value);
  }
  ZEZE_TEST_BEAN_MEMBERS(One)
};

struct BKey {
  static constexpr bool kIsKey = true;
  static constexpr std::int64_t kTypeId = 2;
  static constexpr std::string_view kFullName = "test.BKey";
  std::int32_t id = 0;
  std::string name;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "id"}, &BKey::id);
    visit(Field{2, "name"}, &BKey::name);
  }
  std::weak_ordering operator<=>(const BKey& other) const { return CompareFields(*this, other); }
  ZEZE_TEST_BEAN_MEMBERS(BKey)
};

}  // namespace zeze::testing

template <>
struct std::hash<zeze::testing::BKey> {
  std::size_t operator()(const zeze::testing::BKey& key) const noexcept {
    return zeze::HashFields(key);
  }
};

namespace zeze::testing {

struct BItem {
  static constexpr std::int64_t kTypeId = 3;
  static constexpr std::string_view kFullName = "test.BItem";
  std::int32_t id = 0;
  std::int64_t count = 0;
  std::string note;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "id"}, &BItem::id);
    visit(Field{3, "count"}, &BItem::count);
    visit(Field{17, "note"}, &BItem::note);
  }
  ZEZE_TEST_BEAN_MEMBERS(BItem)
};

struct BEmpty {
  static constexpr std::int64_t kTypeId = 4;
  static constexpr std::string_view kFullName = "test.BEmpty";
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&&) {}
  ZEZE_TEST_BEAN_MEMBERS(BEmpty)
};

struct BRole;
struct BRole_extra_Choices;  // NOLINT(readability-identifier-naming): as the generator names it.

// Every type of variable, and itself.
struct BRole {
  static constexpr std::int64_t kTypeId = 5;
  static constexpr std::string_view kFullName = "test.BRole";
  bool alive = false;
  std::int8_t rank = 0;
  std::int16_t world = 0;
  std::int32_t level = 10;
  std::int64_t money = 0;
  float speed = 0;
  double luck = 0;
  std::string name;
  Binary token;
  Decimal balance;
  Vector2 at;
  Vector3Int cell;
  Quaternion facing;
  BItem hand;
  BKey home;
  List<std::int32_t> scores;
  List<BItem> items;
  Set<std::int64_t> friends;
  Set<BKey> places;
  Map<std::int32_t, BItem> bag;
  Map<BKey, std::string> titles;
  SortedMap<std::string, std::int64_t> ranking;
  SortedMap<std::int32_t, BItem> history;
  Map<std::int32_t, GTableRow<std::int32_t, std::string>> grid;
  Dynamic<BRole_extra_Choices> extra;
  List<Dynamic<BRole_extra_Choices>> slots;
  Map<std::int32_t, BRole> children;
  std::int32_t cached = 0;
  Id128 owner;
  UnknownFields unknown_fields;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "alive"}, &BRole::alive);
    visit(Field{2, "rank"}, &BRole::rank);
    visit(Field{3, "world"}, &BRole::world);
    visit(Field{.id = 4, .name = "level", .zero_when_absent = true}, &BRole::level);
    visit(Field{.id = 5, .name = "money", .allow_negative = true}, &BRole::money);
    visit(Field{6, "speed"}, &BRole::speed);
    visit(Field{7, "luck"}, &BRole::luck);
    visit(Field{8, "name"}, &BRole::name);
    visit(Field{9, "token"}, &BRole::token);
    visit(Field{10, "balance"}, &BRole::balance);
    visit(Field{11, "at"}, &BRole::at);
    visit(Field{12, "cell"}, &BRole::cell);
    visit(Field{13, "facing"}, &BRole::facing);
    visit(Field{14, "hand"}, &BRole::hand);
    visit(Field{15, "home"}, &BRole::home);
    visit(Field{16, "scores"}, &BRole::scores);
    visit(Field{17, "items"}, &BRole::items);
    visit(Field{18, "friends"}, &BRole::friends);
    visit(Field{19, "places"}, &BRole::places);
    visit(Field{20, "bag"}, &BRole::bag);
    visit(Field{21, "titles"}, &BRole::titles);
    visit(Field{22, "ranking"}, &BRole::ranking);
    visit(Field{23, "history"}, &BRole::history);
    visit(Field{24, "grid"}, &BRole::grid);
    visit(Field{25, "extra"}, &BRole::extra);
    visit(Field{26, "slots"}, &BRole::slots);
    visit(Field{27, "children"}, &BRole::children);
    visit(Field{.id = 28, .name = "cached", .transient = true}, &BRole::cached);
    visit(Field{30, "owner"}, &BRole::owner);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BRole& other) const;
  std::string ToString() const;
  bool HasNegative() const;
};

struct BRole_extra_Choices {
  using List = TypeList<Choice<BItem, 1>, Choice<BRole, 2>, Choice<BEmpty, -7>>;
};

inline void BRole::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
inline void BRole::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
inline bool BRole::operator==(const BRole& other) const {
  return EqualFields(*this, other);
}
inline std::string BRole::ToString() const {
  return FormatFields(*this);
}
inline bool BRole::HasNegative() const {
  return HasNegativeFields(*this);
}

struct BBase {
  static constexpr std::int64_t kTypeId = 6;
  static constexpr std::string_view kFullName = "test.BBase";
  std::int32_t a = 0;
  std::string b;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "a"}, &BBase::a);
    visit(Field{3, "b"}, &BBase::b);
  }
  ZEZE_TEST_BEAN_MEMBERS(BBase)
};

struct BDerived {
  static constexpr std::int64_t kTypeId = 7;
  static constexpr std::string_view kFullName = "test.BDerived";
  using Base = BBase;
  BBase base;
  std::int32_t c = 0;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "c"}, &BDerived::c);
  }
  ZEZE_TEST_BEAN_MEMBERS(BDerived)
};

}  // namespace zeze::testing
