// TypeScript: one file for each namespace, with a class for each bean, the constants, and what the
// client needs to know about each protocol.
//
// Modules of a schema may use each other's beans in circles, and so may the files: whatever runs
// while a file is loaded names a class of another file only inside a function.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/code_writer.h"
#include "tools/gen/emitter.h"
#include "tools/gen/literal.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "tools/gen/plan.h"

namespace zeze::gen {
namespace {

// Longer fields are written in several lines.
constexpr std::size_t kFieldColumnsMax = 90;

using Enums = std::vector<std::unique_ptr<Enum>>;

// Name of the codec in zeze.types, for what is neither a bean nor a container.
std::string_view ScalarCodec(TypeKind kind) {
  return ToString(kind);
}

std::string_view ScalarType(TypeKind kind) {
  switch (kind) {
    case TypeKind::kBool:
      return "boolean";
    case TypeKind::kLong:
      return "bigint";
    case TypeKind::kString:
    case TypeKind::kDecimal:
      return "string";
    case TypeKind::kBinary:
      return "Uint8Array";
    case TypeKind::kVector2:
      return "zeze.Vector2";
    case TypeKind::kVector2Int:
      return "zeze.Vector2Int";
    case TypeKind::kVector3:
      return "zeze.Vector3";
    case TypeKind::kVector3Int:
      return "zeze.Vector3Int";
    case TypeKind::kVector4:
      return "zeze.Vector4";
    case TypeKind::kQuaternion:
      return "zeze.Quaternion";
    default:
      return "number";
  }
}

std::string_view ScalarZero(TypeKind kind) {
  switch (kind) {
    case TypeKind::kBool:
      return "false";
    case TypeKind::kLong:
      return "0n";
    case TypeKind::kString:
      return "\"\"";
    case TypeKind::kDecimal:
      return "\"0\"";
    case TypeKind::kBinary:
      return "new Uint8Array(0)";
    case TypeKind::kVector2:
    case TypeKind::kVector2Int:
      return "{ x: 0, y: 0 }";
    case TypeKind::kVector3:
    case TypeKind::kVector3Int:
      return "{ x: 0, y: 0, z: 0 }";
    case TypeKind::kVector4:
    case TypeKind::kQuaternion:
      return "{ x: 0, y: 0, z: 0, w: 0 }";
    default:
      return "0";
  }
}

// Keys that JavaScript would compare by identity.
bool IsObject(const Type& type) {
  return type.kind == TypeKind::kBeanKey || type.kind == TypeKind::kBinary || IsVector(type.kind);
}

std::string BigInt(std::int64_t value) {
  return fmt::format("{}n", value);
}

std::string WithoutClash(std::string name, const std::set<std::string, std::less<>>& taken) {
  while (taken.contains(name)) name += '_';
  return name;
}

std::string MemberName(const Variable& variable) {
  static const std::set<std::string, std::less<>> own = {"encode", "decode", "constructor", "base",
                                                         "unknownFields"};
  return WithoutClash(variable.name, own);
}

std::string HandledBy(const HandleFlags& flags) {
  std::vector<std::string_view> who;
  if (flags.server || flags.server_script) who.emplace_back("server");
  if (flags.client || flags.client_script) who.emplace_back("client");
  if (flags.servlet) who.emplace_back("servlet");
  return fmt::format("{}", fmt::join(who, " and "));
}

// Writes the file of one namespace.
class FileEmitter {
 public:
  FileEmitter(const Unit& unit, const std::string& scope, const Module* module,
              const std::string& runtime)
      : unit_(unit), scope_(scope), module_(module), runtime_(runtime) {
    for (const Bean* bean : unit.beans) {
      if (NamespaceOf(*bean) == scope) beans_.push_back(bean);
    }
    for (const Protocol* protocol : unit.protocols) {
      if (protocol->module->full_name == scope) protocols_.push_back(protocol);
    }
    for (const Bean* bean : beans_) names_.insert(TypeScriptName(bean->name));
    for (const Protocol* protocol : protocols_) names_.insert(TypeScriptName(protocol->name));
  }

