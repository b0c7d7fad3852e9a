#include "tests/simulation/database.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/simulation/world.h"
#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"

namespace zeze::simulation {

namespace {

constexpr Time kClientPatience = seconds(2);

}  // namespace

Database::Database(World& world, DatabaseOptions options, std::map<std::uint64_t, Work>& works)
    : world_(world), options_(options), works_(works) {}

Time Database::WorkTime() {
  return world_.Between(microseconds(100), milliseconds(8)) + slow_;
}

template <typename T>
void Database::Ask(ProcessId from, std::function<void(std::function<void(Result<T>)>)> at_database,
                   Answer<T> answer) {
  struct State {
    bool answered = false;
    Answer<T> answer;
  };
  auto state = std::make_shared<State>();
  state->answer = std::move(answer);
  const auto deliver = [state](const Result<T>& result) {
    if (std::exchange(state->answered, true)) return;
    state->answer(result);
  };
  if (!world_.Reachable(from, kNobody)) {
    world_.After(from, world_.Between(milliseconds(1), milliseconds(300)), [deliver] {
      deliver(Error(ErrorCode::kUnavailable, "the database cannot be reached"));
    });
    return;
  }
  world_.After(from, kClientPatience, [deliver] {
    deliver(Error(ErrorCode::kUnknownOutcome, "no answer from the database"));
  });
  // A request can lie in a buffer for long after its sender has given it up.
  Time way = world_.NetworkDelay() + slow_;
  if (!reliable_ && world_.Chance(0.01)) way = world_.Between(milliseconds(500), seconds(8));
  if (!reliable_ && world_.Chance(0.005)) return;
  world_.After(kNobody, way, [this, from, at_database = std::move(at_database), deliver] {
    at_database([this, from, deliver](Result<T> result) {
      if (!reliable_ && world_.Chance(0.005)) return;
      if (!world_.Alive(from) || !world_.Reachable(from, kNobody)) return;
      world_.After(from, world_.NetworkDelay(),
                   [deliver, result = std::move(result)] { deliver(result); });
    });
  });
}

FenceStartOptions Database::Compared(FenceStartOptions options) const {
  const bool alone = options.shards == 0;
  if (options_.unsafe_no_table_ids) options.tables.clear();
  if (alone ? options_.unsafe_no_alone : options_.unsafe_no_cluster_row) {
    options.shards = std::nullopt;
  }
  return options;
}

void Database::Start(ProcessId from, const FenceStartOptions& options, Answer<FenceStart> answer) {
  Ask<FenceStart>(
      from,
      [this, options](auto reply) {
        // It waits for a flush of the old process that holds the fence row.
        if (Busy(options.server_id)) {
          reply(Error(ErrorCode::kUnavailable, "lock time-out"));
          return;
        }
        Result<FenceStart> started = fences_.Start(Compared(options));
        world_.Say(started.ok()
                       ? fmt::format("database: {} starts with epoch {} and says {} ms",
                                     options.holder, started.value().epoch, options.lease.count())
                       : fmt::format("database: {} is refused: {}", options.holder,
                                     started.error().message()));
        reply(std::move(started));
      },
      std::move(answer));
}

void Database::InTheWay(ProcessId from, const FenceStartOptions& options,
                        Answer<std::vector<LiveServer>> answer) {
  Ask<std::vector<LiveServer>>(
      from, [this, options](auto reply) { reply(fences_.InTheWay(Compared(options))); },
      std::move(answer));
}

void Database::EvictSilent(ProcessId from, const LiveServer& seen, Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, seen](auto reply) {
        if (Busy(seen.server_id)) {
          reply(Error(ErrorCode::kUnavailable, "lock time-out"));
          return;
        }
        const bool evicted = fences_.EvictSilent(seen);
        world_.Say(fmt::format("database: server {} epoch {}, silent, is {}", seen.server_id,
                               seen.epoch, evicted ? "evicted" : "not evicted"));
        reply(evicted);
      },
      std::move(answer));
}

void Database::Finish(ProcessId from, std::int32_t server_id, std::int64_t epoch,
                      Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, server_id, epoch](auto reply) {
        if (Busy(server_id)) {
          reply(Error(ErrorCode::kUnavailable, "lock time-out"));
        } else if (fences_.Finish(server_id, epoch)) {
          reply(true);
        } else {
          reply(Error(ErrorCode::kFenced, "finish"));
        }
      },
      std::move(answer));
}

void Database::ReadTerm(ProcessId from, std::int32_t shard, Answer<Fence::TermRow> answer) {
  Ask<Fence::TermRow>(
      from, [this, shard](auto reply) { reply(fences_.ReadTerm(shard)); }, std::move(answer));
}

