#include "zeze/bean/internal/hash_trie.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "zeze/base/usage_error.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"

namespace zeze::internal {

namespace {

std::size_t EntriesOffset(std::size_t children, const SlotOps& ops) {
  const std::size_t end = sizeof(HashNode) + children * sizeof(HashNode*);
  const std::size_t align = ops.align;
  return (end + align - 1) / align * align;
}

HashNode* NewNode(std::size_t children, std::size_t capacity, const SlotOps& ops) {
  const std::size_t offset = EntriesOffset(children, ops);
  auto* node = ::new (::operator new(offset + capacity * ops.bytes)) HashNode;
  node->capacity = static_cast<std::uint32_t>(capacity);
  node->entries_offset = static_cast<std::uint32_t>(offset);
  return node;
}

// Only the memory: entries and children have moved elsewhere.
void FreeNode(HashNode* node) noexcept {
  ::operator delete(node);
}

std::byte* EntryAt(HashNode* node, std::size_t index, const SlotOps& ops) {
  return node->entries() + index * ops.bytes;
}

const std::byte* EntryAt(const HashNode* node, std::size_t index, const SlotOps& ops) {
  return node->entries() + index * ops.bytes;
}

std::size_t GrownCapacity(std::size_t count) {
  if (count <= 2) return count;
  if (count <= 32) return (count + 3) / 4 * 4;
  return count + count / 2;  // A node of colliding entries.
}

// An edit of one array while it goes to a new node: at `position`, leave `gap` raw places and skip
// `skip` old ones.
struct Splice {
  std::uint32_t position = 0;
  std::uint32_t gap = 0;
  std::uint32_t skip = 0;
};

void SpliceEntries(const SlotOps& ops, bool unique, HashNode* from, HashNode* to,
                   std::uint32_t count, Splice splice) {
  const std::uint32_t behind = splice.position + splice.skip;
  std::byte* target = EntryAt(to, splice.position + splice.gap, ops);
  if (unique) {
    RelocateSlots(ops, to->entries(), from->entries(), splice.position);
    RelocateSlots(ops, target, EntryAt(from, behind, ops), count - behind);
  } else {
    CopySlots(ops, to->entries(), from->entries(), splice.position);
    CopySlots(ops, target, EntryAt(from, behind, ops), count - behind);
  }
}

void SpliceChildren(bool unique, HashNode* from, HashNode* to, std::uint32_t count, Splice splice) {
  HashNode** target = to->children();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i == splice.position) target += splice.gap;
    if (i >= splice.position && i < splice.position + splice.skip) continue;
    HashNode* child = from->children()[i];
    if (!unique) AddRef(child->refs);
    *target++ = child;
  }
}

// Replaces the node behind `link` by one with room for a different number of entries or children.
// The maps and the size are the old ones; the caller sets them and fills the gaps. What was skipped
// in an unshared node must have been moved or destroyed by the caller.
HashNode* Reshape(HashNode*& link, bool unique, Splice entries, Splice children,
                  const SlotOps& ops) {
  HashNode* from = link;
  const std::uint32_t entry_count = from->entry_count();
  const std::uint32_t child_count = from->child_count();
  const std::uint32_t new_entries = entry_count + entries.gap - entries.skip;
  HashNode* to = NewNode(child_count + children.gap - children.skip,
                         entries.gap > 0 ? GrownCapacity(new_entries) : new_entries, ops);
  to->size = from->size;
  to->data_map = from->data_map;
  to->node_map = from->node_map;
  SpliceEntries(ops, unique, from, to, entry_count, entries);
  SpliceChildren(unique, from, to, child_count, children);
  if (unique) {
    FreeNode(from);
  } else {
    HashRelease(from, ops);
  }
  link = to;
  return to;
}

// Makes the node behind `link` one that nobody else sees. `link` itself must lie in such a node.
HashNode* Own(HashNode*& link, const SlotOps& ops) {
  if (IsUnique(link->refs)) return link;
  return Reshape(link, false, {}, {}, ops);
}

// A raw slot at `position` of the entries. The caller sets the maps; the size is counted here.
std::byte* InsertEntry(HashNode*& link, std::uint32_t position, const SlotOps& ops) {
  HashNode* node = link;
  const bool unique = IsUnique(node->refs);
  const std::uint32_t count = node->entry_count();
  if (unique && count < node->capacity) {
    RelocateSlots(ops, EntryAt(node, position + 1, ops), EntryAt(node, position, ops),
                  count - position);
  } else {
    node = Reshape(link, unique, {.position = position, .gap = 1}, {}, ops);
  }
  ++node->size;
  return EntryAt(node, position, ops);
}

