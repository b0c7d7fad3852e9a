// What a request costs a server: a gateway that is barely there keeps 64 clients with 16 requests
// each in the air. The counter "server_cpu_ns" is the CPU time of everything but the gateway's
// thread, for one request.

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "Zeze/Builtin/Provider.h"
#include "demo/Game.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/arch/provider/testing/test_registry.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::arch {
namespace {

namespace wire = Zeze::Builtin::Provider;

constexpr std::int64_t kClients = 64;
constexpr std::int64_t kOutstanding = 16;

std::int64_t CpuNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Asks again as soon as it is answered.
class BareLinkd {
 public:
  BareLinkd(registry::RegistryAgent& agent, std::int64_t type_id, std::string body)
      : type_id_(type_id),
        body_(std::move(body)),
        io_({.name = "bare-linkd"}),
        service_(io_,
                 {.name = "linkd", .handshake = HandshakeOptions{}, .output_bytes_max = 64 << 20}) {
    service_.Handle<wire::AnnounceProviderInfo>([](const Message<wire::AnnounceProviderInfo>&) {});
    service_.Handle<wire::Bind>([](Request<wire::Bind> request) { (void)request.AnswerCode(0); });
    service_.Handle<wire::UnBind>(
        [](Request<wire::UnBind> request) { (void)request.AnswerCode(0); });
    service_.Handle<wire::Subscribe>(
        [](Request<wire::Subscribe> request) { (void)request.AnswerCode(0); });
    service_.Handle<wire::SetDisableChoice>([this](Request<wire::SetDisableChoice> request) {
      (void)request.AnswerCode(0);
      MutexLock lock(mutex_);
      connection_ = request.connection();
      changed_.NotifyAll();
    });
    service_.HandleRaw(wire::Send::kDescriptor,
                       [this](Connection& connection, const Frame& frame) -> Result<void> {
                         return OnSend(connection, frame);
                       });
    port_ = service_.Listen({.ip = "127.0.0.1"}).value()->address().port();
    (void)agent.Register({.name = "Linkd",
                          .identity = "@127.0.0.1_" + std::to_string(port_),
                          .passive_ip = "127.0.0.1",
                          .passive_port = port_});
  }

  void AwaitServer() {
    MutexLock lock(mutex_);
    while (connection_ == nullptr) changed_.Wait(mutex_);
  }
  // Runs so many requests; returns the CPU time of the gateway's thread.
  std::int64_t Run(std::int64_t count) {
    MutexLock lock(mutex_);
    left_ = count;
    in_air_ = std::min(kClients * kOutstanding, count);
    left_ -= in_air_;
    io_.Post([this] {
      cpu_begin_ = CpuNs(CLOCK_THREAD_CPUTIME_ID);
      const std::int64_t first = in_air_;
      for (std::int64_t i = 0; i < first; ++i) Ask(*connection_, i % kClients + 1);
    });
    while (in_air_ != 0) changed_.Wait(mutex_);
    return cpu_;
  }

 private:
  void Ask(Connection& connection, std::int64_t sid) {
    (void)connection.SendOneWay(wire::Dispatch::kDescriptor, 0, [&](ByteWriter& out) {
      int last_id = 0;
      out.WriteTag(last_id, 1, TypeCode::kInteger);
      out.WriteLong(sid);
      out.WriteTag(last_id, 2, TypeCode::kBytes);
      out.WriteBytes("account" + std::to_string(sid));
      out.WriteTag(last_id, 3, TypeCode::kInteger);
      out.WriteLong(type_id_);
      out.WriteTag(last_id, 4, TypeCode::kBytes);
      out.WriteBytes(body_);
      out.WriteEnd();
    });
  }

  Result<void> OnSend(Connection& connection, const Frame& frame) {
    ByteReader in(frame.payload);
    int last_id = 0;
    in.ReadTag(last_id);
    TypeCode element{};
    in.ReadListHeader(element);
    const std::int64_t sid = in.ReadLong();
    const Result<void> answered = connection.SendAnswer(wire::Send::kDescriptor, frame.session_id,
                                                        0, [](ByteWriter& out) { out.WriteEnd(); });
    // Of this thread alone while a run goes on.
    if (left_ > 0) {
      --left_;
      Ask(connection, sid);
    } else if (--in_air_ == 0) {
      cpu_ = CpuNs(CLOCK_THREAD_CPUTIME_ID) - cpu_begin_;
      MutexLock lock(mutex_);
      changed_.NotifyAll();
    }
    return answered;
  }

  const std::int64_t type_id_;
  const std::string body_;
  std::uint16_t port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  ConnectionPtr connection_;
  std::int64_t left_ = 0;
  std::atomic<std::int64_t> in_air_ = 0;
  std::int64_t cpu_begin_ = 0;
  std::int64_t cpu_ = 0;
  IoThreads io_;
  Service service_;
};

template <typename P>
void RunRequests(benchmark::State& state, const typename P::Argument& argument) {
  ByteWriter payload;
  argument.Encode(payload);
  ByteWriter frame;
  EncodeFrame({.family = FrameFamily::kRequest, .session_id = 1, .payload = payload.view()}, frame);
  testing::TestRegistry registry;
  const auto agent = registry.NewAgent();
  {
    BareLinkd linkd(*agent, P::kDescriptor.type_id(),
                    std::string(frame.view().substr(kFrameHeaderBytes)));
    testing::DemoServer server(registry, {});
    server.Start();
    linkd.AwaitServer();
    linkd.Run(20'000);

    constexpr std::int64_t kBatch = 200'000;
    std::int64_t cpu = 0;
    for (auto _ : state) {
      const std::int64_t begin = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
      const std::int64_t linkd_cpu = linkd.Run(kBatch);
      cpu += CpuNs(CLOCK_PROCESS_CPUTIME_ID) - begin - linkd_cpu;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
    state.counters["server_cpu_ns"] =
        static_cast<double>(cpu) / (static_cast<double>(state.iterations()) * kBatch);
  }
  agent->Stop();
}

void BM_Outside(benchmark::State& state) {
  RunRequests<demo::Game::Echo>(state, {.text = std::string(40, 'x')});
}
BENCHMARK(BM_Outside)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_Direct(benchmark::State& state) {
  RunRequests<demo::Game::EchoDirect>(state, {.text = std::string(40, 'x')});
}
BENCHMARK(BM_Direct)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_Transaction(benchmark::State& state) {
  RunRequests<demo::Game::Count>(state, {.count = 1});
}
BENCHMARK(BM_Transaction)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeze::arch
