#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/function_ref.h"
#include "zeze/base/hash.h"
#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_storage_impl.h"
#include "zeze/storage/sql/walk_page.h"
#include "zeze/storage/storage.h"

namespace zeze {

MariaDbTable::MariaDbTable(MariaDbPool& pool, std::string name, std::string_view relation)
    : pool_(pool),
      name_(std::move(name)),
      bare_relation_(relation),
      relation_(fmt::format("`{}`", relation)),
      find_sql_(fmt::format("SELECT value FROM {} WHERE id = ?", relation_)),
      put_sql_(fmt::format("INSERT INTO {} (id, value) VALUES (?, ?)"
                           " ON DUPLICATE KEY UPDATE value = VALUES(value)",
                           relation_)),
      remove_sql_(fmt::format("DELETE FROM {} WHERE id = ?", relation_)) {}

Error MariaDbTable::InTable(const Error& error) const {
  return {error.code(), fmt::format("table '{}': {}", name_, error.message())};
}

Result<bool> MariaDbTable::Find(std::string_view key, FunctionRef<void(std::string_view)> found) {
  const std::array<std::string_view, 1> parameters = {key};
  const Result<MariaDbAnswer> answer = MariaDbRead(
      pool_, this, "read a table",
      [&](MariaDbConnection& connection) { return connection.Execute(find_sql_, parameters); });
  if (!answer.ok()) return InTable(answer.error());
  if (answer.value().rows.empty()) return false;
  found(answer.value().text(0, 0));
  return true;
}

Result<void> MariaDbTable::FindMany(std::span<const std::string_view> keys,
                                    FunctionRef<void(std::size_t, std::string_view)> found) {
  constexpr std::size_t kKeysMax = 128;
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysMax) {
    const auto part = keys.subspan(begin, std::min(kKeysMax, keys.size() - begin));
    std::unordered_map<std::string_view, std::size_t, SeededHash> positions;
    for (std::size_t i = 0; i < part.size(); ++i) positions.emplace(part[i], begin + i);
    // A power of two, the last key again and again: few texts to prepare.
    std::vector<std::string_view> parameters(part.begin(), part.end());
    parameters.resize(std::bit_ceil(part.size()), part.back());
    std::string sql = fmt::format("SELECT id, value FROM {} WHERE id IN (?", relation_);
    for (std::size_t i = 1; i < parameters.size(); ++i) sql += ",?";
    sql += ')';
    const Result<MariaDbAnswer> answer = MariaDbRead(
        pool_, this, "read a table",
        [&](MariaDbConnection& connection) { return connection.Execute(sql, parameters); });
    if (!answer.ok()) return InTable(answer.error());
    for (std::size_t i = 0; i < answer.value().rows.size(); ++i) {
      found(positions.at(answer.value().text(i, 0)), answer.value().text(i, 1));
    }
  }
  return {};
}

Result<std::size_t> MariaDbTable::Walk(const StorageWalk& walk,
                                       FunctionRef<bool(std::string_view, std::string_view)> row) {
  std::optional<std::string> after = walk.after;
  std::size_t given = 0;
  WalkPage page(walk.keys_only);
  while (given < walk.limit) {
    const std::size_t rows = std::min(page.rows(), walk.limit - given);
    std::vector<std::string_view> parameters;
    if (after) parameters.emplace_back(*after);
    // The limit is a power of two in most pages: few texts to prepare.
    const std::string sql = fmt::format("SELECT id{} FROM {}{} ORDER BY id{} LIMIT {}",
                                        walk.keys_only ? "" : ", value", relation_,
                                        !after            ? ""
                                        : walk.descending ? " WHERE id < ?"
                                                          : " WHERE id > ?",
                                        walk.descending ? " DESC" : "", rows);
    // The connection goes back before the callback is called, which may want one.
    const Result<MariaDbAnswer> answer = MariaDbRead(
        pool_, this, "walk a table",
        [&](MariaDbConnection& connection) { return connection.Execute(sql, parameters); });
    if (!answer.ok()) return InTable(answer.error());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < answer.value().rows.size(); ++i) {
      const std::string_view key = answer.value().text(i, 0);
      const std::string_view value =
          walk.keys_only ? std::string_view() : std::string_view(answer.value().text(i, 1));
      bytes += key.size() + value.size();
      ++given;
      if (!row(key, value)) return given;
    }
    if (answer.value().rows.size() < rows) break;
    after = answer.value().text(rows - 1, 0);
    page.Adapt(rows, bytes);
  }
  return given;
}

// Exact while it is cheap to count, then what InnoDB guesses from some of its pages.
Result<std::uint64_t> MariaDbTable::SizeApprox() {
  constexpr std::int64_t kCountedMax = 10'000;
  const Result<MariaDbAnswer> counted =
      MariaDbRead(pool_, this, "count a table", [&](MariaDbConnection& connection) {
        return connection.Query(fmt::format(
            "SELECT COUNT(*) FROM (SELECT 1 FROM {} LIMIT {}) AS counted", relation_, kCountedMax));
      });
  if (!counted.ok()) return InTable(counted.error());
  const std::int64_t count = counted.value().number(0, 0);
  if (count < kCountedMax) return static_cast<std::uint64_t>(count);
  const Result<MariaDbAnswer> guessed =
      MariaDbRead(pool_, this, "count a table", [&](MariaDbConnection& connection) {
        return connection.Query(
            fmt::format("SELECT TABLE_ROWS FROM information_schema.TABLES WHERE"
                        " TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{}'",
                        bare_relation_));
      });
  if (!guessed.ok()) return InTable(guessed.error());
  const bool known = !guessed.value().rows.empty() && guessed.value().rows[0][0].has_value();
  return static_cast<std::uint64_t>(std::max(count, known ? guessed.value().number(0, 0) : 0));
}

}  // namespace zeze
