#include "zeze/storage/sql/table_name.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

constexpr std::string_view kHashedPrefix = "zeze_table_";

// Tables of the framework, and those of the Java peer that have another layout.
constexpr std::array<std::string_view, 12> kKeptNames = {
    "_zezedatawithversion_", "_zezeinstances_", "zeze_cluster", "zeze_fence",
    "zeze_fenced",           "zeze_global",     "zeze_home",    "zeze_lease",
    "zeze_session",          "zeze_table",      "zeze_wanted",  "zeze_yield"};

bool IsPlainWord(std::string_view name) {
  if (name.front() >= '0' && name.front() <= '9') return false;
  for (char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) return false;
  }
  return true;
}

bool IsUtf8(std::string_view text) {
  bool valid = true;
  internal::ForEachUtf16Unit(text, [&](char16_t unit) { valid = valid && unit != 0xFFFD; });
  return valid;
}

// FNV-1a. Stored: never changes.
std::uint64_t HashBytes(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

Result<std::string> SqlRelationName(std::string_view table, const SqlNameRules& rules) {
  if (Result<void> valid = CheckStorageTableName(table); !valid.ok()) return valid.error();
  const std::string lower = ToLower(table);
  for (std::string_view kept : kKeptNames) {
    if (lower != kept) continue;
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' cannot be the name of a table: the framework keeps it for itself",
                    table));
  }
  if (!IsUtf8(table)) {
    return Error(ErrorCode::kInvalidArgument,
                 "the name of a table in an SQL database must be UTF-8 text");
  }
  if (!IsPlainWord(table) || table.size() > rules.bytes_max || lower.starts_with(kHashedPrefix)) {
    return fmt::format("{}{:016x}", kHashedPrefix, HashBytes(table));
  }
  return rules.folds_case ? lower : std::string(table);
}

std::string SqlTableName(std::string_view relation, std::string_view comment,
                         const SqlNameRules& rules) {
  if (comment.empty()) return std::string(relation);
  const Result<std::string> stands_as = SqlRelationName(comment, rules);
  if (stands_as.ok() && stands_as.value() == relation) return std::string(comment);
  return std::string(relation);
}

}  // namespace zeze
