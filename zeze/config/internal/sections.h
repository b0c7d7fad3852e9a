// Sections: all elements of a configuration file, before they get their types. Private to config.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "zeze/config/config.h"
#include "zeze/config/section.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::internal {

struct Sections {
  ConfigSection root{ElementKind::kZeze};
  std::vector<ConfigSection> databases;
  std::vector<ConfigSection> tables;
  std::vector<ConfigSection> services;
  std::vector<ConfigSection> service_managers;
  std::vector<std::pair<ConfigSection, const xml::Element*>> customize;
  std::vector<ConfigSection> properties;
  std::vector<ConfigSection> hosts;  // Of GlobalCacheManagersConf.

  // Databases, tables or services.
  std::vector<ConfigSection>& Of(ElementKind kind) {
    if (kind == ElementKind::kDatabase) return databases;
    return kind == ElementKind::kTable ? tables : services;
  }
};

// Reports unknown elements and names that are given twice.
void ReadSections(const xml::Element& root, Sections& sections, xml::Diagnostics& diagnostics);

// The environment first, then the command line.
void ApplyOverrides(const ConfigVariables& environment, const std::vector<std::string>& overrides,
                    Sections& sections, xml::Diagnostics& diagnostics);

// Follows Inherit and Base.
void ApplyInheritance(Sections& sections, xml::Diagnostics& diagnostics);

}  // namespace zeze::internal
