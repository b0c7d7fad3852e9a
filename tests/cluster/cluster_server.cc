// The server process of the cluster tests.
//
//   zeze_cluster_server --id 3 --database URL --global PORT[,PORT] --history DIRECTORY
//
// Works until SIGTERM, then stops orderly and says "stopped ADDED committed N refused N". It says
// "ready" when it serves, "batch ADDED FAILED" when it has done --transactions of them, and
// acknowledges each receipt that it may never lose. It ends with status 86 when it was fenced.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.
#include <unistd.h>

#include "tests/cluster/cluster_tables.h"
#include "tests/cluster/server_program.h"
#include "tests/history/history.h"
#include "tests/history/recorder.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/global/service/global_client.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/transaction.h"

namespace zeze::cluster {
namespace {

struct Arguments {
  std::int32_t id = 0;
  std::string database;
  std::vector<std::uint16_t> globals;
  std::string history;
  std::uint64_t seed = 1;
  std::size_t threads = 4;
  std::int64_t transactions = 0;  // 0: without end.
  std::int64_t lease_ms = 2000;
};

class Server {
 public:
  explicit Server(const Arguments& arguments)
      : arguments_(arguments),
        storage_(OpenOrEnd(arguments.database)),
        io_({.name = "io"}),
        client_(io_, *storage_->fence(), ClientOptions(arguments)),
        engine_({.storage = storage_.get(),
                 .coherence = &client_,
                 .checkpoint_period = std::chrono::milliseconds(300),
                 .on_fenced = EndFenced}) {
    Result<std::unique_ptr<history::Recorder>> recorder =
        history::Recorder::Open(arguments.history, {.thread_count = arguments.threads,
                                                    .id_base = arguments.seed << 32,
                                                    .now = &history::SteadyClockStamp});
    CheckOrEnd(recorder);
    recorder_ = std::move(recorder).value();
    CheckOrEnd(tables_.AddTo(engine_));
    CheckOrEnd(client_.Start(engine_));
    CheckOrEnd(engine_.Start());
  }

  void Work() {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < arguments_.threads; ++t) {
      threads.emplace_back([this, t] { RunThread(t); });
    }
  }

  void StopWork() { stop_ = true; }

  std::int64_t added() const { return added_; }
  std::int64_t committed() const { return added_ + done_; }
  std::int64_t failed() const { return failed_; }

  void Stop() {
    CheckOrEnd(engine_.Stop());
    CheckOrEnd(client_.Stop());
  }

 private:
  using Random = std::mt19937_64;

  static global::GlobalClientOptions ClientOptions(const Arguments& arguments) {
    global::GlobalClientOptions options{
        .server_id = arguments.id,
        .shards = {},
        .holder = fmt::format("test pid {}", getpid()),
        .lease = {.duration = std::chrono::milliseconds(arguments.lease_ms),
                  .scheduling = std::chrono::milliseconds(100)},
        .on_fenced = EndFenced};
    for (const std::uint16_t port : arguments.globals) {
      options.shards.push_back({.host = "127.0.0.1", .port = port});
    }
    return options;
  }

  void RunThread(std::size_t thread) {
    Random random(arguments_.seed * 100 + thread);
    while (!stop_) {
      if (arguments_.transactions > 0 && started_++ >= arguments_.transactions) return;
      switch (random() % 10) {
        case 0:
        case 1:
        case 2:
          Count(Increment(random), added_);
          break;
        case 3:
        case 4:
        case 5:
          Count(Trade(random), done_);
          break;
        case 6:
          Receipt(random);
          break;
        default:
          Count(EditLists(thread, random), done_);
      }
    }
  }

  void Count(std::int64_t code, std::atomic<std::int64_t>& done) {
    if (code == 0) {
      ++done;
      return;
    }
    ++failed_;
    // Cut off, or in the way of a recovery: do not fill the log.
    SystemClock().SleepFor(std::chrono::milliseconds(5));
  }

  static std::int64_t Key(Random& random) { return static_cast<std::int64_t>(random() % kKeys); }

