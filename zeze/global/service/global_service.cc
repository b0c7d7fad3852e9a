#include "zeze/global/service/global_service.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/trouble.h"
#include "zeze/base/wait_group.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/admin_service.h"
#include "zeze/global/service/proof.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

namespace {

// A frame: a part of a login is the largest.
constexpr std::size_t kFrameBytesMax = std::size_t{2} << 20;

// An operator who looks at a preview does not log in.
constexpr std::chrono::nanoseconds kPreviewTime = std::chrono::minutes(15);

// Connections that have not logged in. Of more the oldest is closed: a login takes milliseconds.
constexpr std::size_t kStrangersMax = 256;

constexpr std::size_t kNonceBytes = 16;
// Operators are told of refused logins at most once in this time.
constexpr std::chrono::nanoseconds kRefusedTold = std::chrono::minutes(1);

// What a right in a login costs, without its key.
constexpr std::size_t kBytesOfRight = 64;

// What the machine does by itself is a matter of seconds.
constexpr std::chrono::nanoseconds kTickPeriod = std::chrono::milliseconds(50);

struct Session final : ConnectionState {
  std::string server_nonce;       // Of the greeting.
  std::string global_nonce;       // Empty: there was none.
  std::vector<HeldRight> rights;  // Of the parts of a login that have come.
  std::size_t bytes = 0;          // Of these rights.
};

std::uint32_t StateOf(Right right) {
  return static_cast<std::uint32_t>(right);
}

}  // namespace

class GlobalService::Impl final : public GlobalOutput {
 public:
  Impl(IoThreads& io, Fence& fence, Executor& blocking, GlobalServiceOptions options)
      : io_(io),
        fence_(fence),
        blocking_(blocking),
        options_(std::move(options)),
        machine_(MachineOptions(options_), *this),
        admin_({.shard = options_.shard,
                .machine = machine_,
                .fence = fence,
                .now = [this] { return Now(); },
                .in_background =
                    [this](std::function<Task()> work) { InBackground(hooks(), std::move(work)); },
                .peer = [this](ConnectionId id) { return PeerOf(id); },
                .tell = [this](const std::string& text) { Tell("admin", {.text = text}); }},
               options_.operators, options_.audit_log),
        service_(io, {.name = "Global",
                      .socket = {.unconfirmed_max = wire::kUnconfirmedMax},
                      .frame_bytes_max = kFrameBytesMax,
                      .output_bytes_max = std::size_t{64} << 20,
                      .inside = true,
                      .connections_max = kSessionsMax}) {
    service_.OnOpen([this](const ConnectionPtr& connection) {
      connection->set_state(std::make_shared<Session>());
      strangers_[IdOf(*connection)] = {.connection = connection, .since = Now()};
      if (strangers_.size() <= kStrangersMax) return;
      const ConnectionPtr oldest = strangers_.begin()->second.connection;
      oldest->Close("too many connections have not logged in");
    });
    service_.OnClose([this](const ConnectionPtr& connection, const Error&) {
      announced_ -= connection->state<Session>()->bytes;
      announcing_.erase(IdOf(*connection));
      strangers_.erase(IdOf(*connection));
      connections_.erase(IdOf(*connection));
      logins_.erase(IdOf(*connection));
      admin_.OnClosed(IdOf(*connection));
      machine_.OnClosed(Now(), IdOf(*connection));
    });
    HandleLogins();
    HandleRights();
    admin_.AddHandlers(service_);
  }

  Result<void> Start() {
    Result<std::shared_ptr<Acceptor>> listening = service_.Listen(options_.acceptor);
    if (!listening.ok()) return listening.error();
    acceptor_ = listening.value();
    io_.Post([this] {
      machine_.Start(Now());
      Tick();
    });
    return {};
  }

  void Stop() {
    if (std::exchange(stopped_, true)) return;
    service_.Stop();
    background_.Wait();
    // The last answers of the database and the last tick are behind this,
    OnLoop<bool>([this] { return *alive_ = false; });
    background_.Wait();  // and behind this what they have started.
  }

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

  // --- GlobalOutput: messages ---

