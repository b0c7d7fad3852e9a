#include "tests/simulation/run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/simulation/database.h"
#include "tests/simulation/global_process.h"
#include "tests/simulation/server.h"
#include "tests/simulation/world.h"
#include "zeze/base/result.h"
#include "zeze/global/global_server.h"
#include "zeze/global/silence_watch.h"
#include "zeze/storage/cluster_check.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"

namespace zeze::simulation {

namespace {

constexpr std::size_t kWorkers = 6;
constexpr std::uint64_t kOldPeersEach = 8;  // One life of so many has servers of Zeze 1.6.
constexpr std::uint64_t kRollEach = 8;      // One ends with a rolling restart.
constexpr int kRollingRounds = 2;
constexpr Time kTrouble = seconds(30);
constexpr Time kPatience = seconds(90);

class Life {
 public:
  Life(std::uint64_t seed, const RunOptions& options)
      : world_(seed),
        database_(world_,
                  {.evict_kills_sessions = world_.Chance(0.7),
                   .unsafe_no_fence = options.left_out == LeftOut::kFence,
                   .unsafe_no_sequence = options.left_out == LeftOut::kFenceSequence,
                   .unsafe_no_fenced_leases = options.left_out == LeftOut::kFencedLeases,
                   .unsafe_no_cluster_row = options.left_out == LeftOut::kClusterRow,
                   .unsafe_no_table_ids = options.left_out == LeftOut::kTableIds,
                   .unsafe_no_alone = options.left_out == LeftOut::kAlone},
                  works_),
        cluster_{.world = world_,
                 .database = database_,
                 .silent_lease = {.duration = world_.Between(seconds(2), seconds(6))},
                 .works = works_,
                 .servers = {},
                 .globals = {},
                 .unsafe = {}} {
    world_.KeepStory(options.keep_story);
    cluster_.shard_count = 1 + world_.Below(2);
    cluster_.unsafe = {
        .no_lease_check = options.left_out == LeftOut::kLeaseCheck,
        .no_flush_before_reduce = options.left_out == LeftOut::kFlushBeforeReduce,
        .no_connection_order = options.left_out == LeftOut::kConnectionOrder,
        .no_load_stamp = options.left_out == LeftOut::kLoadStamp,
        .no_start_term = options.left_out == LeftOut::kStartTerm,
        .announce_lowered = options.left_out == LeftOut::kAnnounceUnsaved,
        .no_shard_order = options.left_out == LeftOut::kClusterRow,
        .renewals_in_doubt_count = options.left_out == LeftOut::kRenewalInDoubt,
        .proof_without_death = options.left_out == LeftOut::kProofOfDeath,
        .no_yield_flush = options.left_out == LeftOut::kYieldFlush,
        .yield_keeps_share = options.left_out == LeftOut::kYieldShare,
        .connect_while_yielding = options.left_out == LeftOut::kReconnectWhileYielding};
    global_options_.unsafe_free_at_once = options.left_out == LeftOut::kWaitBeforeFreeing;
    global_options_.unsafe_ignore_start_term = cluster_.unsafe.no_start_term;
    global_options_.unsafe_own_lease = options.left_out == LeftOut::kServerLease;
    global_options_.unsafe_let_old_peers_wait = options.left_out == LeftOut::kOldPeerDeadlock;
    global_options_.unsafe_fail_before_close = options.left_out == LeftOut::kCloseBeforeFailing;
    global_options_.unsafe_believe_logins = options.left_out == LeftOut::kLoginProof;
    global_options_.unsafe_free_by_old_renewals = options.left_out == LeftOut::kRenewalSeen;
    global_options_.unsafe_evict_only_unconnected = options.left_out == LeftOut::kEvictConnected;
    global_options_.unsafe_late_logins = options.left_out == LeftOut::kLateLogin;
    global_options_.unsafe_any_yield_number = options.left_out == LeftOut::kYieldNumber;
    global_options_.unsafe_any_yield_term = options.left_out == LeftOut::kYieldTerm;
    global_options_.passive_wait = world_.Between(seconds(1), seconds(12));
    global_options_.database_wait = world_.Between(seconds(1), seconds(12));
    rolls_ = seed % kRollEach == 1;
    server_count_ = 2 + world_.Below(3);
    if (seed % kOldPeersEach == 0) {
      global_options_.unfenced_wait = seconds(3);
      cluster_.old_peers = {0, 1};
    }
    const std::size_t keys = 2 + world_.Below(5);
    for (std::size_t i = 0; i < keys; ++i) {
      keys_.push_back(fmt::format("{}{}", world_.Chance(0.3) ? 'd' : 'k', i));
    }
  }

