#include "tools/gen/plan.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/base/check.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

// What a bean must have defined, and what it only must have declared.
struct BeanUses {
  std::set<const Bean*> strong;
  std::set<const Bean*> weak;
};

BeanUses UsesOf(const Bean& bean) {
  BeanUses uses;
  if (bean.base != nullptr) uses.strong.insert(bean.base);
  for (const auto& variable : bean.variables) {
    if (variable->type.bean != nullptr) uses.strong.insert(variable->type.bean);
    for (const Type& parameter : variable->type.parameters) {
      if (parameter.bean == nullptr) continue;
      // Keys need their hash and order where a container is used.
      auto& set = parameter.kind == TypeKind::kBeanKey ? uses.strong : uses.weak;
      set.insert(parameter.bean);
    }
    for (const DynamicChoice& choice : variable->choices) uses.weak.insert(choice.bean);
  }
  for (const Bean* strong : uses.strong) uses.weak.erase(strong);
  uses.weak.erase(&bean);
  return uses;
}

class Planner {
 public:
  Planner(const Model& model, Diagnostics& diagnostics)
      : model_(model), diagnostics_(diagnostics) {}

  Plan Make(const std::string& project_name, std::optional<Language> language) {
    ChooseProject(project_name, language);
    if (diagnostics_.has_errors()) return std::move(plan_);  // Parts of the model may be missing.
    ChooseModules();
    ChooseContents();
    GroupNamespaces();
    return std::move(plan_);
  }

 private:
  static bool IsFor(const Project& project, Language language) {
    const std::string& platform = project.platform;
    if (language == Language::kCxx) return platform == "cxx" || platform == "zeze+cxx";
    return platform == "ts" || platform == "cxx+ts" || platform == "cs+ts";
  }

  void ChooseProject(const std::string& name, std::optional<Language> wanted) {
    const std::vector<Project*> projects = model_.MadeProjects();
    if (!wanted) {
      for (const Project* project : projects) {
        if (project->name == name && IsFor(*project, Language::kTypeScript)) {
          wanted = Language::kTypeScript;
        }
      }
    }
    const Language language = wanted.value_or(Language::kCxx);
    const std::string_view spoken = language == Language::kCxx ? "C++" : "TypeScript";
    plan_.language = language;
    std::vector<const Project*> fitting;
    std::vector<std::string_view> names;
    for (const Project* project : projects) {
      names.push_back(project->name);
      if (name.empty() ? IsFor(*project, language) : project->name == name) {
        fitting.push_back(project);
      }
    }
    if (!name.empty() && fitting.empty()) {
      std::string hint = xml::DidYouMean(name, names);
      if (hint.empty()) hint = fmt::format("projects in these files: {}", fmt::join(names, ", "));
      diagnostics_.Error({}, fmt::format("there is no project '{}'", name), std::move(hint));
    } else if (fitting.size() > 1) {
      names.clear();
      for (const Project* project : fitting) names.push_back(project->name);
      diagnostics_.Error(
          {}, fmt::format("several projects are for {}: {}", spoken, fmt::join(names, ", ")),
          "choose one with --project NAME");
    }
    if (fitting.size() == 1) plan_.project = fitting.front();
    if (plan_.project != nullptr && !IsFor(*plan_.project, language)) {
      diagnostics_.NoteOnce(plan_.project->location,
                            fmt::format("project '{}' is for platform '{}'; {} is generated "
                                        "because it was named",
                                        name, plan_.project->platform, spoken));
    }
  }

  void ChooseModules() {
    if (plan_.project != nullptr) {
      plan_.modules.assign(plan_.project->modules.begin(), plan_.project->modules.end());
      return;
    }
    for (const Module* module : model_.AllModules()) {
      if (module->solution->is_made) plan_.modules.push_back(module);
    }
  }

  void AddBean(const Bean* bean) {
    if (bean == nullptr || !beans_.insert(bean).second) return;
    if (bean->is_external) {
      if (plan_.language == Language::kTypeScript) {
        diagnostics_.Error(bean->location,
                           fmt::format("'{}' is written by hand, in C++; TypeScript has no way to "
                                       "use it",
                                       bean->full_name),
                           "leave what uses it out of the project");
      } else if (bean->header.empty()) {
        diagnostics_.Error(
            bean->location,
            fmt::format("'{}' is written by hand, but nothing says where", bean->full_name),
            "add header=\"path/of/the/header.h\"");
      }
      return;
    }
    const BeanUses uses = UsesOf(*bean);
    for (const Bean* used : uses.strong) AddBean(used);
    for (const Bean* used : uses.weak) AddBean(used);
  }