  void SendLoginReply(ConnectionId to, const LoginReply& reply) override {
    const auto at = logins_.find(to);
    if (at == logins_.end()) return;
    Request<wire::FencedLogin> login = std::move(at->second);
    logins_.erase(at);
    const bool accepted = reply.outcome == LoginOutcome::kAccepted;
    ZEZE_LOG_INFO("Global {}: server {} (epoch {}) at {} {}", options_.shard,
                  login.argument().server_id, login.argument().epoch, PeerOf(to),
                  accepted ? "has logged in" : "is refused");
    announced_ -= std::exchange(login.connection()->state<Session>()->bytes, 0);
    announcing_.erase(to);
    if (accepted) {
      strangers_.erase(to);
      logged_in_.push_back(to);
    }
    // At once: what the machine sends next, a Reduce perhaps, must not overtake it.
    (void)login.Answer({.outcome = static_cast<std::uint32_t>(reply.outcome),
                        .term = reply.term,
                        .text = reply.text});
  }
  void SendGrant(ConnectionId to, std::uint64_t request, std::string_view key,
                 Right right) override {
    AnswerAcquire(to, request, 0, key, StateOf(right));
  }
  void SendRefusal(ConnectionId to, std::uint64_t request, std::string_view key, Right wanted,
                   Refusal refusal) override {
    std::int64_t code = wanted == Right::kModify ? wire::kModifyFailed : wire::kShareFailed;
    if (refusal == Refusal::kHolderFresh) code = wire::kHolderFresh;
    if (refusal == Refusal::kDeadlock) {
      code = wanted == Right::kModify ? wire::kModifyDeadlock : wire::kShareDeadlock;
    }
    AnswerAcquire(to, request, code, key, StateOf(Right::kInvalid));
  }
  void SendReleased(ConnectionId to, std::uint64_t request, std::string_view key) override {
    AnswerAcquire(to, request, 0, key, StateOf(Right::kInvalid));
  }
  void SendReduce(ConnectionId to, std::uint64_t serial, std::string_view key,
                  Right right) override;
  void Close(ConnectionId connection) override {
    if (Connection* open = Find(connection)) open->CloseWhenSent("its session has ended");
  }

  // --- GlobalOutput: the database ---

