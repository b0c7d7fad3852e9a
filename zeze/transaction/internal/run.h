// Run: the state of one run of a procedure: the records that it has opened, the actions that it has
// registered, and the reason if it cannot commit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zeze/transaction/internal/action_list.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/internal/version_clock.h"

namespace zeze {
class TableBase;
}  // namespace zeze

namespace zeze::internal {

enum class AccessState : std::uint8_t {
  kRead,     // The record as committed.
  kEdited,   // `working` is the content.
  kRemoved,  // Absent.
};

// One record in a transaction.
struct Access {
  Record* record = nullptr;
  TableBase* table = nullptr;
  std::uint64_t word = 0;  // When it was read; unlocked.
  // What was read: protected until the transaction ends; its own copy if values are in records, or
  // in_record_mark once that copy has become `working`.
  ValueHeader* committed = nullptr;
  ValueHeader* working = nullptr;        // One address for the life of the transaction.
  std::uint64_t savepoint = 0;           // Serial of the last savepoint that saved this access.
  RecordMap::ValueHint* hint = nullptr;  // Where the map notes the value; null if unknown.
  std::uint32_t generation = 0;          // Changes when handles to the content become invalid.
  AccessState state = AccessState::kRead;
  bool shown = false;          // A pointer to `committed` may have been given away.
  bool unreadable = false;     // The storage has a row that cannot be decoded; `committed` is null.
  bool removed_later = false;  // To be removed later, and not written since.

  const ValueHeader* content() const {
    if (state == AccessState::kRead) return committed;
    return state == AccessState::kEdited ? working : nullptr;
  }
  // Whether there is nothing to remove.
  bool absent() const {
    return content() == nullptr && (!unreadable || state != AccessState::kRead);
  }
  bool IsWrite() const {
    return state == AccessState::kEdited ||
           (state == AccessState::kRemoved && (committed != nullptr || unreadable));
  }
  void NoteHint(RecordMap::ValueHint* at) {
    hint = at;
    const void* value = committed;
    if (at->load(std::memory_order_relaxed) != value) at->store(value, std::memory_order_relaxed);
  }
};

// The accesses of a run in the order in which it opened the records, each record once.
class AccessSet {
 public:
  // Up to here an access is found by looking at each, and all earlier reads are checked at every
  // new one; beyond, a hash index finds it, and they are checked if the new one may have changed
  // since the last time.
  static constexpr std::size_t kLinearMax = 16;

  AccessSet() { accesses_.reserve(kLinearMax); }

  std::size_t size() const { return accesses_.size(); }
  Access& operator[](std::size_t index) { return accesses_[index]; }
  const Access& operator[](std::size_t index) const { return accesses_[index]; }
  std::vector<Access>::iterator begin() { return accesses_.begin(); }
  std::vector<Access>::iterator end() { return accesses_.end(); }
  std::vector<Access>::const_iterator begin() const { return accesses_.begin(); }
  std::vector<Access>::const_iterator end() const { return accesses_.end(); }
  std::size_t IndexOf(const Access& access) const {
    return static_cast<std::size_t>(&access - accesses_.data());
  }

  Access* Find(const Record* record) {
    if (accesses_.size() <= kLinearMax) {
      for (Access& access : accesses_) {
        if (access.record == record) return &access;
      }
      return nullptr;
    }
    const std::size_t mask = index_.size() - 1;
    for (std::size_t i = HashPointer(record) & mask; index_[i] != 0; i = (i + 1) & mask) {
      if (accesses_[index_[i] - 1].record == record) return &accesses_[index_[i] - 1];
    }
    return nullptr;
  }

  Access& Add(TableBase& table, Record& record, std::uint64_t word, ValueHeader* value) {
    Access& access = accesses_.emplace_back();
    access.table = &table;
    access.record = &record;
    access.word = word;
    access.committed = value;
    const std::size_t count = accesses_.size();
    if (count <= kLinearMax) return access;

    // The index of the last large run is still there when this one becomes large.
    const bool first = count == kLinearMax + 1;
    const bool rebuild = first || count * 2 > index_.size();
    if (rebuild) index_.assign(first ? kLinearMax * 8 : index_.size() * 2, 0);
    Index(rebuild ? 0 : count - 1);
    return access;
  }

