// WalkPage: how many rows a walk asks for at once, so that a page is neither tiny nor huge.

#pragma once

#include <algorithm>
#include <cstddef>

namespace zeze {

class WalkPage {
 public:
  explicit WalkPage(bool keys_only) : rows_(keys_only ? 1024 : 64) {}

  std::size_t rows() const { return rows_; }

  // The last page had that many rows and bytes.
  void Adapt(std::size_t rows, std::size_t bytes) {
    constexpr std::size_t kPageBytes = std::size_t{1} << 20;
    constexpr std::size_t kRowsMax = 4096;
    const std::size_t fitting = kPageBytes / std::max<std::size_t>(1, bytes / rows + 1);
    // At most doubled: the next rows may be larger.
    rows_ = std::clamp<std::size_t>(fitting, 1, std::min(kRowsMax, rows_ * 2));
  }

 private:
  std::size_t rows_;
};

}  // namespace zeze
