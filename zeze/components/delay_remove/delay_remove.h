// DelayRemove: records that are removed later, so that whoever walks over them can go on; and jobs
// that outlive the process.
//
//   zeze::Queues queues;
//   zeze::DelayRemove delay_remove(queues);              // Both are modules of the application.
//   delay_remove.Serve(game.tRoles);                     // Before the start, on every server.
//
//   zeze::DelayRemove::Remove(tx, game.tRoles, role);    // In a procedure. Or, just the same:
//   game.tRoles.DelayRemove(tx, role);
//
// docs/delay_remove.md has a whole example.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "Zeze/Builtin/DelayRemove.h"
#include "Zeze/Builtin/DelayRemove.module.h"
#include "zeze/app/application.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/scheduler.h"
#include "zeze/components/collections/queue/any_queue.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/later_removal.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// Whether records of a table may be written between their removal and their end.
enum class Rewrites : std::uint8_t {
  // They may, and that cancels the removal. Every write of the table looks for one: it costs the
  // look at one more record.
  kCancel,
  // They never are: their keys are never used again. Costs nothing.
  kNever,
};

struct DelayRemoveOptions {
  // How long removed records stay. Absent: DelayRemoveDays of the configuration, else seven days.
  std::optional<std::chrono::milliseconds> delay = std::nullopt;

  // Records that one transaction removes, and transactions in one step for each queue.
  std::size_t batch = 100;
  std::size_t batches_in_step = 10;
  // Of jobs: transactions in one step for each job.
  std::size_t job_steps = 100;
  // Steps are small and many instead of a big one each night.
  std::chrono::nanoseconds step_period = std::chrono::seconds(1);

  // Local hours [start, end) in which steps are made; start > end: over midnight. Absent:
  // DelayRemoveHourStart and End of the configuration, if it says them, else always.
  struct Hours {
    int start = 0;
    int end = 24;
  };
  std::optional<Hours> hours = std::nullopt;

  // What another server should have done so long ago it will not do any more: it is done here.
  std::chrono::milliseconds take_over_after = std::chrono::minutes(10);
  std::chrono::nanoseconds take_over_period = std::chrono::minutes(1);

  // Different delays of one server that have a queue of their own. Removals with further delays
  // share queues with similar ones: they may come later, by less than an eighth of their delay.
  std::size_t delays_max = 64;
  std::size_t jobs_max = 10'000;
};

struct DelayRemoveStatistics {
  std::uint64_t removed = 0;
  std::uint64_t cancelled = 0;  // Written meanwhile, or removed again: left alone.
  std::uint64_t parked = 0;     // Of a table that this process does not have: to be tried later.
  std::uint64_t job_steps = 0;
};

