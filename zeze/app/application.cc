#include "zeze/app/application.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "zeze/app/incarnation.h"
#include "zeze/app/internal/check_options.h"
#include "zeze/app/internal/stop_report.h"
#include "zeze/app/liveness.h"
#include "zeze/app/module.h"
#include "zeze/app/schema_guard.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/scheduler.h"
#include "zeze/base/shell_command.h"
#include "zeze/base/stop_signals.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"
#include "zeze/base/watchdog.h"
#include "zeze/config/config.h"
#include "zeze/global/service/global_client.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/tls.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/table_base.h"
#include "zeze/xml/diagnostics.h"

namespace zeze {

namespace {

std::size_t CoreCount() {
  return std::max(1U, std::thread::hardware_concurrency());
}

// What the exception in hand says.
std::string ThrownText() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is not a std::exception";
  }
}

// A submitted procedure. Told exactly once how it ended: by running it, or, if its task is dropped
// by a stop, with kClosed.
class Submission {
 public:
  Submission(Engine& engine, ProcedureName name, OwnedProcedure procedure, Completion done)
      : engine_(&engine), name_(name), procedure_(std::move(procedure)), done_(std::move(done)) {}
  Submission(Submission&& other) noexcept = default;
  Submission& operator=(Submission&&) = delete;
  ~Submission() {
    if (!done_) return;
    try {
      done_(result_code::kClosed);
    } catch (...) {
      ZEZE_LOG_ERROR("the completion of procedure {} threw: {}", name_.c_str(), ThrownText());
    }
  }

  void operator()() {
    const std::int64_t code = engine_->Call(name_, procedure_);
    if (Completion done = std::exchange(done_, nullptr)) done(code);
  }

 private:
  Engine* engine_;
  ProcedureName name_;
  OwnedProcedure procedure_;
  Completion done_;
};

[[noreturn]] void EndFenced(const std::string& why) {
  ZEZE_LOG_CRITICAL("this process is fenced and ends without saving: {}", why);
  std::_Exit(kFencedExitCode);
}

}  // namespace

// The agent with threads of its own: neither long lists nor slow callbacks may hold up what is said
// to Global, or procedures. Of four threads one is for lists and loads, the others take over.
struct Application::Registry {
  explicit Registry(const registry::RegistryAgentOptions& options)
      : io({.name = "registry-io"}),
        callbacks({.name = "registry", .thread_count = 4}),
        agent(io, callbacks, options) {}

  IoThreads io;
  ThreadPool callbacks;
  registry::RegistryAgent agent;
};

Result<std::unique_ptr<Application>> Application::Open(std::string name,
                                                       ApplicationOptions options) {
  if (!options.on_fenced) options.on_fenced = EndFenced;
  if (Result<void> fits = internal::CheckApplicationOptions(options); !fits.ok()) {
    return fits.error();
  }
  Result<std::unique_ptr<Storage>> opened = OpenStorage(options.storage);
  if (!opened.ok()) return opened.error();
  TlsContextPtr tls;
  if (options.global_tls) {
    Result<TlsContextPtr> made = TlsContext::ForClient(*options.global_tls);
    if (!made.ok()) return made.error();
    tls = std::move(made).value();
  }
  return std::unique_ptr<Application>(new Application(std::move(name), std::move(options),
                                                      std::move(opened).value(), std::move(tls)));
}

