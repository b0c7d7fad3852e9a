// StableSort: sorts, and keeps the order of elements that are equal.
//
//   StableSort(entries, [](const Entry& a, const Entry& b) { return a.score > b.score; });
//
// std::stable_sort of GCC 12 uses a deprecated buffer, which Clang reports as a warning in the
// programs of those who include a header that calls it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace zeze {

template <typename Value, typename Less>
void StableSort(std::vector<Value>& values, const Less& less) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    if (less(values[left], values[right])) return true;
    return left < right && !less(values[right], values[left]);
  });
  std::vector<Value> sorted;
  sorted.reserve(values.size());
  for (const std::size_t index : order) sorted.push_back(std::move(values[index]));
  values = std::move(sorted);
}

}  // namespace zeze
