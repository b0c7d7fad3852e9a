// The beans of the benchmarks, written as the generator writes them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/vector.h"

namespace zeze::bench {

// 64 bytes: what a hand-written server would keep for a hot record.
struct BSmall {
  static constexpr std::int64_t kTypeId = 1;
  static constexpr std::string_view kFullName = "bench.BSmall";
  std::int64_t id = 0;
  std::int64_t owner = 0;
  std::int64_t time = 0;
  std::int64_t kind = 0;
  std::int64_t level = 0;
  double x = 0;
  double y = 0;
  std::int64_t counter = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "id"}, &BSmall::id);
    visit(Field{2, "owner"}, &BSmall::owner);
    visit(Field{3, "time"}, &BSmall::time);
    visit(Field{4, "kind"}, &BSmall::kind);
    visit(Field{5, "level"}, &BSmall::level);
    visit(Field{6, "x"}, &BSmall::x);
    visit(Field{7, "y"}, &BSmall::y);
    visit(Field{8, "counter"}, &BSmall::counter);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BSmall& other) const;
  std::string ToString() const;
};
static_assert(sizeof(BSmall) == 64);

BSmall SmallValue();

// As large, with a text: its values are apart from their records.
struct BNamed {
  static constexpr std::int64_t kTypeId = 6;
  static constexpr std::string_view kFullName = "bench.BNamed";
  std::int64_t id = 0;
  std::int64_t owner = 0;
  std::int64_t time = 0;
  std::string name;
  std::int64_t counter = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "id"}, &BNamed::id);
    visit(Field{2, "owner"}, &BNamed::owner);
    visit(Field{3, "time"}, &BNamed::time);
    visit(Field{4, "name"}, &BNamed::name);
    visit(Field{5, "counter"}, &BNamed::counter);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BNamed& other) const;
  std::string ToString() const;
};
static_assert(sizeof(BNamed) == 64);

BNamed NamedValue();

// A row of about 100 bytes, for the storage.
struct BRow {
  static constexpr std::int64_t kTypeId = 2;
  static constexpr std::string_view kFullName = "bench.BRow";
  std::int64_t counter = 0;
  std::string payload;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "counter"}, &BRow::counter);
    visit(Field{2, "payload"}, &BRow::payload);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BRow& other) const;
  std::string ToString() const;
};

struct BItem {
  static constexpr std::int64_t kTypeId = 3;
  static constexpr std::string_view kFullName = "bench.BItem";
  std::int64_t id = 0;
  std::int64_t count = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "id"}, &BItem::id);
    visit(Field{2, "count"}, &BItem::count);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BItem& other) const;
  std::string ToString() const;
};

struct BBag {
  static constexpr std::int64_t kTypeId = 4;
  static constexpr std::string_view kFullName = "bench.BBag";
  List<BItem> list;
  Map<std::int64_t, BItem> map;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "list"}, &BBag::list);
    visit(Field{2, "map"}, &BBag::map);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BBag& other) const;
  std::string ToString() const;
};

struct BDemo_Choices;

