// Sequence: the tree behind List and SortedMap, one pointer to reference-counted nodes, null when
// empty. Elements lie in leaves; inner nodes know how many elements each child holds, so access,
// insertion and removal by position cost O(log n).
//
// Type-erased: the elements' type enters through a SlotOps only. Every function that changes a
// sequence edits nodes in place that this sequence alone owns and copies the others (path copying),
// so that whoever shares them sees nothing of it.

#pragma once

#include <cstddef>
#include <cstdint>

#include "zeze/bean/internal/slot.h"

namespace zeze::internal {

constexpr std::uint32_t kSequenceFanOut = 16;

struct SequenceNode {
  RefCount refs{1};
  std::uint32_t size = 0;      // Elements in this node and below.
  std::uint16_t count = 0;     // Slots in use (leaf) or children (inner node).
  std::uint16_t capacity = 0;  // Leaf only.
  std::uint8_t level = 0;      // 0: leaf.
};

constexpr std::size_t kSequenceHeaderBytes = 16;
static_assert(sizeof(SequenceNode) == kSequenceHeaderBytes);

struct SequenceInner : SequenceNode {
  SequenceNode* children[kSequenceFanOut];
  std::uint32_t ends[kSequenceFanOut];  // ends[i]: elements in children 0..i.
};

inline std::byte* LeafSlots(SequenceNode* leaf) {
  return reinterpret_cast<std::byte*>(leaf) + kSequenceHeaderBytes;
}
inline const std::byte* LeafSlots(const SequenceNode* leaf) {
  return reinterpret_cast<const std::byte*>(leaf) + kSequenceHeaderBytes;
}

// Part of a leaf: slots that lie one after the other in memory.
struct SequenceRun {
  const std::byte* slots = nullptr;
  std::uint32_t count = 0;
};

// Which child holds the element at `index`; index becomes relative to that child.
inline std::uint32_t FindChild(const SequenceInner* inner, std::size_t& index) {
  std::uint32_t child = 0;
  while (index >= inner->ends[child]) ++child;
  if (child > 0) index -= inner->ends[child - 1];
  return child;
}

// The leaf that holds the element at `index` (which must exist); index becomes relative to it.
inline const SequenceNode* FindLeaf(const SequenceNode* node, std::size_t& index) {
  while (node->level != 0) {
    const auto* inner = static_cast<const SequenceInner*>(node);
    node = inner->children[FindChild(inner, index)];
  }
  return node;
}

inline const void* SequenceAt(const SequenceNode* root, std::size_t index, std::size_t bytes) {
  const SequenceNode* leaf = FindLeaf(root, index);
  return LeafSlots(leaf) + index * bytes;
}

// The elements from `index` (which must exist) to the end of its leaf.
SequenceRun SequenceRunAt(const SequenceNode* root, std::size_t index, std::size_t bytes);

// The elements from the start of the leaf of `index` up to and including `index`.
SequenceRun SequenceRunUpTo(const SequenceNode* root, std::size_t index);

// In a sequence sorted by key: how many elements come before `key`. less(slot, key) says whether
// the element's key is less than the key.
using SequenceLess = bool (*)(const void* slot, const void* key);
std::size_t SequenceLowerBound(const SequenceNode* root, std::size_t bytes, const void* key,
                               SequenceLess less);

inline void SequenceShare(SequenceNode* root) noexcept {
  if (root != nullptr) AddRef(root->refs);
}

void SequenceRelease(SequenceNode* root, const SlotOps& ops) noexcept;

// The slot at `index` (which must exist), in nodes that this sequence owns alone.
void* SequenceMutable(SequenceNode*& root, std::size_t index, const SlotOps& ops);

// Makes room before `index` (<= size) and returns the raw slot, which counts as an element already:
// construct it before anything else.
void* SequenceInsert(SequenceNode*& root, std::size_t index, const SlotOps& ops);

void SequenceErase(SequenceNode*& root, std::size_t index, const SlotOps& ops);

// For tests: whether counts, levels and fill of the nodes are as they must be.
bool SequenceIsValid(const SequenceNode* root, const SlotOps& ops);

}  // namespace zeze::internal
