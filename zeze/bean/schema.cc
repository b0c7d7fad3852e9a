#include "zeze/bean/schema.h"

#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/compare.h"
#include "zeze/bean/format.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

std::string FieldSchema::TypeText() const {
  if (value.empty()) return type;
  return type + "[" + (key.empty() ? "" : key + ",") + value + "]";
}

void FieldSchema::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void FieldSchema::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
bool FieldSchema::operator==(const FieldSchema& that) const {
  return EqualFields(*this, that);
}
std::string FieldSchema::ToString() const {
  return FormatFields(*this);
}
bool FieldSchema::HasNegative() const {
  return HasNegativeFields(*this);
}

void BeanSchema::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void BeanSchema::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
bool BeanSchema::operator==(const BeanSchema& that) const {
  return EqualFields(*this, that);
}
std::string BeanSchema::ToString() const {
  return FormatFields(*this);
}
bool BeanSchema::HasNegative() const {
  return HasNegativeFields(*this);
}

void Schema::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void Schema::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
bool Schema::operator==(const Schema& that) const {
  return EqualFields(*this, that);
}
std::string Schema::ToString() const {
  return FormatFields(*this);
}
bool Schema::HasNegative() const {
  return HasNegativeFields(*this);
}

void TableSchema::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void TableSchema::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
bool TableSchema::operator==(const TableSchema& that) const {
  return EqualFields(*this, that);
}
std::string TableSchema::ToString() const {
  return FormatFields(*this);
}
bool TableSchema::HasNegative() const {
  return HasNegativeFields(*this);
}

void DatabaseSchema::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void DatabaseSchema::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
bool DatabaseSchema::operator==(const DatabaseSchema& that) const {
  return EqualFields(*this, that);
}
std::string DatabaseSchema::ToString() const {
  return FormatFields(*this);
}
bool DatabaseSchema::HasNegative() const {
  return HasNegativeFields(*this);
}

void DatabaseSchema::Add(TableSchema table) {
  std::string name = table.name;
  tables.Put(std::move(name), std::move(table));
}

std::string DatabaseSchema::Serialize() const {
  return EncodeBean(*this);
}

Result<DatabaseSchema> DatabaseSchema::Parse(std::string_view bytes) {
  return DecodeBean<DatabaseSchema>(bytes);
}

namespace internal {

TableSchema MakeTable(const TableDescription& options) {
  TableSchema table;
  table.name = options.name;
  table.id = options.id;
  table.version = options.version;
  table.memory = options.memory;
  table.no_schema = options.no_schema;
  return table;
}

}  // namespace internal

}  // namespace zeze
