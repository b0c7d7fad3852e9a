// Generate: one run of the generator, from solution files to code. What `zeze gen` does.

#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tools/gen/emitter.h"
#include "tools/gen/plan.h"

namespace zeze::gen {

enum class LockMode : unsigned char {
  kIfPresent,  // Check and write the lock file if there is one.
  kWrite,      // Create it if there is none.
  kFrozen,  // It must be there and fit: nothing is written. For builds that must not change files.
  kIgnore,
};

struct GenerateOptions {
  std::vector<std::string> solutions = {};
  std::string project = {};
  std::optional<Language> language = {};  // Nothing: see MakePlan.
  std::string out = {};                   // Empty: only check.
  std::string runtime = "zeze-client";    // See EmitTypeScript.
  std::string depfile = {};
  std::string stamp = {};     // Written at the end of a run that succeeded; target of the depfile.
  std::string skeleton = {};  // Where to write user-owned files, once.
  std::string explain = {};   // Project to explain; "*" = all.
  std::string xsd = {};       // File for the XSD of the language; "-" = standard output.
  LockMode lock = LockMode::kIfPresent;
  Parts only = Parts::kAll;
  int shards = 1;
  int tracks = 0;  // See EmitOptions.
  bool strict = false;
  bool quiet = false;    // Only warnings and errors.
  bool verbose = false;  // Every file written.
};

// Prints to the streams; returns the exit code: 0 fine, 1 the schema is wrong, 2 the environment
// is.
int Generate(const GenerateOptions& options, std::ostream& out, std::ostream& err);

// Writes the files of a new project into `directory`, which must be empty or not exist.
struct NewOptions {
  std::string name = {};
  std::string directory = {};  // Empty: the name.
};
int NewProject(const NewOptions& options, std::ostream& out, std::ostream& err);

}  // namespace zeze::gen
