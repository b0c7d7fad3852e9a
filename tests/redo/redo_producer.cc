// The client of the crash test: redo_producer DIRECTORY PORT TASKS SEED. Adds tasks to each queue
// until it has so many; the parameter of a task is its id, so that a producer that was killed knows
// where to go on. Says "ready", "finished" when all are done, and alarms.

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

#include "tests/redo/shop.h"
#include "zeze/base/clock.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"

namespace zeze::redo_test {
namespace {

void Say(const std::string& text) {
  std::cout << text + "\n" << std::flush;
}

// True if all tasks of the queue are done.
bool Produce(RedoQueueClient& queue, std::int64_t tasks, std::uint32_t seed) {
  std::mt19937 random(seed);
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
    // About 5,000 a second, so that the processes are killed while tasks flow.
    SystemClock().SleepFor(std::chrono::microseconds(200) * count);
  }
  while (!queue.WaitDone(tasks, std::chrono::seconds(1)).ok()) {
  }
  return true;
}

int Main(const std::string& directory, std::uint16_t port, std::int64_t tasks, std::uint32_t seed) {
  Result<std::shared_ptr<RedoStore>> store = RedoStore::Open({.directory = directory});
  if (!store.ok()) {
    Say("failed: " + store.error().message());
    return 1;
  }
  std::vector<std::unique_ptr<RedoQueueClient>> queues;
  for (const char* name : kQueues) {
    RedoQueueClientOptions options{.name = name, .servers = {{"127.0.0.1", port}}};
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
    threads.emplace_back([&queue, tasks, seed] { Produce(*queue, tasks, seed); });
  }
  for (std::thread& thread : threads) thread.join();
  Say("finished");
  // Goes on: a server that is set back is given its tasks again.
  while (true) SystemClock().SleepFor(std::chrono::hours(1));
}

}  // namespace
}  // namespace zeze::redo_test

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return zeze::redo_test::Main(argv[1], static_cast<std::uint16_t>(std::stoi(argv[2])),
                               std::stoll(argv[3]),
                               static_cast<std::uint32_t>(std::stoul(argv[4])));
}
