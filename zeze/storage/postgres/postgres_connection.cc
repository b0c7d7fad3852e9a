#include "zeze/storage/postgres/postgres_connection.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <libpq-fe.h>
#include <poll.h>
#include <postgres_ext.h>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/storage/postgres/postgres_settings.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/database_url.h"
#include "zeze/storage/sql/sql_connection.h"

namespace zeze {
namespace {

constexpr std::chrono::milliseconds kCancelAllowance = std::chrono::seconds(2);
constexpr std::size_t kSendAtOnceBytes = std::size_t{4} << 20;

// libpq ends its messages with a line feed, and has several lines.
std::string OneLine(const char* message) {
  std::string line(Trim(message == nullptr ? "" : message));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

SqlFailure FailureOf(std::string_view severity, std::string_view state) {
  if (severity == "FATAL" || severity == "PANIC") return SqlFailure::kLost;
  // 40003 is "statement completion unknown", 08... a connection exception.
  if (state == "40003" || state.starts_with("08") || state.starts_with("57P0")) {
    return SqlFailure::kLost;
  }
  if (state == "40001" || state == "40P01" || state == "55P03") return SqlFailure::kCollision;
  return SqlFailure::kError;
}

Result<void> AwaitConnected(PGconn* connection, std::chrono::milliseconds timeout) {
  const auto deadline = SystemClock().Now() + timeout;
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SystemClock().Now());
    if (status == PGRES_POLLING_FAILED) {
      return Error(ErrorCode::kUnavailable, OneLine(PQerrorMessage(connection)));
    }
    if (left.count() <= 0) return Error(ErrorCode::kUnavailable, "it does not answer");
    const bool reading = status == PGRES_POLLING_READING;
    pollfd socket = {.fd = PQsocket(connection),
                     .events = static_cast<short>(reading ? POLLIN : POLLOUT),
                     .revents = 0};
    if (::poll(&socket, 1, static_cast<int>(left.count())) > 0) status = PQconnectPoll(connection);
  }
  return {};
}

// Rows as text or in binary form, as the result says.
class PostgresRows final : public SqlRows {
 public:
  explicit PostgresRows(PGresult* result) : result_(result) {}

