// ValueCodec<T>: how the value of a variable is written and read, for every type of the schema.
//
//   kCode           the type code it is written with;
//   IsZero(v)       whether a field with this value is left out (beans: FieldWriter decides);
//   Write(out, v)   the value without a tag: a payload, an element, a key;
//   Read(in, code, v)   from what was written with that code, converted; failures stay in `in`.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/internal/field_codec.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/type_code.h"
#include "zeze/serialize/vector.h"

namespace zeze::internal {

// Beans, beankeys, Id128, and hand-written classes that look like them from outside.
template <typename T>
concept EncodableType = requires(const T& written, T& read, ByteWriter& out, ByteReader& in) {
  written.Encode(out);
  read.Decode(in);
};

template <typename T>
struct ValueCodec {
  static_assert(EncodableType<T>, "this type cannot be a variable of a bean");
  static constexpr TypeCode kCode = TypeCode::kBean;

  static void Write(ByteWriter& out, const T& value) { value.Encode(out); }
  static void Read(ByteReader& in, TypeCode code, T& value) {
    if (code == TypeCode::kDynamic) {
      in.ReadLong();
    } else if (code != TypeCode::kBean) {
      in.FailType("bean", code);
      return;
    }
    value.Decode(in);
  }
};

template <>
struct ValueCodec<bool> {
  static constexpr TypeCode kCode = TypeCode::kInteger;

  static bool IsZero(bool value) { return !value; }
  static void Write(ByteWriter& out, bool value) { out.WriteBool(value); }
  static void Read(ByteReader& in, TypeCode code, bool& value) { value = in.ReadBoolAs(code); }
};

template <std::signed_integral T>
struct ValueCodec<T> {
  static constexpr TypeCode kCode = TypeCode::kInteger;

  static bool IsZero(T value) { return value == 0; }
  static void Write(ByteWriter& out, T value) { out.WriteLong(value); }
  static void Read(ByteReader& in, TypeCode code, T& value) { value = in.ReadIntegerAs<T>(code); }
};

template <>
struct ValueCodec<float> {
  static constexpr TypeCode kCode = TypeCode::kFloat;

  static bool IsZero(float value) { return value == 0; }
  static void Write(ByteWriter& out, float value) { out.WriteFloat(value); }
  static void Read(ByteReader& in, TypeCode code, float& value) { value = in.ReadFloatAs(code); }
};

template <>
struct ValueCodec<double> {
  static constexpr TypeCode kCode = TypeCode::kDouble;

  static bool IsZero(double value) { return value == 0; }
  static void Write(ByteWriter& out, double value) { out.WriteDouble(value); }
  static void Read(ByteReader& in, TypeCode code, double& value) { value = in.ReadDoubleAs(code); }
};

// Text is kept as it came, well-formed or not: storing and loading must not change it.
template <>
struct ValueCodec<std::string> {
  static constexpr TypeCode kCode = TypeCode::kBytes;

  static bool IsZero(const std::string& value) { return value.empty(); }
  static void Write(ByteWriter& out, const std::string& value) { out.WriteBytes(value); }
  static void Read(ByteReader& in, TypeCode code, std::string& value) {
    value = in.ReadBytesAs(code);
  }
};

template <>
struct ValueCodec<Binary> {
  static constexpr TypeCode kCode = TypeCode::kBytes;

  static bool IsZero(const Binary& value) { return value.bytes.empty(); }
  static void Write(ByteWriter& out, const Binary& value) { out.WriteBytes(value.bytes); }
  static void Read(ByteReader& in, TypeCode code, Binary& value) {
    value.bytes = in.ReadBytesAs(code);
  }
};

// Written even when zero: "0" is not an empty text.
template <>
struct ValueCodec<Decimal> {
  static constexpr TypeCode kCode = TypeCode::kBytes;

  static bool IsZero(const Decimal&) { return false; }
  static void Write(ByteWriter& out, const Decimal& value) { WriteDecimal(out, value.text); }
  static void Read(ByteReader& in, TypeCode code, Decimal& value) {
    ReadDecimal(in, code, value.text);
  }
};

template <VectorValue V>
struct ValueCodec<V> {
  static constexpr TypeCode kCode = V::kTypeCode;

  static bool IsZero(const V& value) { return value == V{}; }
  static void Write(ByteWriter& out, const V& value) { out.WriteVector(value); }
  static void Read(ByteReader& in, TypeCode code, V& value) { value = in.ReadVectorAs<V>(code); }
};

template <typename T>
T ReadElement(ByteReader& in, TypeCode code) {
  T element{};
  ValueCodec<T>::Read(in, code, element);
  return element;
}

template <typename T>
struct ValueCodec<List<T>> {
  static constexpr TypeCode kCode = TypeCode::kList;

