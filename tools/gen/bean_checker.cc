// Constants and beans.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/attribute_reader.h"
#include "tools/gen/checker.h"
#include "tools/gen/literal.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/base/name_hash.h"

namespace zeze::gen {
namespace {

void CheckTypeIds(const CheckContext& context) {
  std::map<std::int64_t, const Bean*> owners;
  for (Bean* bean : context.model.AllBeans()) {
    if (bean->name.empty()) continue;
    bean->type_id = HashName64(bean->full_name);
    if (!bean->type_id_text.empty()) {
      const auto id = ParseInteger(bean->type_id_text);
      if (!id) {
        context.diagnostics.Error(
            bean->type_id_location,
            fmt::format("TypeId '{}' of '{}' is not a number", bean->type_id_text, bean->full_name),
            "write a whole number or leave it out");
        continue;
      }
      bean->type_id = *id;
    }
    if (bean->type_id == 0) {
      context.diagnostics.Error(
          bean->type_id_location,
          fmt::format("the TypeId of '{}' is 0, which means the empty bean", bean->full_name),
          "choose another one");
      continue;
    }
    const auto [owner, added] = owners.try_emplace(bean->type_id, bean);
    if (!added && owner->second->full_name != bean->full_name) {
      context.diagnostics.Error(
          bean->type_id_location,
          fmt::format("TypeId {} of '{}' is that of '{}' at {}", bean->type_id, bean->full_name,
                      owner->second->full_name, owner->second->location.ToString()),
          "give one of them an explicit TypeId");
    }
  }
}

void ResolveBases(const CheckContext& context) {
  for (Bean* bean : context.model.AllBeans()) {
    if (bean->base_text.empty()) continue;
    Bean* base = context.symbols.FindBean(ScopeOf(*bean), bean->base_text, bean->base_location,
                                          "bean", context.diagnostics);
    if (base == nullptr) continue;
    if (base->is_key) {
      context.diagnostics.Error(
          bean->base_location,
          fmt::format("the base '{}' of '{}' is a beankey", base->full_name, bean->full_name),
          "only a <bean> can be a base");
      continue;
    }
    bool circle = false;
    for (const Bean* at = base; at != nullptr; at = at->base) circle = circle || at == bean;
    if (circle) {
      context.diagnostics.Error(bean->base_location,
                                fmt::format("'{}' would be its own base", bean->full_name),
                                "break the circle");
      continue;
    }
    bean->base = base;
    base->derived.push_back(bean);
  }
}

void CheckUniqueInBean(const CheckContext& context, const Bean& bean) {
  std::map<int, const Variable*> ids;
  std::map<std::string, Location> names;
  int free_id = 1;
  for (const auto& variable : bean.variables) free_id = std::max(free_id, variable->id + 1);
  for (const auto& variable : bean.variables) {
    if (variable->id != 0) {
      const auto [other, added] = ids.try_emplace(variable->id, variable.get());
      if (!added) {
        context.diagnostics.Error(
            variable->location,
            fmt::format("variable id {} of '{}' is used by '{}' at line {}", variable->id,
                        variable->name, other->second->name, other->second->location.line),
            free_id <= 4095 ? fmt::format("the next free id in '{}' is {}", bean.name, free_id)
                            : "");
      }
    }
    if (variable->name.empty()) continue;
    const auto [other, added] = names.try_emplace(variable->name, variable->location);
    if (!added) {
      context.diagnostics.Error(variable->location,
                                fmt::format("'{}' has two variables '{}', the other at line {}",
                                            bean.name, variable->name, other->second.line),
                                "rename one of them");
    }
  }
  for (const auto& constant : bean.enums) {
    if (constant->name.empty()) continue;
    const auto [other, added] = names.try_emplace(constant->name, constant->location);
    if (!added) {
      context.diagnostics.Error(constant->location,
                                fmt::format("'{}' has another '{}' at line {}", bean.name,
                                            constant->name, other->second.line),
                                "rename one of them");
    }
  }
}

void CheckVersion(const CheckContext& context, Bean& bean) {
  if (bean.version_text.empty()) return;
  for (const auto& variable : bean.variables) {
    if (variable->name != bean.version_text) continue;
    if (variable->type.kind == TypeKind::kLong) {
      bean.version = variable.get();
    } else {
      context.diagnostics.Error(
          bean.version_location,
          fmt::format("the version variable '{}' of '{}' is a {}", variable->name, bean.full_name,
                      ToString(variable->type)),
          "make it a long");
    }
    return;
  }
  context.diagnostics.Error(
      bean.version_location,
      fmt::format("'{}' has no variable '{}' to hold its version", bean.full_name,
                  bean.version_text),
      fmt::format("add <variable id=\"...\" name=\"{}\" type=\"long\"/>", bean.version_text));
}

// A struct cannot contain itself; through containers and dynamic it can.
class CircleFinder {
 public:
  explicit CircleFinder(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void Visit(const Bean& bean) {
    if (done_.contains(&bean)) return;
    path_.push_back(&bean);
    if (bean.base != nullptr) Enter(*bean.base, bean.location);
    for (const auto& variable : bean.variables) {
      if (variable->type.bean != nullptr) Enter(*variable->type.bean, variable->location);
    }
    path_.pop_back();
    done_.insert(&bean);
  }

 private:
  void Enter(const Bean& inner, const Location& location) {
    const auto at = std::find(path_.begin(), path_.end(), &inner);
    if (at == path_.end()) {
      Visit(inner);
      return;
    }
    std::string circle;
    for (auto step = at; step != path_.end(); ++step) circle += (*step)->name + " -> ";
    diagnostics_.Error(
        location, fmt::format("'{}' contains itself: {}{}", inner.full_name, circle, inner.name),
        "hold it in a list, a map or a dynamic");
  }

  Diagnostics& diagnostics_;
  std::vector<const Bean*> path_;
  std::set<const Bean*> done_;
};

void CheckVersionedBeansAreValues(const CheckContext& context) {
  std::set<const Bean*> values;
  for (const Module* module : context.model.AllModules()) {
    for (const auto& table : module->tables) {
      values.insert(context.symbols.FindBeanQuietly(module->full_name, table->value_text));
    }
  }
  for (const Bean* bean : context.model.AllBeans()) {
    if (bean->version == nullptr || values.contains(bean)) continue;
    context.diagnostics.Warning(
        bean->version_location,
        fmt::format("'{}' has a version but is not the value of any table", bean->full_name),
        "the framework counts versions of table values only");
  }
}

void EvaluateEnum(const CheckContext& context, const Bean* bean, const Module* module,
                  Enum& constant, bool report) {
  if (!constant.cxx_value.empty() || constant.value_text.empty()) return;
  const std::optional<TypeKind> kind = FindBuiltinType(constant.type_text);
  const bool simple = kind && !IsContainer(*kind) && *kind != TypeKind::kDynamic &&
                      *kind != TypeKind::kBinary && !IsVector(*kind) && *kind != TypeKind::kDecimal;
  if (!simple) {
    if (report) {
      context.diagnostics.Error(
          constant.location,
          fmt::format("enum '{}' cannot be of type '{}'", constant.name, constant.type_text),
          "use bool, byte, short, int, long, float, double or string");
    }
    return;
  }
  constant.kind = *kind;
  std::string text = constant.value_text;
  if (*kind == TypeKind::kString && text.size() >= 2 && text.starts_with('"') &&
      text.ends_with('"')) {
    text = text.substr(1, text.size() - 2);  // Written as a literal of another language.
  }
  const ConstantLookup constants = [&](const std::string& name) {
    const Enum* other = FindConstant(context, bean, module, name);
    return other == nullptr || other == &constant ? std::nullopt : other->integer;
  };
  const Literal literal = ParseLiteral(*kind, text, constants);
  if (!literal.error.empty()) {
    if (report) {
      context.diagnostics.Error(constant.value_location,
                                fmt::format("value '{}' of enum '{}' ({}): {}", constant.value_text,
                                            constant.name, constant.type_text, literal.error),
                                "write a literal of that type");
    }
    return;
  }
  constant.integer = literal.integer;
  constant.cxx_value = !literal.cxx.empty()         ? literal.cxx
                       : *kind == TypeKind::kBool   ? "false"
                       : *kind == TypeKind::kString ? "\"\""
                       : *kind == TypeKind::kFloat  ? "0.0F"
                       : *kind == TypeKind::kDouble ? "0.0"
                                                    : "0";
  constant.typescript_value = !literal.typescript.empty()  ? literal.typescript
                              : *kind == TypeKind::kBool   ? "false"
                              : *kind == TypeKind::kString ? "\"\""
                              : *kind == TypeKind::kLong   ? "0n"
                                                           : "0";
}

void CheckGroups(const CheckContext& context, const std::vector<std::unique_ptr<Enum>>& enums) {
  std::map<std::string, TypeKind> groups;
  for (const auto& constant : enums) {
    if (constant->group.empty()) continue;
    const std::string why = WhyNotAName(constant->group);
    if (!why.empty() || IsReservedWord(constant->group)) {
      context.diagnostics.Error(constant->location,
                                fmt::format("'{}' cannot be the name of an enum group{}{}",
                                            constant->group, why.empty() ? "" : ": ", why),
                                "use a plain word");
      continue;
    }
    const auto [group, added] = groups.try_emplace(constant->group, constant->kind);
    if (!IsInteger(constant->kind) || group->second != constant->kind) {
      context.diagnostics.Error(
          constant->location,
          fmt::format("constants of the enum group '{}' must be whole numbers of one type",
                      constant->group),
          "use the same type for all of them");
    }
    const bool taken = std::any_of(enums.begin(), enums.end(), [&](const auto& other) {
      return other->name == constant->group;
    });
    if (taken && added) {
      context.diagnostics.Error(
          constant->location,
          fmt::format("the enum group '{}' has the name of a constant", constant->group),
          "rename the group");
    }
  }
}

void ForEachEnumScope(const CheckContext& context,
                      const std::function<void(const Bean*, const Module*,
                                               std::vector<std::unique_ptr<Enum>>&)>& visit) {
  for (Module* module : context.model.AllModules()) {
    visit(nullptr, module, module->enums);
    for (const auto& protocol : module->protocols) visit(nullptr, module, protocol->enums);
  }
  for (Bean* bean : context.model.AllBeans()) visit(bean, bean->module, bean->enums);
}

const Enum* FindIn(const std::vector<std::unique_ptr<Enum>>& enums, std::string_view name) {
  for (const auto& constant : enums) {
    if (constant->name == name) return constant.get();
  }
  return nullptr;
}

}  // namespace

const Enum* FindConstant(const CheckContext& context, const Bean* bean, const Module* module,
                         const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    const std::string owner = name.substr(0, dot);
    const std::string scope = module != nullptr ? module->full_name
                              : bean != nullptr ? bean->solution->name
                                                : std::string();
    if (const Bean* other = context.symbols.FindBeanQuietly(scope, owner)) {
      return FindIn(other->enums, name.substr(dot + 1));
    }
    if (const Module* other = context.symbols.FindModuleQuietly(scope, owner)) {
      return FindIn(other->enums, name.substr(dot + 1));
    }
    return nullptr;
  }
  if (bean != nullptr) {
    if (const Enum* found = FindIn(bean->enums, name)) return found;
  }
  for (const Module* at = module; at != nullptr; at = at->parent) {
    if (const Enum* found = FindIn(at->enums, name)) return found;
  }
  return nullptr;
}

void CheckEnums(const CheckContext& context) {
  // Twice, so that a constant may use one that stands further down.
  for (const bool report : {false, true}) {
    ForEachEnumScope(context, [&](const Bean* bean, const Module* module, auto& enums) {
      for (const auto& constant : enums) EvaluateEnum(context, bean, module, *constant, report);
    });
  }
  ForEachEnumScope(context,
                   [&](const Bean*, const Module*, auto& enums) { CheckGroups(context, enums); });
}

void CheckBeans(const CheckContext& context) {
  CheckTypeIds(context);
  ResolveBases(context);
  for (Bean* bean : context.model.AllBeans()) {
    CheckUniqueInBean(context, *bean);
    for (const auto& variable : bean->variables) CheckVariable(context, *bean, *variable);
    CheckVersion(context, *bean);
  }
  CircleFinder circles(context.diagnostics);
  for (const Bean* bean : context.model.AllBeans()) circles.Visit(*bean);
  CheckVersionedBeansAreValues(context);
}

}  // namespace zeze::gen