  RunReport Live() {
    RunReport report;
    try {
      cluster_.globals.resize(cluster_.shard_count);
      for (std::size_t shard = 0; shard < cluster_.shard_count; ++shard) Supervise(shard);
      for (std::size_t i = 0; i < server_count_; ++i) {
        current_.push_back(nullptr);
        Supervise(static_cast<std::int32_t>(i));
      }
      for (std::size_t worker = 0; worker < kWorkers; ++worker) NextWork(worker);
      PlanFaults();
      MendTableIds();
      world_.Run(kTrouble);
      Calm();
      if (rolls_) RestartOneByOne();
      Verify(report);
    } catch (const Violation& violation) {
      report.failure = violation.text;
    }
    for (const auto& [id, work] : works_) {
      if (work.committed && work.durable) ++report.committed_count;
      if (work.committed && !work.durable && !work.writes.empty()) ++report.lost_count;
      if (!work.committed) ++report.failed_count;
    }
    report.fault_count = fault_count_;
    report.event_count = world_.event_count();
    report.story = world_.story();
    return report;
  }

 private:
  // People make mistakes, until they see that a server does not start.
  ServerConfig SomeConfig() {
    ServerConfig config = cluster_.RightConfig();
    if (calm_ || !world_.Chance(0.1)) return config;
    switch (world_.Below(4)) {
      case 0:
        return {.alone = true};
      case 1:
        std::reverse(config.globals.begin(), config.globals.end());
        break;
      case 2:
        config.globals.resize(1);
        break;
      default:
        config.other_table = world_.Chance(0.3) ? 'd' : 'k';
    }
    return config;
  }

  void EndMisconfigured() {
    for (const auto& server : cluster_.servers) {
      if (!server->alive() || server->config() == cluster_.RightConfig()) continue;
      world_.Say(fmt::format("{} is configured anew", world_.name(server->process())));
      world_.Kill(server->process());
    }
  }

  // If the first server of all had the wrong id of a table, the others do not start: people change
  // it, once nobody lives (rule 55).
  void MendTableIds() {
    const std::map<std::string, std::int32_t> right = {{"d", 1}, {"k", 2}};
    FenceTable& fences = database_.fences();
    if (!fences.table_ids().empty() && fences.table_ids() != right) {
      EndMisconfigured();
      for (const LiveServer& server :
           mending_.Look(world_.now(), fences.InTheWay(ChangeOptions())).over) {
        if (server.fenced) {
          fences.LeaseOver(server.server_id, server.epoch);
        } else {
          fences.EvictSilent(server);
        }
      }
      const Result<void> changed = fences.Change({.tables = {{"d", 1}, {"k", 2}}});
      world_.Say(changed.ok() ? "people mend the ids of tables" : changed.error().message());
    }
    world_.After(kNobody, seconds(1), [this] { MendTableIds(); });
  }

  // --- daemons that start what is gone ---

  // The processes of the server that have ended for certain, if its daemon knows of them.
  std::vector<std::string> Ended(std::int32_t server_id) {
    std::vector<std::string> ended;
    if (world_.Chance(0.4)) return ended;
    for (const auto& server : cluster_.servers) {
      if (server->server_id() != server_id) continue;
      if (server->alive() && !cluster_.unsafe.proof_without_death) continue;
      ended.push_back(world_.name(server->process()));
    }
    return ended;
  }

  void Supervise(std::int32_t server_id) {
    Server*& server = current_[static_cast<std::size_t>(server_id)];
    if (server == nullptr || (!server->alive() && !gone_.contains(server_id))) {
      cluster_.servers.push_back(
          std::make_unique<Server>(cluster_, server_id, SomeConfig(), Ended(server_id)));
      server = cluster_.servers.back().get();
    }
    world_.After(kNobody, world_.Between(milliseconds(100), seconds(2)),
                 [this, server_id] { Supervise(server_id); });
  }

  void Supervise(std::size_t shard) {
    const auto& globals = cluster_.globals[shard];
    const bool any = std::any_of(globals.begin(), globals.end(),
                                 [](const auto& global) { return global->alive(); });
    if (!any) StartGlobal(shard);
    world_.After(kNobody, world_.Between(milliseconds(100), seconds(2)),
                 [this, shard] { Supervise(shard); });
  }