void Database::RaiseTerm(ProcessId from, const GlobalStart& start, Answer<std::int64_t> answer) {
  ReadTerm(from, start.shard, [this, from, start, answer](Result<Fence::TermRow> row) {
    if (!row.ok() || row.value().holder == start.holder) {
      answer(row.ok() ? Result<std::int64_t>(row.value().term) : Result<std::int64_t>(row.error()));
      return;
    }
    const std::int64_t expected = row.value().term;
    Ask<std::int64_t>(
        from,
        [this, start, expected](auto reply) {
          if (const Result<void> raised = fences_.RaiseTermFrom(start, expected); !raised.ok()) {
            reply(Error(ErrorCode::kUnavailable, raised.error().message()));
            return;
          }
          world_.Say(fmt::format("database: shard {} has term {} of {}", start.shard, expected + 1,
                                 start.holder));
          reply(expected + 1);
        },
        answer);
  });
}

void Database::Terms(ProcessId from, Answer<std::map<std::int32_t, std::int64_t>> answer) {
  Ask<std::map<std::int32_t, std::int64_t>>(
      from, [this](auto reply) { reply(fences_.Terms()); }, std::move(answer));
}

void Database::ListLive(ProcessId from, Answer<std::vector<LiveServer>> answer) {
  Ask<std::vector<LiveServer>>(
      from,
      [this](auto reply) {
        std::vector<LiveServer> live = fences_.ListLive();
        if (options_.unsafe_no_fenced_leases) {
          std::erase_if(live, [](const LiveServer& server) { return server.fenced; });
        }
        reply(std::move(live));
      },
      std::move(answer));
}

void Database::LeaseOver(ProcessId from, std::int32_t server_id, std::int64_t epoch,
                         Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, server_id, epoch](auto reply) {
        fences_.LeaseOver(server_id, epoch);
        reply(true);
      },
      std::move(answer));
}

void Database::Read(ProcessId from, std::int32_t server_id, Answer<Fence::ServerRow> answer) {
  Ask<Fence::ServerRow>(
      from, [this, server_id](auto reply) { reply(fences_.Read(server_id)); }, std::move(answer));
}

void Database::Load(ProcessId from, const std::string& key, Answer<List> answer) {
  Ask<List>(from, [this, key](auto reply) { reply(rows_[key]); }, std::move(answer));
}

void Database::Wanted(ProcessId from, std::int32_t server_id, std::int64_t epoch,
                      Answer<std::map<std::int32_t, std::int64_t>> answer) {
  Ask<std::map<std::int32_t, std::int64_t>>(
      from, [this, server_id, epoch](auto reply) { reply(fences_.Wanted(server_id, epoch)); },
      std::move(answer));
}

void Database::Yield(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                     const YieldMark& mark, Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, server_id, epoch, shard, mark](auto reply) {
        if (!fences_.Yield(server_id, epoch, shard, mark)) {
          reply(Error(ErrorCode::kFenced, "yield"));
          return;
        }
        world_.Say(
            fmt::format("database: server {} epoch {} yields shard {}, number {} for term {}",
                        server_id, epoch, shard, mark.number, mark.term));
        reply(true);
      },
      std::move(answer));
}

void Database::Want(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                    std::int64_t term, Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, server_id, epoch, shard, term](auto reply) {
        reply(fences_.Want(server_id, epoch, shard, term));
      },
      std::move(answer));
}

void Database::Unwant(ProcessId from, std::int32_t server_id, std::int64_t epoch,
                      std::int32_t shard, std::int64_t term, Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, server_id, epoch, shard, term](auto reply) {
        fences_.Unwant(server_id, epoch, shard, term);
        reply(true);
      },
      std::move(answer));
}

void Database::Yields(ProcessId from, std::int32_t shard,
                      Answer<std::vector<YieldedServer>> answer) {
  Ask<std::vector<YieldedServer>>(
      from, [this, shard](auto reply) { reply(fences_.Yields(shard)); }, std::move(answer));
}

void Database::Evict(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                     std::int64_t term, const EvictUnless& unless, Answer<EvictOutcome> answer) {
  Ask<EvictOutcome>(
      from,
      [this, server_id, epoch, shard, term, unless](auto reply) {
        // The statement waits for a flush that holds the fence row, unless its session is killed.
        if (Busy(server_id) && !options_.evict_kills_sessions) {
          reply(Error(ErrorCode::kUnavailable, "lock time-out"));
          return;
        }
        const EvictOutcome outcome = fences_.Evict(server_id, epoch, shard, term, unless);
        if (outcome == EvictOutcome::kEvicted) {
          std::erase_if(flushing_, [&](const auto& entry) {
            return entry.second.server_id == server_id && entry.second.epoch <= epoch;
          });
        }
        world_.Say(fmt::format("database: server {} epoch {} is {}", server_id, epoch,
                               outcome == EvictOutcome::kEvicted ? "evicted" : "not evicted"));
        reply(outcome);
      },
      std::move(answer));
}

