// The model of a schema: what solution files say, first as written (reader.h), then with every name
// resolved and every rule checked (checker.h). Emitters read it and change nothing.
//
// Members that end in _text are as written in the file; members that are pointers or ids are set by
// the checker and may be null after an error.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/xml/diagnostics.h"

namespace zeze::gen {

using xml::Diagnostics;
using xml::Location;

struct Bean;
struct Module;
struct Protocol;
struct Solution;

enum class TypeKind : std::uint8_t {
  kUnknown,  // After an error.
  kBool,
  kByte,
  kShort,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kBinary,
  kString,
  kDecimal,
  kVector2,
  kVector2Int,
  kVector3,
  kVector3Int,
  kVector4,
  kQuaternion,
  kList,
  kSet,
  kMap,
  kSortedMap,
  kGtable,
  kBean,
  kBeanKey,
  kDynamic,
};

struct Type {
  TypeKind kind = TypeKind::kUnknown;
  Bean* bean = nullptr;          // kBean, kBeanKey
  std::vector<Type> parameters;  // list, set: value; map: key, value; gtable: row, column, value
};

// Anything with a name and a place.
struct Item {
  std::string name;
  std::string full_name;  // Dotted, from the solution's name down.
  Location location;
  std::string comment;
};

struct Enum : Item {
  std::string value_text;
  std::string type_text = "int";
  std::string group;  // Name of a C++ enum class to put it into as well.
  Location value_location;
  TypeKind kind = TypeKind::kInt;
  std::optional<std::int64_t> integer;  // Value, if it is a whole number.
  std::string cxx_value;                // C++ text of the value.
  std::string typescript_value;
};

struct DynamicChoice {
  std::string bean_text;
  std::string id_text;
  Location location;
  Bean* bean = nullptr;
  std::int64_t type_id = 0;
};

struct Variable : Item {
  int id = 0;
  std::string type_text;
  std::string key_text;
  std::string value_text;
  std::string default_text;
  std::string enum_text;
  bool has_default = false;
  bool allow_negative = false;
  bool transient = false;
  std::vector<DynamicChoice> choices;
  Location type_location;
  Location default_location;

  Type type;
  Bean* dynamic_base = nullptr;
  std::string dynamic_base_text;
  std::string cxx_default;           // Empty: the type's zero.
  std::string typescript_default;    // The same.
  const Enum* enum_group = nullptr;  // First constant of the group named by `enum`.
};

struct Bean : Item {
  bool is_key = false;
  bool is_external = false;
  std::string header;  // External: what to include.
  std::string base_text;
  std::string version_text;
  std::string type_id_text;
  Location base_location;
  Location version_location;
  Location type_id_location;
  bool keep_unknown_fields = false;
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<std::unique_ptr<Enum>> enums;
  Module* module = nullptr;  // Null: directly under the solution.
  Solution* solution = nullptr;

  std::int64_t type_id = 0;
  Bean* base = nullptr;
  std::vector<Bean*> derived;  // Direct ones.
  const Variable* version = nullptr;
};

// Who processes a protocol, or what a service processes.
struct HandleFlags {
  bool server = false;
  bool client = false;
  bool server_script = false;
  bool client_script = false;
  bool servlet = false;

  bool any() const { return server || client || server_script || client_script || servlet; }
};

enum class Level : std::uint8_t { kNone, kSerializable, kAllowDirtyWhenAllRead };

struct Protocol : Item {
  bool is_rpc = false;
  std::string id_text;
  std::string argument_text;
  std::string result_text;
  Location id_location;
  Location argument_location;
  Location result_location;
  HandleFlags handle;
  Level level = Level::kSerializable;
  int critical_level = 0;
  std::string dispatch_mode = "Normal";
  std::int64_t timeout_ms = 0;  // 0: the framework's.
  bool one_by_one = false;
  bool strict_handler = false;
  std::vector<std::unique_ptr<Enum>> enums;
  Module* module = nullptr;