  std::string Emit() {
    // The name of the module's id gives way to names of the schema.
    const std::string module_id = Claim("moduleId");
    if (module_ != nullptr) {
      out_.DocComment("", module_->comment.empty() ? fmt::format("Module {}.", module_->full_name)
                                                   : module_->comment);
      out_.Line("export const {} = {};", module_id, module_->id);
      if (HasEnums()) EmitConstants(module_->enums);
    }
    for (const Bean* bean : beans_) EmitBean(*bean);
    for (const Protocol* protocol : protocols_) EmitProtocol(*protocol);
    std::string text = Banner(unit_.files) + "\n";
    if (uses_package_) {
      text += fmt::format("import * as zeze from \"{}\";\n",
                          runtime_.starts_with('.') ? ImportPath(runtime_) : runtime_);
    }
    for (const auto& [other, alias] : aliases_) {
      text +=
          fmt::format("import * as {} from \"{}\";\n", alias, ImportPath(PathOf(other) + ".js"));
    }
    if (uses_package_) text += '\n';
    text += out_.Release();
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

 private:
  bool HasEnums() const {
    return std::find(unit_.enum_modules.begin(), unit_.enum_modules.end(), module_) !=
           unit_.enum_modules.end();
  }

  // A name of this file that nothing else has.
  std::string Claim(std::string name) {
    name = WithoutClash(std::move(name), names_);
    names_.insert(name);
    return name;
  }

  // The path of a file below the output directory, as seen from this one.
  std::string ImportPath(const std::string& file) const {
    const std::filesystem::path folder = std::filesystem::path(PathOf(scope_)).parent_path();
    const std::string path =
        std::filesystem::path(file).lexically_normal().lexically_relative(folder).generic_string();
    return path.starts_with('.') ? path : "./" + path;
  }

  std::string BeanName(const Bean& bean) {
    const std::string other = NamespaceOf(bean);
    if (other == scope_) return TypeScriptName(bean.name);
    auto at = aliases_.find(other);
    if (at == aliases_.end()) {
      std::string alias = other;
      std::replace(alias.begin(), alias.end(), '.', '_');
      at = aliases_.emplace(other, Claim(TypeScriptName(alias))).first;
    }
    return fmt::format("{}.{}", at->second, TypeScriptName(bean.name));
  }

  std::string DynamicType(const Variable& variable) {
    std::string text;
    for (const DynamicChoice& choice : variable.choices) text += BeanName(*choice.bean) + " | ";
    return text + "null";
  }

  std::string SimpleType(const Type& type, const Variable& variable) {
    if (type.kind == TypeKind::kDynamic) return DynamicType(variable);
    if (type.bean != nullptr) return BeanName(*type.bean);
    return std::string(ScalarType(type.kind));
  }

  std::string MapType(const Type& key, const std::string& value) {
    return fmt::format("{}<{}, {}>", IsObject(key) ? "zeze.ValueMap" : "Map", KeyType(key), value);
  }

  std::string KeyType(const Type& key) {
    return key.bean != nullptr ? BeanName(*key.bean) : std::string(ScalarType(key.kind));
  }

  std::string VariableType(const Variable& variable) {
    const Type& type = variable.type;
    const auto& parts = type.parameters;
    switch (type.kind) {
      case TypeKind::kList: {
        const std::string element = SimpleType(parts[0], variable);
        const bool plain = element.find(' ') == std::string::npos;
        return plain ? element + "[]" : fmt::format("({})[]", element);
      }
      case TypeKind::kSet:
        return fmt::format("{}<{}>", IsObject(parts[0]) ? "zeze.ValueSet" : "Set",
                           KeyType(parts[0]));
      case TypeKind::kMap:
      case TypeKind::kSortedMap:
        return MapType(parts[0], SimpleType(parts[1], variable));
      case TypeKind::kGtable:
        return MapType(parts[0], MapType(parts[1], SimpleType(parts[2], variable)));
      default:
        return SimpleType(type, variable);
    }
  }

  std::string SimpleCodec(const Type& type, const Variable& variable) {
    if (type.kind == TypeKind::kBean) {
      return fmt::format("zeze.types.bean(() => {})", BeanName(*type.bean));
    }
    if (type.kind == TypeKind::kBeanKey) {
      return fmt::format("zeze.types.beanKey(() => {})", BeanName(*type.bean));
    }
    if (type.kind != TypeKind::kDynamic) {
      return fmt::format("zeze.types.{}", ScalarCodec(type.kind));
    }
    std::string beans;
    std::string choices;
    for (const DynamicChoice& choice : variable.choices) {
      const std::string name = BeanName(*choice.bean);
      beans += fmt::format("{}{}", beans.empty() ? "" : " | ", name);
      choices +=
          fmt::format("{}[{}, {}]", choices.empty() ? "" : ", ", BigInt(choice.type_id), name);
    }
    return fmt::format("zeze.types.dynamic<{}>(() => [{}])", beans.empty() ? "never" : beans,
                       choices);
  }

  std::string MapCodec(std::string_view plain, std::string_view by_value, const Type& key,
                       const std::string& value, const Variable& variable) {
    return fmt::format("zeze.types.{}({}, {})", IsObject(key) ? by_value : plain,
                       SimpleCodec(key, variable), value);
  }

  std::string VariableCodec(const Variable& variable) {
    const Type& type = variable.type;
    const auto& parts = type.parameters;
    switch (type.kind) {
      case TypeKind::kList:
        return fmt::format("zeze.types.list({})", SimpleCodec(parts[0], variable));
      case TypeKind::kSet:
        return fmt::format("zeze.types.{}({})", IsObject(parts[0]) ? "valueSet" : "set",
                           SimpleCodec(parts[0], variable));
      case TypeKind::kMap:
        return MapCodec("map", "valueMap", parts[0], SimpleCodec(parts[1], variable), variable);
      case TypeKind::kSortedMap:
        return MapCodec("sortedMap", "sortedValueMap", parts[0], SimpleCodec(parts[1], variable),
                        variable);
      case TypeKind::kGtable: {
        const std::string cells =
            MapCodec("map", "valueMap", parts[1], SimpleCodec(parts[2], variable), variable);
        return MapCodec("map", "valueMap", parts[0], fmt::format("zeze.types.row({})", cells),
                        variable);
      }
      default:
        return SimpleCodec(type, variable);
    }
  }

  std::string InitialValue(const Variable& variable) {
    if (!variable.typescript_default.empty()) return variable.typescript_default;
    const Type& type = variable.type;
    const auto container = [&](std::string_view plain, std::string_view by_value) {
      const Type& key = type.parameters[0];
      if (!IsObject(key)) return fmt::format("new {}()", plain);
      return fmt::format("new zeze.{}({})", by_value, SimpleCodec(key, variable));
    };
    switch (type.kind) {
      case TypeKind::kList:
        return "[]";
      case TypeKind::kSet:
        return container("Set", "ValueSet");
      case TypeKind::kMap:
      case TypeKind::kSortedMap:
      case TypeKind::kGtable:
        return container("Map", "ValueMap");
      case TypeKind::kDynamic:
        return "null";
      case TypeKind::kBean:
      case TypeKind::kBeanKey:
        return fmt::format("new {}()", BeanName(*type.bean));
      default:
        return std::string(ScalarZero(type.kind));
    }
  }

  // Constants of a module: exported by themselves.
  void EmitConstants(const Enums& enums) {
    for (const auto& constant : enums) {
      out_.DocComment("", constant->comment);
      out_.Line("export const {} = {};", Claim(TypeScriptName(constant->name)),
                constant->typescript_value);
    }
    EmitGroups("", enums);
  }

  // Each group as an object, and as the type of its values.
  void EmitGroups(const std::string& prefix, const Enums& enums) {
    std::vector<std::string> groups;
    for (const auto& constant : enums) {
      if (!constant->group.empty() &&
          std::find(groups.begin(), groups.end(), constant->group) == groups.end()) {
        groups.push_back(constant->group);
      }
    }
    for (const std::string& group : groups) {
      const std::string name = Claim(TypeScriptName(prefix + group));
      out_.Blank();
      out_.Line("export const {} = {{", name);
      for (const auto& constant : enums) {
        if (constant->group != group) continue;
        out_.DocComment("  ", constant->comment);
        out_.Line("  {}: {},", constant->name, constant->typescript_value);
      }
      out_.Line("}} as const;");
      out_.Line("export type {0} = (typeof {0})[keyof typeof {0}];", name);
    }
  }

  void EmitBean(const Bean& bean) {
    static const std::set<std::string, std::less<>> own_statics = {
        "typeId", "fullName", "fields", "name", "length", "prototype", "arguments", "caller"};
    uses_package_ = true;
    const std::string name = TypeScriptName(bean.name);
    out_.Blank();
    out_.DocComment("", bean.comment);
    out_.Line("export class {} implements zeze.Bean {{", name);
    out_.Line("  static readonly typeId = {};", BigInt(bean.type_id));
    out_.Line("  static readonly fullName = {};", QuoteTypeScript(bean.full_name));
    EmitFields(bean, name);
    for (const auto& constant : bean.enums) {
      out_.DocComment("  ", constant->comment);
      out_.Line("  static readonly {} = {};", WithoutClash(constant->name, own_statics),
                constant->typescript_value);
    }
    out_.Blank();
    if (bean.base != nullptr) {
      out_.Line("  base: {0} = new {0}();", BeanName(*bean.base));
    }
    for (const auto& variable : bean.variables) EmitVariable(*variable);
    if (bean.keep_unknown_fields) {
      out_.Line("  /** What newer versions of the schema sent; sent back as it came. */");
      out_.Line("  unknownFields: zeze.UnknownField[] = [];");
    }
    EmitMethods(bean, name);
    out_.Line("}}");
    EmitGroups(bean.name + "_", bean.enums);
  }

  void EmitFields(const Bean& bean, const std::string& name) {
    std::vector<const Variable*> sorted;
    for (const auto& variable : bean.variables) {
      if (!variable->transient) sorted.push_back(variable.get());
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const Variable* left, const Variable* right) { return left->id < right->id; });
    if (sorted.empty()) {
      out_.Line("  static readonly fields: readonly zeze.Field<{}>[] = [];", name);
      return;
    }
    out_.Line("  static readonly fields: readonly zeze.Field<{}>[] = [", name);
    for (const Variable* variable : sorted) {
      const std::string head =
          fmt::format("id: {}, name: \"{}\",", variable->id, MemberName(*variable));
      const std::string codec =
          fmt::format("codec: {}{}", VariableCodec(*variable),
                      variable->typescript_default.empty() ? "" : ", zeroWhenAbsent: true");
      if (head.size() + codec.size() <= kFieldColumnsMax) {
        out_.Line("    {{ {} {} }},", head, codec);
      } else {
        out_.Line("    {{\n      {}\n      {},\n    }},", head, codec);
      }
    }
    out_.Line("  ];");
  }

