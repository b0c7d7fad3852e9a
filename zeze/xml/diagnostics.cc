#include "zeze/xml/diagnostics.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/stable_sort.h"

namespace zeze::xml {
namespace {

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

char Lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

std::string Count(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

}  // namespace

std::string Location::ToString() const {
  if (line == 0) return file;
  return fmt::format("{}:{}:{}", file, line, column);
}

std::string Diagnostic::ToString() const {
  std::string place = location.ToString();
  if (!place.empty()) place += ": ";
  std::string text = fmt::format("{}{}: {}", place, Name(severity), message);
  if (!suggestion.empty()) text += fmt::format("\n  hint: {}", suggestion);
  return text;
}

void Diagnostics::Add(Severity severity, Location location, std::string message,
                      std::string suggestion) {
  if (severity == Severity::kError) ++error_count_;
  if (severity == Severity::kWarning) ++warning_count_;
  all_.push_back({severity, std::move(location), std::move(message), std::move(suggestion)});
}

void Diagnostics::Error(Location location, std::string message, std::string suggestion) {
  Add(Severity::kError, std::move(location), std::move(message), std::move(suggestion));
}

void Diagnostics::Warning(Location location, std::string message, std::string suggestion) {
  Add(strict_ ? Severity::kError : Severity::kWarning, std::move(location), std::move(message),
      std::move(suggestion));
}

void Diagnostics::Note(Location location, std::string message, std::string suggestion) {
  Add(Severity::kNote, std::move(location), std::move(message), std::move(suggestion));
}

void Diagnostics::NoteOnce(Location location, std::string message, std::string suggestion) {
  if (once_.insert(message).second) {
    Note(std::move(location), std::move(message), std::move(suggestion));
  }
}

std::string Diagnostics::Format(Severity least) const {
  std::string text;
  for (const Diagnostic& diagnostic : all_) {
    if (diagnostic.severity >= least) text += diagnostic.ToString() + "\n";
  }
  if (error_count_ + warning_count_ == 0) return text;
  std::string counts;
  if (error_count_ != 0) counts = Count(error_count_, "error");
  if (warning_count_ != 0 && least <= Severity::kWarning) {
    counts += (counts.empty() ? "" : ", ") + Count(warning_count_, "warning");
  }
  if (!counts.empty()) text += counts + ".\n";
  return text;
}

void Diagnostics::SortByLocation() {
  StableSort(all_, [](const Diagnostic& left, const Diagnostic& right) {
    const Location& a = left.location;
    const Location& b = right.location;
    return std::tie(a.file, a.line, a.column) < std::tie(b.file, b.line, b.column);
  });
}

std::size_t EditDistance(std::string_view left, std::string_view right, std::size_t limit) {
  const std::size_t gap =
      left.size() > right.size() ? left.size() - right.size() : right.size() - left.size();
  if (gap > limit) return limit + 1;
  // Three rows of the usual table: the swap of neighbours looks two rows back.
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> above(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t column = 0; column <= right.size(); ++column) above[column] = column;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    std::size_t best = row[0];
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = Lower(left[i - 1]) == Lower(right[j - 1]) ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + replaced});
      if (i > 1 && j > 1 && Lower(left[i - 1]) == Lower(right[j - 2]) &&
          Lower(left[i - 2]) == Lower(right[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
      best = std::min(best, row[j]);
    }
    if (best > limit) return limit + 1;
    before.swap(above);
    above.swap(row);
  }
  return std::min(above[right.size()], limit + 1);
}

std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  // A third of the letters may differ: more than that and the guess is noise.
  const std::size_t limit = std::max<std::size_t>(1, std::min<std::size_t>(word.size(), 24) / 3);
  std::string_view nearest;
  std::size_t nearest_distance = limit + 1;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate, limit);
    if (distance < nearest_distance) {
      nearest = candidate;
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view nearest = Nearest(word, candidates);
  return nearest.empty() ? std::string() : fmt::format("did you mean '{}'?", nearest);
}

}  // namespace zeze::xml
