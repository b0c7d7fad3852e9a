// What the generator can tell about a schema besides C++: the wiring of projects, and the XSD of
// the language for editors.

#pragma once

#include <string>

#include "tools/gen/model.h"

namespace zeze::gen {

// For each module of a project: its service and start position; for each protocol who sends it, who
// handles it and how; its tables with all their names. `project` "*" = all projects.
std::string Explain(const Model& model, const std::string& project, Diagnostics& diagnostics);

std::string FormatXsd();

}  // namespace zeze::gen
