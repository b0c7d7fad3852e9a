// ReadModel: solution files and everything they import, as a Model of what is written in them.
//
//   Model model;
//   ReadModel({"solution.xml"}, diagnostics, model);
//   CheckModel(model, diagnostics);
//
// Reads on after an error, so that one run tells everything that is wrong.

#pragma once

#include <string>
#include <vector>

#include "tools/gen/model.h"

namespace zeze::gen {

void ReadModel(const std::vector<std::string>& files, Diagnostics& diagnostics, Model& model);

}  // namespace zeze::gen
