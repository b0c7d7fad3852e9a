// SqlConnection: one session with an SQL database, as the code that all drivers share sees it.
//
//   SqlAnswer answer = connection.Run(
//       "SELECT term FROM zeze_global WHERE shard = $1 AND holder = $2", {0, "host"});
//   if (answer.ok() && answer.row_count() > 0) term = answer.number(0, 0);
//
// A driver derives from SqlConnection and SqlRows.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/sql/database_copy.h"

namespace zeze {

// The value of a placeholder.
class SqlParameter {
 public:
  enum class Kind : std::uint8_t { kNumber, kText, kBytes };

  // NOLINTBEGIN(google-explicit-constructor): lists of parameters are written as their values.
  template <std::integral Number>
  SqlParameter(Number number) : kind_(Kind::kNumber), text_(std::to_string(number)) {}
  SqlParameter(std::string text) : kind_(Kind::kText), text_(std::move(text)) {}
  SqlParameter(const char* text) : kind_(Kind::kText), text_(text) {}
  // NOLINTEND(google-explicit-constructor)

  // Borrowed.
  static SqlParameter Bytes(std::string_view bytes) {
    SqlParameter parameter("");
    parameter.kind_ = Kind::kBytes;
    parameter.bytes_ = bytes;
    return parameter;
  }

  Kind kind() const { return kind_; }
  // A number: its digits. Ends with a zero byte unless the kind is kBytes.
  std::string_view value() const { return kind_ == Kind::kBytes ? bytes_ : text_; }

 private:
  Kind kind_;
  std::string text_;
  std::string_view bytes_ = {};
};

enum class SqlFailure : std::uint8_t {
  kNone,
  kCollision,  // Deadlock, serialization failure, a lock not had in time: nothing happened.
  kError,      // Another error: nothing happened.
  kLost,       // The connection is gone; what was asked for has happened or not.
};

// The rows of one answer, as the client library has them.
class SqlRows {
 public:
  SqlRows(const SqlRows&) = delete;
  SqlRows& operator=(const SqlRows&) = delete;
  virtual ~SqlRows() = default;

  virtual std::size_t row_count() const = 0;
  virtual bool IsNull(std::size_t row, std::size_t column) const = 0;
  virtual std::string_view bytes(std::size_t row, std::size_t column) const = 0;
  // Of a number or a boolean.
  virtual std::int64_t number(std::size_t row, std::size_t column) const = 0;

 protected:
  SqlRows() = default;
};

// What the database said to one statement.
class SqlAnswer {
 public:
  SqlAnswer() = default;
  SqlAnswer(std::unique_ptr<const SqlRows> rows, std::uint64_t met_rows)
      : rows_(std::move(rows)), met_rows_(met_rows) {}
  // `code` is the database's own.
  SqlAnswer(SqlFailure failure, std::string message, std::string code = {})
      : failure_(failure), message_(std::move(message)), code_(std::move(code)) {}

  bool ok() const { return failure_ == SqlFailure::kNone; }
  SqlFailure failure() const { return failure_; }
  const std::string& message() const { return message_; }
  const std::string& code() const { return code_; }

  // How many rows it returned or met, changed or not.
  std::uint64_t met_rows() const { return met_rows_; }

  std::size_t row_count() const { return rows_ == nullptr ? 0 : rows_->row_count(); }
  bool IsNull(std::size_t row, std::size_t column) const { return rows_->IsNull(row, column); }
  std::string_view bytes(std::size_t row, std::size_t column) const {
    return rows_->bytes(row, column);
  }
  std::string text(std::size_t row, std::size_t column) const {
    return std::string(bytes(row, column));
  }
  std::int64_t number(std::size_t row, std::size_t column) const {
    return rows_->number(row, column);
  }

 private:
  std::unique_ptr<const SqlRows> rows_;
  std::uint64_t met_rows_ = 0;
  SqlFailure failure_ = SqlFailure::kNone;
  std::string message_;
  std::string code_;
};

// "cannot WHAT: MESSAGE".
Error SqlError(ErrorCode code, std::string_view what, std::string_view message);

// Decimal digits.
std::int64_t ParseSqlNumber(std::string_view digits);

// What a copy of the database says of itself.
struct CopyFacts {
  bool takes_writes = true;
  std::string identity = {};                  // Empty if it takes no writes.
  std::optional<HomeRow> row = std::nullopt;  // Absent: the framework's tables are not there.
};

inline const std::string kHomeSql = "SELECT home, home_number, frozen, marker FROM zeze_home";
// The row in the answer to kHomeSql.
std::optional<HomeRow> HomeIn(const SqlAnswer& answer);

// Not thread-safe.
class SqlConnection {
 public:
  SqlConnection(const SqlConnection&) = delete;
  SqlConnection& operator=(const SqlConnection&) = delete;
  virtual ~SqlConnection() = default;

  // False if the connection is known to be gone, also when the database said so meanwhile.
  virtual bool IsOpen() = 0;

  // "db1:5432/game"
  virtual std::string Place() const = 0;

  virtual Result<CopyFacts> ReadCopy() = 0;

  // One statement that runs now and then. $1, $2, ... stand for the parameters; the driver sends
  // them beside the text or writes them into it.
  virtual SqlAnswer Run(const std::string& sql, const std::vector<SqlParameter>& parameters) = 0;
  SqlAnswer Run(const std::string& sql) { return Run(sql, {}); }

  // One statement that is not worth preparing.
  virtual SqlAnswer RunOnce(const std::string& sql) = 0;

  // One statement on rows, prepared at its first use. Its placeholders are the database's own.
  virtual SqlAnswer Execute(const std::string& sql, std::span<const SqlParameter> parameters) = 0;

  virtual SqlAnswer Begin() = 0;
  // kLost: the transaction has happened or not. After every other failure it has not.
  virtual SqlAnswer Commit() = 0;
  // Leaves a transaction that failed.
  virtual void RollBack() = 0;

 protected:
  SqlConnection() = default;
};

}  // namespace zeze