  void EmitVariable(const Variable& variable) {
    std::string comment = variable.comment;
    const auto add = [&comment](const std::string& text) {
      comment += comment.empty() ? text : "\n" + text;
    };
    if (!variable.typescript_default.empty()) {
      add(fmt::format("Starts as {}; absent in sent bytes means zero.",
                      variable.typescript_default));
    }
    if (variable.transient) add("Not sent.");
    out_.DocComment("  ", comment);
    out_.Line("  {}: {} = {};", MemberName(variable), VariableType(variable),
              InitialValue(variable));
  }

  void EmitMethods(const Bean& bean, const std::string& name) {
    std::vector<std::string_view> parts;
    if (bean.base != nullptr) parts.emplace_back("base: this.base");
    if (bean.keep_unknown_fields) parts.emplace_back("unknownFields: this.unknownFields");
    const std::string more = parts.empty() ? "" : fmt::format(", {{ {} }}", fmt::join(parts, ", "));
    out_.Blank();
    out_.Line("  constructor(fields?: zeze.FieldsOf<{}>) {{", name);
    out_.Line("    Object.assign(this, fields);");
    out_.Line("  }}");
    out_.Blank();
    out_.Line("  encode(out: zeze.ByteWriter): void {{");
    out_.Line("    zeze.encodeFields(this, {}.fields, out{});", name, more);
    out_.Line("  }}");
    out_.Blank();
    out_.Line("  decode(input: zeze.ByteReader): void {{");
    out_.Line("    zeze.decodeFields(this, {}.fields, input{});", name, more);
    out_.Line("  }}");
  }

