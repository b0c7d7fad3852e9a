// StableIterator: walks the elements that a container held when the iterator was made, and keeps
// them alive. Editing, assigning or destroying the container meanwhile changes nothing for it.

#pragma once

#include <cstddef>
#include <iterator>
#include <utility>

#include "zeze/bean/internal/hash_trie.h"
#include "zeze/bean/internal/sequence.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"

namespace zeze::internal {

// Walks the elements [first, last) of a sequence that the caller keeps alive.
class SequenceCursor {
 public:
  SequenceCursor() = default;
  SequenceCursor(const SequenceNode* root, std::size_t first, std::size_t last, std::size_t bytes)
      : root_(root), next_(first), last_(last), bytes_(bytes) {
    NextRun();
  }

  const std::byte* slot() const { return slot_; }  // Null at the end.
  void Next() {
    slot_ += bytes_;
    if (slot_ == end_) NextRun();
  }

 private:
  void NextRun() {
    slot_ = nullptr;
    end_ = nullptr;
    if (next_ >= last_) return;
    const SequenceRun run = SequenceRunAt(root_, next_, bytes_);
    const std::size_t count = run.count < last_ - next_ ? run.count : last_ - next_;
    slot_ = run.slots;
    end_ = slot_ + count * bytes_;
    next_ += count;
  }

  const std::byte* slot_ = nullptr;
  const std::byte* end_ = nullptr;
  const SequenceNode* root_ = nullptr;
  std::size_t next_ = 0;
  std::size_t last_ = 0;
  std::size_t bytes_ = 0;
};

template <typename T>
struct SequenceTraits {
  using Node = SequenceNode;
  using Cursor = SequenceCursor;

  static const SlotOps& Ops() {
    static constexpr SlotOps kOps = Slot<T>::Ops();
    return kOps;
  }
  static void Share(Node* root) noexcept { SequenceShare(root); }
  static void Release(Node* root) noexcept {
    if (root != nullptr) SequenceRelease(root, Ops());
  }
};

template <typename T>
struct HashTraits {
  using Node = HashNode;
  using Cursor = HashCursor;

  static const SlotOps& Ops() {
    static constexpr SlotOps kOps = Slot<T>::Ops();
    return kOps;
  }
  static void Share(Node* root) noexcept { HashShare(root); }
  static void Release(Node* root) noexcept {
    if (root != nullptr) HashRelease(root, Ops());
  }
};

// One counted reference to the root of a tree.
template <typename Traits>
class RootRef {
 public:
  using Node = typename Traits::Node;

  RootRef() noexcept = default;
  explicit RootRef(Node* root) noexcept : root_(root) { Traits::Share(root); }
  RootRef(const RootRef& other) noexcept : RootRef(other.root_) {}
  RootRef(RootRef&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  RootRef& operator=(RootRef other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~RootRef() { Traits::Release(root_); }

  const Node* get() const { return root_; }

 private:
  Node* root_ = nullptr;
};

template <typename T, typename Traits>
class StableIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = const T&;

  StableIterator() noexcept = default;  // The end of every container.
  StableIterator(typename Traits::Node* root, typename Traits::Cursor cursor) noexcept
      : root_(root), cursor_(cursor) {}

  reference operator*() const {
    CheckNotEnd();
    return Slot<T>::Read(cursor_.slot());
  }
  pointer operator->() const { return &**this; }

  StableIterator& operator++() {
    CheckNotEnd();
    cursor_.Next();
    return *this;
  }
  StableIterator operator++(int) {
    StableIterator before = *this;
    ++*this;
    return before;
  }

  friend bool operator==(const StableIterator& a, const StableIterator& b) {
    return a.cursor_.slot() == b.cursor_.slot();
  }

 private:
  void CheckNotEnd() const {
    if (cursor_.slot() == nullptr) [[unlikely]]
      ThrowEnd();
  }

  RootRef<Traits> root_;
  typename Traits::Cursor cursor_;
};

}  // namespace zeze::internal
