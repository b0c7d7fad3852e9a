// Schema: what types beans and tables have, as data. It is stored beside the rows, and at the next
// start compared with what the program says, so that an incompatible change is refused before it
// can damage anything.
//
//   zeze::DatabaseSchema current;
//   current.Add(zeze::DescribeTable<std::int64_t, BRole>({.name = "Shop_Game_tRole", .id = 7}));
//   zeze::Result<zeze::DatabaseSchema> stored = zeze::DatabaseSchema::Parse(bytes);
//   std::vector<std::string> problems = zeze::CheckCompatible(stored.value(), current);
//   if (problems.empty()) Store(zeze::MergeSchemas(stored.value(), current).Serialize());
//
// All types here are beans themselves: encoded by the codec, and able to grow.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/bean/unknown_fields.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

// One variable of a bean. Types are named as in the schema language: "int", "list", "map", ...,
// "dynamic", or the full name of a bean.
struct FieldSchema {
  static constexpr std::int64_t kTypeId = 1;
  static constexpr std::string_view kFullName = "zeze.FieldSchema";

  std::int32_t id = 0;
  std::string name;
  std::string type;
  std::string key;    // Of map and sortedmap; of gtable "row,column".
  std::string value;  // Of containers: the type of elements, values or cells.
  bool transient = false;
  bool removed = false;  // No longer in the schema, but rows may still have it.
  // Of dynamic, also as element or value: type id to full name of the bean.
  SortedMap<std::int64_t, std::string> choices;
  UnknownFields unknown_fields;

  // "int", "list[demo.BItem]", "map[int,string]", "gtable[int,int,string]".
  std::string TypeText() const;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "id"}, &FieldSchema::id);
    visit(Field{2, "name"}, &FieldSchema::name);
    visit(Field{3, "type"}, &FieldSchema::type);
    visit(Field{4, "key"}, &FieldSchema::key);
    visit(Field{5, "value"}, &FieldSchema::value);
    visit(Field{6, "transient"}, &FieldSchema::transient);
    visit(Field{7, "removed"}, &FieldSchema::removed);
    visit(Field{8, "choices"}, &FieldSchema::choices);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const FieldSchema& that) const;
  std::string ToString() const;
  bool HasNegative() const;
};

struct BeanSchema {
  static constexpr std::int64_t kTypeId = 2;
  static constexpr std::string_view kFullName = "zeze.BeanSchema";

  std::string name;
  bool is_key = false;
  std::string base;  // Full name of the base bean, or empty.
  SortedMap<std::int32_t, FieldSchema> fields;
  UnknownFields unknown_fields;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "name"}, &BeanSchema::name);
    visit(Field{2, "is_key"}, &BeanSchema::is_key);
    visit(Field{3, "base"}, &BeanSchema::base);
    visit(Field{4, "fields"}, &BeanSchema::fields);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const BeanSchema& that) const;
  std::string ToString() const;
  bool HasNegative() const;
};

// A type and all beans that it reaches, by full name.
struct Schema {
  static constexpr std::int64_t kTypeId = 3;
  static constexpr std::string_view kFullName = "zeze.Schema";

  std::string type;
  SortedMap<std::string, BeanSchema> beans;
  UnknownFields unknown_fields;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "type"}, &Schema::type);
    visit(Field{2, "beans"}, &Schema::beans);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const Schema& that) const;
  std::string ToString() const;
  bool HasNegative() const;
};

// What a table is called and how it is kept; the input of DescribeTable.
struct TableDescription {
  std::string_view name = {};  // In the storage.
  std::int32_t id = 0;
  std::int32_t version = 0;
  bool memory = false;
  bool no_schema = false;
};

struct TableSchema {
  static constexpr std::int64_t kTypeId = 4;
  static constexpr std::string_view kFullName = "zeze.TableSchema";

  std::string name;
  std::int32_t id = 0;
  std::string key_type;
  std::string value_type;
  std::int32_t version = 0;
  bool memory = false;
  bool no_schema = false;
  // All beans that key and value reach. Each table has its own, because what was removed from a
  // bean is remembered for as long as the rows of a table may have it.
  SortedMap<std::string, BeanSchema> beans;
  UnknownFields unknown_fields;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "name"}, &TableSchema::name);
    visit(Field{2, "id"}, &TableSchema::id);
    visit(Field{3, "key_type"}, &TableSchema::key_type);
    visit(Field{4, "value_type"}, &TableSchema::value_type);
    visit(Field{5, "version"}, &TableSchema::version);
    visit(Field{6, "memory"}, &TableSchema::memory);
    visit(Field{7, "no_schema"}, &TableSchema::no_schema);
    visit(Field{8, "beans"}, &TableSchema::beans);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const TableSchema& that) const;
  std::string ToString() const;
  bool HasNegative() const;
};

struct DatabaseSchema {
  static constexpr std::int64_t kTypeId = 5;
  static constexpr std::string_view kFullName = "zeze.DatabaseSchema";

  SortedMap<std::string, TableSchema> tables;
  UnknownFields unknown_fields;

  void Add(TableSchema table);

  std::string Serialize() const;
  // Fails with kCorrupt when the bytes are no schema.
  static Result<DatabaseSchema> Parse(std::string_view bytes);

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "tables"}, &DatabaseSchema::tables);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const DatabaseSchema& that) const;
  std::string ToString() const;
  bool HasNegative() const;
};

// The schema of a bean, with every bean that it reaches.
template <BeanType B>
Schema DescribeBean();

template <typename K, BeanType V>
TableSchema DescribeTable(const TableDescription& options);

// Whether a value of the table can exceed what readers accept: a bean that holds itself can be
// nested too deep, a decimal need not be a number. All other values are readable by their type.
bool CanBeUnreadable(const TableSchema& table);

struct CompatibilityOptions {
  // The id of a removed variable may be used again for a variable of the same or a wider type,
  // unless:
  bool forbid_reuse_of_removed_ids = false;
};

// Everything that forbids `current` to work on rows written under `stored`; empty when nothing
// does. Each message names table, bean, variable, both types, and what can be done.
//
//   - The type of a variable may only become wider (serialize/type_widening.h), so that every
//     stored value is read as an equal one: int as long, but not long as int. Beans are compared
//     variable by variable. The same holds for keys and elements of containers.
//   - A removed variable is remembered; its id may come back with the same or a wider type only.
//   - A beankey in use as a key does not lose variables.
//   - The key of a table keeps its bytes: integers may only become wider, string may become binary.
//   - The choices of a dynamic may be added to, not removed or changed. A dynamic without choices
//     holds any bean and gets none.
//   - The version of a table does not decrease. When it increases nothing else is checked: the
//     rows of the older version are set aside.
// Memory tables and those with no_schema are left out.
std::vector<std::string> CheckCompatible(const DatabaseSchema& stored,
                                         const DatabaseSchema& current,
                                         const CompatibilityOptions& options = {});

// What to store once `current` has been found compatible: `current`, with the variables and tables
// remembered that only `stored` has. Memory tables and those with no_schema are left out.
DatabaseSchema MergeSchemas(const DatabaseSchema& stored, const DatabaseSchema& current);

}  // namespace zeze

#include "zeze/bean/schema_inl.h"  // IWYU pragma: export
