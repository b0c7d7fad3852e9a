#include "zeze/serialize/id128.h"

#include <cstddef>
#include <cstdint>

#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

void Id128::Encode(ByteWriter& out) const {
  const ByteWriter::BeanScope scope(out);
  int last_id = 0;
  out.WriteTag(last_id, 1, TypeCode::kList);
  out.WriteListHeader(2, TypeCode::kInteger);
  out.WriteLong(static_cast<std::int64_t>(high));
  out.WriteLong(static_cast<std::int64_t>(low));
  out.WriteEnd();
}

void Id128::Decode(ByteReader& in) {
  ByteReader::BeanScope scope(in);
  int last_id = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.id != 1 || tag.base) {
      in.Skip(tag);
      continue;
    }
    if (tag.type != TypeCode::kList) {
      in.FailType("Id128", tag.type);
      continue;
    }
    TypeCode element = TypeCode::kInteger;
    const std::size_t count = in.ReadListHeader(element);
    if (count != 2) in.Fail("an Id128 is a list of two integers");
    high = static_cast<std::uint64_t>(in.ReadIntegerAs<std::int64_t>(element));
    low = static_cast<std::uint64_t>(in.ReadIntegerAs<std::int64_t>(element));
  }
}

}  // namespace zeze
