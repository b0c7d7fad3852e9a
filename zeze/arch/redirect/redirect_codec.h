// RedirectCodec: parameters and results of redirected methods as bytes.
//
//   ByteWriter out;
//   RedirectCodec<std::int64_t>::Write(out, role);
//   RedirectCodec<BValue>::Write(out, value);      // One behind the other, without tags.
//
// The bytes are those of Zeze 1.6.3; 1.7 puts a mask before them and cannot be spoken with.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {

// kBytesMin: what a value takes at least, so that a count can be held against the bytes behind it.
// Write appends the value. Read fails in `in`; input is hostile.
template <typename T>
struct RedirectCodec;

// What can be a parameter: bool, signed integers, float, double, std::string, Binary, beans,
// Dynamic, and std::vector, std::set, std::map, List, Set, Map, SortedMap of them.
template <typename T>
concept RedirectValue = requires(ByteWriter& out, ByteReader& in, const T& from, T& to) {
  RedirectCodec<T>::Write(out, from);
  RedirectCodec<T>::Read(in, to);
};

template <>
struct RedirectCodec<bool> {
  static constexpr std::size_t kBytesMin = 1;
  static void Write(ByteWriter& out, bool value) { out.WriteBool(value); }
  static void Read(ByteReader& in, bool& value) { value = in.ReadByte() != 0; }
};

template <std::signed_integral T>
struct RedirectCodec<T> {
  static constexpr std::size_t kBytesMin = 1;
  static void Write(ByteWriter& out, T value) { out.WriteLong(value); }
  static void Read(ByteReader& in, T& value) {
    const std::int64_t number = in.ReadLong();
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      in.Fail("a number that its type cannot hold");
      return;
    }
    value = static_cast<T>(number);
  }
};

template <>
struct RedirectCodec<float> {
  static constexpr std::size_t kBytesMin = 4;
  static void Write(ByteWriter& out, float value) { out.WriteFloat(value); }
  static void Read(ByteReader& in, float& value) { value = in.ReadFloat(); }
};

template <>
struct RedirectCodec<double> {
  static constexpr std::size_t kBytesMin = 8;
  static void Write(ByteWriter& out, double value) { out.WriteDouble(value); }
  static void Read(ByteReader& in, double& value) { value = in.ReadDouble(); }
};

template <>
struct RedirectCodec<std::string> {
  static constexpr std::size_t kBytesMin = 1;
  static void Write(ByteWriter& out, const std::string& value) { out.WriteBytes(value); }
  static void Read(ByteReader& in, std::string& value) { value = in.ReadBytes(); }
};

template <>
struct RedirectCodec<Binary> {
  static constexpr std::size_t kBytesMin = 1;
  static void Write(ByteWriter& out, const Binary& value) { out.WriteBytes(value.bytes); }
  static void Read(ByteReader& in, Binary& value) { value.bytes = in.ReadBytes(); }
};

template <BeanType B>
struct RedirectCodec<B> {
  static constexpr std::size_t kBytesMin = 1;
  static void Write(ByteWriter& out, const B& value) { value.Encode(out); }
  static void Read(ByteReader& in, B& value) { value.Decode(in); }
};

// The type id, 0 if it is empty, and the bean.
template <typename Choices>
struct RedirectCodec<Dynamic<Choices>> {
  static constexpr std::size_t kBytesMin = 2;
  static void Write(ByteWriter& out, const Dynamic<Choices>& value) {
    out.WriteLong(value.type_id());
    if (!value.Visit([&out](const auto& bean) { bean.Encode(out); })) out.WriteEnd();
  }
  static void Read(ByteReader& in, Dynamic<Choices>& value) {
    value.Clear();
    const std::int64_t type_id = in.ReadLong();
    if (type_id == 0) return in.Skip(TypeCode::kBean);
    if (!value.SetById(type_id, [&in](auto& bean) { bean.Decode(in); })) {
      in.Fail("a bean of a type that this variable cannot hold");
    }
  }
};

namespace internal {

// Count, then the elements in the order of iteration.
template <typename Container, typename Element, typename Add>
void ReadRedirectElements(ByteReader& in, Container& to, Add add) {
  to = Container{};
  for (std::size_t n = in.ReadCount(RedirectCodec<Element>::kBytesMin); n > 0 && in.ok(); --n) {
    Element element{};
    RedirectCodec<Element>::Read(in, element);
    if (in.ok()) add(std::move(element));
  }
}

template <typename Container>
struct RedirectSequenceCodec {
  using Element = typename Container::value_type;
  static constexpr std::size_t kBytesMin = 1;
  static void Write(ByteWriter& out, const Container& value) {
    out.WriteUint(static_cast<std::uint32_t>(value.size()));
    for (const Element& element : value) RedirectCodec<Element>::Write(out, element);
  }
  static void Read(ByteReader& in, Container& value) {
    ReadRedirectElements<Container, Element>(in, value, [&value](Element element) {
      if constexpr (requires { value.PushBack(std::move(element)); }) {
        value.PushBack(std::move(element));
      } else if constexpr (requires { value.push_back(std::move(element)); }) {
        value.push_back(std::move(element));
      } else if constexpr (requires { value.Add(std::move(element)); }) {
        value.Add(std::move(element));
      } else {
        value.insert(std::move(element));
      }
    });
  }
};

template <typename Container>
struct RedirectMapCodec {
  using Key = typename Container::key_type;
  using Mapped = typename Container::mapped_type;
  static constexpr std::size_t kBytesMin = 1;
  static constexpr std::size_t kEntryBytesMin =
      RedirectCodec<Key>::kBytesMin + RedirectCodec<Mapped>::kBytesMin;

