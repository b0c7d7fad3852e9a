#include "zeze/storage/mariadb/mariadb_connection.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <errmsg.h>
#include <fmt/core.h>
#include <mariadb_com.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <netinet/in.h>  // NOLINT(misc-include-cleaner): IPPROTO_TCP.
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/storage/mariadb/mariadb_nodes.h"
#include "zeze/storage/mariadb/mariadb_rows.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/database_url.h"
#include "zeze/storage/sql/sql_connection.h"

namespace zeze {
namespace {

constexpr std::chrono::milliseconds kCancelAllowance = std::chrono::seconds(2);
constexpr unsigned kConnectionKilled = 1927;  // MariaDB only; not in every version of the header.

unsigned WholeSeconds(std::chrono::milliseconds duration) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (duration.count() + 999) / 1000));
}

SqlFailure FailureOf(unsigned code) {
  // The client library's own errors are about the connection.
  if (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) return SqlFailure::kLost;
  switch (code) {
    case ER_LOCK_DEADLOCK:
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_CHECKREAD:
      return SqlFailure::kCollision;
    case ER_SERVER_SHUTDOWN:
    case ER_NORMAL_SHUTDOWN:
    case ER_QUERY_INTERRUPTED:
    case ER_ERROR_DURING_COMMIT:
    case ER_UNKNOWN_COM_ERROR:  // A node that has lost its cluster. Another one may answer.
    case kConnectionKilled:
      return SqlFailure::kLost;
    default:
      return SqlFailure::kError;
  }
}

void SetTimeouts(MYSQL* connection, const MariaDbOptions& options, const MariaDbSession& session) {
  const unsigned connect = WholeSeconds(options.connect_timeout);
  const unsigned answer = WholeSeconds(session.statement_timeout + kCancelAllowance);
  const my_bool off = 0;
  mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
  mysql_options(connection, MYSQL_OPT_READ_TIMEOUT, &answer);
  mysql_options(connection, MYSQL_OPT_WRITE_TIMEOUT, &answer);
  mysql_options(connection, MYSQL_OPT_RECONNECT, &off);  // A transaction would be lost silently.
  mysql_options(connection, MYSQL_OPT_LOCAL_INFILE, nullptr);
  mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
}

enum class TlsMode : std::uint8_t { kOff, kRequire, kVerify };

// Parameters of drivers of Java that ask for encryption in another way than sslMode are refused:
// whoever wrote one does not want plaintext.
Result<TlsMode> ReadTlsMode(const DatabaseUrl& url) {
  const auto mode = url.parameters.find("sslMode");
  const std::string text = mode == url.parameters.end() ? "" : mode->second;
  if (text == "verify-full" || text == "VERIFY_IDENTITY") return TlsMode::kVerify;
  if (text == "require" || text == "REQUIRED") return TlsMode::kRequire;
  if (!text.empty() && text != "disable" && text != "DISABLED") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("sslMode is '{}' in the address of the database: it must be disable, "
                             "require or verify-full",
                             text));
  }
  for (const auto& [name, value] : url.parameters) {
    const bool asks = EqualsIgnoreCase(name, "useSSL") || EqualsIgnoreCase(name, "requireSSL") ||
                      EqualsIgnoreCase(name, "verifyServerCertificate");
    if (name != "serverSslCert" && !(asks && EqualsIgnoreCase(value, "true"))) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} is set in the address of the database, but the connection would "
                             "not be encrypted: add sslMode=verify-full (or require)",
                             name));
  }
  return TlsMode::kOff;
}

void SetTls(MYSQL* connection, const DatabaseUrl& url, TlsMode mode) {
  if (mode == TlsMode::kOff) return;
  const my_bool on = 1;
  const my_bool verifying = mode == TlsMode::kVerify ? 1 : 0;
  mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &on);
  mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verifying);
  const auto certificates = url.parameters.find("serverSslCert");
  if (certificates != url.parameters.end()) {
    mysql_options(connection, MYSQL_OPT_SSL_CA, certificates->second.c_str());
  }
}

