#include "tests/components/crash_server.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "tests/components/backend.h"
#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::crash_test {

namespace {

using std::chrono::milliseconds;

// Long enough for every walk, short enough that nodes go while the test runs.
constexpr auto kRemovedNodesStay = std::chrono::seconds(20);
constexpr std::int64_t kTimersInOneTransaction = 10;
constexpr int kIdsInOneTransaction = 8;

}  // namespace

CrashServer::CrashServer(CrashServerOptions options)
    : options_(std::move(options)),
      delay_remove_(queues_, {.delay = kRemovedNodesStay}),
      timers_(keys_, {.retry_delay = milliseconds(200)}),
      redo_({.acceptors = {{.ip = "127.0.0.1", .port = options_.redo_port}}}),
      ledger_(options_.id) {
  shop_.Register(redo_);
}

Result<void> CrashServer::Start() {
  ApplicationOptions options{
      .server_id = options_.id,
      .storage = {.url = options_.database},
      .globals = {{.host = "127.0.0.1", .port = options_.global_port}},
      .lease = kLease,
      .worker_threads = 8,
      .checkpoint_period = milliseconds(300),
  };
  if (options_.registry_port != 0) {
    options.registry = registry::RegistryAgentOptions{
        .connector = {.host = "127.0.0.1", .port = options_.registry_port}};
  }
  Result<std::unique_ptr<Application>> opened = Application::Open("crash test", options);
  if (!opened.ok()) return opened.error();
  application_ = std::move(opened).value();
  shop_.AddTo(*application_);
  application_->AddModule(ledger_);
  application_->AddModule(keys_);
  application_->AddModule(queues_);
  application_->AddModule(delay_remove_);
  application_->AddModule(maps_);
  application_->AddModule(timers_);
  application_->AddModule(redo_);
  return application_->Start();
}

void CrashServer::Work() {
  threads_.emplace_back([this] { ScheduleTimers(); });
  threads_.emplace_back([this] { IssueIds(); });
  threads_.emplace_back([this] { ChangeCollections(); });
  threads_.emplace_back([this] { WalkCollections(); });
}

Result<void> CrashServer::Stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  return application_->Stop();
}

// A crash may lose the last of them, together with where to go on.
void CrashServer::ScheduleTimers() {
  bool more = true;
  while (more && !stopping()) {
    application_->Call("schedule", [&](Transaction& tx) -> std::int64_t {
      timer_ledger_.Begin(tx);
      const std::int64_t first = ledger_.tSchedules.GetOrAdd(tx, options_.id)->next_slot;
      const std::int64_t last = std::min(first + kTimersInOneTransaction, options_.timers);
      for (std::int64_t slot = first; slot < last; ++slot) {
        timer_ledger_.Schedule(tx, options_.id, slot);
      }
      ledger_.tSchedules.GetOrAdd(tx, options_.id)->next_slot = last;
      if (last == options_.timers) timer_ledger_.Finish(tx, options_.id);
      more = last < options_.timers;
      return result_code::kSuccess;
    });
    SystemClock().SleepFor(milliseconds(1000) * kTimersInOneTransaction /
                           options_.timers_per_second);
  }
  if (!more) std::cout << "scheduled\n" << std::flush;
}

void CrashServer::IssueIds() {
  std::ofstream file(options_.issued, std::ios::app);
  AutoKey& ids = keys_.GetOrAdd("crash");
  while (!stopping()) {
    std::string issued;  // Also of runs that were undone, which nobody may have again.
    application_->Call("issue", [&](Transaction& tx) -> std::int64_t {
      for (int i = 0; i < kIdsInOneTransaction; ++i) {
        const std::int64_t id = ids.NextId(tx);
        issued += std::to_string(id) + "\n";
        if (ledger_.tIssued.Contains(tx, id)) {
          ledger_.Fault(tx, fmt::format("id {} was issued twice", id));
        }
        ledger_.tIssued.Put(tx, id, {.number = options_.id});
      }
      ledger_.Count(tx, "issued", kIdsInOneTransaction);
      return result_code::kSuccess;
    });
    file << issued << std::flush;
    SystemClock().SleepFor(milliseconds(30));
  }
}

void CrashServer::ChangeCollections() {
  std::mt19937_64 random(options_.seed);
  while (!stopping()) {
    const std::uint64_t choice = random();
    application_->Call("change",
                       [&](Transaction& tx) { return collection_ledger_.Change(tx, choice); });
    SystemClock().SleepFor(milliseconds(4));
  }
}

void CrashServer::WalkCollections() {
  while (!stopping()) {
    const std::int64_t code =
        application_->Call("check", [&](Transaction& tx) { return collection_ledger_.Check(tx); });
    if (code == result_code::kSuccess) collection_ledger_.Walk(*application_);
    SystemClock().SleepFor(milliseconds(50));
  }
}

}  // namespace zeze::crash_test
