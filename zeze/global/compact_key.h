// CompactKey: the key of a record in Global's book, which has millions of them: 16 bytes, and no
// allocation for the usual key of up to 15.
//
//   CompactKey key("\1\0\0\0...");
//   key.view();

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace zeze::global {

class CompactKey {
 public:
  // Whether it takes no allocation.
  static bool Fits(std::string_view key) { return key.size() <= kInlineBytes; }

  explicit CompactKey(std::string_view key) {
    if (Fits(key)) {
      std::memcpy(bytes_.data(), key.data(), key.size());
      bytes_.back() = static_cast<char>(key.size());
      return;
    }
    char* block = new char[sizeof(std::size_t) + key.size()];
    const std::size_t size = key.size();
    std::memcpy(block, &size, sizeof size);
    std::memcpy(block + sizeof size, key.data(), size);
    std::memcpy(bytes_.data(), static_cast<const void*>(&block), sizeof block);
    bytes_.back() = kElsewhere;
  }
  CompactKey(CompactKey&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  CompactKey& operator=(CompactKey&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  CompactKey(const CompactKey&) = delete;
  CompactKey& operator=(const CompactKey&) = delete;
  ~CompactKey() {
    if (bytes_.back() == kElsewhere) delete[] Block();
  }

  // As long as this object stays where it is.
  std::string_view view() const {
    if (bytes_.back() != kElsewhere) {
      return {bytes_.data(), static_cast<std::size_t>(bytes_.back())};
    }
    const char* block = Block();
    std::size_t size = 0;
    std::memcpy(&size, block, sizeof size);
    return {block + sizeof size, size};
  }

  friend bool operator==(const CompactKey& a, const CompactKey& b) { return a.view() == b.view(); }
  friend bool operator==(const CompactKey& a, std::string_view b) { return a.view() == b; }

 private:
  static constexpr std::size_t kInlineBytes = 15;
  static constexpr char kElsewhere = 16;  // In the place of the size.

  char* Block() const {
    char* block = nullptr;
    std::memcpy(static_cast<void*>(&block), bytes_.data(), sizeof block);
    return block;
  }

  alignas(std::uint64_t) std::array<char, kInlineBytes + 1> bytes_ = {};
};

static_assert(sizeof(CompactKey) == 16);

}  // namespace zeze::global