void SetKeepAlive(MYSQL* connection, std::chrono::milliseconds network_timeout) {
  const auto socket = static_cast<int>(mysql_get_socket(connection));
  const int on = 1;
  const int seconds = static_cast<int>(WholeSeconds(network_timeout / 2));
  const int timeout = static_cast<int>(network_timeout.count());
  // NOLINTNEXTLINE(misc-include-cleaner): of <sys/socket.h>.
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &seconds, sizeof seconds);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

// A statement waits for the database's answer while this exists.
class Busy {
 public:
  explicit Busy(MariaDbActivity& activity) : activity_(activity) { activity_.Begin(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { activity_.End(); }

 private:
  MariaDbActivity& activity_;
};

}  // namespace

Result<DatabaseUrl> ParseMariaDbUrl(const MariaDbOptions& options) {
  Result<DatabaseUrl> url = ParseDatabaseUrl(options.url);
  if (!url.ok() || url.value().scheme == "mysql" || url.value().scheme == "mariadb") return url;
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("'{}://' is no address of a MariaDB or MySQL database", url.value().scheme));
}

Result<void> CheckMariaDbOptions(const MariaDbOptions& options) {
  const Result<DatabaseUrl> url = ParseMariaDbUrl(options);
  if (!url.ok()) return url.error();
  if (const Result<TlsMode> tls = ReadTlsMode(url.value()); !tls.ok()) return tls.error();
  return {};
}

Result<std::unique_ptr<MariaDbConnection>> MariaDbConnection::Connect(const MariaDbOptions& options,
                                                                      const MariaDbSession& session,
                                                                      std::size_t node,
                                                                      DatabaseCopy* copy) {
  static std::once_flag once;
  std::call_once(once, [] { ZEZE_CHECK(mysql_library_init(0, nullptr, nullptr) == 0); });
  const Result<DatabaseUrl> parsed = ParseMariaDbUrl(options);
  if (!parsed.ok()) return parsed.error();
  const DatabaseUrl& url = parsed.value();
  const Result<TlsMode> tls = ReadTlsMode(url);
  if (!tls.ok()) return tls.error();
  const std::string& user = options.user.empty() ? url.user : options.user;
  const std::string& password = options.password.empty() ? url.password : options.password;
  const DatabaseHost& host = url.hosts[node];
  const unsigned port = host.port == 0 ? 3306 : host.port;
  std::unique_ptr<MariaDbConnection> connection(
      new MariaDbConnection(fmt::format("{}:{}/{}", host.name, port, url.database)));
  connection->connection_ = mysql_init(nullptr);
  ZEZE_CHECK(connection->connection_ != nullptr);
  SetTimeouts(connection->connection_, options, session);
  SetTls(connection->connection_, url, tls.value());
  // By address, never through a local socket that "localhost" would mean otherwise.
  const std::string& name = host.name == "localhost" ? "127.0.0.1" : host.name;
  SqlAnswer answer;
  if (mysql_real_connect(connection->connection_, name.c_str(), user.c_str(), password.c_str(),
                         url.database.c_str(), port, nullptr, CLIENT_FOUND_ROWS) == nullptr) {
    answer = connection->Failed(mysql_errno(connection->connection_),
                                mysql_error(connection->connection_));
  } else {
    SetKeepAlive(connection->connection_, options.network_timeout);
    connection->activity_ = std::make_shared<MariaDbActivity>(
        node, static_cast<int>(mysql_get_socket(connection->connection_)));
    answer = connection->SetUp(options, session);
  }
  if (!answer.ok()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{}: {}", connection->place_, answer.message()));
  }
  if (copy == nullptr) return connection;
  const Result<CopyFacts> facts = connection->ReadCopy();
  if (!facts.ok()) return facts.error();
  if (!facts.value().row) return connection;
  const Result<void> good =
      copy->Check(connection->place_, facts.value().identity, *facts.value().row);
  if (!good.ok()) return good.error();
  return connection;
}

