// GlobalServer: one shard of Global. It owns the sessions, the book of their rights (Directory),
// and the times of the questions to holders; it decides about recovery, and about servers that
// block others. Rules 39 to 46 and 57 to 68 of docs/architecture.md. global_rights.cc is the way of
// a right through it.
//
//   GlobalServer global(options, output);
//   global.Start(now);                                  // Asks for a term, then for who is there.
//   global.OnLogin(now, connection, request);           // Messages, in the order of a connection.
//   global.Tick(now);                                   // Whenever NextDeadline() has come.
//
// A state machine without I/O, threads or clocks: everything it does goes through GlobalOutput, and
// the answers of the database come back as On... The simulator runs this very code.
//
// Its memory is the book. After a restart it raises the term of its shard, lists the live servers,
// and grants nothing until each of them has announced its rights or cannot use them any more.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/lease.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

struct GlobalOptions {
  // Its duration counts for servers that do not say theirs, of earlier builds: not shorter than
  // theirs. For all others Global waits for the lease they told the database (hole 31).
  LeaseOptions lease;
  // A connection on which nothing is heard for so long is closed: its process is paused or hangs.
  std::chrono::nanoseconds silence_max = std::chrono::seconds(1);
  // A server without a connection that is in somebody's way and renews its lease has so long, since
  // its last sign, to save everything and yield, or to come back (rule 61).
  std::chrono::nanoseconds passive_wait = std::chrono::seconds(30);
  // A connected one that is in somebody's way and does not renew its lease is cut off from the
  // database; it is evicted so long after its last renewal was seen.
  std::chrono::nanoseconds database_wait = std::chrono::seconds(30);
  // A holder that does not answer for so long has failed, and its connection is closed.
  std::chrono::nanoseconds reduce_timeout = std::chrono::seconds(17);
  // A request waits for so long for a holder that has no connection: it is on its way back, or its
  // rights are being taken away (rule 67). Less than callers wait.
  std::chrono::nanoseconds acquire_wait = std::chrono::seconds(5);
  std::chrono::nanoseconds retry_delay = std::chrono::milliseconds(500);
  // How often it looks whether its term is still current, and which servers renew their leases. The
  // former only so that a deposed Global ends soon: its grants do no harm.
  std::chrono::nanoseconds term_period = std::chrono::seconds(1);
  // How often it looks for the marks of servers that it wants to yield.
  std::chrono::nanoseconds yield_period = std::chrono::milliseconds(200);

  // Old peers have no epoch and no lease: nothing but time keeps them from using rights that were
  // taken away. Longer than they may go on by themselves; 0: they are refused. After a start
  // nothing is granted for so long.
  std::chrono::nanoseconds unfenced_wait{0};

  // Whether StopServer of the output can stop a server for certain, however (power, hypervisor). It
  // is used for old peers, which the database cannot fence.
  bool can_stop_servers = false;
  // An old peer without a connection that is in somebody's way is stopped after so long: it notices
  // the loss itself after 8 s. If that fails, again after stop_retry.
  std::chrono::nanoseconds stop_after = std::chrono::seconds(8);
  std::chrono::nanoseconds stop_retry = std::chrono::seconds(30);

  // For tests of the simulator: each leaves a rule out.
  bool unsafe_free_at_once = false;
  bool unsafe_ignore_start_term = false;
  bool unsafe_own_lease = false;
  bool unsafe_let_old_peers_wait = false;
  bool unsafe_fail_before_close = false;
  bool unsafe_believe_logins = false;
  bool unsafe_free_by_old_renewals = false;
  bool unsafe_evict_only_unconnected = false;
  bool unsafe_late_logins = false;
  bool unsafe_any_yield_number = false;
  bool unsafe_any_yield_term = false;
};

enum class AlertKind : std::uint8_t {
  kLost,             // A server has no connection, for longer than a moment.
  kReturned,         // It is back.
  kEvicted,          // Its rights are being taken away.
  kFreed,            // They are free.
  kStopFailed,       // It could not be stopped: people must do it.
  kRecovering,       // This Global waits for the servers to announce their rights.
  kServing,          // It has recovered.
  kDeposed,          // Another Global has taken over.
  kRefused,          // Somebody logs in who is not who it says; told once a minute.
  kYielded,          // It has no connection, has saved everything and given up its rights.
  kCutFromDatabase,  // It is connected and does not renew its lease.
  kStuck,            // It renews its lease and does not answer: people must look at it.
};
// One word, for programs.
std::string_view ToString(AlertKind kind);

