#include "zeze/components/rank/internal/role_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace zeze::internal {

RoleIndex::Mark RoleIndex::MarkOf(std::int64_t role) {
  return static_cast<Mark>((static_cast<std::uint64_t>(role) * 0x9E3779B97F4A7C15U) >> 48);
}

RoleIndex::~RoleIndex() {
  if (block_ == nullptr) return;
  // The load first spares the only owner an atomic read-modify-write.
  if (block_->refs.load(std::memory_order_acquire) != 1 &&
      block_->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  ::operator delete(block_);
}

RoleIndex::Block* RoleIndex::NewBlock(std::size_t size) {
  const std::size_t capacity = (size + kRun) / kRun * kRun;  // One free at least: lists grow.
  void* memory = ::operator new(sizeof(Block) + capacity * sizeof(Mark));
  auto* block = ::new (memory) Block;
  block->refs.store(1, std::memory_order_relaxed);
  block->size = static_cast<std::uint32_t>(size);
  block->capacity = static_cast<std::uint32_t>(capacity);
  std::fill(block->marks() + size, block->marks() + capacity, Mark{0});
  return block;
}

std::size_t RoleIndex::Find(std::int64_t role, std::size_t from) const {
  const std::size_t size = this->size();
  if (from >= size) return kNone;
  const Mark* marks = block_->marks();
  const Mark wanted = MarkOf(role);
  for (; from % kRun != 0 && from < size; ++from) {
    if (marks[from] == wanted) return from;
  }
  for (; from < size; from += kRun) {
    const Mark* run = marks + from;
    Mark equal = 0;
    for (std::size_t i = 0; i < kRun; ++i) equal |= static_cast<Mark>(run[i] == wanted ? 1 : 0);
    if (equal == 0) continue;
    const auto at = static_cast<std::size_t>(std::find(run, run + kRun, wanted) - marks);
    return at < size ? at : kNone;  // Behind the last there is nothing but room.
  }
  return kNone;
}

void RoleIndex::Own(std::size_t size) {
  const bool unique = block_ != nullptr && block_->refs.load(std::memory_order_acquire) == 1;
  if (unique && size <= block_->capacity) {
    block_->size = static_cast<std::uint32_t>(size);
    return;
  }
  RoleIndex fresh;
  fresh.block_ = NewBlock(size);
  if (block_ != nullptr) {
    std::memcpy(fresh.block_->marks(), block_->marks(),
                std::min(size, this->size()) * sizeof(Mark));
  }
  std::swap(block_, fresh.block_);
}

void RoleIndex::Insert(std::size_t place, std::int64_t role) {
  const std::size_t before = size();
  Own(before + 1);
  Mark* marks = block_->marks();
  std::memmove(marks + place + 1, marks + place, (before - place) * sizeof(Mark));
  marks[place] = MarkOf(role);
}

void RoleIndex::Erase(std::size_t place) {
  const std::size_t before = size();
  Own(before);
  Mark* marks = block_->marks();
  std::memmove(marks + place, marks + place + 1, (before - place - 1) * sizeof(Mark));
  block_->size = static_cast<std::uint32_t>(before - 1);
}

void RoleIndex::Move(std::size_t from, std::size_t to) {
  Own(size());
  Mark* marks = block_->marks();
  const Mark moved = marks[from];
  if (from < to) {
    std::memmove(marks + from, marks + from + 1, (to - from) * sizeof(Mark));
  } else {
    std::memmove(marks + to + 1, marks + to, (from - to) * sizeof(Mark));
  }
  marks[to] = moved;
}

}  // namespace zeze::internal
