#include "tools/gen/checker.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/attribute_reader.h"
#include "tools/gen/cxx_names.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/base/name_hash.h"

namespace zeze::gen {
namespace {

void CheckRanges(const Model& model, Diagnostics& diagnostics) {
  struct Claim {
    std::pair<std::int32_t, std::int32_t> range;
    const Solution* solution;
  };
  std::vector<Claim> claims;
  for (const auto& solution : model.solutions) {
    for (const auto& range : solution->ranges) {
      for (const Claim& other : claims) {
        if (range.first > other.range.second || other.range.first > range.second) continue;
        diagnostics.Error(solution->ranges_location,
                          fmt::format("module id range {}-{} overlaps {}-{} of {}", range.first,
                                      range.second, other.range.first, other.range.second,
                                      other.solution->ranges_location.ToString()),
                          "give every file ranges of its own");
      }
      claims.push_back({range, solution.get()});
    }
  }
}

std::string RangesHint(const Solution& solution) {
  if (solution.ranges.empty()) {
    return "add ModuleIdAllowRanges=\"1-99\" (or the range you want) to <solution>";
  }
  std::string text = "this file may use ";
  for (const auto& range : solution.ranges) {
    if (!text.ends_with(' ')) text += ", ";
    text += range.first == range.second ? std::to_string(range.first)
                                        : fmt::format("{}-{}", range.first, range.second);
  }
  return text;
}

void CheckModuleIds(const Model& model, Diagnostics& diagnostics) {
  std::map<std::int32_t, const Module*> owners;
  for (Module* module : model.AllModules()) {
    if (module->id_text.empty()) {
      diagnostics.Error(module->location, fmt::format("module '{}' has no id", module->full_name),
                        RangesHint(*module->solution));
      continue;
    }
    const auto id = ParseInteger(module->id_text);
    if (!id || *id <= 0 || *id > std::numeric_limits<std::int32_t>::max()) {
      diagnostics.Error(
          module->id_location,
          fmt::format("id '{}' of module '{}' is not allowed", module->id_text, module->full_name),
          "write a whole number above 0; " + RangesHint(*module->solution));
      continue;
    }
    module->id = static_cast<std::int32_t>(*id);
    const auto& ranges = module->solution->ranges;
    const bool inside = std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return module->id >= range.first && module->id <= range.second;
    });
    if (!inside) {
      diagnostics.Error(module->id_location,
                        fmt::format("module id {} of '{}' is outside the ranges of its file",
                                    module->id, module->full_name),
                        RangesHint(*module->solution));
    }
    const auto [owner, added] = owners.try_emplace(module->id, module);
    if (!added) {
      diagnostics.Error(
          module->id_location,
          fmt::format("module id {} of '{}' is used by '{}' at {}", module->id, module->full_name,
                      owner->second->full_name, owner->second->location.ToString()),
          "give this module an id of its own");
    }
  }
}

void CheckTable(const CheckContext& context, Table& table) {
  Diagnostics& diagnostics = context.diagnostics;
  const std::string& scope = table.module->full_name;
  if (!table.key_text.empty()) {
    table.key = ResolveSimpleType(context, scope, table.key_text, table.key_location);
  }
  if (table.key.kind != TypeKind::kUnknown &&
      (!IsKeyable(table.key) || IsVector(table.key.kind) || table.key.kind == TypeKind::kDecimal)) {
    diagnostics.Error(table.key_location,
                      fmt::format("table '{}': a {} cannot be the key of a table", table.full_name,
                                  ToString(table.key)),
                      "use a whole number, bool, string, binary or a beankey");
  }
  if (!table.value_text.empty()) {
    table.value = context.symbols.FindBean(scope, table.value_text, table.value_location, "bean",
                                           diagnostics);
  }
  if (table.value != nullptr && table.value->is_key) {
    diagnostics.Error(table.value_location,
                      fmt::format("table '{}': the value '{}' is a beankey", table.full_name,
                                  table.value->full_name),
                      "a table's value is a <bean>");
  }
  const bool wrong_key = (table.auto_key == "true" && table.key.kind != TypeKind::kLong) ||
                         (table.auto_key == "random" && table.key.kind != TypeKind::kBinary);
  if (wrong_key && table.key.kind != TypeKind::kUnknown) {
    diagnostics.Error(
        table.key_location,
        fmt::format("table '{}': autokey=\"{}\" needs keys of type {}, not {}", table.full_name,
                    table.auto_key, table.auto_key == "true" ? "long" : "binary",
                    ToString(table.key)),
        "change the key or remove autokey");
  }
}

