// FormatFields, FormatValue: beans as text for logs and tools, in the form of JSON.
//
//   {"level":3,"name":"ann","items":[{"id":7}],"bag":{"7":{"count":1}},"extra":null}
//
// Binaries are hexadecimal, keys of maps are strings, a dynamic variable is null or
// {"type":name,"value":bean}, and numbers that JSON does not have are "NaN", "Infinity" and
// "-Infinity".

#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"

namespace zeze {

namespace internal {

void AppendText(std::string& out, bool value);
void AppendText(std::string& out, std::int64_t value);
void AppendText(std::string& out, float value);
void AppendText(std::string& out, double value);
void AppendText(std::string& out, const std::string& value);
void AppendText(std::string& out, const Binary& value);
void AppendText(std::string& out, const Decimal& value);
void AppendText(std::string& out, const Id128& value);
void AppendText(std::string& out, const AnyBean& value);
void AppendQuoted(std::string& out, std::string_view text);
// A comma unless it is the first, and the quoted name with a colon.
void AppendName(std::string& out, std::string_view name);
// A comma unless it is the first.
void AppendSeparator(std::string& out);

template <std::signed_integral T>
void AppendText(std::string& out, T value) {
  AppendText(out, static_cast<std::int64_t>(value));
}

template <VectorValue V>
void AppendText(std::string& out, const V& vector) {
  out += '[';
  for (std::size_t i = 0; i < V::kDimension; ++i) {
    AppendSeparator(out);
    AppendText(out, ComponentOf(vector, i));
  }
  out += ']';
}

template <typename T>
  requires requires(const T& bean) {
    { bean.ToString() } -> std::convertible_to<std::string>;
  }
void AppendText(std::string& out, const T& bean) {
  out += bean.ToString();
}

template <typename T>
void AppendText(std::string& out, const List<T>& values);
template <typename T>
void AppendText(std::string& out, const Set<T>& values);
template <typename K, typename V>
void AppendText(std::string& out, const Map<K, V>& map);
template <typename K, typename V>
void AppendText(std::string& out, const SortedMap<K, V>& map);
template <DynamicType D>
void AppendText(std::string& out, const D& dynamic);

template <typename Values>
void AppendElements(std::string& out, const Values& values) {
  out += '[';
  for (const auto& value : values) {
    AppendSeparator(out);
    AppendText(out, value);
  }
  out += ']';
}

template <typename K>
void AppendKey(std::string& out, const K& key) {
  if constexpr (std::convertible_to<const K&, std::string_view>) {
    AppendName(out, key);
  } else {
    std::string text;
    AppendText(text, key);
    AppendName(out, text);
  }
}

template <typename M>
void AppendEntries(std::string& out, const M& map) {
  out += '{';
  for (const auto& entry : map) {
    AppendKey(out, entry.key);
    AppendText(out, entry.value);
  }
  out += '}';
}

template <typename T>
void AppendText(std::string& out, const List<T>& values) {
  AppendElements(out, values);
}

template <typename T>
void AppendText(std::string& out, const Set<T>& values) {
  AppendElements(out, values);
}

template <typename K, typename V>
void AppendText(std::string& out, const Map<K, V>& map) {
  AppendEntries(out, map);
}

template <typename K, typename V>
void AppendText(std::string& out, const SortedMap<K, V>& map) {
  AppendEntries(out, map);
}

template <DynamicType D>
void AppendText(std::string& out, const D& dynamic) {
  const bool held = dynamic.Visit([&out](const auto& bean) {
    out += "{\"type\":";
    AppendQuoted(out, std::remove_cvref_t<decltype(bean)>::kFullName);
    out += ",\"value\":";
    AppendText(out, bean);
    out += '}';
  });
  if (!held) out += "null";
}

}  // namespace internal

// Any value that a variable of a bean can have.
template <typename T>
std::string FormatValue(const T& value) {
  std::string out;
  internal::AppendText(out, value);
  return out;
}

// All variables of a bean, those of its base last.
template <BeanType B>
std::string FormatFields(const B& bean) {
  std::string out = "{";
  B::ForEachField([&](const Field& field, auto member) {
    internal::AppendName(out, field.name);
    internal::AppendText(out, bean.*member);
  });
  if constexpr (HasBaseBean<B>) {
    internal::AppendName(out, "base");
    internal::AppendText(out, bean.base);
  }
  out += '}';
  return out;
}

}  // namespace zeze