  void RaiseTerm() override {
    InBackground(blocking_, [this]() -> Task {
      // First: a term that was raised in another copy is no term.
      auto history = fence_.History();
      Result<std::int64_t> result = history.ok() ? fence_.RaiseTerm({.shard = options_.shard,
                                                                     .holder = options_.holder,
                                                                     .shards = options_.shards,
                                                                     .secret = secret_})
                                                 : Result<std::int64_t>(history.error());
      auto cluster = fence_.Cluster();
      if (result.ok() && !cluster.ok()) result = cluster.error();
      return [this, result, history, cluster] {
        if (history.ok() && history_.empty()) history_ = history.value();
        if (result.ok() && cluster.value().has_value()) cluster_ = cluster.value()->cluster;
        NoteDatabase(result);
        if (!result.ok() && result.error().code() == ErrorCode::kIncompatible) {
          Refuse(result.error());
          return;
        }
        machine_.OnTermRaised(Now(), result);
      };
    });
  }
  void ReadTerm() override {
    InBackground(blocking_, [this]() -> Task {
      auto terms = fence_.Terms();
      Result<std::int64_t> result =
          terms.ok() ? Result<std::int64_t>(terms.value()[options_.shard]) : terms.error();
      auto history = fence_.History();
      return [this, result, history] {
        NoteDatabase(result);
        machine_.OnTerm(Now(), result);
        if (history.ok() && history_ != history.value()) machine_.OnHistoryLost(Now());
      };
    });
  }
  void ListLive() override {
    Ask([this] { return fence_.ListLive(); },
        [this](const auto& servers) { machine_.OnLiveServers(Now(), servers); });
  }
  void Want(std::int32_t server_id, std::int64_t epoch, std::int64_t term) override {
    Ask([=, this] { return fence_.Want(server_id, epoch, options_.shard, term); },
        [=, this](const auto& written) { machine_.OnWanted(Now(), server_id, epoch, written); });
  }
  void Unwant(std::int32_t server_id, std::int64_t epoch, std::int64_t term) override {
    Ask([=, this] { return fence_.Unwant(server_id, epoch, options_.shard, term); },
        [](const auto&) {});
  }
  void ReadYields() override {
    Ask([this] { return fence_.Yields(options_.shard); },
        [this](const auto& yields) { machine_.OnYields(Now(), yields); });
  }
  void Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t term,
             const EvictUnless& unless) override {
    Ask([=, this] { return fence_.Evict(server_id, epoch, options_.shard, term, unless); },
        [=, this](const auto& outcome) { machine_.OnEvicted(Now(), server_id, epoch, outcome); });
  }
  void ReadServer(std::int32_t server_id) override {
    Ask([=, this] { return fence_.Read(server_id); },
        [=, this](const auto& row) { machine_.OnServerRow(Now(), server_id, row); });
  }
  void LeaseOver(std::int32_t server_id, std::int64_t epoch) override {
    Ask([=, this] { return fence_.LeaseOver(server_id, epoch); }, [](const auto&) {});
  }
  void StopServer(std::int32_t server_id, std::uint64_t ticket) override {
    InBackground(hooks(), [this, server_id, ticket]() -> Task {
      const bool stopped = options_.stop_server(server_id);
      return [this, server_id, ticket, stopped] {
        machine_.OnStopped(Now(), server_id, ticket, stopped);
      };
    });
  }
  void Alert(const GlobalAlert& alert) override { Tell(ToString(alert.kind), alert); }

 private:
  // `call` waits for the database; `told` gets what it said, on the network thread.
  template <typename Call, typename Told>
  void Ask(Call call, Told told) {
    InBackground(blocking_, [this, call = std::move(call), told = std::move(told)]() -> Task {
      auto result = call();
      return [this, result, told] {
        NoteDatabase(result);
        told(result);
      };
    });
  }
  // Says when the database is lost, and when it is back.
  template <typename T>
  void NoteDatabase(const Result<T>& result) {
    if (result.ok()) {
      trouble_.Over(Now());
    } else if (result.error().code() == ErrorCode::kUnavailable) {
      trouble_.Failed(result.error().message(), Now());
    }
  }

  // Nothing is tried again: only people can change it.
  void Refuse(const Error& why) {
    ZEZE_LOG_ERROR("Global {} does not fit its database: {}", options_.shard, why.message());
    if (options_.refused) blocking_.Post([refused = options_.refused, why] { refused(why); });
  }

  static GlobalOptions MachineOptions(const GlobalServiceOptions& options) {
    GlobalOptions machine = options.machine;
    machine.can_stop_servers = options.stop_server != nullptr;
    return machine;
  }
  Executor& hooks() { return options_.hooks != nullptr ? *options_.hooks : blocking_; }
  void Tell(std::string_view kind, const GlobalAlert& alert) {
    ZEZE_LOG_WARNING("Global {}: {}", options_.shard, alert.text);
    if (options_.alert) options_.alert(kind, alert);
  }
  std::string PeerOf(ConnectionId id) {
    const Connection* connection = Find(id);
    return connection == nullptr ? "" : connection->peer_address().ToString();
  }
  static ConnectionId IdOf(const Connection& connection) {
    return static_cast<ConnectionId>(connection.id());
  }
  Connection* Find(ConnectionId id) {
    if (asking_ != nullptr && IdOf(*asking_) == id) return asking_;
    const auto at = connections_.find(id);
    return at == connections_.end() ? nullptr : at->second.get();
  }
  void AnswerAcquire(ConnectionId to, std::uint64_t request, std::int64_t code,
                     std::string_view key, std::uint32_t state) {
    Connection* connection = Find(to);
    if (connection == nullptr) return;
    // An answer that does not fit closes the connection, which is what a lost one must do.
    (void)connection->SendAnswer(
        wire::Acquire::kDescriptor, static_cast<std::int64_t>(request), code,
        [key, state](ByteWriter& out) { wire::KeyState{.key = key, .state = state}.Encode(out); });
  }
  // `work` may wait; what it returns runs on the network thread.
  void InBackground(Executor& executor, std::function<Task()> work) {
    background_.Add();
    executor.Post([this, alive = alive_, work = std::move(work)] {
      Task then = work();
      io_.Post([alive, then = std::move(then)]() mutable {
        if (*alive) then();
      });
      background_.Done();
    });
  }
  void Tick();
  void CloseStrangers();
  Claim ClaimOf(const Session& session) const {
    return {.server_nonce = session.server_nonce,
            .global_nonce = session.global_nonce,
            .cluster = cluster_,
            .shard = options_.shard};
  }
  void HandleLogins();
  void HandleRights();
  void Greet(Request<wire::Greeting> request);
  void Login(Request<wire::FencedLogin> request);
  std::function<bool(std::string_view)> ProofIn(const wire::FencedLoginArgument& argument,
                                                const Session& session) const;
  // Why a login for a shard is refused here; empty: it is not. Counts, and tells the operators once
  // a minute.
  std::string RefuseShard(std::int32_t server_id, std::int32_t shard);
  void UnfencedLogin(const ConnectionPtr& connection, const wire::LoginArgument& argument,
                     bool again, const std::function<void(bool)>& answer);

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

