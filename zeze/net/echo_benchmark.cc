// What a message costs: services of this layer against the barest echo over epoll.
//
// BM_PingPong: one request at a time, both ends on one core (waking another core costs more than
// everything else). BM_Pipelined: 8 connections with 64 requests each; the counter "server_cpu_ns"
// is what the server's thread spends on one message.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "zeze/base/clock.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_websocket.h"
#include "zeze/net/testing/websocket_frames.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

using testing::Echo;

constexpr std::size_t kPayloadBytes = 20;

void PinToCore(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

void UseAllCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (std::size_t core = 0; core < 64; ++core) CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

std::int64_t ThreadCpuNs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

int Connect(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return -1;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// A server of either kind: its port, and the processor time its thread has used.
class Server {
 public:
  virtual ~Server() = default;
  std::uint16_t port() const { return port_; }
  virtual std::int64_t CpuNs() = 0;

 protected:
  std::uint16_t port_ = 0;
};

// Sends back whatever it reads.
class EpollServer final : public Server {
 public:
  explicit EpollServer(int core) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at);
    ::listen(listener_, 64);
    socklen_t length = sizeof at;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this, core] { Run(core); });
  }
  ~EpollServer() override {
    stop_ = true;
    ::close(Connect(port_));
    thread_.join();
    ::close(listener_);
  }
  std::int64_t CpuNs() override { return cpu_ns_; }

 private:
  void Run(int core) {
    if (core >= 0) PinToCore(core);
    const int poll = ::epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {.fd = listener_}};
    ::epoll_ctl(poll, EPOLL_CTL_ADD, listener_, &event);
    std::vector<char> buffer(256 << 10);
    std::vector<epoll_event> events(64);
    while (!stop_) {
      const int count = ::epoll_wait(poll, events.data(), 64, -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_) {
          const int accepted = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
          const int on = 1;
          ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          epoll_event added{.events = EPOLLIN, .data = {.fd = accepted}};
          ::epoll_ctl(poll, EPOLL_CTL_ADD, accepted, &added);
          continue;
        }
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        if (got <= 0) {
          ::close(fd);
          continue;
        }
        if (::write(fd, buffer.data(), static_cast<std::size_t>(got)) != got) ::abort();
      }
      cpu_ns_ = ThreadCpuNs();
    }
    ::close(poll);
  }

  int listener_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> cpu_ns_ = 0;
  std::thread thread_;
};

// What a request goes to.
enum class Kind : std::uint8_t { kEpoll, kFrames, kTyped, kWebSocket };

// The echo rpc: typed, or with a handler of frames, also over WebSocket.
class ServiceServer final : public Server {
 public:
  explicit ServiceServer(int core, Kind kind) {
    if (kind == Kind::kTyped) {
      service_.Handle<Echo>(
          [](Request<Echo> request) { (void)request.Answer(request.argument()); });
    } else {
      service_.HandleRaw(Echo::kDescriptor, [](Connection& connection, const Frame& frame) {
        return connection.SendAnswer(Echo::kDescriptor, frame.session_id, 0,
                                     [&frame](ByteWriter& out) { out.WriteRaw(frame.payload); });
      });
    }
    OnThread([core] {
      if (core >= 0) PinToCore(core);
    });
    AcceptorOptions options{.ip = "127.0.0.1"};
    if (kind == Kind::kWebSocket) options.websocket.emplace();
    port_ = service_.Listen(options).value()->address().port();
  }
  std::int64_t CpuNs() override {
    std::int64_t ns = 0;
    OnThread([&ns] { ns = ThreadCpuNs(); });
    return ns;
  }

 private:
  template <typename F>
  void OnThread(F function) {
    WaitGroup done(1);
    io_.Post([&] {
      function();
      done.Done();
    });
    done.Wait();
  }

  IoThreads io_{{}};
  Service service_{io_, {.name = "echo"}};
};

std::unique_ptr<Server> MakeServer(Kind kind, int core) {
  if (kind == Kind::kEpoll) return std::make_unique<EpollServer>(core);
  return std::make_unique<ServiceServer>(core, kind);
}

const char* Label(Kind kind) {
  switch (kind) {
    case Kind::kEpoll:
      return "epoll echo";
    case Kind::kFrames:
      return "service, frames";
    case Kind::kTyped:
      return "service, typed";
    case Kind::kWebSocket:
      return "service, frames, WebSocket";
  }
  return "";
}

// A connection on which requests may be sent.
int Open(const Server& server, Kind kind) {
  const int fd = Connect(server.port());
  if (kind != Kind::kWebSocket) return fd;
  const std::string request = testing::RawWebSocket::Request();
  if (::send(fd, request.data(), request.size(), 0) < 0) ::abort();
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) {
    char byte = 0;
    if (::recv(fd, &byte, 1, 0) != 1) ::abort();
    answer += byte;
  }
  return fd;
}

