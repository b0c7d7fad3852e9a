// DatabaseServer: a private PostgreSQL, MariaDB or Galera cluster on loopback, for tests.
//
//   DatabaseServer& server = SharedPostgresServer();      // One for the whole test program.
//   std::string url = server.NewDatabase();               // "postgresql://zeze@127.0.0.1:5543/t1"
//
// Its files are in a temporary directory and never synced. It ends with the program. The programs
// are found in PATH or where Debian puts them: packages postgresql, mariadb-server, galera-4.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "zeze/base/result.h"

namespace zeze {

class DatabaseServer {
 public:
  virtual ~DatabaseServer() = default;

  // The address of a new empty database, on each node. Stops the program with a message if that
  // fails: without it no test makes sense.
  virtual std::vector<std::string> NewDatabaseOnEachNode() = 0;
  std::string NewDatabase() { return NewDatabaseOnEachNode().front(); }
  virtual void DropDatabase(const std::string& url) = 0;

  // Runs statements with the engine's own client, as another program would; what it printed.
  virtual std::string RunSql(const std::string& url, const std::string& sql) = 0;

  // The first node ends immediately, as in a crash, and comes back under the same address.
  virtual void Restart() = 0;

  // --- one node of a cluster, whatever state it is in ---

  virtual std::string RunSqlOnNode(std::size_t node, const std::string& sql) = 0;
  virtual void SignalNode(std::size_t node, int signal) = 0;
};

struct DatabaseServerOptions {
  bool sync = false;  // For measurements: the disk is waited for.
};

// Errors: kNotFound (a program is missing; the message names the package), kUnavailable (it does
// not start; with what it said).
Result<std::unique_ptr<DatabaseServer>> StartPostgresServer(const DatabaseServerOptions& options);
// A streaming replica of a PostgreSQL that StartPostgresServer started, with all its databases.
Result<std::unique_ptr<DatabaseServer>> StartPostgresReplica(const std::string& url);
Result<std::unique_ptr<DatabaseServer>> StartMariaDbServer(const DatabaseServerOptions& options);
Result<std::unique_ptr<DatabaseServer>> StartGaleraCluster(std::size_t nodes);

// Started at the first call, which must be on the main thread. Stops the program with a message if
// it cannot be started.
DatabaseServer& SharedPostgresServer();
DatabaseServer& SharedMariaDbServer();
DatabaseServer& SharedGaleraCluster();  // Three nodes.

}  // namespace zeze
