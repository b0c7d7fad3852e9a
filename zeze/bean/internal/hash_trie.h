// HashTrie: the tree behind Map and Set, one pointer to reference-counted nodes, null when empty.
//
// Each node takes five bits of a 64-bit hash and holds two compressed arrays: entries whose five
// bits are theirs alone, and children where several share them. The shape depends on the contents
// only, not on the order of edits (a child with one entry is always folded into its parent), so
// equal contents are iterated, and encoded, in the same order, and two versions of one map can be
// compared by skipping the nodes they share.
//
// Type-erased like sequence.h, with the same rule: in place what is ours alone, else path copying.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "zeze/bean/internal/slot.h"

namespace zeze::internal {

constexpr unsigned kHashBitsPerLevel = 5;
// Beyond this shift the hash is used up: the node is a plain array of entries that collide.
constexpr unsigned kHashShiftEnd = 65;
constexpr std::size_t kHashLevels = kHashShiftEnd / kHashBitsPerLevel + 1;

struct HashNode {
  RefCount refs{1};
  std::uint32_t size = 0;      // Entries in this node and below.
  std::uint32_t data_map = 0;  // Which of the 32 places hold an entry.
  std::uint32_t node_map = 0;  // Which hold a child. Both 0: a node of colliding entries.
  std::uint32_t capacity = 0;  // Entries for which there is room.
  std::uint32_t entries_offset = 0;

  HashNode** children() { return reinterpret_cast<HashNode**>(this + 1); }
  HashNode* const* children() const { return reinterpret_cast<HashNode* const*>(this + 1); }
  std::byte* entries() { return reinterpret_cast<std::byte*>(this) + entries_offset; }
  const std::byte* entries() const {
    return reinterpret_cast<const std::byte*>(this) + entries_offset;
  }
  bool is_collision() const { return (data_map | node_map) == 0; }
  std::uint32_t entry_count() const {
    return is_collision() ? size : static_cast<std::uint32_t>(std::popcount(data_map));
  }
  std::uint32_t child_count() const { return static_cast<std::uint32_t>(std::popcount(node_map)); }
};
static_assert(sizeof(HashNode) == 24);

struct HashOps {
  SlotOps slot;
  std::uint64_t (*hash)(const void* slot);
  bool (*same_key)(const void* slot, const void* other_slot);
  // Order among colliding entries.
  bool (*less)(const void* slot, const void* key);
};

inline std::uint32_t HashPlace(std::uint64_t hash, unsigned shift) {
  return 1U << ((hash >> shift) & 31U);
}

inline std::uint32_t IndexOf(std::uint32_t map, std::uint32_t bit) {
  return static_cast<std::uint32_t>(std::popcount(map & (bit - 1)));
}

// The slot for which `matches` holds, among those with this hash; null if there is none.
template <typename Matches>
const std::byte* HashFind(const HashNode* node, std::uint64_t hash, std::size_t bytes,
                          Matches matches) {
  unsigned shift = 0;
  while (node != nullptr) {
    if (shift >= kHashShiftEnd) {
      for (std::uint32_t i = 0; i < node->size; ++i) {
        const std::byte* slot = node->entries() + i * bytes;
        if (matches(slot)) return slot;
      }
      return nullptr;
    }
    const std::uint32_t bit = HashPlace(hash, shift);
    if ((node->data_map & bit) != 0) {
      const std::byte* slot = node->entries() + IndexOf(node->data_map, bit) * bytes;
      return matches(slot) ? slot : nullptr;
    }
    if ((node->node_map & bit) == 0) return nullptr;
    node = node->children()[IndexOf(node->node_map, bit)];
    shift += kHashBitsPerLevel;
  }
  return nullptr;
}

inline void HashShare(HashNode* root) noexcept {
  if (root != nullptr) AddRef(root->refs);
}

void HashRelease(HashNode* root, const SlotOps& ops) noexcept;

// `slot` is what HashFind found in this trie. The same entry, in nodes that this trie owns alone.
void* HashMutable(HashNode*& root, std::uint64_t hash, const void* slot, const HashOps& ops);

// Makes room for a key that is not there and returns the raw slot, which counts as an entry
// already: construct it before anything else. `key` goes to ops.less.
void* HashInsert(HashNode*& root, std::uint64_t hash, const void* key, const HashOps& ops);

// `slot` is what HashFind found in this trie.
void HashErase(HashNode*& root, std::uint64_t hash, const void* slot, const HashOps& ops);

// Walks the entries of a trie that the caller keeps alive. Runs of entries lie side by side.
class HashCursor {
 public:
  HashCursor() = default;
  HashCursor(const HashNode* root, std::size_t bytes);

  const std::byte* slot() const { return slot_; }  // Null at the end.
  void Next() {
    slot_ += bytes_;
    if (slot_ == end_) NextNode();
  }

 private:
  void Enter(const HashNode* node);
  void NextNode();

  const std::byte* slot_ = nullptr;
  const std::byte* end_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint32_t depth_ = 0;
  const HashNode* path_[kHashLevels];
  std::uint8_t child_[kHashLevels];  // Next child to enter, for each node of the path.
};

// What differs between two tries: calls change(context, old_slot, new_slot) for each key whose
// slots differ in place (one of them null when the key is missing there); nodes that both share are
// skipped. Entries may turn out equal in value: that is for the callee to see. Stops and returns
// false when `change` does.
using HashChange = bool (*)(void* context, const void* old_slot, const void* new_slot);
bool HashCompare(const HashNode* old_root, const HashNode* new_root, const HashOps& ops,
                 void* context, HashChange change);

// For tests: whether the shape is the one that the contents prescribe.
bool HashIsValid(const HashNode* root, const HashOps& ops);

}  // namespace zeze::internal
