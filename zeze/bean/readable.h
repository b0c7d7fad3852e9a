// Readable: whether readers surely accept a value, because they accepted an older one.
//
//   bool surely = Readable<BRole>::Since(role, before);   // False: encode it, which says why not.
//
// Only decimals that are no numbers and beans that are nested too deep are refused (schema.h:
// CanBeUnreadable). The question costs about as much as the two values differ: it passes over what
// containers share, and over types all of whose values are readable.

#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/vector.h"

namespace zeze {

// For each type of variable:
//   kAlways                every value is readable, wherever it stands
//   Since(v, old, depth)   `v` surely is, in the place where `old` is, inside `depth` beans
//
// The primary template is for classes that encode themselves.
template <typename T>
struct Readable {
  static constexpr bool kAlways = false;
  static bool Since(const T& value, const T& older, int) {
    if constexpr (std::equality_comparable<T>) {
      return value == older;
    } else {
      return false;
    }
  }
};

namespace internal {

struct AlwaysReadable {
  static constexpr bool kAlways = true;
  template <typename T>
  static constexpr bool Since(const T&, const T&, int) {
    return true;
  }
};

template <typename C>
struct ReadableElements {
  static constexpr bool kAlways = Readable<typename C::value_type>::kAlways;
  static bool Since(const C& value, const C& older, int) {
    return kAlways || value.IsSameAs(older);
  }
};

template <typename M>
struct ReadableMap {
  using Key = typename M::key_type;
  using Mapped = typename M::mapped_type;
  static constexpr bool kAlways = Readable<Key>::kAlways && Readable<Mapped>::kAlways;

  static bool Since(const M& value, const M& older, int depth) {
    if (kAlways || value.IsSameAs(older)) return true;
    bool readable = true;
    value.ForEachChangeSince(older, [&](const auto* was, const auto* is, const auto&) {
      if (!readable || is == nullptr) return;
      readable = was != nullptr && Readable<Mapped>::Since(*is, *was, depth);
    });
    return readable;
  }
};

}  // namespace internal

template <typename T>
  requires(std::integral<T> || std::floating_point<T> || VectorValue<T>)
struct Readable<T> : internal::AlwaysReadable {};
template <>
struct Readable<std::string> : internal::AlwaysReadable {};
template <>
struct Readable<Binary> : internal::AlwaysReadable {};

template <>
struct Readable<Decimal> {
  static constexpr bool kAlways = false;
  static bool Since(const Decimal& value, const Decimal& older, int) {
    return value == older || Decimal::IsValid(value.text);
  }
};

template <>
struct Readable<AnyBean> {
  static constexpr bool kAlways = false;
  static bool Since(const AnyBean& value, const AnyBean& older, int) {
    return value.depth() <= older.depth();
  }
};

template <typename T>
struct Readable<List<T>> : internal::ReadableElements<List<T>> {};
template <typename T>
struct Readable<Set<T>> : internal::ReadableElements<Set<T>> {};
template <typename K, typename V>
struct Readable<Map<K, V>> : internal::ReadableMap<Map<K, V>> {};
template <typename K, typename V>
struct Readable<SortedMap<K, V>> : internal::ReadableMap<SortedMap<K, V>> {};

template <DynamicType D>
struct Readable<D> {
  static constexpr bool kAlways = false;

  static bool Since(const D& value, const D& older, int depth) {
    if (value.IsSameAs(older) || value.empty()) return true;
    if (value.type_id() != older.type_id()) return false;
    bool readable = false;
    value.Visit([&](const auto& bean) {
      using Bean = std::remove_cvref_t<decltype(bean)>;
      readable = Readable<Bean>::Since(bean, *older.template As<Bean>(), depth);
    });
    return readable;
  }
};

template <BeanType B>
struct Readable<B> {
  static constexpr bool kAlways = false;
  // An older value may have left out a bean at the last level. Nobody is sure near the limit.
  static constexpr int kSureDepthMax = kBeanDepthMax / 2;

  static bool Since(const B& bean, const B& older, int depth = 0) {
    bool readable = depth < kSureDepthMax;
    B::ForEachField([&](const Field& field, auto member) {
      using Variable = typename MemberOf<decltype(member)>::ValueT;
      if constexpr (!Readable<Variable>::kAlways) {
        if (readable && !field.transient) {
          readable = Readable<Variable>::Since(bean.*member, older.*member, depth + 1);
        }
      }
    });
    if constexpr (HasUnknownFields<B>) {
      readable = readable && bean.unknown_fields == older.unknown_fields;
    }
    if constexpr (HasBaseBean<B>) {
      readable = readable && Readable<typename B::Base>::Since(bean.base, older.base, depth + 1);
    }
    return readable;
  }
};

}  // namespace zeze
