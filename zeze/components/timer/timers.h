// Timers: what is to happen later, or again and again; stored, so that it happens whatever server
// dies meanwhile, and once.
//
//   zeze::AutoKeys auto_keys;
//   zeze::Timers timers(auto_keys);
//   timers.RegisterHandler("buff ends", [&](zeze::Transaction& tx, zeze::TimerContext& timer) {
//     return buffs.End(tx, timer.data().As<BBuff>()->role);
//   });
//   application.AddModule(auto_keys);
//   application.AddModule(timers);
//   ...
//   auto id = timers.Schedule(tx, TimerSpec::After("buff ends", 30s, AnyBean::Of(buff)));
//   timers.ScheduleNamed(tx, "daily reset", TimerSpec::Cron("reset", "0 0 5 * * ?"));
//   timers.Cancel(tx, id.value());

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/Timer.h"
#include "Zeze/Builtin/Timer.module.h"
#include "zeze/app/application.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/alarm_clock.h"
#include "zeze/components/timer/due_runner.h"
#include "zeze/components/timer/errands.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timer_ring.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

struct TimerInfo;

struct TimersOptions {
  // How many timers share a record at most, and how long that record may be. A timer whose data are
  // longer has a record of its own.
  std::size_t timers_per_node = 50;
  std::size_t node_bytes_max = 64 * 1024;
  // Timers of programs with a newer version are left alone. Absent: the application's main version.
  std::optional<std::int64_t> version = std::nullopt;

  // An occurrence that is later than this is missed: its misfire policy counts.
  std::chrono::milliseconds misfire_after = std::chrono::seconds(1);

  // A handler that fails is tried again so often, after the first delay, then twice that, ...; then
  // the timer is parked: stored, but not run, until Resume.
  std::int32_t retries = 5;
  std::chrono::milliseconds retry_delay = std::chrono::seconds(1);
  std::chrono::milliseconds retry_delay_max = std::chrono::minutes(5);
  // For operators; besides the log.
  std::function<void(const TimerInfo& timer, std::int64_t code)> on_parked = nullptr;

  // Handlers and local tasks without a key that run or wait at a time, at most. Each has a thread
  // of its own. Those with a key run on the workers of the application.
  std::size_t running_max = 128;

  // How long a start waits for what an earlier life of this server still holds.
  std::chrono::nanoseconds start_patience = std::chrono::seconds(60);
};

// What a handler is told. Belongs to its call.
class TimerContext {
 public:
  // `grace` is how late an occurrence may be and is not missed.
  TimerContext(std::string_view id, const TimerBean& timer, std::int64_t now, std::int64_t grace)
      : id_(id), timer_(timer), now_(now), grace_(grace), data_(timer.CustomData) {}
  // The same call, under another name and with other data: for a timer inside of a timer.
  TimerContext(const TimerContext& outer, std::string_view id, AnyBean data)
      : id_(id),
        timer_(outer.timer_),
        now_(outer.now_),
        grace_(outer.grace_),
        data_(std::move(data)) {}

  std::string_view id() const { return id_; }
  std::int64_t planned_time_ms() const { return PlannedTime(timer_); }
  std::int64_t now_ms() const { return now_; }
  // Before this one.
  std::int64_t happened_times() const { return HappenTimes(timer_); }
  // Failed runs of this occurrence before.
  std::int32_t failed_times() const { return timer_.FailedTimes; }
  // Nothing is planned behind this one.
  bool last_time() const {
    TimerBean next = timer_;
    return !AdvanceTimer(next, now_, grace_);
  }

  const AnyBean& data() const { return data_; }
  // For the next time.
  void SetData(AnyBean data) { data_ = std::move(data); }
  // Instead of what the plan says. Not after the last time.
  void SetNextTime(std::int64_t unix_ms) { next_time_ = unix_ms; }
  const std::optional<std::int64_t>& next_time() const { return next_time_; }

 private:
  std::string_view id_;
  const TimerBean& timer_;
  std::int64_t now_;
  std::int64_t grace_;
  AnyBean data_;
  std::optional<std::int64_t> next_time_;
};

// 0: done. Anything else, or an exception: what it did is undone and it is tried again, see
// TimersOptions. kBusy, kTimeout and the like do not count as its failures: it is tried again until
// it can be done. kNotImplement (-3): what it needs is not there in this program, or in the server
// that it called; it is tried again, after 1 s, 2 s, up to 5 min, and that does not count either.
using TimerHandler = std::function<std::int64_t(Transaction& tx, TimerContext& timer)>;

struct TimerInfo {
  std::string id;
  std::string handler;
  std::int32_t server_id = 0;  // Where it runs, unless that server is gone.
  std::int64_t next_time_ms = 0;
  std::int64_t happened_times = 0;
  std::int64_t remaining_times = -1;
  std::int64_t end_time_ms = 0;
  std::int32_t failed_times = 0;
  bool parked = false;
  AnyBean data;
  std::int64_t serial_id = 0;  // Of this registration; the next one of a name has another.
};

