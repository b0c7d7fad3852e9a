// ShardSession: a server's session with one shard of Global. It owns the connection, what waits for
// an answer (`asking_`), and the questions of Global that are not answered yet (`reduces_`);
// whether a message counts is for its GlobalAgent to say.
//
// In three files: shard_rights.cc (the way of a right: Acquire, Release, Reduce), shard_login.cc,
// shard_session.cc (life, and what happens out of Global's sight).

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/global/agent.h"
#include "zeze/global/directory.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/unfenced_trust.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"

namespace zeze::global {

// Thread-safe. Messages are handled on the connection's network thread, in order. What they do to
// records happens there too, without the mutex: the record layer may call back.
class ShardSession final : private AgentOutput {
 public:
  // What it proves itself by, and how it learns who its Global is.
  struct Identity {
    std::string cluster;
    std::string secret;                       // Of the epoch.
    std::function<void()> look_up = nullptr;  // Asks for OnTermRow, which comes later.
  };
  ShardSession(IoThreads& io, Engine& engine, const GlobalClientOptions& options, std::size_t shard,
               std::int64_t epoch, std::int64_t start_term, Identity identity,
               std::function<void(const std::string&)> fenced);
  ~ShardSession();
  ShardSession(const ShardSession&) = delete;
  ShardSession& operator=(const ShardSession&) = delete;

  void Connect();
  // An error: not in time, or Global refuses this server and says why.
  Result<void> AwaitReady(std::chrono::nanoseconds deadline);
  void OnTerm(std::int64_t term);
  // Whether a Global that it has had a session with has none with it now (rule 63).
  bool out_of_sight();
  // The Global of this term wants the rights of the shard (rule 64).
  void OnWanted(std::int64_t term);
  // The mark to be written when everything is given up, if that is due.
  std::optional<YieldMark> DueYield();
  // Lowers every right of the shard and waits until everything under them is saved. False: stopped
  // before.
  bool GiveUpRights(FunctionRef<bool()> stopping);
  // The mark is written.
  void Yielded();
  // What the database has for the shard, read after `look_up` was called.
  void OnTermRow(const Result<Fence::TermRow>& row);
  // Whether rights of this shard may be used. Always, if the Global has terms: the lease tells.
  bool Usable(std::chrono::nanoseconds now) const {
    return now.count() < usable_until_.load(std::memory_order_acquire);
  }
  bool unfenced() const { return unfenced_.load(std::memory_order_relaxed); }
  Result<void> Acquire(std::string_view key, Right wanted, FreshRights& fresh,
                       FunctionRef<void(Right)> install);
  // The two halves of Coherence::AcquireAll: asks for those of the wishes, and waits until none of
  // them is open. In between `open` is the session's.
  void AskForAll(std::span<const Coherence::Wish> wishes, std::span<const std::size_t> which,
                 FunctionRef<void(std::size_t index, Right granted)> install, std::size_t& open);
  void AwaitAll(const std::size_t& open);
  void Used(const std::string& key);
  void Release(std::string_view key);
  // Gives everything back; waits for the answer.
  void NormalClose();
  void Stop();

 private:
  // Somebody asks for a key, or gives it back.
  struct Asking {
    std::function<void(Right)> install = nullptr;  // Null: a release.
    // Of many that were asked for at once: how many of them are open. Nobody waits for this one,
    // its right is not kept from others, and it is forgotten when it is answered.
    std::size_t* open = nullptr;
    bool done = false;
    bool busy = false;  // Not now; the key is in use.
    Result<void> result;
  };
  // What is known of the Global.
  enum class Kind : std::uint8_t { kUnknown, kFencing, kUnfenced };
  // A question of Global: to lower a right.
  struct Reducing {
    ConnectionId connection = 0;
    std::uint64_t serial = 0;
    Right to = Right::kInvalid;
  };

  // AgentOutput.
  void SendLogin(ConnectionId to, const LoginRequest& request) override ZEZE_REQUIRES(mutex_);
  void Close(ConnectionId connection) override ZEZE_REQUIRES(mutex_);
  std::vector<HeldRight> Rights() override ZEZE_REQUIRES(mutex_);
  void Lost(std::uint64_t request, std::string_view key) override ZEZE_REQUIRES(mutex_);
  void Yield(const YieldMark& mark) override ZEZE_REQUIRES(mutex_);
  void Fenced() override ZEZE_REQUIRES(mutex_);

  // --- The way of a right (shard_rights.cc), step by step. ---

  // One try. False: the key is in use just now.
  bool AcquireOnce(std::string_view key, Right wanted, FreshRights& fresh,
                   FunctionRef<void(Right)> install, Result<void>& result);
  void SendAcquire(std::string_view key, Right wanted) ZEZE_REQUIRES(mutex_);
  void OnAcquireReply(ConnectionId from, std::chrono::nanoseconds sent, std::uint64_t request,
                      const std::string& key, Right wanted, const RpcReply<wire::Acquire>& reply);
  void Finish(std::string_view key, Result<void> result) ZEZE_REQUIRES(mutex_);
  void AwaitAnswer(const Asking& asking) ZEZE_REQUIRES(mutex_);
  void Forget(std::string_view key) ZEZE_REQUIRES(mutex_);

