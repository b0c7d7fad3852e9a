#include "zeze/storage/testing/database_server.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kStartTime = std::chrono::minutes(3);
constexpr int kStartTries = 5;  // Somebody may take the port that was free.

[[noreturn]] void StopProgram(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

std::string MustRun(const ServerProcessOptions& options) {
  ProgramResult result = RunProgram(options);
  if (result.exit_code != 0) {
    StopProgram(fmt::format("'{}' failed with {}: {}", options.command.front(), result.exit_code,
                            result.said));
  }
  return std::move(result.said);
}

Error MissingProgram(const std::string& program, const std::string& package) {
  return {ErrorCode::kNotFound,
          fmt::format("cannot start a database for tests: there is no program '{}'. Install the "
                      "package {}.",
                      program, package)};
}

// ---- PostgreSQL

// Debian has the server's programs outside of PATH, in a folder for each version.
std::string FindPostgresProgram(const std::string& name) {
  std::vector<std::string> candidates;
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    candidates.push_back((version.path() / "bin" / name).string());
  }
  candidates.push_back(name);
  return FindProgram(candidates);
}

class PostgresServer final : public DatabaseServer {
 public:
  Result<void> Start(bool sync) {
    for (const char* program : {"initdb", "postgres", "psql"}) {
      if (FindPostgresProgram(program).empty()) return MissingProgram(program, "postgresql");
    }
    sync_ = sync;
    GiveDirectoryTo(directory_.path(), kUser);
    const ProgramResult made =
        RunProgram({.command = {FindPostgresProgram("initdb"), "--no-sync", "--no-instructions",
                                "--encoding=UTF8", "--locale=C", "--username=zeze", "--auth=trust",
                                "--pgdata=" + directory_.File("data")},
                    .user = kUser});
    if (made.exit_code != 0) {
      return Error(ErrorCode::kUnavailable, "initdb failed: " + made.said);
    }
    for (int tries = 0; tries < kStartTries; ++tries) {
      port_ = FreePort();
      if (Run()) return {};
    }
    return Error(ErrorCode::kUnavailable, "postgres does not start: " + process_->said());
  }

  Result<void> StartReplicaOf(const std::string& url) {
    const std::size_t at = url.find(':', url.find('@')) + 1;
    GiveDirectoryTo(directory_.path(), kUser);
    const ProgramResult copied =
        RunProgram({.command = {FindPostgresProgram("pg_basebackup"), "--host=127.0.0.1",
                                "--port=" + url.substr(at, url.find('/', at) - at),
                                "--username=zeze", "--checkpoint=fast", "--no-sync",
                                "--write-recovery-conf", "--pgdata=" + directory_.File("data")},
                    .user = kUser});
    if (copied.exit_code != 0) {
      return Error(ErrorCode::kUnavailable, "pg_basebackup failed: " + copied.said);
    }
    port_ = FreePort();
    if (Run()) return {};
    return Error(ErrorCode::kUnavailable, "postgres does not start: " + process_->said());
  }

  std::vector<std::string> NewDatabaseOnEachNode() override {
    const std::string name = fmt::format("t{}", ++databases_);
    Psql("postgres", "CREATE DATABASE " + name);
    return {fmt::format("postgresql://zeze@127.0.0.1:{}/{}?sslmode=disable", port_, name)};
  }

  void DropDatabase(const std::string& url) override {
    Psql("postgres", "DROP DATABASE " + NameIn(url) + " WITH (FORCE)");
  }

  std::string RunSql(const std::string& url, const std::string& sql) override {
    return Psql(NameIn(url), sql);
  }

  void Restart() override {
    process_->Stop();
    if (!Run()) StopProgram("postgres does not start again: " + process_->said());
  }

  std::string RunSqlOnNode(std::size_t /*node*/, const std::string& sql) override {
    return Psql("postgres", sql);
  }
  void SignalNode(std::size_t /*node*/, int signal) override { process_->Signal(signal); }

