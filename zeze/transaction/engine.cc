#include "zeze/transaction/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/thread_pool.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/cache.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/durable_actions.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record_loader.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

using internal::Context;
using internal::ContextLease;
using internal::ContextStatistics;

Engine::Engine(EngineOptions options)
    : options_(std::move(options)),
      contexts_(std::make_shared<internal::ContextPool>(reclaimer_, versions_)),
      parts_{.tables = tables_,
             .contexts = contexts_,
             .versions = versions_,
             .clock = *options_.clock,
             .coherence = options_.coherence},
      loader_(parts_, options_.durable_wait_max),
      durable_actions_(options_.after_durable_max) {}

Engine::~Engine() {
  if (state_ == State::kRunning || state_ == State::kStopping) {
    if (const Result<void> stopped = Stop(); !stopped.ok()) {
      ZEZE_LOG_ERROR("stopped without saving: {}", stopped.error().message());
    }
  }
  StopThreads();
  durable_actions_.Stop(ThreadPool::Pending::kDiscard);
  cache_.reset();
  for (TableBase* table : tables_) table->Detach();
}

Result<void> Engine::AddTable(TableBase& table, TableOptions options) {
  if (state_ != State::kNew || table.attached()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("table {} cannot be added: {}", table.name(),
                             table.attached() ? "it belongs to an engine already"
                                              : "the engine has started"));
  }
  table.Configure(std::move(options));
  for (const TableBase* other : tables_) {
    if (other->id() != table.id() && other->name() != table.name()) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("table {} (id {}) has the {} of table {}: rename one of them or give "
                             "it an id of its own",
                             table.name(), table.id(), other->id() == table.id() ? "id" : "name",
                             other->name()));
  }
  constexpr std::size_t kTablesMax = 65535;
  if (tables_.size() >= kTablesMax) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("table {} cannot be added: an engine has at most {} tables",
                             table.name(), kTablesMax));
  }
  tables_.push_back(&table);
  return {};
}

std::vector<StoredTable> Engine::StoredTables() const {
  std::vector<StoredTable> stored;
  for (const TableBase* table : tables_) {
    if (!table->memory()) stored.push_back({.name = table->name(), .id = table->id()});
  }
  return stored;
}

TableBase* Engine::FindTable(std::string_view storage_name) const {
  for (TableBase* table : tables_) {
    if (table->name() == storage_name) return table;
  }
  return nullptr;
}

Result<void> Engine::Start() {
  if (state_ != State::kNew) {
    return Error(ErrorCode::kInvalidArgument, "an engine can be started only once");
  }
  std::vector<StorageTable*> stored(tables_.size());
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i]->memory() || options_.storage == nullptr) continue;
    Result<StorageTable*> opened = options_.storage->OpenTable(tables_[i]->name());
    if (!opened.ok()) return opened.error();
    stored[i] = opened.value();
  }
  const bool groups = options_.storage != nullptr &&
                      (options_.coherence != nullptr ||
                       std::any_of(tables_.begin(), tables_.end(), [](const TableBase* table) {
                         return table->durable_at_commit();
                       }));
  checkpoint_ = std::make_unique<Checkpoint>(
      parts_, durable_actions_,
      Checkpoint::Options{.storage = options_.storage,
                          .groups = groups,
                          .sync = options_.sync,
                          .period = options_.checkpoint_period,
                          .dirty_records_max = options_.dirty_records_max,
                          .dirty_bytes_max = options_.dirty_bytes_max,
                          .room_wait_max = options_.room_wait_max,
                          .durable_wait_max = options_.durable_wait_max,
                          .on_step = options_.on_checkpoint_step,
                          .on_saved = [this] { cache_->WakeCleaner(); },
                          .on_fenced = options_.on_fenced});
  cache_ = std::make_unique<internal::Cache>(parts_, *checkpoint_);
  loader_.Start(*checkpoint_);
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    tables_[i]->Attach(*this, static_cast<std::uint16_t>(i), stored[i],
                       stored[i] != nullptr || groups);
    if (stored[i] != nullptr) tables_[i]->SetLimits(options_.storage->limits());
  }
  state_ = State::kRunning;
  checkpoint_->Start();
  cache_->Start();
  return {};
}

const char* Engine::RunningHere() const {
  if (const Transaction* call = Transaction::CallHere(*this)) return call->procedure_name();
  return durable_actions_.OnOwnThread() ? "AfterDurable" : nullptr;
}

Result<void> Engine::Stop() {
  if (durable_actions_.OnOwnThread()) {
    return Error(ErrorCode::kInvalidArgument,
                 "Stop was called in an AfterDurable action and would wait for it: let another "
                 "thread stop the engine");
  }
  if (const char* procedure = RunningHere()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("Stop was called inside procedure {} (its body, an action or a "
                             "listener) and would wait for it for ever: call it on another thread",
                             procedure));
  }
  if (state_ == State::kNew) return {};
  State running = State::kRunning;
  state_.compare_exchange_strong(running, State::kStopping);
  AwaitIdle();
  if (state_ == State::kStopped) return {};  // Stopped before, or abandoned.
  if (Result<void> saved = checkpoint_->FlushAll(); !saved.ok()) return saved.error();
  durable_actions_.Stop(ThreadPool::Pending::kRun);
  StopThreads();
  state_ = State::kStopped;
  return {};
}