Application::Application(std::string name, ApplicationOptions options,
                         std::unique_ptr<Storage> storage, TlsContextPtr global_tls)
    : name_(std::move(name)), options_(std::move(options)), storage_(std::move(storage)) {
  // A database that others can reach is fenced, Global or not.
  if (FindStorageDriver(options_.storage.url).value().shared) {
    io_ = std::make_unique<IoThreads>(IoThreads::Options{.name = "global-io"});
    global::GlobalClientOptions client{
        .server_id = options_.server_id,
        .holder = fmt::format("{} on {}, pid {}", name_, HostName(), getpid()),
        .lease = {.duration = options_.lease},
        .clock = options_.clock,
        .on_fenced = options_.on_fenced};
    for (const ApplicationOptions::Global& one : options_.globals) {
      client.shards.push_back({.host = one.host, .port = one.port});
    }
    client.tls = std::move(global_tls);
    client.tls_name = options_.global_tls_name;
    client.allow_unfenced_global = options_.allow_unfenced_global;
    Incarnation incarnation = IncarnationFromEnvironment();
    client.incarnation = std::move(incarnation.own);
    client.ended = std::move(incarnation.ended);
    client_ = std::make_unique<global::GlobalClient>(*io_, *storage_->fence(), std::move(client));
  }
  engine_ = std::make_unique<Engine>(EngineOptions{.storage = storage_.get(),
                                                   .coherence = client_.get(),
                                                   .clock = options_.clock,
                                                   .checkpoint_period = options_.checkpoint_period,
                                                   .attempts_max = options_.attempts_max,
                                                   .dirty_records_max = options_.dirty_records_max,
                                                   .dirty_bytes_max = options_.dirty_bytes_max,
                                                   .room_wait_max = options_.room_wait_max,
                                                   .durable_wait_max = options_.durable_wait_max,
                                                   .on_fenced = options_.on_fenced});
  if (options_.liveness.period.count() > 0) {
    liveness_ = std::make_unique<LivenessProbe>(*engine_, options_.liveness, *options_.clock);
  }
  if (options_.registry) registry_ = std::make_unique<Registry>(*options_.registry);
}

Application::~Application() {
  if (const Result<void> stopped = StopWithin(std::chrono::nanoseconds(0)); !stopped.ok()) {
    ZEZE_LOG_ERROR("{} did not stop in order: {}", name_, stopped.error().message());
  }
  registry_.reset();  // Without a goodbye, if not everything is saved.
  if (liveness_ != nullptr) liveness_->Stop();
  // Its sessions use the engine, which ends first.
  if (client_ != nullptr) client_->Abandon();
}

bool Application::unfenced() const {
  return client_ != nullptr && client_->unfenced();
}

void Application::AddModule(Module& module) {
  ZEZE_REQUIRE(!started_, fmt::format("module {} was added after the start", module.name()));
  modules_.push_back(&module);
  for (TableBase* table : module.Tables()) AddTable(*table);
}

void Application::AddTable(TableBase& table) {
  ZEZE_REQUIRE(!started_, fmt::format("table {} was added after the start", table.name()));
  tables_.push_back(&table);
}

TableOptions Application::OptionsOf(const TableBase& table) const {
  TableOptions options;
  const std::string suffix = SuffixOf(table);
  auto at = options_.tables.find(std::string(table.descriptor().name) + suffix);
  if (at == options_.tables.end()) at = options_.tables.find("");
  if (at != options_.tables.end()) {
    options = at->second;
  } else if (options_.config != nullptr) {
    const TableConfig& config =
        options_.config->Table(std::string(table.descriptor().name) + suffix);
    options.cache_capacity = config.cache_capacity;
    options.durable_at_commit = config.durable_at_commit;
  }
  options.suffix = suffix;
  return options;
}

// As the peer's ordinary projects do it, so that both find the same table; behind a "__" that the
// schema asks for, as its components do it.
std::string Application::SuffixOf(const TableBase& table) const {
  std::string_view suffix = table.descriptor().suffix;
  const bool underscored = suffix.starts_with("__@");
  if (underscored) suffix.remove_prefix(2);
  if (suffix == "@ServerId") {
    return fmt::format("{}{}", underscored ? "__" : "", options_.server_id);
  }
  if (suffix == "@AppMainVersion") {
    return options_.app_main_version == 0 ? "" : fmt::format("__{}", options_.app_main_version);
  }
  return std::string(table.descriptor().suffix);
}