void GlobalService::Impl::Tick() {
  const GlobalServer::Time now = Now();
  // A server says nothing between its login and the answer, which takes longer the more rights it
  // announces. Its silence begins here: otherwise a login that takes longer than silence_max would
  // be closed as soon as it is answered, and so would the next one.
  for (const ConnectionId connection : std::exchange(logged_in_, {})) {
    machine_.OnKeepAlive(now, connection);
  }
  machine_.Tick(now);
  CloseStrangers();
  admin_.Tick();
  if (machine_.serving() && !std::exchange(serving_, true)) {
    ZEZE_LOG_INFO("Global {} serves, term {}, {} keys are held", options_.shard, machine_.term(),
                  machine_.directory().key_count());
  }
  if (machine_.deposed() && !std::exchange(deposed_, true) && options_.deposed) {
    blocking_.Post([deposed = options_.deposed] { deposed(); });
  }
  io_.PostAfter(kTickPeriod, [this, alive = alive_] {
    if (*alive) Tick();
  });
}

void GlobalService::Impl::CloseStrangers() {
  std::vector<ConnectionPtr> due;  // A close changes the map.
  for (const auto& [id, stranger] : strangers_) {
    const auto patience = admin_.Considers(id) ? std::max(kPreviewTime, options_.login_timeout)
                                               : options_.login_timeout;
    if (recent_now_ - stranger.since >= patience) due.push_back(stranger.connection);
  }
  for (const ConnectionPtr& connection : due) connection->Close("it did not log in in time");
}

void GlobalService::Impl::SendReduce(ConnectionId to, std::uint64_t serial, std::string_view key,
                                     Right right) {
  Connection* connection = Find(to);
  if (connection == nullptr) return;
  const wire::KeyState argument{.key = key, .state = StateOf(right)};
  // The machine has its own, shorter time-out.
  const CallOptions call{.timeout = options_.machine.reduce_timeout * 2};
  Result<void> sent = connection->Call<wire::Reduce>(
      argument, call, [this, to, serial, key = std::string(key)](RpcReply<wire::Reduce> reply) {
        if (reply.outcome != RpcOutcome::kAnswered) return;  // The close tells the machine.
        // A negative code is of the framework: nothing was lowered. Old peers add codes of their
        // own.
        if (reply.result_code >= 0 && reply.result.state <= StateOf(Right::kModify)) {
          machine_.OnReduced(Now(), to, serial, key, static_cast<Right>(reply.result.state));
        } else {
          machine_.OnReduceFailed(Now(), to, serial, key,
                                  reply.result.state == wire::kStateFresh ? Refusal::kHolderFresh
                                                                          : Refusal::kHolderFailed);
        }
      });
  if (!sent.ok()) connection->Close(sent.error().message());
}

void GlobalService::Impl::Greet(Request<wire::Greeting> request) {
  if (machine_.term() == 0) {
    (void)request.AnswerCode(wire::kNoTermYet);
    return;
  }
  auto* session = request.connection()->state<Session>();
  if (request.argument().nonce.size() != kNonceBytes || !session->global_nonce.empty()) {
    request.connection()->Close("it greets wrongly");
    return;
  }
  session->server_nonce = request.argument().nonce;
  session->global_nonce = NewSecret();
  const Claim claim = ClaimOf(*session);
  (void)request.Answer({.shard = options_.shard,
                        .term = machine_.term(),
                        .cluster = cluster_,
                        .nonce = session->global_nonce,
                        .proof = ProofOfTerm(secret_, claim, machine_.term())});
}

std::string GlobalService::Impl::RefuseShard(std::int32_t server_id, std::int32_t shard) {
  if (shard == options_.shard) return {};
  const std::string text = fmt::format(
      "this Global serves shard {}, and the login of server {} is for shard {}: every server must "
      "list the Globals in the order of their shards (GlobalCacheManagerHostNameOrAddress)",
      options_.shard, server_id, shard);
  ++refused_;
  const GlobalServer::Time now = Now();
  if (!refused_told_ || now >= *refused_told_ + kRefusedTold) {
    refused_told_ = now;
    Tell("refused", {.server_id = server_id,
                     .text = fmt::format("{}. {} logins have been refused so", text, refused_)});
  }
  return text;
}

