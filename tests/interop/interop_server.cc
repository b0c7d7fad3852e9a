// A C++ server of the mixed cluster.
//
//   zeze_interop_server --id 1 --database URL --global PORT --registry PORT --directory D
//                       --servers 3 --transactions 6667 --threads 2
//
// The Java server takes the same arguments. It says "fenced" or "unfenced", "ready" when it sees
// all servers in the service manager, "added N", "appended THREAD N" and "batch FAILED" when it has
// done its transactions. Then it does what files in the directory tell it, each once: check ("saw
// COUNTERS ACCOUNTS ELEMENTS", as it reads them), again (adds one to each counter: "again N"),
// stop-ID (an orderly stop: "stopped").

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <unistd.h>

#include "tests/cluster/server_program.h"
#include "tests/interop/interop_tables.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_client.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/transaction.h"

namespace zeze::interop {
namespace {

constexpr std::string_view kService = "Interop";

struct Arguments {
  std::int32_t id = 0;
  std::string database;
  std::uint16_t global = 0;
  std::uint16_t registry = 0;
  std::string directory;
  std::size_t servers = 1;
  std::int64_t transactions = 0;
  std::int32_t threads = 2;
  bool allow_unfenced_global = false;
  bool as_old_peer = false;
};

void Say(const std::string& line) {
  std::cout << line + "\n" << std::flush;
}

class Server {
 public:
  explicit Server(const Arguments& arguments)
      : arguments_(arguments),
        storage_(cluster::OpenOrEnd(arguments.database)),
        pool_({.name = "callbacks", .thread_count = 1}),
        io_({.name = "io"}),
        registry_(io_, pool_, {.connector = {.host = "127.0.0.1", .port = arguments.registry}}),
        client_(io_, *storage_->fence(),
                {.server_id = arguments.id,
                 .shards = {{.host = "127.0.0.1", .port = arguments.global}},
                 .holder = fmt::format("interop pid {}", getpid()),
                 .lease = {},
                 .allow_unfenced_global = arguments.allow_unfenced_global,
                 .log_in_as_old_peer = arguments.as_old_peer,
                 .on_fenced = cluster::EndFenced}),
        engine_({.storage = storage_.get(),
                 .coherence = &client_,
                 .checkpoint_period = std::chrono::milliseconds(500),
                 .on_fenced = cluster::EndFenced}) {
    cluster::CheckOrEnd(tables_.AddTo(engine_));
    cluster::CheckOrEnd(client_.Start(engine_));
    cluster::CheckOrEnd(engine_.Start());
    Say(client_.unfenced() ? "unfenced" : "fenced");
    cluster::CheckOrEnd(registry_.Start());
    registry_.Subscribe({.name = std::string(kService)},
                        [](const registry::ServiceListPtr&, const registry::ServiceChange&) {});
    cluster::CheckOrEnd(registry_.Register({.name = std::string(kService),
                                            .identity = std::to_string(arguments.id),
                                            .passive_ip = "127.0.0.1",
                                            .passive_port = 7000 + arguments.id}));
    AwaitOthers();
  }

  void Work() {
    std::vector<std::jthread> threads;
    for (std::int32_t t = 0; t < arguments_.threads; ++t) {
      threads.emplace_back([this, t] { RunThread(t); });
    }
    threads.clear();
    Say(fmt::format("added {}", added_.load()));
    Say(fmt::format("batch {}", failed_.load()));
  }

  // What the files in the directory tell, until one of them says stop.
  void Obey() {
    const std::filesystem::path directory = arguments_.directory;
    bool checked = false;
    bool repeated = false;
    while (!std::filesystem::exists(directory / fmt::format("stop-{}", arguments_.id))) {
      if (!checked && std::filesystem::exists(directory / "check")) {
        checked = true;
        Look();
      }
      if (!repeated && std::filesystem::exists(directory / "again")) {
        repeated = true;
        Say(fmt::format("again {}", AddToAll()));
      }
      SystemClock().SleepFor(std::chrono::milliseconds(20));
    }
    cluster::CheckOrEnd(engine_.Stop());
    cluster::CheckOrEnd(client_.Stop());
    registry_.Stop();
    Say("stopped");
  }

 private:
  using Random = std::mt19937_64;

  void AwaitOthers() {
    while (true) {
      const registry::ServiceListPtr list = registry_.Services(kService);
      if (list != nullptr && list->size() >= arguments_.servers) break;
      SystemClock().SleepFor(std::chrono::milliseconds(20));
    }
    Say("ready");
  }

