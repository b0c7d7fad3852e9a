// The client of the crash tests: redo_producer DIRECTORY PORT[,PORT...] TASKS SEED [PER_SECOND].
// Adds tasks to each queue until it has so many; the parameter of a task is its id, so that a
// producer that was killed knows where to go on. Says "ready", "finished" when all are done, and
// alarms.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/redo/shop_counters.h"
#include "zeze/base/clock.h"
#include "zeze/base/text.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"

namespace zeze::redo_test {
namespace {

struct Arguments {
  std::string directory;
  std::vector<std::uint16_t> ports = {};
  std::int64_t tasks = 0;
  std::uint32_t seed = 0;
  std::int64_t per_second = 5000;
};

void Say(const std::string& text) {
  std::cout << text + "\n" << std::flush;
}

// True if all tasks of the queue are done.
bool Produce(RedoQueueClient& queue, const Arguments& arguments) {
  const std::int64_t tasks = arguments.tasks;
  std::mt19937 random(arguments.seed);
  std::int64_t added = queue.journal().added_id();
  while (added < tasks) {
    const std::int64_t count = std::min<std::int64_t>(1 + random() % 30, tasks - added);
    std::vector<std::string> params;
    for (std::int64_t i = 1; i <= count; ++i) params.push_back(std::to_string(added + i));
    std::vector<NewRedoTask> batch;
    for (const std::string& param : params) batch.push_back({kType, param});
    Result<std::int64_t> id = queue.AddMany(batch);
    if (!id.ok()) {
      Say("failed: " + id.error().message());
      return false;
    }
    added = id.value();
    // Slowly, so that the processes are killed while tasks flow.
    SystemClock().SleepFor(std::chrono::microseconds(1'000'000) * count / arguments.per_second);
  }
  while (!queue.WaitDone(tasks, std::chrono::seconds(1)).ok()) {
  }
  return true;
}

int Main(const Arguments& arguments) {
  auto store = RedoStore::Open({.directory = arguments.directory});
  if (!store.ok()) {
    Say("failed: " + store.error().message());
    return 1;
  }
  std::vector<std::unique_ptr<RedoQueueClient>> queues;
  for (const char* name : kQueues) {
    RedoQueueClientOptions options{.name = name, .servers = {}};
    for (const std::uint16_t port : arguments.ports) options.servers.push_back({"127.0.0.1", port});
    options.first_delay = std::chrono::milliseconds(10);
    options.delay_max = std::chrono::milliseconds(200);
    options.on_alarm = [](const RedoAlarm& alarm) {
      Say(fmt::format("alarm {}: {}", ToString(alarm.kind), alarm.text));
    };
    queues.push_back(std::move(RedoQueueClient::Open(store.value(), options)).value());
  }
  Say("ready");
  std::vector<std::thread> threads;
  for (auto& queue : queues) {
    threads.emplace_back([&] { Produce(*queue, arguments); });
  }
  for (std::thread& thread : threads) thread.join();
  Say("finished");
  // Goes on: a server that is set back is given its tasks again.
  while (true) SystemClock().SleepFor(std::chrono::hours(1));
}

}  // namespace
}  // namespace zeze::redo_test

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) return 2;
  zeze::redo_test::Arguments arguments{.directory = argv[1],
                                       .tasks = std::stoll(argv[3]),
                                       .seed = static_cast<std::uint32_t>(std::stoul(argv[4]))};
  for (std::string_view port : zeze::Split(argv[2], ',')) {
    arguments.ports.push_back(static_cast<std::uint16_t>(std::stoi(std::string(port))));
  }
  if (argc == 6) arguments.per_second = std::stoll(argv[5]);
  return zeze::redo_test::Main(arguments);
}
