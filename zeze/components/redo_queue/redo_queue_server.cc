#include "zeze/components/redo_queue/redo_queue_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/RedoQueue.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/config/config.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/service_settings.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/run_task.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using Zeze::Builtin::RedoQueue::BParkedKey;
using Zeze::Builtin::RedoQueue::BParkedTask;
using Zeze::Builtin::RedoQueue::BQueueTask;
using Zeze::Builtin::RedoQueue::BTaskId;

// Says to clients that they may send ahead, and that chains and saved ids are known.
constexpr std::int32_t kVersion = 1;

// A worker serves others in between.
constexpr int kBatchesInARow = 16;

// Absent, or of a server that does not compute it.
std::int64_t ChainOf(const BTaskId& last) {
  return last.ChainTaskId == last.TaskId ? last.Chain : 0;
}

}  // namespace

// One queue: requests wait here, and one worker at a time runs them.
struct RedoQueueServer::Queue {
  std::string name;
  std::map<std::int32_t, Handler> handlers;  // Fixed after Start.

  // Shared with what runs after saves, which may outlive the module.
  std::shared_ptr<std::atomic<std::int64_t>> saved_id =
      std::make_shared<std::atomic<std::int64_t>>(0);

  Mutex mutex;
  std::deque<Request<RunTask>> waiting ZEZE_GUARDED_BY(mutex);
  bool scheduled ZEZE_GUARDED_BY(mutex) = false;
  // Of the next task.
  std::int64_t failing_id ZEZE_GUARDED_BY(mutex) = 0;
  int failures ZEZE_GUARDED_BY(mutex) = 0;
  std::int64_t poison_id ZEZE_GUARDED_BY(mutex) = 0;  // Parked, or stands still with it.
  bool stopped ZEZE_GUARDED_BY(mutex) = false;
  std::set<RedoAlarmKind> raised ZEZE_GUARDED_BY(mutex);
  RedoServerStatus status ZEZE_GUARDED_BY(mutex);
};

struct RedoQueueServer::Outcome {
  std::int64_t code = 0;
  BRunTaskResult result = {};
  bool handler_failed = false;
  bool parked = false;
};

RedoQueueServer::RedoQueueServer(RedoQueueServerOptions options) : options_(std::move(options)) {}

RedoQueueServer::~RedoQueueServer() = default;

void RedoQueueServer::Register(std::string queue, std::int32_t type, RedoHandler handler,
                               RedoHandlerOptions options) {
  const auto place_of = [&] { return fmt::format("type {} of redo queue '{}'", type, queue); };
  ZEZE_REQUIRE(application_ == nullptr, place_of() +
                                            " was registered after the start: call Register before "
                                            "Application::Start");
  ZEZE_REQUIRE(!queue.empty(), "a redo queue needs a name");
  ZEZE_REQUIRE(handler != nullptr, "the handler for " + place_of() + " is empty");
  ZEZE_REQUIRE(options.attempts_max > 0, fmt::format("attempts_max of {} is {}: set at least 1",
                                                     place_of(), options.attempts_max));
  std::unique_ptr<Queue>& place = queues_[queue];
  if (place == nullptr) {
    place = std::make_unique<Queue>();
    place->name = std::move(queue);
  }
  const bool added = place->handlers.emplace(type, Handler{std::move(handler), options}).second;
  ZEZE_REQUIRE(added,
               fmt::format("type {} of redo queue '{}' was registered twice", type, place->name));
}

Result<void> RedoQueueServer::Start(Application& application) {
  if (options_.batch_max == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 "RedoQueueServerOptions::batch_max is 0, so no task would run: set at least 1");
  }
  ServiceOptions service{.name = std::string(kServiceName), .handshake = HandshakeOptions{}};
  std::vector<AcceptorOptions> acceptors = options_.acceptors;
  const Config* config = application.options().config.get();
  if (config != nullptr && config->services.contains(kServiceName)) {
    Result<ServiceSettings> settings =
        SettingsFromConfig(*config, kServiceName, ServiceKind::kHandshake);
    if (!settings.ok()) return settings.error();
    service = settings.value().options;
    if (acceptors.empty()) acceptors = settings.value().acceptors;
  }
  if (acceptors.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("redo queues have nowhere to listen: give RedoQueueServerOptions an "
                             "acceptor, or the configuration a <ServiceConf Name=\"{}\"> with one",
                             kServiceName));
  }
  service.inside = true;
  application_ = &application;
  io_ = std::make_unique<IoThreads>(
      IoThreads::Options{.name = "redo-server", .clock = application.options().clock});
  service_ = std::make_unique<Service>(*io_, std::move(service));
  service_->Handle<RunTask>([this](Request<RunTask> request) { Accept(std::move(request)); },
                            {.dispatch = Dispatch::kInline});
  for (const AcceptorOptions& acceptor : acceptors) {
    Result<std::shared_ptr<Acceptor>> listening = service_->Listen(acceptor);
    if (!listening.ok()) {
      Stop(application);
      return listening.error();
    }
    acceptors_.push_back(listening.value());
  }
  return {};
}