  static bool IsZero(const List<T>& value) { return value.empty(); }
  static void Write(ByteWriter& out, const List<T>& value) {
    out.WriteListHeader(value.size(), ValueCodec<T>::kCode);
    for (const T& element : value) ValueCodec<T>::Write(out, element);
  }
  static void Read(ByteReader& in, TypeCode code, List<T>& value) {
    value.Clear();
    if (code != kCode) return in.FailType("list", code);
    TypeCode element{};
    for (std::size_t n = in.ReadListHeader(element); n > 0 && in.ok(); --n) {
      value.PushBack(ReadElement<T>(in, element));
    }
  }
};

template <typename T>
struct ValueCodec<Set<T>> {
  static constexpr TypeCode kCode = TypeCode::kList;

  static bool IsZero(const Set<T>& value) { return value.empty(); }
  static void Write(ByteWriter& out, const Set<T>& value) {
    out.WriteListHeader(value.size(), ValueCodec<T>::kCode);
    for (const T& element : value) ValueCodec<T>::Write(out, element);
  }
  static void Read(ByteReader& in, TypeCode code, Set<T>& value) {
    value.Clear();
    if (code != kCode) return in.FailType("set", code);
    TypeCode element{};
    for (std::size_t n = in.ReadListHeader(element); n > 0 && in.ok(); --n) {
      value.Add(ReadElement<T>(in, element));
    }
  }
};

template <typename M>
struct MapCodec {
  using K = typename M::key_type;
  using V = typename M::mapped_type;
  static constexpr TypeCode kCode = TypeCode::kMap;

  static bool IsZero(const M& value) { return value.empty(); }
  static void Write(ByteWriter& out, const M& value) {
    out.WriteMapHeader(value.size(), ValueCodec<K>::kCode, ValueCodec<V>::kCode);
    for (const auto& entry : value) {
      ValueCodec<K>::Write(out, entry.key);
      ValueCodec<V>::Write(out, entry.value);
    }
  }
  static void Read(ByteReader& in, TypeCode code, M& value) {
    value.Clear();
    if (code != kCode) return in.FailType("map", code);
    TypeCode key_code{};
    TypeCode value_code{};
    for (std::size_t n = in.ReadMapHeader(key_code, value_code); n > 0 && in.ok(); --n) {
      K key = ReadElement<K>(in, key_code);
      value.Put(std::move(key), ReadElement<V>(in, value_code));
    }
  }
};

template <typename K, typename V>
struct ValueCodec<Map<K, V>> : MapCodec<Map<K, V>> {};
template <typename K, typename V>
struct ValueCodec<SortedMap<K, V>> : MapCodec<SortedMap<K, V>> {};

template <DynamicType D>
struct ValueCodec<D> {
  static constexpr TypeCode kCode = TypeCode::kDynamic;

  static bool IsZero(const D& value) { return value.empty(); }
  static void Write(ByteWriter& out, const D& value) {
    out.WriteLong(value.type_id());
    if (!value.Visit([&out](const auto& bean) { bean.Encode(out); })) out.WriteEnd();
  }
  static void Read(ByteReader& in, TypeCode code, D& value) {
    value.Clear();
    std::int64_t type_id = 0;
    if (code == TypeCode::kDynamic) {
      type_id = in.ReadLong();
    } else if (code != TypeCode::kBean) {
      return in.FailType("dynamic", code);
    }
    if (type_id == 0) return in.Skip(TypeCode::kBean);
    if (!value.SetById(type_id, [&in](auto& bean) { bean.Decode(in); })) FailDynamic(in, type_id);
  }
};

template <>
struct ValueCodec<AnyBean> {
  static constexpr TypeCode kCode = TypeCode::kDynamic;

  static bool IsZero(const AnyBean& value) { return value.empty(); }
  static void Write(ByteWriter& out, const AnyBean& value) {
    out.WriteLong(value.type_id());
    if (value.empty()) return out.WriteEnd();
    out.CheckDepth(value.depth());
    out.WriteRaw(value.bytes());
  }
  static void Read(ByteReader& in, TypeCode code, AnyBean& value) {
    value.Clear();
    if (code != TypeCode::kDynamic && code != TypeCode::kBean) return in.FailType("dynamic", code);
    const std::int64_t type_id = code == TypeCode::kDynamic ? in.ReadLong() : 0;
    const std::size_t begin = in.position();
    in.Skip(TypeCode::kBean);
    if (in.ok()) value.SetEncoded(type_id, std::string(in.Since(begin)));
  }
};

// Writes one field of a bean, unless its value says that it is left out.
template <typename T>
void WriteField(FieldWriter& writer, int id, const T& value) {
  if constexpr (requires { ValueCodec<T>::IsZero(value); }) {
    if (ValueCodec<T>::IsZero(value)) return;
    writer.BeginField(id, ValueCodec<T>::kCode);
    ValueCodec<T>::Write(writer.out(), value);
  } else {
    const FieldWriter::Mark mark = writer.BeginBeanField(id);
    value.Encode(writer.out());
    writer.EndBeanField(mark);
  }
}

}  // namespace zeze::internal