// A Galera cluster has one id for its history, whichever node answers. A server of its own has
// server_uuid (MySQL) or server_uid (MariaDB 10.10 and newer), and server_id with the domain of its
// transaction ids (all): they change when another server takes over. A copy of the files put back
// changes none of them; epochs and flush numbers show that (FlushFate::kHistoryLost).
Result<CopyFacts> MariaDbConnection::ReadCopy() {
  const auto failed = [this](const SqlAnswer& answer) {
    return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", place_, answer.message()));
  };
  CopyFacts facts;
  if (is_galera_) {
    const SqlAnswer cluster = RunOnce("SHOW STATUS LIKE 'wsrep_cluster_state_uuid'");
    if (!cluster.ok()) return failed(cluster);
    facts.identity = "galera " + (cluster.row_count() == 0 ? std::string() : cluster.text(0, 1));
  } else {
    const SqlAnswer variables = RunOnce(
        "SHOW VARIABLES WHERE Variable_name IN"
        " ('server_uuid', 'server_uid', 'server_id', 'gtid_domain_id')");
    if (!variables.ok()) return failed(variables);
    facts.identity = "mariadb";
    for (std::size_t row = 0; row < variables.row_count(); ++row) {
      facts.identity += fmt::format(" {} {}", variables.text(row, 0), variables.text(row, 1));
    }
  }
  const SqlAnswer row = RunOnce(kHomeSql);
  if (row.code() == std::to_string(ER_NO_SUCH_TABLE)) return facts;
  if (!row.ok()) return failed(row);
  facts.row = HomeIn(row);
  return facts;
}

