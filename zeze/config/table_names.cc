// Config::ResolveTables: which table a TableConf means.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/text.h"
#include "zeze/config/config.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {

namespace {

std::string ToStorageName(std::string_view name) {
  std::string storage(name);
  std::replace(storage.begin(), storage.end(), '.', '_');
  return storage;
}

// True if the name is the whole storage name or its end after an underscore.
bool Matches(std::string_view storage_name, std::string_view name, bool ignore_case) {
  if (name.empty() || name.size() > storage_name.size()) return false;
  const std::size_t start = storage_name.size() - name.size();
  const std::string_view end = storage_name.substr(start);
  if (ignore_case ? !EqualsIgnoreCase(end, name) : end != name) return false;
  return start == 0 || storage_name[start - 1] == '_';
}

// Exact names win over endings, and the right case over the wrong one.
std::vector<std::string_view> Candidates(std::span<const std::string_view> storage_names,
                                         std::string_view name) {
  for (const bool ignore_case : {false, true}) {
    std::vector<std::string_view> found;
    for (const std::string_view storage_name : storage_names) {
      if (!Matches(storage_name, name, ignore_case)) continue;
      if (storage_name.size() == name.size()) return {storage_name};
      found.push_back(storage_name);
    }
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

void Config::ResolveTables(std::span<const std::string_view> storage_names,
                           xml::Diagnostics& diagnostics) {
  std::map<std::string, TableConfig, std::less<>> resolved;
  for (auto& [written, table] : tables) {
    if (written.empty()) {
      resolved.emplace(written, std::move(table));
      continue;
    }
    const xml::Location location = table.section.location();
    const std::string name = ToStorageName(written);
    const std::vector<std::string_view> candidates = Candidates(storage_names, name);
    if (candidates.empty()) {
      std::vector<std::string_view> names(storage_names.begin(), storage_names.end());
      // Short names resemble short names.
      for (const std::string_view storage_name : storage_names) {
        names.push_back(storage_name.substr(storage_name.rfind('_') + 1));
      }
      diagnostics.Warning(
          location, fmt::format("<TableConf> \"{}\" names no table and has no effect", written),
          xml::DidYouMean(name, names));
      continue;
    }
    if (candidates.size() > 1) {
      diagnostics.Error(location,
                        fmt::format("<TableConf> \"{}\" could mean each of {}", written,
                                    fmt::join(candidates, ", ")),
                        "write the whole name");
      continue;
    }
    const std::string storage_name(candidates.front());
    table.name = storage_name;
    const auto [first, is_new] = resolved.emplace(storage_name, std::move(table));
    if (!is_new) {
      diagnostics.Error(
          location,
          fmt::format("a second <TableConf> is about the table {}; the first is at {}",
                      storage_name, first->second.section.location().ToString()),
          "put both into one");
    }
  }
  tables = std::move(resolved);
}

}  // namespace zeze
