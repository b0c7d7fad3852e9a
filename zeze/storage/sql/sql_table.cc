#include "zeze/storage/sql/sql_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/function_ref.h"
#include "zeze/base/hash.h"
#include "zeze/base/result.h"
#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/sql/sql_dialect.h"
#include "zeze/storage/sql/sql_driver.h"
#include "zeze/storage/sql/walk_page.h"
#include "zeze/storage/storage.h"

namespace zeze {

SqlTable::SqlTable(SqlPool& pool, const SqlDialect& dialect, std::string name,
                   std::string_view relation)
    : pool_(pool),
      dialect_(dialect),
      name_(std::move(name)),
      bare_relation_(relation),
      relation_(dialect.Quoted(relation)),
      words_(dialect.TableWords(relation_)) {}

// The connection goes back before a callback of the caller runs, which may want one.
Result<SqlAnswer> SqlTable::Read(std::string_view what,
                                 FunctionRef<SqlAnswer(SqlConnection&)> read) {
  Result<SqlAnswer> answer = SqlRead(pool_, dialect_, this, what, read);
  if (answer.ok()) return answer;
  return Error(answer.error().code(),
               fmt::format("table '{}': {}", name_, answer.error().message()));
}

Result<bool> SqlTable::Find(std::string_view key, FunctionRef<void(std::string_view)> found) {
  const std::array<SqlParameter, 1> parameters = {SqlParameter::Bytes(key)};
  const Result<SqlAnswer> answer = Read("read a table", [&](SqlConnection& connection) {
    return connection.Execute(words_.find, parameters);
  });
  if (!answer.ok()) return answer.error();
  if (answer.value().row_count() == 0) return false;
  found(answer.value().bytes(0, 0));
  return true;
}

Result<void> SqlTable::FindMany(std::span<const std::string_view> keys,
                                FunctionRef<void(std::size_t, std::string_view)> found) {
  const std::size_t keys_max = dialect_.words().keys_per_read;
  for (std::size_t begin = 0; begin < keys.size();) {
    const auto part = keys.subspan(begin, std::min(keys_max, keys.size() - begin));
    std::unordered_map<std::string_view, std::size_t, SeededHash> positions;
    for (std::size_t i = 0; i < part.size(); ++i) positions.emplace(part[i], begin + i);
    const Result<SqlAnswer> answer = Read("read a table", [&](SqlConnection& connection) {
      return dialect_.ReadRows(connection, relation_, part);
    });
    if (!answer.ok()) return answer.error();
    for (std::size_t i = 0; i < answer.value().row_count(); ++i) {
      found(positions.at(answer.value().bytes(i, 0)), answer.value().bytes(i, 1));
    }
    begin += part.size();
  }
  return {};
}

Result<std::size_t> SqlTable::Walk(const StorageWalk& walk,
                                   FunctionRef<bool(std::string_view, std::string_view)> row) {
  std::optional<std::string> after = walk.after;
  std::size_t given = 0;
  WalkPage page(walk.keys_only);
  while (given < walk.limit) {
    const std::size_t rows = std::min(page.rows(), walk.limit - given);
    const Result<SqlAnswer> answer = Read("walk a table", [&](SqlConnection& connection) {
      return dialect_.ReadPage(connection, relation_, walk, after, rows);
    });
    if (!answer.ok()) return answer.error();
    const std::size_t count = answer.value().row_count();
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view key = answer.value().bytes(i, 0);
      const std::string_view value =
          walk.keys_only ? std::string_view() : answer.value().bytes(i, 1);
      bytes += key.size() + value.size();
      ++given;
      if (!row(key, value)) return given;
    }
    if (count < rows) break;
    after = answer.value().text(count - 1, 0);
    page.Adapt(rows, bytes);
  }
  return given;
}

// Exact while it is cheap to count.
Result<std::uint64_t> SqlTable::SizeApprox() {
  constexpr std::int64_t kCountedMax = 10'000;
  const Result<SqlAnswer> counted = Read("count a table", [&](SqlConnection& connection) {
    return connection.Run(fmt::format("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) AS counted",
                                      relation_, kCountedMax));
  });
  if (!counted.ok()) return counted.error();
  const std::int64_t count = counted.value().number(0, 0);
  if (count < kCountedMax) return static_cast<std::uint64_t>(count);
  std::int64_t guess = 0;
  const Result<SqlAnswer> guessed = Read("count a table", [&](SqlConnection& connection) {
    return dialect_.GuessRows(connection, bare_relation_, guess);
  });
  if (!guessed.ok()) return guessed.error();
  return static_cast<std::uint64_t>(std::max(guess, count));
}

}  // namespace zeze