// Storage name and id: both may be in databases already, so the rules are older generators' rules.
void NameTable(const CheckContext& context, Table& table) {
  std::string full_name = table.full_name;
  if (!table.former_name.empty()) {
    const bool dotted = table.former_name.find('.') != std::string::npos;
    if (!IsDottedName(table.former_name)) {
      context.diagnostics.Error(
          table.former_location,
          fmt::format("formerName '{}' of table '{}' is not a name", table.former_name,
                      table.full_name),
          "write the table's old name, with its module's if that was another one");
      return;
    }
    full_name = dotted ? table.former_name : table.module->full_name + "." + table.former_name;
    if (full_name == table.full_name) {
      context.diagnostics.Warning(table.former_location,
                                  fmt::format("formerName of table '{}' is its name", full_name),
                                  "remove it");
    }
  }
  table.storage_name = full_name;
  std::replace(table.storage_name.begin(), table.storage_name.end(), '.', '_');
  table.id = HashName32(full_name);
  if (!table.suffix.empty()) {
    const std::string prefix = table.suffix_style == "v2" ? "__" : "";
    if (WhyNotAName("x" + table.suffix + "x").empty()) {
      table.storage_name += prefix + table.suffix;
      table.id = HashName32(table.storage_name);
    } else if (table.suffix == "@ServerId" || table.suffix == "@AppMainVersion") {
      table.storage_suffix = prefix + table.suffix;
    } else {
      context.diagnostics.Error(
          table.suffix_location,
          fmt::format("unknown suffix '{}' of table '{}'", table.suffix, table.full_name),
          "write letters, digits and '_', or @ServerId, or @AppMainVersion");
    }
  }
  if (table.id_text.empty()) return;
  const auto id = ParseInteger(table.id_text);
  if (!id || *id < std::numeric_limits<std::int32_t>::min() ||
      *id > std::numeric_limits<std::int32_t>::max() || *id == 0) {
    context.diagnostics.Error(
        table.id_location,
        fmt::format("id '{}' of table '{}' is not allowed", table.id_text, table.full_name),
        "write a whole number of 32 bits other than 0, or leave it out");
    return;
  }
  table.id = static_cast<std::int32_t>(*id);
}

void CheckProtocolType(const CheckContext& context, const Protocol& protocol,
                       const std::string& text, const Location& location, std::string_view what,
                       Bean*& bean) {
  if (text.empty()) return;
  if (FindBuiltinType(text)) {
    context.diagnostics.Error(
        location, fmt::format("the {} of '{}' is the type {}", what, protocol.full_name, text),
        "name a bean: wrap the value into a <bean> with one variable");
    return;
  }
  bean = context.symbols.FindBean(protocol.module->full_name, text, location, "bean",
                                  context.diagnostics);
}

void CheckProtocolId(const CheckContext& context, Protocol& protocol) {
  protocol.id = HashName32(protocol.full_name);
  if (!protocol.id_text.empty()) {
    const auto id = ParseInteger(protocol.id_text);
    if (!id || *id < std::numeric_limits<std::int32_t>::min() ||
        *id > std::numeric_limits<std::uint32_t>::max()) {
      context.diagnostics.Error(
          protocol.id_location,
          fmt::format("id '{}' of '{}' is not allowed", protocol.id_text, protocol.full_name),
          "write a whole number of 32 bits other than 0, or leave it out");
      return;
    }
    protocol.id = static_cast<std::int32_t>(*id);
  }
  if (protocol.id == 0) {
    context.diagnostics.Error(protocol.id_location,
                              fmt::format("the id of '{}' is 0", protocol.full_name),
                              "give it another id");
  }
}