 private:
  static constexpr const char* kUser = "postgres";

  bool Run() {
    std::vector<std::string> command = {FindPostgresProgram("postgres"),
                                        "-D",
                                        directory_.File("data"),
                                        "-p",
                                        std::to_string(port_),
                                        "-c",
                                        "listen_addresses=127.0.0.1",
                                        "-c",
                                        "unix_socket_directories=",
                                        "-c",
                                        "max_connections=200",
                                        "-c",
                                        "shared_buffers=64MB"};
    if (!sync_) {
      command.insert(command.end(), {"-c", "fsync=off", "-c", "full_page_writes=off"});
    }
    process_.reset();  // One that has not become ready in time has the files still.
    // SIGQUIT is its immediate end.
    process_ = std::make_unique<ServerProcess>(
        ServerProcessOptions{.command = command, .user = kUser, .end_signal = SIGQUIT});
    // A replica accepts "read-only connections".
    return process_->AwaitLine("ready to accept", kStartTime);
  }

  static std::string NameIn(const std::string& url) {
    const std::size_t slash = url.rfind('/');
    return url.substr(slash + 1, url.find('?') - slash - 1);
  }

  std::string Psql(const std::string& database, const std::string& sql) const {
    return MustRun({.command = {FindPostgresProgram("psql"), "--no-psqlrc", "--tuples-only",
                                "--no-align", "--quiet", "--set=ON_ERROR_STOP=1",
                                "--host=127.0.0.1", "--port=" + std::to_string(port_),
                                "--username=zeze", "--dbname=" + database, "--command=" + sql}});
  }

  const TempDirectory directory_;
  bool sync_ = false;
  int port_ = 0;
  int databases_ = 0;
  std::unique_ptr<ServerProcess> process_;
};

// ---- MariaDB, and clusters of it

const std::vector<std::string> mariadb_servers = {"mariadbd", "/usr/sbin/mariadbd", "mysqld",
                                                  "/usr/sbin/mysqld"};
const std::vector<std::string> mariadb_clients = {"mariadb", "mysql"};
const std::vector<std::string> mariadb_installers = {"mariadb-install-db", "mysql_install_db"};
const std::vector<std::string> galera_libraries = {"/usr/lib/galera/libgalera_smm.so",
                                                   "/usr/lib64/galera-4/libgalera_smm.so"};

class MariaDbServer final : public DatabaseServer {
 public:
  // One node: a server of its own. More: a Galera cluster.
  Result<void> Start(std::size_t nodes, bool sync) {
    if (FindProgram(mariadb_servers).empty()) return MissingProgram("mariadbd", "mariadb-server");
    if (FindProgram(mariadb_clients).empty()) return MissingProgram("mariadb", "mariadb-client");
    if (FindProgram(mariadb_installers).empty()) {
      return MissingProgram("mariadb-install-db", "mariadb-server");
    }
    if (nodes > 1 && Galera().empty()) return MissingProgram("libgalera_smm.so", "galera-4");
    sync_ = sync;
    nodes_.resize(nodes);
    GiveDirectoryTo(directory_.path(), kUser);
    for (std::size_t node = 0; node < nodes; ++node) {
      if (Result<void> started = StartNode(node); !started.ok()) return started;
    }
    return {};
  }

  std::vector<std::string> NewDatabaseOnEachNode() override {
    const std::string name = fmt::format("t{}", ++databases_);
    Client("", "CREATE DATABASE " + name);
    std::vector<std::string> urls;
    for (const Node& node : nodes_) {
      // Until this one has it too; a connection to it would not wait.
      if (nodes_.size() > 1) Client("", "SET SESSION wsrep_sync_wait = 1; SELECT 1", node);
      urls.push_back(fmt::format("mysql://root@127.0.0.1:{}/{}", node.port, name));
    }
    return urls;
  }

  void DropDatabase(const std::string& url) override { Client("", "DROP DATABASE " + NameIn(url)); }

