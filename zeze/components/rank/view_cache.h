// ViewCache: merged boards, kept for a while, each made by one caller at a time.
//
//   Result<std::shared_ptr<const View>> view = cache.Get(board, [&] { return Read(board); });

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/components/rank/rank_board.h"

namespace zeze {

struct ViewCacheOptions {
  // A view younger than this is given again. Zero: each call makes one.
  std::chrono::nanoseconds lifetime = std::chrono::minutes(5);
  // Boards beyond it push out the one that was read longest ago.
  std::size_t boards_max = 64;
  Clock* clock = &SystemClock();
};

// Guarantees:
//   - A board is made once for all who ask meanwhile. Those who find an old view get it rather than
//     wait, unless it is older than twice the lifetime.
//   - An error is given to those who waited for it and is not kept.
//
// Thread-safe.
template <typename View>
class ViewCache {
 public:
  using Pointer = std::shared_ptr<const View>;

  explicit ViewCache(ViewCacheOptions options) : options_(options) {}
  ViewCache(const ViewCache&) = delete;
  ViewCache& operator=(const ViewCache&) = delete;

  // make() returns a Result<Pointer>.
  template <typename Make>
  Result<Pointer> Get(const RankBoard& board, const Make& make) {
    const std::chrono::nanoseconds now = options_.clock->Now();
    Memo& memo = ThreadMemo();
    const std::uint64_t serial = serial_.load(std::memory_order_acquire);
    if (memo.serial == serial && memo.board == board && now - memo.made_at < options_.lifetime) {
      return memo.view;
    }
    std::chrono::nanoseconds made_at{};
    Result<Pointer> found = GetShared(board, now, made_at, make);
    if (found.ok()) {
      // With a count of its own, so that threads that read the same board do not write to the same
      // cache line.
      const Pointer& view = found.value();
      memo = {serial, board, made_at, Pointer(std::make_shared<Pointer>(view), view.get())};
    }
    return found;
  }

  // The next call makes the board again.
  void Forget(const RankBoard& board) {
    const MutexLock lock(mutex_);
    slots_.erase(board);
    serial_.store(NextSerial(), std::memory_order_release);
  }

 private:
  struct Slot {
    Pointer view;
    std::optional<Error> failure;  // Of the last making.
    std::chrono::nanoseconds made_at{};
    std::chrono::nanoseconds used_at{};
    std::uint64_t makings = 0;
    bool making = false;
  };

  // The board that a thread read last.
  struct Memo {
    std::uint64_t serial = 0;
    RankBoard board = {};
    std::chrono::nanoseconds made_at{};
    Pointer view = nullptr;
  };
  static Memo& ThreadMemo() {
    static thread_local Memo memo;
    return memo;
  }
  // Of all caches of the process: no memo of one is taken for another's.
  static std::uint64_t NextSerial() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
  }

  template <typename Make>
  Result<Pointer> GetShared(const RankBoard& board, std::chrono::nanoseconds now,
                            std::chrono::nanoseconds& made_at, const Make& make) {
    std::shared_ptr<Slot> slot;
    {
      const MutexLock lock(mutex_);
      const auto found = slots_.find(board);
      if (found != slots_.end()) {
        Slot& there = *found->second;
        there.used_at = now;
        made_at = there.made_at;
        if (there.view != nullptr && now - there.made_at < options_.lifetime) return there.view;
        slot = found->second;
      } else {
        slot = std::make_shared<Slot>();
        slot->used_at = now;
        slots_.emplace(board, slot);
        DropOldest();
      }
      if (slot->making) {
        Result<Pointer> awaited = Await(*slot, now);
        made_at = slot->made_at;
        return awaited;
      }
      slot->making = true;
    }
    made_at = now;
    try {
      Result<Pointer> made = make();  // Without the lock: this reads records.
      Finish(*slot, made, made_at);
      return made;
    } catch (...) {
      Finish(*slot, Error(ErrorCode::kUnavailable, "the board could not be merged"), made_at);
      throw;
    }
  }

  Result<Pointer> Await(Slot& slot, std::chrono::nanoseconds now) ZEZE_REQUIRES(mutex_) {
    if (slot.view != nullptr && now - slot.made_at < 2 * options_.lifetime) return slot.view;
    const std::uint64_t before = slot.makings;
    while (slot.makings == before) made_.Wait(mutex_);
    if (slot.failure) return *slot.failure;
    return slot.view;
  }

  void Finish(Slot& slot, const Result<Pointer>& made, std::chrono::nanoseconds begun_at) {
    const MutexLock lock(mutex_);
    slot.making = false;
    ++slot.makings;
    slot.failure.reset();
    if (made.ok()) {
      slot.view = made.value();
      slot.made_at = begun_at;
    } else {
      slot.failure = made.error();
    }
    made_.NotifyAll();
  }

  void DropOldest() ZEZE_REQUIRES(mutex_) {
    if (slots_.size() <= options_.boards_max) return;
    auto oldest = slots_.begin();
    for (auto i = slots_.begin(); i != slots_.end(); ++i) {
      if (i->second->used_at < oldest->second->used_at) oldest = i;
    }
    slots_.erase(oldest);  // Whoever makes it now holds its slot.
  }

  const ViewCacheOptions options_;
  // Changes when memos of threads must not be believed any more.
  std::atomic<std::uint64_t> serial_ = NextSerial();
  Mutex mutex_;
  CondVar made_;
  std::unordered_map<RankBoard, std::shared_ptr<Slot>> slots_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze
