// A server that does what a test tells it, order by order.
//
//   zeze_commanded_server --id 3 --database URL --global HOST:PORT[,HOST:PORT] --orders FIFO
//     --lease 6000
//
// It says "ready" when it serves. An order is a line in the FIFO: its number, a verb, the first key
// and the number of keys. Each runs on a thread of its own:
//
//   7 add 0 1000     one procedure for each key, which adds 1; repeated until it is committed
//   8 try 0 1000     the same, once for each key
//   9 sum 0 1000     reads all the values, once for each key
//  10 take 0 1000    rights to write, many in one procedure; repeated until it has them
//  11 work 0 1000    adds 1 to one key after the other until "rest"
//  12 trade 0 1000   the same, in two records with each commit: keys 0 and 1000, 1 and 1001, ...
//  13 rest           ends what works or trades
//
// The answer is "order 7: 1000 done, 0 refused, sum 0." Nothing is saved before --checkpoint is
// over, unless the framework has a reason to. Stops in order with SIGTERM; ends with status 86 when
// it was fenced.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <list>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "tests/cluster/cluster_tables.h"
#include "tests/cluster/server_program.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/stop_signals.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze::cluster {
namespace {

struct Order {
  std::int64_t number = 0;
  std::string verb;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct Answer {
  std::int64_t done = 0;
  std::int64_t refused = 0;
  std::int64_t sum = 0;
};

class Commanded {
 public:
  using Numbers = Table<std::int64_t, BNumber>;

  Commanded(Application& server, Numbers& numbers) : server_(server), numbers_(numbers) {}

  // Returns at the order "end".
  void Obey(const std::string& file) {
    std::fstream orders(file);  // For reading and writing: the FIFO has no end.
    std::list<std::jthread> threads;
    for (std::string line; std::getline(orders, line);) {
      Order order;
      std::istringstream(line) >> order.number >> order.verb >> order.first >> order.count;
      if (order.verb == "end") break;
      if (order.verb == "rest") {
        resting_ = true;
        Say(order, {});
      } else {
        threads.emplace_back([this, order] { Say(order, Carry(order)); });
      }
    }
    stopping_ = true;
  }

 private:
  static constexpr std::int64_t kBatch = 1000;

  static void Say(const Order& order, const Answer& answer) {
    std::cout << fmt::format("order {}: {} done, {} refused, sum {}.\n", order.number, answer.done,
                             answer.refused, answer.sum)
              << std::flush;
  }

  Answer Carry(const Order& order) {
    Answer answer;
    const std::int64_t end = order.first + order.count;
    if (order.verb == "take") {
      for (std::int64_t key = order.first; key < end; key += kBatch) {
        const std::int64_t count = std::min(kBatch, end - key);
        Repeat(answer, count, [&] { return Take(key, count); });
      }
    } else if (order.verb == "work" || order.verb == "trade") {
      const std::int64_t distance = order.verb == "trade" ? order.count : 0;
      for (std::int64_t key = order.first; !resting_ && !stopping_;) {
        Once(answer, 1, [&] { return Add(key, distance); });
        if (++key == end) key = order.first;
      }
    } else if (order.verb == "add") {
      for (std::int64_t key = order.first; key < end; ++key) {
        Repeat(answer, 1, [&] { return Add(key); });
      }
    } else {
      for (std::int64_t key = order.first; key < end; ++key) {
        Once(answer, 1, [&] { return order.verb == "sum" ? Read(key, answer.sum) : Add(key); });
      }
    }
    return answer;
  }

  template <typename Procedure>
  bool Once(Answer& answer, std::int64_t count, const Procedure& procedure) {
    const bool done = procedure() == 0;
    (done ? answer.done : answer.refused) += count;
    // Cut off, or somebody recovers: do not fill the log.
    if (!done) SystemClock().SleepFor(std::chrono::milliseconds(20));
    return done;
  }
  template <typename Procedure>
  void Repeat(Answer& answer, std::int64_t count, const Procedure& procedure) {
    while (!stopping_ && !Once(answer, count, procedure)) {
    }
  }

  // Also to the record at this distance, unless it is 0.
  std::int64_t Add(std::int64_t key, std::int64_t distance = 0) {
    return server_.Call("add", [&](Transaction& tx) {
      numbers_.GetOrAdd(tx, key)->value += 1;
      if (distance != 0) numbers_.GetOrAdd(tx, key + distance)->value += 1;
      return 0;
    });
  }

  std::int64_t Read(std::int64_t key, std::int64_t& sum) {
    std::int64_t value = 0;
    const std::int64_t code = server_.Call("read", [&](Transaction& tx) {
      const BNumber* number = numbers_.Get(tx, key);
      value = number == nullptr ? 0 : number->value;
      return 0;
    });
    if (code == 0) sum += value;
    return code;
  }

  std::int64_t Take(std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> keys;
    for (std::int64_t i = 0; i < count; ++i) keys.push_back(first + i);
    return server_.Call("take", [&](Transaction& tx) {
      numbers_.Prefetch(tx, keys, Right::kModify);
      for (const std::int64_t key : keys) numbers_.Get(tx, key);
      return 0;
    });
  }

  Application& server_;
  Numbers& numbers_;
  std::atomic<bool> resting_ = false;
  std::atomic<bool> stopping_ = false;
};

int Main(int argc, char** argv) {
  StopSignals signals;
  CLI::App app("A server that does what a test tells it.");
  std::vector<std::string> globals;
  std::string orders;
  std::int64_t lease_ms = 6000;
  std::int64_t checkpoint_ms = 3'600'000;
  ApplicationOptions options{
      .on_fenced = EndFenced, .worker_threads = 4, .stop_wait_max = std::chrono::seconds(20)};
  app.add_option("--id", options.server_id)->required();
  app.add_option("--database", options.storage.url)->required();
  app.add_option("--global", globals)->required()->delimiter(',');
  app.add_option("--orders", orders)->required();
  app.add_option("--lease", lease_ms);
  app.add_option("--checkpoint", checkpoint_ms);
  CLI11_PARSE(app, argc, argv);
  for (const std::string& global : globals) {
    const std::size_t colon = global.find(':');
    options.globals.push_back(
        {global.substr(0, colon), static_cast<std::uint16_t>(std::stoi(global.substr(colon + 1)))});
  }
  options.lease = std::chrono::milliseconds(lease_ms);
  options.checkpoint_period = std::chrono::milliseconds(checkpoint_ms);
  options.tables[""] = {.cache_capacity = 0};

  Commanded::Numbers numbers{TableDescriptor{.id = 1, .name = "cluster_counters"}};
  Result<std::unique_ptr<Application>> opened = Application::Open("commanded", std::move(options));
  CheckOrEnd(opened);
  Application& server = *opened.value();
  server.AddTable(numbers);
  Commanded commanded(server, numbers);
  CheckOrEnd(server.Start());
  std::cout << "ready\n" << std::flush;
  {
    const std::jthread obeying([&] { commanded.Obey(orders); });
    signals.Wait();
    std::ofstream(orders) << "0 end\n";
  }
  CheckOrEnd(server.Stop());
  return 0;
}

}  // namespace
}  // namespace zeze::cluster

int main(int argc, char** argv) {
  return zeze::cluster::Main(argc, argv);
}
