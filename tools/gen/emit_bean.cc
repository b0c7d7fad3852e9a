// Beans, beankeys, constants and protocol descriptors: one header and one .cc for each unit.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/code_writer.h"
#include "tools/gen/cxx_names.h"
#include "tools/gen/emitter.h"
#include "tools/gen/literal.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "tools/gen/plan.h"

namespace zeze::gen {
namespace {

std::string_view ScalarType(TypeKind kind) {
  switch (kind) {
    case TypeKind::kBool:
      return "bool";
    case TypeKind::kByte:
      return "std::int8_t";
    case TypeKind::kShort:
      return "std::int16_t";
    case TypeKind::kInt:
      return "std::int32_t";
    case TypeKind::kLong:
      return "std::int64_t";
    case TypeKind::kFloat:
      return "float";
    case TypeKind::kDouble:
      return "double";
    case TypeKind::kBinary:
      return "zeze::Binary";
    case TypeKind::kString:
      return "std::string";
    case TypeKind::kDecimal:
      return "zeze::Decimal";
    case TypeKind::kVector2:
      return "zeze::Vector2";
    case TypeKind::kVector2Int:
      return "zeze::Vector2Int";
    case TypeKind::kVector3:
      return "zeze::Vector3";
    case TypeKind::kVector3Int:
      return "zeze::Vector3Int";
    case TypeKind::kVector4:
      return "zeze::Vector4";
    case TypeKind::kQuaternion:
      return "zeze::Quaternion";
    default:
      return "";
  }
}

// A dynamic that names no beans is an AnyBean.
bool HasChoices(const Variable& variable) {
  return IsDynamic(variable) && !variable.choices.empty();
}

std::string Zero(TypeKind kind) {
  if (kind == TypeKind::kBool) return "false";
  if (kind == TypeKind::kFloat) return "0.0F";
  if (kind == TypeKind::kDouble) return "0.0";
  if (IsInteger(kind)) return "0";
  return "{}";
}

// Names of parameters inside one struct that do not hide a member.
class ParameterNames {
 public:
  explicit ParameterNames(const Bean& bean) {
    for (const auto& variable : bean.variables) taken_.insert(variable->name);
  }

  std::string Of(std::string name) const {
    while (taken_.contains(name)) name += "_arg";
    return name;
  }

 private:
  std::set<std::string> taken_;
};

// The C++ name of a constant or group in the scope that it is written in.
using NameIn = std::function<std::string(std::string_view)>;

class HeaderEmitter {
 public:
  explicit HeaderEmitter(const Unit& unit) : unit_(unit) {}

