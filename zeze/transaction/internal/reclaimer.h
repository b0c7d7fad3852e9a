// Reclaimer: frees what lock-free readers may still be looking at, once they cannot any more.
//
// Interval-based: every object carries the era in which it was born; a participant that reads
// publishes the interval of eras its reads fall into; an object is freed once its life (birth to
// retirement) meets no published interval. Unlike plain epochs, a reader that stays blocked for ten
// seconds keeps only what was alive in its own interval, not everything retired since.
//
//   participant.Enter();
//   Value* v = participant.Protect(record.value);   // Stays valid until Leave().
//   participant.Leave();

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace zeze::internal {

class Participant;

// Memory of values and records: size classes with a free list per participant, so that a steady
// state of commits allocates nothing. Blocks travel between participants in batches through the
// depot; memory once taken is kept for reuse.
class BlockDepot {
 public:
  static constexpr std::size_t kGranularity = 32;
  static constexpr std::size_t kClassCount = 64;
  static constexpr std::size_t kBlockBytesMax = kGranularity * kClassCount;
  static constexpr std::size_t kBatch = 32;

  BlockDepot() = default;
  ~BlockDepot();
  BlockDepot(const BlockDepot&) = delete;
  BlockDepot& operator=(const BlockDepot&) = delete;

  // Large blocks are allocated one by one; under AddressSanitizer all, so that it sees each life of
  // a block.
  static bool Pools(std::size_t bytes) { return bytes <= kBlockBytesMax && kPools; }
  static constexpr std::size_t ClassOf(std::size_t bytes) {
    return (bytes + kGranularity - 1) / kGranularity - 1;
  }
  static void* AllocateAlone(std::size_t bytes);
  static void FreeAlone(void* block);

  // Appends a batch of free blocks of the class.
  void Take(std::size_t size_class, std::vector<void*>& blocks);
  // Takes back the last kBatch blocks.
  void Give(std::size_t size_class, std::vector<void*>& blocks);

 private:
  // As the library was built: the program may be built otherwise, and both free what the other has
  // allocated.
  static const bool kPools;

  // New memory for a batch of blocks. The mutex is held.
  char* Carve(std::size_t bytes);

  std::mutex mutex_;
  std::array<std::vector<void*>, kClassCount> free_;
  std::vector<std::pair<void*, std::align_val_t>> slabs_;
  char* slab_at_ = nullptr;
  std::size_t slab_left_ = 0;
};

// Destroys the object and returns its memory to the participant's pool.
using Disposer = void (*)(Participant& by, void* object);

class Reclaimer {
 public:
  Reclaimer() = default;
  // No participant may be inside any more; frees everything that was retired.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  std::uint64_t era() const { return era_.load(std::memory_order_acquire); }

  // Retired and not yet freed, summed over all participants.
  std::size_t RetiredCountApprox() const;

  // True when no participant is inside.
  bool Idle() const;

 private:
  friend class Participant;

  std::atomic<std::uint64_t> era_ = 1;
  std::atomic<Participant*> first_ = nullptr;
  BlockDepot depot_;
};

// One reader and writer at a time: owned by whoever runs a transaction. Registered for the life of
// the reclaimer; to be reused, not destroyed before it.
class alignas(64) Participant {
 public:
  explicit Participant(Reclaimer& reclaimer);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  void Enter() {
    upper_seen_ = reclaimer_.era();
    upper_.store(upper_seen_, std::memory_order_relaxed);
    // Sequentially consistent: the reservation is visible before any protected pointer is read.
    lower_.exchange(upper_seen_, std::memory_order_seq_cst);
  }
  void Leave() { lower_.store(kIdle, std::memory_order_release); }
  bool inside() const { return lower_.load(std::memory_order_seq_cst) != kIdle; }

  // The pointer read from `source`, safe to use until Leave().
  template <typename T>
  T Protect(const std::atomic<T>& source) {
    T value = source.load(std::memory_order_acquire);
    while (reclaimer_.era() != upper_seen_) [[unlikely]] {
      Extend();
      value = source.load(std::memory_order_acquire);
    }
    return value;
  }

  // Frees `object` when no participant can hold it. It must be unreachable for new readers.
  void Retire(void* object, std::uint64_t birth_era, Disposer dispose) {
    retired_.push_back({object, birth_era, reclaimer_.era(), dispose});
    if (retired_.size() >= scan_at_) [[unlikely]]
      Scan();
    if (++retire_count_ % kRetiresPerEra == 0) {
      reclaimer_.era_.fetch_add(1, std::memory_order_acq_rel);
    }
  }

  // Raw memory from the pool. `bytes` must be the same in Free.
  void* Allocate(std::size_t bytes) {
    if (!BlockDepot::Pools(bytes)) [[unlikely]]
      return BlockDepot::AllocateAlone(bytes);
    const std::size_t size_class = BlockDepot::ClassOf(bytes);
    std::vector<void*>& free = free_[size_class];
    if (free.empty()) [[unlikely]]
      reclaimer_.depot_.Take(size_class, free);
    void* block = free.back();
    free.pop_back();
    return block;
  }
  void Free(void* block, std::size_t bytes) {
    if (!BlockDepot::Pools(bytes)) [[unlikely]]
      return BlockDepot::FreeAlone(block);
    const std::size_t size_class = BlockDepot::ClassOf(bytes);
    std::vector<void*>& free = free_[size_class];
    free.push_back(block);
    if (free.size() >= kFreeBlocksMax + BlockDepot::kBatch) [[unlikely]]
      reclaimer_.depot_.Give(size_class, free);
  }

  std::uint64_t era() const { return reclaimer_.era(); }

  // The newest era of which this participant keeps what lives: what it makes and goes on using
  // itself is born then, for era() may be newer.
  std::uint64_t kept_era() const { return upper_seen_; }

  // Frees what can be freed now.
  void Scan();

 private:
  friend class Reclaimer;

  struct Retired {
    void* object;
    std::uint64_t birth;
    std::uint64_t retired;
    Disposer dispose;
  };

  static constexpr std::uint64_t kIdle = ~std::uint64_t{0};
  static constexpr std::uint64_t kRetiresPerEra = 64;
  static constexpr std::size_t kScanMin = 128;
  static constexpr std::size_t kFreeBlocksMax = 256;

  void Extend();
  void DisposeAll();

  // Read by every scan; the rest is private to the owner.
  std::atomic<std::uint64_t> lower_ = kIdle;
  std::atomic<std::uint64_t> upper_ = 0;
  std::atomic<std::size_t> retired_count_approx_ = 0;
  Participant* next_ = nullptr;

  alignas(64) Reclaimer& reclaimer_;
  std::uint64_t upper_seen_ = 0;
  std::uint64_t retire_count_ = 0;
  std::size_t scan_at_ = kScanMin;
  std::vector<Retired> retired_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> intervals_;
  std::array<std::vector<void*>, BlockDepot::kClassCount> free_;
};

}  // namespace zeze::internal