SqlAnswer MariaDbConnection::SetUp(const MariaDbOptions& options, const MariaDbSession& session) {
  const bool is_mariadb = mariadb_connection(connection_) != 0;
  std::uint32_t capabilities = 0;
  mariadb_get_infov(connection_, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &capabilities);
  takes_arrays_ = options.bulk && is_mariadb &&
                  (capabilities & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0;
  SqlAnswer answer = RunOnce("SET SESSION transaction isolation level read committed");
  if (!answer.ok()) return answer;
  // Without strictness a value that does not fit would be cut.
  std::string settings = fmt::format(
      "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,"
      " innodb_lock_wait_timeout = {}, lock_wait_timeout = {}",
      WholeSeconds(options.lock_timeout), WholeSeconds(options.lock_timeout));
  if (is_mariadb) {
    settings += fmt::format(", max_statement_time = {}, idle_transaction_timeout = {}",
                            static_cast<double>(session.statement_timeout.count()) / 1000,
                            WholeSeconds(session.statement_timeout));
  } else {
    settings += fmt::format(", max_execution_time = {}", session.statement_timeout.count());
  }
  answer = RunOnce(settings);
  if (!answer.ok()) return answer;
  SqlAnswer variables = RunOnce(
      "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_max_ws_size', "
      "'max_allowed_packet')");
  if (!variables.ok()) return variables;
  for (std::size_t row = 0; row < variables.row_count(); ++row) {
    const std::string& name = variables.text(row, 0);
    if (name == "wsrep_on") {
      is_galera_ = variables.text(row, 1) == "ON";
    } else if (name == "max_allowed_packet") {
      packet_bytes_max_ = static_cast<std::size_t>(variables.number(row, 1));
    } else {
      write_set_bytes_max_ = static_cast<std::size_t>(variables.number(row, 1));
    }
  }
  answer = CheckNode();
  if (!answer.ok()) return answer;
  // What any node acknowledged must be seen by a read on any other: wait until this one has it.
  if (is_galera_) return RunOnce("SET SESSION wsrep_sync_wait = 1");
  return {};
}

// A node that was split off its cluster takes connections and refuses statements; a read-only one
// is a replica. Another one of the address may be what is looked for.
SqlAnswer MariaDbConnection::CheckNode() {
  SqlAnswer read_only = RunOnce("SELECT @@read_only");
  if (!read_only.ok()) return read_only;
  if (read_only.number(0, 0) != 0) {
    return Refused("it is read-only: give the address of the database that takes writes");
  }
  if (!is_galera_) return {};
  SqlAnswer status =
      RunOnce("SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready')");
  if (!status.ok()) return status;
  std::string cluster;
  std::string ready;
  for (std::size_t row = 0; row < status.row_count(); ++row) {
    (status.text(row, 0) == "wsrep_ready" ? ready : cluster) = status.text(row, 1);
  }
  if (cluster == "Primary" && ready == "ON") return {};
  return Refused(
      fmt::format("it is not a working node of its cluster (wsrep_cluster_status is {}, "
                  "wsrep_ready is {})",
                  cluster, ready));
}

SqlAnswer MariaDbConnection::Refused(std::string message) {
  return {SqlFailure::kError, std::move(message)};
}

MariaDbConnection::~MariaDbConnection() {
  prepared_.clear();
  if (connection_ != nullptr) mysql_close(connection_);
}

bool MariaDbConnection::IsOpen() {
  if (lost_ || leave_) return false;
  // Between statements the database has nothing to say but its end.
  pollfd socket = {
      .fd = static_cast<int>(mysql_get_socket(connection_)), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, 0) == 0;
}

SqlAnswer MariaDbConnection::Failed(unsigned code, const char* message) {
  const SqlFailure failure = FailureOf(code);
  if (failure == SqlFailure::kLost) lost_ = true;
  // A node that was split off says this to reads, which wait for its cluster (wsrep_sync_wait).
  if (is_galera_ && code == ER_LOCK_WAIT_TIMEOUT) leave_ = true;
  return {failure, fmt::format("{} ({})", message, code), std::to_string(code)};
}

SqlAnswer MariaDbConnection::Run(const std::string& sql,
                                 const std::vector<SqlParameter>& parameters) {
  return RunOnce(WithLiterals(sql, parameters));
}

SqlAnswer MariaDbConnection::RunOnce(const std::string& sql) {
  if (lost_) return Failed(CR_SERVER_LOST, "the connection to the database is gone");
  const Busy busy(*activity_);
  if (mysql_real_query(connection_, sql.data(), sql.size()) != 0) {
    return Failed(mysql_errno(connection_), mysql_error(connection_));
  }
  MYSQL_RES* result = mysql_store_result(connection_);
  if (result != nullptr) {
    MariaDbCells rows = CollectMariaDbRows(result);
    mysql_free_result(result);
    return ToMariaDbAnswer(std::move(rows));
  }
  if (mysql_errno(connection_) != 0) {
    return Failed(mysql_errno(connection_), mysql_error(connection_));
  }
  return {nullptr, mysql_affected_rows(connection_)};
}

MYSQL_STMT* MariaDbConnection::Prepare(const std::string& sql, SqlAnswer& failed) {
  if (lost_) {
    failed = Failed(CR_SERVER_LOST, "the connection to the database is gone");
    return nullptr;
  }
  if (auto it = prepared_.find(sql); it != prepared_.end()) return it->second.get();
  Statement statement(mysql_stmt_init(connection_));
  ZEZE_CHECK(statement != nullptr);
  if (mysql_stmt_prepare(statement.get(), sql.data(), sql.size()) != 0) {
    failed = Failed(mysql_stmt_errno(statement.get()), mysql_stmt_error(statement.get()));
    return nullptr;
  }
  return prepared_.emplace(sql, std::move(statement)).first->second.get();
}

SqlAnswer MariaDbConnection::Execute(const std::string& sql,
                                     std::span<const SqlParameter> parameters) {
  const Busy busy(*activity_);
  SqlAnswer failed;
  MYSQL_STMT* statement = Prepare(sql, failed);
  if (statement == nullptr) return failed;
  std::vector<MYSQL_BIND> binds(parameters.size());
  std::vector<std::string> copies;
  copies.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    copies.emplace_back(parameters[i].value());
    binds[i].buffer_type = MYSQL_TYPE_BLOB;
    binds[i].buffer = copies[i].data();
    binds[i].buffer_length = copies[i].size();
  }
  if ((!binds.empty() && mysql_stmt_bind_param(statement, binds.data()) != 0) ||
      mysql_stmt_execute(statement) != 0 || mysql_stmt_store_result(statement) != 0) {
    return Failed(mysql_stmt_errno(statement), mysql_stmt_error(statement));
  }
  SqlAnswer answer = FetchAll(statement);
  mysql_stmt_free_result(statement);
  return answer;
}

