// CrashServer: an application with all components, whose every effect is noted in a ledger.
//
//   CrashServer server({.id = 1, .database = url, .global_port = port});
//   if (auto started = server.Start(); !started.ok()) return Fail(started.error());
//   server.Work();                                    // Threads that use everything.
//   server.Stop();

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/components/collection_ledger.h"
#include "tests/components/ledger.h"
#include "tests/components/timer_ledger.h"
#include "tests/redo/shop_counters.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/components/timer/timers.h"

namespace zeze::crash_test {

struct CrashServerOptions {
  std::int32_t id = 0;
  std::string database = {};
  std::uint16_t global_port = 0;
  std::uint16_t registry_port = 0;  // 0: without a service manager.
  std::uint16_t redo_port = 0;      // 0: any.
  std::string issued = {};          // The file that every id is written to, as it is issued.
  std::uint64_t seed = 1;
  std::int64_t timers = 0;  // How many this server schedules in all its lives.
  std::int64_t timers_per_second = 100;
};

class CrashServer {
 public:
  explicit CrashServer(CrashServerOptions options);

  Result<void> Start();
  // Says "scheduled" when it has scheduled all of its timers.
  void Work();
  Result<void> Stop();

  Ledger& ledger() { return ledger_; }
  Timers& timers() { return timers_; }
  redo_test::ShopCounters& shop() { return shop_; }
  CollectionLedger& collections() { return collection_ledger_; }
  Application& application() { return *application_; }

 private:
  void ScheduleTimers();
  void IssueIds();
  void ChangeCollections();
  void WalkCollections();
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  const CrashServerOptions options_;
  AutoKeys keys_;
  Queues queues_;
  DelayRemove delay_remove_;
  LinkedMaps maps_{delay_remove_};
  Timers timers_;
  RedoQueueServer redo_;
  redo_test::ShopCounters shop_;
  Ledger ledger_;
  TimerLedger timer_ledger_{ledger_, timers_};
  CollectionLedger collection_ledger_{ledger_, queues_, maps_};
  std::unique_ptr<Application> application_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace zeze::crash_test
