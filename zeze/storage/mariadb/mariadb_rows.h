// Answers of libmariadb, and statements as text.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mysql.h>

#include "zeze/storage/sql/sql_connection.h"

namespace zeze {

using MariaDbCell = std::optional<std::string>;  // Absent: NULL.
using MariaDbCells = std::vector<std::vector<MariaDbCell>>;

SqlAnswer ToMariaDbAnswer(MariaDbCells cells);
MariaDbCells CollectMariaDbRows(MYSQL_RES* result);

// A text literal. Sessions use utf8mb4, in which no byte of a longer letter is a quote, and their
// sql_mode lets backslashes escape.
std::string QuotedForMariaDb(std::string_view text);

// The statement with the parameters in the places of $1 to $9.
std::string WithLiterals(const std::string& sql, const std::vector<SqlParameter>& parameters);

}  // namespace zeze
