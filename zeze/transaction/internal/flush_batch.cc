#include "zeze/transaction/internal/flush_batch.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/table_base.h"

namespace zeze::internal {

namespace {

// A value that is longer makes its piece longer.
constexpr std::size_t kArenaPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kArenaPiecesKept = 4;

}  // namespace

void FlushBatch::Clear() {
  items_.clear();
  Trim();
}

// Apart from the record the value stays alive until MarkClean: the record is dirty, so a commit
// that replaces the value keeps it aside.
void FlushBatch::Add(Participant& by, Record& record, std::uint64_t cut) {
  TableBase& table = *tables_[record.table_index];
  const std::uint64_t word = LockRecord(record);
  const bool replaced = record.write_epoch > cut;
  // Clean, or clean at the cut and written after it: its row may be another server's by now.
  const bool nothing = !record.Dirty(word) || (replaced && record.aside == 0);
  const ValueHeader* value =
      replaced ? record.aside_value() : record.value.load(std::memory_order_relaxed);
  ValueHeader* copy = nullptr;
  if (!replaced && value != nullptr && table.values().in_record()) {
    copy = table.values().fetch(by, record);
    value = copy;
  }
  UnlockRecord(record, word);
  if (nothing) return;

  ByteWriter& piece = ArenaPiece();
  Item item{.record = &record,
            .table = &table,
            .piece = &piece,
            .key_begin = piece.size(),
            .key_size = 0,
            .value_size = 0,
            .remove = value == nullptr,
            .stored = table.storage() != nullptr};
  if (item.stored) {
    table.EncodeRecordKey(record, piece);
    item.key_size = piece.size() - item.key_begin;
    if (value != nullptr) table.EncodeValue(*value, piece);
    item.value_size = piece.size() - item.key_begin - item.key_size;
    arena_bytes_ += item.key_size + item.value_size;
  }
  items_.push_back(item);
  if (copy != nullptr) table.values().dispose(by, copy);
}

ByteWriter& FlushBatch::ArenaPiece() {
  if (arena_used_ > 0 && arena_[arena_used_ - 1]->size() < kArenaPieceBytes) {
    return *arena_[arena_used_ - 1];
  }
  if (arena_used_ == arena_.size()) arena_.push_back(std::make_unique<ByteWriter>());
  ByteWriter& piece = *arena_[arena_used_++];
  if (arena_used_ > 1) piece.Reserve(kArenaPieceBytes);
  return piece;
}

void FlushBatch::Trim() {
  if (arena_.size() > kArenaPiecesKept) arena_.resize(kArenaPiecesKept);
  for (std::unique_ptr<ByteWriter>& piece : arena_) {
    if (piece->size() > 2 * kArenaPieceBytes) piece = std::make_unique<ByteWriter>();
    piece->Clear();
  }
  arena_used_ = 0;
  arena_bytes_ = 0;
}

// Sorted writes go into RocksDB's memtable a third faster than random ones, and the storage
// interface asks for them.
std::span<const StorageWrite> FlushBatch::Sort() {
  order_.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (!item.stored) continue;
    unsigned char bytes[8] = {};
    std::memcpy(bytes, item.key().data(), std::min<std::size_t>(8, item.key_size));
    std::uint64_t prefix = 0;
    for (const unsigned char byte : bytes) prefix = (prefix << 8) | byte;
    order_.push_back({prefix, static_cast<std::uint32_t>(i), item.record->table_index});
  }
  const auto key = [&](const Order& o) { return items_[o.item].key(); };
  std::sort(order_.begin(), order_.end(), [&](const Order& a, const Order& b) {
    if (a.table != b.table) return a.table < b.table;
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return key(a) < key(b);
  });
  writes_.clear();
  for (const Order& o : order_) {
    const Item& item = items_[o.item];
    writes_.push_back({.table = item.table->storage(),
                       .key = key(o),
                       .value = item.value(),
                       .remove = item.remove});
  }
  return writes_;
}

FlushBatch::Cleaned FlushBatch::MarkClean(Participant& by, std::uint64_t cut) {
  Cleaned cleaned;
  for (const Item& item : items_) {
    Record& record = *item.record;
    const std::uint64_t word = LockRecord(record);
    if (ValueHeader* aside = record.aside_value()) {
      by.Retire(aside, aside->birth_era, item.table->values().dispose);
    }
    record.aside = 0;
    if (record.write_epoch <= cut) {
      record.flushed_version.store(Word::Version(word), std::memory_order_release);
      ++cleaned.records;
      if (item.stored) {
        cleaned.bytes += item.table->RowBytes(record, record.value.load(std::memory_order_relaxed));
        item.table->unsaved_inserts().Forget(item.key());
      }
    }
    UnlockRecord(record, word);
  }
  return cleaned;
}

}  // namespace zeze::internal
