#include "tests/simulation/server.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/simulation/database.h"
#include "tests/simulation/global_process.h"
#include "tests/simulation/world.h"
#include "zeze/base/result.h"
#include "zeze/global/agent.h"
#include "zeze/global/directory.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/transaction/coherence.h"

namespace zeze::simulation {

namespace {

constexpr Time kHold = milliseconds(50);  // How long a running transaction defers a Reduce.
constexpr Time kReconnect = milliseconds(200);
constexpr Time kLoginPatience = seconds(1);
constexpr Time kLook = milliseconds(200);

// Every process has its own, as if it had been started from another file.
global::LeaseOptions SomeLease(World& world) {
  return {.duration = world.Between(seconds(2), seconds(10))};
}

const char* Name(Right right) {
  return right == Right::kModify ? "Modify" : right == Right::kShare ? "Share" : "nothing";
}

}  // namespace

ServerConfig Cluster::RightConfig() const {
  ServerConfig config;
  for (std::size_t shard = 0; shard < shard_count; ++shard) config.globals.push_back(shard);
  return config;
}

Server* Cluster::FindServer(ProcessId process) const {
  for (const auto& server : servers) {
    if (server->process() == process) return server.get();
  }
  return nullptr;
}

void Cluster::CheckSingleWriter(const Server& server, const std::string& key, Right right) const {
  for (const auto& other : servers) {
    if (other.get() == &server || !other->alive()) continue;
    const Right has = other->UsableRight(key);
    if (has == Right::kInvalid || (has == Right::kShare && right == Right::kShare)) continue;
    throw Violation{fmt::format("{} got {} of {} while {} has {}", world.name(server.process()),
                                Name(right), key, world.name(other->process()), Name(has))};
  }
}

// --- one session with Global ---------------------------------------------------------------------

// What GlobalAgent wants, over the simulated network and to the records of the server.
class Server::Shard final : public global::AgentOutput {
 public:
  Shard(Server& server, std::size_t number, const global::AgentOptions& options)
      : server_(server), number_(number), agent_(options, *this) {}

  global::GlobalAgent& agent() { return agent_; }

  void SendLogin(global::ConnectionId to, const global::LoginRequest& request) override {
    if (server_.old_peer()) {
      Send(to, [id = server_.server_id_](GlobalProcess& global, LinkId link) {
        global.OnUnfencedLogin(link, id);
      });
      return;
    }
    global::LoginRequest proven = request;
    if (!server_.secret().empty()) {
      proven.proves = [own = server_.secret()](std::string_view secret) { return own == secret; };
    }
    Send(to, [proven](GlobalProcess& global, LinkId link) {
      global.machine().OnLogin(global.now(), link, proven);
    });
  }
  void Close(global::ConnectionId connection) override {
    server_.world_.Close(connection, server_.process_);
  }

  std::vector<global::HeldRight> Rights() override {
    std::vector<global::HeldRight> rights;
    for (const auto& [key, record] : server_.records_) {
      if (server_.ShardOf(key) != number_ || record.releasing) continue;
      const Right right = server_.cluster_.unsafe.announce_lowered ? record.right : record.book;
      if (right != Right::kInvalid) rights.push_back({.key = server_.LockOf(key), .right = right});
    }
    return rights;
  }
  void Lost(std::uint64_t request, std::string_view lock) override {
    const std::string key = server_.KeyOf(lock);
    if (server_.RecordOf(key).releasing) return server_.Released(request, key);
    server_.NotGranted(request, key);
  }
  void Yield(const YieldMark& mark) override { server_.Yield(number_, mark); }
  void Fenced() override { server_.End("Global says that it is fenced"); }

