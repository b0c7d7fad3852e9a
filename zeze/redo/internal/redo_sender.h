// The sender of a RedoQueueClient: asks a server how far it is, sends the tasks after that one, and
// goes on whatever happens. For redo_queue_client.cc only.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/run_task.h"

namespace zeze {

// One thread asks, sends and reads from the store; answers come in on a network thread.
class RedoQueueClient::Sender {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  Sender(std::shared_ptr<RedoStore> store, RedoJournal& journal, RedoQueueClientOptions options);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  RedoJournal& journal() const { return journal_; }

  // Fails with kOverloaded if as many tasks wait as may wait.
  Result<void> CheckRoom() const;
  Result<void> WaitDone(std::int64_t id, nanoseconds patience);
  RedoStatus GetStatus() const;
  void Retry();

 private:
  enum class Next : std::uint8_t {
    kAsk,        // Find out how far the server is.
    kStream,     // Send.
    kBackOff,    // Wait, then ask.
    kReconnect,  // Wait, then connect anew.
    kHalt,       // Wait as long as BackOff ever does, then ask.
  };

  struct InFlight {
    std::int64_t id;
    std::size_t bytes;
  };
  struct Reply {
    std::int64_t id;
    RpcReply<redo::RunTask> reply;
  };

  void Run();
  bool stopping() const;
  bool connected() const;

  bool Connect();
  // The next attempt goes to the next server.
  void Disconnect();
  // Answers to what was sent so far do not matter any more.
  void Forget() ZEZE_REQUIRES(mutex_);
  void BackOff();
  void Wait(nanoseconds delay);

  // --- Asking ---

  Next Ask();
  // Whether this store can go on after the server's last task.
  Next Judge(const redo::Answer& answer);
  Next Halt(std::int64_t code, const redo::Answer& answer);
  Next Halt(RedoAlarmKind kind, const std::string& text);
  Next Trouble(Next next, std::string text);
  Next StoreTrouble(const Error& error);

  // --- Sending ---

  Next Stream();
  bool Idle() const;
  std::size_t Window() const ZEZE_REQUIRES(mutex_) { return pipelined_ ? window_ : 1; }
  bool MaySend() const ZEZE_REQUIRES(mutex_);
  // Blocks until there is something to do.
  std::optional<Next> AwaitEvent(nanoseconds begin);
  // Sends as much as the window allows. False: nothing.
  Result<bool> Fill();
  bool Send(Connection& connection, RedoTask& task);
  // What the answers that have come mean; absent: go on.
  std::optional<Next> TakeReplies();
  std::optional<Next> Take(const Reply& reply);
  Next Refused(std::int64_t id, std::int64_t code);
  void SetDone(std::int64_t id) ZEZE_REQUIRES(mutex_);
  void ConfirmNow();
  void LogIfFailed(const Result<void>& result) const;

  // --- Alarms ---

  void CheckAge();
  void Raise(const RedoAlarm& alarm);
  void Over(RedoAlarmKind kind) { raised_.erase(kind); }

  void SetState(RedoState state);
  std::string server_name() const;

  const std::shared_ptr<RedoStore> store_;
  RedoJournal& journal_;
  const RedoQueueClientOptions options_;
  Clock& clock_;
  const std::unique_ptr<IoThreads> own_io_;
  Service service_;
  std::thread thread_;

  // Used by the thread only.
  std::size_t server_index_ = 0;
  int failures_ = 0;
  int asked_in_vain_ = 0;
  std::int64_t sent_chain_ = 0;   // The chain after sent_id_.
  std::int64_t server_last_ = 0;  // As far as it has answered.
  std::optional<std::int64_t> saved_id_;
  nanoseconds answered_at_{0};
  nanoseconds confirmed_at_{0};
  nanoseconds age_checked_at_{0};
  std::set<RedoAlarmKind> raised_;

  // Only the thread writes them; others read.
  std::atomic<std::int64_t> sent_id_ = 0;
  std::atomic<std::int64_t> done_id_ = 0;
  std::atomic<bool> pipelined_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  CondVar done_changed_;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  bool retry_ ZEZE_GUARDED_BY(mutex_) = false;
  RedoState state_ ZEZE_GUARDED_BY(mutex_) = RedoState::kConnecting;
  std::string trouble_ ZEZE_GUARDED_BY(mutex_);
  std::string server_ ZEZE_GUARDED_BY(mutex_);
  int refusals_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Connector> connector_ ZEZE_GUARDED_BY(mutex_);
  ConnectionPtr connection_ ZEZE_GUARDED_BY(mutex_);
  bool closed_ ZEZE_GUARDED_BY(mutex_) = false;
  bool asked_ ZEZE_GUARDED_BY(mutex_) = false;  // done_id_ is what the server says now.
  std::string close_reason_ ZEZE_GUARDED_BY(mutex_);
  std::size_t window_ ZEZE_GUARDED_BY(mutex_) = 1;
  std::uint64_t flight_ ZEZE_GUARDED_BY(mutex_) = 0;  // Answers of earlier ones are dropped.
  std::deque<InFlight> in_flight_ ZEZE_GUARDED_BY(mutex_);
  std::size_t in_flight_bytes_ ZEZE_GUARDED_BY(mutex_) = 0;
  bool output_full_ ZEZE_GUARDED_BY(mutex_) = false;
  std::vector<Reply> replies_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze
