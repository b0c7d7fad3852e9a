#include "bench/contest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/load_client.h"
#include "bench/measure.h"
#include "bench/serve.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::bench {

namespace {

bool IsListening(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  const bool connected = ::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  ::close(socket);
  return connected;
}

}  // namespace

std::string ProgramPath(const std::string& program, const std::string& package) {
  std::string path = FindProgram({program});
  if (path.empty()) {
    throw std::runtime_error(
        fmt::format("{} is not there; install the package {}", program, package));
  }
  return path;
}

PeerServer::PeerServer(const std::vector<std::string>& command, std::uint16_t port,
                       const std::string& ready)
    : process_({.command = command}), port_(port) {
  if (ready.empty()) {
    const double end = WallSeconds() + 30;
    while (!IsListening(port) && WallSeconds() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (IsListening(port)) return;
  } else if (process_.AwaitLine(ready, std::chrono::seconds(30))) {
    return;
  }
  throw std::runtime_error(command[0] + " did not start: " + process_.said());
}

void RunInTurns(std::vector<Contest>& contests, double seconds) {
  PinProcess(0, kClientCore);
  for (const Contest& contest : contests) PinProcess(contest.process, kServerCore);
  for (Contest& contest : contests) contest.client->Run(0.1);
  const double end = WallSeconds() + seconds;
  while (WallSeconds() < end) {
    for (Contest& contest : contests) {
      const double cpu = ProcessCpuSeconds(contest.process);
      const Load load = contest.client->Run(0.2);
      contest.rates.push_back(load.per_second());
      contest.cpu_us.push_back((ProcessCpuSeconds(contest.process) - cpu) * 1e6 /
                               static_cast<double>(load.done));
    }
  }
  UnpinProcess(0);
}

std::unique_ptr<PeerServer> StartRedis() {
  const auto port = static_cast<std::uint16_t>(FreePort());
  return std::make_unique<PeerServer>(
      std::vector<std::string>{ProgramPath("redis-server", "redis-server"), "--port",
                               std::to_string(port), "--bind", "127.0.0.1", "--save", "",
                               "--appendonly", "no"},
      port, "Ready to accept connections");
}

}  // namespace zeze::bench
