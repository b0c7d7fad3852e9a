// PostgresConnection: one session with the database, through libpq, with a bound on every wait.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <libpq-fe.h>

#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/sql_connection.h"

namespace zeze {

// Who a session is and how long its statements may take.
struct PostgresSession {
  std::string application_name;
  std::chrono::milliseconds statement_timeout = {};
};

// Not thread-safe.
class PostgresConnection final : public SqlConnection {
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
  ~PostgresConnection() override;

  bool IsOpen() override;
  std::string Place() const override;
  Result<CopyFacts> ReadCopy() override;

  // Prepared at its first use; the rows of the answer are in binary form.
  SqlAnswer Execute(const std::string& sql, std::span<const SqlParameter> parameters) override;
  SqlAnswer Run(const std::string& sql, const std::vector<SqlParameter>& parameters) override {
    return Execute(sql, parameters);
  }
  using SqlConnection::Run;
  // Several statements too; the rows of the answer are text.
  SqlAnswer RunOnce(const std::string& sql) override;
  SqlAnswer Begin() override { return RunOnce("BEGIN"); }
  SqlAnswer Commit() override;
  void RollBack() override;

  // --- Statements in a row, without waiting for answers: Begin, Add..., Finish. ---

  void BeginPipeline();
  // False if the connection is gone; Finish gives the answer then too.
  bool AddToPipeline(const std::string& sql, std::span<const SqlParameter> parameters);
  bool AddPlainToPipeline(const char* sql);
  struct PipelineAnswer {
    SqlAnswer answer;           // Of the first statement that failed, else of the last.
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
  SqlAnswer CollectAnswer();
  SqlAnswer ToAnswer(PGresult* result);
  SqlAnswer LostAnswer();
  SqlAnswer Prepare(const std::string& sql, std::string& name);

  PGconn* connection_;
  const std::chrono::milliseconds answer_timeout_;
  std::string lost_;     // Why it was given up; empty: it was not.
  std::string command_;  // What the last statement did, as the database calls it.
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
