// OldRedoServer: answers like a server of Zeze 1.6, which knows nothing of stores and chains and
// takes one task at a time.
//
//   OldRedoServer server;
//   RedoQueueClient::Open(store, {.name = "q", .servers = {server.address()}});
//   server.AwaitDone(3);
//   EXPECT_EQ(server.done(), (std::vector<std::string>{"a", "b", "c"}));

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service.h"
#include "zeze/net/tls.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/run_task.h"

namespace zeze::testing {

// Thread-safe.
class OldRedoServer {
 public:
  explicit OldRedoServer(std::uint16_t port = 0, TlsContextPtr tls = nullptr)
      : io_({.name = "old-redo"}),
        service_(io_, {.name = "RedoQueueServer", .handshake = HandshakeOptions{}}) {
    service_.Handle<redo::RunTask>(
        [this](Request<redo::RunTask> request) { Run(std::move(request)); });
    acceptor_ = service_.Listen({.ip = "127.0.0.1", .port = port, .tls = std::move(tls)}).value();
  }
  ~OldRedoServer() { service_.Stop(); }
  OldRedoServer(const OldRedoServer&) = delete;
  OldRedoServer& operator=(const OldRedoServer&) = delete;

  RedoServerAddress address() const { return {"127.0.0.1", acceptor_->address().port()}; }

  // The next so many tasks get no answer: what they ask for is done or not.
  void SwallowAnswers(int count, bool done) {
    MutexLock lock(mutex_);
    swallow_ = count;
    swallow_done_ = done;
  }
  // The next so many tasks are refused with this code.
  void Refuse(int count, std::int64_t code) {
    MutexLock lock(mutex_);
    refuse_ = count;
    refuse_code_ = code;
  }
  void SetLast(std::int64_t id) {
    MutexLock lock(mutex_);
    last_id_ = id;
  }
  // Called before the answer to somebody who only asks how far it is; null for nothing.
  void SetOnAsked(std::function<void()> on_asked) {
    MutexLock lock(mutex_);
    on_asked_ = std::move(on_asked);
  }
  // The database of an older day.
  void RollBack(std::size_t tasks) {
    MutexLock lock(mutex_);
    done_.resize(done_.size() - tasks);
    ids_.resize(ids_.size() - tasks);
    last_id_ = ids_.empty() ? 0 : ids_.back();
  }
  void CloseConnections() {
    for (const ConnectionPtr& connection : service_.connections()) connection->Close("test");
  }

  void AwaitRequests(int count) {
    MutexLock lock(mutex_);
    while (requests_ < count) changed_.Wait(mutex_);
  }
  void AwaitDone(std::size_t count) {
    MutexLock lock(mutex_);
    while (done_.size() < count) changed_.Wait(mutex_);
  }
  std::vector<std::string> done() const {
    MutexLock lock(mutex_);
    return done_;
  }
  std::vector<std::int64_t> ids() const {
    MutexLock lock(mutex_);
    return ids_;
  }
  int requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void Run(Request<redo::RunTask> request) {
    const redo::Task& task = request.argument();
    if (task.prev_task_id == redo::kOnlyAsk) Asked();
    MutexLock lock(mutex_);
    if (task.prev_task_id >= 0) ++requests_;
    changed_.NotifyAll();
    if (task.prev_task_id != last_id_) {
      static_cast<void>(request.Answer(result_code::kErrorRequestId, {.task_id = last_id_}).ok());
      return;
    }
    if (refuse_ > 0) {
      --refuse_;
      static_cast<void>(request.AnswerCode(refuse_code_).ok());
      return;
    }
    const bool swallow = swallow_ > 0;
    if (swallow) --swallow_;
    if (!swallow || swallow_done_) {
      last_id_ = task.task_id;
      ids_.push_back(task.task_id);
      done_.push_back(task.param.bytes);
    }
    changed_.NotifyAll();
    if (swallow) {
      swallowed_.push_back(std::move(request));
      return;
    }
    static_cast<void>(request.Answer({.task_id = last_id_}).ok());
  }

  void Asked() {
    std::function<void()> on_asked;
    {
      MutexLock lock(mutex_);
      on_asked = on_asked_;
    }
    if (on_asked) on_asked();
  }

  IoThreads io_;
  Service service_;
  std::shared_ptr<Acceptor> acceptor_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::int64_t last_id_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> done_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::int64_t> ids_ ZEZE_GUARDED_BY(mutex_);
  std::vector<Request<redo::RunTask>> swallowed_ ZEZE_GUARDED_BY(mutex_);
  std::function<void()> on_asked_ ZEZE_GUARDED_BY(mutex_);
  int requests_ ZEZE_GUARDED_BY(mutex_) = 0;
  int swallow_ ZEZE_GUARDED_BY(mutex_) = 0;
  bool swallow_done_ ZEZE_GUARDED_BY(mutex_) = false;
  int refuse_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::int64_t refuse_code_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze::testing