void RedoQueueServer::Stop(Application&) {
  if (service_ != nullptr) service_->Stop();
  acceptors_.clear();
  // What still waits is answered with kCanceled, to nobody.
  for (auto& [name, queue] : queues_) {
    MutexLock lock(queue->mutex);
    queue->waiting.clear();
    queue->scheduled = false;
  }
  service_.reset();
  io_.reset();
  application_ = nullptr;
}

std::vector<NetAddress> RedoQueueServer::addresses() const {
  std::vector<NetAddress> addresses;
  addresses.reserve(acceptors_.size());
  for (const auto& acceptor : acceptors_) addresses.push_back(acceptor->address());
  return addresses;
}

RedoQueueServer::Queue* RedoQueueServer::FindQueue(std::string_view name) {
  const auto it = queues_.find(name);
  return it == queues_.end() ? nullptr : it->second.get();
}

// --- Requests ---

void RedoQueueServer::Accept(Request<RunTask> request) {
  Queue* queue = FindQueue(request.argument().QueueName);
  if (queue == nullptr) {
    ZEZE_LOG_ERROR_EVERY(std::chrono::seconds(10),
                         "{} sends tasks of the redo queue '{}', for which there is no handler",
                         request.connection()->Describe(), request.argument().QueueName);
    static_cast<void>(request.AnswerCode(result_code::kNotImplement).ok());
    return;
  }
  bool full = false;
  {
    MutexLock lock(queue->mutex);
    full = queue->waiting.size() >= options_.waiting_max;
    if (!full) {
      queue->waiting.push_back(std::move(request));
      if (std::exchange(queue->scheduled, true)) return;
    }
  }
  if (full) {  // So it was not moved. NOLINTNEXTLINE(bugprone-use-after-move)
    static_cast<void>(request.AnswerCode(result_code::kBusy).ok());
    return;
  }
  Schedule(*queue);
}

void RedoQueueServer::Schedule(Queue& queue) {
  application_->workers().Post(zeze::Task("run redo tasks", [this, &queue] { Drain(queue); }));
}

void RedoQueueServer::Drain(Queue& queue) {
  std::vector<Request<RunTask>> requests;
  for (int i = 0; i < kBatchesInARow; ++i) {
    requests.clear();
    {
      MutexLock lock(queue.mutex);
      while (!queue.waiting.empty() && requests.size() < options_.batch_max) {
        requests.push_back(std::move(queue.waiting.front()));
        queue.waiting.pop_front();
      }
      if (requests.empty()) {
        queue.scheduled = false;
        return;
      }
    }
    RunBatch(queue, requests);
  }
  Schedule(queue);
}

void RedoQueueServer::RunBatch(Queue& queue, std::vector<Request<RunTask>>& requests) {
  std::vector<Outcome> outcomes(requests.size());
  const std::int64_t code = RunTogether(queue, requests, 0, requests.size(), outcomes);
  if (code != result_code::kSuccess) {
    // One of them may be to blame; alone each gets its own answer.
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::int64_t alone =
          requests.size() == 1 ? code : RunTogether(queue, requests, i, 1, outcomes);
      if (alone == result_code::kSuccess) continue;
      outcomes[i] = Outcome{.code = alone};
      outcomes[i].result.Version = kVersion;
      outcomes[i].handler_failed = alone == result_code::kException;  // It wrote what cannot be.
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Note(queue, requests[i].argument(), outcomes[i]);
    outcomes[i].result.SavedTaskId = std::min(queue.saved_id->load(), outcomes[i].result.TaskId);
    static_cast<void>(requests[i].Answer(outcomes[i].code, outcomes[i].result).ok());
  }
}

// All of them in one transaction; those that fail undo what they did and nothing else.
std::int64_t RedoQueueServer::RunTogether(Queue& queue, std::vector<Request<RunTask>>& requests,
                                          std::size_t begin, std::size_t count,
                                          std::vector<Outcome>& outcomes) {
  return application_->Call("RedoQueue.RunTask", [&](Transaction& tx) {
    std::int64_t last_id = 0;
    for (std::size_t i = begin; i < begin + count; ++i) {
      outcomes[i] = Outcome{};
      outcomes[i].code = tx.Call("RedoQueue.RunTask.one", [&](Transaction&) {
        return RunOne(tx, queue, requests[i].argument(), outcomes[i]);
      });
      last_id = std::max(last_id, outcomes[i].result.TaskId);
    }
    if (last_id > queue.saved_id->load()) {
      tx.AfterDurable(Task("redo task saved", [saved = queue.saved_id, last_id] {
        std::int64_t before = saved->load();
        while (before < last_id && !saved->compare_exchange_weak(before, last_id)) {
        }
      }));
    }
    return result_code::kSuccess;
  });
}

std::int64_t RedoQueueServer::ProcessRunTask(Transaction& tx, Session&, const BQueueTask& task,
                                             BRunTaskResult& result) {
  Queue* queue = FindQueue(task.QueueName);
  if (queue == nullptr) return result_code::kNotImplement;
  Outcome outcome;
  outcome.code = RunOne(tx, *queue, task, outcome);
  result = outcome.result;
  return outcome.code;
}

// --- One task ---

// Whether the client is the one whose tasks were done here.
std::int64_t RedoQueueServer::CheckStore(const BQueueTask& task, const BTaskId& last) const {
  if (last.TaskId == 0) return result_code::kSuccess;
  const bool asks = task.PrevTaskId == redo::kOnlyAsk;
  const bool next = task.PrevTaskId == last.TaskId;
  if (task.StoreId == 0) {
    if (options_.trust_old_clients) return result_code::kSuccess;
    // One that is in step asks for the task behind the last one, or once more for the last one.
    const bool behind = !asks && task.TaskId < last.TaskId;
    return last.StoreId != 0 || behind ? redo::code::kOtherStore : result_code::kSuccess;
  }
  if (task.Adopt && (asks || (next && task.PrevChain == ChainOf(last)))) {
    return result_code::kSuccess;
  }
  if (last.StoreId != 0 && last.StoreId != task.StoreId) return redo::code::kOtherStore;
  const std::int64_t chain = ChainOf(last);
  if (next && chain != 0 && task.PrevChain != chain) return redo::code::kOtherHistory;
  return result_code::kSuccess;
}

std::int64_t RedoQueueServer::RunOne(Transaction& tx, Queue& queue, const BQueueTask& task,
                                     Outcome& outcome) {
  const BTaskId* found = tQueueLastTaskId.Get(tx, task.QueueName);
  const BTaskId last = found == nullptr ? BTaskId{} : *found;
  outcome.result = {
      .TaskId = last.TaskId, .StoreId = last.StoreId, .Chain = ChainOf(last), .Version = kVersion};
  if (const std::int64_t code = CheckStore(task, last); code != result_code::kSuccess) return code;
  if (task.PrevTaskId != last.TaskId || task.TaskId <= last.TaskId) {
    return result_code::kErrorRequestId;
  }
  if (const std::int64_t code = RunHandler(tx, queue, task, outcome);
      code != result_code::kSuccess) {
    return code;
  }
  auto record = tQueueLastTaskId.GetOrAdd(tx, task.QueueName);
  record->TaskId = task.TaskId;
  record->StoreId = task.StoreId;
  record->Chain = task.StoreId == 0 ? 0
                                    : redo::NextChain(task.PrevChain, task.TaskId, task.TaskType,
                                                      task.AddedTime, task.TaskParam.bytes);
  record->ChainTaskId = task.StoreId == 0 ? 0 : task.TaskId;
  outcome.result.TaskId = record->TaskId;
  outcome.result.StoreId = record->StoreId;
  outcome.result.Chain = record->Chain;
  return result_code::kSuccess;
}