Result<void> Application::CheckOptions() const {
  const auto refuse = [](const char* option, auto value, const char* expected) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("ApplicationOptions::{} is {}: set {}", option, value, expected));
  };
  constexpr std::size_t kLanesMax = std::size_t{1} << 20;
  if (options_.worker_queue_max == 0) {
    return refuse("worker_queue_max", options_.worker_queue_max, "at least 1");
  }
  if (options_.lane_count == 0 || options_.lane_count > kLanesMax) {
    return refuse("lane_count", options_.lane_count, "1 to 1048576");
  }
  if (options_.attempts_max < 1) {
    return refuse("attempts_max", options_.attempts_max, "at least 1");
  }
  if (options_.checkpoint_period.count() < 0) {
    return refuse("checkpoint_period", options_.checkpoint_period.count(),
                  "nanoseconds, or 0 to save on demand only");
  }
  return {};
}

Result<void> Application::CheckTableOptions() const {
  std::vector<std::string> names;
  names.reserve(tables_.size());
  for (const TableBase* table : tables_) {
    names.push_back(std::string(table->descriptor().name) + SuffixOf(*table));
  }
  for (const auto& [name, options] : options_.tables) {
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string suggestion = xml::DidYouMean(name, views);
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("ApplicationOptions::tables has options for \"{}\", but no table is "
                             "stored under this name{}{}",
                             name, suggestion.empty() ? "" : "; ", suggestion));
  }
  return {};
}