void GlobalService::Impl::Login(Request<wire::FencedLogin> request) {
  const ConnectionId from = IdOf(*request.connection());
  if (std::string text = RefuseShard(request.argument().server_id, request.argument().hash_index);
      !text.empty()) {
    (void)request.Answer({.outcome = static_cast<std::uint32_t>(LoginOutcome::kRefused),
                          .term = machine_.term(),
                          .text = std::move(text)});
    request.connection()->CloseWhenSent("its login is for another shard");
    return;
  }
  auto* session = request.connection()->state<Session>();
  wire::FencedLoginArgument& argument = request.argument();
  std::size_t bytes = 0;
  for (const HeldRight& one : argument.rights) bytes += kBytesOfRight + one.key.size();
  const bool proven =
      machine_.OnLoginPart(Now(), argument.server_id, argument.epoch, ProofIn(argument, *session));
  if (const auto at = strangers_.find(from); proven && at != strangers_.end()) {
    at->second.since = recent_now_;  // It is at work.
  }
  // One of them always goes on: otherwise all would wait for each other.
  const bool first = announcing_.empty() || *announcing_.begin() == from;
  if (announced_ + bytes > options_.announced_bytes_max && !(proven && first)) {
    if (!proven) {
      request.connection()->Close("the logins under way name too many rights");
      return;
    }
    (void)request.Answer(
        {.outcome = static_cast<std::uint32_t>(LoginOutcome::kLater), .term = machine_.term()});
    return;
  }
  announcing_.insert(from);
  announced_ += bytes;
  session->bytes += bytes;
  std::move(argument.rights.begin(), argument.rights.end(), std::back_inserter(session->rights));
  if (!argument.last) {
    (void)request.Answer({});
    return;
  }
  if (logins_.contains(from)) {
    request.connection()->Close("it logs in twice");
    return;
  }
  connections_[from] = request.connection();
  LoginRequest login{.server_id = argument.server_id,
                     .epoch = argument.epoch,
                     .start_term = argument.start_term,
                     .rights = std::exchange(session->rights, {}),
                     .lease = std::chrono::milliseconds(argument.lease_ms),
                     .serial = argument.serial,
                     .yields = argument.yields,
                     .proves = ProofIn(argument, *session)};
  session->server_nonce.clear();  // It counts once.
  const std::string cluster = argument.cluster;
  logins_.insert_or_assign(from, std::move(request));
  if (!cluster.empty() && cluster != cluster_) {
    machine_.RefuseLogin(Now(), from, login,
                         fmt::format("its database holds cluster {}, this Global serves cluster {}",
                                     FormatClusterId(cluster), FormatClusterId(cluster_)));
    return;
  }
  machine_.OnLogin(Now(), from, std::move(login));
}

// Null: it proves nothing.
std::function<bool(std::string_view)> GlobalService::Impl::ProofIn(
    const wire::FencedLoginArgument& argument, const Session& session) const {
  if (argument.proof.empty()) return nullptr;
  return [proof = argument.proof, server_id = argument.server_id, epoch = argument.epoch,
          server_nonce = session.server_nonce, global_nonce = session.global_nonce,
          cluster = cluster_, shard = options_.shard](std::string_view secret) {
    const Claim claim{.server_nonce = server_nonce,
                      .global_nonce = global_nonce,
                      .cluster = cluster,
                      .shard = shard};
    return !server_nonce.empty() && SameProof(ProofOfEpoch(secret, claim, server_id, epoch), proof);
  };
}

void GlobalService::Impl::UnfencedLogin(const ConnectionPtr& connection,
                                        const wire::LoginArgument& argument, bool again,
                                        const std::function<void(bool)>& answer) {
  const std::int32_t server_id = argument.server_id;
  if (!RefuseShard(server_id, argument.hash_index).empty()) {
    answer(false);
    return;
  }
  connections_[IdOf(*connection)] = connection;
  const bool accepted = machine_.OnUnfencedLogin(Now(), IdOf(*connection), server_id, again);
  if (accepted) strangers_.erase(IdOf(*connection));
  if (!accepted) {
    ZEZE_LOG_WARNING("Global {}: server {} without a fence is refused{}", options_.shard, server_id,
                     options_.machine.unfenced_wait.count() == 0
                         ? ": such servers are not allowed here (zeze global --unfenced-wait)"
                         : "");
  }
  answer(accepted);
}

