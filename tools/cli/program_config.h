// The configuration of a program that can work without a file.

#pragma once

#include <string>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/config/config.h"

namespace zeze::cli {

// What --config says, else what ZEZE_CONFIG says, else zeze.xml.
std::string ConfigFile(const std::string& named);

// The file that ConfigFile names. A file that somebody named must be there (kNotFound); zeze.xml
// need not: without it all settings have their defaults.
Result<Config> LoadProgramConfig(const std::string& named,
                                 const std::vector<std::string>& overrides);

}  // namespace zeze::cli