  void StartGlobal(std::size_t shard) {
    // Each as its operators like it, but enough for servers that do not say theirs.
    global::GlobalOptions options = global_options_;
    options.lease.duration =
        std::max(cluster_.silent_lease.duration, world_.Between(seconds(1), seconds(10)));
    cluster_.globals[shard].push_back(std::make_unique<GlobalProcess>(cluster_, shard, options));
  }

  // --- clients ---

  std::vector<std::pair<std::string, bool>> Plan() {
    std::vector<std::string> keys = keys_;
    for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[world_.Below(i)]);
    keys.resize(1 + world_.Below(std::min<std::size_t>(3, keys.size())));
    const bool read_only = world_.Chance(0.3);
    std::vector<std::pair<std::string, bool>> plan;
    for (const std::string& key : keys) plan.emplace_back(key, !read_only && world_.Chance(0.6));
    return plan;
  }

  void NextWork(std::size_t worker) {
    world_.After(kNobody, world_.Between(milliseconds(1), milliseconds(600)), [this, worker] {
      if (calm_) return;
      DoWork(worker, Plan(), [this, worker](bool) { NextWork(worker); });
    });
  }

  // `done` comes in any case: with an answer, or when its server has gone.
  void DoWork(std::size_t worker, const std::vector<std::pair<std::string, bool>>& plan,
              const std::function<void(bool)>& done) {
    Server* server = current_[world_.Below(current_.size())];
    while (calm_ && lost_.contains(server->server_id())) {
      server = current_[world_.Below(current_.size())];
    }
    const std::uint64_t id = works_.size() + 1;
    Work& work = works_[id];
    work.id = id;
    work.worker = worker;
    work.name = fmt::format("{}", world_.name(server->process()));
    work.server = server->process();
    work.begin = world_.NextStamp();
    auto open = std::make_shared<bool>(true);
    const auto finish = [this, &work, open, done](bool committed) {
      if (!std::exchange(*open, false)) return;
      if (committed) work.end = world_.NextStamp();
      done(committed);
    };
    server->Run(work, plan, finish);
    Watch(server, finish, open);
  }

  void Watch(Server* server, const std::function<void(bool)>& finish,
             const std::shared_ptr<bool>& open) {
    world_.After(kNobody, milliseconds(200), [this, server, finish, open] {
      if (!*open) return;
      if (server->alive()) {
        Watch(server, finish, open);
      } else {
        finish(false);
      }
    });
  }

  // --- what goes wrong ---

  // Old peers are safe only while nothing happens to themselves.
  ProcessId SomeServer() {
    while (true) {
      const Server* server = current_[world_.Below(current_.size())];
      if (!server->old_peer() || cluster_.old_peers.size() >= current_.size()) {
        return server->process();
      }
    }
  }
  GlobalProcess* SomeGlobal() {
    auto& globals = cluster_.globals[world_.Below(cluster_.shard_count)];
    std::vector<GlobalProcess*> alive;
    for (const auto& global : globals) {
      if (global->alive()) alive.push_back(global.get());
    }
    return alive.empty() ? nullptr : alive[world_.Below(alive.size())];
  }

  void PlanFaults() {
    fault_count_ = 2 + world_.Below(8);
    for (std::size_t i = 0; i < fault_count_; ++i) {
      world_.After(kNobody, world_.Between(seconds(2), kTrouble), [this] { Fault(); });
    }
    for (int i = 0; i < 40; ++i) {
      world_.After(kNobody, world_.Between(seconds(1), kTrouble), [this] {
        Server* server = current_[world_.Below(current_.size())];
        if (server->active() && !world_.Paused(server->process())) server->EvictSomething();
      });
    }
  }

  void CutFor(ProcessId a, ProcessId b, Time duration) {
    world_.Partition(a, b, true);
    world_.After(kNobody, duration, [this, a, b] { world_.Partition(a, b, false); });
  }

  // Clients still reach it, nobody else does.
  void Island(ProcessId server) {
    const Time duration = world_.Between(seconds(5), seconds(16));
    CutFor(server, kNobody, duration);
    for (const auto& globals : cluster_.globals) {
      for (const auto& global : globals) {
        if (global->alive()) CutFor(server, global->process(), duration);
      }
    }
  }

