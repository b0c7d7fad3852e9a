// CommitLog: what commits tell the checkpoint, in their order: which records belong together, and
// who waits until they are saved.
//
// The words of an entry: the number of its records * 2 + (1 if a ticket follows), the ticket, the
// records. Only this file and its .cc know.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeze/base/executor.h"

namespace zeze::internal {

struct Record;

// A promise that what a transaction wrote (or read of durable tables) is in the storage. Completed
// by the flush of its group.
struct DurabilityTicket {
  std::atomic<bool> done = false;
  bool urgent = false;  // Somebody waits: flush now rather than at the next period.
  bool owned = false;   // Deleted by the checkpoint once it is done.
  // The engine's own, never a user's: it runs on the flushing thread and must not wait.
  Task then;
  // What the transaction registered with AfterDurable, and its place among those of others.
  std::vector<Task> actions;
  std::uint64_t order = 0;
  DurabilityTicket* next = nullptr;
};

// Deletes those of the list that nobody else owns. They are never completed.
void DropTickets(DurabilityTicket* list);

// One thread appends and, while that appends to another log, the checkpoint reads and clears.
class CommitLog {
 public:
  static constexpr std::size_t kCompactMin = 1 << 16;  // Words.

  // One committed transaction, or a right that was lowered.
  class Entry {
   public:
    explicit Entry(const std::uintptr_t* words) : words_(words) {}
    DurabilityTicket* ticket() const {
      return HasTicket() ? reinterpret_cast<DurabilityTicket*>(words_[1]) : nullptr;
    }
    std::size_t size() const { return words_[0] >> 1; }
    Record* record(std::size_t n) const {
      return reinterpret_cast<Record*>(words_[1 + (words_[0] & 1) + n]);
    }

   private:
    bool HasTicket() const { return (words_[0] & 1) != 0; }

    const std::uintptr_t* words_;
  };

  // Begins an entry: exactly so many calls of Add follow. The ticket may be null.
  void Begin(std::size_t records, DurabilityTicket* ticket) {
    words_.push_back(records * 2 + (ticket != nullptr ? 1 : 0));
    if (ticket != nullptr) words_.push_back(reinterpret_cast<std::uintptr_t>(ticket));
  }
  void Add(Record* record) { words_.push_back(reinterpret_cast<std::uintptr_t>(record)); }
  // Between entries: keeps the log in proportion to what is unsaved, however long a flush takes.
  void CompactIfLong() {
    if (words_.size() >= compact_at_) [[unlikely]]
      Compact();
  }

  // Calls visit(Entry) for each, oldest first.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (std::size_t at = 0; at < words_.size();) {
      const Entry entry(&words_[at]);
      visit(entry);
      at += 1 + (words_[at] & 1) + entry.size();
    }
  }
  void Clear() { words_.clear(); }
  std::size_t words() const { return words_.size(); }

 private:
  // Says the same with each record named once. Sets the length at which it is worth doing again.
  void Compact();

  std::vector<std::uintptr_t> words_;
  std::size_t compact_at_ = kCompactMin;
};

}  // namespace zeze::internal
