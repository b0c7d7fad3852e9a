// The tables of the cluster tests.

#pragma once

#include <cstdint>
#include <string_view>

#include "tests/history/history.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze::cluster {

// A number.
struct BNumber {
  static constexpr std::string_view kFullName = "test.BNumber";
  std::int64_t value = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "value"}, &BNumber::value);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// A list of a history, as its fingerprint.
struct BList {
  static constexpr std::string_view kFullName = "test.BList";
  std::int64_t length = 0;
  std::int64_t last = 0;
  std::int64_t hash = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "length"}, &BList::length);
    visit(Field{2, "last"}, &BList::last);
    visit(Field{3, "hash"}, &BList::hash);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }

  history::ListState ToState() const {
    return {.length = static_cast<std::uint64_t>(length),
            .last = static_cast<std::uint64_t>(last),
            .hash = static_cast<std::uint64_t>(hash)};
  }
  void Set(const history::ListState& state) {
    length = static_cast<std::int64_t>(state.length);
    last = static_cast<std::int64_t>(state.last);
    hash = static_cast<std::int64_t>(state.hash);
  }
};

inline constexpr std::int64_t kKeys = 60;

struct Tables {
  Table<std::int64_t, BNumber> counters{TableDescriptor{.id = 1, .name = "cluster_counters"}};
  Table<std::int64_t, BNumber> accounts{TableDescriptor{.id = 2, .name = "cluster_accounts"}};
  Table<std::int64_t, BList> lists{TableDescriptor{.id = 3, .name = "cluster_lists"}};
  Table<std::int64_t, BNumber> receipts{TableDescriptor{.id = 4, .name = "cluster_receipts"}};

  Result<void> AddTo(Engine& engine) {
    if (Result<void> added = engine.AddTable(counters); !added.ok()) return added;
    if (Result<void> added = engine.AddTable(accounts); !added.ok()) return added;
    if (Result<void> added = engine.AddTable(lists); !added.ok()) return added;
    return engine.AddTable(receipts, {.durable_at_commit = true});
  }
};

}  // namespace zeze::cluster
