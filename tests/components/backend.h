// Backend: what the servers of a cluster need: a PostgreSQL database, a Global and a service
// manager, as processes of their own.
//
//   Backend backend;
//   StartServer(backend.url(), backend.global_port(), backend.registry_port());

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::crash_test {

// How long a server's rights outlive it.
inline constexpr std::chrono::milliseconds kLease(2000);

class Backend {
 public:
  // Names the program `zeze`.
  explicit Backend(const std::string& zeze) : url_(SharedPostgresServer().NewDatabase()) {
    global_ = Start({zeze, "global", "--database", url_, "--ip", "127.0.0.1", "--port", "0",
                     "--lease", std::to_string(kLease.count()), "--silence", "500"},
                    global_port_);
    registry_ = Start({zeze, "service-manager", "--data", directory_.File("registry"), "--ip",
                       "127.0.0.1", "--port", "0", "--offline-delay", "1000", "--no-udp"},
                      registry_port_);
  }

  const std::string& url() const { return url_; }
  int global_port() const { return global_port_; }
  int registry_port() const { return registry_port_; }
  std::string File(const std::string& name) const { return directory_.File(name); }

 private:
  static std::unique_ptr<ServerProcess> Start(const std::vector<std::string>& command, int& port) {
    const std::string mark = "listening on port ";
    auto process = std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
    ZEZE_CHECK(process->AwaitLine(mark, std::chrono::minutes(2)));
    const std::string said = process->said();
    port = std::stoi(said.substr(said.find(mark) + mark.size()));
    return process;
  }

  TempDirectory directory_;
  std::string url_;
  int global_port_ = 0;
  int registry_port_ = 0;
  std::unique_ptr<ServerProcess> global_;
  std::unique_ptr<ServerProcess> registry_;
};

}  // namespace zeze::crash_test
