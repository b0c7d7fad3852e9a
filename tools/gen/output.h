// WriteFiles: puts generated files into a directory so that a build sees only real changes.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/gen/emitter.h"
#include "zeze/base/result.h"

namespace zeze::gen {

struct WriteReport {
  std::vector<std::string> written;  // New or changed.
  std::vector<std::string> removed;  // Ours from an earlier run, not generated any more.
  std::vector<std::string> kept;     // In the way of nothing, but not ours: left alone.
  std::size_t unchanged = 0;
};

// A file whose bytes would not change is not touched. Files below the directory that begin with our
// mark, have one of the extensions (".h") and are not among `files` are removed; all others stay:
// another run may have put another language there. Refuses to overwrite a file that is
// not ours.
Result<WriteReport> WriteFiles(const std::string& directory, const GeneratedFiles& files,
                               const std::set<std::string>& extensions);

// Writes a file only if its bytes change, through a temporary one.
Result<bool> WriteIfChanged(const std::string& path, const std::string& content);
// Writes a file only if nothing is there; false if something is.
Result<bool> WriteOnce(const std::string& path, const std::string& content);
Result<std::string> ReadWholeFile(const std::string& path);

// A rule in the syntax of make: target depends on files.
std::string FormatDepfile(const std::string& target, const std::vector<std::string>& files);

}  // namespace zeze::gen
