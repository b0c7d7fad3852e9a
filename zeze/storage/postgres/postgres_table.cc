#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
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
#include "zeze/storage/postgres/bytea_array.h"
#include "zeze/storage/postgres/postgres_connection.h"
#include "zeze/storage/postgres/postgres_storage_impl.h"
#include "zeze/storage/sql/walk_page.h"
#include "zeze/storage/storage.h"

namespace zeze {

PostgresTable::PostgresTable(PostgresPool& pool, std::string name, std::string_view relation)
    : pool_(pool),
      name_(std::move(name)),
      relation_(fmt::format("\"{}\"", relation)),
      find_sql_(fmt::format("SELECT value FROM {} WHERE id = $1::bytea", relation_)),
      put_sql_(fmt::format("INSERT INTO {} (id, value) SELECT * FROM unnest($1::bytea[],"
                           " $2::bytea[]) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                           relation_)),
      remove_sql_(fmt::format("DELETE FROM {} WHERE id = ANY($1::bytea[])", relation_)) {}

Result<bool> PostgresTable::Find(std::string_view key, FunctionRef<void(std::string_view)> found) {
  const std::array<PostgresParameter, 1> parameters = {PostgresParameter::Bytes(key)};
  Result<PostgresAnswer> answer =
      PostgresRead(pool_, this, "read a table", find_sql_, parameters, PostgresFormat::kBinary);
  if (!answer.ok()) {
    return Error(answer.error().code(),
                 fmt::format("table '{}': {}", name_, answer.error().message()));
  }
  if (answer.value().row_count() == 0) return false;
  found(answer.value().bytes(0, 0));
  return true;
}

Result<void> PostgresTable::FindMany(std::span<const std::string_view> keys,
                                     FunctionRef<void(std::size_t, std::string_view)> found) {
  std::unordered_map<std::string_view, std::size_t, SeededHash> positions;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    positions.emplace(keys[i], i);
    bytes += keys[i].size();
  }
  ByteaArray array(keys.size(), bytes);
  for (const std::string_view key : keys) array.Add(key);
  const std::array<PostgresParameter, 1> parameters = {array.parameter()};
  const Result<PostgresAnswer> answer =
      PostgresRead(pool_, this, "read a table",
                   fmt::format("SELECT id, value FROM {} WHERE id = ANY($1::bytea[])", relation_),
                   parameters, PostgresFormat::kBinary);
  if (!answer.ok()) {
    return Error(answer.error().code(),
                 fmt::format("table '{}': {}", name_, answer.error().message()));
  }
  for (int i = 0; i < answer.value().row_count(); ++i) {
    found(positions.at(answer.value().bytes(i, 0)), answer.value().bytes(i, 1));
  }
  return {};
}

Result<std::size_t> PostgresTable::Walk(const StorageWalk& walk,
                                        FunctionRef<bool(std::string_view, std::string_view)> row) {
  std::optional<std::string> after = walk.after;
  std::size_t given = 0;
  WalkPage page(walk.keys_only);
  while (given < walk.limit) {
    const std::size_t rows = std::min(page.rows(), walk.limit - given);
    std::vector<PostgresParameter> parameters = {
        PostgresParameter::Number(static_cast<std::int64_t>(rows))};
    if (after) parameters.push_back(PostgresParameter::Bytes(*after));
    const std::string sql = fmt::format("SELECT id{} FROM {}{} ORDER BY id{} LIMIT $1::bigint",
                                        walk.keys_only ? "" : ", value", relation_,
                                        !after            ? ""
                                        : walk.descending ? " WHERE id < $2::bytea"
                                                          : " WHERE id > $2::bytea",
                                        walk.descending ? " DESC" : "");
    // The connection goes back before the callback is called, which may want one.
    const Result<PostgresAnswer> answer =
        PostgresRead(pool_, this, "walk a table", sql, parameters, PostgresFormat::kBinary);
    if (!answer.ok()) {
      return Error(answer.error().code(),
                   fmt::format("table '{}': {}", name_, answer.error().message()));
    }
    const int count = answer.value().row_count();
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) {
      const std::string_view key = answer.value().bytes(i, 0);
      const std::string_view value =
          walk.keys_only ? std::string_view() : answer.value().bytes(i, 1);
      bytes += key.size() + value.size();
      ++given;
      if (!row(key, value)) return given;
    }
    if (static_cast<std::size_t>(count) < rows) break;
    after = std::string(answer.value().bytes(count - 1, 0));
    page.Adapt(rows, bytes);
  }
  return given;
}

// Exact while it is cheap to count, then what the planner would guess from the size of the file.
Result<std::uint64_t> PostgresTable::SizeApprox() {
  constexpr std::int64_t kCountedMax = 10'000;
  const Result<PostgresAnswer> counted =
      PostgresRead(pool_, this, "count a table",
                   fmt::format("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) AS counted",
                               relation_, kCountedMax),
                   {});
  if (!counted.ok()) return counted.error();
  const std::int64_t count = counted.value().number(0, 0);
  if (count < kCountedMax) return static_cast<std::uint64_t>(count);
  const Result<PostgresAnswer> plan = PostgresRead(
      pool_, this, "count a table", fmt::format("EXPLAIN SELECT 1 FROM {}", relation_), {});
  if (!plan.ok()) return plan.error();
  // "Seq Scan on t  (cost=0.00..1.01 rows=123 width=4)"
  std::int64_t guess = 0;
  const std::string_view line = plan.value().bytes(0, 0);
  if (const std::size_t at = line.find("rows="); at != std::string_view::npos) {
    std::from_chars(line.data() + at + 5, line.data() + line.size(), guess);
  }
  return static_cast<std::uint64_t>(std::max(guess, count));
}

}  // namespace zeze