  std::int64_t Increment(Random& random) {
    const std::int64_t key = Key(random);
    return engine_.Call("increment", [&](Transaction& tx) {
      tables_.counters.GetOrAdd(tx, key)->value += 1;
      return 0;
    });
  }

  std::int64_t Trade(Random& random) {
    const std::int64_t from = Key(random);
    const std::int64_t to = Key(random);
    if (from == to) return 0;
    const auto amount = static_cast<std::int64_t>(random() % 100);
    return engine_.Call("trade", [&](Transaction& tx) {
      tables_.accounts.GetOrAdd(tx, from)->value -= amount;
      tables_.accounts.GetOrAdd(tx, to)->value += amount;
      return 0;
    });
  }

  // Durable at commit: once said, it is there for ever.
  void Receipt(Random& random) {
    const auto key = static_cast<std::int64_t>(random() >> 1);
    const std::int64_t code = engine_.Call("receipt", [&](Transaction& tx) {
      tables_.receipts.GetOrAdd(tx, key)->value = 1;
      return 0;
    });
    Count(code, done_);
    if (code == 0) std::cout << fmt::format("receipt {} #{}.\n", key, ++receipts_) << std::flush;
  }

  std::int64_t EditLists(std::size_t thread, Random& random) {
    std::vector<std::pair<std::int64_t, bool>> plan;
    const std::size_t count = 1 + random() % 3;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t key = Key(random);
      bool twice = false;
      for (const auto& [other, write] : plan) twice = twice || other == key;
      if (!twice) plan.emplace_back(key, random() % 2 == 0);
    }
    history::Attempt attempt = recorder_->Begin(thread, "edit lists");
    bool first = true;
    const std::int64_t code = engine_.Call("edit lists", [&](Transaction& tx) {
      if (!std::exchange(first, false)) attempt.Restart();
      for (const auto& [key, write] : plan) {
        const auto number = static_cast<history::Key>(key);
        if (!write) {
          const BList* list = tables_.lists.Get(tx, key);
          attempt.Read(number, list == nullptr ? history::ListState{} : list->ToState());
          continue;
        }
        auto list = tables_.lists.GetOrAdd(tx, key);
        attempt.Read(number, list->ToState());
        const history::Element element = attempt.NewElement();
        list->Set(list->ToState().Extended(element));
        attempt.Append(number, element);
      }
      return 0;
    });
    if (code == 0) {
      attempt.Commit();
    } else {
      attempt.Abort();
    }
    return code;
  }

  const Arguments arguments_;
  std::unique_ptr<Storage> storage_;
  IoThreads io_;
  Tables tables_;
  global::GlobalClient client_;
  Engine engine_;
  std::unique_ptr<history::Recorder> recorder_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> started_ = 0;
  std::atomic<std::int64_t> added_ = 0;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<std::int64_t> failed_ = 0;
  std::atomic<std::int64_t> receipts_ = 0;
};

int Main(int argc, char** argv) {
  CLI::App app("A server of the cluster tests.");
  Arguments arguments;
  app.add_option("--id", arguments.id)->required();
  app.add_option("--database", arguments.database)->required();
  app.add_option("--global", arguments.globals)->required()->delimiter(',');
  app.add_option("--history", arguments.history)->required();
  app.add_option("--seed", arguments.seed);
  app.add_option("--threads", arguments.threads);
  app.add_option("--transactions", arguments.transactions);
  app.add_option("--lease", arguments.lease_ms);
  CLI11_PARSE(app, argc, argv);

  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  Server server(arguments);
  std::cout << "ready" << '\n' << std::flush;
  {
    const std::jthread work([&server] {
      server.Work();
      std::cout << fmt::format("batch {} {}", server.added(), server.failed()) << '\n'
                << std::flush;
    });
    int signal = 0;
    sigwait(&end, &signal);
    server.StopWork();
  }
  server.Stop();
  std::cout << fmt::format("stopped {} committed {} refused {}\n", server.added(),
                           server.committed(), server.failed())
            << std::flush;
  return 0;
}

}  // namespace
}  // namespace zeze::cluster

int main(int argc, char** argv) {
  return zeze::cluster::Main(argc, argv);
}
