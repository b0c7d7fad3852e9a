#include "zeze/bean/internal/sequence.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "zeze/base/usage_error.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"

namespace zeze::internal {

namespace {

SequenceNode* NewLeaf(const SlotOps& ops, std::size_t capacity) {
  void* memory = ::operator new(kSequenceHeaderBytes + capacity * ops.bytes);
  auto* leaf = ::new (memory) SequenceNode;
  leaf->capacity = static_cast<std::uint16_t>(capacity);
  return leaf;
}

SequenceInner* NewInner(std::uint8_t level) {
  auto* inner = ::new (::operator new(sizeof(SequenceInner))) SequenceInner;
  inner->level = level;
  return inner;
}

// Only the memory: the elements or children have moved elsewhere.
void FreeNode(SequenceNode* node) noexcept {
  ::operator delete(node);
}

SequenceInner* AsInner(SequenceNode* node) {
  return static_cast<SequenceInner*>(node);
}

void SetLeafCount(SequenceNode* leaf, std::size_t count) {
  leaf->count = static_cast<std::uint16_t>(count);
  leaf->size = static_cast<std::uint32_t>(count);
}

// Small lists stay small in memory, growing ones double.
std::size_t GrownCapacity(const SlotOps& ops, std::size_t count) {
  const std::size_t at_least = std::max<std::size_t>(1, 32 / ops.bytes);
  return std::min<std::size_t>(ops.leaf_capacity, std::bit_ceil(std::max(count, at_least)));
}

void* SlotAt(const SlotOps& ops, SequenceNode* leaf, std::size_t index) {
  return LeafSlots(leaf) + index * ops.bytes;
}

// Recomputes counts from `first` on; the children know their sizes.
void RefreshEnds(SequenceInner* inner, std::uint32_t first) {
  std::uint32_t end = first == 0 ? 0 : inner->ends[first - 1];
  for (std::uint32_t i = first; i < inner->count; ++i) {
    end += inner->children[i]->size;
    inner->ends[i] = end;
  }
  inner->size = end;
}

SequenceNode* CopyNode(const SequenceNode* node, const SlotOps& ops) {
  if (node->level == 0) {
    SequenceNode* leaf = NewLeaf(ops, node->count);
    CopySlots(ops, LeafSlots(leaf), LeafSlots(node), node->count);
    SetLeafCount(leaf, node->count);
    return leaf;
  }
  const auto* from = static_cast<const SequenceInner*>(node);
  SequenceInner* inner = NewInner(from->level);
  inner->size = from->size;
  inner->count = from->count;
  std::copy_n(from->children, from->count, inner->children);
  std::copy_n(from->ends, from->count, inner->ends);
  for (std::uint32_t i = 0; i < inner->count; ++i) AddRef(inner->children[i]->refs);
  return inner;
}

// Makes the node behind `link` one that nobody else sees. `link` itself must lie in such a node.
SequenceNode* Own(SequenceNode*& link, const SlotOps& ops) {
  if (!IsUnique(link->refs)) {
    SequenceNode* copy = CopyNode(link, ops);
    SequenceRelease(link, ops);
    link = copy;
  }
  return link;
}

// Slots [first, first + count) of a leaf into raw memory of another; the source keeps them when it
// is shared.
void TakeSlots(const SlotOps& ops, bool unique, SequenceNode* from, std::size_t first,
               std::size_t count, void* to) {
  if (unique) {
    RelocateSlots(ops, to, SlotAt(ops, from, first), count);
  } else {
    CopySlots(ops, to, SlotAt(ops, from, first), count);
  }
}

void DropTaken(const SlotOps& ops, bool unique, SequenceNode* leaf) {
  if (unique) {
    FreeNode(leaf);
  } else {
    SequenceRelease(leaf, ops);
  }
}

struct Inserted {
  void* slot;
  SequenceNode* right;  // The node that split off to the right, or null.
};

Inserted SplitLeaf(SequenceNode*& link, std::size_t index, const SlotOps& ops) {
  SequenceNode* leaf = link;
  const std::size_t count = leaf->count;
  if (index == count) {  // Appending: full leaves stay full.
    SequenceNode* right = NewLeaf(ops, GrownCapacity(ops, 1));
    SetLeafCount(right, 1);
    return {LeafSlots(right), right};
  }
  const bool unique = IsUnique(leaf->refs);
  const std::size_t middle = count / 2;
  SequenceNode* right = NewLeaf(ops, ops.leaf_capacity);
  SequenceNode* left = unique ? leaf : NewLeaf(ops, ops.leaf_capacity);
  TakeSlots(ops, unique, leaf, middle, count - middle, LeafSlots(right));
  SetLeafCount(right, count - middle);
  if (!unique) {
    CopySlots(ops, LeafSlots(left), LeafSlots(leaf), middle);
    SequenceRelease(leaf, ops);
    link = left;
  }
  SetLeafCount(left, middle);
  SequenceNode* target = index <= middle ? left : right;
  const std::size_t position = index <= middle ? index : index - middle;
  RelocateSlots(ops, SlotAt(ops, target, position + 1), SlotAt(ops, target, position),
                target->count - position);
  SetLeafCount(target, target->count + 1U);
  return {SlotAt(ops, target, position), right};
}

Inserted InsertIntoLeaf(SequenceNode*& link, std::size_t index, const SlotOps& ops) {
  SequenceNode* leaf = link;
  const std::size_t count = leaf->count;
  if (count == ops.leaf_capacity) return SplitLeaf(link, index, ops);
  const bool unique = IsUnique(leaf->refs);
  if (unique && count < leaf->capacity) {
    RelocateSlots(ops, SlotAt(ops, leaf, index + 1), SlotAt(ops, leaf, index), count - index);
  } else {
    SequenceNode* grown = NewLeaf(ops, GrownCapacity(ops, count + 1));
    TakeSlots(ops, unique, leaf, 0, index, LeafSlots(grown));
    TakeSlots(ops, unique, leaf, index, count - index, SlotAt(ops, grown, index + 1));
    DropTaken(ops, unique, leaf);
    link = grown;
    leaf = grown;
  }
  SetLeafCount(leaf, count + 1);
  return {SlotAt(ops, leaf, index), nullptr};
}

void InsertChild(SequenceInner* inner, std::uint32_t position, SequenceNode* child) {
  std::copy_backward(inner->children + position, inner->children + inner->count,
                     inner->children + inner->count + 1);
  inner->children[position] = child;
  ++inner->count;
}

// Room for one more child at `position`: in `inner`, or in a new right neighbour (returned).
SequenceInner* InsertChildOrSplit(SequenceInner* inner, std::uint32_t position,
                                  SequenceNode* child) {
  if (inner->count < kSequenceFanOut) {
    InsertChild(inner, position, child);
    return nullptr;
  }
  SequenceInner* right = NewInner(inner->level);
  const std::uint32_t middle = position == inner->count ? inner->count : inner->count / 2U;
  right->count = static_cast<std::uint16_t>(inner->count - middle);
  std::copy_n(inner->children + middle, right->count, right->children);
  inner->count = static_cast<std::uint16_t>(middle);
  if (position > middle || right->count == 0) {
    InsertChild(right, position - middle, child);
  } else {
    InsertChild(inner, position, child);
  }
  RefreshEnds(right, 0);
  return right;
}

Inserted InsertBelow(SequenceNode*& link, std::size_t index, const SlotOps& ops) {
  if (link->level == 0) return InsertIntoLeaf(link, index, ops);
  SequenceInner* inner = AsInner(Own(link, ops));
  std::uint32_t child = 0;
  if (index == inner->size) {
    child = inner->count - 1U;
    if (child > 0) index -= inner->ends[child - 1];
  } else {
    child = FindChild(inner, index);
  }
  Inserted inserted = InsertBelow(inner->children[child], index, ops);
  if (inserted.right != nullptr) {
    inserted.right = InsertChildOrSplit(inner, child + 1, inserted.right);
    RefreshEnds(inner, std::min<std::uint32_t>(child, inner->count - 1U));
  } else {
    for (std::uint32_t i = child; i < inner->count; ++i) ++inner->ends[i];
    ++inner->size;
  }
  return inserted;
}

void EraseFromLeaf(SequenceNode*& link, std::size_t index, const SlotOps& ops) {
  SequenceNode* leaf = link;
  const std::size_t count = leaf->count;
  const std::size_t behind = count - index - 1;
  if (IsUnique(leaf->refs)) {
    DestroySlots(ops, SlotAt(ops, leaf, index), 1);
    RelocateSlots(ops, SlotAt(ops, leaf, index), SlotAt(ops, leaf, index + 1), behind);
  } else {
    SequenceNode* copy = NewLeaf(ops, std::max<std::size_t>(1, count - 1));
    CopySlots(ops, LeafSlots(copy), LeafSlots(leaf), index);
    CopySlots(ops, SlotAt(ops, copy, index), SlotAt(ops, leaf, index + 1), behind);
    SequenceRelease(leaf, ops);
    link = copy;
    leaf = copy;
  }
  SetLeafCount(leaf, count - 1);
}

void RemoveChild(SequenceInner* inner, std::uint32_t position) {
  std::copy(inner->children + position + 1, inner->children + inner->count,
            inner->children + position);
  --inner->count;
}

std::size_t CapacityOf(const SequenceNode* node, const SlotOps& ops) {
  return node->level == 0 ? ops.leaf_capacity : kSequenceFanOut;
}

// Joins children `left` and `left` + 1 into one when that fills it by no more than three quarters,
// so that the next insertion does not split it again at once.
bool MergeChildren(SequenceInner* inner, std::uint32_t left, const SlotOps& ops) {
  SequenceNode* a = inner->children[left];
  SequenceNode* b = inner->children[left + 1];
  const std::size_t joined = std::size_t{a->count} + b->count;
  if (joined * 4 > CapacityOf(a, ops) * 3) return false;
  if (a->level == 0) {
    const bool a_unique = IsUnique(a->refs);
    const bool b_unique = IsUnique(b->refs);
    SequenceNode* leaf = NewLeaf(ops, GrownCapacity(ops, joined));
    TakeSlots(ops, a_unique, a, 0, a->count, LeafSlots(leaf));
    TakeSlots(ops, b_unique, b, 0, b->count, SlotAt(ops, leaf, a->count));
    SetLeafCount(leaf, joined);
    DropTaken(ops, a_unique, a);
    DropTaken(ops, b_unique, b);
    inner->children[left] = leaf;
  } else {
    SequenceInner* to = AsInner(Own(inner->children[left], ops));
    SequenceInner* from = AsInner(Own(inner->children[left + 1], ops));
    std::copy_n(from->children, from->count, to->children + to->count);
    to->count = static_cast<std::uint16_t>(joined);
    RefreshEnds(to, 0);
    FreeNode(from);
  }
  RemoveChild(inner, left + 1);
  return true;
}

void EraseBelow(SequenceNode*& link, std::size_t index, const SlotOps& ops) {
  if (link->level == 0) {
    EraseFromLeaf(link, index, ops);
    return;
  }
  SequenceInner* inner = AsInner(Own(link, ops));
  std::uint32_t child = FindChild(inner, index);
  EraseBelow(inner->children[child], index, ops);
  if (inner->children[child]->size == 0) {
    SequenceRelease(inner->children[child], ops);
    RemoveChild(inner, child);
  } else {
    if (child + 1U < inner->count) MergeChildren(inner, child, ops);
    if (child > 0) MergeChildren(inner, child - 1, ops);
  }
  RefreshEnds(inner, 0);
}

bool IsValidBelow(const SequenceNode* node, const SlotOps& ops) {
  if (node->level == 0) {
    return node->count > 0 && node->count <= node->capacity && node->size == node->count &&
           node->capacity <= ops.leaf_capacity;
  }
  const auto* inner = static_cast<const SequenceInner*>(node);
  if (inner->count == 0 || inner->count > kSequenceFanOut) return false;
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < inner->count; ++i) {
    const SequenceNode* child = inner->children[i];
    end += child->size;
    if (inner->ends[i] != end || child->level + 1 != inner->level) return false;
    if (!IsValidBelow(child, ops)) return false;
  }
  return inner->size == end;
}

}  // namespace

