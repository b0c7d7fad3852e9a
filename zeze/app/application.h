// Application: a server process in one object: storage, tables, transactions, pools, modules.
//
//   ModuleGame game;                                  // Derives from the generated base.
//   auto config = zeze::Config::Load("zeze.xml");
//   auto opened = zeze::Application::Open("shop", zeze::OptionsFromConfig(config.value()).value());
//   zeze::Application& app = *opened.value();         // Ends before its modules.
//   app.AddModule(game);
//   if (auto started = app.Start(); !started.ok()) return Fail(started.error());
//   std::int64_t code = app.Call("buy", [&](zeze::Transaction& tx) { ... });
//   app.Stop();

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/app/liveness.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/scheduler.h"
#include "zeze/base/stop_signals.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"
#include "zeze/base/watchdog.h"
#include "zeze/net/tls.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

class Config;
class IoThreads;
class Module;
class StopReport;

namespace global {
class GlobalClient;
}  // namespace global

// How a process ends that has lost its rights: whoever starts it again should, at once.
inline constexpr int kFencedExitCode = 86;

struct ApplicationOptions {
  // Unique among the processes of a cluster.
  std::int32_t server_id = 0;
  // Appended to the names of tables with the suffix @AppMainVersion, unless it is 0.
  std::int32_t app_main_version = 0;

  // Of a database whose driver the program links.
  StorageAddress storage = {.url = "rocksdb:db"};

  // The shards of Global, in the same order on all servers. None: no other process may use the
  // database. Needs a database that several processes may share.
  struct Global {
    std::string host;
    std::uint16_t port = 5002;
  };
  std::vector<Global> globals = {};
  // How to speak with Global encrypted; absent: not encrypted. The certificate must be for
  // global_tls_name, or if that is empty for the host.
  std::optional<TlsOptions> global_tls = std::nullopt;
  std::string global_tls_name = {};
  // Work also under a Global of Zeze 1.6. It fences nobody: not all faults are safe (interop.md).
  bool allow_unfenced_global = false;
  // Cut off from the database it answers for so long at most; when it crashes, its records are out
  // of reach for so long. From 500 ms to 10 min; each server says its own to database and Global.
  std::chrono::nanoseconds lease = std::chrono::seconds(6);
  // This process has lost its rights for ever and must not save anything. Null: it says so and ends
  // with kFencedExitCode.
  std::function<void(const std::string& why)> on_fenced = nullptr;

  // Pools. 0: thirty for each core, because procedures may block; two; none, so that scheduled
  // tasks run on the workers.
  std::size_t worker_threads = 0;
  std::size_t critical_threads = 0;
  std::size_t scheduled_threads = 0;
  // Tasks that wait in the worker pool before more are refused.
  std::size_t worker_queue_max = 1 << 20;
  std::size_t lane_count = 1024;

  std::chrono::nanoseconds checkpoint_period = std::chrono::seconds(60);
  std::chrono::nanoseconds long_procedure = std::chrono::seconds(10);
  int attempts_max = 256;
  // As in EngineOptions.
  std::size_t dirty_records_max = 2'000'000;
  std::size_t dirty_bytes_max = std::size_t{512} << 20;
  std::chrono::nanoseconds room_wait_max = std::chrono::seconds(30);
  std::chrono::nanoseconds durable_wait_max = std::chrono::seconds(60);
  // How long Stop tries to save while the database is away; then it returns the error.
  std::chrono::nanoseconds stop_wait_max = std::chrono::minutes(5);

  // By storage name; the entry with the empty name is for all others. Stronger than `config`. Start
  // refuses a name that no table has.
  std::map<std::string, TableOptions, std::less<>> tables = {};
  // Where table options come from otherwise. Null: defaults.
  std::shared_ptr<Config> config = nullptr;

  // A deleted variable id may come back with the same or a wider type.
  bool reuse_variable_ids = true;

  // Where the service manager is, which modules use to find each other. Absent: there is none.
  std::optional<registry::RegistryAgentOptions> registry = std::nullopt;

  // The probe that runs transactions to see whether this process works.
  LivenessOptions liveness = {};

  Clock* clock = &SystemClock();
};

// What a configuration file says, checked: what this build cannot do is an error here.
Result<ApplicationOptions> OptionsFromConfig(const Config& config);

// Called with the result of a procedure that was submitted, on the worker that ran it.
using Completion = std::function<void(std::int64_t code)>;
using OwnedProcedure = std::function<std::int64_t(Transaction&)>;

// Thread-safe after Start.
class Application {
 public:
  // Opens the storage. Errors: the directory is in use, unreadable, damaged; each says what to do.
  static Result<std::unique_ptr<Application>> Open(std::string name, ApplicationOptions options);
  // Stops, if that was not done.
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // Before Start. Both must outlive the application.
  void AddModule(Module& module);
  void AddTable(TableBase& table);

  // Refuses an incompatible change of the stored schema, naming every problem, and a configuration
  // that differs from the cluster's in the database, naming both sides (a refused start fences
  // nobody); opens the tables; begins to connect to the service manager, without waiting for it;
  // starts modules in the order they were added. Errors name what cannot be: an option out of
  // range, more threads than the machine gives, a module that does not start or throws. What was
  // started is stopped again then. Once.
  Result<void> Start();

