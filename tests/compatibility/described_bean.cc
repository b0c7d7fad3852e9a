#include "tests/compatibility/described_bean.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "zeze/base/check.h"

namespace zeze::compatibility {
namespace {

bool IsInteger(std::string_view type) {
  return type == "byte" || type == "short" || type == "int" || type == "long";
}

template <typename V>
V ToVector(const Json& value) {
  V vector;
  ZEZE_CHECK(value.items.size() == V::kDimension);
  for (std::size_t i = 0; i < V::kDimension; ++i) {
    const std::string& text = value.items[i].text;
    ComponentOf(vector, i) = static_cast<typename V::Component>(ToDouble(text));
  }
  return vector;
}

// Calls use(vector) with the vector of the named type; false if there is no such type.
template <typename Use>
bool WithVector(std::string_view type, const Json& value, Use use) {
  if (type == "vector2") return use(ToVector<Vector2>(value)), true;
  if (type == "vector3") return use(ToVector<Vector3>(value)), true;
  if (type == "vector4") return use(ToVector<Vector4>(value)), true;
  if (type == "quaternion") return use(ToVector<Quaternion>(value)), true;
  if (type == "vector2int") return use(ToVector<Vector2Int>(value)), true;
  if (type == "vector3int") return use(ToVector<Vector3Int>(value)), true;
  return false;
}

void EncodeList(const Json& field, ByteWriter& out) {
  const std::string& type = field["elemType"].text;
  out.WriteListHeader(field["value"].items.size(), DescribedTypeCode(type));
  for (const Json& element : field["value"].items) EncodeDescribedValue(type, element, out);
}

void EncodeMap(const Json& field, ByteWriter& out) {
  const std::string& key = field["keyType"].text;
  const std::string& value = field["valueType"].text;
  out.WriteMapHeader(field["value"].items.size(), DescribedTypeCode(key), DescribedTypeCode(value));
  for (const Json& pair : field["value"].items) {
    EncodeDescribedValue(key, pair.items[0], out);
    EncodeDescribedValue(value, pair.items[1], out);
  }
}

// Whether a field with this value is left out. Zero of any sign, nothing, and the empty bean are.
bool IsElided(const Json& field) {
  const std::string& type = field["type"].text;
  const Json& value = field["value"];
  if (type == "bool") return !value.boolean;
  if (IsInteger(type)) return ToInt(value.text) == 0;
  if (type == "float" || type == "double") return ToDouble(value.text) == 0;
  if (type == "list" || type == "map") return value.items.empty();
  if (type == "bean" || type == "dynamic") {
    ByteWriter out;
    EncodeDescribedBean(type == "bean" ? value : value["bean"], out);
    return out.size() == 1 && (type == "bean" || value["typeId"].text == "0");
  }
  bool elided = value.text.empty();
  WithVector(type, value, [&elided](const auto& vector) {
    elided = vector == std::remove_cvref_t<decltype(vector)>();
  });
  return elided;
}

void EncodeField(const Json& field, int& last_id, ByteWriter& out) {
  if (IsElided(field)) return;
  const std::string& type = field["type"].text;
  out.WriteTag(last_id, static_cast<int>(ToInt(field["id"].text)), DescribedTypeCode(type));
  if (type == "list") {
    EncodeList(field, out);
  } else if (type == "map") {
    EncodeMap(field, out);
  } else {
    EncodeDescribedValue(type, field["value"], out);
  }
}

void ExpectList(const Json& field, ByteReader& in) {
  TypeCode code{};
  const std::size_t count = in.ReadListHeader(code);
  const Json& elements = field["value"];
  ASSERT_EQ(count, elements.items.size());
  EXPECT_EQ(ToString(code), field["elemCode"].text);
  for (const Json& element : elements.items) {
    ExpectDescribedValue(field["elemType"].text, code, element, in);
  }
}

void ExpectMap(const Json& field, ByteReader& in) {
  TypeCode key{};
  TypeCode value{};
  const std::size_t count = in.ReadMapHeader(key, value);
  ASSERT_EQ(count, field["value"].items.size());
  EXPECT_EQ(ToString(key), field["keyCode"].text);
  EXPECT_EQ(ToString(value), field["valueCode"].text);
  for (const Json& pair : field["value"].items) {
    ExpectDescribedValue(field["keyType"].text, key, pair.items[0], in);
    ExpectDescribedValue(field["valueType"].text, value, pair.items[1], in);
  }
}

void ExpectField(const Json& field, TypeCode code, ByteReader& in) {
  const std::string& type = field["type"].text;
  EXPECT_EQ(code, DescribedTypeCode(type));
  if (type == "list") {
    ExpectList(field, in);
  } else if (type == "map") {
    ExpectMap(field, in);
  } else {
    ExpectDescribedValue(type, code, field["value"], in);
  }
}

}  // namespace

TypeCode DescribedTypeCode(std::string_view type) {
  static const std::map<std::string, TypeCode, std::less<>> codes = {
      {"bool", TypeCode::kInteger},
      {"byte", TypeCode::kInteger},
      {"short", TypeCode::kInteger},
      {"int", TypeCode::kInteger},
      {"long", TypeCode::kInteger},
      {"float", TypeCode::kFloat},
      {"double", TypeCode::kDouble},
      {"string", TypeCode::kBytes},
      {"binary", TypeCode::kBytes},
      {"list", TypeCode::kList},
      {"map", TypeCode::kMap},
      {"bean", TypeCode::kBean},
      {"dynamic", TypeCode::kDynamic},
      {"vector2", TypeCode::kVector2},
      {"vector3", TypeCode::kVector3},
      {"vector4", TypeCode::kVector4},
      {"quaternion", TypeCode::kVector4},
      {"vector2int", TypeCode::kVector2Int},
      {"vector3int", TypeCode::kVector3Int},
  };
  const auto found = codes.find(type);
  ZEZE_CHECK(found != codes.end());
  return found->second;
}

void EncodeDescribedBean(const Json& bean, ByteWriter& out) {
  int last_id = 0;
  for (const Json& field : bean["fields"].items) EncodeField(field, last_id, out);
  if (bean.Has("parent")) {
    out.WriteBaseMark();
    EncodeDescribedBean(bean["parent"], out);
  } else {
    out.WriteEnd();
  }
}

void EncodeDescribedValue(std::string_view type, const Json& value, ByteWriter& out) {
  if (type == "bool") return out.WriteBool(value.boolean);
  if (IsInteger(type)) return out.WriteLong(ToInt(value.text));
  if (type == "float") return out.WriteFloat(ToFloat(value.text));
  if (type == "double") return out.WriteDouble(ToDouble(value.text));
  if (type == "string") return out.WriteBytes(value.text);
  if (type == "binary") return out.WriteBytes(FromHex(value.text));
  if (type == "bean") return EncodeDescribedBean(value, out);
  if (type == "dynamic") {
    out.WriteLong(ToInt(value["typeId"].text));
    return EncodeDescribedBean(value["bean"], out);
  }
  ZEZE_CHECK(WithVector(type, value, [&out](const auto& vector) { out.WriteVector(vector); }));
}

void ExpectDescribedBean(const Json& bean, ByteReader& in) {
  ByteReader::BeanScope scope(in);
  const Json* level = &bean;
  int last_id = 0;
  std::size_t seen = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.base) {
      ASSERT_TRUE(level->Has("parent"));
      level = &(*level)["parent"];
      continue;
    }
    const Json* described = nullptr;
    for (const Json& field : (*level)["fields"].items) {
      if (ToInt(field["id"].text) == tag.id) described = &field;
    }
    ASSERT_NE(described, nullptr) << "field " << tag.id << " is not described";
    ExpectField(*described, tag.type, in);
    ++seen;
  }
  // Every field that is not there must be one that is left out.
  for (level = &bean;; level = &(*level)["parent"]) {
    for (const Json& field : (*level)["fields"].items) seen -= IsElided(field) ? 0 : 1;
    if (!level->Has("parent")) break;
  }
  EXPECT_EQ(seen, 0U);
}