  // What follows is shard_rights.cc in small. kInvalid: gives it back. False: there is no session.
  bool SendAcquire(std::uint64_t request, const std::string& key, Right wanted) {
    const std::string lock = server_.LockOf(key);
    const global::ConnectionId to = agent_.Begin(request, lock);
    if (to == 0) return false;
    Send(to, [request, lock, wanted](GlobalProcess& global, LinkId link) {
      if (wanted == Right::kInvalid) {
        global.machine().OnRelease(global.now(), link, request, lock);
      } else {
        global.machine().OnAcquire(global.now(), link, request, lock, wanted);
      }
    });
    return true;
  }
  void AnswerReduce(global::ConnectionId to, std::uint64_t serial, const std::string& key,
                    Right now) {
    if (!agent_.Current(to)) return;
    Send(to, [serial, lock = server_.LockOf(key), now](GlobalProcess& global, LinkId link) {
      global.machine().OnReduced(global.now(), link, serial, lock, now);
    });
  }
  void KeepAlive() {
    if (!agent_.ready()) return;
    Send(agent_.connection(), [](GlobalProcess& global, LinkId link) {
      global.machine().OnKeepAlive(global.now(), link);
    });
  }
  void NormalClose() {
    if (!agent_.ready()) return;
    Send(agent_.connection(), [](GlobalProcess& global, LinkId link) {
      global.machine().OnNormalClose(global.now(), link);
    });
  }

  // Connected, and not logged in since then.
  Time waiting_since{0};

 private:
  void Send(LinkId link, std::function<void(GlobalProcess&, LinkId)> deliver) {
    Cluster& cluster = server_.cluster_;
    server_.world_.Send(
        link, server_.process_,
        [&cluster, link, number = server_.config_.globals[number_], deliver = std::move(deliver)] {
          for (const auto& global : cluster.globals[number]) {
            if (global->HasLink(link)) {
              deliver(*global, link);
              global->Work();
            }
          }
        });
  }

