#include "tools/gen/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeze::gen {
namespace {

struct Builtin {
  std::string_view name;
  TypeKind kind;
};

constexpr std::array kBuiltins = {
    Builtin{"bool", TypeKind::kBool},
    Builtin{"byte", TypeKind::kByte},
    Builtin{"short", TypeKind::kShort},
    Builtin{"int", TypeKind::kInt},
    Builtin{"long", TypeKind::kLong},
    Builtin{"float", TypeKind::kFloat},
    Builtin{"double", TypeKind::kDouble},
    Builtin{"binary", TypeKind::kBinary},
    Builtin{"string", TypeKind::kString},
    Builtin{"decimal", TypeKind::kDecimal},
    Builtin{"vector2", TypeKind::kVector2},
    Builtin{"vector2int", TypeKind::kVector2Int},
    Builtin{"vector3", TypeKind::kVector3},
    Builtin{"vector3int", TypeKind::kVector3Int},
    Builtin{"vector4", TypeKind::kVector4},
    Builtin{"quaternion", TypeKind::kQuaternion},
    Builtin{"list", TypeKind::kList},
    Builtin{"array", TypeKind::kList},
    Builtin{"set", TypeKind::kSet},
    Builtin{"map", TypeKind::kMap},
    Builtin{"sortedmap", TypeKind::kSortedMap},
    Builtin{"gtable", TypeKind::kGtable},
    Builtin{"dynamic", TypeKind::kDynamic},
};

void Collect(const std::vector<std::unique_ptr<Module>>& modules, std::vector<Module*>& all) {
  for (const auto& module : modules) {
    all.push_back(module.get());
    Collect(module->modules, all);
  }
}

}  // namespace

const Service* Project::ServiceOf(const Module* module) const {
  for (const auto& service : services) {
    if (std::find(service->modules.begin(), service->modules.end(), module) !=
        service->modules.end()) {
      return service.get();
    }
  }
  return nullptr;
}

std::vector<Module*> Model::AllModules() const {
  std::vector<Module*> all;
  for (const auto& solution : solutions) Collect(solution->modules, all);
  return all;
}

std::vector<Bean*> Model::AllBeans() const {
  std::vector<Bean*> all;
  for (const auto& solution : solutions) {
    for (const auto& bean : solution->beans) all.push_back(bean.get());
  }
  for (Module* module : AllModules()) {
    for (const auto& bean : module->beans) all.push_back(bean.get());
  }
  return all;
}

std::vector<Project*> Model::MadeProjects() const {
  std::vector<Project*> all;
  for (const auto& solution : solutions) {
    if (!solution->is_made) continue;
    for (const auto& project : solution->projects) all.push_back(project.get());
  }
  return all;
}

bool IsDynamic(const Variable& variable) {
  return variable.type.kind == TypeKind::kDynamic ||
         (!variable.type.parameters.empty() &&
          variable.type.parameters.back().kind == TypeKind::kDynamic);
}

bool IsContainer(TypeKind kind) {
  return kind >= TypeKind::kList && kind <= TypeKind::kGtable;
}

bool IsInteger(TypeKind kind) {
  return kind >= TypeKind::kByte && kind <= TypeKind::kLong;
}

bool IsVector(TypeKind kind) {
  return kind >= TypeKind::kVector2 && kind <= TypeKind::kQuaternion;
}

bool IsKeyable(const Type& type) {
  switch (type.kind) {
    case TypeKind::kFloat:
    case TypeKind::kDouble:
    case TypeKind::kBean:
    case TypeKind::kDynamic:
      return false;
    default:
      return !IsContainer(type.kind);
  }
}

std::string_view ToString(TypeKind kind) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.kind == kind) return builtin.name;
  }
  return kind == TypeKind::kBean ? "bean" : kind == TypeKind::kBeanKey ? "beankey" : "unknown";
}

std::string ToString(const Type& type) {
  if (type.bean != nullptr) return type.bean->full_name;
  std::string text(ToString(type.kind));
  if (type.parameters.empty()) return text;
  text += '[';
  for (const Type& parameter : type.parameters) {
    if (text.back() != '[') text += ',';
    text += ToString(parameter);
  }
  return text + ']';
}

std::optional<TypeKind> FindBuiltinType(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return builtin.kind;
  }
  return std::nullopt;
}

std::vector<std::string_view> BuiltinTypeNames() {
  std::vector<std::string_view> names;
  names.reserve(kBuiltins.size());
  for (const Builtin& builtin : kBuiltins) names.push_back(builtin.name);
  return names;
}

}  // namespace zeze::gen
