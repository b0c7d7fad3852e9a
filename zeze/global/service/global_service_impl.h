// GlobalService::Impl: what is around the machine of a Global: it owns the connections, the logins
// whose parts are still coming, and the calls to the database. See global_service.h.
//
// In three files: global_requests.cc (every request that servers send, and how it is answered),
// global_logins.cc (greeting and login), global_service.cc (life, and the calls to the database).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/trouble.h"
#include "zeze/base/wait_group.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/admin_service.h"
#include "zeze/global/service/global_service.h"
#include "zeze/global/service/proof.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

// All on the network thread, unless said otherwise.
class GlobalService::Impl final : public GlobalOutput {
 public:
  Impl(IoThreads& io, Fence& fence, Executor& blocking, GlobalServiceOptions options);

  // Any thread but the network's.
  Result<void> Start();
  void Stop();
  NetAddress address() const { return acceptor_->address(); }
  // Runs on the network thread and waits for it.
  template <typename T>
  T OnLoop(std::function<T()> what) {
    std::promise<T> promise;
    std::future<T> future = promise.get_future();
    io_.Post([&promise, &what] { promise.set_value(what()); });
    return future.get();
  }

  GlobalServer& machine() { return machine_; }
  GlobalServer::Time Now() { return recent_now_ = io_.clock().Now(); }

 private:
  // Of a connection.
  struct Session final : ConnectionState {
    std::string server_nonce;       // Of the greeting.
    std::string global_nonce;       // Empty: there was none.
    std::vector<HeldRight> rights;  // Of the parts of a login that have come.
    std::size_t bytes = 0;          // Of these rights.
  };

  // --- Requests (global_requests.cc). ---

  void HandleRequests();
  // An Acquire or a Release.
  Result<void> OnAcquire(Connection& connection, const Frame& frame);
  void SendGrant(ConnectionId to, std::uint64_t request, std::string_view key,
                 Right right) override;
  void SendRefusal(ConnectionId to, std::uint64_t request, std::string_view key, Right wanted,
                   Refusal refusal) override;
  void SendReleased(ConnectionId to, std::uint64_t request, std::string_view key) override;
  void AnswerAcquire(ConnectionId to, std::uint64_t request, std::int64_t code,
                     std::string_view key, std::uint32_t state);
  void SendReduce(ConnectionId to, std::uint64_t serial, std::string_view key,
                  Right right) override;
  void OnReduceReply(ConnectionId from, std::uint64_t serial, std::string_view key,
                     const RpcReply<wire::Reduce>& reply);
  void OnKeepAlive(Request<wire::KeepAlive> request);
  void OnNormalClose(Request<wire::NormalClose> request);

  // --- Logins (global_logins.cc). ---

  void HandleLogins();
  void Greet(Request<wire::Greeting> request);
  void Login(Request<wire::FencedLogin> request);
  void SendLoginReply(ConnectionId to, const LoginReply& reply) override;
  Claim ClaimOf(const Session& session) const;
  std::function<bool(std::string_view)> ProofIn(const wire::FencedLoginArgument& argument,
                                                const Session& session) const;
  // Why a login for a shard is refused here; empty: it is not. Counts, and tells the operators once
  // a minute.
  std::string RefuseShard(std::int32_t server_id, std::int32_t shard);
  void UnfencedLogin(const ConnectionPtr& connection, const wire::LoginArgument& argument,
                     bool again, const std::function<void(bool)>& answer);
  void CloseStrangers();

  // --- Life (global_service.cc). ---

  void OnOpen(const ConnectionPtr& connection);
  void OnClose(const Connection& connection);
  void Close(ConnectionId connection) override;
  void Tick();
  // Nothing is tried again: only people can change it.
  void Refuse(const Error& why);
  void Tell(std::string_view kind, const GlobalAlert& alert);
  void Alert(const GlobalAlert& alert) override { Tell(ToString(alert.kind), alert); }
  static GlobalOptions MachineOptions(const GlobalServiceOptions& options);
  Executor& hooks() { return options_.hooks != nullptr ? *options_.hooks : blocking_; }
  std::string PeerOf(ConnectionId id);
  static ConnectionId IdOf(const Connection& connection) {
    return static_cast<ConnectionId>(connection.id());
  }
  Connection* Find(ConnectionId id) {
    if (asking_ != nullptr && IdOf(*asking_) == id) return asking_;
    const auto at = connections_.find(id);
    return at == connections_.end() ? nullptr : at->second.get();
  }

  // --- The database (global_service.cc): asked in the background, answered here. ---

  void RaiseTerm() override;
  void ReadTerm() override;
  void ListLive() override;
  void Want(std::int32_t server_id, std::int64_t epoch, std::int64_t term) override;
  void Unwant(std::int32_t server_id, std::int64_t epoch, std::int64_t term) override;
  void ReadYields() override;
  void Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t term,
             const EvictUnless& unless) override;
  void ReadServer(std::int32_t server_id) override;
  void LeaseOver(std::int32_t server_id, std::int64_t epoch) override;
  void StopServer(std::int32_t server_id, std::uint64_t ticket) override;
  // `call` waits for the database; `told` gets what it said, on the network thread.
  template <typename Call, typename Told>
  void Ask(Call call, Told told);
  // Says when the database is lost, and when it is back.
  template <typename T>
  void NoteDatabase(const Result<T>& result);
  // `work` may wait; what it returns runs on the network thread.
  void InBackground(Executor& executor, std::function<Task()> work);

  IoThreads& io_;
  Fence& fence_;
  Trouble trouble_{{.what = "the database does not answer Global",
                    .over = "the database is back and answers Global"}};
  Executor& blocking_;
  const GlobalServiceOptions options_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Network thread only.
  GlobalServer machine_;
  struct Stranger {
    ConnectionPtr connection;
    GlobalServer::Time since{0};
  };
  std::map<ConnectionId, Stranger> strangers_;  // That have not logged in; oldest first.
  std::size_t announced_ = 0;                   // Bytes in the logins under way,
  std::set<ConnectionId> announcing_;           // which have these connections; oldest first.
  AdminService admin_;
  std::map<ConnectionId, ConnectionPtr> connections_;          // That have tried to log in.
  std::map<ConnectionId, Request<wire::FencedLogin>> logins_;  // That the machine has not answered.
  std::vector<ConnectionId> logged_in_;                        // Since the last tick.
  Connection* asking_ = nullptr;                               // Whose message it is looking at.
  // At most a tick ago. Enough for requests, which are too many to look at the clock for each: they
  // start no wait that anybody's safety depends on.
  GlobalServer::Time recent_now_{0};
  std::string history_;  // Of the database, before the term was raised.
  const std::string secret_ = NewSecret();
  std::string cluster_;  // Known when the term is raised.
  WaitGroup background_;
  std::size_t refused_ = 0;  // Logins for another shard.
  std::optional<GlobalServer::Time> refused_told_;
  bool serving_ = false;
  bool deposed_ = false;
  bool stopped_ = false;
  std::shared_ptr<Acceptor> acceptor_;
  Service service_;  // Last: its callbacks use the rest.
};

}  // namespace zeze::global
