// Diagnostics: everything a run found wrong in its input files, each with its place and a way out.
//
//   Diagnostics diagnostics;
//   diagnostics.Error(element.location(), "module id 7 is used twice",
//                     "give this module an id of its own");
//   std::cerr << diagnostics.Format();
//   return diagnostics.has_errors() ? 1 : 0;
//
// prints as compilers do, so that editors and terminals can jump to the place:
//
//   shop.xml:12:5: error: module id 7 is used twice
//     hint: give this module an id of its own

#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zeze::xml {

// A place in a file. Lines and columns count from 1 (columns in bytes); 0 means "the whole file".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  // "file:line:column", "file" or "".
  std::string ToString() const;
  bool operator==(const Location&) const = default;
};

enum class Severity : std::uint8_t { kNote, kWarning, kError };

struct Diagnostic {
  Severity severity = Severity::kError;
  Location location;
  std::string message;
  std::string suggestion;  // Empty: there is nothing useful to add.

  std::string ToString() const;
};

// Collects; never throws and never prints by itself. Not thread-safe.
class Diagnostics {
 public:
  // In strict mode every warning is recorded as an error.
  explicit Diagnostics(bool strict = false) : strict_(strict) {}

  void Error(Location location, std::string message, std::string suggestion = {});
  void Warning(Location location, std::string message, std::string suggestion = {});
  void Note(Location location, std::string message, std::string suggestion = {});
  // A note that is recorded only the first time this message is seen, wherever it comes from.
  void NoteOnce(Location location, std::string message, std::string suggestion = {});

  bool has_errors() const { return error_count_ != 0; }
  std::size_t error_count() const { return error_count_; }
  std::size_t warning_count() const { return warning_count_; }
  // In the order of recording.
  const std::vector<Diagnostic>& all() const { return all_; }

  // All of severity `least` and above, one after the other, then a line that counts them (nothing
  // at all if there is nothing to show).
  std::string Format(Severity least = Severity::kNote) const;

  // Sorts by file, line and column, keeping the order of equal places.
  void SortByLocation();

 private:
  void Add(Severity severity, Location location, std::string message, std::string suggestion);

  bool strict_;
  std::vector<Diagnostic> all_;
  std::set<std::string> once_;
  std::size_t error_count_ = 0;
  std::size_t warning_count_ = 0;
};

// Number of single-character insertions, deletions, replacements and swaps of neighbours between
// two words, ignoring case; `limit` + 1 as soon as it is known to exceed the limit.
std::size_t EditDistance(std::string_view left, std::string_view right, std::size_t limit = 8);

// The candidate most like `word`, or "" if none is near enough to be meant.
std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& candidates);

// "did you mean 'x'?", or "" if nothing is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace zeze::xml
