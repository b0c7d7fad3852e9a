// The tables of the crash test, and what must hold of them at every moment.
//
//   accounts   balances; with the receipts they always sum up to kTotal
//   transfers  one row for each transfer: every balance is what its rows make of it
//   causes     counters; effects[k] was written by a transaction that had read causes[k], so it
//              can never be ahead of it. Every other effect learns of its cause only through
//              `whispers`, which is never saved itself
//   receipts   purchases; durable at commit when checkpoints go by groups. The workload reports
//              each one to the test once it is acknowledged: it must never be lost

#pragma once

#include <cstdint>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze::fault {

struct BAmount {
  static constexpr std::int64_t kTypeId = 21;
  static constexpr std::string_view kFullName = "fault.BAmount";
  std::int64_t value = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "value"}, &BAmount::value);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

struct BTransfer {
  static constexpr std::int64_t kTypeId = 22;
  static constexpr std::string_view kFullName = "fault.BTransfer";
  std::int64_t from = 0;
  std::int64_t to = 0;  // -1: the price of a purchase.
  std::int64_t amount = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "from"}, &BTransfer::from);
    visit(Field{2, "to"}, &BTransfer::to);
    visit(Field{3, "amount"}, &BTransfer::amount);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

inline constexpr std::int64_t kAccounts = 64;
inline constexpr std::int64_t kStart = 1'000'000;
inline constexpr std::int64_t kTotal = kAccounts * kStart;
inline constexpr std::int64_t kChains = 8;

struct Tables {
  Table<std::int64_t, BAmount> accounts{TableDescriptor{.id = 1, .name = "fault_accounts"}};
  Table<std::int64_t, BTransfer> transfers{TableDescriptor{.id = 2, .name = "fault_transfers"}};
  Table<std::int64_t, BAmount> causes{TableDescriptor{.id = 3, .name = "fault_causes"}};
  Table<std::int64_t, BAmount> effects{TableDescriptor{.id = 4, .name = "fault_effects"}};
  Table<std::int64_t, BAmount> receipts{TableDescriptor{.id = 5, .name = "fault_receipts"}};
  Table<std::int64_t, BAmount> whispers{
      TableDescriptor{.id = 6, .name = "fault_whispers", .memory = true}};

  Result<void> AddTo(Engine& engine, bool groups) {
    const TableOptions durable{.durable_at_commit = groups};
    for (TableBase* table : std::initializer_list<TableBase*>{&accounts, &causes, &whispers}) {
      if (Result<void> added = engine.AddTable(*table); !added.ok()) return added;
    }
    // Small, so that records are evicted and loaded again while checkpoints run.
    if (auto added = engine.AddTable(transfers, {.cache_capacity = 500}); !added.ok()) return added;
    if (auto added = engine.AddTable(effects, durable); !added.ok()) return added;
    return engine.AddTable(receipts, durable);
  }
};

}  // namespace zeze::fault