  std::string RunSql(const std::string& url, const std::string& sql) override {
    // On a cluster: after everything that any node acknowledged.
    return Client(NameIn(url), nodes_.size() > 1 ? "SET SESSION wsrep_sync_wait = 7; " + sql : sql);
  }

  void Restart() override {
    nodes_.front().process->Kill();
    if (!Run(0)) StopProgram("mariadbd does not start again: " + nodes_.front().process->said());
  }

  std::string RunSqlOnNode(std::size_t node, const std::string& sql) override {
    return Client("", sql, nodes_[node]);
  }
  void SignalNode(std::size_t node, int signal) override { nodes_[node].process->Signal(signal); }

 private:
  static constexpr const char* kUser = "mysql";

  struct Node {
    std::string directory;
    int port = 0;
    int group_port = 0;
    std::unique_ptr<ServerProcess> process;
  };

  static std::string Galera() {
    for (const std::string& library : galera_libraries) {
      if (fs::exists(library)) return library;
    }
    return "";
  }

  Result<void> StartNode(std::size_t index) {
    Node& node = nodes_[index];
    node.directory = directory_.File(fmt::format("data{}", index));
    const ProgramResult made =
        RunProgram({.command = {FindProgram(mariadb_installers), "--no-defaults",
                                "--datadir=" + node.directory, "--tmpdir=" + directory_.path(),
                                "--auth-root-authentication-method=normal", "--skip-test-db",
                                "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0",
                                "--innodb-log-file-size=10M", "--sync-frm=0"},
                    .user = kUser});
    if (made.exit_code != 0) {
      return Error(ErrorCode::kUnavailable, "mariadb-install-db failed: " + made.said);
    }
    for (int tries = 0; tries < kStartTries; ++tries) {
      node.port = FreePort();
      if (nodes_.size() > 1) node.group_port = FreePort();
      if (Run(index)) return {};
    }
    return Error(ErrorCode::kUnavailable, "mariadbd does not start: " + node.process->said());
  }

  bool Run(std::size_t index) {
    Node& node = nodes_[index];
    std::vector<std::string> command = {
        FindProgram(mariadb_servers), "--no-defaults", "--datadir=" + node.directory,
        // Not a shared one: a server that starts removes the
        // temporary tables that it finds there.
        "--tmpdir=" + node.directory, "--port=" + std::to_string(node.port),
        "--bind-address=127.0.0.1", "--socket=" + node.directory + "/socket",
        "--pid-file=" + node.directory + "/pid", "--skip-name-resolve",
        "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=48M", "--max-connections=200",
        "--max-allowed-packet=64M"};
    if (!sync_) {
      command.insert(command.end(), {"--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0",
                                     "--innodb-flush-method=nosync", "--sync-frm=0"});
    }
    if (nodes_.size() > 1) AddGalera(index, command);
    node.process.reset();  // One that has not become ready in time has the files still.
    node.process = std::make_unique<ServerProcess>(
        ServerProcessOptions{.command = command, .user = kUser, .end_signal = SIGKILL});
    if (!node.process->AwaitLine("ready for connections", kStartTime)) return false;
    // A node of a cluster is ready for clients only when it has everything the others have.
    return nodes_.size() == 1 ||
           node.process->AwaitLine("Synchronized with group, ready for connections", kStartTime);
  }

