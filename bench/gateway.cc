// A gateway as its clients see it, beside nginx and haproxy that pass bytes on to an echo: other
// processes, one client program, in turns.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "bench/Counter.h"
#include "bench/bench.h"
#include "bench/contest.h"
#include "bench/load_client.h"
#include "bench/measure.h"
#include "bench/serve.h"
#include "bench/serve_gateway.h"
#include "bench/work_directory.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/tls.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/testing/database_server.h"

namespace zeze::bench {
namespace {

using ::bench::Counter::AddOne;
using Zeze::Builtin::LinkdAuth::Auth;
using zeze::testing::RawClient;

constexpr std::size_t kConnections = 64;

std::string FrameOf(std::int32_t module, std::int32_t protocol, FrameFamily family,
                    std::string_view payload) {
  ByteWriter out;
  EncodeFrame({.module_id = module,
               .protocol_id = protocol,
               .family = family,
               .session_id = 7,
               .payload = payload},
              out);
  return std::string(out.view());
}

// The handshake and the login.
void BeginSession(std::size_t connection, std::string& out) {
  out += FrameOf(0, kClientDoneId, FrameFamily::kOneWay, std::string_view("\0", 1));
  Zeze::Builtin::LinkdAuth::BAuth auth;
  auth.token.bytes = fmt::format("account {}", connection);
  out += RawClient::RequestFrame<Auth>(1, auth);
}

// Requests of so many bytes of payload; through a gateway after the handshake and the login.
class RequestConversation final : public Conversation {
 public:
  RequestConversation(std::size_t depth, std::size_t payload_bytes, bool gateway)
      : depth_(depth),
        gateway_(gateway),
        request_(
            FrameOf(kGatewayModule, 5, FrameFamily::kRequest, std::string(payload_bytes, 'x'))) {}

  void Begin(std::size_t connection, std::string& out) override {
    if (!gateway_) return Ask(depth_, out);
    BeginSession(connection, out);
  }

  void Receive(std::size_t /*connection*/, std::string_view& bytes, std::string& out,
               std::uint64_t& done) override {
    while (bytes.size() > kFrameHeaderBytes) {
      Result<std::optional<RawFrame>> frame = TakeFrame(bytes, 1 << 20);
      if (!frame.ok()) throw std::runtime_error(frame.error().message());
      if (!frame.value().has_value()) return;
      const RawFrame& got = *frame.value();
      if (got.module_id == kGatewayModule) {
        if (got.body.size() + kFrameHeaderBytes != request_.size()) {
          throw std::runtime_error("an answer of another size");
        }
        ++done;
        Ask(1, out);
      } else if (got.module_id == Auth::kDescriptor.module_id) {
        Ask(depth_, out);
      } else if (got.module_id != 0) {
        throw std::runtime_error(fmt::format("a message of module {}", got.module_id));
      }
    }
  }

 private:
  void Ask(std::size_t count, std::string& out) const {
    for (std::size_t i = 0; i < count; ++i) out += request_;
  }

  const std::size_t depth_;
  const bool gateway_;
  const std::string request_;
};

// Adds one to the account's count again and again, and looks at each count that comes back.
class CounterConversation final : public Conversation {
 public:
  CounterConversation(std::size_t connections, std::size_t depth)
      : depth_(depth), request_(RawClient::RequestFrame<AddOne>(7, {})), counts_(connections, 0) {}

  void Begin(std::size_t connection, std::string& out) override { BeginSession(connection, out); }

  void Receive(std::size_t connection, std::string_view& bytes, std::string& out,
               std::uint64_t& done) override {
    while (bytes.size() > kFrameHeaderBytes) {
      Result<std::optional<RawFrame>> frame = TakeFrame(bytes, 1 << 20);
      if (!frame.ok()) throw std::runtime_error(frame.error().message());
      if (!frame.value().has_value()) return;
      const RawFrame& got = *frame.value();
      if (got.module_id == AddOne::kDescriptor.module_id) {
        Check(connection, got);
        ++done;
        out += request_;
      } else if (got.module_id == Auth::kDescriptor.module_id) {
        for (std::size_t i = 0; i < depth_; ++i) out += request_;
      } else if (got.module_id != 0) {
        throw std::runtime_error(fmt::format("a message of module {}", got.module_id));
      }
    }
  }