  void EmitProtocol(const Protocol& protocol) {
    static const std::set<std::string, std::less<>> own = {"kind",        "moduleId", "protocolId",
                                                           "typeId",      "fullName", "timeoutMs",
                                                           "newArgument", "newResult"};
    uses_package_ = true;
    const auto type = [this](const Bean* bean) {
      return bean == nullptr ? std::string("zeze.EmptyBean") : BeanName(*bean);
    };
    const std::int64_t type_id =
        (std::int64_t{protocol.module->id} << 32) | static_cast<std::uint32_t>(protocol.id);
    out_.Blank();
    out_.DocComment(
        "", fmt::format("{}{}{}, handled by the {}.", protocol.comment,
                        protocol.comment.empty() ? "" : "\n", protocol.is_rpc ? "Rpc" : "Protocol",
                        HandledBy(protocol.handle)));
    out_.Line("export const {} = {{", TypeScriptName(protocol.name));
    out_.Line("  kind: \"{}\",", protocol.is_rpc ? "rpc" : "protocol");
    out_.Line("  moduleId: {},", protocol.module->id);
    out_.Line("  protocolId: {},", protocol.id);
    out_.Line("  typeId: {},", BigInt(type_id));
    out_.Line("  fullName: {},", QuoteTypeScript(protocol.full_name));
    out_.Line("  newArgument: () => new {}(),", type(protocol.argument));
    if (protocol.is_rpc) {
      out_.Line("  newResult: () => new {}(),", type(protocol.result));
      if (protocol.timeout_ms != 0) out_.Line("  timeoutMs: {},", protocol.timeout_ms);
    }
    std::vector<std::string> constants;
    for (const auto& constant : protocol.enums) {
      const std::string name = WithoutClash(constant->name, own);
      out_.DocComment("  ", constant->comment);
      out_.Line("  {}: {},", name, constant->typescript_value);
      constants.push_back(QuoteTypeScript(name));
    }
    const std::string more =
        constants.empty() ? "" : fmt::format(" & Record<{}, unknown>", fmt::join(constants, " | "));
    if (protocol.is_rpc) {
      out_.Line("}} as const satisfies zeze.Rpc<{}, {}>{};", type(protocol.argument),
                type(protocol.result), more);
    } else {
      out_.Line("}} as const satisfies zeze.Protocol<{}>{};", type(protocol.argument), more);
    }
    EmitGroups(protocol.name + "_", protocol.enums);
  }

