#include "bench/load_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/measure.h"

namespace zeze::bench {

namespace {

constexpr int kPatienceMs = 10'000;

int ConnectTo(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    throw std::runtime_error(fmt::format("nobody listens on port {}", port));
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

void SetCores(int process, const cpu_set_t& cores) {
  const std::string tasks = fmt::format("/proc/{}/task", process == 0 ? ::getpid() : process);
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    ::sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof cores, &cores);
  }
}

}  // namespace

void PinProcess(int process, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  if (process == 0) {
    ::sched_setaffinity(0, sizeof cores, &cores);
  } else {
    SetCores(process, cores);
  }
}

void UnpinProcess(int process) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &cores);
  SetCores(process, cores);
}

LoadClient::LoadClient(std::uint16_t port, std::size_t connections, Conversation& conversation)
    : conversation_(conversation), buffer_(256 << 10), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (std::size_t i = 0; i < connections; ++i) {
    connections_.push_back({.socket = ConnectTo(port)});
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, connections_.back().socket, &event);
    conversation_.Begin(i, out_);
    Send(connections_.back());
  }
}

LoadClient::~LoadClient() {
  for (const Connection& connection : connections_) ::close(connection.socket);
  ::close(poll_);
}

void LoadClient::Send(Connection& connection) {
  std::string_view left = out_;
  while (!left.empty()) {
    const ssize_t sent = ::send(connection.socket, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0) throw std::runtime_error(fmt::format("send: {}", std::strerror(errno)));
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  out_.clear();
}

std::uint64_t LoadClient::ReadOnce(int timeout_ms) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count == 0 && timeout_ms == kPatienceMs) throw std::runtime_error("the server is silent");
  std::uint64_t done = 0;
  for (int i = 0; i < count; ++i) {
    const std::size_t index = events.at(static_cast<std::size_t>(i)).data.u64;
    Connection& connection = connections_[index];
    const ssize_t got = ::recv(connection.socket, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) throw std::runtime_error("the server has closed the connection");
    std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
    if (!connection.rest.empty()) {
      connection.rest += bytes;
      bytes = connection.rest;
    }
    conversation_.Receive(index, bytes, out_, done);
    std::string rest(bytes);
    connection.rest = std::move(rest);
    if (!out_.empty()) Send(connection);
  }
  return done;
}

Load LoadClient::Run(double seconds) {
  Load load;
  const double begin = WallSeconds();
  do {
    for (int i = 0; i < 16; ++i) load.done += ReadOnce(kPatienceMs);
    load.seconds = WallSeconds() - begin;
  } while (load.seconds < seconds);
  return load;
}

Load LoadClient::RunUntil(std::uint64_t done) {
  Load load;
  const double begin = WallSeconds();
  while (load.done < done) load.done += ReadOnce(kPatienceMs);
  load.seconds = WallSeconds() - begin;
  return load;
}

std::vector<double> LoadClient::Latencies(double seconds) {
  std::vector<double> latencies;
  while (ReadOnce(kPatienceMs) == 0) {
  }
  double last = WallSeconds();
  const double end = last + seconds;
  while (last < end) {
    const std::uint64_t done = ReadOnce(kPatienceMs);
    const double now = WallSeconds();
    if (done != 0) latencies.push_back(now - last);
    last = now;
  }
  return latencies;
}

}  // namespace zeze::bench
