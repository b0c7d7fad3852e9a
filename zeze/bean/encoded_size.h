// EncodedSize: how many bytes the encoding of a value takes at most, without encoding it.
//
//   std::size_t at_most = EncodedSize<BRole>::Of(role);
//   role.names.PushBack("eve");
//   std::ptrdiff_t more = EncodedSize<BRole>::Change(role, before);   // Of(role) - Of(before)
//
// Never too low; too high by the numbers, which are counted with as many bytes as their type can
// take. Change costs about as much as the two values differ: it passes over what containers share.
// Of a list that lost elements at its beginning and got others at its end it looks at all elements.

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
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
//   kFixed          what any value takes at most; 0 if there is no such bound
//   Of(v)           what this value takes at most, without a tag
//   Change(v, old)  Of(v) - Of(old)
//
// The primary template is for classes that encode themselves.
template <typename T>
struct EncodedSize {
  static constexpr std::size_t kFixed = 0;
  static std::size_t Of(const T& value) {
    ByteWriter out;
    value.Encode(out);
    return out.size();
  }
  static std::ptrdiff_t Change(const T& value, const T& older) {
    return static_cast<std::ptrdiff_t>(Of(value)) - static_cast<std::ptrdiff_t>(Of(older));
  }
};

namespace internal {

inline constexpr std::size_t kVarintBytesMax = 9;

constexpr std::ptrdiff_t Signed(std::size_t bytes) {
  return static_cast<std::ptrdiff_t>(bytes);
}

template <std::size_t bytes>
struct FixedSize {
  static constexpr std::size_t kFixed = bytes;
  template <typename T>
  static constexpr std::size_t Of(const T&) {
    return bytes;
  }
  template <typename T>
  static constexpr std::ptrdiff_t Change(const T&, const T&) {
    return 0;
  }
};

inline std::size_t TextBytes(const std::string& value) {
  return value.size();
}
inline std::size_t TextBytes(const Binary& value) {
  return value.bytes.size();
}
inline std::size_t TextBytes(const Decimal& value) {
  return value.text.size();
}
inline std::size_t TextBytes(const AnyBean& value) {
  return value.bytes().size() + 1;
}

// Bytes behind a number: their length, or the id of a type.
template <typename T>
struct TextSize {
  static constexpr std::size_t kFixed = 0;
  static std::size_t Of(const T& value) { return kVarintBytesMax + TextBytes(value); }
  static std::ptrdiff_t Change(const T& value, const T& older) {
    return Signed(TextBytes(value)) - Signed(TextBytes(older));
  }
};

// Count and types of the elements.
inline constexpr std::size_t kContainerBytesMax = kVarintBytesMax + 2;

template <std::size_t element, typename C>
std::ptrdiff_t CountChange(const C& value, const C& older) {
  return (Signed(value.size()) - Signed(older.size())) * Signed(element);
}

template <typename C>
struct ElementsSize {
  using Element = EncodedSize<typename C::value_type>;
  static constexpr std::size_t kFixed = 0;

  static std::size_t Of(const C& value) {
    std::size_t sum = kContainerBytesMax;
    if constexpr (Element::kFixed != 0) {
      sum += value.size() * Element::kFixed;
    } else {
      for (const auto& element : value) sum += Element::Of(element);
    }
    return sum;
  }
};

template <typename M>
struct MapSize {
  using Key = EncodedSize<typename M::key_type>;
  using Mapped = EncodedSize<typename M::mapped_type>;
  static constexpr std::size_t kFixed = 0;

  static std::size_t Of(const M& value) {
    std::size_t sum = kContainerBytesMax;
    if constexpr (Key::kFixed != 0 && Mapped::kFixed != 0) {
      sum += value.size() * (Key::kFixed + Mapped::kFixed);
    } else {
      for (const auto& entry : value) sum += Key::Of(entry.key) + Mapped::Of(entry.value);
    }
    return sum;
  }
  static std::ptrdiff_t Change(const M& value, const M& older) {
    if constexpr (Key::kFixed != 0 && Mapped::kFixed != 0) {
      return CountChange<Key::kFixed + Mapped::kFixed>(value, older);
    } else {
      std::ptrdiff_t sum = 0;
      value.ForEachChangeSince(older, [&sum](const auto* was, const auto* is, const auto& key) {
        if (was != nullptr && is != nullptr) {
          sum += Mapped::Change(*is, *was);
        } else if (is != nullptr) {
          sum += Signed(Key::Of(key) + Mapped::Of(*is));
        } else {
          sum -= Signed(Key::Of(key) + Mapped::Of(*was));
        }
      });
      return sum;
    }
  }
};

constexpr std::size_t TagBytesMax(const Field& field) {
  return field.id < 15 ? 1 : 3;
}

// What does not depend on the value: the end, tags, and variables that have a bound.
template <typename B>
constexpr std::size_t FixedPartBytes() {
  std::size_t sum = 1;
  B::ForEachField([&](const Field& field, auto member) {
    using Variable = typename MemberOf<decltype(member)>::ValueT;
    if (!field.transient) sum += TagBytesMax(field) + EncodedSize<Variable>::kFixed;
  });
  return sum;
}

// 0 if the bean has a variable without a bound.
template <typename B>
constexpr std::size_t FixedBeanBytes() {
  std::size_t sum = FixedPartBytes<B>();
  bool fixed = !HasUnknownFields<B>;
  B::ForEachField([&](const Field& field, auto member) {
    using Variable = typename MemberOf<decltype(member)>::ValueT;
    fixed = fixed && (field.transient || EncodedSize<Variable>::kFixed != 0);
  });
  if constexpr (HasBaseBean<B>) {
    fixed = fixed && EncodedSize<typename B::Base>::kFixed != 0;
    sum += EncodedSize<typename B::Base>::kFixed;
  }
  return fixed ? sum : 0;
}

}  // namespace internal

