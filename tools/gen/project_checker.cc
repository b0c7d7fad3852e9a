// Projects: which modules, which services, in which order.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/checker.h"
#include "tools/gen/model.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

constexpr std::array<std::string_view, 17> kPlatforms = {
    "",        "java",      "cxx",     "zeze+cxx", "ts",        "cxx+ts",
    "cxx+lua", "luaclient", "conf+cs", "simplecs", "zeze+java", "conf+cs+net",
    "python",  "zeze+cs",   "cs",      "cs+lua",   "cs+ts"};

class ProjectChecker {
 public:
  ProjectChecker(const CheckContext& context, Project& project)
      : context_(context), project_(project) {}

  void Check() {
    CheckPlatform();
    for (const Reference& reference : project_.module_refs) {
      if (Module* module = Find(reference)) Claim(*module, nullptr, reference.location);
    }
    // Services in the order of their names, their modules in document order: the start order that
    // existing projects are used to.
    std::vector<Service*> services;
    std::map<std::string, const Service*> names;
    for (const auto& service : project_.services) {
      services.push_back(service.get());
      const auto [other, added] = names.try_emplace(service->name, service.get());
      if (!added) {
        Error(service->location,
              fmt::format("project '{}' has two services '{}', the other at line {}", project_.name,
                          service->name, other->second->location.line),
              "rename one of them");
      }
    }
    std::sort(services.begin(), services.end(),
              [](const Service* left, const Service* right) { return left->name < right->name; });
    for (Service* service : services) {
      for (const Reference& reference : service->module_refs) {
        if (Module* module = Find(reference)) Claim(*module, service, reference.location);
      }
    }
    if (project_.include_all_modules) IncludeAll();
    for (const Reference& reference : project_.bean_refs) {
      Bean* bean = context_.symbols.FindBean(project_.solution->name, reference.text,
                                             reference.location, "bean", context_.diagnostics);
      if (bean != nullptr) project_.extra_beans.push_back(bean);
    }
    ApplyStartOrder();
  }

 private:
  struct Owner {
    const Service* service;
    Location location;
    bool direct;
  };

  void Error(const Location& location, std::string message, std::string hint = {}) {
    context_.diagnostics.Error(location, std::move(message), std::move(hint));
  }

  void CheckPlatform() {
    if (std::find(kPlatforms.begin(), kPlatforms.end(), project_.platform) != kPlatforms.end()) {
      return;
    }
    std::string hint = xml::DidYouMean(project_.platform, {kPlatforms.begin(), kPlatforms.end()});
    if (hint.empty()) hint = "for C++ write platform=\"cxx\", for TypeScript platform=\"ts\"";
    Error(project_.location,
          fmt::format("unknown platform '{}' of project '{}'", project_.platform, project_.name),
          std::move(hint));
  }

  Module* Find(const Reference& reference) {
    if (reference.text.empty()) return nullptr;
    return context_.symbols.FindModule(project_.solution->name, reference.text, reference.location,
                                       context_.diagnostics);
  }

  // A module and all below it belong to one service of a project.
  void Claim(Module& module, Service* service, const Location& location, bool direct = true) {
    const auto [at, added] = owners_.try_emplace(&module, Owner{service, location, direct});
    if (added) {
      project_.modules.push_back(&module);
      if (service != nullptr) service->modules.push_back(&module);
    } else if (direct && at->second.direct && at->second.service == service) {
      Error(location, fmt::format("module '{}' is referenced twice", module.full_name),
            fmt::format("the other reference is at {}", at->second.location.ToString()));
    } else if (service != at->second.service) {
      const auto name = [](const Service* owner) {
        return owner == nullptr ? std::string("the project itself")
                                : fmt::format("service '{}'", owner->name);
      };
      Error(location,
            fmt::format("module '{}' is claimed by {} and by {} at {}", module.full_name,
                        name(service), name(at->second.service), at->second.location.ToString()),
            "a module belongs to one service of a project: remove one reference");
    }
    if (project_.no_recursive_modules) return;
    for (const auto& child : module.modules) Claim(*child, service, location, false);
  }

  void IncludeAll() {
    for (Module* module : context_.model.AllModules()) {
      if (module->solution->name == project_.solution->name && !owners_.contains(module)) {
        owners_.try_emplace(module, Owner{nullptr, project_.location, false});
        project_.modules.push_back(module);
      }
    }
  }

  void ApplyStartOrder() {
    std::vector<Module*> first;
    for (const Reference& reference : project_.start_order_refs) {
      Module* module = Find(reference);
      if (module == nullptr) continue;
      if (!owners_.contains(module)) {
        Error(reference.location,
              fmt::format("ModuleStartOrder names '{}', which project '{}' does not have",
                          module->full_name, project_.name),
              "add <module ref=\"...\"/> to the project or to one of its services");
      } else if (std::find(first.begin(), first.end(), module) != first.end()) {
        Error(reference.location,
              fmt::format("ModuleStartOrder names '{}' twice", module->full_name),
              "remove one of them");
      } else {
        first.push_back(module);
      }
    }
    for (Module* module : project_.modules) {
      if (std::find(first.begin(), first.end(), module) == first.end()) first.push_back(module);
    }
    project_.modules = std::move(first);
  }

  const CheckContext& context_;
  Project& project_;
  std::map<const Module*, Owner> owners_;
};

bool Matches(const HandleFlags& protocol, const HandleFlags& service) {
  return (protocol.server && service.server) || (protocol.client && service.client) ||
         (protocol.server_script && service.server_script) ||
         (protocol.client_script && service.client_script) || (protocol.servlet && service.servlet);
}

// Only meaningful if the projects are in sight.
void WarnOfUnhandled(const CheckContext& context) {
  std::map<const Module*, std::vector<const Service*>> services;
  HandleFlags sides;  // That some service in sight handles: of the others nothing is known.
  for (const auto& solution : context.model.solutions) {
    for (const auto& project : solution->projects) {
      for (const auto& service : project->services) {
        sides.server = sides.server || service->handle.server;
        sides.client = sides.client || service->handle.client;
        for (const Module* module : service->modules) services[module].push_back(service.get());
      }
    }
  }
  if (services.empty()) return;
  for (const Module* module : context.model.AllModules()) {
    const auto& owners = services[module];
    for (const auto& protocol : module->protocols) {
      const bool handled = std::any_of(owners.begin(), owners.end(), [&](const Service* service) {
        return Matches(protocol->handle, service->handle);
      });
      if (handled || owners.empty() || !Matches(protocol->handle, sides)) continue;
      context.diagnostics.Warning(
          protocol->location,
          fmt::format("no service of any project handles '{}'", protocol->full_name),
          "its handle and the handle of the module's service have nothing in common");
    }
  }
}

}  // namespace

void CheckProjects(const CheckContext& context) {
  std::map<std::pair<std::string, std::string>, const Project*> names;
  for (const auto& solution : context.model.solutions) {
    for (const auto& project : solution->projects) {
      const auto [other, added] = names.try_emplace({solution->name, project->name}, project.get());
      if (!added && !project->is_component) {
        context.diagnostics.Error(project->location,
                                  fmt::format("there is another project '{}' at {}", project->name,
                                              other->second->location.ToString()),
                                  "rename one of them");
      }
      ProjectChecker(context, *project).Check();
    }
  }
  WarnOfUnhandled(context);
}

}  // namespace zeze::gen
