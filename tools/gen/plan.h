// Plan: what a run generates, and into which files.
//
// One unit for each namespace (module or solution) with beans or protocols in use: a header and a
// .cc. Namespaces whose structs embed each other both ways share a unit, as C++ needs a struct
// before it is embedded; recursion through containers and dynamic needs only a declaration.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/gen/model.h"

namespace zeze::gen {

enum class Language : unsigned char { kCxx, kTypeScript };

struct Unit {
  std::vector<std::string> namespaces;  // Dotted, the first gives the file its name.
  std::vector<const Bean*> beans;       // Each behind what it embeds.
  std::vector<const Protocol*> protocols;
  std::vector<const Module*> enum_modules;  // Modules whose constants it holds.
  std::set<const Unit*> strong;             // Included before the beans.
  std::set<const Unit*> weak;               // Included behind them.
  std::set<std::string> files;              // Schemas it comes from, without folders.

  std::string path() const;  // "Shop/Order", to which .h and .cc are added.
};

struct Plan {
  Language language = Language::kCxx;
  const Project* project = nullptr;    // Null: everything in the files that were named.
  std::vector<const Module*> modules;  // Get a base class; in start order.
  std::vector<std::unique_ptr<Unit>> units;
  std::map<std::string, const Unit*> unit_of_namespace;

  const Unit& UnitOf(const Bean& bean) const;
  const Unit& UnitOf(const Protocol& protocol) const;
};

// "Shop.Order" -> "Shop/Order".
std::string PathOf(const std::string& full_name);
std::string NamespaceOf(const Bean& bean);

// The tables of a module that the plan's project selects by GenTables.
std::vector<const Table*> SelectedTables(const Plan& plan, const Module& module);

// What a module handles in the plan: its own and adopted protocols whose handle fits the service.
std::vector<const Protocol*> HandledProtocols(const Plan& plan, const Module& module);

// Chooses the project: the named one, else the only one for the language, else everything. Without
// a language it is TypeScript if the named project is for it, else C++. Reports an error if the
// choice is not clear.
Plan MakePlan(const Model& model, const std::string& project_name, std::optional<Language> language,
              Diagnostics& diagnostics);

}  // namespace zeze::gen