void ExpectDescribedValue(std::string_view type, TypeCode code, const Json& value, ByteReader& in) {
  if (type == "bool") {
    EXPECT_EQ(in.ReadBoolAs(code), value.boolean);
  } else if (type == "byte") {
    EXPECT_EQ(in.ReadIntegerAs<std::int8_t>(code), ToInt(value.text));
  } else if (type == "short") {
    EXPECT_EQ(in.ReadIntegerAs<std::int16_t>(code), ToInt(value.text));
  } else if (type == "int") {
    EXPECT_EQ(in.ReadIntegerAs<std::int32_t>(code), ToInt(value.text));
  } else if (type == "long") {
    EXPECT_EQ(in.ReadIntegerAs<std::int64_t>(code), ToInt(value.text));
  } else if (type == "float") {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(in.ReadFloatAs(code)),
              std::bit_cast<std::uint32_t>(ToFloat(value.text)));
  } else if (type == "double") {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(in.ReadDoubleAs(code)),
              std::bit_cast<std::uint64_t>(ToDouble(value.text)));
  } else if (type == "string") {
    EXPECT_EQ(in.ReadBytesAs(code), value.text);
  } else if (type == "binary") {
    EXPECT_EQ(in.ReadBytesAs(code), FromHex(value.text));
  } else if (type == "bean") {
    ExpectDescribedBean(value, in);
  } else if (type == "dynamic") {
    EXPECT_EQ(in.ReadLong(), ToInt(value["typeId"].text));
    ExpectDescribedBean(value["bean"], in);
  } else {
    ZEZE_CHECK(WithVector(type, value, [&in, code](const auto& vector) {
      EXPECT_EQ(in.ReadVectorAs<std::remove_cvref_t<decltype(vector)>>(code), vector);
    }));
  }
}

}  // namespace zeze::compatibility
