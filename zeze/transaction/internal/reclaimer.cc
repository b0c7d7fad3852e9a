#include "zeze/transaction/internal/reclaimer.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "zeze/base/check.h"

namespace zeze::internal {

namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kSmallSlabBytes = std::size_t{128} << 10;  // At least a batch of blocks.
constexpr std::size_t kSmallSlabs = 16;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

BlockDepot::~BlockDepot() {
  for (const auto& [slab, alignment] : slabs_) ::operator delete(slab, alignment);
}

// The first slabs are small, for engines with little data. The others are huge pages: transactions
// jump between records all over the memory, and with small pages each jump also misses the TLB.
char* BlockDepot::Carve(std::size_t bytes) {
  bytes = (bytes + 63) & ~std::size_t{63};
  if (slab_left_ < bytes) {
    const bool huge = slabs_.size() >= kSmallSlabs;
    slab_left_ = huge ? kHugePageBytes : kSmallSlabBytes;
    const std::align_val_t alignment = huge ? std::align_val_t{kHugePageBytes} : kAlignment;
    slab_at_ = static_cast<char*>(::operator new(slab_left_, alignment));
    slabs_.emplace_back(slab_at_, alignment);
    if (huge) ::madvise(slab_at_, slab_left_, MADV_HUGEPAGE);
  }
  slab_left_ -= bytes;
  return std::exchange(slab_at_, slab_at_ + bytes);
}

#if defined(__SANITIZE_ADDRESS__)
const bool BlockDepot::kPools = false;
#else
const bool BlockDepot::kPools = true;
#endif

void* BlockDepot::AllocateAlone(std::size_t bytes) {
  return ::operator new(bytes, kAlignment);
}

void BlockDepot::FreeAlone(void* block) {
  ::operator delete(block, kAlignment);
}

void BlockDepot::Take(std::size_t size_class, std::vector<void*>& blocks) {
  const std::lock_guard lock(mutex_);
  auto& free = free_[size_class];
  if (free.empty()) {
    const std::size_t bytes = (size_class + 1) * kGranularity;
    char* slab = Carve(bytes * kBatch);
    for (std::size_t i = kBatch; i-- > 0;) blocks.push_back(slab + i * bytes);
    return;
  }
  const std::size_t count = std::min(kBatch, free.size());
  blocks.insert(blocks.end(), free.end() - static_cast<std::ptrdiff_t>(count), free.end());
  free.resize(free.size() - count);
}

void BlockDepot::Give(std::size_t size_class, std::vector<void*>& blocks) {
  const std::lock_guard lock(mutex_);
  auto& free = free_[size_class];
  free.insert(free.end(), blocks.end() - static_cast<std::ptrdiff_t>(kBatch), blocks.end());
  blocks.resize(blocks.size() - kBatch);
}

Reclaimer::~Reclaimer() {
  ZEZE_CHECK(Idle());
  for (Participant* p = first_.load(); p != nullptr; p = p->next_) p->DisposeAll();
}

std::size_t Reclaimer::RetiredCountApprox() const {
  std::size_t count = 0;
  for (const Participant* p = first_.load(); p != nullptr; p = p->next_) {
    count += p->retired_count_approx_.load(std::memory_order_relaxed);
  }
  return count;
}

bool Reclaimer::Idle() const {
  for (const Participant* p = first_.load(); p != nullptr; p = p->next_) {
    if (p->inside()) return false;
  }
  return true;
}

Participant::Participant(Reclaimer& reclaimer) : reclaimer_(reclaimer) {
  next_ = reclaimer.first_.load();
  while (!reclaimer.first_.compare_exchange_weak(next_, this)) {
  }
}

Participant::~Participant() {
  ZEZE_CHECK(retired_.empty());
}

void Participant::Extend() {
  upper_seen_ = reclaimer_.era();
  upper_.exchange(upper_seen_, std::memory_order_seq_cst);
}

void Participant::Scan() {
  // A read-modify-write orders the scan after the unlinking of everything retired (the other half
  // of Enter's and Extend's exchange).
  reclaimer_.era_.fetch_add(1, std::memory_order_seq_cst);
  intervals_.clear();
  for (const Participant* p = reclaimer_.first_.load(); p != nullptr; p = p->next_) {
    const std::uint64_t lower = p->lower_.load(std::memory_order_seq_cst);
    if (lower == kIdle) continue;
    intervals_.emplace_back(lower, std::max(lower, p->upper_.load(std::memory_order_seq_cst)));
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < retired_.size(); ++i) {
    const Retired retired = retired_[i];
    bool held = false;
    for (const auto& [lower, upper] : intervals_) {
      if (retired.birth <= upper && retired.retired >= lower) {
        held = true;
        break;
      }
    }
    if (held) {
      retired_[kept++] = retired;
    } else {
      retired.dispose(*this, retired.object);
    }
  }
  retired_.resize(kept);
  // Doubling keeps the cost per retirement constant while a blocked reader holds many.
  scan_at_ = std::max(kScanMin, 2 * kept);
  retired_count_approx_.store(kept, std::memory_order_relaxed);
}

void Participant::DisposeAll() {
  // Disposing may retire nothing: values and records own no other retired objects.
  for (const Retired& retired : retired_) retired.dispose(*this, retired.object);
  retired_.clear();
}

}  // namespace zeze::internal
