// Server: a model of a server process: records with rights, transactions that validate and commit,
// flushes of dependency groups, a lease. It keeps the rules of docs/architecture.md in the simplest
// form; its sessions with Global are the real GlobalAgent.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/history/history.h"
#include "tests/simulation/database.h"
#include "tests/simulation/world.h"
#include "zeze/global/agent.h"
#include "zeze/global/directory.h"
#include "zeze/global/lease.h"
#include "zeze/global/messages.h"
#include "zeze/global/silence_watch.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::simulation {

class Server;
class GlobalProcess;

// How people have configured a server; the defaults of a cluster are right.
struct ServerConfig {
  bool alone = false;                     // It lists no Global.
  std::vector<std::size_t> globals = {};  // The shards of the Globals it lists, in its order.
  char other_table = 0;  // The table, a key's first letter, that has another id here.

  bool operator==(const ServerConfig&) const = default;
};

// What the servers of a run share.
struct Cluster {
  World& world;
  Database& database;
  // Of servers that do not say theirs. No Global assumes less.
  global::LeaseOptions silent_lease;
  std::size_t shard_count = 1;
  // Servers of Zeze 1.6: they log in without an epoch, hold the lock of a record while they ask for
  // its right, know nothing of terms, and end when their connection is lost.
  std::set<std::int32_t> old_peers = {};
  std::map<std::uint64_t, Work>& works;
  std::vector<std::unique_ptr<Server>> servers;  // Alive or not.
  std::vector<std::vector<std::unique_ptr<GlobalProcess>>>
      globals;  // By shard; the last is newest.

  ServerConfig RightConfig() const;
  Server* FindServer(ProcessId process) const;
  // I3: no other process that may still use it has a right beside this one.
  void CheckSingleWriter(const Server& server, const std::string& key, Right right) const;

  std::size_t refused_count = 0;  // Requests that Global refused because of their holder.

  // Rules to leave out, to see that it matters.
  struct Unsafe {
    bool no_lease_check = false;
    bool no_flush_before_reduce = false;
    bool no_connection_order = false;
    bool no_load_stamp = false;
    bool no_start_term = false;
    bool announce_lowered = false;
    bool no_shard_order = false;
    bool renewals_in_doubt_count = false;
    bool proof_without_death = false;
    bool no_yield_flush = false;
    bool yield_keeps_share = false;
    bool connect_while_yielding = false;
  } unsafe;
};

class Server {
 public:
  // `ended`: processes of which whoever starts it knows that they have ended (rule 62).
  Server(Cluster& cluster, std::int32_t server_id, ServerConfig config,
         std::vector<std::string> ended);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  ProcessId process() const { return process_; }
  std::int32_t server_id() const { return server_id_; }
  bool old_peer() const { return cluster_.old_peers.contains(server_id_); }
  bool closed() const { return closed_; }
  bool alive() const;
  // May answer.
  bool active() const;
  bool dirty() const;
  const ServerConfig& config() const { return config_; }
  std::string Describe() const;

  // A right that it may use now.
  Right UsableRight(const std::string& key) const;

  // Runs it; `done` is told when there is an answer: true if it committed.
  void Run(Work& work, const std::vector<std::pair<std::string, bool>>& plan,
           std::function<void(bool)> done);

  void EvictSomething();

  // An orderly end: no new work, everything saved, then everybody is told (rule 47).
  void Stop();

  // Of the Global of a shard: null if it does not list it.
  global::GlobalAgent* agent(std::size_t shard);
  void OnGrant(std::size_t shard, LinkId from, std::uint64_t request, std::string_view lock,
               Right right);
  void OnRefusal(std::size_t shard, LinkId from, std::uint64_t request, std::string_view lock,
                 global::Refusal refusal);
  void OnReleased(std::size_t shard, LinkId from, std::uint64_t request, std::string_view lock);
  void OnReduce(std::size_t shard, LinkId from, std::uint64_t serial, std::string_view lock,
                Right to);
  void OnClosed(std::size_t shard, LinkId link);

 private:
  class Shard;
  struct ReduceWaiter {
    global::ConnectionId connection;
    std::uint64_t serial;
    std::string key;
  };
  struct Record {
    std::uint64_t version = 0;
    Right right = Right::kInvalid;
    // What Global believes: not lower than `right`, and lowered only when all is saved.
    Right book = Right::kInvalid;
    bool loaded = false;
    bool loading = false;
    bool acquiring = false;
    bool releasing = false;
    int reducing = 0;  // Answers that have not left.
    int users = 0;     // Transactions that hold on to it for a moment (rule 21).
    List list;
    std::uint64_t flushed_version = 0;
    std::vector<std::function<void()>> waiting;  // For a change of the above.

