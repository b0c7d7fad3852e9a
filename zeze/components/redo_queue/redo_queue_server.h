// RedoQueueServer: runs the tasks that programs hand to this application through a RedoQueueClient
// (zeze/redo), each of them exactly once.
//
//   RedoQueueServer redo({.acceptors = {{.port = 5020}}});
//   redo.Register<BRecharge>("recharge", kRecharge, [&](Transaction& tx, const BRecharge& paid) {
//     roles.GetOrAdd(tx, paid.role)->gold += paid.gold;
//     return true;                                      // False: try it again later.
//   });
//   application.AddModule(redo);                        // Listens from Start on.
//
// docs/redo-queue.md says what is guaranteed against what.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/RedoQueue.h"
#include "Zeze/Builtin/RedoQueue.module.h"
#include "zeze/app/application.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/config/known_names.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// What becomes of a task whose handler has failed attempts_max times.
enum class RedoPoison : std::uint8_t {
  kStop,  // The queue stands still, with an alarm, until Resume or a restart.
  kPark,  // It is set aside in a table, with an alarm, and the queue goes on.
};

struct RedoHandlerOptions {
  int attempts_max = 10;
  RedoPoison poison = RedoPoison::kStop;
};

// Runs in the transaction that records the task as done. False, or an exception, undoes what it
// did: the client sends the task again, later and later. Runs again after lost races, as every
// procedure.
using RedoHandler = std::function<bool(Transaction& tx, const Binary& param)>;

struct RedoQueueServerOptions {
  // Where to listen; without an address on 127.0.0.1. Empty: what the configuration says about the
  // service "RedoQueueServer".
  std::vector<AcceptorOptions> acceptors = {};

  // Tasks of one queue that share a transaction, when they come faster than they are run.
  std::size_t batch_max = 64;

  // Tasks of one queue that wait; more are refused (kBusy), and come again.
  std::size_t waiting_max = 16384;

  // A client of Zeze 1.6 that asks for a task long done has lost its store, and would take "done"
  // for its answer: it is refused. True: it is believed, as Zeze 1.6 does.
  bool trust_old_clients = false;

  // On a worker. Alarms are in the log in any case.
  std::function<void(const RedoAlarm&)> on_alarm = nullptr;
};

struct ParkedRedoTask {
  std::int64_t id = 0;
  std::int32_t type = 0;
  Binary param = {};
  std::string reason = {};
  std::chrono::system_clock::time_point parked = {};
};

// Of one queue, since the start of this process except last_id.
struct RedoServerStatus {
  std::int64_t last_id = 0;
  std::int64_t saved_id = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t parked = 0;
  bool stopped = false;
  // As the client said with its last task: how many are behind it, and how old it was.
  std::int64_t backlog = 0;
  std::chrono::nanoseconds age{0};
};

// Guarantees, for each queue:
//   - The last task's id is in the transaction with what its handler did: both or neither.
//   - Tasks run in the order of their ids, none is left out, none runs twice.
//   - Clients learn which tasks are in the database for good: they keep all others.
//
// Register before Start; thread-safe after it.
class RedoQueueServer final : public Zeze::Builtin::RedoQueue::ModuleRedoQueueBase {
 public:
  static constexpr std::string_view kServiceName = known_names::kRedoQueueServer;

  explicit RedoQueueServer(RedoQueueServerOptions options = {});
  ~RedoQueueServer() override;

  // Each (queue, type) once, before Start. Otherwise, and if the queue has no name, the handler is
  // empty or attempts_max is 0, UsageError is thrown.
  void Register(std::string queue, std::int32_t type, RedoHandler handler,
                RedoHandlerOptions options = {});

  // Of a parameter that is a bean. One that cannot be decoded counts as a failure.
  template <typename Bean>
  void Register(std::string queue, std::int32_t type,
                std::function<bool(Transaction& tx, const Bean& param)> handler,
                RedoHandlerOptions options = {}) {
    RedoHandler decoding;
    if (handler != nullptr) {
      decoding = [handler = std::move(handler)](Transaction& tx, const Binary& param) {
        Bean bean;
        ByteReader in(param.bytes);
        bean.Decode(in);
        return in.ok() && in.remaining() == 0 && handler(tx, bean);
      };
    }
    Register(std::move(queue), type, std::move(decoding), options);
  }

  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;

  // Where it listens, after Start.
  std::vector<NetAddress> addresses() const;

  // A queue that stands still tries its task again.
  void Resume(std::string_view queue);

  // What was set aside, ascending. Walks the table: not in transactions.
  Result<std::vector<ParkedRedoTask>> Parked(std::string_view queue);
  // Runs the handler of a task that was set aside; it is set aside no more if that succeeds.
  Result<void> RunParked(std::string_view queue, std::int64_t id);
  Result<void> DropParked(std::string_view queue, std::int64_t id);

  Result<RedoServerStatus> GetStatus(std::string_view queue);

  // For requests that come another way than through the service.
  std::int64_t ProcessRunTask(Transaction& tx, Session& session,
                              const Zeze::Builtin::RedoQueue::BQueueTask& task,
                              Zeze::Builtin::RedoQueue::BRunTaskResult& result) override;

 private:
  using RunTask = Zeze::Builtin::RedoQueue::RunTask;
  using BQueueTask = Zeze::Builtin::RedoQueue::BQueueTask;
  using BRunTaskResult = Zeze::Builtin::RedoQueue::BRunTaskResult;

  struct Handler {
    RedoHandler run;
    RedoHandlerOptions options;
  };
  struct Queue;
  struct Outcome;

  Queue* FindQueue(std::string_view name);
  void Accept(Request<RunTask> request);
  void Schedule(Queue& queue);
  void Drain(Queue& queue);
  void RunBatch(Queue& queue, std::vector<Request<RunTask>>& requests);
  std::int64_t RunTogether(Queue& queue, std::vector<Request<RunTask>>& requests, std::size_t begin,
                           std::size_t count, std::vector<Outcome>& outcomes);
  std::int64_t RunOne(Transaction& tx, Queue& queue, const BQueueTask& task, Outcome& outcome);
  std::int64_t CheckStore(const BQueueTask& task,
                          const Zeze::Builtin::RedoQueue::BTaskId& last) const;
  std::int64_t RunHandler(Transaction& tx, Queue& queue, const BQueueTask& task, Outcome& outcome);
  void Park(Transaction& tx, const BQueueTask& task, std::string reason);
  void Note(Queue& queue, const BQueueTask& task, const Outcome& outcome);
  void NoteFailure(Queue& queue, const BQueueTask& task);
  void Raise(Queue& queue, const RedoAlarm& alarm);
  std::int64_t NowMs() const;

  const RedoQueueServerOptions options_;
  std::map<std::string, std::unique_ptr<Queue>, std::less<>> queues_;  // Fixed after Start.
  Application* application_ = nullptr;
  std::unique_ptr<IoThreads> io_;
  std::unique_ptr<Service> service_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
};

}  // namespace zeze