struct GlobalAlert {
  AlertKind kind = AlertKind::kLost;
  std::optional<std::int32_t> server_id = std::nullopt;
  std::int64_t epoch = 0;
  std::string text = {};  // For people.
};

// A server, as Global sees it.
struct ServerView {
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
  std::uint64_t session = 0;    // Another one for each login that began anew.
  bool unfenced = false;        // An old peer.
  bool live = true;             // False: its rights are being taken away.
  bool announced = false;       // False: Global has restarted, and its rights are not known yet.
  ConnectionId connection = 0;  // 0: none.
  std::chrono::nanoseconds silent_for{0};  // Since something was heard, or it was lost.
  RightCounts rights = {};
};

// What happens outside. Called while the machine works: do not call it back from here.
class GlobalOutput {
 public:
  virtual void SendLoginReply(ConnectionId to, const LoginReply& reply) = 0;
  virtual void SendGrant(ConnectionId to, std::uint64_t request, std::string_view key,
                         Right right) = 0;
  virtual void SendRefusal(ConnectionId to, std::uint64_t request, std::string_view key,
                           Right wanted, Refusal refusal) = 0;
  virtual void SendReleased(ConnectionId to, std::uint64_t request, std::string_view key) = 0;
  virtual void SendReduce(ConnectionId to, std::uint64_t serial, std::string_view key,
                          Right right) = 0;
  virtual void Close(ConnectionId connection) = 0;

  // Fence calls; each is answered by the On... of its name, and repeated by the machine on errors.
  virtual void RaiseTerm() = 0;
  virtual void ReadTerm() = 0;
  virtual void ListLive() = 0;
  virtual void Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t term,
                     const EvictUnless& unless) = 0;
  virtual void ReadServer(std::int32_t server_id) = 0;
  virtual void Want(std::int32_t server_id, std::int64_t epoch, std::int64_t term) = 0;
  virtual void ReadYields() = 0;
  // Not answered: if it fails, the next recovery waits once more, or a server yields for nothing.
  virtual void LeaseOver(std::int32_t server_id, std::int64_t epoch) = 0;
  virtual void Unwant(std::int32_t server_id, std::int64_t epoch, std::int64_t term) = 0;

  // Stops a server by other means than the database, if can_stop_servers; answered by OnStopped
  // with the same ticket.
  virtual void StopServer(std::int32_t server_id, std::uint64_t ticket) = 0;

  // For the operators (requirement G9).
  virtual void Alert(const GlobalAlert& alert) = 0;

 protected:
  ~GlobalOutput() = default;
};

class GlobalServer final : private DirectoryOutput {
 public:
  using Time = std::chrono::nanoseconds;

  GlobalServer(const GlobalOptions& options, GlobalOutput& output);

  void Start(Time now);

  // --- the database's answers ---
  void OnTermRaised(Time now, const Result<std::int64_t>& term);
  // The shard's term in the database.
  void OnTerm(Time now, const Result<std::int64_t>& term);
  // The database is another copy than before: what it said may be gone (rule 48).
  void OnHistoryLost(Time now);
  void OnLiveServers(Time now, const Result<std::vector<LiveServer>>& servers);
  void OnEvicted(Time now, std::int32_t server_id, std::int64_t epoch,
                 const Result<EvictOutcome>& outcome);
  void OnServerRow(Time now, std::int32_t server_id, const Result<Fence::ServerRow>& row);
  // False: the term has passed.
  void OnWanted(Time now, std::int32_t server_id, std::int64_t epoch, const Result<bool>& written);
  void OnYields(Time now, const Result<std::vector<YieldedServer>>& yields);

  // Whether the process is stopped for certain: it has ended, and nothing of it is on its way to
  // the database any more.
  void OnStopped(Time now, std::int32_t server_id, std::uint64_t ticket, bool surely);

  // --- messages ---
  // Answered when the database has shown that the epoch and its proof are true (rule 58): a login
  // that is refused changes no session, epoch or connection but its own.
  void OnLogin(Time now, ConnectionId from, LoginRequest request);
  // A part of a login has come: a sign of life, if it proves what it says. False: it does not, or
  // that is not known yet.
  bool OnLoginPart(Time now, std::int32_t server_id, std::int64_t epoch, const LoginProof& proves);
  // Somebody who does not belong here, for a reason that the network knows.
  void RefuseLogin(Time now, ConnectionId from, const LoginRequest& request,
                   const std::string& why);
  // False: not logged in.
  bool OnAcquire(Time now, ConnectionId from, std::uint64_t request, std::string_view key,
                 Right wanted);
  bool OnRelease(Time now, ConnectionId from, std::uint64_t request, std::string_view key);
  void OnReduced(Time now, ConnectionId from, std::uint64_t serial, std::string_view key,
                 Right right);
  void OnReduceFailed(Time now, ConnectionId from, std::uint64_t serial, std::string_view key,
                      Refusal why);
  void OnKeepAlive(Time now, ConnectionId from);
  // Of old peers. False: refused. A first login gives back what an older session of the id had; a
  // later one goes on with it, if it is still there.
  bool OnUnfencedLogin(Time now, ConnectionId from, std::int32_t server_id, bool again);
  // The server has saved everything and ends.
  void OnNormalClose(Time now, ConnectionId from);
  void OnClosed(Time now, ConnectionId connection);