  // It reaches the database: what it has done is saved, and its rights are given up when others
  // need them (rule 63). Now and then for good.
  void CutFromGlobalsOnly(ProcessId server, Time duration) {
    const bool for_good = world_.Chance(0.2) && MayLose(server);
    for (const auto& globals : cluster_.globals) {
      for (const auto& global : globals) {
        if (!global->alive()) continue;
        if (for_good) {
          world_.PartitionForGood(server, global->process());
        } else {
          CutFor(server, global->process(), duration);
        }
      }
    }
  }

  // A connection that breaks soon after each login: logins, marks and grants cross each other.
  void BreakAgainAndAgain(ProcessId server, GlobalProcess* global) {
    const ProcessId other = global->process();
    for (int i = 0; i < 8; ++i) {
      world_.After(kNobody, world_.Between(milliseconds(1), seconds(8)), [this, server, other] {
        if (!world_.Alive(server) || !world_.Alive(other)) return;
        CutFor(server, other, world_.Between(milliseconds(10), milliseconds(1500)));
      });
    }
  }

  // One is left that can serve, and none loses more than one thing for good: it would never learn
  // that it is fenced.
  bool MayLose(ProcessId server) {
    if (lost_.size() + 1 >= current_.size()) return false;
    return lost_.insert(cluster_.FindServer(server)->server_id()).second;
  }

  // Nobody starts it again.
  void LeaveForGood(ProcessId server) {
    if (!MayLose(server)) return;
    world_.Say("fault: a server leaves for good");
    gone_.insert(cluster_.FindServer(server)->server_id());
    world_.Kill(server);
  }

  // Nobody is left who knows when the lease of the evicted server is over.
  void EvictAndDie(ProcessId server, GlobalProcess* global) {
    if (world_.Paused(global->process())) return;
    world_.Say("fault: a Global evicts a server and dies");
    global->machine().Cleanup(global->now(), cluster_.FindServer(server)->server_id());
    global->Work();
    const ProcessId process = global->process();
    world_.After(kNobody, world_.Between(milliseconds(1), seconds(1)), [this, process] {
      if (world_.Alive(process)) world_.Kill(process);
    });
  }

  // The old one may be alive and at work.
  void StartTwice(std::int32_t server_id) {
    world_.Say("fault: a second process with the same server id");
    cluster_.servers.push_back(
        std::make_unique<Server>(cluster_, server_id, SomeConfig(), Ended(server_id)));
    current_[static_cast<std::size_t>(server_id)] = cluster_.servers.back().get();
  }

  // The old one does not learn that it is deposed; a server starts and may find either.
  void TakeOverUnnoticed(GlobalProcess* global) {
    CutFor(global->process(), kNobody, world_.Between(seconds(4), seconds(15)));
    StartGlobal(global->shard());
    const ProcessId server = SomeServer();
    world_.After(kNobody, world_.Between(milliseconds(1), milliseconds(200)), [this, server] {
      if (world_.Alive(server)) world_.Kill(server);
    });
  }

