// DescribedBean: encodes and checks beans from descriptions of their fields, by the rules of the
// format alone.
//
//   {"fields": [{"id": 1, "type": "int", "value": "5"}], "parent": {"fields": []}}

#pragma once

#include <string_view>

#include "tests/compatibility/json.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::compatibility {

void EncodeDescribedBean(const Json& bean, ByteWriter& out);

// Expects that the next bytes are this bean.
void ExpectDescribedBean(const Json& bean, ByteReader& in);

// A value without a tag, as a list element or table key. `value` holds the text, the members or the
// elements, as its type demands.
void EncodeDescribedValue(std::string_view type, const Json& value, ByteWriter& out);
void ExpectDescribedValue(std::string_view type, TypeCode code, const Json& value, ByteReader& in);

TypeCode DescribedTypeCode(std::string_view type);

}  // namespace zeze::compatibility
