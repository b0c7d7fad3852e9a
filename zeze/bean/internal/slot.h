// Slot: how one element lies in a container node, and the table of operations through which the
// type-erased node code of sequence.cc and hash_trie.cc copies, moves and destroys elements.
//
// Small elements lie in the node itself. Large ones (a bean with many fields) lie in a box of their
// own with a reference count, so that copying a node costs one increment per element, and an edit
// copies the edited element only.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace zeze::internal {

// A null function means: the bytes say it all (memcpy, memmove, nothing to destroy).
struct SlotOps {
  std::uint32_t bytes;
  std::uint16_t align;
  std::uint16_t leaf_capacity;
  void (*copy)(void* to, const void* from, std::size_t count) noexcept;
  // Moves to raw memory; the ranges may overlap; afterwards `from` is raw where not overwritten.
  void (*relocate)(void* to, void* from, std::size_t count) noexcept;
  void (*destroy)(void* slots, std::size_t count) noexcept;
};

// Counts of nodes and boxes. A count of one seen by its owner stays one: only an owner can add.
using RefCount = std::atomic<std::uint32_t>;

inline void AddRef(RefCount& refs) noexcept {
  refs.fetch_add(1, std::memory_order_relaxed);
}

// Acquire pairs with the release of the thread that gave up the other reference: its reads of the
// node happen before our writes to it.
inline bool IsUnique(const RefCount& refs) noexcept {
  return refs.load(std::memory_order_acquire) == 1;
}

// True when this was the last reference. The load first spares the owner of an unshared node an
// atomic read-modify-write.
inline bool DropRef(RefCount& refs) noexcept {
  return IsUnique(refs) || refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

template <typename T>
struct Box {
  explicit Box(T&& v) noexcept : value(std::move(v)) {}
  explicit Box(const T& v) : value(v) {}

  RefCount refs{1};
  T value;
};

constexpr std::size_t kInlineBytesMax = 64;

template <typename T>
class Slot {
 public:
  static constexpr bool kBoxed = sizeof(T) > kInlineBytesMax;
  using Stored = std::conditional_t<kBoxed, Box<T>*, T>;
  static_assert(std::is_nothrow_move_constructible_v<T>, "elements must move without throwing");
  static_assert(alignof(Stored) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "element is over-aligned");

  static const T& Read(const void* slot) noexcept {
    const Stored& stored = *static_cast<const Stored*>(slot);
    if constexpr (kBoxed) {
      return stored->value;
    } else {
      return stored;
    }
  }

  // The slot must lie in a node that its caller owns alone.
  static T& Write(void* slot) {
    Stored& stored = *static_cast<Stored*>(slot);
    if constexpr (kBoxed) {
      if (!IsUnique(stored->refs)) {
        auto* copy = new Box<T>(std::as_const(stored->value));
        Destroy(slot, 1);
        stored = copy;
      }
      return stored->value;
    } else {
      return stored;
    }
  }

  static void Construct(void* slot, T&& value) {
    if constexpr (kBoxed) {
      ::new (slot) Stored(new Box<T>(std::move(value)));
    } else {
      ::new (slot) T(std::move(value));
    }
  }

  static constexpr SlotOps Ops() {
    constexpr bool kPlainCopy = !kBoxed && std::is_trivially_copyable_v<T>;
    constexpr bool kPlainMove = kBoxed || std::is_trivially_copyable_v<T>;
    constexpr bool kPlainDestroy = !kBoxed && std::is_trivially_destructible_v<T>;
    return SlotOps{.bytes = sizeof(Stored),
                   .align = alignof(Stored),
                   .leaf_capacity = LeafCapacity(),
                   .copy = kPlainCopy ? nullptr : &Copy,
                   .relocate = kPlainMove ? nullptr : &Relocate,
                   .destroy = kPlainDestroy ? nullptr : &Destroy};
  }

 private:
  // Leaves of about 512 bytes: a path copy then costs little, and malloc serves them from its
  // thread cache. Boxes cost a touched cache line each when a leaf is copied: fewer of them.
  static constexpr std::uint16_t LeafCapacity() {
    if (kBoxed) return 16;
    const std::size_t fitting = 512 / sizeof(Stored);
    return static_cast<std::uint16_t>(fitting > 64 ? 64 : fitting);
  }

  static void Copy(void* to, const void* from, std::size_t count) noexcept {
    auto* source = static_cast<const Stored*>(from);
    if constexpr (kBoxed) {
      for (std::size_t i = 0; i < count; ++i) AddRef(source[i]->refs);
    }
    std::uninitialized_copy_n(source, count, static_cast<Stored*>(to));
  }

  static void Relocate(void* to, void* from, std::size_t count) noexcept {
    auto* source = static_cast<Stored*>(from);
    auto* target = static_cast<Stored*>(to);
    if (target < source) {
      for (std::size_t i = 0; i < count; ++i) RelocateOne(target + i, source + i);
    } else {
      for (std::size_t i = count; i-- > 0;) RelocateOne(target + i, source + i);
    }
  }

  static void RelocateOne(Stored* to, Stored* from) noexcept {
    ::new (static_cast<void*>(to)) Stored(std::move(*from));
    std::destroy_at(from);
  }

  static void Destroy(void* slots, std::size_t count) noexcept {
    auto* stored = static_cast<Stored*>(slots);
    if constexpr (kBoxed) {
      for (std::size_t i = 0; i < count; ++i) {
        if (DropRef(stored[i]->refs)) delete stored[i];
      }
    } else {
      std::destroy_n(stored, count);
    }
  }
};

void CopySlots(const SlotOps& ops, void* to, const void* from, std::size_t count) noexcept;
void RelocateSlots(const SlotOps& ops, void* to, void* from, std::size_t count) noexcept;

inline void DestroySlots(const SlotOps& ops, void* slots, std::size_t count) noexcept {
  if (ops.destroy != nullptr) ops.destroy(slots, count);
}

}  // namespace zeze::internal