std::int64_t RedoQueueServer::RunHandler(Transaction& tx, Queue& queue, const BQueueTask& task,
                                         Outcome& outcome) {
  if (task.Park) {
    outcome.parked = true;
    Park(tx, task, "an operator of the client said so");
    return result_code::kSuccess;
  }
  const auto handler = queue.handlers.find(task.TaskType);
  if (handler == queue.handlers.end()) return result_code::kNotImplement;
  {
    MutexLock lock(queue.mutex);
    if (queue.stopped && queue.poison_id == task.TaskId) return redo::code::kStopped;
    outcome.parked = queue.poison_id == task.TaskId;
  }
  if (outcome.parked) {
    Park(tx, task,
         fmt::format("its handler has failed {} times", handler->second.options.attempts_max));
    return result_code::kSuccess;
  }
  outcome.handler_failed = true;  // Unless it comes back with a yes.
  if (!handler->second.run(tx, task.TaskParam)) return result_code::kLogicError;
  outcome.handler_failed = false;
  return result_code::kSuccess;
}

void RedoQueueServer::Park(Transaction& tx, const BQueueTask& task, std::string reason) {
  tParkedTasks.Put(tx, {task.QueueName, task.TaskId},
                   {.TaskType = task.TaskType,
                    .TaskParam = task.TaskParam,
                    .Reason = std::move(reason),
                    .ParkedTime = NowMs()});
}

std::int64_t RedoQueueServer::NowMs() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             application_->options().clock->SystemNow().time_since_epoch())
      .count();
}

// --- What became of it ---

void RedoQueueServer::Note(Queue& queue, const BQueueTask& task, const Outcome& outcome) {
  const std::int64_t code = outcome.code;
  if (code == result_code::kErrorRequestId || code == redo::code::kStopped) return;
  if (code == redo::code::kOtherStore || code == redo::code::kOtherHistory) {
    const bool store = code == redo::code::kOtherStore;
    Raise(queue, {.kind = store ? RedoAlarmKind::kOtherStore : RedoAlarmKind::kOtherHistory,
                  .queue = queue.name,
                  .task_id = task.TaskId,
                  .text = fmt::format(
                      "a client with {} is refused: tasks up to {} were done for {}. Bring its "
                      "directory back, or let it take the place of the lost one (zeze redo adopt)",
                      store ? "another store" : "another history of this store",
                      outcome.result.TaskId, store ? "the store before" : "the history before")});
    return;
  }
  if (code != result_code::kSuccess) {
    // An infrastructure that fails is nobody's fault. Only a task without a handler is refused so:
    // a client that asks how far the queue is needs none.
    if (outcome.handler_failed || code == result_code::kNotImplement) NoteFailure(queue, task);
    return;
  }
  {
    MutexLock lock(queue.mutex);
    queue.failing_id = 0;
    queue.failures = 0;
    queue.poison_id = 0;
    queue.stopped = false;
    queue.raised.clear();
    RedoServerStatus& status = queue.status;
    status.done += 1;
    status.backlog = task.Backlog;
    if (task.AddedTime > 0) {
      status.age = std::chrono::milliseconds(std::max<std::int64_t>(NowMs() - task.AddedTime, 0));
    }
    if (outcome.parked) status.parked += 1;
  }
  if (outcome.parked) {
    Raise(queue, {.kind = RedoAlarmKind::kTaskParked,
                  .queue = queue.name,
                  .task_id = task.TaskId,
                  .text = fmt::format("task {} of type {} is set aside; the queue goes on",
                                      task.TaskId, task.TaskType)});
    MutexLock lock(queue.mutex);
    queue.raised.erase(RedoAlarmKind::kTaskParked);  // Each of them is worth a word.
  }
}

void RedoQueueServer::NoteFailure(Queue& queue, const BQueueTask& task) {
  const auto handler = queue.handlers.find(task.TaskType);
  if (handler == queue.handlers.end()) {
    Raise(queue, {.kind = RedoAlarmKind::kTaskRefused,
                  .queue = queue.name,
                  .task_id = task.TaskId,
                  .text = fmt::format("there is no handler for type {} of task {}: the queue waits "
                                      "for a program that has one",
                                      task.TaskType, task.TaskId)});
    return;
  }
  bool stops = false;
  {
    MutexLock lock(queue.mutex);
    queue.status.failed += 1;
    if (queue.failing_id != task.TaskId) {
      queue.failing_id = task.TaskId;
      queue.failures = 0;
    }
    queue.failures += 1;
    if (queue.failures < handler->second.options.attempts_max) return;
    queue.poison_id = task.TaskId;
    stops = handler->second.options.poison == RedoPoison::kStop;
    queue.stopped = stops;
  }
  if (!stops) return;  // Parked when it comes again.
  Raise(queue,
        {.kind = RedoAlarmKind::kQueueStopped,
         .queue = queue.name,
         .task_id = task.TaskId,
         .text = fmt::format("task {} of type {} has failed {} times: the queue stands still "
                             "until it is resumed, or the task is skipped at the client",
                             task.TaskId, task.TaskType, handler->second.options.attempts_max)});
}