Result<void> Application::ResolveTableNames() {
  if (options_.config == nullptr) return {};
  std::vector<std::string> names;
  names.reserve(tables_.size());
  for (const TableBase* table : tables_) {
    names.push_back(std::string(table->descriptor().name) + SuffixOf(*table));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  xml::Diagnostics diagnostics;
  options_.config->ResolveTables(views, diagnostics);
  if (diagnostics.has_errors()) {
    return Error(ErrorCode::kInvalidArgument, diagnostics.Format());
  }
  if (diagnostics.warning_count() > 0) ZEZE_LOG_WARNING("{}", diagnostics.Format());
  return {};
}

Result<void> Application::Start() {
  if (started_) {
    return Error(ErrorCode::kInvalidArgument, "an application can be started only once");
  }
  if (Result<void> good = CheckOptions(); !good.ok()) return good;
  if (Result<void> named = CheckTableOptions(); !named.ok()) return named;
  if (Result<void> resolved = ResolveTableNames(); !resolved.ok()) return resolved;
  for (TableBase* table : tables_) {
    if (Result<void> added = engine_->AddTable(*table, OptionsOf(*table)); !added.ok()) {
      return added;
    }
  }
  if (Result<void> joined = JoinCluster(); !joined.ok()) return joined;
  Result<void> running;
  try {
    running = StartParts();
  } catch (...) {
    running = Error(ErrorCode::kUnavailable, ThrownText());
    started_ = started_ || engine_->running();
  }
  if (running.ok() || !started_) return running;
  if (const Result<void> stopped = StopWithin(std::chrono::nanoseconds(0)); !stopped.ok()) {
    ZEZE_LOG_ERROR("{} did not start, nor stop in order: {}", name_, stopped.error().message());
  }
  return running;
}

// A schema that does not fit is refused before anything is raised, so that nobody is fenced by it.
Result<void> Application::JoinCluster() {
  SchemaOptions schema{.reuse_variable_ids = options_.reuse_variable_ids};
  if (client_ == nullptr) return CheckAndSaveSchema(*storage_, tables_, schema);
  const Result<std::string> change = ExclusiveSchemaChange(*storage_, tables_, schema);
  if (!change.ok()) return change.error();
  Result<void> joined = client_->Start(*engine_, change.value());
  if (!joined.ok()) return joined;
  schema.exclusive = !change.value().empty();
  schema.still_exclusive = [this] { return storage_->fence()->Renew(); };
  if (Result<void> saved = CheckAndSaveSchema(*storage_, tables_, schema); !saved.ok()) {
    return saved;
  }
  return schema.exclusive ? client_->Share() : Result<void>();
}

std::unique_ptr<ThreadPool> Application::MakePool(ThreadPool::Options options,
                                                  const char* setting) {
  try {
    return std::make_unique<ThreadPool>(std::move(options));
  } catch (const std::system_error& error) {
    throw std::runtime_error(fmt::format("{}: set {} to fewer threads", error.what(), setting));
  }
}

void Application::StartPools() {
  const std::size_t cores = CoreCount();
  critical_ =
      MakePool({.name = "critical",
                .thread_count = options_.critical_threads != 0 ? options_.critical_threads : 2},
               "CriticalThreads (ApplicationOptions::critical_threads)");
  workers_ =
      MakePool({.name = "worker",
                .thread_count = options_.worker_threads != 0 ? options_.worker_threads : 30 * cores,
                .queue_length_max = options_.worker_queue_max},
               "WorkerThreads (ApplicationOptions::worker_threads)");
  one_by_one_ = std::make_unique<TaskOneByOneByKey>(
      *workers_, TaskOneByOneByKey::Options{.lane_count = options_.lane_count});
  if (options_.scheduled_threads != 0) {
    scheduled_ = MakePool({.name = "scheduled", .thread_count = options_.scheduled_threads},
                          "ScheduledThreads (ApplicationOptions::scheduled_threads)");
  }
  Executor& scheduled = scheduled_ != nullptr ? *scheduled_ : *workers_;
  scheduler_ = std::make_unique<Scheduler>(scheduled, Scheduler::Options{.clock = options_.clock});
  watchdog_ = std::make_unique<Watchdog>(
      Watchdog::Options{.limit = options_.long_procedure, .clock = options_.clock});
}

// Stop undoes it from the moment that started_ is set, wherever it ends.
Result<void> Application::StartParts() {
  if (Result<void> started = engine_->Start(); !started.ok()) return started;
  started_ = true;
  unsaved_ = std::make_unique<StopSignals::Unsaved>([this] { return DescribeUnsaved(); });
  StartPools();
  if (Result<void> registry = StartRegistry(); !registry.ok()) return registry;
  if (Result<void> modules = StartModules(); !modules.ok()) return modules;
  if (liveness_ != nullptr) return liveness_->Start(*workers_);
  if (LivenessProbe::IsExpected()) {
    ZEZE_LOG_WARNING(
        "LivenessPeriod is 0: the daemon that started {} hears nothing of it and will kill it, "
        "unless the program itself writes to ZEZE_LIVENESS_FD",
        name_);
  }
  return {};
}

LivenessStatus Application::liveness() const {
  if (liveness_ != nullptr) return liveness_->status();
  return {.state = Liveness::kUnknown, .why = "there is no probe: LivenessPeriod is 0"};
}

registry::RegistryAgent* Application::registry() {
  return registry_ == nullptr ? nullptr : &registry_->agent;
}

Result<void> Application::StartRegistry() {
  if (registry_ == nullptr) return {};
  return registry_->agent.Start();
}

Result<void> Application::StartModules() {
  for (Module* module : modules_) {
    Result<void> started;
    try {
      started = module->Start(*this);
    } catch (...) {
      started = Error(ErrorCode::kUnavailable, "it threw: " + ThrownText());
    }
    if (!started.ok()) {
      return Error(started.error().code(), fmt::format("module {} did not start: {}",
                                                       module->name(), started.error().message()));
    }
    ++started_modules_;
  }
  return {};
}

void Application::StopModules() {
  while (started_modules_ > 0) {
    Module& module = *modules_[--started_modules_];
    try {
      module.Stop(*this);
    } catch (...) {
      Error failure(ErrorCode::kUnavailable,
                    fmt::format("module {} threw in Stop: {}", module.name(), ThrownText()));
      ZEZE_LOG_ERROR("{}; the others are stopped and everything is saved", failure.message());
      if (!module_failure_) module_failure_ = std::move(failure);
    }
  }
}

Result<void> Application::CheckStopHere() const {
  std::string place;
  if (const char* procedure = engine_->RunningHere()) {
    place = fmt::format("inside procedure {} (its body, an action or a listener)", procedure);
  } else if (IoThreads::IsIoThread()) {
    place = "on an io thread";
  } else {
    ThreadPool* const callbacks = registry_ == nullptr ? nullptr : &registry_->callbacks;
    for (const ThreadPool* pool : {workers_.get(), critical_.get(), scheduled_.get(), callbacks}) {
      if (pool != nullptr && pool->OnOwnThread()) place = "by a task of pool " + pool->name();
    }
  }
  if (place.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("Stop was called {} and would wait for it for ever: call it on a thread "
                           "of the program, as main",
                           place));
}

Result<void> Application::Stop() {
  return StopWithin(options_.stop_wait_max);
}

std::string Application::DescribeUnsaved() const {
  const auto statistics = engine_->statistics().checkpoint;
  return UnsavedText(statistics.dirty_records, statistics.dirty_bytes);
}

// A database that is away may come back; what it refuses for good stays refused.
Result<void> Application::SaveEverything(StopReport& report, std::chrono::nanoseconds wait) {
  constexpr auto kPause = std::chrono::milliseconds(200);
  const auto deadline = options_.clock->Now() + wait;
  for (;;) {
    report.Enter("until running procedures have ended and everything is saved");
    Result<void> saved = engine_->Stop();
    if (saved.ok()) return saved;
    const bool again = saved.error().code() == ErrorCode::kUnavailable ||
                       saved.error().code() == ErrorCode::kUnknownOutcome;
    if (!again || options_.clock->Now() + kPause >= deadline) return saved;
    report.Failed(saved.error().message());
    options_.clock->SleepFor(kPause);
  }
}

Result<void> Application::StopWithin(std::chrono::nanoseconds wait) {
  if (stopped_ || !started_) return {};
  if (Result<void> here = CheckStopHere(); !here.ok()) return here;
  StopReport report(name_, [this] { return DescribeUnsaved(); });
  report.Enter("for tasks that are running");
  if (liveness_ != nullptr) liveness_->BeginStop();
  // A start that failed has only some of them.
  if (scheduler_ != nullptr) scheduler_->Shutdown();
  if (scheduled_ != nullptr) scheduled_->Shutdown(ThreadPool::Pending::kDiscard);
  if (one_by_one_ != nullptr) one_by_one_->Shutdown(TaskOneByOneByKey::Pending::kDiscard);
  if (workers_ != nullptr) workers_->Shutdown(ThreadPool::Pending::kDiscard);
  for (const auto& pool : module_pools_) pool->Shutdown(ThreadPool::Pending::kDiscard);
  if (registry_ != nullptr) registry_->agent.StopCallbacks();
  report.Enter("for its modules");
  StopModules();
  if (Result<void> saved = SaveEverything(report, wait); !saved.ok()) return saved;
  unsaved_.reset();
  report.Enter("for its goodbye to the database and to Global");
  if (client_ != nullptr) {
    if (Result<void> left = client_->Stop(); !left.ok()) return left;
  }
  // Only now: a process that dies before everything is saved must be taken over.
  if (registry_ != nullptr) registry_->agent.Stop();
  if (critical_ != nullptr) critical_->Shutdown(ThreadPool::Pending::kRun);
  watchdog_.reset();
  if (liveness_ != nullptr) liveness_->Stop();
  stopped_ = true;
  if (Result<void> closed = storage_->Close(); !closed.ok()) return closed;
  if (module_failure_) return *module_failure_;
  return {};
}

ThreadPool& Application::AddPool(ThreadPool::Options options) {
  return *module_pools_.emplace_back(std::make_unique<ThreadPool>(std::move(options)));
}

Task Application::MakeTask(ProcedureName name, OwnedProcedure procedure, Completion done) {
  ZEZE_REQUIRE(procedure != nullptr,
               fmt::format("procedure {} was submitted without a body", name.c_str()));
  return {name.c_str(), Submission(*engine_, name, std::move(procedure), std::move(done))};
}

Result<void> Application::Submit(ProcedureName name, OwnedProcedure procedure, Completion done) {
  Task task = MakeTask(name, std::move(procedure), std::move(done));
  if (workers_ == nullptr) return NotStarted(name);
  return workers_->TryPost(std::move(task));
}

Error Application::NotStarted(ProcedureName name) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("procedure {} was submitted before the start: call Application::Start first",
                      name.c_str())};
}

}  // namespace zeze