std::string EchoRequest() {
  ByteWriter payload;
  payload.WriteBytes(std::string(kPayloadBytes, 'k'));
  ByteWriter out;
  EncodeFrame({.module_id = Echo::kDescriptor.module_id,
               .protocol_id = Echo::kDescriptor.protocol_id,
               .family = FrameFamily::kRequest,
               .session_id = 1,
               .payload = payload.view()},
              out);
  return out.Release();
}

// Answers are as long as requests, but for the header of a WebSocket.
struct Exchange {
  std::string request = EchoRequest();
  std::size_t answer_bytes = request.size();

  explicit Exchange(Kind kind) {
    if (kind != Kind::kWebSocket) return;
    request = testing::WebSocketFrame(internal::WebSocketOpcode::kBinary, request);
    answer_bytes += 2;
  }
};

// The client is the same bare loop over sockets for all servers.
void BM_PingPong(benchmark::State& state) {
  const auto kind = static_cast<Kind>(state.range(0));
  const std::unique_ptr<Server> server = MakeServer(kind, 0);
  PinToCore(0);
  const int fd = Open(*server, kind);
  const Exchange exchange(kind);
  const std::string& request = exchange.request;
  std::vector<char> buffer(4096);
  std::vector<std::chrono::nanoseconds> times;
  const std::int64_t before = server->CpuNs();
  for (auto _ : state) {
    const std::chrono::nanoseconds start = SystemClock().Now();
    if (::send(fd, request.data(), request.size(), 0) < 0) ::abort();
    std::size_t got = 0;
    while (got < exchange.answer_bytes)
      got += static_cast<std::size_t>(::recv(fd, buffer.data(), 4096, 0));
    times.push_back(SystemClock().Now() - start);
  }
  const std::size_t middle = times.size() / 2;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(middle), times.end());
  state.counters["p50_ns"] = static_cast<double>(times[middle].count());
  state.counters["server_cpu_ns"] =
      static_cast<double>(server->CpuNs() - before) / static_cast<double>(state.iterations());
  ::close(fd);
  UseAllCores();
  state.SetLabel(Label(kind));
}
BENCHMARK(BM_PingPong)->DenseRange(0, 3)->UseRealTime();

void BM_Pipelined(benchmark::State& state) {
  constexpr std::size_t kConnections = 8;
  constexpr std::size_t kDepth = 64;
  const auto kind = static_cast<Kind>(state.range(0));
  const std::unique_ptr<Server> server = MakeServer(kind, 0);
  PinToCore(1);
  std::vector<int> connections;
  for (std::size_t i = 0; i < kConnections; ++i) connections.push_back(Open(*server, kind));
  const Exchange exchange(kind);
  std::string batch;
  for (std::size_t i = 0; i < kDepth; ++i) batch += exchange.request;
  std::vector<char> buffer(64 << 10);
  const std::int64_t before = server->CpuNs();
  for (auto _ : state) {
    for (const int fd : connections) {
      if (::send(fd, batch.data(), batch.size(), 0) < 0) ::abort();
    }
    for (const int fd : connections) {
      std::size_t got = 0;
      while (got < kDepth * exchange.answer_bytes) {
        got += static_cast<std::size_t>(::recv(fd, buffer.data(), buffer.size(), 0));
      }
    }
  }
  const auto messages = static_cast<double>(state.iterations()) * kConnections * kDepth;
  state.counters["server_cpu_ns"] = static_cast<double>(server->CpuNs() - before) / messages;
  state.SetItemsProcessed(static_cast<std::int64_t>(messages));
  for (const int fd : connections) ::close(fd);
  UseAllCores();
  state.SetLabel(Label(kind));
}
BENCHMARK(BM_Pipelined)->DenseRange(0, 3)->UseRealTime();

// Calls through a connection of this layer on both ends, with the completion on the client's
// network thread: one at a time, then 64.
void BM_Calls(benchmark::State& state) {
  ServiceServer server(-1, Kind::kTyped);
  IoThreads io({});
  Service client(io, {.name = "client"});
  const std::shared_ptr<Connector> connector =
      client.Connect({.host = "127.0.0.1", .port = server.port()});
  const ConnectionPtr connection = connector->WaitReady(std::chrono::seconds(5)).value();
  const testing::Text argument{std::string(kPayloadBytes, 'k')};
  const auto depth = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    WaitGroup done(depth);
    for (std::size_t i = 0; i < depth; ++i) {
      (void)connection->Call<Echo>(argument, {}, [&done](const RpcReply<Echo>&) { done.Done(); });
    }
    done.Wait();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * depth));
}
BENCHMARK(BM_Calls)->Arg(1)->Arg(64)->UseRealTime();

}  // namespace
}  // namespace zeze