  std::size_t row_count() const override {
    return static_cast<std::size_t>(PQntuples(result_.get()));
  }
  bool IsNull(std::size_t row, std::size_t column) const override {
    return PQgetisnull(result_.get(), static_cast<int>(row), static_cast<int>(column)) != 0;
  }
  std::string_view bytes(std::size_t row, std::size_t column) const override {
    const auto r = static_cast<int>(row);
    const auto c = static_cast<int>(column);
    return {PQgetvalue(result_.get(), r, c),
            static_cast<std::size_t>(PQgetlength(result_.get(), r, c))};
  }
  std::int64_t number(std::size_t row, std::size_t column) const override {
    constexpr Oid kBoolean = 16;
    constexpr Oid kInteger[] = {20, 21, 23};  // Of 8, 2 and 4 bytes.
    const std::string_view value = bytes(row, column);
    const Oid type = PQftype(result_.get(), static_cast<int>(column));
    const bool binary = PQfformat(result_.get(), static_cast<int>(column)) == 1;
    if (type == kBoolean) return value == (binary ? std::string_view("\1", 1) : "t") ? 1 : 0;
    if (!binary ||
        std::find(std::begin(kInteger), std::end(kInteger), type) == std::end(kInteger)) {
      return ParseSqlNumber(value);
    }
    // Most significant byte first, with a sign.
    std::uint64_t number = static_cast<signed char>(value[0]) < 0 ? ~std::uint64_t{0} : 0;
    for (const char byte : value) number = number << 8 | static_cast<unsigned char>(byte);
    return static_cast<std::int64_t>(number);
  }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  const std::unique_ptr<PGresult, Clear> result_;
};

std::uint64_t MetRows(PGresult* result) {
  const std::string_view text = PQcmdTuples(result);
  std::uint64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

}  // namespace

PostgresConnection::PostgresConnection(PGconn* connection, std::chrono::milliseconds answer_timeout)
    : connection_(connection), answer_timeout_(answer_timeout) {}

PostgresConnection::~PostgresConnection() {
  PQfinish(connection_);
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::Connect(
    const PostgresOptions& options, const PostgresSession& session, DatabaseCopy& copy) {
  const Result<DatabaseUrl> url = ParseDatabaseUrl(options.url);
  if (!url.ok()) return url.error();
  const std::size_t hosts = url.value().hosts.size();
  const std::size_t first = copy.host();
  std::optional<Error> foreign;
  std::string problems;
  for (std::size_t i = 0; i < hosts; ++i) {
    const std::size_t host = (first + i) % hosts;
    Result<std::unique_ptr<PostgresConnection>> connected = ConnectTo(options, session, host);
    if (!connected.ok() && connected.error().code() != ErrorCode::kUnavailable) return connected;
    const Result<void> good =
        connected.ok() ? connected.value()->CheckCopy(copy) : Result<void>(connected.error());
    if (good.ok()) {
      copy.set_host(host);
      return connected;
    }
    // Another host may have the copy that counts.
    if (good.error().code() == ErrorCode::kFenced) foreign = good.error();
    problems += (problems.empty() ? "" : "; ") + good.error().message();
  }
  if (foreign) return *foreign;
  return Error(ErrorCode::kUnavailable, problems);
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::ConnectToAny(
    const PostgresOptions& options, const PostgresSession& session) {
  return ConnectTo(options, session, 0);
}

Result<CopyFacts> PostgresConnection::ReadCopy() {
  const SqlAnswer copy = RunOnce(
      "SELECT NOT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN '' ELSE"
      " (SELECT system_identifier FROM pg_control_system())::text || ' timeline ' ||"
      " substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,"
      " to_regclass('zeze_home') IS NOT NULL");
  if (!copy.ok()) return Error(ErrorCode::kUnavailable, copy.message());
  CopyFacts facts = {.takes_writes = copy.number(0, 0) != 0,
                     .identity = "postgresql " + copy.text(0, 1)};
  if (!facts.takes_writes) facts.identity.clear();
  if (copy.number(0, 2) == 0) return facts;
  const SqlAnswer row = RunOnce(kHomeSql);
  if (!row.ok()) return Error(ErrorCode::kUnavailable, row.message());
  facts.row = HomeIn(row);
  return facts;
}

Result<void> PostgresConnection::CheckCopy(DatabaseCopy& copy) {
  const Result<CopyFacts> facts = ReadCopy();
  if (!facts.ok()) return facts.error();
  if (!facts.value().takes_writes) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{} is a replica that takes no writes: give the address of the "
                             "database that does",
                             Place()));
  }
  if (!facts.value().row) return {};
  return copy.Check(Place(), facts.value().identity, *facts.value().row);
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::ConnectTo(
    const PostgresOptions& options, const PostgresSession& session, std::size_t host) {
  Result<PostgresSettings> settings = ConnectSettings(options, session, host);
  if (!settings.ok()) return settings.error();
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : settings.value()) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(PQconnectStartParams(names.data(), values.data(), 0),
                             session.statement_timeout + kCancelAllowance));
  ZEZE_CHECK(connection->connection_ != nullptr);
  Result<void> connected = AwaitConnected(connection->connection_, options.connect_timeout);
  if (!connected.ok()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot connect to the database {}: {}. Check its address, that it "
                             "runs, and the user's password.",
                             connection->Place(), connected.error().message()));
  }
  PQsetnonblocking(connection->connection_, 1);
  PQsetErrorContextVisibility(connection->connection_, PQSHOW_CONTEXT_NEVER);
  // Notices are for people at a terminal.
  PQsetNoticeReceiver(connection->connection_, [](void*, const PGresult*) {}, nullptr);
  // Whatever the database is configured to: what it acknowledges must be on disk.
  SqlAnswer durable = connection->RunOnce(
      "SELECT set_config('synchronous_commit', 'on', false) WHERE "
      "current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')");
  if (!durable.ok()) return Error(ErrorCode::kUnavailable, durable.message());
  return connection;
}

std::string PostgresConnection::Place() const {
  const char* host = PQhost(connection_);
  const char* port = PQport(connection_);
  const char* database = PQdb(connection_);
  auto text = [](const char* value) { return value == nullptr ? "" : value; };
  return fmt::format("{}:{}/{}", text(host), text(port), text(database));
}

bool PostgresConnection::IsOpen() {
  if (!lost_.empty() || PQstatus(connection_) != CONNECTION_OK) return false;
  // An end of the connection shows itself as readable.
  pollfd socket = {.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
  if (::poll(&socket, 1, 0) <= 0) return true;
  return PQconsumeInput(connection_) == 1 && PQstatus(connection_) == CONNECTION_OK;
}

PostgresConnection::Deadline PostgresConnection::NewDeadline() const {
  return SystemClock().Now() + answer_timeout_;
}

bool PostgresConnection::WaitForSocket(short events, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SystemClock().Now());
    if (left.count() <= 0) {
      lost_ = fmt::format("no answer for {} ms", answer_timeout_.count());
      return false;
    }
    pollfd socket = {.fd = PQsocket(connection_), .events = events, .revents = 0};
    if (::poll(&socket, 1, static_cast<int>(left.count())) > 0) return true;
  }
}

