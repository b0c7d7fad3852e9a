#include "bench/serve.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/serve_counter.h"
#include "bench/serve_gateway.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze::bench {

namespace {

constexpr std::string_view kListening = "listening on port ";

std::vector<std::string> CommandFor(std::vector<std::string> what) {
  std::vector<std::string> command = {"/proc/self/exe", "--serve"};
  for (std::string& word : what) command.push_back(std::move(word));
  return command;
}

// Sends back whatever it reads, with as few system calls as there can be.
int ServeEcho() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0) return 1;
  if (::listen(listener, 64) != 0) return 1;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  fmt::print("{}{}\n", kListening, ntohs(at.sin_port));
  std::fflush(stdout);
  const int poll = ::epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  ::epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  std::vector<char> buffer(256 << 10);
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int socket = events.at(static_cast<std::size_t>(i)).data.fd;
      if (socket == listener) {
        epoll_event added{.events = EPOLLIN,
                          .data = {.fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)}};
        const int on = 1;
        ::setsockopt(added.data.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ::epoll_ctl(poll, EPOLL_CTL_ADD, added.data.fd, &added);
        continue;
      }
      const ssize_t got = ::read(socket, buffer.data(), buffer.size());
      if (got <= 0 || ::write(socket, buffer.data(), static_cast<std::size_t>(got)) != got) {
        ::close(socket);
      }
    }
  }
}

int ServeGlobal(const std::string& url, std::uint16_t port) {
  std::unique_ptr<Storage> storage;
  if (url.empty()) {
    storage = OpenMemoryStorage(NewMemoryDatabase());
  } else {
    Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = url});
    if (!opened.ok()) return 1;
    storage = std::move(opened).value();
  }
  ThreadPool pool({.name = "global", .thread_count = 2});
  IoThreads io({.name = "global-io"});
  global::GlobalServiceOptions options;
  options.acceptor = {.ip = "127.0.0.1", .port = port};
  // The clients of the measurements are too simple to keep a connection alive.
  if (url.empty()) options.machine.silence_max = std::chrono::hours(1);
  // Nor to start in a database first.
  options.machine.unsafe_believe_logins = url.empty();
  options.holder = fmt::format("bench {}", ::getpid());
  global::GlobalService service(io, *storage->fence(), pool, std::move(options));
  if (Result<void> started = service.Start(); !started.ok()) {
    fmt::print("{}\n", started.error().message());
    return 1;
  }
  while (url.empty() && !service.GetStatus().serving) std::this_thread::yield();
  fmt::print("{}{}\n", kListening, service.address().port());
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace

ServedProcess::ServedProcess(std::vector<std::string> what)
    : process_({.command = CommandFor(std::move(what))}) {
  if (!process_.AwaitLine(kListening, std::chrono::seconds(30))) {
    throw std::runtime_error("a server did not start: " + process_.said());
  }
  const std::string said = process_.said();
  port_ = static_cast<std::uint16_t>(
      std::atoi(said.c_str() + said.find(kListening) + kListening.size()));
}

int Serve(std::span<const std::string> what) {
  if (what.size() == 1 && what[0] == "echo") return ServeEcho();
  if (!what.empty() && what[0] == "linkd") return ServeLinkd(what.size() > 1 && what[1] == "tls");
  if (what.size() == 2 && what[0] == "provider") {
    return ServeProvider(static_cast<std::uint16_t>(std::stoi(what[1])));
  }
  if (what.size() == 2 && what[0] == "counter") {
    return ServeCounter(static_cast<std::uint16_t>(std::stoi(what[1])));
  }
  if (what.empty() || what[0] != "global") return 2;
  return ServeGlobal(what.size() > 1 ? what[1] : "",
                     what.size() > 2 ? static_cast<std::uint16_t>(std::stoi(what[2])) : 0);
}

double ProcessCpuSeconds(int process) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace zeze::bench