  static std::int32_t Key(Random& random) { return static_cast<std::int32_t>(random() % kKeys); }

  // Each of them is repeated until it is committed: the number of transactions is exact.
  void Do(ProcedureName name, const std::function<std::int64_t(Transaction&)>& body) {
    while (engine_.Call(name, [&](Transaction& tx) { return body(tx); }) != 0) {
      ++failed_;
      SystemClock().SleepFor(std::chrono::milliseconds(20));
    }
  }

  // A Java server reads everything with Share, and asks for Modify when it commits.
  template <typename Table, typename Key>
  auto Edit(Transaction& tx, Table& table, const Key& key) {
    if (arguments_.as_old_peer) (void)table.Get(tx, key);
    return table.GetOrAdd(tx, key);
  }

  void RunThread(std::int32_t thread) {
    Random random(static_cast<std::uint64_t>(arguments_.id * 100 + thread));
    std::int64_t appended = 0;
    while (started_++ < arguments_.transactions) {
      const std::int32_t key = Key(random);
      switch (random() % 5) {
        case 0:
        case 1:
          Do("count", [&](Transaction& tx) {
            Edit(tx, tables_.numbers, CounterKey(key))->next_id += 1;
            return 0;
          });
          ++added_;
          break;
        case 2:
          Trade(key, random);
          break;
        default:
          ++appended;
          Do("append", [&](Transaction& tx) {
            Edit(tx, tables_.lists, ListKey(key))
                ->values.PushBack({.timestamp = Element(arguments_.id, thread, appended)});
            return 0;
          });
      }
    }
    Say(fmt::format("appended {} {}", thread, appended));
  }

  void Trade(std::int32_t from, Random& random) {
    const std::int32_t to = (from + 1 + static_cast<std::int32_t>(random() % (kKeys - 1))) % kKeys;
    const auto amount = static_cast<std::int64_t>(random() % 100);
    Do("trade", [&](Transaction& tx) {
      Edit(tx, tables_.numbers, AccountKey(from))->next_id -= amount;
      Edit(tx, tables_.numbers, AccountKey(to))->next_id += amount;
      return 0;
    });
  }

  void Look() {
    std::int64_t counters = 0;
    std::int64_t accounts = 0;
    std::size_t elements = 0;
    Do("look", [&](Transaction& tx) {
      counters = accounts = 0;
      elements = 0;
      for (std::int32_t key = 0; key < kKeys; ++key) {
        if (const BAutoKey* one = tables_.numbers.Get(tx, CounterKey(key)))
          counters += one->next_id;
        if (const BAutoKey* one = tables_.numbers.Get(tx, AccountKey(key)))
          accounts += one->next_id;
        if (const BQueueNode* one = tables_.lists.Get(tx, ListKey(key))) {
          elements += one->values.size();
        }
      }
      return 0;
    });
    Say(fmt::format("saw {} {} {}", counters, accounts, elements));
  }

  std::int32_t AddToAll() {
    for (std::int32_t key = 0; key < kKeys; ++key) {
      Do("again", [&](Transaction& tx) {
        Edit(tx, tables_.numbers, CounterKey(key))->next_id += 1;
        return 0;
      });
    }
    return kKeys;
  }

  const Arguments arguments_;
  std::unique_ptr<Storage> storage_;
  ThreadPool pool_;
  IoThreads io_;
  registry::RegistryAgent registry_;
  Tables tables_;
  global::GlobalClient client_;
  Engine engine_;
  std::atomic<std::int64_t> started_ = 0;
  std::atomic<std::int64_t> added_ = 0;
  std::atomic<std::int64_t> failed_ = 0;
};

int Main(int argc, char** argv) {
  CLI::App app("A server of a mixed cluster.");
  Arguments arguments;
  app.add_option("--id", arguments.id)->required();
  app.add_option("--database", arguments.database)->required();
  app.add_option("--global", arguments.global)->required();
  app.add_option("--registry", arguments.registry)->required();
  app.add_option("--directory", arguments.directory)->required();
  app.add_option("--servers", arguments.servers);
  app.add_option("--transactions", arguments.transactions);
  app.add_option("--threads", arguments.threads);
  app.add_flag("--allow-unfenced-global", arguments.allow_unfenced_global);
  app.add_flag("--as-old-peer", arguments.as_old_peer, "stand in for the Java server");
  CLI11_PARSE(app, argc, argv);
  Server server(arguments);
  server.Work();
  server.Obey();
  return 0;
}

}  // namespace
}  // namespace zeze::interop

int main(int argc, char** argv) {
  return zeze::interop::Main(argc, argv);
}
