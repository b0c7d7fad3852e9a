#include "tools/gen/cxx_names.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/checker.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

using Names = std::set<std::string_view>;

const Names& BeanNames() {
  static const Names names = {
      "Encode", "Decode", "ToString", "HasNegative", "ForEachField", "kTypeId",        "kFullName",
      "kIsKey", "Base",   "kVersion", "base",        "Visitor",      "unknown_fields", "operator"};
  return names;
}

const Names& ProtocolNames() {
  static const Names names = {"Argument", "Result",    "kModuleId",  "kProtocolId",
                              "kTypeId",  "kFullName", "kDescriptor"};
  return names;
}

// Own and inherited members of a module's class.
const Names& ModuleNames() {
  static const Names names = {"kModuleId", "kFullName",       "id",     "name",
                              "Tables",    "Handlers",        "Start",  "Stop",
                              "ErrorCode", "MissingHandlers", "Module", "FindHandler"};
  return names;
}

std::string Mangled(std::string_view name, bool taken) {
  std::string text = CxxName(name);
  if (taken && !text.ends_with('_')) text += '_';
  return text;
}

std::string ProcessName(const Protocol& protocol) {
  return "Process" + UpperFirst(protocol.name);
}

bool IsGroupOf(const std::vector<std::unique_ptr<Enum>>& enums, std::string_view name) {
  return std::any_of(enums.begin(), enums.end(),
                     [name](const auto& constant) { return constant->group == name; });
}

bool IsModuleClass(const Module& module, std::string_view name) {
  const std::string user_class = "Module" + UpperFirst(module.name);
  return name == user_class || name == user_class + "Base";
}

// The names of one scope of the generated code.
class Scope {
 public:
  Scope(std::string where, Diagnostics& diagnostics)
      : where_(std::move(where)), diagnostics_(diagnostics) {}

  void Claim(const std::string& cxx_name, std::string what, const Location& location) {
    const auto [at, added] = owners_.try_emplace(cxx_name, Owner{what, location});
    if (added) return;
    diagnostics_.Error(
        location,
        fmt::format("{} and {} at {} would both be '{}' in {}", what, at->second.what,
                    at->second.location.ToString(), cxx_name, where_),
        "rename one of them");
  }

  void ClaimGroups(const std::vector<std::unique_ptr<Enum>>& enums,
                   const std::function<std::string(const std::string&)>& cxx_name) {
    std::set<std::string> groups;
    for (const auto& constant : enums) {
      if (constant->group.empty() || !groups.insert(constant->group).second) continue;
      Claim(cxx_name(constant->group), fmt::format("the enum group '{}'", constant->group),
            constant->location);
    }
  }

 private:
  struct Owner {
    std::string what;
    Location location;
  };

  const std::string where_;
  Diagnostics& diagnostics_;
  std::map<std::string, Owner> owners_;
};

// A struct cannot have the name of one of its members.
void RefuseOwnName(const CheckContext& context, const Names& members, std::string_view what,
                   const Item& item) {
  if (!members.contains(item.name)) return;
  context.diagnostics.Error(
      item.location,
      fmt::format("{} '{}' has the name of a member of its C++ struct", what, item.full_name),
      "rename it");
}

void CheckBean(const CheckContext& context, const Bean& bean) {
  RefuseOwnName(context, BeanNames(), bean.is_key ? "beankey" : "bean", bean);
  Scope scope(fmt::format("struct {}", bean.full_name), context.diagnostics);
  scope.Claim(CxxName(bean.name), "the bean itself", bean.location);
  // Variables and constants of one name are reported elsewhere.
  std::set<std::string> seen;
  for (const auto& variable : bean.variables) {
    if (variable->name.empty() || !seen.insert(variable->name).second) continue;
    scope.Claim(CxxMemberName(bean, variable->name), fmt::format("variable '{}'", variable->name),
                variable->location);
  }
  for (const auto& constant : bean.enums) {
    if (constant->name.empty() || !seen.insert(constant->name).second) continue;
    scope.Claim(CxxMemberName(bean, constant->name), fmt::format("enum '{}'", constant->name),
                constant->location);
  }
  scope.ClaimGroups(bean.enums,
                    [&](const std::string& group) { return CxxGroupName(bean, group); });
  for (const auto& variable : bean.variables) {
    if (variable->name.empty()) continue;
    if (variable->enum_group != nullptr) {
      const std::string what = fmt::format("the enum accessor of '{}'", variable->name);
      scope.Claim(variable->name + "_enum", what, variable->location);
      scope.Claim("set_" + variable->name + "_enum", what, variable->location);
    }
    if (IsDynamic(*variable)) {
      scope.Claim(CxxDynamicName(*variable), fmt::format("the type of '{}'", variable->name),
                  variable->location);
    }
  }
}

void CheckProtocol(const CheckContext& context, const Protocol& protocol) {
  RefuseOwnName(context, ProtocolNames(), protocol.is_rpc ? "rpc" : "protocol", protocol);
  Scope scope(fmt::format("struct {}", protocol.full_name), context.diagnostics);
  scope.Claim(CxxName(protocol.name), "the protocol itself", protocol.location);
  for (const auto& constant : protocol.enums) {
    if (constant->name.empty()) continue;
    scope.Claim(CxxConstantName(protocol, constant->name), fmt::format("enum '{}'", constant->name),
                constant->location);
  }
  scope.ClaimGroups(protocol.enums,
                    [&](const std::string& group) { return CxxConstantName(protocol, group); });
}

