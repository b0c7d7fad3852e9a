// Any bytes are decoded as a bean with every type of variable, as keys and as a stored schema: they
// decode or fail, and what decoded is the same after another round.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/difference.h"
#include "zeze/bean/schema.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/id128.h"

namespace {

template <typename B>
void CheckBean(std::string_view bytes) {
  zeze::Result<B> decoded = zeze::DecodeBean<B>(bytes);
  if (!decoded.ok()) {
    ZEZE_CHECK(!decoded.error().message().empty());
    return;
  }
  const B bean = std::move(decoded).value();
  const std::string encoded = zeze::EncodeBean(bean);
  const B again = zeze::DecodeBean<B>(encoded).value();
  ZEZE_CHECK(again == bean);
  ZEZE_CHECK(zeze::EncodeBean(again) == encoded);
  ZEZE_CHECK(zeze::Difference<B>(bean, again).empty());
  const B empty = zeze::DecodeBean<B>(std::string_view("\0", 1)).value();
  ZEZE_CHECK(zeze::Apply(empty, zeze::Difference<B>(empty, bean)) == bean);
  ZEZE_CHECK(!bean.ToString().empty());
}

template <typename K>
void CheckKey(std::string_view bytes) {
  zeze::Result<K> decoded = zeze::DecodeKey<K>(bytes);
  if (!decoded.ok()) return;
  const std::string encoded = zeze::EncodeKey(decoded.value());
  ZEZE_CHECK(zeze::DecodeKey<K>(encoded).value() == decoded.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckBean<zeze::testing::BRole>(bytes);
  CheckBean<zeze::testing::BDerived>(bytes);
  CheckKey<zeze::testing::BKey>(bytes);
  CheckKey<std::int32_t>(bytes);
  CheckKey<std::string>(bytes);
  CheckKey<zeze::Id128>(bytes);
  zeze::Result<zeze::DatabaseSchema> schema = zeze::DatabaseSchema::Parse(bytes);
  if (schema.ok()) {
    const zeze::DatabaseSchema& parsed = schema.value();
    const auto merged = zeze::MergeSchemas(parsed, parsed);
    (void)zeze::CheckCompatible(parsed, merged);
  }
  return 0;
}