bool PostgresConnection::SendAll() {
  Deadline deadline = NewDeadline();
  for (;;) {
    if (!lost_.empty()) return false;
    const int left = PQflush(connection_);
    if (left == 0) return true;
    if (left < 0) {
      lost_ = OneLine(PQerrorMessage(connection_));
      return false;
    }
    if (!WaitForSocket(POLLIN | POLLOUT, deadline)) return false;
    // The database may be waiting for us to read before it goes on reading itself.
    if (PQconsumeInput(connection_) == 0) {
      lost_ = OneLine(PQerrorMessage(connection_));
      return false;
    }
  }
}

bool PostgresConnection::NextResult(PGresult*& result) {
  const Deadline deadline = NewDeadline();
  if (!SendAll()) return false;
  while (PQisBusy(connection_) == 1) {
    if (!WaitForSocket(POLLIN, deadline)) return false;
    if (PQconsumeInput(connection_) == 0) break;  // PQgetResult gives the reason.
  }
  result = PQgetResult(connection_);
  return true;
}

SqlAnswer PostgresConnection::LostAnswer() {
  if (lost_.empty()) lost_ = OneLine(PQerrorMessage(connection_));
  if (lost_.empty()) lost_ = "the connection to the database is gone";
  return {SqlFailure::kLost, lost_};
}

SqlAnswer PostgresConnection::ToAnswer(PGresult* result) {
  command_ = PQcmdStatus(result);
  auto rows = std::make_unique<PostgresRows>(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
    return {std::move(rows), MetRows(result)};
  }
  auto field = [&](int code) -> std::string {
    const char* text = PQresultErrorField(result, code);
    return text == nullptr ? "" : text;
  };
  const std::string state = field(PG_DIAG_SQLSTATE);
  std::string message = field(PG_DIAG_MESSAGE_PRIMARY);
  // Without a state it is libpq itself that says it: the connection broke.
  if (state.empty() || PQstatus(connection_) != CONNECTION_OK) {
    lost_ = message.empty() ? OneLine(PQresultErrorMessage(result)) : message;
    return LostAnswer();
  }
  const SqlFailure failure = FailureOf(field(PG_DIAG_SEVERITY_NONLOCALIZED), state);
  if (failure == SqlFailure::kLost) lost_ = message;
  return {failure, fmt::format("{} ({})", message, state), state};
}

// All results of one statement; the first failure, else the last.
SqlAnswer PostgresConnection::CollectAnswer() {
  SqlAnswer answer;
  for (bool first = true;; first = false) {
    PGresult* result = nullptr;
    if (!NextResult(result)) return LostAnswer();
    if (result == nullptr) {
      if (first) return LostAnswer();
      return answer;
    }
    SqlAnswer next = ToAnswer(result);
    if (answer.ok()) answer = std::move(next);
    if (answer.failure() == SqlFailure::kLost) return answer;
  }
}

SqlAnswer PostgresConnection::RunOnce(const std::string& sql) {
  if (!lost_.empty() || PQsendQuery(connection_, sql.c_str()) == 0) return LostAnswer();
  return CollectAnswer();
}

SqlAnswer PostgresConnection::Prepare(const std::string& sql, std::string& name) {
  if (auto it = prepared_.find(sql); it != prepared_.end()) {
    name = it->second;
    return {};
  }
  name = fmt::format("z{}", ++prepared_count_);
  if (!lost_.empty() || PQsendPrepare(connection_, name.c_str(), sql.c_str(), 0, nullptr) == 0) {
    return LostAnswer();
  }
  SqlAnswer answer = CollectAnswer();
  if (answer.ok()) prepared_.emplace(sql, name);
  return answer;
}

