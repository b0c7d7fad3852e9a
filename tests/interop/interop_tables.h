// The tables of the mixed cluster: two of the framework's own, which every Java server has.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/compare.h"
#include "zeze/bean/field.h"
#include "zeze/bean/format.h"
#include "zeze/bean/list.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze::interop {

struct BSeedKey {
  static constexpr bool kIsKey = true;
  static constexpr std::string_view kFullName = "Zeze.Builtin.AutoKey.BSeedKey";
  std::int32_t server_id = 0;
  std::string key_name = {};

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "ServerId"}, &BSeedKey::server_id);
    visit(Field{2, "KeyName"}, &BSeedKey::key_name);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BSeedKey& other) const { return EqualFields(*this, other); }
  std::weak_ordering operator<=>(const BSeedKey& other) const {
    return CompareFields(*this, other);
  }
  std::string ToString() const { return FormatFields(*this); }
};

struct BQueueNodeKey {
  static constexpr bool kIsKey = true;
  static constexpr std::string_view kFullName = "Zeze.Builtin.Collections.Queue.BQueueNodeKey";
  std::string name = {};
  std::int64_t node_id = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "Name"}, &BQueueNodeKey::name);
    visit(Field{2, "NodeId"}, &BQueueNodeKey::node_id);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BQueueNodeKey& other) const { return EqualFields(*this, other); }
  std::weak_ordering operator<=>(const BQueueNodeKey& other) const {
    return CompareFields(*this, other);
  }
  std::string ToString() const { return FormatFields(*this); }
};

}  // namespace zeze::interop

template <>
struct std::hash<zeze::interop::BSeedKey> {
  std::size_t operator()(const zeze::interop::BSeedKey& key) const noexcept {
    return zeze::HashFields(key);
  }
};
template <>
struct std::hash<zeze::interop::BQueueNodeKey> {
  std::size_t operator()(const zeze::interop::BQueueNodeKey& key) const noexcept {
    return zeze::HashFields(key);
  }
};

namespace zeze::interop {

struct BAutoKey {
  static constexpr std::string_view kFullName = "Zeze.Builtin.AutoKey.BAutoKey";
  std::int64_t next_id = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "NextId"}, &BAutoKey::next_id);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// Without its dynamic field, which nobody sets here.
struct BQueueNodeValue {
  static constexpr std::string_view kFullName = "Zeze.Builtin.Collections.Queue.BQueueNodeValue";
  std::int64_t timestamp = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "Timestamp"}, &BQueueNodeValue::timestamp);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BQueueNodeValue& other) const { return EqualFields(*this, other); }
};

struct BQueueNode {
  static constexpr std::string_view kFullName = "Zeze.Builtin.Collections.Queue.BQueueNode";
  List<BQueueNodeValue> values = {};

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{2, "Values"}, &BQueueNode::values);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

inline constexpr std::int32_t kKeys = 40;

// Counters are numbered from 0, accounts behind them.
inline BSeedKey CounterKey(std::int32_t key) {
  return {.server_id = key, .key_name = "interop.counter"};
}
inline BSeedKey AccountKey(std::int32_t key) {
  return {.server_id = key, .key_name = "interop.account"};
}
inline BQueueNodeKey ListKey(std::int32_t key) {
  return {.name = "interop.list", .node_id = key};
}

// An element of a list: who appended it, and which one of his it is, from 1.
inline std::int64_t Element(std::int32_t server, std::int32_t thread, std::int64_t number) {
  return (std::int64_t{server} << 48) | (std::int64_t{thread} << 40) | number;
}

struct Tables {
  Table<BSeedKey, BAutoKey> numbers{
      TableDescriptor{.id = -716529252, .name = "Zeze_Builtin_AutoKey_tAutoKeys"}};
  Table<BQueueNodeKey, BQueueNode> lists{
      TableDescriptor{.id = -117984600, .name = "Zeze_Builtin_Collections_Queue_tQueueNodes"}};

  Result<void> AddTo(Engine& engine) {
    if (Result<void> added = engine.AddTable(numbers); !added.ok()) return added;
    return engine.AddTable(lists);
  }
};

}  // namespace zeze::interop
