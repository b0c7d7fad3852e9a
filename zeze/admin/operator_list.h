// OperatorList: who may ask for what only operators may do, and how their signatures are known.
//
//   # name  public key
//   alice   ed25519:8f0c...
//   bob     ed25519:12ab...

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"

namespace zeze::admin {

struct Operator {
  std::string name;        // Letters, digits and - _ . @, at most 64.
  std::string public_key;  // The bytes.
};

// Names and keys are distinct: two names for one key would let one person approve twice. Errors
// name the line and say what was expected there; a list of nobody is an error, too.
Result<std::vector<Operator>> ParseOperators(std::string_view text, std::string_view file_name);
Result<std::vector<Operator>> LoadOperators(const std::string& path);

bool IsOperatorName(std::string_view name);

}  // namespace zeze::admin