  void Fault() {
    const ProcessId server = SomeServer();
    GlobalProcess* global = SomeGlobal();
    if (!world_.Alive(server) || global == nullptr) return;
    const Time duration = world_.Between(milliseconds(100), seconds(12));
    const std::size_t kind = world_.Below(26);
    if (!cluster_.old_peers.empty()) {
      // They do not know of a second Global, and nothing may happen to them.
      if (kind == 9 || kind == 17 || kind == 20 || kind == 25) return;
      if (cluster_.FindServer(server)->old_peer() && kind != 3 && kind != 8 && kind != 13) return;
    }
    switch (kind) {
      case 0:
        world_.Say("fault: server crash");
        world_.Kill(server);
        break;
      case 1:
      case 2:
        world_.Pause(server, duration);
        break;
      case 3:
        world_.Say("fault: Global crash");
        world_.Kill(global->process());
        break;
      case 4:
        world_.Pause(global->process(), world_.Between(milliseconds(100), seconds(9)));
        break;
      case 5:
        CutFor(server, global->process(), duration);
        break;
      case 6:
      case 23:
        // For good, now and then: those that need its records must not wait for ever (rule 61).
        if (world_.Chance(0.3) && MayLose(server)) {
          world_.PartitionForGood(server, kNobody);
        } else {
          CutFor(server, kNobody, duration);
        }
        break;
      case 7:
        CutFor(global->process(), kNobody, duration);
        break;
      case 8: {
        const auto open = world_.OpenLinks();
        if (!open.empty()) world_.Close(open[world_.Below(open.size())], kNobody);
        break;
      }
      case 9:
        world_.Say("fault: a second Global takes over");
        StartGlobal(world_.Below(cluster_.shard_count));
        break;
      case 10:
        if (world_.Paused(global->process())) break;
        world_.Say("fault: the operator cleans up a server");
        global->machine().Cleanup(global->now(), cluster_.FindServer(server)->server_id());
        global->Work();
        break;
      case 11:
        Island(server);
        break;
      case 12:
        // Without a Global nobody waits for the lease of the older one (rule 54).
        if (cluster_.FindServer(server)->config().alone) break;
        StartTwice(cluster_.FindServer(server)->server_id());
        break;
      case 13:
        if (!world_.Paused(server)) cluster_.FindServer(server)->Stop();
        break;
      case 14:
        EvictAndDie(server, global);
        break;
      case 15:
        world_.Say("fault: the database is slow");
        database_.Slow(world_.Between(milliseconds(50), milliseconds(1500)));
        world_.After(kNobody, duration, [this] { database_.Slow(Time{0}); });
        break;
      case 18:
      case 19:
        CutFromGlobalsOnly(server, duration);
        break;
      case 20: {
        const auto open = world_.OpenLinks();
        if (open.empty()) break;
        world_.Stall(open[world_.Below(open.size())], world_.Chance(0.7), world_.Chance(0.7),
                     world_.Between(milliseconds(500), seconds(6)));
        break;
      }
      case 21:
        LeaveForGood(server);
        break;
      case 22:
      case 24:
        BreakAgainAndAgain(server, global);
        break;
      case 16:
        StrangersLogin(global, cluster_.FindServer(server)->server_id());
        break;
      default:
        TakeOverUnnoticed(global);
        break;
    }
  }

  // As this server, with its epoch or a later one, under a secret that is not its own.
  void StrangersLogin(GlobalProcess* global, std::int32_t server_id) {
    world_.Say("fault: a stranger logs in");
    const ProcessId stranger = world_.StartProcess("stranger");
    const LinkId link =
        world_.Connect(stranger, global->process(),
                       {.on_closed_a = [](LinkId) {},
                        .on_closed_b = [global](LinkId closed) { global->OnClosed(closed); }});
    global->AddLink(link, nullptr);
    const std::int64_t epoch =
        database_.fences().Read(server_id).epoch + (world_.Chance(0.5) ? 0 : 999);
    const std::int64_t term =
        database_.fences().ReadTerm(static_cast<std::int32_t>(global->shard())).term;
    world_.Send(link, stranger, [global, link, server_id, epoch, term] {
      global->machine().OnLogin(global->now(), link,
                                {.server_id = server_id,
                                 .epoch = epoch,
                                 .start_term = term,
                                 .rights = {},
                                 .proves = [](std::string_view) { return false; }});
      global->Work();
    });
    world_.After(kNobody, seconds(2), [this, stranger] { world_.Kill(stranger); });
  }

  // --- the end ---

  // Nothing goes wrong any more: in time everything must be saved, and everybody be served.
  void Calm() {
    calm_ = true;
    world_.HealNetwork();
    EndMisconfigured();
    const Time end = world_.now() + kPatience;
    bool served = false;
    Serve(0, served);
    while (world_.now() < end && !(served && Saved())) world_.Run(milliseconds(200));
    if (!served || !Saved()) {
      std::string text = served ? "not everything is saved:" : "the cluster does not serve again:";
      for (Server* server : current_) text += "\n  " + server->Describe();
      for (const auto& globals : cluster_.globals) {
        for (const auto& global : globals) {
          if (global->alive()) {
            text += fmt::format("\n  {} term {} {}", world_.name(global->process()),
                                global->machine().term(),
                                global->machine().serving() ? "serves" : "recovers");
          }
        }
      }
      throw Violation{text};
    }
  }

