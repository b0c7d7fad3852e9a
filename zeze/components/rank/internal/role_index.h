// RoleIndex: where a role stands in a list of some thousand entries, at two bytes for each.
//
//   for (std::size_t i = index.Find(role, 0); i != RoleIndex::kNone; i = index.Find(role, i + 1)) {
//     if (list[i].role == role) return i;      // A candidate in 65,536 is another role.
//   }
//
// Sixteen bits of the hash of each role, in the order of the list. A look-up compares them all, a
// vector register at a time; an edit copies them all: both take tens of nanoseconds for a thousand
// entries, less than following the pointers of a tree.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace zeze::internal {

// Persistent: copying it costs one increment, and editing a copy leaves the original as it is.
// Thread-safety: as a plain value.
class RoleIndex {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  RoleIndex() noexcept = default;
  RoleIndex(const RoleIndex& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  RoleIndex(RoleIndex&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  RoleIndex& operator=(RoleIndex other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~RoleIndex();

  std::size_t size() const { return block_ == nullptr ? 0 : block_->size; }

  // The first place from `from` on where the role may stand.
  std::size_t Find(std::int64_t role, std::size_t from) const;

  // As the list: before `place`, which is at most size(); at `place`, below size(); and at `from`
  // followed by before `to`.
  void Insert(std::size_t place, std::int64_t role);
  void Erase(std::size_t place);
  void Move(std::size_t from, std::size_t to);
  void Clear() { *this = RoleIndex(); }

 private:
  using Mark = std::uint16_t;
  // Marks are compared in runs of this many; there is room for whole runs.
  static constexpr std::size_t kRun = 32;

  struct Block {
    std::atomic<std::uint32_t> refs;
    std::uint32_t size;
    std::uint32_t capacity;

    Mark* marks() { return reinterpret_cast<Mark*>(this + 1); }
    const Mark* marks() const { return reinterpret_cast<const Mark*>(this + 1); }
  };

  static Mark MarkOf(std::int64_t role);
  static Block* NewBlock(std::size_t size);
  // Makes the block one that nobody else sees, of this size and with the marks that it had.
  void Own(std::size_t size);

  Block* block_ = nullptr;
};

}  // namespace zeze::internal