void RedoQueueServer::Raise(Queue& queue, const RedoAlarm& alarm) {
  {
    MutexLock lock(queue.mutex);
    if (!queue.raised.insert(alarm.kind).second) return;
  }
  LogRedoAlarm(alarm);
  if (options_.on_alarm) options_.on_alarm(alarm);
}

// --- For operators ---

void RedoQueueServer::Resume(std::string_view name) {
  Queue* queue = FindQueue(name);
  if (queue == nullptr) return;
  MutexLock lock(queue->mutex);
  queue->stopped = false;
  queue->poison_id = 0;
  queue->failing_id = 0;
  queue->failures = 0;
  queue->raised.erase(RedoAlarmKind::kQueueStopped);
}

Result<std::vector<ParkedRedoTask>> RedoQueueServer::Parked(std::string_view queue) {
  std::vector<ParkedRedoTask> parked;
  Result<std::size_t> walked =
      tParkedTasks.Walk([&](const BParkedKey& key, const BParkedTask& task) {
        if (key.QueueName != queue) return true;
        parked.push_back({.id = key.TaskId,
                          .type = task.TaskType,
                          .param = task.TaskParam,
                          .reason = task.Reason,
                          .parked = std::chrono::system_clock::time_point(
                              std::chrono::milliseconds(task.ParkedTime))});
        return true;
      });
  if (!walked.ok()) return walked.error();
  std::sort(parked.begin(), parked.end(),
            [](const auto& left, const auto& right) { return left.id < right.id; });
  return parked;
}

Result<void> RedoQueueServer::RunParked(std::string_view name, std::int64_t id) {
  Queue* queue = FindQueue(name);
  const BParkedKey key{std::string(name), id};
  bool found = false;
  const std::int64_t code = application_->CallApart("RedoQueue.RunParked", [&](Transaction& tx) {
    const BParkedTask* task = tParkedTasks.Get(tx, key);
    found = task != nullptr;
    if (!found) return result_code::kLogicError;
    if (queue == nullptr) return result_code::kNotImplement;
    const auto handler = queue->handlers.find(task->TaskType);
    if (handler == queue->handlers.end()) return result_code::kNotImplement;
    const Binary param = task->TaskParam;
    tParkedTasks.Remove(tx, key);
    return handler->second.run(tx, param) ? result_code::kSuccess : result_code::kLogicError;
  });
  if (code == result_code::kSuccess) return {};
  if (!found) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("no task {} of the redo queue '{}' is set aside", id, name));
  }
  return Error(
      ErrorCode::kUnavailable,
      fmt::format("task {} of the redo queue '{}' stays set aside: running it gave code {}", id,
                  name, code));
}

Result<void> RedoQueueServer::DropParked(std::string_view name, std::int64_t id) {
  const BParkedKey key{std::string(name), id};
  bool found = false;
  const std::int64_t code = application_->CallApart("RedoQueue.DropParked", [&](Transaction& tx) {
    found = tParkedTasks.Get(tx, key) != nullptr;
    if (found) tParkedTasks.Remove(tx, key);
    return result_code::kSuccess;
  });
  if (code == result_code::kSuccess && found) return {};
  return Error(
      code == result_code::kSuccess ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
      fmt::format("no task {} of the redo queue '{}' could be dropped (code {})", id, name, code));
}

Result<RedoServerStatus> RedoQueueServer::GetStatus(std::string_view name) {
  Queue* queue = FindQueue(name);
  if (queue == nullptr) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("no handler is registered for a redo queue '{}'", name));
  }
  auto last = tQueueLastTaskId.ReadCopy(queue->name);
  if (!last.ok()) return last.error();
  MutexLock lock(queue->mutex);
  RedoServerStatus status = queue->status;
  status.last_id = last.value().has_value() ? last.value()->TaskId : 0;
  status.saved_id = std::min(queue->saved_id->load(), status.last_id);
  status.stopped = queue->stopped;
  return status;
}

}  // namespace zeze
