#include "tools/cli/program_config.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/config/config.h"

namespace zeze::cli {

namespace {

constexpr const char* kDefaultFile = "zeze.xml";

std::string VariableOr(const std::string& otherwise) {
  const ConfigVariables variables = ReadEnvironment();
  const auto found = variables.find("ZEZE_CONFIG");
  return found == variables.end() || found->second.empty() ? otherwise : found->second;
}

}  // namespace

std::string ConfigFile(const std::string& named) {
  return named.empty() ? VariableOr(kDefaultFile) : named;
}

Result<Config> LoadProgramConfig(const std::string& named,
                                 const std::vector<std::string>& overrides) {
  ConfigLoadOptions options;
  options.overrides = overrides;
  options.allow_missing_file = named.empty() && VariableOr("").empty();
  const std::string file = ConfigFile(named);
  std::error_code code;
  if (!options.allow_missing_file && !std::filesystem::exists(file, code)) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("there is no configuration file {} ({}); name another, or none to "
                             "start with the defaults",
                             file, named.empty() ? "ZEZE_CONFIG" : "--config"));
  }
  return Config::Load(file, options);
}

}  // namespace zeze::cli