  // Operators take a server's rights away, alive or not. False: this very session is not there any
  // more, or its rights are being taken away already.
  bool Cleanup(Time now, std::int32_t server_id, std::int64_t epoch, std::uint64_t session);
  // The same for whichever process of the server is there.
  bool Cleanup(Time now, std::int32_t server_id);

  std::vector<ServerView> Servers(Time now) const;

  void Tick(Time now);
  // Time::max() when nothing is due.
  Time NextDeadline() const;

  std::int64_t term() const { return term_; }
  bool LoggedIn(ConnectionId connection) const { return SessionOf(connection) != kNoSession; }
  // Whether old peers take part: then the cluster is not safe from all faults.
  bool unfenced() const;
  // Whether servers may log in: it knows who was there.
  bool accepting() const { return phase_ == Phase::kRecovering || serving(); }
  bool serving() const { return phase_ == Phase::kServing; }
  // Another Global has taken this shard over. The owner ends or starts anew.
  bool deposed() const { return phase_ == Phase::kDeposed; }
  const Directory& directory() const { return directory_; }

 private:
  // Of sessions of old peers. Epochs of servers begin with 1.
  static constexpr std::int64_t kUnfencedEpoch = 0;

  enum class Phase : std::uint8_t {
    kNew,
    kRaisingTerm,
    kListing,
    kRecovering,  // Somebody has rights that are not known.
    kServing,
    kDeposed,
  };
  enum class State : std::uint8_t {
    kLive,      // May use its rights, connected or not.
    kEvicting,  // Asked the database to fence it.
    kFenced,  // By us, or as its successor says; the database is to say what is left of its lease.
    kStopping,  // An old peer that is being stopped; it keeps its rights until that is certain.
    kFreeing,   // Fenced for certain; it may still read until its lease is over.
  };
  // Whether the database says that we want the session to yield (rule 64).
  enum class Wanting : std::uint8_t { kNo, kAsking, kYes, kYielded };
  struct Session {
    std::int32_t server_id = 0;
    std::int64_t epoch = 0;
    State state = State::kLive;
    bool unfenced = false;   // An old peer.
    bool announced = false;  // Otherwise it was listed, and what it has is not known yet.
    bool told_lost = false;
    bool told_cut = false;
    bool told_stuck = false;
    Wanting wanting = Wanting::kNo;
    ConnectionId connection = 0;    // 0: none.
    std::uint64_t number = 0;       // See ServerView::session.
    std::uint64_t stop_ticket = 0;  // Of the last StopServer.
    Time stop_not_before{0};
    Time silent_since{0};
    Time heard{0};
    Time sign{0};              // Of life: it was connected, or a part of a login came.
    Time in_the_way_until{0};  // Somebody was refused because of it.
    Time want_not_before{0};
    std::chrono::milliseconds lease{0};  // As it said; 0: it did not.
    Time due{0};                         // kEvicting: ask again; kFreeing: free.
    // How many renewals of its lease the database has, and when that was first seen.
    std::int64_t renewals = -1;
    Time seen{0};
    std::uint64_t known_since = 0;  // How often the servers had been listed when it came.
    std::int64_t logins = 0;        // The highest serial of a login; 0: none says its serial.
    std::int64_t yields = 0;        // Of a login, or of a mark since.
    bool logged_in = false;         // To this Global, at any time.
    EvictUnless unless = {};        // Of its eviction, and why.
    std::string why = {};
    // As the database has it; absent: nobody has looked.
    std::optional<std::string> secret = std::nullopt;
    bool secret_asked = false;
  };
  struct Question {
    Time asked;
    SessionId holder;
  };
  // A question to a holder that has no connection.
  struct Kept {
    Question question;
    std::uint64_t serial;
    std::string key;
    Right to;
  };
  // A login that the database is asked about.
  struct Lookup {
    ConnectionId from = 0;
    LoginRequest request;
    bool asked_again = false;
  };