  void AddGalera(std::size_t index, std::vector<std::string>& command) const {
    const Node& node = nodes_[index];
    std::string others;
    for (std::size_t i = 0; i < index; ++i) {
      others += fmt::format("{}127.0.0.1:{}", i == 0 ? "" : ",", nodes_[i].group_port);
    }
    command.insert(command.end(),
                   {"--binlog-format=ROW", "--default-storage-engine=InnoDB",
                    "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", "--wsrep-provider=" + Galera(),
                    "--wsrep-cluster-name=zeze", "--wsrep-cluster-address=gcomm://" + others,
                    fmt::format("--wsrep-node-name=node{}", index),
                    "--wsrep-node-address=127.0.0.1", "--wsrep-sst-method=rsync",
                    fmt::format("--wsrep-sst-receive-address=127.0.0.1:{}", FreePort()),
                    fmt::format("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{};"
                                "ist.recv_addr=127.0.0.1:{};gcache.size=64M;"
                                // A machine that stands still for seconds is no lost node, and a
                                // cluster without a majority takes no writes.
                                "evs.suspect_timeout=PT2M;evs.inactive_timeout=PT3M;"
                                "evs.install_timeout=PT2M;repl.causal_read_timeout=PT2M",
                                node.group_port, FreePort())});
    if (index == 0) command.emplace_back("--wsrep-new-cluster");
  }

  static std::string NameIn(const std::string& url) { return url.substr(url.rfind('/') + 1); }

  std::string Client(const std::string& database, const std::string& sql) const {
    return Client(database, sql, nodes_.front());
  }

  static std::string Client(const std::string& database, const std::string& sql, const Node& node) {
    std::vector<std::string> command = {FindProgram(mariadb_clients),
                                        "--no-defaults",
                                        "--host=127.0.0.1",
                                        "--port=" + std::to_string(node.port),
                                        "--user=root",
                                        "--protocol=TCP",
                                        "--batch",
                                        "--skip-column-names",
                                        "--default-character-set=utf8mb4",
                                        "--execute=" + sql};
    if (!database.empty()) command.push_back("--database=" + database);
    return MustRun({.command = command});
  }

  const TempDirectory directory_;
  bool sync_ = false;
  int databases_ = 0;
  std::vector<Node> nodes_;
};

// Ends with the program: the sanitizers' leak check runs behind it.
DatabaseServer& Keep(std::unique_ptr<DatabaseServer>& kept,
                     Result<std::unique_ptr<DatabaseServer>> (*start)()) {
  if (kept == nullptr) {
    Result<std::unique_ptr<DatabaseServer>> started = start();
    if (!started.ok()) StopProgram(started.error().message());
    kept = std::move(started).value();
  }
  return *kept;
}

}  // namespace

Result<std::unique_ptr<DatabaseServer>> StartPostgresServer(const DatabaseServerOptions& options) {
  auto server = std::make_unique<PostgresServer>();
  if (Result<void> started = server->Start(options.sync); !started.ok()) return started.error();
  return std::unique_ptr<DatabaseServer>(std::move(server));
}

Result<std::unique_ptr<DatabaseServer>> StartPostgresReplica(const std::string& url) {
  auto server = std::make_unique<PostgresServer>();
  if (Result<void> started = server->StartReplicaOf(url); !started.ok()) return started.error();
  return std::unique_ptr<DatabaseServer>(std::move(server));
}

Result<std::unique_ptr<DatabaseServer>> StartMariaDbServer(const DatabaseServerOptions& options) {
  auto server = std::make_unique<MariaDbServer>();
  if (Result<void> started = server->Start(1, options.sync); !started.ok()) return started.error();
  return std::unique_ptr<DatabaseServer>(std::move(server));
}

Result<std::unique_ptr<DatabaseServer>> StartGaleraCluster(std::size_t nodes) {
  auto server = std::make_unique<MariaDbServer>();
  if (Result<void> started = server->Start(nodes, false); !started.ok()) return started.error();
  return std::unique_ptr<DatabaseServer>(std::move(server));
}

DatabaseServer& SharedPostgresServer() {
  static std::unique_ptr<DatabaseServer> server;
  return Keep(server, [] { return StartPostgresServer({}); });
}

DatabaseServer& SharedMariaDbServer() {
  static std::unique_ptr<DatabaseServer> server;
  return Keep(server, [] { return StartMariaDbServer({}); });
}

DatabaseServer& SharedGaleraCluster() {
  static std::unique_ptr<DatabaseServer> server;
  return Keep(server, [] { return StartGaleraCluster(3); });
}

}  // namespace zeze