  // Rule 67. Nothing goes wrong: each server stops in order under load, and no request is refused.
  void RestartOneByOne() {
    database_.BecomeReliable();
    world_.Run(seconds(30));  // Whatever was paused or evicted is back.
    cluster_.refused_count = 0;
    rolling_ = true;
    for (std::size_t worker = 0; worker < kWorkers; ++worker) RollingWork(worker);
    for (int round = 0; round < kRollingRounds; ++round) {
      for (Server* server : std::vector<Server*>(current_)) {
        server->Stop();
        world_.Run(seconds(3));
      }
    }
    rolling_ = false;
    world_.Run(seconds(10));
    if (cluster_.refused_count == 0) return;
    throw Violation{fmt::format("{} requests were refused while servers stopped in order",
                                cluster_.refused_count)};
  }

  void RollingWork(std::size_t worker) {
    world_.After(kNobody, world_.Between(milliseconds(1), milliseconds(40)), [this, worker] {
      if (rolling_) DoWork(worker, Plan(), [this, worker](bool) { RollingWork(worker); });
    });
  }

  // A transaction on every key.
  void Serve(std::size_t at, bool& served) {
    if (at == keys_.size()) {
      served = true;
      return;
    }
    DoWork(kWorkers, {{keys_[at], true}}, [this, at, &served](bool committed) {
      world_.After(kNobody, milliseconds(50),
                   [this, at, committed, &served] { Serve(committed ? at + 1 : at, served); });
    });
  }

  bool Saved() const {
    return std::none_of(current_.begin(), current_.end(),
                        [](const Server* server) { return server->alive() && server->dirty(); });
  }

  // The history of what survived: whatever was never in the database is lost with its process, and
  // whoever had seen it too.
  void Verify(RunReport& report) {
    std::map<std::string, history::Key> numbers;
    for (std::size_t i = 0; i < keys_.size(); ++i) numbers[keys_[i]] = i + 1;
    std::vector<const Work*> order;
    for (const auto& [id, work] : works_) {
      if (work.committed) order.push_back(&work);
    }
    std::sort(order.begin(), order.end(),
              [](const Work* a, const Work* b) { return a->begin < b->begin; });
    history::History history;
    for (const Work* work : order) {
      const bool there = work->writes.empty() ? ReadsAreThere(*work) : work->durable;
      if (work->durable_wanted && work->end != 0 && !there) {
        throw Violation{fmt::format("T{} was acknowledged as durable and is lost", work->id)};
      }
      if (!there || (work->writes.empty() && work->end == 0)) continue;
      history.Begin(work->id, work->worker, work->name, work->begin);
      for (const auto& [key, list] : work->reads) history.Read(numbers.at(key), list);
      for (const auto& [key, element] : work->writes) history.Append(numbers.at(key), element);
      history.End(work->end != 0 ? history::Outcome::kCommitted : history::Outcome::kUnknown,
                  work->end != 0 ? work->end : work->begin);
    }
    const std::uint64_t begin = world_.NextStamp();
    history.Begin(works_.size() + 1, kWorkers + 1, "look at the database", begin);
    for (const std::string& key : keys_) {
      const auto row = database_.rows().find(key);
      history.Read(numbers.at(key), row == database_.rows().end() ? List{} : row->second);
    }
    history.End(history::Outcome::kCommitted, world_.NextStamp());
    const history::Report checked = history::Check(
        history, {.key_name = [this](history::Key key) { return keys_.at(key - 1); }});
    if (!checked.ok()) report.failure = checked.ToString();
  }

  bool ReadsAreThere(const Work& work) const {
    for (const auto& [key, list] : work.reads) {
      if (list.empty()) continue;
      const auto row = database_.rows().find(key);
      if (row == database_.rows().end()) return false;
      if (std::find(row->second.begin(), row->second.end(), list.back()) == row->second.end()) {
        return false;
      }
    }
    return true;
  }

  World world_;
  std::map<std::uint64_t, Work> works_;
  Database database_;
  Cluster cluster_;
  global::GlobalOptions global_options_;
  std::size_t server_count_ = 0;
  std::vector<std::string> keys_;
  std::vector<Server*> current_;  // By server id.
  std::size_t fault_count_ = 0;
  std::set<std::int32_t> gone_;  // Ids of servers that do not come back.
  std::set<std::int32_t> lost_;  // These, and those that are cut off for good.
  bool calm_ = false;
  global::SilenceWatch mending_{{}};
  bool rolls_ = false;
  bool rolling_ = false;
};

}  // namespace

RunReport RunSeed(std::uint64_t seed, const RunOptions& options) {
  return Life(seed, options).Live();
}

}  // namespace zeze::simulation
