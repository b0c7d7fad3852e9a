// EqualFields, CompareFields, HashFields, HasNegativeFields: what generated beans and beankeys
// define their operators with (see field.h for the pattern, codec.h includes this).

#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/decimal.h"

namespace zeze {

// Every variable, the base and the kept unknown fields are equal. A NaN equals itself: a record
// that holds one is not changed for ever.
template <BeanType B>
bool EqualFields(const B& a, const B& b) {
  bool equal = true;
  B::ForEachField(
      [&](const Field&, auto member) { equal = equal && SameKey(a.*member, b.*member); });
  if constexpr (HasBaseBean<B>) equal = equal && a.base == b.base;
  if constexpr (HasUnknownFields<B>) equal = equal && a.unknown_fields == b.unknown_fields;
  return equal;
}

// The order of beankeys: variable by variable in order of ids; NaN behind everything, decimals by
// their text.
template <BeanType B>
std::weak_ordering CompareFields(const B& a, const B& b) {
  std::weak_ordering order = std::weak_ordering::equivalent;
  B::ForEachField([&](const Field&, auto member) {
    if (order == 0) order = CompareKeys(a.*member, b.*member);
  });
  return order;
}

// For the std::hash of a beankey.
template <BeanType B>
std::size_t HashFields(const B& key) {
  std::uint64_t hash = CombinedHashStart();
  B::ForEachField(
      [&](const Field&, auto member) { hash = CombineHash(hash, HashKey(key.*member)); });
  return static_cast<std::size_t>(hash);
}

namespace internal {

bool IsNegativeDecimal(const std::string& text);

template <typename T>
bool HasNegativeValue(const List<T>& values);
template <typename T>
bool HasNegativeValue(const Set<T>& values);
template <typename K, typename V>
bool HasNegativeValue(const Map<K, V>& map);
template <typename K, typename V>
bool HasNegativeValue(const SortedMap<K, V>& map);
template <DynamicType D>
bool HasNegativeValue(const D& dynamic);

template <typename T>
bool HasNegativeValue(const T& value) {
  if constexpr (std::same_as<T, Decimal>) {
    return IsNegativeDecimal(value.text);
  } else if constexpr (std::signed_integral<T> && sizeof(T) > 1) {
    return value < 0;
  } else if constexpr (requires { value.HasNegative(); }) {
    return value.HasNegative();
  } else {
    return false;
  }
}

template <typename T>
bool HasNegativeValue(const List<T>& values) {
  for (const T& value : values) {
    if (HasNegativeValue(value)) return true;
  }
  return false;
}

template <typename T>
bool HasNegativeValue(const Set<T>& values) {
  for (const T& value : values) {
    if (HasNegativeValue(value)) return true;
  }
  return false;
}

template <typename M>
bool HasNegativeEntry(const M& map) {
  for (const auto& entry : map) {
    if (HasNegativeValue(entry.key) || HasNegativeValue(entry.value)) return true;
  }
  return false;
}

template <DynamicType D>
bool HasNegativeValue(const D& dynamic) {
  bool negative = false;
  dynamic.Visit([&](const auto& bean) { negative = HasNegativeValue(bean); });
  return negative;
}

template <typename K, typename V>
bool HasNegativeValue(const Map<K, V>& map) {
  return HasNegativeEntry(map);
}

template <typename K, typename V>
bool HasNegativeValue(const SortedMap<K, V>& map) {
  return HasNegativeEntry(map);
}

}  // namespace internal

// Whether a short, int, long or decimal below zero is in a variable, an element, a key or a nested
// bean, variables with allow_negative left out. For checks of what clients send.
template <BeanType B>
bool HasNegativeFields(const B& bean) {
  bool negative = false;
  B::ForEachField([&](const Field& field, auto member) {
    if (!field.allow_negative && !negative) negative = internal::HasNegativeValue(bean.*member);
  });
  if constexpr (HasBaseBean<B>) negative = negative || bean.base.HasNegative();
  return negative;
}

}  // namespace zeze