  void OnReduce(::zeze::Request<wire::Reduce> request);
  // Lowers the right and answers when everything under it is saved; puts that off while a
  // transaction holds on to the right.
  void Lower(const std::string& key, const Reducing& reducing);
  // What was put off; `used`: the transaction has ended.
  void LowerDeferred(const std::string& key, bool used);
  void AnswerReduce(const std::string& key, const Reducing& reducing);
  bool LockedAsOldPeer(std::string_view key) const ZEZE_REQUIRES(mutex_);
  void UnlockAsOldPeer(std::string_view key) ZEZE_REQUIRES(mutex_);

  // --- Life (shard_session.cc). ---

  void SendKeepAlive() ZEZE_REQUIRES(mutex_);
  void SendNormalClose() ZEZE_REQUIRES(mutex_);
  // Runs `work` with the mutex held, then what it left to be done without.
  void WithAgent(FunctionRef<void(GlobalAgent&)> work);
  bool Mine(std::string_view key) const;
  static ConnectionId IdOf(const Connection& connection) {
    return static_cast<ConnectionId>(connection.id());
  }
  void KeepAlive();
  void CloseIfCurrent(ConnectionId connection, std::string_view why);

  // --- Logging in (shard_login.cc). ---

  // One part after the other: all of them may be more than a connection takes.
  void SendLoginPart(ConnectionId to, const std::shared_ptr<const LoginRequest>& login,
                     std::size_t begin) ZEZE_REQUIRES(mutex_);
  // First asks who is there; the login proves that this is the process of its epoch (rule 57).
  void SendFencedLogin(ConnectionId to, const LoginRequest& request) ZEZE_REQUIRES(mutex_);
  void OnGreeting(ConnectionId to, const RpcReply<wire::Greeting>& reply);
  void OnNoFencedLogin(ConnectionId to, RpcOutcome outcome);
  void BecomeUnfenced() ZEZE_REQUIRES(mutex_);
  void SendOldLogin(ConnectionId to) ZEZE_REQUIRES(mutex_);
  void OnOldLogin(ConnectionId from, std::chrono::nanoseconds sent, bool again, RpcOutcome outcome,
                  std::int64_t code, const wire::LoginResult& timing);
  // An answer of a Global without terms: it is in sight.
  void Heard(ConnectionId from, std::chrono::nanoseconds sent) ZEZE_REQUIRES(mutex_);
  // Nothing may be used until it is in sight again.
  void Lost() ZEZE_REQUIRES(mutex_);
  void Publish() ZEZE_REQUIRES(mutex_);
  // The thread that saves and gives up rights while such a Global is out of sight.
  void Guard();
  bool SaveAll();
  void DropRights();

  // On the network thread, unless the session is over by then.
  void Later(std::chrono::nanoseconds delay, std::function<void()> work);

  IoThreads& io_;
  Engine& engine_;
  const GlobalClientOptions& options_;
  const std::size_t shard_;
  const std::function<void(const std::string&)> fenced_;
  const std::int64_t start_term_;
  const std::int64_t epoch_;
  const Identity identity_;
  Mutex mutex_;
  CondVar changed_;
  GlobalAgent agent_ ZEZE_GUARDED_BY(mutex_);
  ConnectionPtr connection_ ZEZE_GUARDED_BY(mutex_);
  bool closed_normally_ ZEZE_GUARDED_BY(mutex_) = false;
  std::string refusal_ ZEZE_GUARDED_BY(mutex_);  // What Global said, if it refuses this server.
  Kind kind_ ZEZE_GUARDED_BY(mutex_) = Kind::kUnknown;
  // A login that waits until it is known who the Global is.
  struct Greeted {
    ConnectionId to = 0;
    std::shared_ptr<const LoginRequest> login;
    std::string nonce;
    std::chrono::nanoseconds sent_at{0};
    wire::GreetingResult said;  // Its nonce is empty until the greeting is answered.
  };
  bool GreetingOverdue() const ZEZE_REQUIRES(mutex_);
  Greeted greeted_ ZEZE_GUARDED_BY(mutex_);
  std::string proof_ ZEZE_GUARDED_BY(mutex_);       // Of the login under way.
  int logins_cut_off_ ZEZE_GUARDED_BY(mutex_) = 0;  // One after the other.
  bool was_ready_ ZEZE_GUARDED_BY(mutex_) = false;
  int unanswered_ ZEZE_GUARDED_BY(mutex_) = 0;  // KeepAlives of this connection, one after another.
  int installing_ ZEZE_GUARDED_BY(mutex_) = 0;  // Grants that are being installed.
  std::optional<YieldMark> due_yield_ ZEZE_GUARDED_BY(mutex_);
  UnfencedTrust trust_ ZEZE_GUARDED_BY(mutex_);
  bool login_due_ ZEZE_GUARDED_BY(mutex_) = false;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  CondVar guard_wake_;
  std::thread guard_;
  std::atomic<bool> unfenced_ = false;
  std::atomic<std::int64_t> usable_until_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t last_request_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_serial_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Asking, std::less<>> asking_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, ::zeze::Request<wire::Reduce>> reduces_ ZEZE_GUARDED_BY(mutex_);
  // Until when a key is not given away.
  std::map<std::string, std::chrono::nanoseconds, std::less<>> held_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::string, Reducing, std::less<>> deferred_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> after_ ZEZE_GUARDED_BY(mutex_);
  // What was posted to run later runs with this mutex held, or not at all.
  struct Life {
    Mutex mutex;
    bool over ZEZE_GUARDED_BY(mutex) = false;
  };
  std::shared_ptr<Life> life_ = std::make_shared<Life>();
  Service service_;  // Last: its callbacks use the rest.
};

}  // namespace zeze::global
