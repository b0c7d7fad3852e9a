// List: a persistent list. Copying it costs one increment, editing a copy leaves the original as it
// is, and both go on sharing what they have in common.
//
//   zeze::List<std::string> names = {"ann", "bob"};
//   zeze::List<std::string> before = names;               // O(1)
//   names.PushBack("eve");
//   names.Update(0, [](std::string& name) { name += "!"; });
//   for (const std::string& name : names) names.PushBack(name);   // Walks the three old elements.
//   before.size();                                        // Still 2.
//
// One pointer, null when empty. Access, edit, insertion and removal at any place cost O(log n): a
// tree of small nodes, of which an edit copies those on the path that other lists share and writes
// the rest in place.
//
// Elements are never handed out for writing; edit them through Set and Update. References and
// pointers to elements are good until the list is next edited, assigned or destroyed; iterators
// keep the contents they started with alive.
//
// Thread-safety: as a plain value. Two lists that share contents may be used in two threads without
// any lock; one list variable may not be written while another thread uses it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "zeze/base/usage_error.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/internal/sequence.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"
#include "zeze/bean/internal/stable_iterator.h"

namespace zeze {

template <typename T>
class List {
  using Traits = internal::SequenceTraits<T>;
  using Slot = internal::Slot<T>;

 public:
  using value_type = T;
  using const_iterator = internal::StableIterator<T, Traits>;
  using iterator = const_iterator;

  List() noexcept = default;
  List(std::initializer_list<T> values) : List(values.begin(), values.end()) {}
  template <std::input_iterator Iterator>
  List(Iterator first, Iterator last) {
    for (; first != last; ++first) PushBack(*first);
  }
  List(const List& other) noexcept : root_(other.root_) { Traits::Share(root_); }
  List(List&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  List& operator=(List other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~List() { Traits::Release(root_); }

  std::size_t size() const { return root_ == nullptr ? 0 : root_->size; }
  bool empty() const { return root_ == nullptr; }

  // The index must be below size(); this and every other index out of range throws UsageError.
  const T& operator[](std::size_t index) const {
    CheckIndex(index, size());
    return Slot::Read(internal::SequenceAt(root_, index, SlotBytes()));
  }
  const T& Get(std::size_t index) const { return (*this)[index]; }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[size() - 1]; }

  // Null when there is no such index.
  const T* Find(std::size_t index) const { return index < size() ? &(*this)[index] : nullptr; }

  const_iterator begin() const { return {root_, {root_, 0, size(), SlotBytes()}}; }
  const_iterator end() const { return {}; }

  bool Contains(const T& value) const { return std::find(begin(), end(), value) != end(); }

  // How many elements satisfy before(element), which must be true of the first ones and false of
  // all behind them: the place of something in a sorted list.
  template <typename Before>
  std::size_t PartitionPoint(const Before& before) const {
    return internal::SequenceLowerBound(
        root_, SlotBytes(), &before, [](const void* slot, const void* context) -> bool {
          return (*static_cast<const Before*>(context))(Slot::Read(slot));
        });
  }

  void PushBack(T value) { Insert(size(), std::move(value)); }
  void PopBack() { Erase(size() - 1); }

  // Replaces the element at an index below size().
  void Set(std::size_t index, T value) {
    CheckIndex(index, size());
    Slot::Write(internal::SequenceMutable(root_, index, Traits::Ops())) = std::move(value);
  }

  // Inserts before the element at `index`, which is at most size().
  void Insert(std::size_t index, T value) {
    CheckIndex(index, size() + 1);
    Slot::Construct(internal::SequenceInsert(root_, index, Traits::Ops()), std::move(value));
  }

  void Erase(std::size_t index) {
    CheckIndex(index, size());
    internal::SequenceErase(root_, index, Traits::Ops());
  }

  // Calls edit(T&) for one element; false when there is no such index. The callback may read this
  // list but must neither edit nor copy it.
  template <typename Edit>
  bool Update(std::size_t index, Edit&& edit) {
    if (index >= size()) return false;
    T& value = Slot::Write(internal::SequenceMutable(root_, index, Traits::Ops()));
    const internal::RootRef<Traits> guard(root_);  // An edit inside the callback cannot free value.
    std::forward<Edit>(edit)(value);
    ZEZE_REQUIRE(guard.get() == root_, internal::kEditedInUpdate);
    return true;
  }

  void Clear() { Traits::Release(std::exchange(root_, nullptr)); }

  // Whether both share the same contents in memory: then they are equal, at no cost.
  bool IsSameAs(const List& other) const { return root_ == other.root_; }

  // How many elements are equal from the start on.
  std::size_t CommonPrefix(const List& other) const {
    const std::size_t limit = std::min(size(), other.size());
    if (root_ == other.root_) return limit;
    std::size_t i = 0;
    while (i < limit) {
      const internal::SequenceRun x = internal::SequenceRunAt(root_, i, SlotBytes());
      const internal::SequenceRun y = internal::SequenceRunAt(other.root_, i, SlotBytes());
      const std::size_t count = std::min(x.count, y.count);
      const std::size_t equal = x.slots == y.slots ? count : EqualRun(x.slots, y.slots, count);
      i += equal;
      if (equal < count) break;
    }
    return i;
  }

  // How many elements are equal from the end back, the first `prefix` ones left alone.
  std::size_t CommonSuffix(const List& other, std::size_t prefix) const {
    const std::size_t limit = std::min(size(), other.size()) - prefix;
    std::size_t done = 0;
    while (done < limit) {
      const internal::SequenceRun x = internal::SequenceRunUpTo(root_, size() - done - 1);
      const internal::SequenceRun y =
          internal::SequenceRunUpTo(other.root_, other.size() - done - 1);
      if (x.slots == y.slots && x.count == y.count) {
        done = std::min<std::size_t>(limit, done + x.count);
        continue;
      }
      const T& a = Slot::Read(x.slots + (x.count - 1) * SlotBytes());
      const T& b = Slot::Read(y.slots + (y.count - 1) * SlotBytes());
      if (&a != &b && !SameKey(a, b)) break;
      ++done;
    }
    return done;
  }

  friend bool operator==(const List& a, const List& b) {
    return a.size() == b.size() && a.CommonPrefix(b) == a.size();
  }

 private:
  friend struct ContainerAccess;

  void CheckIndex(std::size_t index, std::size_t end) const {
    if (index >= end) [[unlikely]]
      internal::ThrowBadIndex(index, size());
  }

  static constexpr std::size_t SlotBytes() { return sizeof(typename Slot::Stored); }

  // How many of the slots are equal before the first that differ.
  static std::size_t EqualRun(const std::byte* a, const std::byte* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const T& x = Slot::Read(a + i * SlotBytes());
      const T& y = Slot::Read(b + i * SlotBytes());
      if (&x != &y && !SameKey(x, y)) return i;
    }
    return count;
  }

  internal::SequenceNode* root_ = nullptr;
};

}  // namespace zeze
