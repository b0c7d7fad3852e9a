// RankedBlock: entries in the order of their ranks, made once, shared by all lists that have it.
//
// One piece of memory, in the order in which a look-up goes through it: the count of owners, a mark
// of each role, the values at the fences between runs of sixteen entries, the entries. A search
// takes one run of the entries from memory; a million roles do not fit a cache, nor their pages the
// TLB, and waiting for memory is what an update mostly does.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "zeze/components/rank/internal/role_marks.h"

namespace zeze::internal {

// Entry: with `role` and `value`. Written by who made it, with Append, up to the capacity and
// finished with Finish; then by nobody.
template <typename Entry>
class alignas(64) RankedBlock {
 public:
  using Value = decltype(Entry::value);
  static constexpr std::uint32_t kRun = 16;

  static RankedBlock* New(std::size_t capacity) {
    void* room = ::operator new(BytesFor(capacity), std::align_val_t{alignof(RankedBlock)});
    return new (room) RankedBlock(capacity);
  }
  RankedBlock(const RankedBlock&) = delete;
  RankedBlock& operator=(const RankedBlock&) = delete;

  const RoleMark* marks() const { return reinterpret_cast<const RoleMark*>(this + 1); }
  // The value of the last entry of each full run.
  const Value* fences() const { return fences_; }
  const Entry* entries() const { return entries_; }

  void Append(const Entry* from, std::size_t count) {
    RoleMark* marks = Marks() + size_;
    for (std::size_t i = 0; i < count; ++i) marks[i] = RoleMarkOf(from[i].role);
    AppendEntries(from, count);
  }
  void Append(const RankedBlock& other, std::size_t first, std::size_t count) {
    std::memcpy(Marks() + size_, other.marks() + first, count * sizeof(RoleMark));
    AppendEntries(other.entries_ + first, count);
  }
  void Finish() {
    std::fill(Marks() + size_, Marks() + MarksFor(capacity_), RoleMark{0});
    for (std::size_t i = kRun; i <= size_; i += kRun) {
      std::construct_at(fences_ + fence_count_, entries_[i - 1].value);
      ++fence_count_;
    }
  }

  void Share() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::destroy_n(fences_, fence_count_);
    std::destroy_n(entries_, size_);
    this->~RankedBlock();
    ::operator delete(this, std::align_val_t{alignof(RankedBlock)});
  }

 private:
  explicit RankedBlock(std::size_t capacity) : capacity_(capacity) {
    char* behind = reinterpret_cast<char*>(this + 1) + MarksFor(capacity) * sizeof(RoleMark);
    fences_ = reinterpret_cast<Value*>(behind);
    entries_ = reinterpret_cast<Entry*>(behind + FenceBytesFor(capacity));
  }
  ~RankedBlock() = default;

  static_assert(alignof(Entry) <= 64 && alignof(Value) <= 64);
  static constexpr std::size_t WholeLines(std::size_t bytes) {
    return (bytes + 63) & ~std::size_t{63};
  }
  static constexpr std::size_t MarksFor(std::size_t capacity) {
    return (capacity + kMarkRun - 1) / kMarkRun * kMarkRun;
  }
  static constexpr std::size_t FenceBytesFor(std::size_t capacity) {
    return WholeLines(capacity / kRun * sizeof(Value));
  }
  static constexpr std::size_t BytesFor(std::size_t capacity) {
    return sizeof(RankedBlock) + MarksFor(capacity) * sizeof(RoleMark) + FenceBytesFor(capacity) +
           capacity * sizeof(Entry);
  }

  RoleMark* Marks() { return reinterpret_cast<RoleMark*>(this + 1); }
  void AppendEntries(const Entry* from, std::size_t count) {
    if constexpr (std::is_trivially_copyable_v<Entry>) {
      std::memcpy(static_cast<void*>(entries_ + size_), from, count * sizeof(Entry));
    } else {
      std::uninitialized_copy_n(from, count, entries_ + size_);
    }
    size_ += count;
  }

  std::atomic<std::uint64_t> owners_ = 1;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::size_t fence_count_ = 0;
  Value* fences_;
  Entry* entries_;
};

// One of the owners of a block, or of none.
template <typename Entry>
class RankedBlockPointer {
 public:
  RankedBlockPointer() noexcept = default;
  explicit RankedBlockPointer(RankedBlock<Entry>* made) : block_(made) {}
  RankedBlockPointer(const RankedBlockPointer& other) : block_(other.block_) {
    if (block_ != nullptr) block_->Share();
  }
  RankedBlockPointer(RankedBlockPointer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)) {}
  RankedBlockPointer& operator=(RankedBlockPointer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~RankedBlockPointer() {
    if (block_ != nullptr) block_->Release();
  }

  RankedBlock<Entry>* get() const { return block_; }
  RankedBlock<Entry>* operator->() const { return block_; }
  RankedBlock<Entry>& operator*() const { return *block_; }

 private:
  RankedBlock<Entry>* block_ = nullptr;
};

}  // namespace zeze::internal
