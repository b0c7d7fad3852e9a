// IndexMap: from a pair of 64-bit numbers to a 32-bit index. Grows, never shrinks, no erase.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace zeze::history::internal {

inline constexpr std::uint32_t kNone = UINT32_MAX;

class IndexMap {
 public:
  explicit IndexMap(std::size_t expected_count = 16)
      : slots_(std::bit_ceil(expected_count * 2 + 16)) {}

  // The index of the pair, which is `index` if it was not there before.
  std::uint32_t Insert(std::uint64_t first, std::uint64_t second, std::uint32_t index) {
    if (size_ * 2 >= slots_.size()) Grow();
    Slot& slot = slots_[Locate(first, second)];
    if (slot.index != kNone) return slot.index;
    slot = {first, second, index};
    ++size_;
    return index;
  }

  // kNone if it is not there.
  std::uint32_t Find(std::uint64_t first, std::uint64_t second) const {
    return slots_[Locate(first, second)].index;
  }

  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint32_t index = kNone;
  };

  std::size_t Locate(std::uint64_t first, std::uint64_t second) const {
    std::uint64_t hash = (first ^ std::rotl(second, 29)) * 0x9e3779b97f4a7c15 + second;
    hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
    hash ^= hash >> 32;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].index != kNone &&
           (slots_[at].first != first || slots_[at].second != second)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index != kNone) slots_[Locate(slot.first, slot.second)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace zeze::history::internal