 private:
  void Check(std::size_t connection, const RawFrame& raw) {
    const Result<Frame> answer = ParseFrame(raw);
    if (!answer.ok()) throw std::runtime_error(answer.error().message());
    AddOne::Result result;
    ByteReader in(answer.value().payload);
    result.Decode(in);
    if (answer.value().result_code != 0 || result.count != ++counts_[connection]) {
      throw std::runtime_error(fmt::format("code {}, count {} instead of {}",
                                           answer.value().result_code, result.count,
                                           counts_[connection]));
    }
  }

  const std::size_t depth_;
  const std::string request_;
  std::vector<std::int64_t> counts_;
};

// --- the contestants ----------------------------------------------------------------------------

std::uint16_t PortBehind(const std::string& said, std::string_view text) {
  const std::size_t at = said.find(text);
  return static_cast<std::uint16_t>(std::atoi(said.c_str() + at + text.size()));
}

// A gateway and one server behind it.
struct GatewayServers {
  ServedProcess linkd;
  ServedProcess provider;

  explicit GatewayServers(const std::string& server = "provider")
      : linkd({"linkd"}),
        provider({server, std::to_string(PortBehind(linkd.process().said(), kProviderPort))}) {}
};

void WriteFile(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

std::unique_ptr<PeerServer> StartNginx(const std::string& directory, std::uint16_t backend) {
  const auto port = static_cast<std::uint16_t>(FreePort());
  const std::string path = directory + "/nginx.conf";
  WriteFile(path, fmt::format("load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n"
                              "daemon off; master_process off; worker_processes 1;\n"
                              "pid {0}/nginx.pid; error_log stderr error;\n"
                              "events {{ worker_connections 20000; }}\n"
                              "stream {{ server {{ listen 127.0.0.1:{1}; tcp_nodelay on;\n"
                              "  proxy_pass 127.0.0.1:{2}; }} }}\n",
                              directory, port, backend));
  return std::make_unique<PeerServer>(
      std::vector<std::string>{ProgramPath("nginx", "nginx-light"), "-c", path}, port, "");
}

std::unique_ptr<PeerServer> StartHaproxy(const std::string& directory, std::uint16_t backend) {
  const auto port = static_cast<std::uint16_t>(FreePort());
  const std::string path = directory + "/haproxy.cfg";
  WriteFile(path, fmt::format("global\n  nbthread 1\n  maxconn 2000\n"
                              "defaults\n  mode tcp\n  timeout connect 5s\n"
                              "  timeout client 1h\n  timeout server 1h\n"
                              "listen gateway\n  bind 127.0.0.1:{}\n  server s 127.0.0.1:{}\n",
                              port, backend));
  return std::make_unique<PeerServer>(
      std::vector<std::string>{ProgramPath("haproxy", "haproxy"), "-db", "-f", path}, port, "");
}

// All three with the same client, and with what is behind them on the client's core.
struct Arena {
  explicit Arena(const Run& run, std::size_t connections, std::size_t depth,
                 std::size_t payload_bytes)
      : directory(run.settings().directory),
        through(depth, payload_bytes, true),
        bytes(depth, payload_bytes, false),
        nginx(StartNginx(directory.Sub("nginx"), echo.port())),
        haproxy(StartHaproxy(directory.Sub("haproxy"), echo.port())),
        to_linkd(servers.linkd.port(), connections, through),
        to_nginx(nginx->port(), connections, bytes),
        to_haproxy(haproxy->port(), connections, bytes) {
    PinProcess(servers.provider.id(), kClientCore);
    PinProcess(echo.id(), kClientCore);
  }

  std::vector<Contest> Contests() {
    return {{.client = &to_linkd, .process = servers.linkd.id()},
            {.client = &to_nginx, .process = nginx->id()},
            {.client = &to_haproxy, .process = haproxy->id()}};
  }

  const WorkDirectory directory;
  GatewayServers servers;
  ServedProcess echo{{"echo"}};
  RequestConversation through;
  RequestConversation bytes;
  std::unique_ptr<PeerServer> nginx;
  std::unique_ptr<PeerServer> haproxy;
  LoadClient to_linkd;
  LoadClient to_nginx;
  LoadClient to_haproxy;
};

// --- figures ------------------------------------------------------------------------------------

// One request at a time on each of many connections.
void RoundTrips(Run& run, std::size_t connections, double cpu_goal, double rate_goal) {
  Arena arena(run, connections, 1, 64);
  std::vector<Contest> contests = arena.Contests();
  RunInTurns(contests, 3 * run.settings().seconds);
  run.Report(
      {.name = fmt::format("gateway.round_trip_{}", connections),
       .value = Median(contests[0].cpu_us),
       .unit = "us",
       .peer = "nginx stream",
       .peer_value = Median(contests[1].cpu_us),
       .ratio = MedianRatio(contests[0].cpu_us, contests[1].cpu_us),
       .goal = Goal::RatioAtMost(cpu_goal),
       .note = fmt::format("CPU of the gateway; haproxy {:.2f}", Median(contests[2].cpu_us))});
  run.Report({.name = fmt::format("gateway.rate_{}", connections),
              .value = Median(contests[0].rates),
              .unit = "round trips/s",
              .peer = "nginx stream",
              .peer_value = Median(contests[1].rates),
              .ratio = MedianRatio(contests[0].rates, contests[1].rates),
              .goal = Goal::RatioAtLeast(rate_goal),
              .note = fmt::format("haproxy {:.0f}", Median(contests[2].rates))});
}

void RoundTrips64(Run& run) {
  RoundTrips(run, 64, 0.65, 1.2);
}

void RoundTrips1000(Run& run) {
  RoundTrips(run, 1000, 0.5, 1.5);
}

void Pipelined(Run& run) {
  Arena arena(run, kConnections, 16, 64);
  std::vector<Contest> contests = arena.Contests();
  RunInTurns(contests, 3 * run.settings().seconds);
  run.Report(
      {.name = "gateway.pipelined",
       .value = Median(contests[0].cpu_us),
       .unit = "us",
       .peer = "nginx stream",
       .peer_value = Median(contests[1].cpu_us),
       .ratio = MedianRatio(contests[0].cpu_us, contests[1].cpu_us),
       .goal = Goal::ValueAtMost(0.5),
       .note = fmt::format("{:.0f} round trips/s, nginx {:.0f}, haproxy {:.0f} and {:.2f} us",
                           Median(contests[0].rates), Median(contests[1].rates),
                           Median(contests[2].rates), Median(contests[2].cpu_us))});
}

// A transaction of a server of the framework, beside the same path to a server that only sends the
// request back. Everything shares the cores as the kernel likes.
void Transactions(Run& run) {
  constexpr std::size_t kDepth = 16;
  constexpr double kJavaPerSecond = 246'000;
  GatewayServers counter("counter");
  GatewayServers bare("provider");
  CounterConversation counting(kConnections, kDepth);
  RequestConversation echoing(kDepth, 64, true);
  LoadClient to_counter(counter.linkd.port(), kConnections, counting);
  LoadClient to_bare(bare.linkd.port(), kConnections, echoing);
  to_counter.Run(0.3);
  to_bare.Run(0.3);
  std::vector<double> rates;
  std::vector<double> bare_rates;
  std::vector<double> server_us;
  std::vector<double> linkd_us;
  std::vector<double> client_us;
  const double end = WallSeconds() + 3 * run.settings().seconds;
  while (WallSeconds() < end) {
    const double server = ProcessCpuSeconds(counter.provider.id());
    const double linkd = ProcessCpuSeconds(counter.linkd.id());
    const double client = ProcessCpuSeconds(0);
    const Load load = to_counter.Run(0.2);
    const double us = 1e6 / static_cast<double>(load.done);
    rates.push_back(load.per_second());
    server_us.push_back((ProcessCpuSeconds(counter.provider.id()) - server) * us);
    linkd_us.push_back((ProcessCpuSeconds(counter.linkd.id()) - linkd) * us);
    client_us.push_back((ProcessCpuSeconds(0) - client) * us);
    bare_rates.push_back(to_bare.Run(0.2).per_second());
  }
  run.Report(
      {.name = "gateway.transaction",
       .value = Median(rates),
       .unit = "round trips/s",
       .peer = "no transaction",
       .peer_value = Median(bare_rates),
       .ratio = MedianRatio(rates, bare_rates),
       .goal = Goal::ValueAtLeast(2 * kJavaPerSecond),
       .note = fmt::format("CPU of the server {:.2f} us, gateway {:.2f} us, client {:.2f} us",
                           Median(server_us), Median(linkd_us), Median(client_us))});
}

void Latency1(Run& run) {
  Arena arena(run, 1, 1, 64);
  std::vector<double> ours;
  std::vector<double> nginx;
  std::vector<double> haproxy;
  arena.to_linkd.Run(0.2);
  PinProcess(0, kClientCore);
  for (const int process : {arena.servers.linkd.id(), arena.nginx->id(), arena.haproxy->id()}) {
    PinProcess(process, kServerCore);
  }
  const double end = WallSeconds() + 3 * run.settings().seconds;
  while (WallSeconds() < end) {
    ours.push_back(Median(arena.to_linkd.Latencies(0.2)) * 1e6);
    nginx.push_back(Median(arena.to_nginx.Latencies(0.2)) * 1e6);
    haproxy.push_back(Median(arena.to_haproxy.Latencies(0.2)) * 1e6);
  }
  UnpinProcess(0);
  run.Report({.name = "gateway.latency_1",
              .value = Median(ours),
              .unit = "us",
              .peer = "nginx stream",
              .peer_value = Median(nginx),
              .ratio = MedianRatio(ours, nginx),
              .goal = Goal::RatioAtMost(1.2),
              .note = fmt::format("haproxy {:.1f}", Median(haproxy))});
}

void IdleBytes(Run& run) {
  zeze::testing::RaiseOpenFiles();
  for (const bool tls : {false, true}) {
    const std::size_t count = tls ? 1000 : 5000;
    const ServedProcess linkd(tls ? std::vector<std::string>{"linkd", "tls"}
                                  : std::vector<std::string>{"linkd"});
    IoThreads io({});
    Service clients(io, {.name = "clients", .handshake = HandshakeOptions{}});
    TlsContextPtr context;
    if (tls) context = TlsContext::ForClient({.insecure_skip_verify = true}).value();
    const auto connect = [&](std::size_t wanted) {
      std::vector<std::shared_ptr<Connector>> connectors;
      for (std::size_t i = 0; i < wanted; ++i) {
        connectors.push_back(
            clients.Connect({.host = "127.0.0.1", .port = linkd.port(), .tls = context}));
      }
      for (const std::shared_ptr<Connector>& connector : connectors) {
        Result<ConnectionPtr> ready = connector->WaitReady(std::chrono::seconds(30));
        if (!ready.ok()) throw std::runtime_error(ready.error().message());
        Zeze::Builtin::LinkdAuth::BAuth auth;
        auth.token.bytes = "an account";
        const Result<RpcReply<Auth>> reply = ready.value()->CallAndWait<Auth>(auth);
        if (!reply.ok() || !reply.value().ok()) throw std::runtime_error("not authenticated");
      }
    };
    connect(50);
    const double before = ResidentBytes(linkd.id());
    // Few at a time: what handshakes need is not what idle connections need.
    constexpr std::size_t kAtOnce = 25;
    for (std::size_t done = 0; done < count; done += kAtOnce) connect(kAtOnce);
    const double bytes = (ResidentBytes(linkd.id()) - before) / static_cast<double>(count);
    run.Report({.name = tls ? "gateway.idle_bytes_tls" : "gateway.idle_bytes",
                .value = bytes,
                .unit = "B",
                .peer = {},
                .goal = Goal::ValueAtMost(tls ? 25'000 : 6'000),
                .note = fmt::format("resident, of {} authenticated connections", count)});
    clients.Stop();
  }
}

constexpr Benchmark kBenchmarks[] = {
    {"gateway.round_trip_64",
     "64 connections with one request of 64 bytes each, through a gateway to a server and back",
     &RoundTrips64},
    {"gateway.round_trip_1000", "the same with 1,000 connections", &RoundTrips1000},
    {"gateway.pipelined", "64 connections x 16 requests of 64 bytes", &Pipelined},
    {"gateway.transaction",
     "64 connections x 16 requests, each a transaction that adds one to the account's record",
     &Transactions},
    {"gateway.latency_1", "one client, one request at a time", &Latency1},
    {"gateway.idle_bytes", "memory of a client that is connected and says nothing", &IdleBytes},
};

}  // namespace

std::span<const Benchmark> GatewayBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
