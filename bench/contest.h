// Servers that compete in turns, seen from one client program: what differs between two figures is
// the server.
//
//   std::vector<Contest> contests = {{.client = &to_ours, .process = ours.id()}, ...};
//   RunInTurns(contests, seconds);
//   double ratio = MedianRatio(contests[0].rates, contests[1].rates);

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/load_client.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::bench {

inline constexpr int kServerCore = 0;
inline constexpr int kClientCore = 1;

// Throws std::runtime_error, naming the package, if it is not installed.
std::string ProgramPath(const std::string& program, const std::string& package);

// A server that is not ours.
class PeerServer {
 public:
  // Waits for a line that it says; if that is empty, until somebody listens on the port.
  PeerServer(const std::vector<std::string>& command, std::uint16_t port, const std::string& ready);

  int id() const { return process_.id(); }
  std::uint16_t port() const { return port_; }

 private:
  ServerProcess process_;
  std::uint16_t port_;
};

struct Contest {
  LoadClient* client = nullptr;
  int process = 0;
  std::vector<double> rates = {};
  std::vector<double> cpu_us = {};  // Of the server, for each request.
};

// Each in turn, a fifth of a second, over and over: servers on one core, the client on the other.
void RunInTurns(std::vector<Contest>& contests, double seconds);

// In memory only.
std::unique_ptr<PeerServer> StartRedis();

}  // namespace zeze::bench