namespace {

// The arrays that libpq wants, for the time of one call.
struct ParameterArrays {
  explicit ParameterArrays(std::span<const SqlParameter> parameters) {
    for (const SqlParameter& parameter : parameters) {
      const std::string_view value = parameter.value();
      // An empty view may have no address, which libpq would take for NULL.
      values.push_back(value.data() == nullptr ? "" : value.data());
      lengths.push_back(static_cast<int>(value.size()));
      formats.push_back(parameter.kind() == SqlParameter::Kind::kBytes ? 1 : 0);
    }
  }
  int count() const { return static_cast<int>(values.size()); }

  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace

SqlAnswer PostgresConnection::Execute(const std::string& sql,
                                      std::span<const SqlParameter> parameters) {
  std::string name;
  SqlAnswer prepared = Prepare(sql, name);
  if (!prepared.ok()) return prepared;
  const ParameterArrays arrays(parameters);
  if (PQsendQueryPrepared(connection_, name.c_str(), arrays.count(), arrays.values.data(),
                          arrays.lengths.data(), arrays.formats.data(),
                          /*resultFormat=*/1) == 0) {
    return LostAnswer();
  }
  return CollectAnswer();
}

SqlAnswer PostgresConnection::Commit() {
  SqlAnswer answer = RunOnce("COMMIT");
  // COMMIT of a transaction that failed answers "ROLLBACK", and did nothing.
  if (!answer.ok() || command_ == "COMMIT") return answer;
  return {SqlFailure::kError, "the database rolled it back"};
}

void PostgresConnection::RollBack() {
  if (!lost_.empty() || PQtransactionStatus(connection_) == PQTRANS_IDLE) return;
  const SqlAnswer answer = RunOnce("ROLLBACK");
  if (!answer.ok() && lost_.empty()) lost_ = answer.message();
}

void PostgresConnection::BeginPipeline() {
  pipeline_.clear();
  if (PQenterPipelineMode(connection_) == 0) lost_ = OneLine(PQerrorMessage(connection_));
}

bool PostgresConnection::AddToPipeline(const std::string& sql,
                                       std::span<const SqlParameter> parameters) {
  if (!lost_.empty()) return false;
  std::string name;
  if (auto it = prepared_.find(sql); it != prepared_.end()) {
    name = it->second;
  } else {
    for (const PipelineStep& step : pipeline_) {
      if (step.prepares && step.sql == sql) name = step.name;
    }
  }
  if (name.empty()) {
    name = fmt::format("z{}", ++prepared_count_);
    if (PQsendPrepare(connection_, name.c_str(), sql.c_str(), 0, nullptr) == 0) {
      lost_ = OneLine(PQerrorMessage(connection_));
      return false;
    }
    pipeline_.push_back({.prepares = true, .sql = sql, .name = name});
  }
  const ParameterArrays arrays(parameters);
  if (PQsendQueryPrepared(connection_, name.c_str(), arrays.count(), arrays.values.data(),
                          arrays.lengths.data(), arrays.formats.data(), 0) == 0) {
    lost_ = OneLine(PQerrorMessage(connection_));
    return false;
  }
  pipeline_.push_back({});
  // libpq would keep everything that the socket does not take in memory, once more.
  std::size_t bytes = 0;
  for (const SqlParameter& parameter : parameters) bytes += parameter.value().size();
  return bytes < kSendAtOnceBytes || SendAll();
}

bool PostgresConnection::AddPlainToPipeline(const char* sql) {
  if (!lost_.empty()) return false;
  if (PQsendQueryParams(connection_, sql, 0, nullptr, nullptr, nullptr, nullptr, 0) == 0) {
    lost_ = OneLine(PQerrorMessage(connection_));
    return false;
  }
  pipeline_.push_back({});
  return true;
}

PostgresConnection::PipelineAnswer PostgresConnection::FinishPipeline() {
  PipelineAnswer first;
  if (!lost_.empty() || PQpipelineSync(connection_) == 0) {
    first.answer = LostAnswer();
    return first;
  }
  std::size_t statement = 0;
  for (const PipelineStep& step : pipeline_) {
    PGresult* result = nullptr;
    if (!NextResult(result) || result == nullptr) {
      if (first.answer.ok()) first = {.answer = LostAnswer(), .statement = statement};
      return first;
    }
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED) {
      PQclear(result);  // Behind a failure; it was not run.
    } else {
      SqlAnswer answer = ToAnswer(result);
      if (answer.ok() && step.prepares) prepared_.emplace(step.sql, step.name);
      if (first.answer.ok()) first = {.answer = std::move(answer), .statement = statement};
      if (!lost_.empty()) return first;
    }
    if (!step.prepares) ++statement;
    PGresult* end = nullptr;
    if (!NextResult(end)) {
      if (first.answer.ok()) first.answer = LostAnswer();
      return first;
    }
    PQclear(end);
  }
  PGresult* sync = nullptr;
  // Whatever happens from here on, the last statement has answered.
  if (NextResult(sync)) PQclear(sync);
  if (first.answer.ok() && command_ != "COMMIT") {
    first.answer = {SqlFailure::kError, "the database rolled it back"};
  }
  if (PQexitPipelineMode(connection_) == 0 && lost_.empty()) {
    lost_ = OneLine(PQerrorMessage(connection_));
  }
  return first;
}

}  // namespace zeze
