#include "zeze/storage/mariadb/mariadb_rows.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <mysql.h>

#include "zeze/base/check.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/sql/sql_connection.h"

namespace zeze {
namespace {

class MariaDbRows final : public SqlRows {
 public:
  explicit MariaDbRows(MariaDbCells cells) : cells_(std::move(cells)) {}

  std::size_t row_count() const override { return cells_.size(); }
  bool IsNull(std::size_t row, std::size_t column) const override {
    return !cells_[row][column].has_value();
  }
  std::string_view bytes(std::size_t row, std::size_t column) const override {
    return *cells_[row][column];
  }
  std::int64_t number(std::size_t row, std::size_t column) const override {
    return ParseSqlNumber(bytes(row, column));
  }

 private:
  const MariaDbCells cells_;
};

std::string LiteralOf(const SqlParameter& parameter) {
  switch (parameter.kind()) {
    case SqlParameter::Kind::kNumber:
      return std::string(parameter.value());
    case SqlParameter::Kind::kText:
      return QuotedForMariaDb(parameter.value());
    case SqlParameter::Kind::kBytes:
      break;
  }
  return fmt::format("x'{}'", FormatClusterId(parameter.value()));
}

}  // namespace

SqlAnswer ToMariaDbAnswer(MariaDbCells cells) {
  const std::size_t count = cells.size();
  return {std::make_unique<MariaDbRows>(std::move(cells)), count};
}

MariaDbCells CollectMariaDbRows(MYSQL_RES* result) {
  MariaDbCells rows;
  const unsigned columns = mysql_num_fields(result);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* lengths = mysql_fetch_lengths(result);
    std::vector<MariaDbCell> cells(columns);
    for (unsigned column = 0; column < columns; ++column) {
      if (row[column] != nullptr) cells[column].emplace(row[column], lengths[column]);
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string QuotedForMariaDb(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    switch (c) {
      case '\0':
        quoted += "\\0";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\x1a':
        quoted += "\\Z";
        break;
      case '\\':
      case '\'':
      case '"':
        quoted += '\\';
        [[fallthrough]];
      default:
        quoted += c;
    }
  }
  return quoted + "'";
}

std::string WithLiterals(const std::string& sql, const std::vector<SqlParameter>& parameters) {
  std::string text;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '$') {
      text += sql[i];
      continue;
    }
    const auto number = static_cast<std::size_t>(sql.at(++i) - '1');
    ZEZE_CHECK(number < parameters.size());
    text += LiteralOf(parameters[number]);
  }
  return text;
}

}  // namespace zeze
