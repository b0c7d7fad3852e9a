// Field: what a bean says about each of its variables.
//
// A bean is a plain struct that describes itself once. Encoding, decoding, comparison, text,
// differences and schemas all follow from that description; generated beans look like this one, and
// a hand-written bean works just as well:
//
//   struct BItem {
//     static constexpr std::int64_t kTypeId = 1;
//     static constexpr std::string_view kFullName = "demo.Bag.BItem";
//     std::int32_t id = 0;
//     std::int32_t count = 0;
//     template <typename Visitor>
//     static constexpr void ForEachField(Visitor&& visit) {     // Ascending ids.
//       visit(zeze::Field{1, "id"}, &BItem::id);
//       visit(zeze::Field{2, "count"}, &BItem::count);
//     }
//     void Encode(zeze::ByteWriter& out) const;   // In the .cc: zeze::EncodeFields(*this, out)
//     void Decode(zeze::ByteReader& in);          // zeze::DecodeFields(*this, in)
//     bool operator==(const BItem& other) const;  // zeze::EqualFields(*this, other)
//     std::string ToString() const;               // zeze::FormatFields(*this)
//     bool HasNegative() const;                   // zeze::HasNegativeFields(*this)
//   };
//
// Optional parts, found by name:
//   zeze::UnknownFields unknown_fields;      keeps fields that a newer schema wrote;
//   using Base = BBase; BBase base;          the bean has a base, encoded behind its own fields;
//   static constexpr bool kIsKey = true;     a beankey (with operator<=> and std::hash);
//   static constexpr auto kVersion = &BItem::version;   counted up by each commit.

#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

namespace zeze {

struct Field {
  int id = 0;  // 1 to 4095, the identity in stored and sent bytes.
  const char* name = "";
  // The variable declares a default: bytes without it mean zero, not that default.
  bool zero_when_absent = false;
  bool transient = false;       // Neither encoded nor decoded.
  bool allow_negative = false;  // Left out of the check for negative numbers.
};

namespace internal {

struct AnyFieldVisitor {
  template <typename Member>
  constexpr void operator()(const Field&, Member) const {}
};

}  // namespace internal

// A struct that describes itself by ForEachField.
template <typename T>
concept BeanType = std::is_class_v<T> && requires {
  { T::kFullName } -> std::convertible_to<std::string_view>;
  T::ForEachField(internal::AnyFieldVisitor{});
};

template <typename T>
concept BeanKeyType = BeanType<T> && requires { requires T::kIsKey; };

template <typename T>
concept HasBaseBean = requires(T& bean) {
  typename T::Base;
  { bean.base } -> std::same_as<typename T::Base&>;
};

template <typename T>
concept HasUnknownFields = requires(T& bean) { bean.unknown_fields; };

// The bean of a member pointer and the type of the variable: for visitors.
template <typename Member>
struct MemberOf;
template <typename Bean, typename Value>
struct MemberOf<Value Bean::*> {
  using BeanT = Bean;
  using ValueT = Value;
};

}  // namespace zeze
