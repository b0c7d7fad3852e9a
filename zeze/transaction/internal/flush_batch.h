// FlushBatch: the rows of one flush, encoded as of the cut and sorted as storages want them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"

namespace zeze {
class TableBase;
}  // namespace zeze

namespace zeze::internal {

// Used by one thread at a time: the one that flushes. Its memory is kept for the next flush, except
// what only a large one needs.
class FlushBatch {
 public:
  explicit FlushBatch(const std::vector<TableBase*>& tables) : tables_(tables) {}

  // Begins a new batch.
  void Clear();
  // Takes the value that the record had at the cut: nothing if it was clean then.
  void Add(Participant& by, Record& record, std::uint64_t cut);
  // By table, then key. Valid until Clear or Trim.
  std::span<const StorageWrite> Sort();

  std::size_t records() const { return items_.size(); }
  std::size_t bytes() const { return arena_bytes_; }

  struct Cleaned {
    std::int64_t records = 0;
    std::uint64_t bytes = 0;
  };
  // The storage has the batch for certain (rule 30): what was not written after the cut is clean.
  Cleaned MarkClean(Participant& by, std::uint64_t cut);

  // Gives back what a large flush has needed.
  void Trim();

 private:
  // A record with its bytes in a piece of the arena.
  struct Item {
    Record* record;
    TableBase* table;
    const ByteWriter* piece;
    std::size_t key_begin, key_size, value_size;  // The value follows the key.

    std::string_view key() const { return piece->view().substr(key_begin, key_size); }
    std::string_view value() const {
      return piece->view().substr(key_begin + key_size, value_size);
    }
    bool remove;
    bool stored;  // False for memory tables: part of the group, not of the storage.
  };

  // What orders writes: table, then key; most keys differ in their first eight bytes.
  struct Order {
    std::uint64_t prefix;
    std::uint32_t item;
    std::uint16_t table;
  };

  ByteWriter& ArenaPiece();

  const std::vector<TableBase*>& tables_;
  std::vector<Item> items_;
  std::vector<Order> order_;
  std::vector<StorageWrite> writes_;
  // In pieces: what is encoded stays where it is.
  std::vector<std::unique_ptr<ByteWriter>> arena_;
  std::size_t arena_used_ = 0;   // Pieces.
  std::size_t arena_bytes_ = 0;  // Of all items.
};

}  // namespace zeze::internal
