// Every pair of types: rows are written under the one and read under the other. Either the schema
// check refuses the change, or every value is still there.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/gtable.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/schema.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

namespace zeze {
namespace {

using testing::BEmpty;
using testing::BItem;
using testing::BKey;
using testing::One;

// A table whose value has one variable of some type (or whose key is of that type), with rows.
struct Stored {
  std::string type;
  DatabaseSchema schema;
  std::vector<std::string> rows;
  // Decodes a row and encodes what was understood; nothing if it cannot be read.
  std::function<std::optional<std::string>(const std::string&)> rewrite;
};

template <typename T>
Stored VariableOf(std::initializer_list<T> values) {
  Stored stored;
  const TableSchema table = DescribeTable<std::int64_t, One<T>>({.name = "t"});
  stored.type = table.beans.Get("test.One").fields.Get(1).TypeText();
  stored.schema.Add(table);
  for (const T& value : values) stored.rows.push_back(EncodeBean(One<T>{value}));
  stored.rewrite = [](const std::string& row) -> std::optional<std::string> {
    const Result<One<T>> read = DecodeBean<One<T>>(row);
    if (!read.ok()) return std::nullopt;
    return EncodeBean(read.value());
  };
  return stored;
}

template <typename K>
Stored TableKeyOf(std::initializer_list<K> keys) {
  Stored stored;
  const TableSchema table = DescribeTable<K, BEmpty>({.name = "t"});
  stored.type = table.key_type;
  stored.schema.Add(table);
  for (const K& key : keys) stored.rows.push_back(EncodeKey(key));
  stored.rewrite = [](const std::string& row) -> std::optional<std::string> {
    const Result<K> read = DecodeKey<K>(row);
    if (!read.ok()) return std::nullopt;
    return EncodeKey(read.value());
  };
  return stored;
}

bool IsAccepted(const Stored& from, const Stored& to) {
  return CheckCompatible(from.schema, to.schema).empty();
}

// Read under the new type, written back by the new program, and read under the old one again.
bool KeepsEveryValue(const Stored& from, const Stored& to) {
  for (const std::string& row : from.rows) {
    const std::optional<std::string> rewritten = to.rewrite(row);
    if (!rewritten || from.rewrite(*rewritten) != row) return false;
  }
  return true;
}

// A new program must find a stored row under the bytes that it makes of the key.
bool KeepsItsBytes(const Stored& from, const Stored& to) {
  for (const std::string& row : from.rows) {
    if (to.rewrite(row) != row) return false;
  }
  return true;
}

std::string BeanIn(const std::string& type) {
  for (const char* bean : {"test.BItem", "test.BKey"}) {
    if (type.find(bean) != std::string::npos) return bean;
  }
  return "";
}

// One bean for another is a change of its variables, not of a type.
bool HoldDifferentBeans(const Stored& from, const Stored& to) {
  const std::string bean = BeanIn(from.type);
  return !bean.empty() && !BeanIn(to.type).empty() && bean != BeanIn(to.type);
}

using Pairs = std::set<std::string>;
using Keeps = bool (*)(const Stored&, const Stored&);

// The accepted changes; fails if one of them loses a value. Those that are refused although the
// samples survive go to `also_kept`.
Pairs AcceptedPairs(const std::vector<Stored>& all, Keeps keeps, Pairs* also_kept = nullptr) {
  Pairs accepted;
  for (const Stored& from : all) {
    for (const Stored& to : all) {
      if (from.type == to.type || HoldDifferentBeans(from, to)) continue;
      const std::string pair = from.type + " to " + to.type;
      if (IsAccepted(from, to)) {
        EXPECT_TRUE(keeps(from, to)) << pair << " is accepted and loses values";
        accepted.insert(pair);
      } else if (also_kept != nullptr && keeps(from, to)) {
        also_kept->insert(pair);
      }
    }
  }
  return accepted;
}

template <typename T>
constexpr T kLow = std::numeric_limits<T>::min();
template <typename T>
constexpr T kHigh = std::numeric_limits<T>::max();
constexpr std::int64_t kNoDouble = 9'007'199'254'740'993;  // The first integer between two doubles.
constexpr std::int32_t kNoFloat = 16'777'217;

struct SomeChoices {
  using List = TypeList<Choice<BItem, 1>, Choice<BEmpty, -7>>;
};
struct MoreChoices {
  using List = TypeList<Choice<BItem, 1>, Choice<BKey, 5>, Choice<BEmpty, -7>>;
};

template <typename Choices>
Dynamic<Choices> Holding(const BItem& item) {
  Dynamic<Choices> dynamic;
  dynamic.Set(item);
  return dynamic;
}

// Calls make(values...) for every type that a variable may have without brackets.
template <typename Make>
void ForEachPlainType(Make make) {
  using I8 = std::int8_t;
  using I16 = std::int16_t;
  using I32 = std::int32_t;
  using I64 = std::int64_t;
  make(std::initializer_list<bool>{false, true});
  make(std::initializer_list<I8>{0, 1, -1, kLow<I8>, kHigh<I8>});
  make(std::initializer_list<I16>{0, 1, -300, kLow<I16>, kHigh<I16>});
  make(std::initializer_list<I32>{0, 1, -70000, kNoFloat, kLow<I32>, kHigh<I32>});
  make(std::initializer_list<I64>{0, 1, 1'000'000'300, kNoDouble, kLow<I64>, kHigh<I64>});
  make(std::initializer_list<float>{0, 1, -1.25F, 1e30F, kHigh<float>});
  make(std::initializer_list<double>{0, 1, 0.1, -3.5, kNoFloat, 1e300});
  make(std::initializer_list<std::string>{"", "1", "gold", "k\xC3\xB6nig"});
  make(std::initializer_list<Binary>{{""}, {"1"}, {std::string("\xFF\0\x01", 3)}});
  make(std::initializer_list<Decimal>{{"0"}, {"12.50"}, {"-1E+3"}});
  make(std::initializer_list<Vector2>{{}, {1.5F, -2.5F}});
  make(std::initializer_list<Vector3>{{}, {1.5F, -2.5F, 3.5F}});
  make(std::initializer_list<Vector4>{{}, {1.5F, -2.5F, 3.5F, 4.5F}});
  make(std::initializer_list<Quaternion>{{}, {1.5F, -2.5F, 3.5F, 4.5F}});
  make(std::initializer_list<Vector2Int>{{}, {kNoFloat, -2}});
  make(std::initializer_list<Vector3Int>{{}, {kNoFloat, -2, kLow<I32>}});
  make(std::initializer_list<Id128>{{}, {1, 2}});
  make(std::initializer_list<BItem>{{}, {.id = 1, .count = kNoDouble, .note = "x"}});
  make(std::initializer_list<BKey>{{}, {.id = 1, .name = "x"}});
}

template <typename T>
constexpr bool kIsKey = !std::is_floating_point_v<T> && !std::is_same_v<T, BItem>;

TEST(SchemaPairsTest, AChangeOfAPlainTypeIsRefusedOrKeepsEveryValue) {
  std::vector<Stored> all;
  ForEachPlainType([&](auto values) { all.push_back(VariableOf(values)); });
  Pairs also_kept;
  const Pairs accepted = AcceptedPairs(all, &KeepsEveryValue, &also_kept);
  EXPECT_THAT(accepted,
              ::testing::ElementsAre(
                  "bool to byte", "bool to double", "bool to float", "bool to int", "bool to long",
                  "bool to short", "byte to double", "byte to float", "byte to int", "byte to long",
                  "byte to short", "decimal to binary", "decimal to string", "float to double",
                  "int to double", "int to long", "quaternion to vector4", "short to double",
                  "short to float", "short to int", "short to long", "string to binary",
                  "vector2 to quaternion", "vector2 to vector3", "vector2 to vector4",
                  "vector2int to vector3int", "vector3 to quaternion", "vector3 to vector4",
                  "vector4 to quaternion"));
  // Bytes are not always text. An id is stored as a bean and never becomes one.
  EXPECT_THAT(also_kept, ::testing::ElementsAre("binary to string"));
}

TEST(SchemaPairsTest, ElementsAndKeysOfContainersAreRefusedOrKept) {
  std::vector<Stored> all;
  ForEachPlainType([&]<typename T>(std::initializer_list<T> values) {
    List<T> list;
    Map<std::int32_t, T> map;
    SortedMap<std::int64_t, T> sorted;
    Map<std::int32_t, GTableRow<std::int32_t, T>> grid;
    for (int round = 0; round < 2; ++round) {  // A list repeats its elements.
      for (const T& value : values) list.PushBack(value);
    }
    std::int32_t n = -2;
    for (const T& value : values) {
      map.Put(n, value);
      sorted.Put(n, value);
      grid.UpdateOrAdd(n, [&](auto& row) { row.cells.Put(n + 1, value); });
      ++n;
    }
    all.push_back(VariableOf<List<T>>({list}));
    all.push_back(VariableOf<Map<std::int32_t, T>>({map}));
    all.push_back(VariableOf<SortedMap<std::int64_t, T>>({sorted}));
    all.push_back(VariableOf<Map<std::int32_t, GTableRow<std::int32_t, T>>>({grid}));
    if constexpr (kIsKey<T>) {
      Set<T> set;
      Map<T, std::int32_t> keyed;
      Map<T, GTableRow<std::int32_t, bool>> rows;
      for (const T& value : values) {
        set.Add(value);
        keyed.Put(value, 7);
        rows.UpdateOrAdd(value, [](auto& row) { row.cells.Put(1, true); });
      }
      all.push_back(VariableOf<Set<T>>({set}));
      all.push_back(VariableOf<Map<T, std::int32_t>>({keyed}));
      all.push_back(VariableOf<Map<T, GTableRow<std::int32_t, bool>>>({rows}));
    }
  });
  const Pairs accepted = AcceptedPairs(all, &KeepsEveryValue);
  EXPECT_THAT(accepted,
              ::testing::IsSupersetOf({"list[int] to list[long]", "set[byte] to set[int]",
                                       "map[int,int] to map[long,int]",
                                       "map[int,int] to sortedmap[long,double]",
                                       "gtable[int,int,string] to gtable[int,int,binary]"}));
  for (const char* refused :
       {"map[long,int] to map[byte,int]", "set[long] to set[byte]", "list[int] to set[int]",
        "set[int] to list[int]", "list[long] to list[int]", "map[int,int] to gtable[int,int,int]",
        "map[string,int] to map[decimal,int]"}) {
    EXPECT_FALSE(accepted.contains(refused)) << refused;
  }
}

TEST(SchemaPairsTest, DynamicsAreRefusedOrKept) {
  const BItem item{.id = 1, .count = 2, .note = "x"};
  const std::vector<Stored> all = {
      VariableOf<BItem>({item}),
      VariableOf<Dynamic<SomeChoices>>({{}, Holding<SomeChoices>(item)}),
      VariableOf<List<BItem>>({{item}}),
      VariableOf<List<Dynamic<SomeChoices>>>({{Holding<SomeChoices>(item)}}),
      VariableOf<Map<std::int32_t, Dynamic<SomeChoices>>>({{{1, Holding<SomeChoices>(item)}}}),
  };
  EXPECT_THAT(AcceptedPairs(all, &KeepsEveryValue), ::testing::IsEmpty());

  const Stored some = VariableOf<Dynamic<SomeChoices>>({Holding<SomeChoices>(item)});
  const Stored more = VariableOf<Dynamic<MoreChoices>>({Holding<MoreChoices>(item)});
  const Stored any = VariableOf<AnyBean>({AnyBean::Of(BKey{.id = 1, .name = "x"})});
  EXPECT_TRUE(IsAccepted(some, more));
  EXPECT_TRUE(KeepsEveryValue(some, more));
  EXPECT_FALSE(IsAccepted(more, some));
  EXPECT_FALSE(IsAccepted(any, some));
  EXPECT_FALSE(KeepsEveryValue(any, some));
}

TEST(SchemaPairsTest, TableKeysAreRefusedOrKeepTheirBytes) {
  std::vector<Stored> all;
  ForEachPlainType([&]<typename T>(std::initializer_list<T> values) {
    if constexpr (!VectorValue<T> && !std::is_same_v<T, BItem>) all.push_back(TableKeyOf(values));
  });
  EXPECT_THAT(AcceptedPairs(all, &KeepsItsBytes),
              ::testing::ElementsAre("bool to byte", "bool to int", "bool to long", "bool to short",
                                     "byte to int", "byte to long", "byte to short", "int to long",
                                     "short to int", "short to long", "string to binary"));
}

}  // namespace
}  // namespace zeze