  std::string Emit() {
    EmitIncludes();
    EmitForwardDeclarations();
    for (const Module* module : unit_.enum_modules) EmitModuleEnums(*module);
    for (const Bean* bean : unit_.beans) EmitBean(*bean);
    for (const Protocol* protocol : unit_.protocols) EmitProtocol(*protocol);
    std::string text = Banner(unit_.files) + "\n#pragma once\n\n" + includes_ + out_.Release();
    // Behind everything: what is there only declared so far, complete for whoever uses it.
    std::string weak;
    for (const std::string& path : PathsOf(unit_.weak))
      weak += fmt::format("#include \"{}\"\n", path);
    if (!weak.empty()) text += (text.ends_with("\n\n") ? "" : "\n") + weak;
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

 private:
  static std::set<std::string> PathsOf(const std::set<const Unit*>& units) {
    std::set<std::string> paths;
    for (const Unit* unit : units) paths.insert(unit->path() + ".h");
    return paths;
  }

  void NoteType(const Type& type, std::set<std::string>& standard, std::set<std::string>& ours) {
    switch (type.kind) {
      case TypeKind::kString:
        standard.insert("string");
        break;
      case TypeKind::kBinary:
        ours.insert("zeze/serialize/binary.h");
        break;
      case TypeKind::kDecimal:
        ours.insert("zeze/serialize/decimal.h");
        break;
      case TypeKind::kList:
        ours.insert("zeze/bean/list.h");
        break;
      case TypeKind::kSet:
        ours.insert("zeze/bean/set.h");
        break;
      case TypeKind::kMap:
        ours.insert("zeze/bean/map.h");
        break;
      case TypeKind::kSortedMap:
        ours.insert("zeze/bean/sorted_map.h");
        break;
      case TypeKind::kGtable:
        ours.insert("zeze/bean/gtable.h");
        ours.insert("zeze/bean/map.h");
        break;
      default:
        if (IsVector(type.kind)) ours.insert("zeze/serialize/vector.h");
        break;
    }
    if (type.bean != nullptr && type.bean->is_external && !type.bean->header.empty()) {
      ours.insert(type.bean->header);
    }
    for (const Type& parameter : type.parameters) NoteType(parameter, standard, ours);
  }

  void EmitIncludes() {
    std::set<std::string> standard = {"cstdint", "string_view"};
    std::set<std::string> ours;
    for (const Bean* bean : unit_.beans) {
      standard.insert("string");
      ours.insert("zeze/bean/field.h");
      if (bean->is_key) standard.insert({"compare", "cstddef", "functional"});
      if (bean->keep_unknown_fields) ours.insert("zeze/bean/unknown_fields.h");
      for (const auto& variable : bean->variables) {
        NoteType(variable->type, standard, ours);
        if (!IsDynamic(*variable)) continue;
        ours.insert(HasChoices(*variable) ? "zeze/bean/choices.h" : "zeze/bean/any_bean.h");
      }
    }
    for (const Protocol* protocol : unit_.protocols) {
      ours.insert("zeze/net/protocol.h");
      if (protocol->argument == nullptr || protocol->result == nullptr) {
        ours.insert("zeze/bean/empty_bean.h");
      }
      for (const Bean* bean : {protocol->argument, protocol->result}) {
        if (bean != nullptr && bean->is_external && !bean->header.empty())
          ours.insert(bean->header);
      }
    }
    for (const std::string& name : standard) includes_ += fmt::format("#include <{}>\n", name);
    if (!ours.empty()) includes_ += '\n';
    for (const std::string& name : ours) includes_ += fmt::format("#include \"{}\"\n", name);
    const std::set<std::string> strong = PathsOf(unit_.strong);
    if (!strong.empty()) includes_ += '\n';
    for (const std::string& path : strong) includes_ += fmt::format("#include \"{}\"\n", path);
    includes_ += '\n';
  }

  void EmitForwardDeclarations() {
    if (!unit_.beans.empty()) {
      out_.Line(
          "namespace zeze {{\n\nclass ByteReader;\nclass ByteWriter;\n\n}}  // namespace zeze\n");
    }
    std::map<std::string, std::set<std::string>> declared;
    const auto declare = [&](const Bean* bean) {
      if (bean == nullptr || bean->is_external) return;
      declared[NamespaceOf(*bean)].insert(bean->name);
    };
    for (const Bean* bean : unit_.beans) {
      declare(bean);
      for (const auto& variable : bean->variables) {
        for (const Type& parameter : variable->type.parameters) declare(parameter.bean);
        for (const DynamicChoice& choice : variable->choices) declare(choice.bean);
      }
    }
    for (const Protocol* protocol : unit_.protocols) {
      declare(protocol->argument);
      declare(protocol->result);
    }
    for (const auto& [scope, names] : declared) {
      out_.Namespace(scope);
      for (const std::string& name : names) out_.Line("struct {};", CxxName(name));
    }
  }

  void EmitEnums(std::string_view indent, std::string_view storage,
                 const std::vector<std::unique_ptr<Enum>>& enums, const NameIn& constant_name,
                 const NameIn& group_name) {
    for (const auto& constant : enums) {
      out_.Comment(indent, constant->comment);
      const bool text = constant->kind == TypeKind::kString;
      out_.Line("{}{} constexpr {} {} = {};", indent, storage,
                text ? "std::string_view" : ScalarType(constant->kind),
                constant_name(constant->name), constant->cxx_value);
    }
    std::vector<std::string> groups;
    for (const auto& constant : enums) {
      if (!constant->group.empty() &&
          std::find(groups.begin(), groups.end(), constant->group) == groups.end()) {
        groups.push_back(constant->group);
      }
    }
    for (const std::string& group : groups) EmitGroup(indent, group, group_name(group), enums);
  }

  void EmitGroup(std::string_view indent, const std::string& group, const std::string& name,
                 const std::vector<std::unique_ptr<Enum>>& enums) {
    bool first = true;
    for (const auto& constant : enums) {
      if (constant->group != group) continue;
      if (first) {
        out_.Line("{}enum class {} : {} {{", indent, name, ScalarType(constant->kind));
      }
      first = false;
      out_.Comment(fmt::format("{}  ", indent), constant->comment);
      out_.Line("{}  {} = {},", indent, CxxName(constant->name), constant->cxx_value);
    }
    out_.Line("{}}};", indent);
  }

  void EmitModuleEnums(const Module& module) {
    out_.Namespace(module.full_name);
    out_.Blank();
    EmitEnums("", "inline", module.enums, &CxxName, &CxxName);
  }

  void EmitBean(const Bean& bean) {
    const std::string scope = NamespaceOf(bean);
    const ParameterNames names(bean);
    out_.Namespace(scope);
    out_.Blank();
    out_.Comment("", bean.comment);
    const std::string name = CxxName(bean.name);
    out_.Line("struct {} {{", name);
    out_.Line("  static constexpr std::int64_t kTypeId = {};", CxxInteger(bean.type_id));
    out_.Line("  static constexpr std::string_view kFullName = {};", QuoteCxx(bean.full_name));
    if (bean.is_key) out_.Line("  static constexpr bool kIsKey = true;");
    EmitEnums(
        "  ", "static", bean.enums,
        [&](std::string_view constant) { return CxxMemberName(bean, constant); },
        [&](std::string_view group) { return CxxGroupName(bean, group); });
    out_.Blank();
    if (bean.base != nullptr) {
      out_.Line("  using Base = {};", BeanNameInside(bean, *bean.base, scope));
      out_.Line("  Base base = {{}};");
    }
    for (const auto& variable : bean.variables) EmitVariable(bean, *variable, scope);
    if (bean.keep_unknown_fields) {
      out_.Line("  // What newer versions of the schema stored; written back as it came.");
      out_.Line("  zeze::UnknownFields unknown_fields = {{}};");
    }
    if (bean.version != nullptr) {
      out_.Line("  // Counted up by each commit that changes the record.");
      out_.Line("  static constexpr auto kVersion = &{}::{};", name,
                CxxMemberName(bean, bean.version->name));
    }
    EmitEnumAccessors(bean, names, scope);
    EmitForEachField(bean, names);
    out_.Line("  void Encode(zeze::ByteWriter& {}) const;", names.Of("out"));
    out_.Line("  void Decode(zeze::ByteReader& {});", names.Of("in"));
    out_.Line("  bool operator==(const {}& {}) const;", name, names.Of("other"));
    if (bean.is_key) {
      out_.Line("  std::weak_ordering operator<=>(const {}& {}) const;", name, names.Of("other"));
    }
    out_.Line("  std::string ToString() const;");
    out_.Line("  bool HasNegative() const;");
    out_.Line("}};");
    if (bean.is_key) EmitHash(bean);
  }

  void EmitVariable(const Bean& bean, const Variable& variable, const std::string& scope) {
    if (IsDynamic(variable)) {
      out_.Line("  using {} = {};", CxxDynamicName(variable),
                CxxDynamicType(bean, variable, scope));
    }
    out_.Comment("  ", variable.comment);
    if (!variable.cxx_default.empty()) {
      out_.Line("  // Starts as {}; absent in stored or sent bytes means zero.",
                variable.cxx_default);
    }
    const std::string member = CxxMemberName(bean, variable.name);
    const std::string type = CxxType(bean, variable, scope);
    std::string value =
        variable.cxx_default.empty() ? Zero(variable.type.kind) : variable.cxx_default;
    out_.Line("  {} {} = {};", type, member, value);
  }

  void EmitEnumAccessors(const Bean& bean, const ParameterNames& names, const std::string& scope) {
    for (const auto& variable : bean.variables) {
      if (variable->enum_group == nullptr) continue;
      std::string type = CxxGroupName(bean, variable->enum_group->group);
      const std::size_t dot = variable->enum_text.rfind('.');
      if (dot != std::string::npos) {
        const std::string owner = variable->enum_text.substr(0, dot);
        const bool is_local = owner.find('.') == std::string::npos;
        type = fmt::format("{}::{}",
                           CxxQualifiedName(is_local ? fmt::format("{}.{}", scope, owner) : owner),
                           CxxName(variable->enum_group->group));
      }
      const std::string member = CxxMemberName(bean, variable->name);
      out_.Blank();
      out_.Line("  {} {}_enum() const {{ return static_cast<{}>({}); }}", type, variable->name,
                type, member);
      out_.Line("  void set_{}_enum({} {}) {{", variable->name, type, names.Of("value"));
      out_.Line("    {} = static_cast<{}>({});", member, ScalarType(variable->type.kind),
                names.Of("value"));
      out_.Line("  }}");
    }
  }

  void EmitForEachField(const Bean& bean, const ParameterNames& names) {
    std::vector<const Variable*> sorted;
    sorted.reserve(bean.variables.size());
    for (const auto& variable : bean.variables) sorted.push_back(variable.get());
    std::sort(sorted.begin(), sorted.end(),
              [](const Variable* left, const Variable* right) { return left->id < right->id; });
    const std::string visit = names.Of("visit");
    out_.Blank();
    out_.Line("  template <typename Visitor>");
    if (sorted.empty()) {
      out_.Line("  static constexpr void ForEachField(Visitor&&) {{}}");
      out_.Blank();
      return;
    }
    out_.Line("  static constexpr void ForEachField(Visitor&& {}) {{", visit);
    for (const Variable* variable : sorted) {
      std::string flags;
      if (!variable->cxx_default.empty()) flags += ", .zero_when_absent = true";
      if (variable->transient) flags += ", .transient = true";
      if (variable->allow_negative) flags += ", .allow_negative = true";
      const std::string field =
          flags.empty() ? fmt::format("{{{}, {}}}", variable->id, QuoteCxx(variable->name))
                        : fmt::format("{{.id = {}, .name = {}{}}}", variable->id,
                                      QuoteCxx(variable->name), flags);
      out_.Line("    {}(zeze::Field{}, &{}::{});", visit, field, CxxName(bean.name),
                CxxMemberName(bean, variable->name));
    }
    out_.Line("  }}");
    out_.Blank();
  }

  void EmitHash(const Bean& bean) {
    out_.Namespace("");
    out_.Line("template <>");
    out_.Line("struct std::hash<{}> {{", CxxQualifiedName(bean.full_name));
    out_.Line("  std::size_t operator()(const {}& key) const noexcept;",
              CxxQualifiedName(bean.full_name));
    out_.Line("}};");
    out_.Blank();
  }

  static std::string Flags(const HandleFlags& flags) {
    std::string text;
    const auto add = [&](bool set, std::string_view name) {
      if (set) text += fmt::format("{}.{} = true", text.empty() ? "" : ", ", name);
    };
    add(flags.server, "server");
    add(flags.client, "client");
    add(flags.server_script, "server_script");
    add(flags.client_script, "client_script");
    add(flags.servlet, "servlet");
    return text;
  }

  void EmitProtocol(const Protocol& protocol) {
    static constexpr std::string_view kLevels[] = {"kNone", "kSerializable",
                                                   "kAllowDirtyWhenAllRead"};
    static constexpr std::string_view kCritical[] = {"kCriticalPlus", "kCritical", "kNormal",
                                                     "kSheddable"};
    const std::string& scope = protocol.module->full_name;
    out_.Namespace(scope);
    out_.Blank();
    out_.Comment(
        "", protocol.comment.empty()
                ? fmt::format("{} {}.", protocol.is_rpc ? "Rpc" : "Protocol", protocol.full_name)
                : protocol.comment);
    const auto type = [&](const Bean* bean) {
      if (bean == nullptr) return std::string("zeze::EmptyBean");
      return CxxBeanName(*bean, IsHiddenIn(protocol, bean->name) ? std::string_view() : scope);
    };
    out_.Line("struct {} {{", CxxName(protocol.name));
    out_.Line("  using Argument = {};", type(protocol.argument));
    out_.Line("  using Result = {};", type(protocol.result));
    const NameIn own = [&](std::string_view constant) {
      return CxxConstantName(protocol, constant);
    };
    EmitEnums("  ", "static", protocol.enums, own, own);
    out_.Line("  static constexpr std::int32_t kModuleId = {};", protocol.module->id);
    out_.Line("  static constexpr std::int32_t kProtocolId = {};", CxxInt32(protocol.id));
    out_.Line("  static constexpr std::int64_t kTypeId = {};",
              (std::int64_t{protocol.module->id} << 32) | static_cast<std::uint32_t>(protocol.id));
    out_.Line("  static constexpr std::string_view kFullName = {};", QuoteCxx(protocol.full_name));
    out_.Line("  static constexpr zeze::ProtocolDescriptor kDescriptor{{");
    out_.Line("      .module_id = kModuleId,");
    out_.Line("      .protocol_id = kProtocolId,");
    out_.Line("      .full_name = kFullName,");
    out_.Line("      .is_rpc = {},", protocol.is_rpc);
    out_.Line("      .level = zeze::HandlerLevel::{},", kLevels[static_cast<int>(protocol.level)]);
    out_.Line("      .critical_level = zeze::CriticalLevel::{},",
              kCritical[protocol.critical_level]);
    out_.Line("      .dispatch_mode = zeze::DispatchMode::k{},", protocol.dispatch_mode);
    out_.Line("      .timeout_ms = {},", protocol.timeout_ms);
    out_.Line("      .one_by_one = {},", protocol.one_by_one);
    out_.Line("      .handled_by = {{{}}},", Flags(protocol.handle));
    out_.Line("  }};");
    out_.Line("}};");
  }

  static std::string CxxInt32(std::int32_t value) {
    return value == std::numeric_limits<std::int32_t>::min() ? "(-2147483647 - 1)"
                                                             : std::to_string(value);
  }

  const Unit& unit_;
  CodeWriter out_;
  std::string includes_;
};

std::string EmitSource(const Unit& unit) {
  CodeWriter out;
  for (const Bean* bean : unit.beans) {
    const ParameterNames names(*bean);
    const std::string name = CxxName(bean->name);
    const std::string other = names.Of("other");
    const std::string writer = names.Of("out");
    const std::string reader = names.Of("in");
    out.Namespace(NamespaceOf(*bean));
    out.Blank();
    out.Line("void {0}::Encode(zeze::ByteWriter& {1}) const {{ zeze::EncodeFields(*this, {1}); }}",
             name, writer);
    out.Line("void {0}::Decode(zeze::ByteReader& {1}) {{ zeze::DecodeFields(*this, {1}); }}", name,
             reader);
    out.Line(
        "bool {0}::operator==(const {0}& {1}) const {{ return zeze::EqualFields(*this, {1}); }}",
        name, other);
    if (bean->is_key) {
      out.Line("std::weak_ordering {0}::operator<=>(const {0}& {1}) const {{", name, other);
      out.Line("  return zeze::CompareFields(*this, {});", other);
      out.Line("}}");
    }
    out.Line("std::string {}::ToString() const {{ return zeze::FormatFields(*this); }}", name);
    out.Line("bool {}::HasNegative() const {{ return zeze::HasNegativeFields(*this); }}", name);
    if (bean->is_key) {
      out.Namespace("");
      const std::string qualified = CxxQualifiedName(bean->full_name);
      out.Line("std::size_t std::hash<{0}>::operator()(const {0}& key) const noexcept {{",
               qualified);
      out.Line("  return zeze::HashFields(key);");
      out.Line("}}");
      out.Blank();
    }
  }
  return Banner(unit.files) +
         fmt::format("\n#include \"{}.h\"\n\n#include \"zeze/bean/codec.h\"\n\n", unit.path()) +
         out.Release();
}

std::string Trimmed(std::string text) {
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace

std::string CxxBeanName(const Bean& bean, std::string_view scope) {
  if (!bean.is_external && !scope.empty() && NamespaceOf(bean) == scope) return CxxName(bean.name);
  return CxxQualifiedName(bean.full_name);
}

std::string CxxSimpleType(const Type& type, std::string_view scope) {
  if (type.bean != nullptr) return CxxBeanName(*type.bean, scope);
  return std::string(ScalarType(type.kind));
}

std::string BeanNameInside(const Bean& inside, const Bean& bean, std::string_view scope) {
  return CxxBeanName(bean, IsHiddenIn(inside, bean.name) ? std::string_view() : scope);
}

std::string CxxDynamicType(const Bean& bean, const Variable& variable, std::string_view scope) {
  if (variable.choices.empty()) return "zeze::AnyBean";
  // In order of their ids: variables with equal choices have one type.
  std::map<std::int64_t, const Bean*> choices;
  for (const DynamicChoice& choice : variable.choices) choices[choice.type_id] = choice.bean;
  std::string text;
  for (const auto& [type_id, choice] : choices) {
    text += fmt::format("{}\n      zeze::Choice<{}, {}>", text.empty() ? "" : ",",
                        BeanNameInside(bean, *choice, scope), CxxInteger(type_id));
  }
  return fmt::format("zeze::Dynamic<zeze::Choices<{}>>", text);
}

std::string CxxType(const Bean& bean, const Variable& variable, std::string_view scope) {
  const Type& type = variable.type;
  const auto element = [&](const Type& part) {
    if (part.kind == TypeKind::kDynamic) return CxxDynamicName(variable);
    if (part.bean != nullptr) return BeanNameInside(bean, *part.bean, scope);
    return CxxSimpleType(part, scope);
  };
  switch (type.kind) {
    case TypeKind::kList:
      return fmt::format("zeze::List<{}>", element(type.parameters[0]));
    case TypeKind::kSet:
      return fmt::format("zeze::Set<{}>", element(type.parameters[0]));
    case TypeKind::kMap:
      return fmt::format("zeze::Map<{}, {}>", element(type.parameters[0]),
                         element(type.parameters[1]));
    case TypeKind::kSortedMap:
      return fmt::format("zeze::SortedMap<{}, {}>", element(type.parameters[0]),
                         element(type.parameters[1]));
    case TypeKind::kGtable:
      return fmt::format("zeze::Map<{}, zeze::GTableRow<{}, {}>>", element(type.parameters[0]),
                         element(type.parameters[1]), element(type.parameters[2]));
    default:
      return element(type);
  }
}

void EmitUnit(const Unit& unit, GeneratedFiles& files) {
  files[unit.path() + ".h"] = HeaderEmitter(unit).Emit();
  if (!unit.beans.empty()) files[unit.path() + ".cc"] = Trimmed(EmitSource(unit));
  // A namespace that shares the unit of another one still has the header that people expect.
  for (std::size_t index = 1; index < unit.namespaces.size(); ++index) {
    files[PathOf(unit.namespaces[index]) + ".h"] =
        Banner(unit.files) +
        fmt::format("\n#pragma once\n\n#include \"{}.h\"  // They embed each other.\n",
                    unit.path());
  }
}

}  // namespace zeze::gen
