// VersionClock: where the versions of records come from, and how a transaction that has read many
// records knows whether one that it reads next was changed since it checked the others.
//
// Versions are unique numbers, drawn in blocks by each context. They are a coarse clock, too: a
// version is never below the floor at the moment of the change, and the floor only rises. A
// transaction that took the floor and then found all its reads unchanged knows that every record
// with a version below the floor was changed before that check and not since. So it need not check
// again (docs/architecture.md, rule 7, has the argument).

#pragma once

#include <atomic>
#include <cstdint>

namespace zeze::internal {

class VersionClock {
 public:
  static constexpr std::uint64_t kBlock = 128;
  // Marks the versions of records that were loaded, or known to be absent, and not written since.
  static constexpr std::uint64_t kLoad = std::uint64_t{1} << 58;

  // A moment that a transaction remembers.
  struct Moment {
    std::uint64_t floor = 0;
    std::uint64_t lowered = 0;
  };

  std::uint64_t floor() const { return floor_.load(std::memory_order_seq_cst); }

  // The first version of a new block.
  std::uint64_t Draw() { return source_.fetch_add(kBlock, std::memory_order_seq_cst); }

  // Before the reads are checked.
  Moment Now() const {
    return {.floor = floor(), .lowered = lowered_.load(std::memory_order_seq_cst)};
  }

  // Raises the floor above every version given so far: all contexts draw new blocks. For those who
  // read much that was written since the last time.
  void Advance() {
    const std::uint64_t target = source_.load(std::memory_order_seq_cst);
    std::uint64_t floor = floor_.load(std::memory_order_seq_cst);
    while (floor < target &&
           !floor_.compare_exchange_weak(floor, target, std::memory_order_seq_cst)) {
    }
  }

  // Whether a record with this version, read after the moment, is as it was then. False: perhaps
  // not.
  bool UnchangedSince(const Moment& moment, std::uint64_t version) const {
    if ((version & ~kLoad) < moment.floor) [[likely]]
      return true;
    // Loaded since. Its value is of before the moment, unless it was written, saved and evicted
    // since, or another server has written it. That server may have written what was read before as
    // well, but only after it had taken away a right.
    return (version & kLoad) != 0 && evicted_.load(std::memory_order_seq_cst) < moment.floor &&
           lowered_.load(std::memory_order_seq_cst) == moment.lowered;
  }

  // A record with this version is evicted. Called with its lock held, before it can be reloaded.
  void NoteEvicted(std::uint64_t version) {
    if ((version & kLoad) != 0) return;
    std::uint64_t last = evicted_.load(std::memory_order_relaxed);
    while (last < version &&
           !evicted_.compare_exchange_weak(last, version, std::memory_order_seq_cst)) {
    }
  }

  // A right is being lowered. Called with the record's lock held, before another server learns it.
  void NoteLowered() { lowered_.fetch_add(1, std::memory_order_seq_cst); }

 private:
  alignas(64) std::atomic<std::uint64_t> source_ = 1;
  alignas(64) std::atomic<std::uint64_t> floor_ = 1;    // Read by every commit, rarely written.
  alignas(64) std::atomic<std::uint64_t> evicted_ = 0;  // The highest version of an evicted record.
  std::atomic<std::uint64_t> lowered_ = 0;
};

}  // namespace zeze::internal