void Engine::Abandon() {
  state_ = State::kStopped;
  if (checkpoint_ != nullptr) checkpoint_->Abandon();
  StopThreads();
  if (!durable_actions_.OnOwnThread()) durable_actions_.Stop(ThreadPool::Pending::kDiscard);
}

// The cache first: nothing waits for its room then, however long the storage keeps the checkpoint.
void Engine::StopThreads() {
  if (cache_ == nullptr) return;
  cache_->Stop();
  checkpoint_->Stop();
}

bool Engine::StopWaitsForThisThread() const {
  return state_ == State::kStopping && RunningHere() != nullptr;
}

void Engine::AwaitIdle() {
  auto report_at = options_.clock->Now() + std::chrono::seconds(10);
  while (!reclaimer_.Idle()) {
    std::this_thread::yield();
    if (options_.clock->Now() < report_at) continue;
    std::string names;
    for (const Activity& activity : RunningActivities()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", activity.inner);
    }
    ZEZE_LOG_WARNING("stop waits for procedures and reads that are still running: {}", names);
    report_at += std::chrono::seconds(10);
  }
}

// --- procedures -------------------------------------------------------------------------------

std::int64_t Engine::Call(ProcedureName name, ProcedureBody body, TransactionLevel level,
                          std::string* cause) {
  if (Transaction* around = Transaction::BodyHere(*this)) [[unlikely]]
    return around->Call(name, body, cause);
  return CallApart(name, body, level, cause);
}

std::int64_t Engine::CallApart(ProcedureName name, ProcedureBody body, TransactionLevel level,
                               std::string* cause) {
  const ContextLease context(contexts_);
  // Enter before the state is looked at: Stop sets it and then waits for everybody inside.
  context->participant.Enter();
  if (state_.load(std::memory_order_seq_cst) != State::kRunning) {
    context->participant.Leave();
    if (cause != nullptr) *cause = "the engine has not started, or stops";
    return result_code::kClosed;
  }
  if (context->transaction == nullptr) {
    context->transaction = std::make_unique<Transaction>(*this, *context);
  }
  const ScopedActivity activity(name.c_str());
  const std::int64_t code = context->transaction->RunProcedure(name, body, level, cause);
  if (context->room > checkpoint_->room_kept() || context->room_granted) [[unlikely]]
    checkpoint_->GiveRoom(*context);
  context->participant.Leave();
  return code;
}

// A server that is cut off fails thousands of times a second: some lines are enough.
void Engine::ReportFailure(const char* procedure, const std::string& why) {
  constexpr int kLinesPerSecond = 20;
  const auto second = options_.clock->Now() / std::chrono::seconds(1);
  if (failure_second_.exchange(second, std::memory_order_relaxed) != second) failure_lines_ = 0;
  if (failure_lines_.fetch_add(1, std::memory_order_relaxed) >= kLinesPerSecond) return;
  ZEZE_LOG_ERROR("procedure {} failed: {}", procedure, why);
}

Result<void> Engine::CheckpointNow() {
  if (checkpoint_ == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 "nothing can be saved before the start: call Start first");
  }
  return checkpoint_->FlushAll();
}

Result<void> Engine::Reduce(std::string_view global_key, Right to) {
  return loader_.Reduce(global_key, to);
}

void Engine::ReduceThen(std::string_view global_key, Right to, Task saved) {
  loader_.ReduceThen(global_key, to, std::move(saved));
}

void Engine::ForEachRight(FunctionRef<void(std::string_view global_key, Right right)> visit) {
  loader_.ForEachRight(visit);
}

EngineStatistics Engine::statistics() {
  EngineStatistics sum;
  contexts_->ForEach([&sum](Context& context) {
    const ContextStatistics& one = context.statistics;
    sum.commits += one.commits.load(std::memory_order_relaxed);
    sum.read_only += one.read_only.load(std::memory_order_relaxed);
    sum.rollbacks += one.rollbacks.load(std::memory_order_relaxed);
    sum.conflicts += one.conflicts.load(std::memory_order_relaxed);
    sum.accesses += one.accesses.load(std::memory_order_relaxed);
    sum.loads += one.loads.load(std::memory_order_relaxed);
  });
  if (cache_ != nullptr) sum.cached_records = cache_->size();
  sum.retired_values = reclaimer_.RetiredCountApprox();
  if (checkpoint_ != nullptr) sum.checkpoint = checkpoint_->statistics();
  return sum;
}

}  // namespace zeze
