// GlobalAgent: a server's side of its connection to one shard of Global. Rules 16, 18, 41, 42, 45,
// 65.
//
//   GlobalAgent agent(options, output);
//   agent.OnConnected(connection);                        // Logs in, naming all rights.
//   agent.Acquire(request, key, Right::kShare);           // Later: output.Granted or Failed.
//   agent.OnReduce(connection, serial, key, to);          // output.Reduce; then agent.Reduced().
//
// A state machine without I/O, threads or time. Messages of a connection are given to it in order,
// and it hands them on in that order: a right is installed before the next message is looked at.
// Messages of a connection that is not the current one are dropped.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/global/directory.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

struct AgentOptions {
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
  std::int64_t start_term = 0;
  std::chrono::milliseconds lease{0};  // See LoginRequest.

  // For tests of the simulator: each leaves a rule out.
  bool unsafe_ignore_start_term = false;
  bool unsafe_connect_while_yielding = false;
};

enum class AcquireFailure : std::uint8_t {
  kDisconnected,  // No connection, or it was lost: the right was not granted, or the grant is void.
  kRefused,       // The holder cannot be reached or failed.
  kBusy,          // The holder uses it just now.
};

// Called while the machine works: do not call it back from here.
class AgentOutput {
 public:
  virtual void SendLogin(ConnectionId to, const LoginRequest& request) = 0;
  virtual void SendAcquire(ConnectionId to, std::uint64_t request, std::string_view key,
                           Right wanted) = 0;
  virtual void SendRelease(ConnectionId to, std::uint64_t request, std::string_view key) = 0;
  virtual void SendNormalClose(ConnectionId to) = 0;
  virtual void SendKeepAlive(ConnectionId to) = 0;
  virtual void SendReduced(ConnectionId to, std::uint64_t serial, std::string_view key,
                           Right now) = 0;
  virtual void Close(ConnectionId connection) = 0;

  // All rights this process has of the shard. One that is being given back counts until its records
  // are saved: otherwise Global would hand it on before.
  virtual std::vector<HeldRight> Rights() = 0;
  // Install the right now, before anything else happens to the record.
  virtual void Granted(std::uint64_t request, std::string_view key, Right right) = 0;
  virtual void Failed(std::uint64_t request, std::string_view key, AcquireFailure why) = 0;
  virtual void Released(std::uint64_t request, std::string_view key) = 0;
  // Lower the right; when its records are saved, call GlobalAgent::Reduced with the same numbers.
  virtual void Reduce(ConnectionId from, std::uint64_t serial, std::string_view key, Right to) = 0;
  // Lower all rights of the shard, save everything under them, write the mark; then call
  // GlobalAgent::Yielded. Installations of grants that have begun are finished before.
  virtual void Yield(const YieldMark& mark) = 0;
  // This process has lost its rights for ever.
  virtual void Fenced() = 0;

 protected:
  ~AgentOutput() = default;
};

class GlobalAgent {
 public:
  GlobalAgent(const AgentOptions& options, AgentOutput& output);

  bool ready() const { return state_ == State::kReady; }
  ConnectionId connection() const { return connection_; }
  // The highest that was seen.
  std::int64_t term() const { return term_; }

  void OnConnected(ConnectionId connection);
  void OnClosed(ConnectionId connection);
  void OnLoginReply(ConnectionId from, const LoginReply& reply);
  void OnGrant(ConnectionId from, std::uint64_t request, std::string_view key, Right right);
  void OnRefusal(ConnectionId from, std::uint64_t request, std::string_view key, Refusal refusal);
  void OnReleased(ConnectionId from, std::uint64_t request, std::string_view key);
  void OnReduce(ConnectionId from, std::uint64_t serial, std::string_view key, Right to);

  // The database shows this term for the shard: a Global of an older one is left.
  void OnTerm(std::int64_t term);

  // The database shows that the Global of this term wants the rights of the shard and has no
  // connection to this process: yields them, unless it has none or is logging in (rule 65).
  void OnWanted(std::int64_t term);
  // The mark is written.
  void Yielded();

  // Fails at once without a connection. At most one request for a key at a time.
  void Acquire(std::uint64_t request, std::string_view key, Right wanted);
  void Release(std::uint64_t request, std::string_view key);
  // To be called several times in GlobalOptions::silence_max.
  void KeepAlive();
  // The server has saved everything, has told the database that it ends, and uses no right any more
  // (rule 47).
  void NormalClose();
  // Answers a Reduce. Without effect if its connection is gone: the next login tells.
  void Reduced(ConnectionId to, std::uint64_t serial, std::string_view key, Right now);

 private:
  enum class State : std::uint8_t { kDisconnected, kLoggingIn, kReady };
  struct Pending {
    std::string key;
    bool release = false;
  };

  // Whether the message belongs to the present; drops a message for what is over.
  bool Current(ConnectionId from) const;
  void FailPending();
  void LogIn();
  void Leave();

  const AgentOptions options_;
  AgentOutput& output_;
  State state_ = State::kDisconnected;
  ConnectionId connection_ = 0;
  std::int64_t term_ = 0;             // The highest that was seen.
  std::int64_t connection_term_ = 0;  // Of the Global at the other end, when ready.
  std::map<std::uint64_t, Pending> pending_;
  // A session has not begun since it had nothing: after the last yield, or after the start.
  bool has_nothing_ = true;
  bool yielding_ = false;
  std::int64_t logins_ = 0;
  YieldMark mark_;  // Of the yield under way, or the last one.
};

}  // namespace zeze::global