void CheckModuleClass(const CheckContext& context, const Module& module) {
  Scope scope(fmt::format("the class of module {}", module.full_name), context.diagnostics);
  for (const auto& protocol : module.protocols) {
    scope.Claim(ProcessName(*protocol), fmt::format("the handler of '{}'", protocol->full_name),
                protocol->location);
  }
  for (const ProtocolRef& reference : module.protocol_refs) {
    if (reference.protocol == nullptr || reference.import_only) continue;
    scope.Claim(ProcessName(*reference.protocol),
                fmt::format("the handler of '{}'", reference.protocol->full_name),
                reference.location);
  }
  for (const auto& table : module.tables) {
    if (table->name.empty()) continue;
    scope.Claim(CxxTableName(*table), fmt::format("table '{}'", table->name), table->location);
  }
}

// Full names are unique already (symbols.h): what is left are names made from others.
void CheckModuleNamespace(const CheckContext& context, const Module& module) {
  Scope scope(fmt::format("namespace {}", module.full_name), context.diagnostics);
  for (const auto& bean : module.beans) {
    if (!bean->name.empty() && !bean->is_external) {
      scope.Claim(CxxName(bean->name), fmt::format("bean '{}'", bean->name), bean->location);
    }
  }
  for (const auto& protocol : module.protocols) {
    if (protocol->name.empty()) continue;
    scope.Claim(CxxName(protocol->name), fmt::format("protocol '{}'", protocol->name),
                protocol->location);
  }
  for (const auto& inner : module.modules) {
    if (inner->name.empty()) continue;
    scope.Claim(CxxName(inner->name), fmt::format("module '{}'", inner->name), inner->location);
  }
  for (const auto& constant : module.enums) {
    if (constant->name.empty()) continue;
    scope.Claim(CxxName(constant->name), fmt::format("enum '{}'", constant->name),
                constant->location);
  }
  scope.ClaimGroups(module.enums, [](const std::string& group) { return CxxName(group); });
  for (const auto& table : module.tables) {
    if (table->name.empty()) continue;
    scope.Claim(CxxDescriptorName(*table), fmt::format("the descriptor of table '{}'", table->name),
                table->location);
  }
}

}  // namespace

std::string CxxMemberName(const Bean& bean, std::string_view name) {
  return Mangled(name,
                 BeanNames().contains(name) || name == bean.name || IsGroupOf(bean.enums, name));
}

std::string CxxGroupName(const Bean& bean, std::string_view group) {
  return Mangled(group, BeanNames().contains(group) || group == bean.name);
}

std::string CxxDynamicName(const Variable& variable) {
  return UpperFirst(variable.name) + "Dynamic";
}

bool IsHiddenIn(const Bean& bean, std::string_view type_name) {
  const std::string name = CxxName(type_name);
  const auto is_member = [&](const auto& item) { return CxxMemberName(bean, item->name) == name; };
  const auto is_group = [&](const auto& constant) {
    return !constant->group.empty() && CxxGroupName(bean, constant->group) == name;
  };
  const auto is_dynamic = [&](const auto& variable) {
    return IsDynamic(*variable) && CxxDynamicName(*variable) == name;
  };
  return BeanNames().contains(name) ||
         std::any_of(bean.variables.begin(), bean.variables.end(), is_member) ||
         std::any_of(bean.enums.begin(), bean.enums.end(), is_member) ||
         std::any_of(bean.enums.begin(), bean.enums.end(), is_group) ||
         std::any_of(bean.variables.begin(), bean.variables.end(), is_dynamic);
}

std::string CxxConstantName(const Protocol& protocol, std::string_view name) {
  return Mangled(name, ProtocolNames().contains(name) || name == protocol.name);
}

bool IsHiddenIn(const Protocol& protocol, std::string_view type_name) {
  const std::string name = CxxName(type_name);
  return ProtocolNames().contains(name) ||
         std::any_of(protocol.enums.begin(), protocol.enums.end(), [&](const auto& constant) {
           return CxxConstantName(protocol, constant->name) == name ||
                  CxxConstantName(protocol, constant->group) == name;
         });
}

std::string CxxTableName(const Table& table) {
  return Mangled(table.name,
                 ModuleNames().contains(table.name) || IsModuleClass(*table.module, table.name));
}

std::string CxxDescriptorName(const Table& table) {
  const std::string name = "k" + table.name;
  return Mangled(name, ModuleNames().contains(name));
}

bool IsHiddenIn(const Module& module, std::string_view type_name) {
  static const Names parameters = {"tx", "session", "argument"};
  const std::string name = CxxName(type_name);
  const auto handles = [&](const Protocol& protocol) { return ProcessName(protocol) == name; };
  return ModuleNames().contains(name) || parameters.contains(name) ||
         std::any_of(module.tables.begin(), module.tables.end(),
                     [&](const auto& table) { return CxxTableName(*table) == name; }) ||
         std::any_of(module.protocols.begin(), module.protocols.end(),
                     [&](const auto& protocol) { return handles(*protocol); }) ||
         std::any_of(module.protocol_refs.begin(), module.protocol_refs.end(),
                     [&](const ProtocolRef& reference) {
                       return reference.protocol != nullptr && handles(*reference.protocol);
                     });
}

void CheckCxxNames(const CheckContext& context) {
  for (const Bean* bean : context.model.AllBeans()) {
    if (!bean->is_external) CheckBean(context, *bean);
  }
  for (const Module* module : context.model.AllModules()) {
    CheckModuleNamespace(context, *module);
    for (const auto& protocol : module->protocols) CheckProtocol(context, *protocol);
    CheckModuleClass(context, *module);
  }
}

}  // namespace zeze::gen