template <>
struct EncodedSize<bool> : internal::FixedSize<1> {};
template <std::signed_integral T>
struct EncodedSize<T> : internal::FixedSize<sizeof(T) + 1> {};
template <>
struct EncodedSize<float> : internal::FixedSize<4> {};
template <>
struct EncodedSize<double> : internal::FixedSize<8> {};
// A component of whole numbers is a varint.
template <VectorValue V>
struct EncodedSize<V> : internal::FixedSize<(sizeof(typename V::Component) + 1) * V::kDimension> {};

template <>
struct EncodedSize<std::string> : internal::TextSize<std::string> {};
template <>
struct EncodedSize<Binary> : internal::TextSize<Binary> {};
template <>
struct EncodedSize<Decimal> : internal::TextSize<Decimal> {};
template <>
struct EncodedSize<AnyBean> : internal::TextSize<AnyBean> {};

template <typename T>
struct EncodedSize<List<T>> : internal::ElementsSize<List<T>> {
  static std::ptrdiff_t Change(const List<T>& value, const List<T>& older) {
    if constexpr (EncodedSize<T>::kFixed != 0) {
      return internal::CountChange<EncodedSize<T>::kFixed>(value, older);
    } else {
      if (value.IsSameAs(older)) return 0;
      const std::size_t prefix = value.CommonPrefix(older);
      const std::size_t suffix = value.CommonSuffix(older, prefix);
      const auto between = [&](const List<T>& list) {
        std::size_t sum = 0;
        for (std::size_t i = prefix; i + suffix < list.size(); ++i) {
          sum += EncodedSize<T>::Of(list[i]);
        }
        return internal::Signed(sum);
      };
      return between(value) - between(older);
    }
  }
};

template <typename T>
struct EncodedSize<Set<T>> : internal::ElementsSize<Set<T>> {
  static std::ptrdiff_t Change(const Set<T>& value, const Set<T>& older) {
    if constexpr (EncodedSize<T>::kFixed != 0) {
      return internal::CountChange<EncodedSize<T>::kFixed>(value, older);
    } else {
      std::ptrdiff_t sum = 0;
      value.ForEachChangeSince(older, [&sum](const T& element, bool added) {
        const std::ptrdiff_t bytes = internal::Signed(EncodedSize<T>::Of(element));
        sum += added ? bytes : -bytes;
      });
      return sum;
    }
  }
};

template <typename K, typename V>
struct EncodedSize<Map<K, V>> : internal::MapSize<Map<K, V>> {};
template <typename K, typename V>
struct EncodedSize<SortedMap<K, V>> : internal::MapSize<SortedMap<K, V>> {};

template <DynamicType D>
struct EncodedSize<D> {
  static constexpr std::size_t kFixed = 0;

  static std::size_t Of(const D& value) {
    std::size_t sum = internal::kVarintBytesMax + 1;
    value.Visit([&sum](const auto& bean) {
      sum += EncodedSize<std::remove_cvref_t<decltype(bean)>>::Of(bean);
    });
    return sum;
  }
  static std::ptrdiff_t Change(const D& value, const D& older) {
    if (value.IsSameAs(older)) return 0;
    if (value.type_id() != older.type_id()) {
      return internal::Signed(Of(value)) - internal::Signed(Of(older));
    }
    std::ptrdiff_t change = 0;
    value.Visit([&](const auto& bean) {
      using Bean = std::remove_cvref_t<decltype(bean)>;
      change = EncodedSize<Bean>::Change(bean, *older.template As<Bean>());
    });
    return change;
  }
};

template <BeanType B>
struct EncodedSize<B> {
  static constexpr std::size_t kFixed = internal::FixedBeanBytes<B>();
  static constexpr std::size_t kFixedPart = internal::FixedPartBytes<B>();

  static std::size_t Of(const B& bean) {
    if constexpr (kFixed != 0) return kFixed;
    std::size_t sum = kFixedPart;
    B::ForEachField([&](const Field& field, auto member) {
      using Variable = typename MemberOf<decltype(member)>::ValueT;
      if constexpr (EncodedSize<Variable>::kFixed == 0) {
        if (!field.transient) sum += EncodedSize<Variable>::Of(bean.*member);
      }
    });
    if constexpr (HasUnknownFields<B>) sum += bean.unknown_fields.encoded_bytes();
    if constexpr (HasBaseBean<B>) sum += EncodedSize<typename B::Base>::Of(bean.base);
    return sum;
  }

  static std::ptrdiff_t Change(const B& bean, const B& older) {
    if constexpr (kFixed != 0) return 0;
    std::ptrdiff_t sum = 0;
    B::ForEachField([&](const Field& field, auto member) {
      using Variable = typename MemberOf<decltype(member)>::ValueT;
      if constexpr (EncodedSize<Variable>::kFixed == 0) {
        if (!field.transient) sum += EncodedSize<Variable>::Change(bean.*member, older.*member);
      }
    });
    if constexpr (HasUnknownFields<B>) {
      sum += internal::Signed(bean.unknown_fields.encoded_bytes()) -
             internal::Signed(older.unknown_fields.encoded_bytes());
    }
    if constexpr (HasBaseBean<B>)
      sum += EncodedSize<typename B::Base>::Change(bean.base, older.base);
    return sum;
  }
};

}  // namespace zeze
