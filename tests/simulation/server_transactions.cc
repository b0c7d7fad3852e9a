// How a server of the simulation runs transactions: rights first, then reads, then the commit.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/simulation/database.h"
#include "tests/simulation/server.h"
#include "tests/simulation/world.h"
#include "zeze/transaction/coherence.h"

namespace zeze::simulation {

namespace {

constexpr int kAttempts = 30;

}  // namespace

void Server::Run(Work& work, const std::vector<std::pair<std::string, bool>>& plan,
                 std::function<void(bool)> done) {
  auto run = std::make_shared<Run_>();
  run->work = &work;
  run->plan = plan;
  run->done = std::move(done);
  ++running_;
  world_.After(process_, Time{0}, [this, run] { Step(run); });
}

void Server::LetGo(Run_& run) {
  for (const std::string& key : std::exchange(run.held, {})) {
    Record& record = RecordOf(key);
    if (--record.users == 0) Wake(world_, process_, record);
  }
}

void Server::Answer(const Running& run, bool committed) {
  LetGo(*run);
  run->over = true;
  --running_;
  run->done(committed);
}

void Server::Again(const Running& run) {
  LetGo(*run);
  run->reads.clear();
  run->work->reads.clear();
  run->step = 0;
  if (++run->attempt > kAttempts || !active()) {
    Answer(run, false);
    return;
  }
  world_.After(process_, world_.Between(Time{0}, milliseconds(20) * run->attempt),
               [this, run] { Step(run); });
}

// True: the record has the right and is loaded. Otherwise something was asked for.
bool Server::Prepare(const Running& run, const std::string& key, Right wanted) {
  Record& record = RecordOf(key);
  if (record.right >= wanted && record.loaded) return true;
  if (config_.alone && record.right < wanted) Install(key, Right::kModify);
  record.waiting.emplace_back([this, run] { Step(run); });
  if (record.acquiring || record.releasing || record.reducing > 0) return false;
  if (record.right < wanted) {
    if (record.dirty()) return false;  // Lowered and not saved yet: the answer wakes us (rule 18).
    record.acquiring = true;
    Acquire(key, wanted);
  } else if (!record.loading) {
    Load(key);
  }
  return false;
}

bool Server::StillTrue(const Run_& run) const {
  for (const auto& [key, read] : run.reads) {
    const auto at = records_.find(key);
    if (at == records_.end() || at->second.version != read.first ||
        at->second.right == Right::kInvalid) {
      return false;
    }
  }
  return true;
}

void Server::Step(const Running& run) {
  if (run->over) return;
  if (!started_ || stopping_) {
    Answer(run, false);
    return;
  }
  if (run->step == run->plan.size()) {
    Commit(run);
    return;
  }
  const auto& [key, write] = run->plan[run->step];
  if (!Prepare(run, key, write ? Right::kModify : Right::kShare)) {
    if (++run->attempt > kAttempts * 4) {
      Answer(run, false);
    }
    return;
  }
  Record& record = RecordOf(key);
  if (run->held.insert(key).second) ++record.users;
  run->reads[key] = {record.version, record.list};
  if (!StillTrue(*run)) {
    Again(run);
    return;
  }
  ++run->step;
  world_.After(process_, world_.Between(Time{0}, milliseconds(4)), [this, run] { Step(run); });
}

// Rules 8 to 15. One event: the pauses that matter are between events.
void Server::Commit(const Running& run) {
  if (!StillTrue(*run)) {
    Again(run);
    return;
  }
  for (const auto& [key, write] : run->plan) {
    if (write && RecordOf(key).right != Right::kModify) {
      Again(run);
      return;
    }
  }
  if (!LeaseValid() && !cluster_.unsafe.no_lease_check) {
    Answer(run, false);
    return;
  }
  Work& work = *run->work;
  work.reads.clear();
  std::vector<std::string> tied;
  bool waits = false;
  for (const auto& [key, read] : run->reads) {
    work.reads.emplace_back(key, read.second);
    const bool durable_table = key.front() == 'd';
    if (RecordOf(key).dirty()) {
      tied.push_back(key);
      waits = waits || durable_table;
    }
  }
  for (const auto& [key, write] : run->plan) {
    if (!write) continue;
    Record& record = RecordOf(key);
    const history::Element element = (work.id << 8) + work.writes.size() + 1;
    cluster_.database.Register(element, work.id);
    work.writes.emplace_back(key, element);
    record.list.push_back(element);
    record.version = NextVersion();
    tied.push_back(key);
    waits = waits || key.front() == 'd';
  }
  Join(tied);
  work.committed = true;
  if (waits) {
    work.durable_wanted = true;
    durable_waiters_.push_back(run);
    for (const std::string& key : tied) {
      run->awaited[key] = RecordOf(key).version;
      flush_wanted_.insert(key);
    }
    LetGo(*run);
    StartFlush();
    return;
  }
  Answer(run, true);
}

}  // namespace zeze::simulation