struct TimersStatistics {
  std::size_t armed = 0;    // In memory, waiting for their time.
  std::size_t waiting = 0;  // Due, waiting for their turn.
  std::size_t running = 0;  // Batches and turns of keys that are under way.
  std::uint64_t fired = 0;
  std::uint64_t failed = 0;  // Runs of handlers.
  std::uint64_t parked = 0;
  std::uint64_t put_off = 0;  // Runs that could not be, for other reasons than the handler.
  std::uint64_t taken_over = 0;
};

// Guarantees (docs/timer.md says more):
//   - The run of a handler, that it has run, and when it runs next are one transaction: each
//     occurrence takes effect once, or as its misfire policy says.
//   - A timer counts if and when the transaction that scheduled it commits.
//   - Nothing but its plan, Cancel and a handler that fails again and again ends a timer.
//
// Thread-safe after Start.
class Timers final : public TimerTables {
 public:
  explicit Timers(AutoKeys& auto_keys, TimersOptions options = {});
  ~Timers() override;

  // Before Start. Throws UsageError if it is later, if the name or the handler is empty, or if the
  // name is taken.
  void RegisterHandler(std::string name, TimerHandler handler);

  // --- inside a transaction ---

  // Returns the id, which begins with '@'. Errors: kInvalidArgument; nothing has changed then. All
  // of these throw UsageError if the timers are not a module of an application that has started.
  Result<std::string> Schedule(Transaction& tx, const TimerSpec& spec);

  // What happens if there is a timer of that name.
  enum class Existing : std::uint8_t {
    kKeep,         // Nothing.
    kReplaceHere,  // If it is one of this server it is replaced, unless it is the same cron timer.
  };
  // In the whole cluster there is one timer of a name. False: there is one already, and it stays.
  Result<bool> ScheduleNamed(Transaction& tx, const std::string& name, const TimerSpec& spec,
                             Existing existing = Existing::kKeep);

  // Of any server. False: there is none.
  bool Cancel(Transaction& tx, const std::string& id);

  std::optional<TimerInfo> Find(Transaction& tx, const std::string& id);

  // For the next time. Of any server, but not the timer that runs (TimerContext::SetData). False:
  // there is none.
  bool SetData(Transaction& tx, const std::string& id, AnyBean data);

  // A parked timer runs again, on this server, beginning with the occurrence that failed. False: it
  // is not parked.
  bool Resume(Transaction& tx, const std::string& id);

  // --- in memory only: for what ends with the process ---

