// InlineVector: up to a fixed number of elements inside the object. Copying it copies those that
// there are, not the room.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "zeze/base/check.h"

namespace zeze::internal {

template <typename T, std::size_t kCapacity>
class InlineVector {
 public:
  InlineVector() noexcept = default;
  InlineVector(const InlineVector& other) : size_(other.size_) {
    if constexpr (kPlain) {
      std::memcpy(room_, other.room_, size_ * sizeof(T));
    } else {
      std::uninitialized_copy_n(other.begin(), size_, begin());
    }
  }
  InlineVector(InlineVector&& other) noexcept { Take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      InlineVector copy(other);
      *this = std::move(copy);
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      clear();
      Take(other);
    }
    return *this;
  }
  ~InlineVector() { clear(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kCapacity; }
  T* begin() { return std::launder(reinterpret_cast<T*>(room_)); }
  T* end() { return begin() + size_; }
  const T* begin() const { return std::launder(reinterpret_cast<const T*>(room_)); }
  const T* end() const { return begin() + size_; }
  T& operator[](std::size_t index) { return begin()[index]; }
  const T& operator[](std::size_t index) const { return begin()[index]; }
  const T& back() const { return begin()[size_ - 1]; }

  // There must be room.
  void insert(T* before, T value) {
    ZEZE_CHECK(!full());
    if constexpr (kPlain) {
      const auto behind = static_cast<std::size_t>(end() - before);
      std::memmove(static_cast<void*>(before + 1), before, behind * sizeof(T));
      ::new (static_cast<void*>(before)) T(std::move(value));
      ++size_;
    } else {
      ::new (static_cast<void*>(end())) T(std::move(value));
      ++size_;
      std::rotate(before, end() - 1, end());
    }
  }
  void erase(T* at) {
    std::move(at + 1, end(), at);
    pop_back();
  }
  void pop_back() {
    --size_;
    std::destroy_at(end());
  }
  void clear() {
    std::destroy_n(begin(), size_);
    size_ = 0;
  }

 private:
  // The bytes say it all. Algorithms of the library ask for more: that construction is trivial too.
  static constexpr bool kPlain = std::is_trivially_copyable_v<T>;

  void Take(InlineVector& other) noexcept {
    size_ = other.size_;
    if constexpr (kPlain) {
      std::memcpy(room_, other.room_, size_ * sizeof(T));
    } else {
      std::uninitialized_move_n(other.begin(), size_, begin());
    }
    other.clear();
  }

  std::size_t size_ = 0;
  alignas(T) std::byte room_[kCapacity * sizeof(T)];
};

}  // namespace zeze::internal