void Database::Flush(ProcessId from, std::int32_t server_id, FenceLane lane, std::int64_t epoch,
                     std::int64_t seq, std::vector<Row> rows, Answer<bool> answer) {
  Ask<bool>(
      from,
      [this, server_id, lane, epoch, seq, rows = std::move(rows)](auto reply) {
        BeginFlush({server_id, lane, epoch, seq, rows, reply});
      },
      std::move(answer));
}

bool Database::Busy(std::int32_t server_id) const {
  return std::any_of(flushing_.begin(), flushing_.end(), [server_id](const auto& entry) {
    return entry.second.server_id == server_id;
  });
}

// The fence statement: it waits while another transaction holds the row.
void Database::BeginFlush(Flushing flushing) {
  for (const auto& [number, other] : flushing_) {
    if (other.server_id == flushing.server_id && other.lane == flushing.lane) {
      queued_[{flushing.server_id, flushing.lane}].push_back(std::move(flushing));
      return;
    }
  }
  Result<bool> judged = Judge(flushing);
  if (!judged.ok() || !judged.value()) {
    flushing.reply(std::move(judged));
    return;
  }
  const std::uint64_t number = ++last_flush_;
  flushing_[number] = std::move(flushing);
  world_.After(kNobody, WorkTime(), [this, number] { CommitFlush(number); });
}

// True: it may write. Its own number again: it has been written.
Result<bool> Database::Judge(const Flushing& flushing) const {
  const FenceLaneRow row = fences_.ReadLane(flushing.server_id, flushing.lane);
  if (options_.unsafe_no_fence) return true;
  if (options_.unsafe_no_sequence) {
    if (row.epoch != flushing.epoch) return Error(ErrorCode::kFenced, "epoch");
    return true;
  }
  switch (JudgeFlush(row, flushing.epoch, flushing.seq)) {
    case FlushFate::kNotWritten:
      return true;
    case FlushFate::kWritten:
      return false;
    case FlushFate::kFenced:
      return Error(ErrorCode::kFenced, "epoch");
    case FlushFate::kHistoryLost:
      // The copy of an old flush, which nobody waits for any more.
      return Error(ErrorCode::kConflict, "sequence");
  }
  return Error(ErrorCode::kCorrupt, "judge");
}

void Database::CommitFlush(std::uint64_t number) {
  const auto at = flushing_.find(number);
  if (at == flushing_.end()) return;  // Its session was killed: nothing happened.
  Flushing flushing = std::move(at->second);
  flushing_.erase(at);
  const bool counted =
      fences_.Flush(flushing.server_id, flushing.lane, flushing.epoch, flushing.seq);
  ZEZE_CHECK(counted || options_.unsafe_no_fence || options_.unsafe_no_sequence);
  Apply(flushing.rows);
  flushing.reply(true);
  for (Flushing& waiting : std::exchange(queued_[{flushing.server_id, flushing.lane}], {})) {
    BeginFlush(std::move(waiting));
  }
}

// I2: whole transactions, with everything they had read; and nothing that was there goes away.
void Database::Apply(const std::vector<Row>& rows) {
  std::set<std::uint64_t> fresh;
  for (const Row& row : rows) {
    List& list = rows_[row.key];
    const bool extends =
        row.list.size() >= list.size() && std::equal(list.begin(), list.end(), row.list.begin());
    if (!extends) {
      throw Violation{
          fmt::format("a flush of {} elements overwrites {} of key {} that are no "
                      "prefix of it",
                      row.list.size(), list.size(), row.key)};
    }
    for (std::size_t i = list.size(); i < row.list.size(); ++i) {
      fresh.insert(owners_.at(row.list[i]));
    }
    list = row.list;
  }
  for (const std::uint64_t id : fresh) {
    Work& work = works_.at(id);
    work.durable = true;
    CheckCut(work);
  }
}

void Database::CheckCut(const Work& work) const {
  for (const auto& [key, element] : work.writes) {
    const auto at = rows_.find(key);
    if (at != rows_.end() &&
        std::find(at->second.begin(), at->second.end(), element) != at->second.end()) {
      continue;
    }
    throw Violation{fmt::format("half a transaction in the database: T{} wrote element {} to {}",
                                work.id, element, key)};
  }
  for (const auto& [key, read] : work.reads) {
    const auto at = rows_.find(key);
    const bool there = read.empty() || (at != rows_.end() && at->second.size() >= read.size() &&
                                        std::equal(read.begin(), read.end(), at->second.begin()));
    if (!there) {
      throw Violation{
          fmt::format("an effect without its cause: T{} is in the database, but not "
                      "all it had read of {}",
                      work.id, key)};
    }
  }
}

}  // namespace zeze::simulation