  // DirectoryOutput.
  void Granted(SessionId session, std::uint64_t request, std::string_view key,
               Right right) override;
  void Refused(SessionId session, std::uint64_t request, std::string_view key, Right wanted,
               Refusal refusal, SessionId holder) override;
  void Reduce(SessionId holder, std::uint64_t serial, std::string_view key, Right to,
              Time since) override;

  LoginOutcome Judge(const LoginRequest& request) const;
  void Reply(ConnectionId to, LoginOutcome outcome);
  void JudgeByRow(Time now, Lookup lookup, const Result<Fence::ServerRow>& row);
  bool IsLate(const LoginRequest& request) const;
  void Accept(Time now, ConnectionId from, const LoginRequest& request, const std::string& secret);
  SessionId FindSession(std::int32_t server_id, std::int64_t epoch) const;
  SessionId AddSession(std::int32_t server_id, std::int64_t epoch);
  // With the session's own duration.
  LeaseOptions LeaseOf(const Session& session) const;
  // The session of a connection that has logged in, or kNoSession.
  SessionId SessionOf(ConnectionId connection) const;
  // The same for a message that was just heard.
  SessionId Heard(Time now, ConnectionId connection);
  void Bind(Time now, SessionId id, ConnectionId connection);
  void Unbind(Time now, SessionId id);
  // Closes its connection, if there is one. False: there was none.
  bool Disconnect(Time now, SessionId id);
  void DropRights(SessionId id);
  void Remove(SessionId id);
  void StartEvict(Time now, SessionId id, const std::string& why, const EvictUnless& unless = {});
  void EvictTheContradictory(Time now, const std::vector<SessionId>& sessions);
  void StopUnfenced(Time now, SessionId id);
  void AskToStop(Session& session);
  void Freed(SessionId id, const std::string& why);
  void Supersede(Time now, SessionId id);
  void Fenced(Time now, SessionId id, std::int64_t renewals);
  void StopSilentOldPeers(Time now);
  void FinishRecovery();
  void Depose(Time now);
  void ExpireQuestions(Time now);
  void AskWhoIsBack(Time now);
  void ExpireKept(Time now);
  void CloseTheSilent(Time now);

  // --- evidence of life (global_leases.cc) ---
  void StartListing(Time now, const std::vector<LiveServer>& servers);
  void NoteLeases(Time now, const std::vector<LiveServer>& servers);
  void NoteRenewals(Time now, Session& session, std::int64_t renewals);
  // For how long it has not renewed its lease, as far as looks without a gap show.
  Time SilentFor(Time now, const Session& session) const;
  // Whether a request of a connected session waits because of it, or was refused a moment ago.
  bool InTheWay(Time now, SessionId id) const;
  void JudgeServers(Time now);
  void JudgeInTheWay(Time now, SessionId id, bool renews);
  void Want(Time now, Session& session);
  void Yielded(Time now, SessionId id, const YieldMark& mark);
  void TellStuck(const Session& session);
  bool AnyWanted() const;
  void LookAtDatabase(Time now);
  void TellLosses(Time now);
  void Tell(AlertKind kind, const Session& session, const std::string& what);

  const GlobalOptions options_;
  GlobalOutput& output_;
  Directory directory_;
  Phase phase_ = Phase::kNew;
  std::int64_t term_ = 0;
  Time retry_at_{0};  // Of kRaisingTerm and kListing; 0: an answer is awaited.
  Time term_due_ = Time::max();
  // Looks at the leases, one at a time.
  Time list_due_ = Time::max();
  bool listing_ = false;
  std::uint64_t lists_ = 0;
  Time looked_{0};          // When the last answer came.
  Time counting_since_{0};  // Since then no look has failed or was late.
  Time yields_due_{0};
  bool reading_yields_ = false;
  Time asked_while_recovering_ = Time::min();
  Time recovery_until_{0};  // For old peers that this Global does not know of.
  Time now_{0};             // Of the call under way.
  std::uint64_t last_session_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::map<SessionId, Session> sessions_;
  std::unordered_map<ConnectionId, SessionId> connections_;
  struct {
    SessionId id = kNoSession;
    Session* session = nullptr;  // In sessions_.
  } last_heard_;
  // The highest epoch of each server that is fenced; it and lower ones are refused for ever.
  std::map<std::int32_t, std::int64_t> fenced_;
  std::map<std::uint64_t, Question> questions_;  // By serial, and so by the time they were asked.
  std::multimap<Time, Kept> kept_;               // By the time they fail.
  std::vector<Lookup> lookups_;                  // At most kLookupsMax.
  std::uint64_t refused_count_ = 0;              // Since it was told last.
  Time refusal_told_ = Time::min();
};

}  // namespace zeze::global