  void AddProtocol(const Protocol* protocol) {
    if (protocol == nullptr || !protocols_.insert(protocol).second) return;
    AddBean(protocol->argument);
    AddBean(protocol->result);
  }

  void ChooseContents() {
    for (const Module* module : plan_.modules) {
      for (const auto& bean : module->beans) AddBean(bean.get());
      for (const auto& protocol : module->protocols) AddProtocol(protocol.get());
      for (const ProtocolRef& reference : module->protocol_refs) AddProtocol(reference.protocol);
      for (const Table* table : SelectedTables(plan_, *module)) {
        AddBean(table->key.bean);
        AddBean(table->value);
      }
    }
    if (plan_.project != nullptr) {
      for (const Bean* bean : plan_.project->extra_beans) AddBean(bean);
    } else {
      for (const auto& solution : model_.solutions) {
        if (!solution->is_made) continue;
        for (const auto& bean : solution->beans) AddBean(bean.get());
      }
    }
  }

  // All namespaces in use, in model order, with their contents in document order.
  void GroupNamespaces() {
    std::vector<std::string> order;
    std::map<std::string, Unit> alone;
    const auto add_namespace = [&](const std::string& name) -> Unit& {
      auto [at, added] = alone.try_emplace(name);
      if (added) {
        order.push_back(name);
        at->second.namespaces.push_back(name);
      }
      return at->second;
    };
    const auto file_of = [](const Location& location) {
      return std::filesystem::path(location.file).filename().string();
    };
    for (const Bean* bean : model_.AllBeans()) {
      if (!beans_.contains(bean) || bean->is_external) continue;
      Unit& unit = add_namespace(NamespaceOf(*bean));
      unit.beans.push_back(bean);
      unit.files.insert(file_of(bean->location));
    }
    const std::set<const Module*> selected(plan_.modules.begin(), plan_.modules.end());
    for (const Module* module : model_.AllModules()) {
      for (const auto& protocol : module->protocols) {
        if (!protocols_.contains(protocol.get())) continue;
        Unit& unit = add_namespace(module->full_name);
        unit.protocols.push_back(protocol.get());
        unit.files.insert(file_of(protocol->location));
      }
      if (selected.contains(module)) {
        Unit& unit = add_namespace(module->full_name);
        unit.files.insert(file_of(module->location));
        if (!module->enums.empty()) unit.enum_modules.push_back(module);
      } else if (alone.contains(module->full_name) && !module->enums.empty()) {
        alone[module->full_name].enum_modules.push_back(module);
      }
    }
    MergeCircles(order, alone);
    Connect();
  }

  // Namespaces that embed each other, directly or around corners, become one unit.
  void MergeCircles(const std::vector<std::string>& order, std::map<std::string, Unit>& alone) {
    std::map<std::string, std::set<std::string>> reach;
    for (const auto& [name, unit] : alone) {
      for (const Bean* bean : unit.beans) {
        for (const Bean* used : UsesOf(*bean).strong) {
          if (!used->is_external && NamespaceOf(*used) != name) {
            reach[name].insert(NamespaceOf(*used));
          }
        }
      }
    }
    for (bool grew = true; grew;) {
      grew = false;
      for (auto& [name, reached] : reach) {
        std::set<std::string> more;
        for (const std::string& next : reached) {
          const auto at = reach.find(next);
          if (at != reach.end()) more.insert(at->second.begin(), at->second.end());
        }
        const std::size_t before = reached.size();
        reached.insert(more.begin(), more.end());
        grew = grew || reached.size() != before;
      }
    }
    std::set<std::string> placed;
    for (const std::string& name : order) {
      if (!placed.insert(name).second) continue;
      auto unit = std::make_unique<Unit>(std::move(alone[name]));
      for (const std::string& other : order) {
        if (placed.contains(other) || !reach[name].contains(other) ||
            !reach[other].contains(name)) {
          continue;
        }
        placed.insert(other);
        Unit& joined = alone[other];
        unit->namespaces.push_back(other);
        unit->beans.insert(unit->beans.end(), joined.beans.begin(), joined.beans.end());
        unit->protocols.insert(unit->protocols.end(), joined.protocols.begin(),
                               joined.protocols.end());
        unit->enum_modules.insert(unit->enum_modules.end(), joined.enum_modules.begin(),
                                  joined.enum_modules.end());
        unit->files.insert(joined.files.begin(), joined.files.end());
      }
      for (const std::string& own : unit->namespaces) plan_.unit_of_namespace[own] = unit.get();
      plan_.units.push_back(std::move(unit));
    }
  }

