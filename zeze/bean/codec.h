// Codec: beans to bytes and back, byte for byte as the wire and storage formats say.
//
// A generated .cc file defines the members of a bean with it:
//
//   void BRole::Encode(zeze::ByteWriter& out) const { zeze::EncodeFields(*this, out); }
//   void BRole::Decode(zeze::ByteReader& in) { zeze::DecodeFields(*this, in); }
//
// and everybody else uses the whole-value functions:
//
//   std::string bytes = zeze::EncodeBean(role);
//   zeze::Result<BRole> loaded = zeze::DecodeBean<BRole>(bytes);
//   std::string key = zeze::EncodeKey(std::int64_t{7});
//
// What is left out: zeros, empty texts and containers, beans without a field, transient fields.
// Maps and sets are written in the order in which they are iterated (map.h).
//
// Decoding accepts what any schema with the same field ids wrote, as long as the types convert
// (numbers, texts, vectors, containers element by element); anything else fails. It is meant for
// fresh objects: fields that are absent stay as they are, except those with zero_when_absent. Input
// is hostile: no count or length in it makes memory grow before the bytes behind it are there.
// Text is kept as it came; IsUtf8 and RepairUtf8 (serialize/utf8.h) check and mend it.

#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeze/base/result.h"
#include "zeze/bean/compare.h"
#include "zeze/bean/field.h"
#include "zeze/bean/format.h"
#include "zeze/bean/internal/field_codec.h"
#include "zeze/bean/internal/value_codec.h"
#include "zeze/bean/unknown_fields.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/vector.h"

namespace zeze {

template <BeanType B>
void EncodeFields(const B& bean, ByteWriter& out) {
  internal::FieldWriter writer(out);
  if constexpr (HasUnknownFields<B>) {
    internal::UnknownMerger unknown(bean.unknown_fields);
    B::ForEachField([&](const Field& field, auto member) {
      if (field.transient) return;
      unknown.WriteBelow(field.id, writer);
      internal::WriteField(writer, field.id, bean.*member);
    });
    unknown.WriteBelow(std::numeric_limits<int>::max(), writer);
  } else {
    B::ForEachField([&](const Field& field, auto member) {
      if (!field.transient) internal::WriteField(writer, field.id, bean.*member);
    });
  }
  if constexpr (HasBaseBean<B>) {
    out.WriteBaseMark();
    bean.base.Encode(out);
  } else {
    out.WriteEnd();
  }
}

// A failure stays in the reader (ok(), error_message()); the bean is then incomplete.
template <BeanType B>
void DecodeFields(B& bean, ByteReader& in) {
  UnknownFields* unknown = nullptr;
  if constexpr (HasUnknownFields<B>) unknown = &bean.unknown_fields;
  internal::FieldReader reader(in, unknown);
  B::ForEachField([&](const Field& field, auto member) {
    if (field.transient) return;
    auto& value = bean.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if (reader.Find(field.id)) {
      internal::ValueCodec<Value>::Read(in, reader.type(), value);
      reader.Next();
    } else if (field.zero_when_absent) {
      value = Value{};
    }
  });
  if (!reader.FinishFields()) return;
  if constexpr (HasBaseBean<B>) {
    bean.base.Decode(in);
  } else {
    reader.SkipBase();
  }
}

namespace internal {

// kCorrupt when the reader failed or did not come to the end of its bytes.
Result<void> CheckAllRead(ByteReader& in, std::string_view what);

}  // namespace internal

// The value of a record, the argument of a protocol: the bean and nothing else.
template <typename B>
std::string EncodeBean(const B& bean) {
  ByteWriter out;
  bean.Encode(out);
  return out.Release();
}

// Fails with kCorrupt, naming the bean and the offset, unless the bytes are exactly one bean.
template <BeanType B>
Result<B> DecodeBean(std::string_view bytes) {
  ByteReader in(bytes);
  B bean;
  bean.Decode(in);
  Result<void> all_read = internal::CheckAllRead(in, B::kFullName);
  if (!all_read.ok()) return all_read.error();
  return bean;
}

// Bool, integers, float, double, string, Binary, Id128 and beankeys can be keys of tables.
template <typename K>
void EncodeKey(ByteWriter& out, const K& key) {
  static_assert(!VectorValue<K>, "a vector cannot be the key of a table");
  internal::ValueCodec<K>::Write(out, key);
}

template <typename K>
std::string EncodeKey(const K& key) {
  ByteWriter out;
  EncodeKey(out, key);
  return out.Release();
}

// Fails with kCorrupt unless the bytes are exactly one key of this type.
template <typename K>
Result<K> DecodeKey(std::string_view bytes) {
  ByteReader in(bytes);
  K key{};
  internal::ValueCodec<K>::Read(in, internal::ValueCodec<K>::kCode, key);
  Result<void> all_read = internal::CheckAllRead(in, "table key");
  if (!all_read.ok()) return all_read.error();
  return key;
}

}  // namespace zeze
