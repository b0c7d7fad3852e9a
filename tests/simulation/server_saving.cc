// How a server of the simulation saves: groups of records that belong together, cuts, flushes.

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/database.h"
#include "tests/simulation/server.h"
#include "tests/simulation/world.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"

namespace zeze::simulation {

void Server::Join(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    for (const std::string& other : keys) ties_[key].insert(other);
  }
}

std::set<std::string> Server::GroupOf(const std::string& key) const {
  std::set<std::string> group{key};
  std::vector<std::string> open{key};
  while (!open.empty()) {
    const std::string at = std::move(open.back());
    open.pop_back();
    const auto tied = ties_.find(at);
    if (tied == ties_.end()) continue;
    for (const std::string& other : tied->second) {
      if (group.insert(other).second) open.push_back(other);
    }
  }
  return group;
}

void Server::StartFlush() {
  if (flushing_ || flush_wanted_.empty()) return;
  std::set<std::string> keys;
  for (const std::string& key : std::exchange(flush_wanted_, {})) keys.merge(GroupOf(key));
  cut_.clear();
  for (const std::string& key : keys) {
    const Record& record = RecordOf(key);
    if (record.dirty()) cut_.push_back({key, record.version, record.list});
  }
  if (cut_.empty()) {
    Flushed();
    return;
  }
  flushing_ = true;
  SendFlush();
}

void Server::SendFlush() {
  std::vector<Row> rows;
  for (const Cut& one : cut_) rows.push_back({.key = one.key, .list = one.list});
  const auto answered = [this](const Result<bool>& flushed) {
    if (flushed.ok()) {
      flush_seq_ += 1;
      flushing_ = false;
      for (const Cut& one : cut_) RecordOf(one.key).flushed_version = one.version;
      Flushed();
      return;
    }
    if (flushed.error().code() == ErrorCode::kFenced) {
      End("its flush was refused");
      return;
    }
    // Not done, or nobody knows: the same again, with the same number (rule 32).
    world_.After(process_, world_.Between(milliseconds(1), milliseconds(50)),
                 [this] { SendFlush(); });
  };
  cluster_.database.Flush(process_, server_id_, FenceLane::kFlush, epoch_, flush_seq_ + 1,
                          std::move(rows), answered);
}

// Rule 30: what is clean leaves its group; what was written since stays tied.
void Server::Flushed() {
  for (auto at = ties_.begin(); at != ties_.end();) {
    if (RecordOf(at->first).dirty()) {
      std::erase_if(at->second, [this](const std::string& key) { return !RecordOf(key).dirty(); });
      ++at;
    } else {
      at = ties_.erase(at);
    }
  }
  std::vector<ReduceWaiter> still;
  for (const ReduceWaiter& waiter : std::exchange(reduce_waiters_, {})) {
    if (RecordOf(waiter.key).dirty()) {
      flush_wanted_.insert(waiter.key);
      still.push_back(waiter);
    } else {
      AnswerReduce(waiter);
    }
  }
  reduce_waiters_.insert(reduce_waiters_.end(), still.begin(), still.end());
  std::vector<Running> waiting;
  for (const Running& run : std::exchange(durable_waiters_, {})) {
    bool saved = true;
    for (const auto& [key, version] : run->awaited) {
      if (RecordOf(key).flushed_version >= version) continue;
      saved = false;
      flush_wanted_.insert(key);
    }
    if (saved) {
      Answer(run, true);
    } else {
      waiting.push_back(run);
    }
  }
  durable_waiters_.insert(durable_waiters_.end(), waiting.begin(), waiting.end());
  if (!flush_wanted_.empty()) {
    world_.After(process_, microseconds(100), [this] { StartFlush(); });
  }
}

}  // namespace zeze::simulation