void RemoveEntry(HashNode*& link, std::uint32_t position, const SlotOps& ops) {
  HashNode* node = link;
  const std::uint32_t count = node->entry_count();
  if (IsUnique(node->refs)) {
    DestroySlots(ops, EntryAt(node, position, ops), 1);
    RelocateSlots(ops, EntryAt(node, position, ops), EntryAt(node, position + 1, ops),
                  count - position - 1);
  } else {
    node = Reshape(link, false, {.position = position, .skip = 1}, {}, ops);
  }
  --node->size;
}

// The entry at `bit` moves into a child of its own, to which another one will be added.
HashNode*& EntryToChild(HashNode*& link, std::uint32_t bit, unsigned shift, const HashOps& ops) {
  HashNode* node = link;
  const bool unique = IsUnique(node->refs);
  const std::uint32_t position = IndexOf(node->data_map, bit);
  std::byte* entry = EntryAt(node, position, ops.slot);
  HashNode* child = NewNode(0, 2, ops.slot);
  child->size = 1;
  if (shift + kHashBitsPerLevel < kHashShiftEnd) {
    child->data_map = HashPlace(ops.hash(entry), shift + kHashBitsPerLevel);
  }
  if (unique) {
    RelocateSlots(ops.slot, child->entries(), entry, 1);
  } else {
    CopySlots(ops.slot, child->entries(), entry, 1);
  }
  const std::uint32_t child_position = IndexOf(node->node_map, bit);
  node = Reshape(link, unique, {.position = position, .skip = 1},
                 {.position = child_position, .gap = 1}, ops.slot);
  node->data_map &= ~bit;
  node->node_map |= bit;
  node->children()[child_position] = child;
  return node->children()[child_position];
}

// The child at `bit` holds one entry: it comes up into this node, which is ours alone.
void ChildToEntry(HashNode*& link, std::uint32_t bit, const SlotOps& ops) {
  HashNode* node = link;
  const std::uint32_t child_position = IndexOf(node->node_map, bit);
  const std::uint32_t position = IndexOf(node->data_map, bit);
  HashNode* child = node->children()[child_position];
  node = Reshape(link, true, {.position = position, .gap = 1},
                 {.position = child_position, .skip = 1}, ops);
  node->data_map |= bit;
  node->node_map &= ~bit;
  if (IsUnique(child->refs)) {
    RelocateSlots(ops, EntryAt(node, position, ops), child->entries(), 1);
    FreeNode(child);
  } else {
    CopySlots(ops, EntryAt(node, position, ops), child->entries(), 1);
    HashRelease(child, ops);
  }
}

std::uint32_t CollisionIndex(const HashNode* node, const void* slot, const SlotOps& ops) {
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(slot) - node->entries());
  return static_cast<std::uint32_t>(offset / ops.bytes);
}

// `slot` is in the node found by `hash` from here on.
void EraseBelow(HashNode*& link, std::uint64_t hash, unsigned shift, const void* slot,
                const HashOps& ops) {
  if (shift >= kHashShiftEnd) {
    RemoveEntry(link, CollisionIndex(link, slot, ops.slot), ops.slot);
    return;
  }
  const std::uint32_t bit = HashPlace(hash, shift);
  if ((link->data_map & bit) != 0) {
    RemoveEntry(link, IndexOf(link->data_map, bit), ops.slot);
    link->data_map &= ~bit;
    return;
  }
  HashNode* node = Own(link, ops.slot);
  --node->size;
  HashNode*& child = node->children()[IndexOf(node->node_map, bit)];
  EraseBelow(child, hash, shift + kHashBitsPerLevel, slot, ops);
  if (child->size == 1) ChildToEntry(link, bit, ops.slot);
}

class Comparison {
 public:
  Comparison(const HashOps& ops, void* context, HashChange change)
      : ops_(ops), context_(context), change_(change) {}

  bool Nodes(const HashNode* a, const HashNode* b) {
    if (a == b) return true;
    if (a->is_collision() || b->is_collision()) return Collisions(a, b);
    std::uint32_t todo = a->data_map | a->node_map | b->data_map | b->node_map;
    while (todo != 0) {
      const std::uint32_t bit = todo & (~todo + 1);
      todo &= ~bit;
      if (!Place(a, b, bit)) return false;
    }
    return true;
  }