  Server& server_;
  const std::size_t number_;
  global::GlobalAgent agent_;
};

// --- life ----------------------------------------------------------------------------------------

Server::Server(Cluster& cluster, std::int32_t server_id, ServerConfig config,
               std::vector<std::string> ended)
    : cluster_(cluster),
      world_(cluster.world),
      server_id_(server_id),
      process_(cluster.world.StartProcess(fmt::format("server{}", server_id))),
      config_(std::move(config)),
      ended_(std::move(ended)),
      says_lease_(config_ != cluster.RightConfig() || cluster.world.Chance(0.8)),
      lease_(says_lease_ ? SomeLease(cluster.world) : cluster.silent_lease),
      watch_(cluster.silent_lease) {
  world_.After(process_, Time{0}, [this] { Boot(); });
}

Server::~Server() = default;

bool Server::alive() const {
  return world_.Alive(process_);
}

bool Server::LeaseValid() const {
  return lease_.Valid(world_.LocalTime(process_));
}

bool Server::active() const {
  return alive() && started_ && !closed_ && LeaseValid();
}

bool Server::dirty() const {
  return std::any_of(records_.begin(), records_.end(),
                     [](const auto& entry) { return entry.second.dirty(); });
}

std::string Server::Describe() const {
  std::string text =
      fmt::format("{} epoch {} lease {}:", world_.name(process_), epoch_, alive() && LeaseValid());
  for (const auto& [key, record] : records_) {
    text +=
        fmt::format(" {}={}/{}{}{}{}{}{}", key, Name(record.right), Name(record.book),
                    record.loaded    ? ""
                    : record.loading ? " loading"
                                     : " empty",
                    record.dirty() ? " dirty" : "", record.acquiring ? " acquiring" : "",
                    record.releasing ? " releasing" : "", record.reducing > 0 ? " reducing" : "");
  }
  return text;
}

Right Server::UsableRight(const std::string& key) const {
  const auto at = records_.find(key);
  return at == records_.end() || !active() ? Right::kInvalid : at->second.right;
}

std::size_t Server::PlaceOf(std::size_t shard) const {
  const auto at = std::find(config_.globals.begin(), config_.globals.end(), shard);
  return static_cast<std::size_t>(at - config_.globals.begin());
}

global::GlobalAgent* Server::agent(std::size_t shard) {
  const std::size_t place = PlaceOf(shard);
  return place < shards_.size() ? &shards_[place]->agent() : nullptr;
}

std::size_t Server::ShardOf(std::string_view key) const {
  return static_cast<std::size_t>(key.back()) % config_.globals.size();
}

std::string Server::LockOf(std::string_view key) const {
  std::string lock(key);
  if (lock.front() == config_.other_table) lock.front() = 'x';
  return lock;
}

std::string Server::KeyOf(std::string_view lock) const {
  std::string key(lock);
  if (key.front() == 'x') key.front() = config_.other_table;
  return key;
}

FenceStartOptions Server::StartOptions() const {
  return {.server_id = server_id_,
          .holder = world_.name(process_),
          .lease = said_lease(),
          .secret = secret(),
          .shards = config_.alone ? 0 : static_cast<std::int32_t>(config_.globals.size()),
          .tables = {{.name = "d", .id = config_.other_table == 'd' ? 3 : 1},
                     {.name = "k", .id = config_.other_table == 'k' ? 3 : 2}},
          .incarnation = world_.name(process_),
          .ended = ended_};
}

void Server::Boot() {
  for (std::size_t place = 0; place < config_.globals.size(); ++place) {
    // Each Global says at the greeting which shard it is.
    if (config_.globals[place] == place || cluster_.unsafe.no_shard_order) continue;
    End("it lists its Globals in another order");
    return;
  }
  cluster_.database.Start(process_, StartOptions(), [this](Result<FenceStart> started) {
    if (started.ok()) {
      Booted(started.value());
    } else if (started.error().code() == ErrorCode::kInUse) {
      ClearTheWay();
    } else if (started.error().code() == ErrorCode::kIncompatible) {
      End(started.error().message());
    } else {
      world_.After(process_, milliseconds(100), [this] { Boot(); });
    }
  });
}

// Rule 54.
void Server::ClearTheWay() {
  cluster_.database.InTheWay(
      process_, StartOptions(), [this](Result<std::vector<LiveServer>> servers) {
        if (servers.ok()) {
          const auto verdict = watch_.Look(world_.LocalTime(process_), servers.value());
          if (!verdict.alive.empty()) {
            End(fmt::format("server {} is in its way and lives", verdict.alive.front().server_id));
            return;
          }
          for (const LiveServer& server : verdict.over) {
            const auto ignore = [](const Result<bool>&) {};
            if (server.fenced) {
              cluster_.database.LeaseOver(process_, server.server_id, server.epoch, ignore);
            } else {
              cluster_.database.EvictSilent(process_, server, ignore);
            }
          }
        }
        world_.After(process_, milliseconds(100), [this] { Boot(); });
      });
}

void Server::Booted(const FenceStart& start) {
  epoch_ = start.epoch;
  started_ = true;
  for (std::size_t shard = 0; shard < config_.globals.size(); ++shard) {
    const auto term = start.terms.find(static_cast<std::int32_t>(shard));
    shards_.push_back(std::make_unique<Shard>(
        *this, shard,
        global::AgentOptions{
            .server_id = server_id_,
            .epoch = epoch_,
            .start_term = term == start.terms.end() ? 0 : term->second,
            .lease = said_lease(),
            .unsafe_ignore_start_term = cluster_.unsafe.no_start_term,
            .unsafe_connect_while_yielding = cluster_.unsafe.connect_while_yielding}));
    KeepConnected(shard);
  }
  KeepLease();
  KeepTerms();
  if (!config_.alone && !old_peer()) KeepLooking();
  KeepSaving();
  // People notice that the others do not start.
  if (config_.alone) {
    world_.After(process_, world_.Between(seconds(1), seconds(6)), [this] { Stop(); });
  }
}

// The rest of its life is over; what it has not saved is lost. Its daemon starts another one.
void Server::End(const std::string& why) {
  if (!alive()) return;
  world_.Say(fmt::format("{} ends: {}", world_.name(process_), why));
  world_.Kill(process_);
}

void Server::KeepConnected(std::size_t shard) {
  global::GlobalAgent& agent = shards_[shard]->agent();
  if (agent.ready()) shards_[shard]->waiting_since = world_.now();
  const LinkId stuck = agent.connection();
  if (stuck != 0 && !old_peer() && world_.now() > shards_[shard]->waiting_since + kLoginPatience) {
    world_.Close(stuck, process_);  // What it has said there may still arrive.
    agent.OnClosed(stuck);
  }
  if (agent.connection() == 0 && !closed_) {
    std::vector<GlobalProcess*> choices;
    for (const auto& global : cluster_.globals[config_.globals[shard]]) {
      if (global->alive() && world_.Reachable(process_, global->process())) {
        choices.push_back(global.get());
      }
    }
    if (!choices.empty()) {
      GlobalProcess* global = choices[world_.Below(choices.size())];
      const LinkId link =
          world_.Connect(process_, global->process(),
                         {.on_closed_a = [this, shard](LinkId closed) { OnClosed(shard, closed); },
                          .on_closed_b = [global](LinkId closed) { global->OnClosed(closed); }});
      global->AddLink(link, this);
      shards_[shard]->waiting_since = world_.now();
      // Now and then what it says comes so late that it has given up the connection (hole 33).
      if (!old_peer() && world_.Chance(0.03)) {
        world_.Stall(link, false, true, world_.Between(milliseconds(500), seconds(4)));
      }
      agent.OnConnected(link);
    }
  }
  shards_[shard]->KeepAlive();
  world_.After(process_, kReconnect, [this, shard] { KeepConnected(shard); });
}

void Server::OnClosed(std::size_t shard, LinkId link) {
  global::GlobalAgent& agent = shards_[shard]->agent();
  const bool lost = agent.connection() == link && agent.ready();
  agent.OnClosed(link);
  if (lost && old_peer()) End("its Global is out of sight");
}

void Server::KeepLease() {
  const Time sent = world_.LocalTime(process_);
  cluster_.database.Flush(
      process_, server_id_, FenceLane::kRenew, epoch_, renew_seq_ + 1, {},
      [this, sent](Result<bool> renewed) {
        if (closed_) return;  // Its row says that it has ended.
        if (renewed.ok()) {
          renew_seq_ += 1;
          // Already there, by an earlier copy: whoever has seen it counts from there (hole 32).
          if (renewed.value() || cluster_.unsafe.renewals_in_doubt_count) lease_.Renewed(sent);
        } else if (renewed.error().code() == ErrorCode::kFenced) {
          End("its renewal was refused");
          return;
        }
        world_.After(process_, renewed.ok() ? lease_.options().renew_period() : milliseconds(100),
                     [this] { KeepLease(); });
      });
}

void Server::KeepTerms() {
  cluster_.database.Terms(process_, [this](Result<std::map<std::int32_t, std::int64_t>> terms) {
    if (terms.ok() && !cluster_.unsafe.no_start_term && !old_peer()) {
      for (const auto& [shard, term] : terms.value()) {
        const auto place = static_cast<std::size_t>(shard);
        if (place < shards_.size()) shards_[place]->agent().OnTerm(term);
      }
    }
    world_.After(process_, seconds(1), [this] { KeepTerms(); });
  });
}

void Server::KeepLooking() {
  const bool out_of_sight = std::any_of(shards_.begin(), shards_.end(),
                                        [](const auto& shard) { return !shard->agent().ready(); });
  if (!out_of_sight || closed_) {
    world_.After(process_, kLook, [this] { KeepLooking(); });
    return;
  }
  for (const auto& [key, record] : records_) {
    if (record.dirty()) flush_wanted_.insert(key);
  }
  StartFlush();
  cluster_.database.Wanted(process_, server_id_, epoch_,
                           [this](const Result<std::map<std::int32_t, std::int64_t>>& wanted) {
                             if (wanted.ok() && !closed_) {
                               for (const auto& [shard, term] : wanted.value()) {
                                 const auto place = static_cast<std::size_t>(shard);
                                 if (place < shards_.size()) shards_[place]->agent().OnWanted(term);
                               }
                             }
                             world_.After(process_, kLook, [this] { KeepLooking(); });
                           });
}

// Rule 65.
void Server::Yield(std::size_t shard, const YieldMark& mark) {
  world_.Say(fmt::format("{} yields shard {}", world_.name(process_), shard));
  for (auto& [key, record] : records_) {
    if (ShardOf(key) != shard) continue;
    Lower(key, record, cluster_.unsafe.yield_keeps_share ? Right::kShare : Right::kInvalid);
  }
  KeepYielding(shard, mark);
}

void Server::KeepYielding(std::size_t shard, const YieldMark& mark) {
  bool saved = true;
  for (const auto& [key, record] : records_) {
    if (ShardOf(key) != shard || !record.dirty() || cluster_.unsafe.no_yield_flush) continue;
    saved = false;
    flush_wanted_.insert(key);
  }
  if (!saved) {
    StartFlush();
    world_.After(process_, milliseconds(10), [this, shard, mark] { KeepYielding(shard, mark); });
    return;
  }
  cluster_.database.Yield(process_, server_id_, epoch_, static_cast<std::int32_t>(shard), mark,
                          [this, shard, mark](const Result<bool>& yielded) {
                            if (!yielded.ok()) {
                              if (yielded.error().code() == ErrorCode::kFenced && !closed_) {
                                End("its mark was refused");
                                return;
                              }
                              world_.After(process_, milliseconds(50),
                                           [this, shard, mark] { KeepYielding(shard, mark); });
                              return;
                            }
                            for (auto& [key, record] : records_) {
                              if (ShardOf(key) != shard) continue;
                              record.book = record.right;
                              Wake(world_, process_, record);
                            }
                            shards_[shard]->agent().Yielded();
                          });
}

void Server::Stop() {
  if (!started_ || std::exchange(stopping_, true)) return;
  world_.Say(fmt::format("{} is to stop", world_.name(process_)));
  KeepStopping();
}

void Server::KeepStopping() {
  if (running_ > 0 || flushing_ || dirty()) {
    world_.After(process_, milliseconds(20), [this] { KeepStopping(); });
    return;
  }
  closed_ = true;  // Not even a read from now on.
  cluster_.database.Finish(process_, server_id_, epoch_, [this](const Result<bool>& finished) {
    if (!finished.ok() && finished.error().code() != ErrorCode::kFenced) {
      world_.After(process_, milliseconds(50), [this] { KeepStopping(); });
      return;
    }
    for (const auto& shard : shards_) shard->NormalClose();
    AwaitClosed(world_.now() + seconds(5));
  });
}

void Server::AwaitClosed(Time give_up) {
  const bool open = std::any_of(shards_.begin(), shards_.end(),
                                [](const auto& shard) { return shard->agent().connection() != 0; });
  if (!open || world_.now() >= give_up) {
    End("it has stopped");
    return;
  }
  world_.After(process_, milliseconds(5), [this, give_up] { AwaitClosed(give_up); });
}

void Server::KeepSaving() {
  for (const auto& [key, record] : records_) {
    if (record.dirty()) flush_wanted_.insert(key);
  }
  StartFlush();
  world_.After(process_, world_.Between(milliseconds(300), milliseconds(1500)),
               [this] { KeepSaving(); });
}

void Server::Wake(World& world, ProcessId process, Record& record, Time delay) {
  for (auto& what : std::exchange(record.waiting, {})) {
    world.After(process, delay, std::move(what));
  }
}

// --- rights --------------------------------------------------------------------------------------

void Server::Acquire(const std::string& key, Right wanted) {
  const std::uint64_t request = ++last_request_;
  requests_[request] = key;
  if (!shards_[ShardOf(key)]->SendAcquire(request, key, wanted)) NotGranted(request, key);
}

void Server::NotGranted(std::uint64_t request, const std::string& key) {
  requests_.erase(request);
  Record& record = RecordOf(key);
  record.acquiring = false;
  Wake(world_, process_, record, milliseconds(50));
}

void Server::Released(std::uint64_t request, const std::string& key) {
  requests_.erase(request);
  Record& record = RecordOf(key);
  record.releasing = false;
  Wake(world_, process_, record);
}

void Server::OnGrant(std::size_t shard, LinkId from, std::uint64_t request, std::string_view lock,
                     Right right) {
  if (!agent(shard)->End(from, request)) return;
  const std::string key = KeyOf(lock);
  if (!cluster_.unsafe.no_connection_order) {
    Granted(request, key, right);
    return;
  }
  // On another thread, which may be late.
  world_.After(process_, world_.NetworkDelay(),
               [this, request, key, right] { Granted(request, key, right); });
}

void Server::OnRefusal(std::size_t shard, LinkId from, std::uint64_t request, std::string_view lock,
                       global::Refusal refusal) {
  if (!agent(shard)->End(from, request)) return;
  const bool busy =
      refusal == global::Refusal::kHolderFresh || refusal == global::Refusal::kDeadlock;
  if (!busy) ++cluster_.refused_count;
  NotGranted(request, KeyOf(lock));
}

void Server::OnReleased(std::size_t shard, LinkId from, std::uint64_t request,
                        std::string_view lock) {
  if (agent(shard)->End(from, request)) Released(request, KeyOf(lock));
}

void Server::OnReduce(std::size_t shard, LinkId from, std::uint64_t serial, std::string_view lock,
                      Right to) {
  if (!agent(shard)->Current(from)) return;
  Reduce(PlaceOf(shard), from, serial, KeyOf(lock), to, world_.now() + kHold);
}

void Server::Load(const std::string& key) {
  Record& record = RecordOf(key);
  record.loading = true;
  const std::uint64_t stamp = record.version;
  cluster_.database.Load(process_, key, [this, key, stamp](Result<List> list) {
    Record& loaded = RecordOf(key);
    loaded.loading = false;
    // Rule 6: what was read counts only if nothing happened to the record since.
    const bool valid = cluster_.unsafe.no_load_stamp
                           ? loaded.right != Right::kInvalid && !loaded.loaded
                           : loaded.version == stamp && loaded.right != Right::kInvalid;
    if (list.ok() && valid) {
      loaded.list = std::move(list).value();
      loaded.loaded = true;
      loaded.version = NextVersion();
      loaded.flushed_version = loaded.version;
    }
    Wake(world_, process_, loaded);
  });
}

void Server::Granted(std::uint64_t request, const std::string& key, Right right) {
  if (requests_.erase(request) == 0) return;
  Install(key, right);
}

void Server::Install(const std::string& key, Right right) {
  Record& record = RecordOf(key);
  record.acquiring = false;
  const bool keeps = record.right == Right::kShare && right == Right::kModify;
  if (!keeps) {
    const bool was_dirty = record.dirty();
    record.version = NextVersion();
    if (!was_dirty) record.flushed_version = record.version;
  }
  record.right = std::max(record.right, right);
  record.book = record.right;
  world_.Say(fmt::format("{} has {} of {}", world_.name(process_), Name(record.right), key));
  if (active()) cluster_.CheckSingleWriter(*this, key, record.right);
  Wake(world_, process_, record);
}

// Rules 17, 18, 21, 25.
void Server::Reduce(std::size_t shard, global::ConnectionId from, std::uint64_t serial,
                    const std::string& key, Right to, Time give_up) {
  const ReduceWaiter waiter{.connection = from, .serial = serial, .key = key};
  const auto at = records_.find(key);
  if (at == records_.end()) {
    shards_[shard]->AnswerReduce(from, serial, key, Right::kInvalid);
    return;
  }
  Record& record = at->second;
  const bool locked = old_peer() && record.acquiring;
  if (locked || (record.users > 0 && world_.now() < give_up)) {
    world_.After(process_, milliseconds(5), [this, shard, from, serial, key, to, give_up] {
      Reduce(shard, from, serial, key, to, give_up);
    });
    return;
  }
  const bool dirty = record.dirty();
  Lower(key, record, to);
  ++record.reducing;
  if (!dirty || cluster_.unsafe.no_flush_before_reduce) {
    AnswerReduce(waiter);
    return;
  }
  reduce_waiters_.push_back(waiter);
  flush_wanted_.insert(key);
  StartFlush();
}

void Server::Lower(const std::string& key, Record& record, Right to) {
  if (record.right <= to) return;
  const bool dirty = record.dirty();
  record.right = to;
  record.version = NextVersion();
  if (!dirty) record.flushed_version = record.version;
  if (to == Right::kInvalid) record.loaded = false;
  world_.Say(fmt::format("{} lowers {} to {}{}", world_.name(process_), key, Name(to),
                         dirty ? ", unsaved" : ""));
}

void Server::AnswerReduce(const ReduceWaiter& waiter) {
  Record& record = RecordOf(waiter.key);
  --record.reducing;
  record.book = record.right;
  shards_[ShardOf(waiter.key)]->AnswerReduce(waiter.connection, waiter.serial, waiter.key,
                                             record.right);
  Wake(world_, process_, record);
}

void Server::EvictSomething() {
  std::vector<std::string> clean;
  for (const auto& [key, record] : records_) {
    if (record.right != Right::kInvalid && !record.dirty() && record.users == 0 &&
        record.reducing == 0 && !record.acquiring && !record.loading && !record.releasing) {
      clean.push_back(key);
    }
  }
  if (clean.empty()) return;
  const std::string key = clean[world_.Below(clean.size())];
  Record& record = RecordOf(key);
  record.right = Right::kInvalid;
  record.book = Right::kInvalid;
  record.loaded = false;
  record.list.clear();
  record.version = NextVersion();
  record.flushed_version = record.version;
  if (config_.alone) return;
  record.releasing = true;
  const std::uint64_t request = ++last_request_;
  requests_[request] = key;
  if (!shards_[ShardOf(key)]->SendAcquire(request, key, Right::kInvalid)) Released(request, key);
}

}  // namespace zeze::simulation
