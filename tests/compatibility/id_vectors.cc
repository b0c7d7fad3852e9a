// Checks of the vectors of ids, and of the keys and codes made from them.

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "zeze/base/name_hash.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::compatibility {
namespace {

// These vectors show numbers, not bytes: most significant digit first.
void ExpectNumber(const Vector& vector, std::uint64_t number, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llx", digits, static_cast<unsigned long long>(number));
  EXPECT_EQ(text, vector.hex);
}

void ExpectId32(const Vector& vector, std::int32_t id) {
  ExpectNumber(vector, static_cast<std::uint32_t>(id), 8);
}

void CheckProtocolId(const Vector& vector) {
  const std::string& text = vector.text();
  const std::string name = text.substr(0, text.find(" ("));
  const std::int32_t id = HashName32(name);
  ExpectId32(vector, id);
  if (name == text) return;
  const auto module_id = static_cast<std::int32_t>(NumberAfter(text, "moduleId "));
  EXPECT_EQ(id, NumberAfter(text, "protocolId "));
  EXPECT_EQ(ProtocolTypeId(module_id, id), NumberAfter(text, "typeId "));
}

void CheckTableId(const Vector& vector) {
  const std::string& text = vector.text();
  if (text.starts_with("name ")) {
    // A table with a suffix: the id comes from the name in the database.
    const std::string name = Split(text, ' ')[1];
    ExpectId32(vector, HashName32(name));
    EXPECT_EQ(HashName32(name), NumberAfter(text, " id "));
    return;
  }
  const std::string name = text.substr(0, text.find(" ("));
  ExpectId32(vector, HashName32(name));
  EXPECT_EQ(HashName32(name), NumberAfter(text, "(id "));
}

void CheckTypeId(const Vector& vector) {
  const std::int64_t id =
      ProtocolTypeId(static_cast<std::int32_t>(NumberAfter(vector.text(), "module ")),
                     static_cast<std::int32_t>(NumberAfter(vector.text(), "protocol ")));
  ExpectNumber(vector, static_cast<std::uint64_t>(id), 16);
  EXPECT_EQ(id, NumberAfter(vector.text(), "-> "));
}

void CheckErrorCode(const Vector& vector) {
  const auto module_id = static_cast<std::int32_t>(NumberAfter(vector.text(), "module "));
  const auto code = static_cast<std::int32_t>(NumberAfter(vector.text(), "code "));
  const std::int64_t result_code = ModuleResultCode(module_id, code);
  EXPECT_EQ(result_code, NumberAfter(vector.text(), "-> "));
  EXPECT_EQ(ModuleOfResultCode(result_code), module_id);
  EXPECT_EQ(CodeOfResultCode(result_code), code);
  ByteWriter out;
  out.WriteLong(result_code);
  EXPECT_EQ(ToHex(out.view()), vector.hex);
}

void CheckGlobalKey(const Vector& vector) {
  ByteWriter out;
  out.WriteInt4(static_cast<std::int32_t>(NumberAfter(vector.text(), "table id ")));
  out.WriteLong(NumberAfter(vector.text(), "key long "));
  EXPECT_EQ(ToHex(out.view()), vector.hex);
}

}  // namespace

void AddIdCheckers(Checkers& checkers) {
  checkers["beanTypeId"] = [](const Vector& vector) {
    ExpectNumber(vector, static_cast<std::uint64_t>(HashName64(vector.text())), 16);
  };
  checkers["protocolId"] = CheckProtocolId;
  checkers["tableId"] = CheckTableId;
  checkers["moduleId"] = [](const Vector& vector) {
    ExpectId32(vector, static_cast<std::int32_t>(NumberAfter(vector.text(), "explicit ")));
  };
  checkers["typeId"] = CheckTypeId;
  checkers["errorCode"] = CheckErrorCode;
  checkers["globalKey"] = CheckGlobalKey;
  checkers["calc_hashnr(long)"] = [](const Vector& vector) {
    ExpectNumber(vector, RoutingHash(ToInt(vector.text())), 8);
  };
  checkers["calc_hashnr(string)"] = [](const Vector& vector) {
    ExpectNumber(vector, RoutingHashOfText(vector.text()), 8);
  };
  checkers["calc_hashnr(bytes)"] = [](const Vector& vector) {
    ExpectNumber(vector, RoutingHashOfBytes(FromHex(vector.text())), 8);
  };
}

}  // namespace zeze::compatibility
