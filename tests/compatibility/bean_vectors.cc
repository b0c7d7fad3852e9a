// Checks of the vectors of beans, keys and record values.
//
// A vector of type bean describes its fields, so that it is encoded and decoded here by the rules
// of the format, one by one, with nothing but the primitives.

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "tests/compatibility/described_bean.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/id128.h"

namespace zeze::compatibility {
namespace {

void CheckBean(const Vector& vector) {
  ByteWriter out;
  EncodeDescribedBean(vector.value, out);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  ExpectDescribedBean(vector.value, in);
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(in.remaining(), 0U);

  // Somebody who knows none of its fields passes over it.
  ByteReader skipping(bytes);
  skipping.Skip(TypeCode::kBean);
  EXPECT_TRUE(skipping.ok()) << skipping.error_message();
  EXPECT_EQ(skipping.remaining(), 0U);
}

// What the framework's own classes wrote; the same contents, described as above.
const std::map<std::string, std::string, std::less<>>& GeneratedBeans() {
  static const std::map<std::string, std::string, std::less<>> beans = {
      {"bean/gen/TestRocks.BValue", R"({"fields": [
          {"id": 1, "type": "int", "value": "12"}, {"id": 2, "type": "bool", "value": true},
          {"id": 3, "type": "float", "value": "12.34"}, {"id": 4, "type": "double", "value": "0"},
          {"id": 5, "type": "string", "value": "test"},
          {"id": 6, "type": "binary", "value": "0102"},
          {"id": 7, "type": "list", "elemCode": "INTEGER", "elemType": "int", "value": ["34"]},
          {"id": 8, "type": "list", "elemCode": "BEAN", "elemType": "bean", "value": [{"fields": [
              {"id": 1, "type": "int", "value": "56"},
              {"id": 2, "type": "string", "value": "abc"}]}]},
          {"id": 9, "type": "map", "keyCode": "INTEGER", "valueCode": "INTEGER", "keyType": "int",
           "valueType": "int", "value": [["78", "90"]]},
          {"id": 10, "type": "map", "keyCode": "INTEGER", "valueCode": "BEAN", "keyType": "int",
           "valueType": "bean", "value": [["123", {"fields": [
              {"id": 1, "type": "int", "value": "1"}]}]]},
          {"id": 11, "type": "bean", "value": {"fields": [
              {"id": 1, "type": "int", "value": "456"},
              {"id": 2, "type": "string", "value": "字符串"}]}}]})"},
      {"bean/gen/TestRocks.BValue-default", R"({"fields": []})"},
      {"bean/gen/Timer.BTimer", R"({"fields": [
          {"id": 1, "type": "string", "value": "t1"}, {"id": 2, "type": "string", "value": "H"},
          {"id": 3, "type": "dynamic", "value": {"typeId": "1832177636612857692",
            "bean": {"fields": [
              {"id": 2, "type": "long", "value": "1000"}, {"id": 3, "type": "long", "value": "-1"},
              {"id": 5, "type": "long", "value": "1700000000000"},
              {"id": 11, "type": "string", "value": "k"}]}}},
          {"id": 4, "type": "dynamic", "value": {"typeId": "0", "bean": {"fields": []}}},
          {"id": 5, "type": "long", "value": "7"}]})"},
      {"bean/gen/Rank.BRankList-empty", R"({"fields": [
          {"id": 1, "type": "list", "elemCode": "BEAN", "elemType": "bean", "value": []}]})"},
      {"bean/gen/Provider.BBind.Data", R"({"fields": [
          {"id": 1, "type": "map", "keyCode": "INTEGER", "valueCode": "BEAN", "keyType": "int",
           "valueType": "bean", "value": [["100", {"fields": [
              {"id": 1, "type": "int", "value": "6"}, {"id": 2, "type": "bool", "value": true}]}]]},
          {"id": 2, "type": "list", "elemCode": "INTEGER", "elemType": "long", "value": ["5"]}]})"},
  };
  return beans;
}