  // All entries of `node` as added (or as removed), except the one with the key of `other`, which
  // is compared; `other` itself is reported when its key is not there.
  bool NodeAgainstEntry(const HashNode* node, const std::byte* other, bool node_is_new) {
    bool found = false;
    for (HashCursor cursor(node, ops_.slot.bytes); cursor.slot() != nullptr; cursor.Next()) {
      const bool same = other != nullptr && !found && ops_.same_key(cursor.slot(), other);
      found = found || same;
      if (!Report(cursor.slot(), same ? other : nullptr, node_is_new)) return false;
    }
    return found || other == nullptr || Report(nullptr, other, node_is_new);
  }

 private:
  bool Place(const HashNode* a, const HashNode* b, std::uint32_t bit) {
    const HashNode* a_child = ChildOf(a, bit);
    const HashNode* b_child = ChildOf(b, bit);
    if (a_child != nullptr && b_child != nullptr) return Nodes(a_child, b_child);
    const std::byte* a_entry = EntryOf(a, bit);
    const std::byte* b_entry = EntryOf(b, bit);
    if (a_child != nullptr) return NodeAgainstEntry(a_child, b_entry, false);
    if (b_child != nullptr) return NodeAgainstEntry(b_child, a_entry, true);
    if (a_entry == nullptr || b_entry == nullptr || ops_.same_key(a_entry, b_entry)) {
      return change_(context_, a_entry, b_entry);
    }
    return change_(context_, a_entry, nullptr) && change_(context_, nullptr, b_entry);
  }

  // At least one of the nodes is an array without order to rely on.
  bool Collisions(const HashNode* a, const HashNode* b) {
    for (HashCursor i(a, ops_.slot.bytes); i.slot() != nullptr; i.Next()) {
      if (!change_(context_, i.slot(), FindIn(b, i.slot()))) return false;
    }
    for (HashCursor i(b, ops_.slot.bytes); i.slot() != nullptr; i.Next()) {
      if (FindIn(a, i.slot()) == nullptr && !change_(context_, nullptr, i.slot())) return false;
    }
    return true;
  }

  const std::byte* FindIn(const HashNode* node, const std::byte* slot) const {
    HashCursor i(node, ops_.slot.bytes);
    while (i.slot() != nullptr && !ops_.same_key(i.slot(), slot)) i.Next();
    return i.slot();
  }

  bool Report(const std::byte* in_node, const std::byte* other, bool node_is_new) {
    return node_is_new ? change_(context_, other, in_node) : change_(context_, in_node, other);
  }

  static const HashNode* ChildOf(const HashNode* node, std::uint32_t bit) {
    return (node->node_map & bit) == 0 ? nullptr : node->children()[IndexOf(node->node_map, bit)];
  }

  const std::byte* EntryOf(const HashNode* node, std::uint32_t bit) const {
    if ((node->data_map & bit) == 0) return nullptr;
    return EntryAt(node, IndexOf(node->data_map, bit), ops_.slot);
  }

  const HashOps& ops_;
  void* context_;
  HashChange change_;
};

bool IsValidBelow(const HashNode* node, std::uint64_t prefix, unsigned shift, bool is_root,
                  const HashOps& ops) {
  if (!is_root && node->size < 2) return false;
  if ((shift >= kHashShiftEnd) != node->is_collision()) return false;
  if (node->entry_count() > node->capacity) return false;
  if ((node->data_map & node->node_map) != 0) return false;
  std::uint32_t size = node->entry_count();
  const std::uint64_t known = shift >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << shift) - 1;
  for (std::uint32_t i = 0; i < node->entry_count(); ++i) {
    const std::uint64_t hash = ops.hash(EntryAt(node, i, ops.slot));
    if ((hash & known) != prefix) return false;
    if (!node->is_collision()) {
      const std::uint32_t bit = HashPlace(hash, shift);
      if ((node->data_map & bit) == 0 || IndexOf(node->data_map, bit) != i) return false;
    }
  }
  std::uint32_t index = 0;
  for (unsigned place = 0; place < 32; ++place) {
    if ((node->node_map >> place & 1U) == 0) continue;
    const HashNode* child = node->children()[index++];
    const std::uint64_t below = prefix | std::uint64_t{place} << shift;
    if (!IsValidBelow(child, below, shift + kHashBitsPerLevel, false, ops)) return false;
    size += child->size;
  }
  return size == node->size;
}

}  // namespace

