// FrameworkBeans: the framework's own beans that the vectors hold, as the generator would write
// them.

#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/bean/unknown_fields.h"
#include "zeze/serialize/binary.h"

namespace zeze::compatibility {

struct BRocksKey {
  static constexpr bool kIsKey = true;
  static constexpr std::int64_t kTypeId = 1;
  static constexpr std::string_view kFullName = "Zeze.Builtin.TestRocks.BeanKey1";
  std::int32_t i = 0;
  std::string s = {};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "i"}, &BRocksKey::i);
    visit(Field{2, "s"}, &BRocksKey::s);
  }
  std::weak_ordering operator<=>(const BRocksKey& other) const {
    return CompareFields(*this, other);
  }
  ZEZE_TEST_BEAN_MEMBERS(BRocksKey)
};

}  // namespace zeze::compatibility

template <>
struct std::hash<zeze::compatibility::BRocksKey> {
  std::size_t operator()(const zeze::compatibility::BRocksKey& key) const noexcept {
    return zeze::HashFields(key);
  }
};

namespace zeze::compatibility {

struct BRocksItem {
  static constexpr std::int64_t kTypeId = 2;
  static constexpr std::string_view kFullName = "Zeze.Builtin.TestRocks.Bean1";
  std::int32_t i = 0;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "i"}, &BRocksItem::i);
  }
  ZEZE_TEST_BEAN_MEMBERS(BRocksItem)
};

struct BRocksValue {
  static constexpr std::int64_t kTypeId = 3;
  static constexpr std::string_view kFullName = "Zeze.Builtin.TestRocks.BValue";
  std::int32_t number = 0;
  bool flag = false;
  float single = 0;
  double twice = 0;
  std::string text = {};
  Binary binary = {};
  Set<std::int32_t> numbers = {};
  Set<BRocksKey> keys = {};
  Map<std::int32_t, std::int32_t> pairs = {};
  Map<std::int32_t, BRocksItem> beans = {};
  BRocksKey key = {};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "number"}, &BRocksValue::number);
    visit(Field{2, "flag"}, &BRocksValue::flag);
    visit(Field{3, "single"}, &BRocksValue::single);
    visit(Field{4, "twice"}, &BRocksValue::twice);
    visit(Field{5, "text"}, &BRocksValue::text);
    visit(Field{6, "binary"}, &BRocksValue::binary);
    visit(Field{7, "numbers"}, &BRocksValue::numbers);
    visit(Field{8, "keys"}, &BRocksValue::keys);
    visit(Field{9, "pairs"}, &BRocksValue::pairs);
    visit(Field{10, "beans"}, &BRocksValue::beans);
    visit(Field{11, "key"}, &BRocksValue::key);
  }
  ZEZE_TEST_BEAN_MEMBERS(BRocksValue)
};

struct BSimpleTimer {
  static constexpr std::int64_t kTypeId = 1832177636612857692;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Timer.BSimpleTimer";
  std::int64_t delay = 0;
  std::int64_t period = 0;
  std::int64_t remain_times = 0;
  std::int64_t start_time = 0;
  std::string one_by_one_key = {};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "delay"}, &BSimpleTimer::delay);
    visit(Field{2, "period"}, &BSimpleTimer::period);
    visit(Field{3, "remain_times"}, &BSimpleTimer::remain_times);
    visit(Field{5, "start_time"}, &BSimpleTimer::start_time);
    visit(Field{11, "one_by_one_key"}, &BSimpleTimer::one_by_one_key);
  }
  ZEZE_TEST_BEAN_MEMBERS(BSimpleTimer)
};

struct BTimer_choices {
  using List = TypeList<Choice<BSimpleTimer, BSimpleTimer::kTypeId>>;
};

struct BTimer {
  static constexpr std::int64_t kTypeId = 4;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Timer.BTimer";
  std::string name = {};
  std::string handle = {};
  Dynamic<BTimer_choices> timer = {};
  Dynamic<BTimer_choices> custom = {};
  std::int64_t concurrent = 0;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "name"}, &BTimer::name);
    visit(Field{2, "handle"}, &BTimer::handle);
    visit(Field{3, "timer"}, &BTimer::timer);
    visit(Field{4, "custom"}, &BTimer::custom);
    visit(Field{5, "concurrent"}, &BTimer::concurrent);
  }
  ZEZE_TEST_BEAN_MEMBERS(BTimer)
};

struct BRankList {
  static constexpr std::int64_t kTypeId = 5;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Game.Rank.BRankList";
  List<BRocksItem> list = {};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "list"}, &BRankList::list);
  }
  ZEZE_TEST_BEAN_MEMBERS(BRankList)
};

struct BModule {
  static constexpr std::int64_t kTypeId = 6;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Provider.BModule";
  std::int32_t choice_type = 0;
  bool dynamic = false;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "choice_type"}, &BModule::choice_type);
    visit(Field{2, "dynamic"}, &BModule::dynamic);
  }
  ZEZE_TEST_BEAN_MEMBERS(BModule)
};

struct BBind {
  static constexpr std::int64_t kTypeId = 7;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Provider.BBind";
  Map<std::int32_t, BModule> modules = {};
  Set<std::int64_t> link_sids = {};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "modules"}, &BBind::modules);
    visit(Field{2, "link_sids"}, &BBind::link_sids);
  }
  ZEZE_TEST_BEAN_MEMBERS(BBind)
};

// A server of an older version: it knows the first field only, and keeps the others.
struct BOld {
  static constexpr std::int64_t kTypeId = 8;
  static constexpr std::string_view kFullName = "test.BOld";
  std::int64_t known = 0;
  UnknownFields unknown_fields = {};
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "known"}, &BOld::known);
  }
  ZEZE_TEST_BEAN_MEMBERS(BOld)
};

struct BNodeKey {
  static constexpr bool kIsKey = true;
  static constexpr std::int64_t kTypeId = 9;
  static constexpr std::string_view kFullName =
      "Zeze.Builtin.Collections.LinkedMap.BLinkedMapNodeKey";
  std::string name = {};
  std::int64_t node_id = 0;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "name"}, &BNodeKey::name);
    visit(Field{2, "node_id"}, &BNodeKey::node_id);
  }
  ZEZE_TEST_BEAN_MEMBERS(BNodeKey)
};

struct BConcurrentKey {
  static constexpr bool kIsKey = true;
  static constexpr std::int64_t kTypeId = 10;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Game.Rank.BConcurrentKey";
  std::int32_t rank_type = 0;
  std::int32_t concurrent_id = 0;
  std::int32_t time_type = 0;
  std::int32_t year = 0;
  std::int64_t offset = 0;
  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "rank_type"}, &BConcurrentKey::rank_type);
    visit(Field{2, "concurrent_id"}, &BConcurrentKey::concurrent_id);
    visit(Field{3, "time_type"}, &BConcurrentKey::time_type);
    visit(Field{4, "year"}, &BConcurrentKey::year);
    visit(Field{5, "offset"}, &BConcurrentKey::offset);
  }
  ZEZE_TEST_BEAN_MEMBERS(BConcurrentKey)
};

}  // namespace zeze::compatibility