void CheckGeneratedBean(const Vector& vector) {
  const auto found = GeneratedBeans().find(vector.name);
  ASSERT_NE(found, GeneratedBeans().end()) << "no description of this bean";
  Vector described = vector;
  described.value = ParseJson(found->second);
  CheckBean(described);
}

// A schema that knows field 1 only: the others are kept, as id, type, size and payload each, and
// written back behind it. Byte-identical, so that an old server loses nothing of a newer one.
void CheckUnknownKept(const Vector& vector) {
  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  std::int64_t known = 0;
  ByteWriter kept;
  int last_id = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.id == 1) {
      known = in.ReadIntegerAs<std::int64_t>(tag.type);
      continue;
    }
    const std::size_t begin = in.position();
    in.Skip(tag);
    kept.WriteUint(static_cast<std::uint32_t>(tag.id));
    kept.WriteByte(static_cast<std::uint8_t>(tag.type));
    kept.WriteBytes(in.Since(begin));
  }
  ASSERT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(known, 5);
  ASSERT_EQ(ToHex(kept.view()), Split(vector.text(), '=').back());

  ByteWriter out;
  last_id = 0;
  out.WriteTag(last_id, 1, TypeCode::kInteger);
  out.WriteLong(known);
  ByteReader fields(kept.view());
  while (fields.remaining() > 0) {
    const int id = static_cast<int>(fields.ReadUint());
    out.WriteTag(last_id, id, static_cast<TypeCode>(fields.ReadByte()));
    out.WriteRaw(fields.ReadBytes());
  }
  out.WriteEnd();
  EXPECT_EQ(ToHex(out.view()), vector.hex);
}

// A beankey is a bean whose fields are these.
Checker BeanKey(std::vector<std::string> types) {
  return [types = std::move(types)](const Vector& vector) {
    Json bean;
    Json& fields = bean.Add("fields", {});
    const std::vector<std::string> parts = Split(vector.text(), ',');
    ASSERT_EQ(parts.size(), types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      Json field;
      field.Add("id", {}).text = std::to_string(i + 1);
      field.Add("type", {}).text = types[i];
      field.Add("value", {}).text = Split(parts[i], '=').back();
      fields.items.push_back(std::move(field));
    }
    Vector described = vector;
    described.value = bean;
    CheckBean(described);
  };
}

// Bare values: no tag, nothing in front.
Checker PlainKey(std::string type) {
  return [type = std::move(type)](const Vector& vector) {
    Json value = vector.value;
    if (type == "bool") value.boolean = value.text == "true";
    ByteWriter out;
    EncodeDescribedValue(type, value, out);
    EXPECT_EQ(ToHex(out.view()), vector.hex);

    const std::string bytes = vector.bytes();
    ByteReader in(bytes);
    ExpectDescribedValue(type, DescribedTypeCode(type), value, in);
    EXPECT_TRUE(in.ok()) << in.error_message();
    EXPECT_EQ(in.remaining(), 0U);
  };
}

void CheckId128(const Vector& vector) {
  const bool zero = vector.text() == "0,0";
  const Id128 id = zero ? Id128{} : Id128{.high = 1, .low = ~std::uint64_t{0}};
  ByteWriter out;
  id.Encode(out);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  Id128 read{.high = 7, .low = 7};
  read.Decode(in);
  EXPECT_EQ(read, id);
  EXPECT_EQ(in.remaining(), 0U);
}

}  // namespace

void AddBeanCheckers(Checkers& checkers) {
  checkers["bean"] = CheckBean;
  checkers["bean-generated"] = CheckGeneratedBean;
  checkers["bean-reencode"] = CheckUnknownKept;
  for (const char* type :
       {"bool", "byte", "short", "int", "long", "float", "double", "string", "binary"}) {
    checkers[std::string("key:") + type] = PlainKey(type);
  }
  checkers["key:beankey{1:string,2:long}"] = BeanKey({"string", "long"});
  checkers["key:beankey{1..4:int,5:long}"] = BeanKey({"int", "int", "int", "int", "long"});
  checkers["key:Id128(high,low)"] = CheckId128;
}

}  // namespace zeze::compatibility
