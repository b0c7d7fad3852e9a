// PostgresConnection: one session with the database, through libpq, with a bound on every wait.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <libpq-fe.h>

#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_copy.h"

namespace zeze {

// A value for $1, $2, ... The bytes are borrowed.
struct PostgresParameter {
  std::string text;             // As a literal would be written, without quotes...
  std::string_view bytes = {};  // ...or, if `binary`, as the wire has it.
  bool binary = false;

  static PostgresParameter Text(std::string text) { return {.text = std::move(text)}; }
  static PostgresParameter Number(std::int64_t number) { return Text(std::to_string(number)); }
  static PostgresParameter Bytes(std::string_view bytes) {
    return {.text = {}, .bytes = bytes, .binary = true};
  }
};

enum class PostgresFailure : std::uint8_t {
  kNone,
  kCollision,  // Deadlock, serialization failure, a lock not had in time: nothing happened.
  kError,      // Another error: nothing happened.
  kLost,       // The connection is gone; what was asked for has happened or not.
};

// What the database said to one statement.
class PostgresAnswer {
 public:
  PostgresAnswer() = default;
  explicit PostgresAnswer(PGresult* result) : result_(result) {}
  PostgresAnswer(PostgresFailure failure, std::string state, std::string message)
      : failure_(failure), state_(std::move(state)), message_(std::move(message)) {}

  bool ok() const { return failure_ == PostgresFailure::kNone; }
  PostgresFailure failure() const { return failure_; }
  const std::string& state() const { return state_; }  // The five letters of SQLSTATE.
  const std::string& message() const { return message_; }

  int row_count() const { return PQntuples(result_.get()); }
  std::int64_t affected_rows() const;
  std::string_view command() const { return PQcmdStatus(result_.get()); }
  bool IsNull(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::string_view bytes(int row, int column) const;
  std::int64_t number(int row, int column) const;  // Of a text answer.

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
  PostgresFailure failure_ = PostgresFailure::kNone;
  std::string state_;
  std::string message_;
};

enum class PostgresFormat : std::uint8_t { kText = 0, kBinary = 1 };

// Who a session is and how long its statements may take.
struct PostgresSession {
  std::string application_name;
  std::chrono::milliseconds statement_timeout = {};
};

// Not thread-safe.
class PostgresConnection {
 public:
  // To the first host of the address that takes writes and has the copy of the database that counts
  // (rule 73). Errors: kUnavailable, kInvalidArgument, kFenced (there is only a copy that may lack
  // what was acknowledged).
  static Result<std::unique_ptr<PostgresConnection>> Connect(const PostgresOptions& options,
                                                             const PostgresSession& session,
                                                             DatabaseCopy& copy);
  // To the first host of the address that answers, whatever it has. For tools.
  static Result<std::unique_ptr<PostgresConnection>> ConnectToAny(const PostgresOptions& options,
                                                                  const PostgresSession& session);
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;
  ~PostgresConnection();

  // False if the connection is known to be gone, also when the database said so meanwhile.
  bool IsOpen();

  // "db1:5432/game"
  std::string Place() const;

  // What the copy of the database says of itself.
  struct Facts {
    bool takes_writes = false;
    std::string identity;        // Empty if it takes no writes.
    std::optional<HomeRow> row;  // Absent: nobody has made the framework's tables.
  };
  Result<Facts> ReadFacts();

  // One statement; prepared at its first use.
  PostgresAnswer Execute(const std::string& sql, std::span<const PostgresParameter> parameters = {},
                         PostgresFormat format = PostgresFormat::kText);

  // One statement that is not worth preparing.
  PostgresAnswer ExecuteOnce(const std::string& sql);

  // Leaves a transaction that failed.
  void RollBack();

  // --- Statements in a row, without waiting for answers: Begin, Add..., Finish. ---

  void BeginPipeline();
  // False if the connection is gone; Finish gives the answer then too.
  bool AddToPipeline(const std::string& sql, std::span<const PostgresParameter> parameters);
  bool AddPlainToPipeline(const char* sql);
  struct PipelineAnswer {
    PostgresAnswer answer;      // Of the first statement that failed, else of the last.
    std::size_t statement = 0;  // Its place among those that were added.
  };
  PipelineAnswer FinishPipeline();

 private:
  PostgresConnection(PGconn* connection, std::chrono::milliseconds answer_timeout);

  static Result<std::unique_ptr<PostgresConnection>> ConnectTo(const PostgresOptions& options,
                                                               const PostgresSession& session,
                                                               std::size_t host);
  Result<void> CheckCopy(DatabaseCopy& copy);

  using Deadline = std::chrono::nanoseconds;
  Deadline NewDeadline() const;

  // Until everything was handed to the kernel, or the connection is given up.
  bool SendAll();
  bool WaitForSocket(short events, Deadline deadline);
  // The next result, null at the end of those of one statement. False: lost.
  bool NextResult(PGresult*& result);
  PostgresAnswer CollectAnswer();
  PostgresAnswer ToAnswer(PGresult* result);
  PostgresAnswer LostAnswer();
  PostgresAnswer Prepare(const std::string& sql, std::string& name);

  PGconn* connection_;
  const std::chrono::milliseconds answer_timeout_;
  std::string lost_;  // Why it was given up; empty: it was not.
  std::map<std::string, std::string, std::less<>> prepared_;  // Text to name.
  int prepared_count_ = 0;

  struct PipelineStep {
    bool prepares = false;  // An answer of its own, but no statement of the caller.
    std::string sql;
    std::string name;
  };
  std::vector<PipelineStep> pipeline_;
};

}  // namespace zeze