// Ids and handler names of all that a module handles, its own and adopted ones.
void CheckHandled(const CheckContext& context, Module& module) {
  std::map<std::int64_t, const Protocol*> ids;
  std::map<std::string, const Protocol*> names;
  const auto add = [&](const Protocol& protocol, const Location& location) {
    const auto [same_id, new_id] = ids.try_emplace(protocol.id, &protocol);
    if (!new_id && protocol.id != 0) {
      context.diagnostics.Error(
          location,
          fmt::format("protocol id {} of '{}' is used by '{}' in this module", protocol.id,
                      protocol.full_name, same_id->second->full_name),
          "give one of them an explicit id, or remove the reference");
      return;
    }
    const auto [same_name, new_name] = names.try_emplace(protocol.name, &protocol);
    if (!new_name) {
      context.diagnostics.Error(
          location,
          fmt::format("'{}' and '{}' would have the same handler Process{}", protocol.full_name,
                      same_name->second->full_name, protocol.name),
          "rename one of them, or use import= instead of ref=");
    }
  };
  for (const auto& protocol : module.protocols) add(*protocol, protocol->location);
  for (ProtocolRef& reference : module.protocol_refs) {
    reference.protocol = context.symbols.FindProtocol(module.full_name, reference.target_text,
                                                      reference.location, context.diagnostics);
    if (reference.protocol != nullptr && !reference.import_only) {
      add(*reference.protocol, reference.location);
    }
  }
}

}  // namespace

std::string ScopeOf(const Bean& bean) {
  return bean.module != nullptr ? bean.module->full_name : bean.solution->name;
}

void CheckTables(const CheckContext& context) {
  std::map<std::int32_t, const Table*> ids;
  std::map<std::string, const Table*> names;
  for (Module* module : context.model.AllModules()) {
    for (const auto& table : module->tables) {
      CheckTable(context, *table);
      NameTable(context, *table);
      if (table->name.empty()) continue;
      const auto [same_id, new_id] = ids.try_emplace(table->id, table.get());
      if (!new_id) {
        context.diagnostics.Error(
            table->location,
            fmt::format("table '{}' has the id {} of table '{}' at {}", table->full_name, table->id,
                        same_id->second->full_name, same_id->second->location.ToString()),
            "rename one of them or give it an explicit id");
        continue;
      }
      const auto [same_name, new_name] =
          names.try_emplace(ToLower(table->storage_name), table.get());
      if (!new_name) {
        context.diagnostics.Error(
            table->location,
            fmt::format("table '{}' is stored under the name '{}' of table '{}' at {}",
                        table->full_name, table->storage_name, same_name->second->full_name,
                        same_name->second->location.ToString()),
            "rename one of them");
      }
    }
  }
}

void CheckProtocols(const CheckContext& context) {
  const std::vector<Module*> modules = context.model.AllModules();
  for (Module* module : modules) {
    for (const auto& protocol : module->protocols) {
      CheckProtocolType(context, *protocol, protocol->argument_text, protocol->argument_location,
                        "argument", protocol->argument);
      CheckProtocolType(context, *protocol, protocol->result_text, protocol->result_location,
                        "result", protocol->result);
      CheckProtocolId(context, *protocol);
    }
  }
  for (Module* module : modules) CheckHandled(context, *module);
}

void CheckModel(Model& model, Diagnostics& diagnostics) {
  CheckRanges(model, diagnostics);
  CheckModuleIds(model, diagnostics);
  const Symbols symbols(model, diagnostics);
  const CheckContext context{model, symbols, diagnostics};
  CheckEnums(context);
  CheckBeans(context);
  CheckTables(context);
  CheckProtocols(context);
  CheckCxxNames(context);
  CheckProjects(context);
}

}  // namespace zeze::gen