  // The orderly stop: refuses new procedures, drops queued ones (each is reported to its
  // completion with kClosed), waits for the running ones and for callbacks of the service manager,
  // stops modules in reverse order, saves everything, says goodbye to Global and to the service
  // manager, closes the storage. While the database is away it tries for stop_wait_max, and a line
  // in the log says every 5 s what it waits for, how much is unsaved, and how to end it. An error
  // says what could not be saved; there is no goodbye then.
  // An exception of a module's Stop holds nothing up: it is logged, the others are stopped,
  // everything is saved, and the error comes at the end.
  // Refused on a thread that it would wait for: inside a procedure, and on the application's own.
  Result<void> Stop();

  // Runs a procedure on the calling thread; inside the body of another one as a nested procedure of
  // that (Engine::Call).
  std::int64_t Call(ProcedureName name, ProcedureBody body,
                    TransactionLevel level = TransactionLevel::kSerializable,
                    std::string* cause = nullptr) {
    return engine_->Call(name, body, level, cause);
  }

  // The same as a transaction of its own, inside another procedure too (Engine::CallApart).
  std::int64_t CallApart(ProcedureName name, ProcedureBody body,
                         TransactionLevel level = TransactionLevel::kSerializable,
                         std::string* cause = nullptr) {
    return engine_->CallApart(name, body, level, cause);
  }

  // Runs a procedure on a worker. Errors: kOverloaded, kShuttingDown, kInvalidArgument before
  // Start; it will then not run, and its completion is called with kClosed. Throws UsageError if
  // there is no procedure.
  Result<void> Submit(ProcedureName name, OwnedProcedure procedure, Completion done = nullptr);

  // The same, one at a time and in order for each key.
  template <typename Key>
  Result<void> SubmitOneByOne(const Key& key, ProcedureName name, OwnedProcedure procedure,
                              Completion done = nullptr) {
    Task task = MakeTask(name, std::move(procedure), std::move(done));
    if (one_by_one_ == nullptr) return NotStarted(name);
    return one_by_one_->Post(key, std::move(task));
  }

  // Whether procedures run and are saved. Only after Start; unknown if there is no probe.
  LivenessStatus liveness() const;
  // Whether a Global that fences nobody grants rights here.
  bool unfenced() const;

  // This process's agent of the service manager; null if there is none. Modules register what they
  // offer in their Start. Callbacks run on threads of their own, and none after a module's Stop has
  // begun; until its Stop has ended everything else works, as ids do and taking services back.
  registry::RegistryAgent* registry();

  const std::string& name() const { return name_; }
  const ApplicationOptions& options() const { return options_; }
  Engine& engine() { return *engine_; }
  Storage& storage() { return *storage_; }
  // These four throw UsageError before Start.
  ThreadPool& workers() { return Started(workers_, "the workers"); }
  ThreadPool& critical() { return Started(critical_, "the critical pool"); }
  TaskOneByOneByKey& one_by_one() { return Started(one_by_one_, "the one-by-one queues"); }
  Scheduler& scheduler() { return Started(scheduler_, "the scheduler"); }

  // A pool for a module, in its Start. Stop shuts it down together with the workers, before any
  // module stops: tasks that have not started are discarded, running ones are waited for.
  ThreadPool& AddPool(ThreadPool::Options options);

 private:
  struct Registry;

  Application(std::string name, ApplicationOptions options, std::unique_ptr<Storage> storage,
              TlsContextPtr global_tls);

  Task MakeTask(ProcedureName name, OwnedProcedure procedure, Completion done);
  static Error NotStarted(ProcedureName name);
  template <typename Part>
  Part& Started(const std::unique_ptr<Part>& part, const char* what) {
    ZEZE_REQUIRE(part != nullptr, name_ + " has not started, so " + what +
                                      " cannot be used: call Application::Start first");
    return *part;
  }
  Result<void> CheckOptions() const;
  Result<void> JoinCluster();
  Result<void> StartParts();
  void StartPools();
  std::unique_ptr<ThreadPool> MakePool(ThreadPool::Options options, const char* setting);
  TableOptions OptionsOf(const TableBase& table) const;
  std::string SuffixOf(const TableBase& table) const;
  Result<void> CheckTableOptions() const;
  Result<void> ResolveTableNames();
  Result<void> StartRegistry();
  Result<void> StartModules();
  void StopModules();
  Result<void> StopWithin(std::chrono::nanoseconds wait);
  Result<void> SaveEverything(StopReport& report, std::chrono::nanoseconds wait);
  std::string DescribeUnsaved() const;
  Result<void> CheckStopHere() const;

  const std::string name_;
  const ApplicationOptions options_;
  std::unique_ptr<Storage> storage_;
  // Of a shared database; they outlive the engine.
  std::unique_ptr<IoThreads> io_;
  std::unique_ptr<global::GlobalClient> client_;
  std::vector<Module*> modules_;
  std::size_t started_modules_ = 0;
  std::vector<TableBase*> tables_;
  std::unique_ptr<LivenessProbe> liveness_;  // Outlives the engine, which has its table.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ThreadPool> critical_;
  std::unique_ptr<ThreadPool> workers_;
  std::unique_ptr<TaskOneByOneByKey> one_by_one_;
  std::unique_ptr<ThreadPool> scheduled_;  // Null: scheduled tasks run on the workers.
  std::vector<std::unique_ptr<ThreadPool>> module_pools_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<StopSignals::Unsaved> unsaved_;  // From the start until everything is saved.
  std::unique_ptr<Registry> registry_;             // Last: its callbacks use the rest.
  bool started_ = false;
  bool stopped_ = false;
  std::optional<Error> module_failure_;  // What the first module that failed to stop threw.
};

}  // namespace zeze