  const Unit& unit_;
  const std::string& scope_;
  const Module* module_;  // Null for what stands directly under a solution.
  const std::string& runtime_;
  std::vector<const Bean*> beans_;
  std::vector<const Protocol*> protocols_;
  std::set<std::string, std::less<>> names_;    // Taken in this file.
  std::map<std::string, std::string> aliases_;  // Other namespaces, as they are imported.
  bool uses_package_ = false;
  CodeWriter out_;
};

}  // namespace

GeneratedFiles EmitTypeScript(const Plan& plan, const std::string& runtime) {
  std::map<std::string, const Module*> modules;
  for (const Module* module : plan.modules) modules[module->full_name] = module;
  for (const auto& unit : plan.units) {
    for (const Protocol* protocol : unit->protocols) {
      modules[protocol->module->full_name] = protocol->module;
    }
    for (const Bean* bean : unit->beans) {
      if (bean->module != nullptr) modules[bean->module->full_name] = bean->module;
    }
  }
  GeneratedFiles files;
  for (const auto& unit : plan.units) {
    for (const std::string& scope : unit->namespaces) {
      const auto module = modules.find(scope);
      files[PathOf(scope) + ".ts"] =
          FileEmitter(*unit, scope, module == modules.end() ? nullptr : module->second, runtime)
              .Emit();
    }
  }
  return files;
}

}  // namespace zeze::gen
