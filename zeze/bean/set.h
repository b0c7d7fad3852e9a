// Set: a persistent hash set. Everything said in map.h holds, with elements instead of entries.
//
//   zeze::Set<std::int64_t> friends;
//   friends.Add(7);                       // True: it is new.
//   if (friends.Contains(7)) friends.Erase(7);

#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

#include "zeze/bean/hash.h"
#include "zeze/bean/internal/hash_table.h"
#include "zeze/bean/internal/stable_iterator.h"

namespace zeze {

template <typename T>
class Set {
  struct KeyOf {
    static const T& Get(const T& value) { return value; }  // NOLINT: elements outlive the call.
  };

 public:
  using key_type = T;
  using value_type = T;
  using const_iterator = internal::StableIterator<T, internal::HashTraits<T>>;
  using iterator = const_iterator;

  Set() noexcept = default;
  Set(std::initializer_list<T> values) {
    for (const T& value : values) Add(value);
  }

  std::size_t size() const { return table_.size(); }
  bool empty() const { return table_.empty(); }
  const_iterator begin() const { return table_.begin(); }
  const_iterator end() const { return {}; }

  bool Contains(KeyView<T> value) const { return table_.Find(value) != nullptr; }

  // True when the element is new.
  bool Add(T value) { return table_.AddIfAbsent(std::move(value)); }

  // True when the element was there.
  bool Erase(KeyView<T> value) { return table_.Erase(value); }

  void Clear() { table_.Clear(); }

  // Whether both share the same contents in memory: then they are equal, at no cost.
  bool IsSameAs(const Set& other) const { return table_.IsSameAs(other.table_); }

  friend bool operator==(const Set& a, const Set& b) {
    return a.size() == b.size() && a.table_.Compare(b.table_, [](const T* x, const T* y) {
      return x != nullptr && y != nullptr;
    });
  }

  // Calls change(const T& element, bool added) for each element by which `older` and this set
  // differ. Skips what both share.
  template <typename Change>
  void ForEachChangeSince(const Set& older, Change&& change) const {
    older.table_.Compare(table_, [&change](const T* x, const T* y) {
      if (x == nullptr || y == nullptr) change(x == nullptr ? *y : *x, x == nullptr);
      return true;
    });
  }

 private:
  friend struct ContainerAccess;

  internal::HashTable<T, T, KeyOf> table_;
};

}  // namespace zeze
