// Servers that this program runs as a process of its own, to be measured from outside.
//
//   ServedProcess global({"global"});       // Runs "zeze_bench --serve global".
//   LoadClient client(global.port(), ...);

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "zeze/storage/testing/server_process.h"

namespace zeze::bench {

class ServedProcess {
 public:
  // Throws std::runtime_error if it does not start. Port 0: any.
  explicit ServedProcess(std::vector<std::string> what);

  std::uint16_t port() const { return port_; }
  int id() const { return process_.id(); }
  ServerProcess& process() { return process_; }

 private:
  ServerProcess process_;
  std::uint16_t port_ = 0;
};

// "echo", "global [URL [PORT]]" (in memory without a URL), "linkd [tls]", "provider PORT",
// "counter PORT". Does not return before it is killed.
int Serve(std::span<const std::string> what);

// Of another process.
double ProcessCpuSeconds(int process);

}  // namespace zeze::bench
