// Fuzzes ByteReader: whatever the bytes, it stays inside them, and what it accepts it understands
// as the writer meant it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/check.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/type_code.h"
#include "zeze/serialize/utf8.h"

namespace zeze {
namespace {

// Copies a value as it is read, with every number in its shortest form.
void CopyValue(TypeCode type, ByteReader& in, ByteWriter& out);

void CopyFields(ByteReader& in, ByteWriter& out) {
  ByteReader::BeanScope scope(in);
  int in_id = 0;
  int out_id = 0;
  for (Tag tag = in.ReadTag(in_id); !tag.end; tag = in.ReadTag(in_id)) {
    if (tag.base) {
      out.WriteBaseMark();
      out_id = 0;
      continue;
    }
    out.WriteTag(out_id, tag.id, tag.type);
    CopyValue(tag.type, in, out);
  }
  out.WriteEnd();
}

void CopyMap(ByteReader& in, ByteWriter& out) {
  ByteReader::BeanScope scope(in);
  TypeCode key, value;
  const std::size_t count = in.ReadMapHeader(key, value);
  out.WriteMapHeader(count, key, value);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    CopyValue(key, in, out);
    CopyValue(value, in, out);
  }
}

void CopyList(ByteReader& in, ByteWriter& out) {
  ByteReader::BeanScope scope(in);
  TypeCode element;
  const std::size_t count = in.ReadListHeader(element);
  out.WriteListHeader(count, element);
  for (std::size_t i = 0; i < count && in.ok(); ++i) CopyValue(element, in, out);
}

void CopyValue(TypeCode type, ByteReader& in, ByteWriter& out) {
  switch (type) {
    case TypeCode::kInteger:
      out.WriteLong(in.ReadLong());
      return;
    case TypeCode::kFloat:
      out.WriteFloat(in.ReadFloat());
      return;
    case TypeCode::kDouble:
      out.WriteDouble(in.ReadDouble());
      return;
    case TypeCode::kBytes:
      out.WriteBytes(in.ReadBytes());
      return;
    case TypeCode::kList:
      CopyList(in, out);
      return;
    case TypeCode::kMap:
      CopyMap(in, out);
      return;
    case TypeCode::kDynamic:
      out.WriteLong(in.ReadLong());
      [[fallthrough]];
    case TypeCode::kBean:
      CopyFields(in, out);
      return;
    case TypeCode::kVector2:
      out.WriteVector(in.ReadVector<Vector2>());
      return;
    case TypeCode::kVector2Int:
      out.WriteVector(in.ReadVector<Vector2Int>());
      return;
    case TypeCode::kVector3:
      out.WriteVector(in.ReadVector<Vector3>());
      return;
    case TypeCode::kVector3Int:
      out.WriteVector(in.ReadVector<Vector3Int>());
      return;
    case TypeCode::kVector4:
      out.WriteVector(in.ReadVector<Vector4>());
      return;
  }
}

// Reading and skipping agree; a copy is never longer and is its own copy.
void CheckCopy(std::string_view bytes) {
  ByteReader in(bytes);
  ByteWriter copy;
  CopyFields(in, copy);

  ByteReader skipping(bytes);
  skipping.Skip(TypeCode::kBean);
  ZEZE_CHECK(skipping.ok() == in.ok());
  if (!in.ok()) {
    ZEZE_CHECK(in.remaining() == 0);
    ZEZE_CHECK(in.position() <= bytes.size());
    ZEZE_CHECK(!in.error_message().empty());
    return;
  }
  ZEZE_CHECK(skipping.position() == in.position());
  ZEZE_CHECK(copy.size() <= in.position());
  ByteReader again(copy.view());
  ByteWriter copy_of_copy;
  CopyFields(again, copy_of_copy);
  ZEZE_CHECK(again.ok());
  ZEZE_CHECK(again.remaining() == 0);
  ZEZE_CHECK(copy_of_copy.view() == copy.view());
}

// Every declared type from the type of value that the first byte says.
void CheckConversions(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto type = static_cast<TypeCode>(bytes[0] & 15);
  bytes.remove_prefix(1);
  ByteReader in(bytes);
  in.ReadBoolAs(type);
  in.ReadIntegerAs<std::int8_t>(type);
  in.ReadIntegerAs<std::int16_t>(type);
  in.ReadIntegerAs<std::int32_t>(type);
  in.ReadIntegerAs<std::int64_t>(type);
  in.ReadFloatAs(type);
  in.ReadDoubleAs(type);
  ByteReader vectors(bytes);
  vectors.ReadVectorAs<Vector2>(type);
  vectors.ReadVectorAs<Vector3>(type);
  vectors.ReadVectorAs<Vector4>(type);
  vectors.ReadVectorAs<Quaternion>(type);
  vectors.ReadVectorAs<Vector2Int>(type);
  vectors.ReadVectorAs<Vector3Int>(type);
  vectors.ReadBytesAs(type);
  vectors.Skip(type);
  ZEZE_CHECK(in.position() <= bytes.size());
  ZEZE_CHECK(vectors.position() <= bytes.size());
}

}  // namespace
}  // namespace zeze

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  zeze::CheckCopy(bytes);
  zeze::CheckConversions(bytes);
  zeze::ByteReader in(bytes);
  zeze::Id128 id;
  id.Decode(in);
  zeze::Decimal::IsValid(bytes);
  const std::string repaired = zeze::RepairUtf8(bytes);
  ZEZE_CHECK(zeze::IsUtf8(repaired));
  ZEZE_CHECK(zeze::IsUtf8(bytes) == (repaired == bytes));
  return 0;
}
