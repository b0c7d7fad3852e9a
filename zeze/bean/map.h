// Map: a persistent hash map. Copying it costs one increment, editing a copy leaves the original as
// it is, and both go on sharing what they have in common.
//
//   zeze::Map<std::int32_t, BItem> bag;
//   bag.Put(7, BItem{.count = 1});
//   bag.Update(7, [](BItem& item) { item.count += 1; });
//   if (const BItem* item = bag.Find(7)) Use(*item);
//   for (const auto& [id, item] : bag) {
//     if (item.count == 0) bag.Erase(id);            // The loop goes on over the old contents.
//   }
//
// One pointer, null when empty. Two maps with equal contents are iterated, and encoded, in the same
// order, whatever edits made them (within a process, and in every process that has the same seed:
// hash.h).
//
// Values are never handed out for writing; edit them through Put, Update and UpdateOrAdd. Pointers
// to values are good until the map is next edited, assigned or destroyed; iterators keep the
// contents they started with alive. Thread-safety: as a plain value (see list.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "zeze/base/usage_error.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/internal/hash_table.h"
#include "zeze/bean/internal/hash_trie.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"
#include "zeze/bean/internal/stable_iterator.h"

namespace zeze {

template <typename K, typename V>
struct MapEntry {
  K key;
  V value;

  friend bool operator==(const MapEntry& a, const MapEntry& b) {
    return SameKey(a.key, b.key) && SameKey(a.value, b.value);
  }
};

template <typename K, typename V>
class Map {
  struct KeyOf {
    static const K& Get(const MapEntry<K, V>& entry) { return entry.key; }
  };
  using Table = internal::HashTable<K, MapEntry<K, V>, KeyOf>;

 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = MapEntry<K, V>;
  using const_iterator = internal::StableIterator<value_type, internal::HashTraits<value_type>>;
  using iterator = const_iterator;

  Map() noexcept = default;
  Map(std::initializer_list<value_type> entries) {
    for (const value_type& entry : entries) Put(entry.key, entry.value);
  }

  std::size_t size() const { return table_.size(); }
  bool empty() const { return table_.empty(); }
  const_iterator begin() const { return table_.begin(); }
  const_iterator end() const { return {}; }

  // Null when the key is not there.
  const V* Find(KeyView<K> key) const {
    const value_type* entry = table_.Find(key);
    return entry == nullptr ? nullptr : &entry->value;
  }
  bool Contains(KeyView<K> key) const { return table_.Find(key) != nullptr; }

  // The value of a key that must be there; throws UsageError when it is not.
  const V& Get(KeyView<K> key) const {
    const V* value = Find(key);
    if (value == nullptr) [[unlikely]]
      internal::ThrowNoKey(key);
    return *value;
  }

  // Adds or replaces. True when the key is new.
  bool Put(K key, V value) {
    const std::uint64_t hash = HashKey(key);
    if (value_type* entry = table_.FindForEdit(hash, key)) {
      entry->value = std::move(value);
      return false;
    }
    table_.Add(hash, value_type{std::move(key), std::move(value)});
    return true;
  }

  // True when the key was there.
  bool Erase(KeyView<K> key) { return table_.Erase(key); }

  // Calls edit(V&); false when the key is not there. The callback may read this map but must
  // neither edit nor copy it.
  template <typename Edit>
  bool Update(KeyView<K> key, Edit&& edit) {
    value_type* entry = table_.FindForEdit(HashKey(key), key);
    if (entry == nullptr) return false;
    const auto guard = table_.Guard();  // An edit inside the callback cannot free the value.
    std::forward<Edit>(edit)(entry->value);
    ZEZE_REQUIRE(table_.IsSameAs(guard), internal::kEditedInUpdate);
    return true;
  }

  // The same, with a default value added first when the key is not there. The key is a copy because
  // one that lies in this map would move when the map grows; so it is in GetOrAdd.
  template <typename Edit>
  void UpdateOrAdd(K key, Edit&& edit) {  // NOLINT(performance-unnecessary-value-param)
    if (!Contains(key)) Put(key, V{});
    Update(key, std::forward<Edit>(edit));
  }

  // The value of the key, which is make() if it was not there.
  template <typename Make>
  const V& GetOrAdd(K key, Make&& make) {  // NOLINT(performance-unnecessary-value-param)
    if (const V* value = Find(key)) return *value;
    V made = std::forward<Make>(make)();
    Put(key, std::move(made));
    return *Find(key);
  }
  const V& GetOrAdd(K key) {
    return GetOrAdd(std::move(key), [] { return V{}; });
  }

  void Clear() { table_.Clear(); }

  // Whether both share the same contents in memory: then they are equal, at no cost.
  bool IsSameAs(const Map& other) const { return table_.IsSameAs(other.table_); }

  friend bool operator==(const Map& a, const Map& b) {
    return a.size() == b.size() && a.table_.Compare(b.table_, [](const auto* x, const auto* y) {
      return x != nullptr && y != nullptr && (x == y || SameKey(x->value, y->value));
    });
  }

  // Calls change(const V* old_value, const V* new_value, const K& key) for each key whose entries
  // may differ from `older` to this map; null where the key is missing. Skips what both share, so
  // the cost is that of the differences.
  template <typename Change>
  void ForEachChangeSince(const Map& older, Change&& change) const {
    older.table_.Compare(table_, [&change](const value_type* x, const value_type* y) {
      if (x != y) {
        change(x == nullptr ? nullptr : &x->value, y == nullptr ? nullptr : &y->value,
               x == nullptr ? y->key : x->key);
      }
      return true;
    });
  }

 private:
  friend struct ContainerAccess;

  Table table_;
};

}  // namespace zeze
