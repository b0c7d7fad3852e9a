#include <fmt/format.h>

#include "tools/gen/names.h"
#include "tools/gen/skeleton.h"

namespace zeze::gen {

std::map<std::string, std::string> NewProjectFiles(const std::string& name) {
  (void)name;
  return {};
}

}  // namespace zeze::gen