  static void Write(ByteWriter& out, const Container& value) {
    out.WriteUint(static_cast<std::uint32_t>(value.size()));
    for (const auto& entry : value) {
      if constexpr (requires { entry.first; }) {
        RedirectCodec<Key>::Write(out, entry.first);
        RedirectCodec<Mapped>::Write(out, entry.second);
      } else {
        RedirectCodec<Key>::Write(out, entry.key);
        RedirectCodec<Mapped>::Write(out, entry.value);
      }
    }
  }
  static void Read(ByteReader& in, Container& value) {
    value = Container{};
    for (std::size_t n = in.ReadCount(kEntryBytesMin); n > 0 && in.ok(); --n) {
      Key key{};
      Mapped mapped{};
      RedirectCodec<Key>::Read(in, key);
      RedirectCodec<Mapped>::Read(in, mapped);
      if (!in.ok()) return;
      if constexpr (requires { value.insert_or_assign(std::move(key), std::move(mapped)); }) {
        value.insert_or_assign(std::move(key), std::move(mapped));
      } else {
        value.Put(std::move(key), std::move(mapped));
      }
    }
  }
};

}  // namespace internal

template <RedirectValue T>
struct RedirectCodec<std::vector<T>> : internal::RedirectSequenceCodec<std::vector<T>> {
  static_assert(!std::is_same_v<T, bool>, "a std::vector<bool> has no elements: use List<bool>");
};
template <RedirectValue T>
struct RedirectCodec<std::set<T>> : internal::RedirectSequenceCodec<std::set<T>> {};
template <RedirectValue T>
struct RedirectCodec<List<T>> : internal::RedirectSequenceCodec<List<T>> {};
template <RedirectValue T>
struct RedirectCodec<Set<T>> : internal::RedirectSequenceCodec<Set<T>> {};
template <RedirectValue K, RedirectValue V>
struct RedirectCodec<std::map<K, V>> : internal::RedirectMapCodec<std::map<K, V>> {};
template <RedirectValue K, RedirectValue V>
struct RedirectCodec<Map<K, V>> : internal::RedirectMapCodec<Map<K, V>> {};
template <RedirectValue K, RedirectValue V>
struct RedirectCodec<SortedMap<K, V>> : internal::RedirectMapCodec<SortedMap<K, V>> {};

// A result of several values: a struct that names them in their order.
//
//   struct Position {
//     std::int32_t place = 0;
//     bool estimated = false;
//     static constexpr auto RedirectFields() {
//       return std::tuple(&Position::place, &Position::estimated);
//     }
//   };
template <typename T>
concept RedirectStruct = requires { T::RedirectFields(); };

// The result of a method that has none.
struct RedirectNothing {
  bool operator==(const RedirectNothing&) const = default;
};

// A whole result, alone in its bytes: texts and binaries need no length.
template <typename T>
concept RedirectResult =
    std::signed_integral<T> || std::same_as<T, bool> || std::same_as<T, std::string> ||
    std::same_as<T, Binary> || std::same_as<T, RedirectNothing> || BeanType<T> || RedirectStruct<T>;

template <RedirectResult R>
void WriteRedirectResult(ByteWriter& out, const R& result) {
  if constexpr (std::same_as<R, RedirectNothing>) {
    (void)out;
    (void)result;
  } else if constexpr (std::same_as<R, std::string>) {
    out.WriteRaw(result);
  } else if constexpr (std::same_as<R, Binary>) {
    out.WriteRaw(result.bytes);
  } else if constexpr (RedirectStruct<R>) {
    std::apply(
        [&](auto... member) {
          (RedirectCodec<std::remove_cvref_t<decltype(result.*member)>>::Write(out, result.*member),
           ...);
        },
        R::RedirectFields());
  } else {
    RedirectCodec<R>::Write(out, result);
  }
}

// Fails in `in` unless the bytes are exactly one result.
template <RedirectResult R>
void ReadRedirectResult(ByteReader& in, R& result) {
  if constexpr (std::same_as<R, RedirectNothing>) {
    // Whatever a method of another version may say: nobody asked.
    (void)result;
    (void)in.ReadRaw(in.remaining());
  } else if constexpr (std::same_as<R, std::string>) {
    result = in.ReadRaw(in.remaining());
  } else if constexpr (std::same_as<R, Binary>) {
    result.bytes = in.ReadRaw(in.remaining());
  } else if constexpr (RedirectStruct<R>) {
    std::apply(
        [&](auto... member) {
          (RedirectCodec<std::remove_cvref_t<decltype(result.*member)>>::Read(in, result.*member),
           ...);
        },
        R::RedirectFields());
  } else {
    RedirectCodec<R>::Read(in, result);
  }
  if (in.ok() && in.remaining() > 0) in.Fail("bytes behind the result");
}

// All parameters of a method, without the hash.
template <RedirectValue... P>
void WriteRedirectParameters(ByteWriter& out, const std::tuple<P...>& parameters) {
  std::apply([&](const P&... value) { (RedirectCodec<P>::Write(out, value), ...); }, parameters);
}

// Fails in `in` unless the bytes are exactly these parameters.
template <RedirectValue... P>
void ReadRedirectParameters(ByteReader& in, std::tuple<P...>& parameters) {
  std::apply([&](P&... value) { (RedirectCodec<P>::Read(in, value), ...); }, parameters);
  if (in.ok() && in.remaining() > 0) {
    in.Fail("bytes behind the parameters: does the caller declare the method in the same way?");
  }
}

}  // namespace zeze::arch
