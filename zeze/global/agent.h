// GlobalAgent: a server's side of its session with one shard of Global. It owns what decides
// whether a message counts: which connection is the current one, whether it has logged in, under
// which term, and which requests on it have no answer yet. Rules 16, 18, 41, 42, 45, 65.
//
//   GlobalAgent agent(options, output);
//   agent.OnConnected(connection);                        // Logs in, naming all rights.
//   ConnectionId to = agent.Begin(request, key);          // An Acquire or Release goes there;
//   if (agent.End(from, request)) ...                     // its answer counts.
//   if (agent.Current(from)) ...                          // A Reduce, and its answer, counts.
//
// A state machine without I/O, threads or time. Its owner gives it the messages of a connection in
// order and does what they say before it looks at the next one: so a right is installed before any
// later message about it. Messages of a connection that is not the current one are dropped.

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

// Called while the machine works: do not call it back from here.
class AgentOutput {
 public:
  virtual void SendLogin(ConnectionId to, const LoginRequest& request) = 0;
  virtual void Close(ConnectionId connection) = 0;

  // All rights this process has of the shard. One that is being given back counts until its records
  // are saved: otherwise Global would hand it on before.
  virtual std::vector<HeldRight> Rights() = 0;
  // A request that has begun ends with its connection: a right was not granted, or the grant is
  // void; what was to be released is given back.
  virtual void Lost(std::uint64_t request, std::string_view key) = 0;
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

  // The database shows this term for the shard: a Global of an older one is left.
  void OnTerm(std::int64_t term);

  // The database shows that the Global of this term wants the rights of the shard and has no
  // connection to this process: yields them, unless it has none or is logging in (rule 65).
  void OnWanted(std::int64_t term);
  // The mark is written.
  void Yielded();

  // Whether a message of this connection belongs to the present, or one may be sent on it.
  bool Current(ConnectionId connection) const {
    return state_ == State::kReady && connection == connection_;
  }

  // An Acquire or a Release, to be sent on the connection that is returned. 0: there is no session,
  // so a right cannot be had, and need not be given back: the next login does not name it. (While
  // one is under way that named it, Global believes that it is held, asks, and learns.) At most one
  // request for a key at a time.
  ConnectionId Begin(std::uint64_t request, std::string_view key);
  // Its answer has come. False: it is not, or not any more, the answer to anything.
  bool End(ConnectionId from, std::uint64_t request);

 private:
  enum class State : std::uint8_t { kDisconnected, kLoggingIn, kReady };

  void LoseRequests();
  void LogIn();
  void Leave();

  const AgentOptions options_;
  AgentOutput& output_;
  State state_ = State::kDisconnected;
  ConnectionId connection_ = 0;
  std::int64_t term_ = 0;                          // The highest that was seen.
  std::int64_t connection_term_ = 0;               // Of the Global at the other end, when ready.
  std::map<std::uint64_t, std::string> requests_;  // That have begun: their keys.
  // A session has not begun since it had nothing: after the last yield, or after the start.
  bool has_nothing_ = true;
  bool yielding_ = false;
  std::int64_t logins_ = 0;
  YieldMark mark_;  // Of the yield under way, or the last one.
};

}  // namespace zeze::global