    bool dirty() const { return flushed_version != version; }
  };
  struct Run_ {
    Work* work = nullptr;
    std::vector<std::pair<std::string, bool>> plan;
    std::function<void(bool)> done;
    std::size_t step = 0;
    int attempt = 1;
    bool over = false;
    std::map<std::string, std::pair<std::uint64_t, List>> reads;
    std::set<std::string> held;
    // Versions that must be saved before the answer.
    std::map<std::string, std::uint64_t> awaited;
  };
  using Running = std::shared_ptr<Run_>;

  // The Global that this server asks for a key, by its place in the list.
  std::size_t ShardOf(std::string_view key) const;
  // The place of the Global of a shard.
  std::size_t PlaceOf(std::size_t shard) const;
  // The name of a key's lock, which has the id of its table in it, and back.
  std::string LockOf(std::string_view key) const;
  std::string KeyOf(std::string_view lock) const;

  FenceStartOptions StartOptions() const;
  void Boot();
  void ClearTheWay();
  void Booted(const FenceStart& start);
  void KeepConnected(std::size_t shard);
  void KeepLease();
  void KeepTerms();
  // Looks whether the Global of a shard that is out of sight wants its rights (rule 63).
  void KeepLooking();
  void KeepStopping();
  void AwaitClosed(Time give_up);
  void KeepSaving();
  void End(const std::string& why);
  bool LeaseValid() const;
  // What it tells the database and Global. 0: nothing, as a server of an earlier build.
  std::chrono::milliseconds said_lease() const {
    return says_lease_ ? lease_.options().said() : std::chrono::milliseconds(0);
  }
  // What it proves itself by. Servers of an earlier build have none.
  std::string secret() const { return says_lease_ ? "secret of " + world_.name(process_) : ""; }
  std::uint64_t NextVersion() { return ++last_version_; }
  Record& RecordOf(const std::string& key) { return records_[key]; }
  static void Wake(World& world, ProcessId process, Record& record, Time delay = Time{0});

  // Transactions.
  void Step(const Running& run);
  // False: it waits, and Step is called again.
  bool Prepare(const Running& run, const std::string& key, Right wanted);
  bool StillTrue(const Run_& run) const;
  void Commit(const Running& run);
  void Again(const Running& run);
  void Answer(const Running& run, bool committed);
  void LetGo(Run_& run);

  // Rights.
  void Granted(std::uint64_t request, const std::string& key, Right right);
  void NotGranted(std::uint64_t request, const std::string& key);
  void Released(std::uint64_t request, const std::string& key);
  void Install(const std::string& key, Right right);
  void Reduce(std::size_t shard, global::ConnectionId from, std::uint64_t serial,
              const std::string& key, Right to, Time give_up);
  void AnswerReduce(const ReduceWaiter& waiter);
  void Acquire(const std::string& key, Right wanted);
  void Load(const std::string& key);
  // Lowers it; what is unsaved stays so.
  void Lower(const std::string& key, Record& record, Right to);
  void Yield(std::size_t shard, const YieldMark& mark);
  void KeepYielding(std::size_t shard, const YieldMark& mark);

  // Saving.
  void Join(const std::vector<std::string>& keys);
  std::set<std::string> GroupOf(const std::string& key) const;
  void StartFlush();
  void SendFlush();
  void Flushed();

  Cluster& cluster_;
  World& world_;
  const std::int32_t server_id_;
  const ProcessId process_;
  const ServerConfig config_;
  const std::vector<std::string> ended_;
  std::int64_t epoch_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  bool closed_ = false;
  int running_ = 0;
  const bool says_lease_;
  global::Lease lease_;
  global::SilenceWatch watch_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::map<std::string, Record> records_;
  std::uint64_t last_version_ = 0;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, std::string> requests_;

  std::map<std::string, std::set<std::string>> ties_;  // Unsaved records that belong together.
  std::set<std::string> flush_wanted_;
  bool flushing_ = false;
  std::int64_t flush_seq_ = 0;
  std::int64_t renew_seq_ = 0;
  struct Cut {
    std::string key;
    std::uint64_t version;
    List list;
  };
  std::vector<Cut> cut_;
  std::vector<ReduceWaiter> reduce_waiters_;
  std::vector<Running> durable_waiters_;
};

}  // namespace zeze::simulation
