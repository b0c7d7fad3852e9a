// Starting points that belong to the user: written once, never read or touched again.

#pragma once

#include <map>
#include <string>

#include "tools/gen/plan.h"

namespace zeze::gen {

// Path below the directory -> content: Module<Name>.h and .cc for each module of the plan, main.cc.
std::map<std::string, std::string> SkeletonFiles(const Plan& plan);

// A complete project named `name` (checked by the caller): schema, build, configuration, code.
std::map<std::string, std::string> NewProjectFiles(const std::string& name);

}  // namespace zeze::gen
