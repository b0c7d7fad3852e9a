// TimerWheel: values that are due at ticks of a clock, as many as there are.
//
//   TimerWheel<Alarm> wheel(now_ms);
//   wheel.Add(now_ms + 5000, alarm);
//   wheel.Advance(later_ms, [](Alarm&& alarm, std::uint64_t due) { alarm.Ring(); });
//
// Eight wheels of 256 slots, each turning 256 times slower than the one before; what is due soon is
// in the first, and what is not moves down as its time comes. A slot is an array: 1,000,000 timers
// are read in order, where a heap or a linked list waits for memory at each. Nothing is cancelled:
// whoever is called knows what does not count any more, and EraseIf takes out what became too much.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace zeze {

// Not thread-safe. Small values that can be copied are best: they are moved a few times.
template <typename T>
class TimerWheel {
 public:
  using Tick = std::uint64_t;

  explicit TimerWheel(Tick now) : now_(now) {}

  std::size_t size() const { return size_; }

  // What is due already falls due with the next tick.
  void Add(Tick deadline, T value) {
    const Tick next = now_ + 1;
    ++size_;
    Place({.deadline = std::max(deadline, next), .value = std::move(value)}, next);
  }

  // Calls fire(T&&, deadline) for everything that is due until `now`, tick by tick. The callback
  // may add.
  template <typename Fire>
  void Advance(Tick now, Fire&& fire) {
    while (now_ < now) {
      const std::optional<Tick> work = NextWork(now_ + 1);
      if (!work.has_value() || *work > now) {
        now_ = now;
        return;
      }
      now_ = *work - 1;
      MoveDown(*work);
      now_ = *work;
      FireSlot(*work, fire);
    }
  }

  // Nothing is due before. None: nothing is here.
  std::optional<Tick> NextWake() const { return NextWork(now_ + 1); }

  // Takes out everything for which unwanted(const T&) is true; not inside of Advance.
  template <typename Unwanted>
  void EraseIf(Unwanted&& unwanted) {
    for (Level& level : levels_) {
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        std::vector<Entry>& entries = level.slots[slot];
        size_ -= std::erase_if(entries, [&](const Entry& entry) { return unwanted(entry.value); });
        if (entries.empty()) level.SetEmpty(slot);
        KeepSmall(entries);
      }
    }
  }

 private:
  static constexpr int kBits = 8;
  static constexpr std::size_t kSlots = 1 << kBits;
  static constexpr int kLevels = 64 / kBits;

  struct Entry {
    Tick deadline;
    T value;
  };

  struct Level {
    std::array<std::vector<Entry>, kSlots> slots;
    std::array<std::uint64_t, kSlots / 64> filled = {};

    void SetFilled(std::size_t slot) { filled[slot / 64] |= std::uint64_t{1} << slot % 64; }
    void SetEmpty(std::size_t slot) { filled[slot / 64] &= ~(std::uint64_t{1} << slot % 64); }
    bool IsFilled(std::size_t slot) const { return (filled[slot / 64] >> slot % 64 & 1) != 0; }
    std::optional<std::size_t> NextFilled(std::size_t from) const {
      for (std::size_t word = from / 64; word < filled.size(); ++word) {
        std::uint64_t bits = filled[word];
        if (word == from / 64) bits = bits >> from % 64 << from % 64;
        if (bits != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      }
      return std::nullopt;
    }
  };

  static std::size_t SlotOf(Tick tick, int level) {
    return static_cast<std::size_t>(tick >> level * kBits) % kSlots;
  }

  static Tick LowDigits(int level) { return (Tick{1} << level * kBits) - 1; }

  Level& LevelAt(int level) { return levels_[static_cast<std::size_t>(level)]; }
  const Level& LevelAt(int level) const { return levels_[static_cast<std::size_t>(level)]; }

  // The level is that of the highest digit in which the deadline differs from `base`, the tick that
  // comes next.
  void Place(Entry entry, Tick base) {
    const Tick difference = entry.deadline ^ base;
    const int level = difference == 0 ? 0 : (63 - std::countl_zero(difference)) / kBits;
    const std::size_t slot = SlotOf(entry.deadline, level);
    LevelAt(level).slots[slot].push_back(std::move(entry));
    LevelAt(level).SetFilled(slot);
  }

  // The first tick from `from` on at which a slot falls due or moves down.
  std::optional<Tick> NextWork(Tick from) const {
    // What moves down now may be due before anything that is in the first wheel already.
    for (int level = 1; level < kLevels && (from & LowDigits(level)) == 0; ++level) {
      if (LevelAt(level).IsFilled(SlotOf(from, level))) return from;
    }
    for (int level = 0; level < kLevels; ++level) {
      // Slots that have begun before `from` have moved down.
      const std::size_t first = SlotOf(from, level) + (level == 0 ? 0 : 1);
      if (first == kSlots) continue;
      const std::optional<std::size_t> slot = LevelAt(level).NextFilled(first);
      if (!slot.has_value()) continue;
      const Tick above = level + 1 == kLevels ? 0 : from & ~LowDigits(level + 1);
      return above | Tick{*slot} << level * kBits;
    }
    return std::nullopt;
  }

  void MoveDown(Tick tick) {
    for (int level = kLevels - 1; level > 0; --level) {
      if ((tick & LowDigits(level)) != 0) continue;
      const std::size_t slot = SlotOf(tick, level);
      if (!LevelAt(level).IsFilled(slot)) continue;
      moving_.swap(LevelAt(level).slots[slot]);
      LevelAt(level).SetEmpty(slot);
      for (Entry& entry : moving_) Place(std::move(entry), tick);
      moving_.clear();
      KeepSmall(moving_);
    }
  }

  template <typename Fire>
  void FireSlot(Tick tick, Fire& fire) {
    const std::size_t slot = SlotOf(tick, 0);
    std::vector<Entry> due;
    due.swap(spare_);
    due.swap(LevelAt(0).slots[slot]);  // The callback may add to it, for its next turn.
    LevelAt(0).SetEmpty(slot);
    size_ -= due.size();
    for (Entry& entry : due) fire(std::move(entry.value), entry.deadline);
    due.clear();
    KeepSmall(due);
    spare_.swap(due);
  }

  // The memory of a rare crowd is not kept for ever.
  static void KeepSmall(std::vector<Entry>& entries) {
    constexpr std::size_t kKeep = 4096;
    if (entries.empty() && entries.capacity() > kKeep) std::vector<Entry>().swap(entries);
  }

  Tick now_;  // Everything until here has been fired.
  std::size_t size_ = 0;
  std::array<Level, kLevels> levels_;
  std::vector<Entry> moving_;
  std::vector<Entry> spare_;
};

}  // namespace zeze