  std::int32_t id = 0;
  Bean* argument = nullptr;  // Null: the empty bean.
  Bean* result = nullptr;
};

struct ProtocolRef {
  std::string target_text;
  bool import_only = false;
  Location location;
  Protocol* protocol = nullptr;
};

struct Table : Item {
  std::string key_text;
  std::string value_text;
  std::string id_text;
  std::string gen;
  std::string auto_key;
  std::string suffix;
  std::string suffix_style;
  std::string former_name;
  Location key_location;
  Location value_location;
  Location id_location;
  Location suffix_location;
  Location former_location;
  bool memory = false;
  bool no_schema = false;
  std::int32_t version = 0;
  Module* module = nullptr;

  Type key;
  Bean* value = nullptr;
  std::int32_t id = 0;
  std::string storage_name;    // Shop_Order_tOrder, with a literal suffix already appended.
  std::string storage_suffix;  // What the runtime appends: holds @ServerId or @AppMainVersion.
};

struct Servlet : Item {
  bool is_stream = false;
  std::int64_t content_bytes_max = 8192;
  Level level = Level::kSerializable;
  std::string path;
};

struct Module : Item {
  std::string id_text;
  Location id_location;
  std::int32_t id = 0;
  HandleFlags handle;  // Default for protocols that say nothing.
  bool strict_handlers = false;
  Module* parent = nullptr;
  Solution* solution = nullptr;
  std::vector<std::unique_ptr<Enum>> enums;
  std::vector<std::unique_ptr<Bean>> beans;  // Keys too, in document order.
  std::vector<std::unique_ptr<Protocol>> protocols;
  std::vector<ProtocolRef> protocol_refs;
  std::vector<std::unique_ptr<Table>> tables;
  std::vector<std::unique_ptr<Servlet>> servlets;
  std::vector<std::unique_ptr<Module>> modules;
};

struct Reference {
  std::string text;
  Location location;
};

struct Service : Item {
  HandleFlags handle;
  std::string base;
  std::vector<Reference> module_refs;

  std::vector<Module*> modules;  // With sub-modules.
};

struct Project : Item {
  bool is_component = false;
  std::string platform;
  std::string gen_tables;
  bool include_all_modules = false;
  bool no_recursive_modules = false;
  bool client_script = false;
  std::vector<Reference> module_refs;
  std::vector<Reference> start_order_refs;
  std::vector<Reference> bean_refs;
  std::vector<std::unique_ptr<Service>> services;
  Solution* solution = nullptr;

  // In the order in which modules start.
  std::vector<Module*> modules;
  std::vector<Bean*> extra_beans;

  // The service that owns a module in this project, null if none does.
  const Service* ServiceOf(const Module* module) const;
};

// One file. Several may carry the same name and then share a namespace.
struct Solution : Item {
  bool is_made = false;  // Named on the command line, not only imported.
  std::string file;
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
  Location ranges_location;
  std::vector<std::unique_ptr<Bean>> beans;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Project>> projects;
};

struct Model {
  std::vector<std::unique_ptr<Solution>> solutions;  // In the order in which they were completed.
  std::vector<std::string> files;                    // Everything read, for the build's depfile.

  std::vector<Module*> AllModules() const;  // Parents before children.
  std::vector<Bean*> AllBeans() const;
  std::vector<Project*> MadeProjects() const;
};

// Whether values of a type can be keys: immutable, and compared exactly.
bool IsKeyable(const Type& type);
bool IsContainer(TypeKind kind);
// A dynamic, or a container of them.
bool IsDynamic(const Variable& variable);
bool IsInteger(TypeKind kind);
bool IsVector(TypeKind kind);
// As written in a schema, for messages: "map[int,BItem]".
std::string ToString(const Type& type);
std::string_view ToString(TypeKind kind);
std::optional<TypeKind> FindBuiltinType(std::string_view name);
std::vector<std::string_view> BuiltinTypeNames();

}  // namespace zeze::gen
