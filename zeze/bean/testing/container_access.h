// ContainerAccess, TestSeed, FatValue: what the tests of the containers share.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "zeze/bean/internal/sequence.h"
#include "zeze/bean/internal/stable_iterator.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"

namespace zeze {

// Whether the nodes of a container are as they must be.
struct ContainerAccess {
  template <typename T>
  static bool IsValid(const List<T>& list) {
    return internal::SequenceIsValid(list.root_, internal::SequenceTraits<T>::Ops());
  }
  template <typename K, typename V>
  static bool IsValid(const SortedMap<K, V>& map) {
    using Entry = MapEntry<K, V>;
    return internal::SequenceIsValid(map.root_, internal::SequenceTraits<Entry>::Ops());
  }
  template <typename K, typename V>
  static bool IsValid(const Map<K, V>& map) {
    return map.table_.IsValid();
  }
  template <typename T>
  static bool IsValid(const Set<T>& set) {
    return set.table_.IsValid();
  }
};

// A random seed, or the one in ZEZE_TEST_SEED; printed, so that a failure can be repeated.
inline std::uint64_t TestSeed() {
  const char* given = std::getenv("ZEZE_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "ZEZE_TEST_SEED=" << seed << "\n";
  return seed;
}

// Too large for a node: lies in a box of its own.
struct FatValue {
  std::string name;
  std::int64_t numbers[8] = {};

  bool operator==(const FatValue& other) const {
    return name == other.name && numbers[0] == other.numbers[0];
  }
};

// Distinct values of the types that lie in a node as bytes, as objects, and in a box.
template <typename T>
T ValueOf(std::uint64_t number);
template <>
inline std::int32_t ValueOf<std::int32_t>(std::uint64_t number) {
  return static_cast<std::int32_t>(number);
}
template <>
inline std::string ValueOf<std::string>(std::uint64_t number) {
  return std::string(number % 3 * 10, 'x') + std::to_string(number);
}
template <>
inline FatValue ValueOf<FatValue>(std::uint64_t number) {
  return {ValueOf<std::string>(number), {static_cast<std::int64_t>(number)}};
}

}  // namespace zeze