  void Connect() {
    for (const auto& unit : plan_.units) {
      SortBeans(*unit);
      for (const Bean* bean : unit->beans) {
        const BeanUses uses = UsesOf(*bean);
        for (const Bean* used : uses.strong) {
          if (!used->is_external) unit->strong.insert(&plan_.UnitOf(*used));
        }
        for (const Bean* used : uses.weak) {
          if (!used->is_external) unit->weak.insert(&plan_.UnitOf(*used));
        }
      }
      for (const Protocol* protocol : unit->protocols) {
        for (const Bean* used : {protocol->argument, protocol->result}) {
          if (used != nullptr && !used->is_external) unit->weak.insert(&plan_.UnitOf(*used));
        }
      }
      unit->strong.erase(unit.get());
      unit->weak.erase(unit.get());
      for (const Unit* strong : unit->strong) unit->weak.erase(strong);
    }
  }

  static void SortBeans(Unit& unit) {
    std::vector<const Bean*> sorted;
    std::set<const Bean*> placed;
    const std::set<const Bean*> own(unit.beans.begin(), unit.beans.end());
    const std::function<void(const Bean*)> place = [&](const Bean* bean) {
      if (!own.contains(bean) || !placed.insert(bean).second) return;
      // In the order of the variables, so that the output does not depend on addresses.
      place(bean->base);
      for (const auto& variable : bean->variables) {
        place(variable->type.bean);
        for (const Type& parameter : variable->type.parameters) {
          if (parameter.kind == TypeKind::kBeanKey) place(parameter.bean);
        }
      }
      sorted.push_back(bean);
    };
    for (const Bean* bean : unit.beans) place(bean);
    unit.beans = std::move(sorted);
  }

  const Model& model_;
  Diagnostics& diagnostics_;
  Plan plan_;
  std::set<const Bean*> beans_;
  std::set<const Protocol*> protocols_;
};

}  // namespace

std::string PathOf(const std::string& full_name) {
  std::string path = full_name;
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

std::string Unit::path() const {
  return PathOf(namespaces.front());
}

std::string NamespaceOf(const Bean& bean) {
  const std::size_t dot = bean.full_name.rfind('.');
  return dot == std::string::npos ? std::string() : bean.full_name.substr(0, dot);
}

const Unit& Plan::UnitOf(const Bean& bean) const {
  const auto at = unit_of_namespace.find(NamespaceOf(bean));
  ZEZE_CHECK(at != unit_of_namespace.end());
  return *at->second;
}

const Unit& Plan::UnitOf(const Protocol& protocol) const {
  const auto at = unit_of_namespace.find(protocol.module->full_name);
  ZEZE_CHECK(at != unit_of_namespace.end());
  return *at->second;
}

std::vector<const Table*> SelectedTables(const Plan& plan, const Module& module) {
  std::set<std::string> tags;
  if (plan.project != nullptr) {
    std::string_view rest = plan.project->gen_tables;
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      more = comma != std::string_view::npos;
      tags.emplace(Trim(rest.substr(0, comma)));
      if (more) rest.remove_prefix(comma + 1);
    }
  }
  std::vector<const Table*> selected;
  for (const auto& table : module.tables) {
    if (plan.project == nullptr || tags.contains(table->gen)) selected.push_back(table.get());
  }
  return selected;
}

std::vector<const Protocol*> HandledProtocols(const Plan& plan, const Module& module) {
  HandleFlags flags;
  if (plan.project == nullptr) {
    flags.server = true;  // Nothing says more: code for a server is what people generate first.
  } else if (const Service* service = plan.project->ServiceOf(&module)) {
    flags = service->handle;
    flags.client_script = flags.client_script || (flags.client && plan.project->client_script);
  }
  std::vector<const Protocol*> handled;
  const auto add = [&](const Protocol* protocol) {
    if (protocol == nullptr) return;
    const HandleFlags& by = protocol->handle;
    if ((by.server && flags.server) || (by.client && flags.client) ||
        (by.client_script && flags.client_script && plan.project->client_script)) {
      handled.push_back(protocol);
    }
  };
  for (const auto& protocol : module.protocols) add(protocol.get());
  for (const ProtocolRef& reference : module.protocol_refs) {
    if (!reference.import_only) add(reference.protocol);
  }
  return handled;
}

Plan MakePlan(const Model& model, const std::string& project_name, std::optional<Language> language,
              Diagnostics& diagnostics) {
  return Planner(model, diagnostics).Make(project_name, language);
}

}  // namespace zeze::gen