void GlobalService::Impl::HandleLogins() {
  service_.Handle<wire::Greeting>(
      [this](Request<wire::Greeting> request) { Greet(std::move(request)); });
  service_.Handle<wire::FencedLogin>(
      [this](Request<wire::FencedLogin> request) { Login(std::move(request)); });
  service_.Handle<wire::Login>([this](Request<wire::Login> request) {
    UnfencedLogin(request.connection(), request.argument(), false, [&](bool accepted) {
      (void)request.Answer(accepted ? 0 : wire::kLoginRefused, {});
    });
  });
  service_.Handle<wire::ReLogin>([this](Request<wire::ReLogin> request) {
    UnfencedLogin(request.connection(), request.argument(), true, [&](bool accepted) {
      (void)request.Answer(accepted ? 0 : wire::kReloginRefused, {});
    });
  });
  service_.Handle<wire::NormalClose>([this](Request<wire::NormalClose> request) {
    const ConnectionId from = IdOf(*request.connection());
    if (!machine_.LoggedIn(from)) {
      (void)request.AnswerCode(wire::kNotLoggedIn);
      return;
    }
    (void)request.Answer({});
    machine_.OnNormalClose(Now(), from);
  });
  service_.Handle<wire::KeepAlive>([this](Request<wire::KeepAlive> request) {
    const ConnectionId from = IdOf(*request.connection());
    const bool known = machine_.LoggedIn(from);
    machine_.OnKeepAlive(Now(), from);
    (void)request.AnswerCode(known ? 0 : wire::kNotLoggedIn);
  });
  // The key of old consoles is no secret: see `zeze admin cleanup`.
  service_.Handle<wire::Cleanup>(
      [](Request<wire::Cleanup> request) { (void)request.AnswerCode(wire::kCleanupRefused); });
}

void GlobalService::Impl::HandleRights() {
  service_.HandleRaw(
      wire::Acquire::kDescriptor,
      [this](Connection& connection, const Frame& frame) -> Result<void> {
        ByteReader in(frame.payload);
        wire::KeyState argument;
        argument.Decode(in);
        if (!in.ok()) return in.ToError(wire::Acquire::kDescriptor.full_name);
        const ConnectionId from = IdOf(connection);
        const auto request = static_cast<std::uint64_t>(frame.session_id);
        const auto answer = [&](std::int64_t code) {
          (void)connection.SendAnswer(
              wire::Acquire::kDescriptor, frame.session_id, code,
              [&argument](ByteWriter& out) { wire::KeyState{.key = argument.key}.Encode(out); });
        };
        if (argument.state > StateOf(Right::kModify)) {
          answer(machine_.LoggedIn(from) ? wire::kBadState : wire::kNotLoggedIn);
          return {};
        }
        asking_ = &connection;
        const bool known = argument.state == StateOf(Right::kInvalid)
                               ? machine_.OnRelease(recent_now_, from, request, argument.key)
                               : machine_.OnAcquire(recent_now_, from, request, argument.key,
                                                    static_cast<Right>(argument.state));
        asking_ = nullptr;
        if (!known) answer(wire::kNotLoggedIn);
        return {};
      });
}

// --- the service --------------------------------------------------------------------------------

GlobalService::GlobalService(IoThreads& io, Fence& fence, Executor& blocking,
                             GlobalServiceOptions options)
    : impl_(std::make_unique<Impl>(io, fence, blocking, std::move(options))) {}

GlobalService::~GlobalService() {
  Stop();
}

Result<void> GlobalService::Start() {
  return impl_->Start();
}

void GlobalService::Stop() {
  impl_->Stop();
}

NetAddress GlobalService::address() const {
  return impl_->address();
}

GlobalService::Status GlobalService::GetStatus() const {
  return impl_->OnLoop<Status>([this] {
    const GlobalServer& machine = impl_->machine();
    return Status{.term = machine.term(),
                  .accepting = machine.accepting(),
                  .serving = machine.serving(),
                  .unfenced = machine.unfenced(),
                  .keys = machine.directory().key_count()};
  });
}

bool GlobalService::CleanUp(std::int32_t server_id) {
  return impl_->OnLoop<bool>(
      [this, server_id] { return impl_->machine().Cleanup(impl_->Now(), server_id); });
}

}  // namespace zeze::global
