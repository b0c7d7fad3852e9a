#include "zeze/bean/internal/field_codec.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/type_code.h"

namespace zeze::internal {

void UnknownMerger::WriteEntriesBelow(int id, FieldWriter& writer) {
  for (; walk_.has_entry() && walk_.entry().id < id; walk_.Next()) {
    writer.BeginField(walk_.entry().id, walk_.entry().type);
    writer.out().WriteRaw(walk_.entry().payload);
  }
}

void FieldReader::SkipBelow(int id) {
  while (IsField() && tag_.id < id && in_.ok()) {
    const std::size_t begin = in_.position();
    in_.Skip(tag_.type);
    if (unknown_ != nullptr && in_.ok()) unknown_->Append(tag_.id, tag_.type, in_.Since(begin));
    Next();
  }
}

bool FieldReader::FinishFields() {
  SkipBelow(std::numeric_limits<int>::max());
  return tag_.base;
}

void FieldReader::SkipBase() {
  int last_id = 0;
  for (Tag tag = in_.ReadTag(last_id); !tag.end; tag = in_.ReadTag(last_id)) in_.Skip(tag);
}

void ReadDecimal(ByteReader& in, TypeCode code, std::string& text) {
  const std::string_view bytes = in.ReadBytesAs(code);
  if (!in.ok()) return;
  if (!Decimal::IsValid(bytes)) {
    in.Fail("the text of a decimal is not a number");
    return;
  }
  text = bytes;
}

void WriteDecimal(ByteWriter& out, const std::string& text) {
  if (const Result<Decimal> parsed = Decimal::Parse(text); !parsed.ok()) {
    throw EncodeError(parsed.error().message());
  }
  out.WriteBytes(text);
}

void FailDynamic(ByteReader& in, std::int64_t type_id) {
  in.Fail("type id " + std::to_string(type_id) +
          " is not among the choices of this dynamic variable: was a bean removed from it, or does "
          "a newer program write here?");
}

}  // namespace zeze::internal