  // Runs the task on a thread of the timers, unless canceled. Usable in Transaction::AfterCommit.
  // These throw UsageError before Start and for an empty task.
  std::int64_t ScheduleLocal(std::chrono::milliseconds delay, Task task);
  bool CancelLocal(std::int64_t local_timer);
  // The same in two steps, for those who must know the number before the moment comes to set it.
  // Set again it is the later one that counts.
  std::int64_t NewLocal() { return last_local_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void SetLocal(std::int64_t local_timer, std::int64_t unix_ms, Task task);

  // --- outside of transactions ---

  // Every timer of the cluster, those of other servers as they have saved them. The visitor returns
  // false to stop; it may run procedures, for example to resume those that are parked. Returns how
  // many were given. There is no serial_id, and no server_id of what Zeze 1.6 has planned.
  Result<std::size_t> Walk(FunctionRef<bool(const TimerInfo& timer)> visit);

  // Everything that was there at the start, or has been taken over, is armed.
  // Throws UsageError before Start.
  bool AwaitLoaded(std::chrono::nanoseconds patience);

  // What the service manager asks for, and operators may: a server that is gone, whose root has
  // that serial. Waits for up to `patience`; goes on trying after that.
  registry::TakeOver TakeOver(std::int32_t server_id, std::int64_t serial,
                              std::chrono::nanoseconds patience);

  TimersStatistics statistics() const;

  // --- for what is built on timers ---

  bool started() const { return application_ != nullptr; }
  Application& application() const { return *application_; }  // Once it has started.
  std::int64_t UnixNow() const { return alarms_->UnixNow(); }
  const TimersOptions& options() const { return options_; }
  // The wall clock was set back: timers that are planned by it may be far away now. Called on a
  // thread of the timers; false: not now, later again. Before Start.
  void OnSetBack(std::function<bool()> heal) { on_set_back_.push_back(std::move(heal)); }
  // Begins with '@'; no other in the cluster gets the same.
  std::string NewTimerId(Transaction& tx);
  // Of the registration (TimerInfo); 0: there is none. Other timers that run do not change it.
  std::int64_t SerialIdOf(Transaction& tx, const std::string& id);
  static TimerInfo InfoOf(const std::string& id, const TimerBean& timer, std::int32_t server_id,
                          std::int64_t serial_id);

  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;

 private:
  Result<void> CheckOptions() const;
  void CheckStarted() const;
  void CheckLocal(const Task& task) const;
  using Index = Zeze::Builtin::Timer::BIndex;

  bool Run(ProcedureName name, ProcedureBody body);

  Result<TimerBean> Plan(const TimerSpec& spec) const;
  void Insert(Transaction& tx, const std::string& id, TimerBean timer);
  // Replaces the stored timer. Returns its index, which may have changed.
  Index Store(Transaction& tx, const std::string& id, Index index, TimerBean timer);
  void Remove(Transaction& tx, const std::string& id, const Index& index);
  void ArmAfterCommit(Transaction& tx, const std::string& id, const Index& index,
                      const TimerBean& timer);
  static Alarm AlarmOf(const std::string& id, const Index& index, const TimerBean& timer);

  // timers_fire.cc
  void RunAlarm(Alarm& alarm);
  void Fetch(const std::deque<Alarm>& batch);
  void Fire(Alarm& alarm);
  // The run of one handler. Timers of a node are changed all the time, by others that run, are
  // scheduled or canceled. So the timer is looked at before its handler without its node becoming
  // a read of the transaction; it is compared, and goes on, in a last part of the transaction,
  // which alone is repeated if the node changes meanwhile (Transaction::EndWith).
  struct Firing {
    const Alarm& alarm;
    TimerBean stored = {};  // As it was found.
    TimerBean timer = {};   // As it runs: misfires are left out.
    std::optional<TimerContext> context = std::nullopt;
    std::int64_t code = 0;  // Of its handler.
    // The timer was not any more as it was found: its run does not count. The second time the node
    // is read as everything else is.
    int refuted = 0;
  };
  std::int64_t FireIn(Transaction& tx, Firing& firing);
  const TimerBean* Stored(Transaction& tx, const std::string& id, const Index& index);
  bool LookUp(Transaction& tx, const Index& index, std::int64_t now, Firing& firing);
  bool IsToRun(TimerBean& timer, const Alarm& alarm, std::int64_t now) const;
  bool LookAgain(Transaction& tx, const Index& index, std::int64_t now, Firing& firing);
  void PutOff(Alarm alarm);
  bool LeaveOutMissed(Transaction& tx, const std::string& id, const Index& index, TimerBean& timer,
                      std::int64_t now);
  std::int64_t FinishFiring(Transaction& tx, Firing& firing);
  void NoteFailure(Transaction& tx, const std::string& id, std::int64_t serial_id, TimerBean& timer,
                   std::int64_t code);

  // timers_load.cc
  bool Join();
  void Load(TimerRing::Part part, PlannedBy by);
  bool LoadNode(std::int64_t& node_id, const TimerRing::Part& part, PlannedBy by);
  std::int64_t LoadNodeIn(Transaction& tx, std::int64_t node_id, PlannedBy by, bool& empty,
                          std::vector<std::pair<Alarm, std::int64_t>>& alarms);
  bool LoadTimer(Transaction& tx, std::int64_t node_id, const std::string& id, TimerBean timer,
                 PlannedBy by, std::vector<std::pair<Alarm, std::int64_t>>& alarms);
  // The timers of a ring that this server can run.
  enum class Able : std::uint8_t { kNone, kSome, kAll };
  bool LookAtRing(std::int32_t server_id, std::int64_t serial, TakeOverChoice& choice, Able& able);
  bool TakeOverRing(std::int32_t server_id, std::int64_t serial, TakeOverChoice& choice);
  bool TakeOverSome(std::int32_t server_id, std::int64_t serial, TakeOverChoice& choice);
  // Goes through the ring of another server, moves the timers that this server can run and that are
  // `wanted`, and counts what it leaves.
  using Wanted = FunctionRef<bool(const TimerBean& timer, const Index& index)>;
  bool MoveRing(std::int32_t server_id, TimerRing::Part part, bool left_only, Wanted wanted,
                std::size_t& left);
  void FetchHome();
  void JoinAgain();
  void LoadAll();
  void RegisterOffline();
  void AnnounceOthers();

  AutoKeys& auto_keys_;
  const TimersOptions options_;
  std::map<std::string, TimerHandler, std::less<>> handlers_;  // Fixed after Start.
  std::vector<std::function<bool()>> on_set_back_;

  Application* application_ = nullptr;
  std::int32_t server_id_ = 0;
  std::int64_t version_ = 0;
  AutoKey* timer_ids_ = nullptr;
  AutoKey* serial_ids_ = nullptr;
  std::unique_ptr<TimerRing> ring_;
  std::unique_ptr<Errands> errands_;
  std::unique_ptr<DueRunner> runner_;
  std::unique_ptr<AlarmClock> alarms_;  // Ends before what it tells.
  std::atomic<bool> joining_ = false;
  std::atomic<std::int64_t> last_local_ = 0;

  // Ids whose records have been asked for, so that each new timer does not ask.
  Mutex ids_mutex_;
  std::vector<std::string> ids_ ZEZE_GUARDED_BY(ids_mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;

  std::atomic<std::uint64_t> fired_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::atomic<std::uint64_t> parked_ = 0;
  std::atomic<std::uint64_t> put_off_ = 0;
  std::atomic<std::uint64_t> taken_over_ = 0;
};

}  // namespace zeze