void CopySlots(const SlotOps& ops, void* to, const void* from, std::size_t count) noexcept {
  if (ops.copy != nullptr) {
    ops.copy(to, from, count);
  } else {
    std::memcpy(to, from, count * ops.bytes);
  }
}

void RelocateSlots(const SlotOps& ops, void* to, void* from, std::size_t count) noexcept {
  if (ops.relocate != nullptr) {
    ops.relocate(to, from, count);
  } else {
    std::memmove(to, from, count * ops.bytes);
  }
}

SequenceRun SequenceRunAt(const SequenceNode* root, std::size_t index, std::size_t bytes) {
  const SequenceNode* leaf = FindLeaf(root, index);
  return {LeafSlots(leaf) + index * bytes, static_cast<std::uint32_t>(leaf->count - index)};
}

SequenceRun SequenceRunUpTo(const SequenceNode* root, std::size_t index) {
  const SequenceNode* leaf = FindLeaf(root, index);
  return {LeafSlots(leaf), static_cast<std::uint32_t>(index + 1)};
}

std::size_t SequenceLowerBound(const SequenceNode* root, std::size_t bytes, const void* key,
                               SequenceLess less) {
  if (root == nullptr) return 0;
  std::size_t before = 0;
  const SequenceNode* node = root;
  while (node->level != 0) {
    // Into the last child whose first element is less than the key: it holds the border, or the
    // border lies between it and the next one.
    const auto* inner = static_cast<const SequenceInner*>(node);
    std::uint32_t low = 0;
    std::uint32_t high = inner->count;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      std::size_t first = 0;
      const SequenceNode* leaf = FindLeaf(inner->children[middle], first);
      (less(LeafSlots(leaf), key) ? low : high) = middle;
    }
    if (low > 0) before += inner->ends[low - 1];
    node = inner->children[low];
  }
  std::size_t low = 0;
  std::size_t high = node->count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (less(LeafSlots(node) + middle * bytes, key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return before + low;
}

void SequenceRelease(SequenceNode* root, const SlotOps& ops) noexcept {
  if (root == nullptr || !DropRef(root->refs)) return;
  if (root->level == 0) {
    DestroySlots(ops, LeafSlots(root), root->count);
  } else {
    SequenceInner* inner = AsInner(root);
    for (std::uint32_t i = 0; i < inner->count; ++i) SequenceRelease(inner->children[i], ops);
  }
  FreeNode(root);
}

void* SequenceMutable(SequenceNode*& root, std::size_t index, const SlotOps& ops) {
  SequenceNode* node = Own(root, ops);
  while (node->level != 0) {
    SequenceInner* inner = AsInner(node);
    node = Own(inner->children[FindChild(inner, index)], ops);
  }
  return SlotAt(ops, node, index);
}

void* SequenceInsert(SequenceNode*& root, std::size_t index, const SlotOps& ops) {
  if (root == nullptr) {
    root = NewLeaf(ops, GrownCapacity(ops, 1));
    SetLeafCount(root, 1);
    return LeafSlots(root);
  }
  ZEZE_REQUIRE(root->size < std::numeric_limits<std::int32_t>::max(), kFull);
  const Inserted inserted = InsertBelow(root, index, ops);
  if (inserted.right != nullptr) {
    SequenceInner* inner = NewInner(static_cast<std::uint8_t>(root->level + 1));
    inner->children[0] = root;
    inner->children[1] = inserted.right;
    inner->count = 2;
    RefreshEnds(inner, 0);
    root = inner;
  }
  return inserted.slot;
}

void SequenceErase(SequenceNode*& root, std::size_t index, const SlotOps& ops) {
  EraseBelow(root, index, ops);
  if (root->size == 0) {
    SequenceRelease(root, ops);
    root = nullptr;
    return;
  }
  while (root->level != 0 && root->count == 1) {
    SequenceNode* child = AsInner(root)->children[0];  // EraseBelow made the root ours alone.
    FreeNode(root);
    root = child;
  }
}

bool SequenceIsValid(const SequenceNode* root, const SlotOps& ops) {
  return root == nullptr || IsValidBelow(root, ops);
}

}  // namespace zeze::internal