  // After Add. User code never sees a mixed state (rule 7): everything that it read before the new
  // record must be current, or have been when that was last changed. The first that was not; null
  // if all is well.
  Record* ChangedBefore(VersionClock& versions) {
    const std::size_t count = accesses_.size() - 1;
    if (count < kLinearMax) return FirstInvalid(count);
    if (!versions.UnchangedSince(moment_, Word::Version(accesses_.back().word))) {
      checks_ += count;
      return CheckAll(versions);
    }
    // A procedure that has lost its race does not go on for long.
    return (count & (count - 1)) == 0 ? CheckAll(versions) : nullptr;
  }

  // The first of so many records that is not what was read; null if there is none.
  Record* FirstInvalid(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      const Access& access = accesses_[i];
      std::uint64_t word = access.record->word.load(std::memory_order_seq_cst);
      if (word == access.word) continue;
      // Somebody is about to change it, or only to look at it (a flush): wait for the outcome.
      Backoff backoff;
      while (Word::Locked(word) && (word & ~Word::kLocked) == access.word) {
        backoff.Wait();
        word = access.record->word.load(std::memory_order_seq_cst);
      }
      if (word != access.word) return access.record;
    }
    return nullptr;
  }
  Record* FirstInvalid() const { return FirstInvalid(accesses_.size()); }

  // Forgets all after the first `count`. What they own was disposed of.
  void Truncate(std::size_t count) {
    accesses_.resize(count);
    moment_ = {};
    if (count <= kLinearMax) return;
    index_.assign(index_.size(), 0);
    Index(0);
  }
  void Clear() {
    accesses_.clear();
    moment_ = {};
    checks_ = 0;
  }
  void FreeMemory() { *this = AccessSet(); }

 private:
  // A run that had to look at so many records again advances the clock, which costs every writer a
  // new block of versions, so that old changes can be told from new ones.
  static constexpr std::size_t kChecksMax = 256;

  static std::size_t HashPointer(const Record* record) {
    return static_cast<std::size_t>(
        (reinterpret_cast<std::uintptr_t>(record) >> 6) * 0x9e3779b97f4a7c15ULL >> 32);
  }

  void Index(std::size_t from) {
    const std::size_t mask = index_.size() - 1;
    for (std::size_t n = from; n < accesses_.size(); ++n) {
      std::size_t i = HashPointer(accesses_[n].record) & mask;
      while (index_[i] != 0) i = (i + 1) & mask;
      index_[i] = static_cast<std::uint32_t>(n + 1);
    }
  }

  Record* CheckAll(VersionClock& versions) {
    if (checks_ >= kChecksMax) {
      versions.Advance();
      checks_ = 0;
    }
    moment_ = versions.Now();
    return FirstInvalid();
  }

  std::vector<Access> accesses_;
  std::vector<std::uint32_t> index_;  // Open addressing over accesses_, used beyond kLinearMax.
  // All that was read was current then; of runs with more than kLinearMax records.
  VersionClock::Moment moment_;
  std::size_t checks_ = 0;  // Records looked at again since the clock was advanced.
};

enum class Outcome : std::uint8_t {
  kCommitted,
  kRolledBack,
  kConflict,
  kFailed,
  kNoRoom,  // Too much is unsaved: wait and run again.
};

struct Run {
  AccessSet accesses;
  ActionList actions;
  bool serializable = true;  // False: reads are believed without a check if nothing was written.
  bool durable = false;      // The answer waits until everything that it tells is saved.

  bool aborted = false;  // A conflict was met: run again, whatever user code returned.
  bool failed = false;   // A record could not be had: fail with failure_code.
  std::int64_t failure_code = 0;
  std::string failure;        // Why it failed; of the last procedure that did.
  Record* culprit = nullptr;  // The record over which it lost a race.

  bool ended() const { return aborted || failed; }

  Outcome Fail(std::int64_t code, std::string message) {
    failed = true;
    failure_code = code;
    failure = std::move(message);
    return Outcome::kFailed;
  }
};

}  // namespace zeze::internal
