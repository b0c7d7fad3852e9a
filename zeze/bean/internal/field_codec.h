// FieldWriter, FieldReader: the parts of encoding and decoding a bean that do not depend on its
// type: tags, unknown fields, base beans.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "zeze/bean/unknown_fields.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::internal {

// Writes the fields of one bean in ascending order of ids, merging kept unknown ones in between.
class FieldWriter {
 public:
  explicit FieldWriter(ByteWriter& out) : out_(out), scope_(out) {}

  ByteWriter& out() { return out_; }

  void BeginField(int id, TypeCode type) { out_.WriteTag(last_id_, id, type); }

  // For a field that is left out when its bean turns out to be the single byte 00.
  struct Mark {
    std::size_t begin;
    std::size_t payload;
    int last_id;
  };
  Mark BeginBeanField(int id) {
    const Mark mark{out_.size(), 0, last_id_};
    BeginField(id, TypeCode::kBean);
    return {mark.begin, out_.size(), mark.last_id};
  }
  void EndBeanField(const Mark& mark) {
    if (out_.size() != mark.payload + 1) return;
    out_.Truncate(mark.begin);
    last_id_ = mark.last_id;
  }

 private:
  ByteWriter& out_;
  ByteWriter::BeanScope scope_;
  int last_id_ = 0;
};

// The unknown fields still to be written, merged by the ids of the known ones.
class UnknownMerger {
 public:
  explicit UnknownMerger(const UnknownFields& fields) : walk_(&fields) {}

  void WriteBelow(int id, FieldWriter& writer) {
    if (walk_.has_entry()) WriteEntriesBelow(id, writer);
  }

 private:
  void WriteEntriesBelow(int id, FieldWriter& writer);

  UnknownFields::Walk walk_;
};

// Reads the fields of one bean: the caller asks for its fields in ascending order of ids.
class FieldReader {
 public:
  // `unknown` takes the fields that nobody asks for; null drops them.
  FieldReader(ByteReader& in, UnknownFields* unknown)
      : in_(in), unknown_(unknown), scope_(in), tag_(in.ReadTag(last_id_)) {}

  // Whether the field is there; then its payload is next, and Next() must follow it.
  bool Find(int id) {
    if (tag_.id < id && IsField()) SkipBelow(id);
    return tag_.id == id && IsField();
  }
  TypeCode type() const { return tag_.type; }
  void Next() { tag_ = in_.ReadTag(last_id_); }

  // Behind the last known field. True when a base bean follows, and is next.
  bool FinishFields();

  // Passes over the base beans that nobody knows.
  void SkipBase();

 private:
  bool IsField() const { return !tag_.end && !tag_.base; }
  void SkipBelow(int id);

  ByteReader& in_;
  UnknownFields* unknown_;
  ByteReader::BeanScope scope_;
  int last_id_ = 0;
  Tag tag_;
};

// Fails (throws EncodeError) when the bytes are not the text of a number.
void ReadDecimal(ByteReader& in, TypeCode code, std::string& text);
void WriteDecimal(ByteWriter& out, const std::string& text);

// Fails because a dynamic variable of this program cannot hold that bean.
void FailDynamic(ByteReader& in, std::int64_t type_id);

}  // namespace zeze::internal