// Guarantees:
//   - A removed record stays as it was for its delay, and is then removed within a few steps, by
//     its server or, if that is gone, by any other.
//   - A record that is written again, or removed and made again, in a transaction after the
//     removal, or behind it in the same one, is not removed. What counts is the last removal.
//   - A removal leaves its queue in the transaction that removes its record, or finds that it was
//     cancelled. A crash or a conflict between repeats nothing and loses nothing.
//
// Requires: every program that writes a table serves it. Outlives the application. Thread-safe
// after Start.
class DelayRemove final : public Zeze::Builtin::DelayRemove::ModuleDelayRemoveBase,
                          public LaterRemoval {
 public:
  // One step of a job in its transaction. Changes the state to what is left to do; false: nothing
  // is. A step that throws is tried again later.
  using JobHandler = std::function<bool(Transaction& tx, std::string& state)>;

  explicit DelayRemove(Queues& queues, DelayRemoveOptions options = {});
  ~DelayRemove() override;

  // --- before Start ---

  // Both throw UsageError after Start. Records of this table may be removed later; one DelayRemove
  // serves a table.
  void Serve(TableBase& table, Rewrites rewrites = Rewrites::kCancel);
  // One handler for each name.
  void OnJob(std::string name, JobHandler handler);

  // --- inside a transaction ---

  // False: there is no such record. The delay: at least a millisecond, at most a hundred years;
  // none: that of the options.
  template <typename K, typename V>
  static bool Remove(Transaction& tx, Table<K, V>& table, const typename Table<K, V>::Key& key,
                     std::chrono::milliseconds delay = std::chrono::milliseconds(0)) {
    return table.DelayRemove(tx, key, delay);
  }

  // The job begins when the transaction has committed and goes on, step by step, until it is done,
  // whatever ends meanwhile. Throws if there is no handler, or too many jobs.
  void StartJob(Transaction& tx, const std::string& handler, std::string state);

  // --- of this server, and for tests ---

  // Start does it. Errors: bad options, the storage.
  Result<void> Open(Engine& engine, std::int32_t server_id);
  // What is due of this server, at most the batches of a step. Returns how many entries were dealt
  // with. Errors: a transaction failed; nothing is lost by that.
  Result<std::size_t> Step(Engine& engine);
  // The same of all other servers, whose time to do it themselves is over.
  Result<std::size_t> StepForOthers(Engine& engine);
  // How many removals wait in the queues of a server.
  std::int64_t Pending(Transaction& tx, std::int32_t server_id);

  DelayRemoveStatistics statistics() const;
  std::chrono::milliseconds delay() const { return delay_; }

  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;

  // --- LaterRemoval ---

  void RemoveLater(Transaction& tx, TableBase& table, std::string encoded_key,
                   std::chrono::milliseconds delay) override;
  void Written(Transaction& tx, TableBase& table, std::string encoded_key) override;

 private:
  using Entry = Zeze::Builtin::DelayRemove::BTableKey;
  using Jobs = Zeze::Builtin::DelayRemove::BJobs;

  struct Batch {
    std::size_t dealt = 0;
    std::size_t removed = 0;
    std::size_t cancelled = 0;
    std::size_t parked = 0;
    std::string parked_why;
  };
  // `grace`: how much later than due.
  struct Wait {
    std::chrono::milliseconds delay;
    std::chrono::milliseconds grace;
  };

  Result<void> CheckOptions() const;
  AnyQueue QueueOf(std::int32_t server_id, std::chrono::milliseconds delay);
  std::chrono::milliseconds NoteDelay(Transaction& tx, std::chrono::milliseconds delay);
  Batch CollectIn(Transaction& tx, AnyQueue& queue, const Wait& wait, std::size_t entries_max);
  void DealWith(Transaction& tx, AnyQueue& queue, Entry entry, Batch& batch);
  void Park(Transaction& tx, AnyQueue& queue, Entry entry, std::string why, Batch& batch);
  Result<std::size_t> Collect(Engine& engine, AnyQueue queue, const Wait& wait);
  bool CollectBatch(Engine& engine, AnyQueue& queue, const Wait& wait, std::size_t entries_max,
                    Batch& batch);
  Result<std::size_t> StepOf(Engine& engine, std::int32_t server_id,
                             std::chrono::milliseconds grace);
  std::size_t RunJobs(Engine& engine, std::int32_t server_id, const Jobs& jobs,
                      std::chrono::milliseconds grace);
  bool RunJobStep(Engine& engine, std::int32_t server_id, const std::string& id,
                  const JobHandler& handler, std::chrono::milliseconds grace);
  bool IsTime(const Engine& engine) const;
  void RunScheduled();
  void StepOnce();

  Queues& queues_;
  const DelayRemoveOptions options_;
  std::map<std::string, JobHandler, std::less<>> handlers_;
  // Since Open.
  std::chrono::milliseconds delay_;
  std::optional<DelayRemoveOptions::Hours> hours_;
  std::int32_t server_id_ = 0;

  std::atomic<Application*> application_ = nullptr;
  ScheduledTask stepping_;
  std::atomic<int> steps_wanted_ = 0;
  Mutex step_mutex_;  // Held by the one who makes it; whoever stops waits for that.
  std::chrono::nanoseconds others_due_ ZEZE_GUARDED_BY(step_mutex_){};

  std::atomic<std::uint64_t> removed_ = 0;
  std::atomic<std::uint64_t> cancelled_ = 0;
  std::atomic<std::uint64_t> parked_ = 0;
  std::atomic<std::uint64_t> job_steps_ = 0;
};

}  // namespace zeze
