// Redo queues from end to end: tasks synced to the client's disk, sent, and done exactly once by a
// server, both in this process.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "bench/beans.h"
#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"
#include "bench/work_directory.h"
#include "zeze/app/application.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/transaction/table.h"

namespace zeze::bench {

namespace {

constexpr int kProducers = 64;
constexpr std::int32_t kRecharge = 1;
constexpr std::string_view kParam =
    "order 0123456789abcdef, account 4711, role 100200300400, 648 gold, at 2024-06-01 12:00:00";

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}

// A server whose handler counts, and a client of it.
class RedoPair {
 public:
  explicit RedoPair(const WorkDirectory& directory) {
    server_.Register("recharge", kRecharge, [this](Transaction& tx, const Binary&) {
      done_.GetOrAdd(tx, 1)->counter += 1;
      return true;
    });
    application_ = Must(Application::Open(
        "bench", {.storage = {.url = "rocksdb:" + directory.Sub("server")}, .worker_threads = 2}));
    application_->AddTable(done_);
    application_->AddModule(server_);
    CheckDone(application_->Start());
    store_ = Must(RedoStore::Open({.directory = directory.Sub("client")}));
    client_ = Must(RedoQueueClient::Open(
        store_,
        {.name = "recharge", .servers = {{"127.0.0.1", server_.addresses().front().port()}}}));
  }
  ~RedoPair() {
    client_.reset();
    application_.reset();
  }
  RedoPair(const RedoPair&) = delete;
  RedoPair& operator=(const RedoPair&) = delete;

  void Add() {
    if (!client_->Add(kRecharge, kParam).ok()) throw std::runtime_error("a task was not added");
  }
  void AwaitAll() { CheckDone(client_->WaitDone(added(), std::chrono::minutes(1))); }
  std::int64_t added() const { return client_->journal().added_id(); }

  // Each task took effect once.
  void Check() {
    AwaitAll();
    if (Must(done_.ReadCopy(1)).value().counter != added()) {
      throw std::runtime_error("tasks were lost or done twice");
    }
  }

 private:
  Table<std::int64_t, BRow> done_{kTable};
  RedoQueueServer server_{{.acceptors = {{.ip = "127.0.0.1"}}}};
  std::unique_ptr<Application> application_;
  std::shared_ptr<RedoStore> store_;
  std::unique_ptr<RedoQueueClient> client_;
};

// As fast as the disk syncs: the blocks are there, and the file does not grow.
class SyncedFile {
 public:
  explicit SyncedFile(const std::string& path)
      : file_(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) {
    const std::string zeros(kBytes, '\0');
    if (file_ < 0 || ::write(file_, zeros.data(), kBytes) != ssize_t{kBytes} ||
        ::fsync(file_) != 0) {
      throw std::runtime_error("cannot make " + path);
    }
  }
  ~SyncedFile() { ::close(file_); }
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;

  void Write() {
    const auto size = static_cast<ssize_t>(kParam.size());
    if (::pwrite(file_, kParam.data(), kParam.size(), at_) != size || ::fdatasync(file_) != 0) {
      throw std::runtime_error("cannot write and sync");
    }
    at_ = (at_ + size) % (kBytes - size);
  }

 private:
  static constexpr int kBytes = 16 << 20;
  const int file_;
  off_t at_ = 0;
};

template <typename Body>
Work Repeat(const Body& body) {
  return [body](int, const std::atomic<bool>& stop) {
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) body();
    return count;
  };
}

void Redo(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  RedoPair pair(directory);
  SyncedFile bare(directory.Sub("bare"));
  const Work add = Repeat([&pair] { pair.Add(); });
  const Work sync = Repeat([&bare] { bare.Write(); });

  // From the first task until the server has done the last one.
  std::vector<double> rates;
  std::vector<double> syncs;
  const double end = WallSeconds() + 2 * run.settings().seconds;
  while (WallSeconds() < end || rates.size() < 3) {
    const std::int64_t before = pair.added();
    const double begin = WallSeconds();
    RunTurn({kProducers, add}, std::chrono::milliseconds(500));
    pair.AwaitAll();
    rates.push_back(static_cast<double>(pair.added() - before) / (WallSeconds() - begin));
    syncs.push_back(RunTurn({1, sync}, std::chrono::milliseconds(100)).per_second);
  }
  run.Report(
      {.name = "components.redo",
       .value = Median(rates),
       .unit = "tasks/s",
       .peer = "bare fdatasync",
       .peer_value = Median(syncs),
       .ratio = MedianRatio(rates, syncs),
       .goal = Goal::ValueAtLeast(20'000),
       .note = fmt::format("{} producers, each task synced; done by the server", kProducers)});

  const Comparison one = Compare({{1, add}, {1, sync}}, 2 * run.settings().seconds);
  run.Report({.name = "components.redo_1",
              .value = one.medians[0].per_second,
              .unit = "tasks/s",
              .peer = "bare fdatasync",
              .peer_value = one.medians[1].per_second,
              .ratio = one.RateRatio(0, 1),
              .goal = Goal::RatioAtLeast(0.5),
              .note = one.Note(0, 1)});
  pair.Check();
}

constexpr Benchmark kBenchmarks[] = {
    {"components.redo", "redo tasks, synced at the client and done once by the server", &Redo},
};

}  // namespace

std::span<const Benchmark> RedoBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