// 50 variables of every type, of which a benchmark changes one: the shape of the Java peer's
// benchmark bean.
struct BDemo {
  static constexpr std::int64_t kTypeId = 5;
  static constexpr std::string_view kFullName = "bench.BDemo";
  std::int32_t int1 = 0;
  std::int64_t long2 = 0;
  std::string string3;
  bool bool4 = false;
  std::int16_t short5 = 0;
  float float6 = 0;
  double double7 = 0;
  Binary bytes8;
  List<BItem> list9;
  Set<std::int32_t> set10;
  Map<std::int64_t, std::int64_t> map11;
  BItem bean12;
  std::int8_t byte13 = 0;
  Dynamic<BDemo_Choices> dynamic14;
  Map<std::int64_t, std::int64_t> map15;
  Map<std::int32_t, BItem> map16;
  Vector2 vector17;
  Vector2Int vector18;
  Vector3 vector19;
  Vector4 vector20;
  Quaternion vector21;
  Vector3Int vector22;
  Map<std::int32_t, BDemo> map23;
  List<std::int32_t> list24;
  List<std::int64_t> list25;
  List<std::string> list26;
  Set<std::int64_t> set27;
  Set<std::string> set28;
  SortedMap<std::int64_t, BItem> map29;
  SortedMap<std::int32_t, std::string> map30;
  Map<std::string, BItem> map31;
  Map<std::string, std::int64_t> map32;
  List<Vector2> list33;
  List<Vector3> list34;
  List<Dynamic<BDemo_Choices>> list35;
  Map<std::int64_t, Dynamic<BDemo_Choices>> map36;
  Dynamic<BDemo_Choices> dynamic37;
  BItem bean38;
  std::int32_t int39 = 0;
  std::int64_t long40 = 0;
  bool bool41 = false;
  double double42 = 0;
  float float43 = 0;
  std::string string44;
  std::int64_t long45 = 0;
  List<float> list46;
  List<double> list47;
  Map<std::int32_t, std::int32_t> map48;
  SortedMap<std::string, std::string> map49;
  std::int64_t version = 0;
  static constexpr auto kVersion = &BDemo::version;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "int1"}, &BDemo::int1);
    visit(Field{2, "long2"}, &BDemo::long2);
    visit(Field{3, "string3"}, &BDemo::string3);
    visit(Field{4, "bool4"}, &BDemo::bool4);
    visit(Field{5, "short5"}, &BDemo::short5);
    visit(Field{6, "float6"}, &BDemo::float6);
    visit(Field{7, "double7"}, &BDemo::double7);
    visit(Field{8, "bytes8"}, &BDemo::bytes8);
    visit(Field{9, "list9"}, &BDemo::list9);
    visit(Field{10, "set10"}, &BDemo::set10);
    visit(Field{11, "map11"}, &BDemo::map11);
    visit(Field{12, "bean12"}, &BDemo::bean12);
    visit(Field{13, "byte13"}, &BDemo::byte13);
    visit(Field{14, "dynamic14"}, &BDemo::dynamic14);
    visit(Field{15, "map15"}, &BDemo::map15);
    visit(Field{16, "map16"}, &BDemo::map16);
    visit(Field{17, "vector17"}, &BDemo::vector17);
    visit(Field{18, "vector18"}, &BDemo::vector18);
    visit(Field{19, "vector19"}, &BDemo::vector19);
    visit(Field{20, "vector20"}, &BDemo::vector20);
    visit(Field{21, "vector21"}, &BDemo::vector21);
    visit(Field{22, "vector22"}, &BDemo::vector22);
    visit(Field{23, "map23"}, &BDemo::map23);
    visit(Field{24, "list24"}, &BDemo::list24);
    visit(Field{25, "list25"}, &BDemo::list25);
    visit(Field{26, "list26"}, &BDemo::list26);
    visit(Field{27, "set27"}, &BDemo::set27);
    visit(Field{28, "set28"}, &BDemo::set28);
    visit(Field{29, "map29"}, &BDemo::map29);
    visit(Field{30, "map30"}, &BDemo::map30);
    visit(Field{31, "map31"}, &BDemo::map31);
    visit(Field{32, "map32"}, &BDemo::map32);
    visit(Field{33, "list33"}, &BDemo::list33);
    visit(Field{34, "list34"}, &BDemo::list34);
    visit(Field{35, "list35"}, &BDemo::list35);
    visit(Field{36, "map36"}, &BDemo::map36);
    visit(Field{37, "dynamic37"}, &BDemo::dynamic37);
    visit(Field{38, "bean38"}, &BDemo::bean38);
    visit(Field{39, "int39"}, &BDemo::int39);
    visit(Field{40, "long40"}, &BDemo::long40);
    visit(Field{41, "bool41"}, &BDemo::bool41);
    visit(Field{42, "double42"}, &BDemo::double42);
    visit(Field{43, "float43"}, &BDemo::float43);
    visit(Field{44, "string44"}, &BDemo::string44);
    visit(Field{45, "long45"}, &BDemo::long45);
    visit(Field{46, "list46"}, &BDemo::list46);
    visit(Field{47, "list47"}, &BDemo::list47);
    visit(Field{48, "map48"}, &BDemo::map48);
    visit(Field{49, "map49"}, &BDemo::map49);
    visit(Field{50, "version"}, &BDemo::version);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BDemo& other) const;
  std::string ToString() const;
};

struct BDemo_Choices {
  using List = TypeList<Choice<BItem, 1>, Choice<BSmall, 2>, Choice<BDemo, 3>>;
};

}  // namespace zeze::bench
