#include "tools/gen/symbols.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {

void Symbols::Claim(const std::string& full_name, std::string_view what, const Location& location,
                    Diagnostics& diagnostics) {
  if (full_name.empty() || full_name.ends_with('.')) return;  // Reported by the reader.
  const auto [at, added] =
      owners_.try_emplace(ToLower(full_name), Owner{full_name, std::string(what), location});
  if (added) return;
  const Owner& owner = at->second;
  const bool same = owner.full_name == full_name;
  diagnostics.Error(
      location,
      fmt::format("{} '{}' has the name of the {}{} at {}", what, full_name, owner.what,
                  same ? "" : fmt::format(" '{}' (case does not count)", owner.full_name),
                  owner.location.ToString()),
      "rename one of them");
}

Symbols::Symbols(const Model& model, Diagnostics& diagnostics) {
  const std::vector<Module*> modules = model.AllModules();
  for (Module* module : modules) {
    modules_.try_emplace(module->full_name, module);
    Claim(module->full_name, "module", module->location, diagnostics);
    const std::string user_class = "Module" + UpperFirst(module->name);
    for (const std::string& taken :
         {user_class, user_class + "Base", std::string("AbstractModule")}) {
      Claim(module->full_name + "." + taken, "class of the module", module->location, diagnostics);
    }
  }
  for (Bean* bean : model.AllBeans()) {
    if (bean->is_external && beans_.contains(bean->full_name))
      continue;  // Declaring twice is fine.
    beans_.try_emplace(bean->full_name, bean);
    Claim(bean->full_name, bean->is_key ? "beankey" : "bean", bean->location, diagnostics);
  }
  for (Module* module : modules) {
    for (const auto& protocol : module->protocols) {
      protocols_.try_emplace(protocol->full_name, protocol.get());
      Claim(protocol->full_name, protocol->is_rpc ? "rpc" : "protocol", protocol->location,
            diagnostics);
    }
    for (const auto& table : module->tables) {
      Claim(table->full_name, "table", table->location, diagnostics);
    }
    for (const auto& servlet : module->servlets) {
      Claim(servlet->full_name, "servlet", servlet->location, diagnostics);
    }
    for (const auto& constant : module->enums) {
      // Constants may differ from other names by case only: nothing makes ids or files of them.
      const std::string full_name = module->full_name + "." + constant->name;
      const auto owner = owners_.find(ToLower(full_name));
      if (owner == owners_.end() || owner->second.full_name == full_name) {
        Claim(full_name, "enum", constant->location, diagnostics);
      }
    }
  }
}

template <typename T>
Lookup<T> Symbols::Find(const Table<T>& table, std::string_view scope, const std::string& name) {
  Lookup<T> lookup;
  const bool dotted = name.find('.') != std::string::npos;
  const std::string direct = dotted ? name : std::string(scope) + "." + name;
  if (const auto at = table.find(direct); at != table.end()) {
    lookup.found = at->second;
    return lookup;
  }
  std::vector<std::pair<std::string, T*>> hits;
  for (std::string_view outer = scope; !outer.empty();) {
    if (const auto at = table.find(std::string(outer) + "." + name); at != table.end()) {
      hits.emplace_back(at->first, at->second);
    }
    const std::size_t dot = outer.rfind('.');
    outer = outer.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  if (hits.empty() && !dotted) {
    if (const auto at = table.find(name); at != table.end()) hits.emplace_back(name, at->second);
  }
  if (hits.size() == 1) {
    lookup.found = hits.front().second;
  } else {
    for (const auto& hit : hits) lookup.ambiguous.push_back(hit.first);
  }
  return lookup;
}

template <typename T>
T* Symbols::FindOrReport(const Table<T>& table, std::string_view scope, const std::string& name,
                         const Location& location, std::string_view what,
                         Diagnostics& diagnostics) {
  const Lookup<T> lookup = Find(table, scope, name);
  if (lookup.found != nullptr) return lookup.found;
  if (!lookup.ambiguous.empty()) {
    diagnostics.Error(location,
                      fmt::format("{} '{}' is ambiguous: it could be {}", what, name,
                                  fmt::join(lookup.ambiguous, " or ")),
                      "write the full name");
    return nullptr;
  }
  // Both the full names and their last parts are what somebody may have meant.
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  const std::string last_part = name.substr(name.rfind('.') + 1);
  for (const auto& [full_name, item] : table) {
    const std::size_t whole = xml::EditDistance(name, full_name, best_distance);
    const std::size_t last =
        xml::EditDistance(last_part, full_name.substr(full_name.rfind('.') + 1), best_distance);
    if (std::min(whole, last) < best_distance) {
      best_distance = std::min(whole, last);
      best = full_name;
    }
  }
  diagnostics.Error(location, fmt::format("there is no {} '{}'", what, name),
                    best.empty() ? std::string() : fmt::format("did you mean '{}'?", best));
  return nullptr;
}

Bean* Symbols::FindBean(std::string_view scope, const std::string& name, const Location& location,
                        std::string_view what, Diagnostics& diagnostics) const {
  return FindOrReport(beans_, scope, name, location, what, diagnostics);
}

Protocol* Symbols::FindProtocol(std::string_view scope, const std::string& name,
                                const Location& location, Diagnostics& diagnostics) const {
  return FindOrReport(protocols_, scope, name, location, "protocol", diagnostics);
}

Module* Symbols::FindModule(std::string_view scope, const std::string& name,
                            const Location& location, Diagnostics& diagnostics) const {
  return FindOrReport(modules_, scope, name, location, "module", diagnostics);
}

Bean* Symbols::FindBeanQuietly(std::string_view scope, const std::string& name) const {
  return Find(beans_, scope, name).found;
}

Module* Symbols::FindModuleQuietly(std::string_view scope, const std::string& name) const {
  return Find(modules_, scope, name).found;
}

}  // namespace zeze::gen
