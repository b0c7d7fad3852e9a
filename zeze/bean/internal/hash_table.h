// HashTable: the typed face of a HashTrie, shared by Map and Set.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "zeze/bean/hash.h"
#include "zeze/bean/internal/hash_trie.h"
#include "zeze/bean/internal/slot.h"
#include "zeze/bean/internal/stable_iterator.h"

namespace zeze::internal {

// KeyOf::Get(entry) is the key of an entry.
template <typename K, typename Entry, typename KeyOf>
class HashTable {
  using Traits = HashTraits<Entry>;
  using EntrySlot = Slot<Entry>;

 public:
  HashTable() noexcept = default;
  HashTable(const HashTable& other) noexcept : root_(other.root_) { Traits::Share(root_); }
  HashTable(HashTable&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  HashTable& operator=(HashTable other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~HashTable() { Traits::Release(root_); }

  std::size_t size() const { return root_ == nullptr ? 0 : root_->size; }
  bool empty() const { return root_ == nullptr; }
  StableIterator<Entry, Traits> begin() const { return {root_, {root_, SlotBytes()}}; }

  const Entry* Find(KeyView<K> key) const {
    if (root_ == nullptr) return nullptr;
    const std::byte* slot = FindSlot(HashKey(key), key);
    return slot == nullptr ? nullptr : &EntrySlot::Read(slot);
  }

  // The entry in nodes that this table owns alone; null when the key is not there.
  Entry* FindForEdit(std::uint64_t hash, KeyView<K> key) {
    const std::byte* slot = FindSlot(hash, key);
    if (slot == nullptr) return nullptr;
    return &EntrySlot::Write(HashMutable(root_, hash, slot, Ops()));
  }

  // The key must not be there.
  void Add(std::uint64_t hash, Entry&& entry) {
    EntrySlot::Construct(HashInsert(root_, hash, &KeyOf::Get(entry), Ops()), std::move(entry));
  }

  // False when the key is there already.
  bool AddIfAbsent(Entry&& entry) {
    const std::uint64_t hash = HashKey(KeyOf::Get(entry));
    if (FindSlot(hash, KeyOf::Get(entry)) != nullptr) return false;
    Add(hash, std::move(entry));
    return true;
  }

  bool Erase(KeyView<K> key) {
    if (root_ == nullptr) return false;
    const std::uint64_t hash = HashKey(key);
    const std::byte* slot = FindSlot(hash, key);
    if (slot == nullptr) return false;
    HashErase(root_, hash, slot, Ops());
    return true;
  }

  void Clear() { Traits::Release(std::exchange(root_, nullptr)); }

  RootRef<Traits> Guard() const { return RootRef<Traits>(root_); }
  bool IsSameAs(const RootRef<Traits>& guard) const { return root_ == guard.get(); }
  bool IsSameAs(const HashTable& other) const { return root_ == other.root_; }

  // See HashCompare. differ(const Entry* mine, const Entry* theirs) returns whether to go on.
  template <typename Differ>
  bool Compare(const HashTable& newer, Differ differ) const {
    return HashCompare(
        root_, newer.root_, Ops(), &differ, [](void* context, const void* x, const void* y) {
          return (*static_cast<Differ*>(context))(x == nullptr ? nullptr : &EntrySlot::Read(x),
                                                  y == nullptr ? nullptr : &EntrySlot::Read(y));
        });
  }

  bool IsValid() const { return HashIsValid(root_, Ops()); }

 private:
  static constexpr std::size_t SlotBytes() { return sizeof(typename EntrySlot::Stored); }

  static const K& KeyAt(const void* slot) { return KeyOf::Get(EntrySlot::Read(slot)); }

  const std::byte* FindSlot(std::uint64_t hash, KeyView<K> key) const {
    return HashFind(root_, hash, SlotBytes(),
                    [&key](const std::byte* slot) { return SameKey(KeyAt(slot), key); });
  }

  static bool Less(const void* slot, const void* key) {
    return KeyLess(KeyAt(slot), *static_cast<const K*>(key));
  }

  static const HashOps& Ops() {
    static constexpr HashOps kOps{
        .slot = EntrySlot::Ops(),
        .hash = [](const void* slot) { return HashKey(KeyAt(slot)); },
        .same_key = [](const void* a, const void* b) { return SameKey(KeyAt(a), KeyAt(b)); },
        .less = &Less,
    };
    return kOps;
  }

  HashNode* root_ = nullptr;
};

}  // namespace zeze::internal