void HashRelease(HashNode* root, const SlotOps& ops) noexcept {
  if (root == nullptr || !DropRef(root->refs)) return;
  DestroySlots(ops, root->entries(), root->entry_count());
  const std::uint32_t children = root->child_count();
  for (std::uint32_t i = 0; i < children; ++i) HashRelease(root->children()[i], ops);
  FreeNode(root);
}

void* HashMutable(HashNode*& root, std::uint64_t hash, const void* slot, const HashOps& ops) {
  HashNode** link = &root;
  for (unsigned shift = 0; shift < kHashShiftEnd; shift += kHashBitsPerLevel) {
    HashNode* node = Own(*link, ops.slot);
    const std::uint32_t bit = HashPlace(hash, shift);
    if ((node->data_map & bit) != 0) {
      return EntryAt(node, IndexOf(node->data_map, bit), ops.slot);
    }
    link = &node->children()[IndexOf(node->node_map, bit)];
  }
  const std::uint32_t index = CollisionIndex(*link, slot, ops.slot);
  return EntryAt(Own(*link, ops.slot), index, ops.slot);
}

void* HashInsert(HashNode*& root, std::uint64_t hash, const void* key, const HashOps& ops) {
  if (root == nullptr) {
    root = NewNode(0, 1, ops.slot);
    root->size = 1;
    root->data_map = HashPlace(hash, 0);
    return root->entries();
  }
  ZEZE_REQUIRE(root->size < std::numeric_limits<std::int32_t>::max(), kFull);
  HashNode** link = &root;
  for (unsigned shift = 0; shift < kHashShiftEnd; shift += kHashBitsPerLevel) {
    HashNode* node = *link;
    const std::uint32_t bit = HashPlace(hash, shift);
    if ((node->node_map & bit) != 0) {
      node = Own(*link, ops.slot);
      ++node->size;
      link = &node->children()[IndexOf(node->node_map, bit)];
    } else if ((node->data_map & bit) != 0) {
      HashNode*& child = EntryToChild(*link, bit, shift, ops);
      ++(*link)->size;
      link = &child;
    } else {
      std::byte* slot = InsertEntry(*link, IndexOf(node->data_map, bit), ops.slot);
      (*link)->data_map |= bit;
      return slot;
    }
  }
  std::uint32_t position = 0;
  while (position < (*link)->size && ops.less(EntryAt(*link, position, ops.slot), key)) ++position;
  return InsertEntry(*link, position, ops.slot);
}

void HashErase(HashNode*& root, std::uint64_t hash, const void* slot, const HashOps& ops) {
  if (root->size == 1) {
    HashRelease(root, ops.slot);
    root = nullptr;
    return;
  }
  EraseBelow(root, hash, 0, slot, ops);
}

HashCursor::HashCursor(const HashNode* root, std::size_t bytes)
    : bytes_(static_cast<std::uint32_t>(bytes)) {
  if (root != nullptr) Enter(root);
}

void HashCursor::Enter(const HashNode* node) {
  for (;;) {
    path_[depth_] = node;
    child_[depth_] = 0;
    ++depth_;
    const std::uint32_t count = node->entry_count();
    if (count > 0) {
      slot_ = node->entries();
      end_ = slot_ + std::size_t{count} * bytes_;
      return;
    }
    child_[depth_ - 1] = 1;
    node = node->children()[0];
  }
}

void HashCursor::NextNode() {
  while (depth_ > 0) {
    const HashNode* node = path_[depth_ - 1];
    std::uint8_t& next = child_[depth_ - 1];
    if (next < node->child_count()) {
      Enter(node->children()[next++]);
      return;
    }
    --depth_;
  }
  slot_ = nullptr;
  end_ = nullptr;
}

bool HashCompare(const HashNode* old_root, const HashNode* new_root, const HashOps& ops,
                 void* context, HashChange change) {
  if (old_root == new_root) return true;
  Comparison comparison(ops, context, change);
  if (old_root == nullptr) return comparison.NodeAgainstEntry(new_root, nullptr, true);
  if (new_root == nullptr) return comparison.NodeAgainstEntry(old_root, nullptr, false);
  return comparison.Nodes(old_root, new_root);
}

bool HashIsValid(const HashNode* root, const HashOps& ops) {
  return root == nullptr || IsValidBelow(root, 0, 0, true, ops);
}

}  // namespace zeze::internal