SqlAnswer MariaDbConnection::FetchAll(MYSQL_STMT* statement) {
  const unsigned columns = mysql_stmt_field_count(statement);
  if (columns == 0) return {nullptr, mysql_stmt_affected_rows(statement)};
  MariaDbCells rows;
  std::vector<MYSQL_BIND> binds(columns);
  std::vector<unsigned long> lengths(columns);
  std::vector<my_bool> nulls(columns);
  // Without room first, to learn the lengths.
  for (unsigned column = 0; column < columns; ++column) {
    binds[column].buffer_type = MYSQL_TYPE_BLOB;
    binds[column].length = &lengths[column];
    binds[column].is_null = &nulls[column];
  }
  mysql_stmt_bind_result(statement, binds.data());
  for (;;) {
    const int fetched = mysql_stmt_fetch(statement);
    if (fetched == MYSQL_NO_DATA) return ToMariaDbAnswer(std::move(rows));
    if (fetched != 0 && fetched != MYSQL_DATA_TRUNCATED) {
      return Failed(mysql_stmt_errno(statement), mysql_stmt_error(statement));
    }
    std::vector<MariaDbCell> cells(columns);
    for (unsigned column = 0; column < columns; ++column) {
      if (nulls[column] != 0) continue;
      std::string& cell = cells[column].emplace(lengths[column], '\0');
      if (cell.empty()) continue;
      unsigned long length = 0;
      MYSQL_BIND bind = {};
      bind.buffer_type = MYSQL_TYPE_BLOB;
      bind.buffer = cell.data();
      bind.buffer_length = cell.size();
      bind.length = &length;
      if (mysql_stmt_fetch_column(statement, &bind, column, 0) != 0) {
        return Failed(mysql_stmt_errno(statement), mysql_stmt_error(statement));
      }
    }
    rows.push_back(std::move(cells));
  }
}

SqlAnswer MariaDbConnection::ExecuteForEach(
    const std::string& sql, std::span<const std::vector<std::string_view>> columns) {
  ZEZE_CHECK(takes_arrays_);
  const Busy busy(*activity_);
  SqlAnswer failed;
  MYSQL_STMT* statement = Prepare(sql, failed);
  if (statement == nullptr) return failed;
  auto count = static_cast<unsigned>(columns.front().size());
  std::vector<std::vector<const char*>> bytes(columns.size());
  std::vector<std::vector<unsigned long>> lengths(columns.size());
  std::vector<MYSQL_BIND> binds(columns.size());
  for (std::size_t column = 0; column < columns.size(); ++column) {
    bytes[column].reserve(count);
    lengths[column].reserve(count);
    for (std::string_view value : columns[column]) {
      bytes[column].push_back(value.data() == nullptr ? "" : value.data());
      lengths[column].push_back(value.size());
    }
    binds[column].buffer_type = MYSQL_TYPE_BLOB;
    binds[column].buffer = static_cast<void*>(bytes[column].data());
    binds[column].length = lengths[column].data();
  }
  if (mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &count) != 0 ||
      mysql_stmt_bind_param(statement, binds.data()) != 0 || mysql_stmt_execute(statement) != 0) {
    return Failed(mysql_stmt_errno(statement), mysql_stmt_error(statement));
  }
  return {};
}

// A COMMIT that fails for an unclear reason may have happened. Only a collision is one that has not
// for sure.
SqlAnswer MariaDbConnection::Commit() {
  SqlAnswer answer = RunOnce("COMMIT");
  if (answer.failure() != SqlFailure::kError) return answer;
  return {SqlFailure::kLost, answer.message(), answer.code()};
}

void MariaDbConnection::RollBack() {
  if (lost_) return;
  if (!RunOnce("ROLLBACK").ok()) lost_ = true;
}

}  // namespace zeze
