// Database: the shared database as processes see it: requests that get lost, arrive late or lose
// their answer, transactions that take time, sessions that can be killed. Its rows are lists; it
// checks invariant I2 at every commit.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/history/history.h"
#include "tests/simulation/world.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"

namespace zeze::simulation {

using List = std::vector<history::Element>;

struct DatabaseOptions {
  bool evict_kills_sessions = true;

  // Rules to leave out, to see that it matters.
  bool unsafe_no_fence = false;
  bool unsafe_no_sequence = false;
  bool unsafe_no_fenced_leases = false;
  bool unsafe_no_cluster_row = false;
  bool unsafe_no_table_ids = false;
  bool unsafe_no_alone = false;
};

// A transaction of the workload: what it did, and what became of it.
struct Work {
  std::uint64_t id = 0;
  std::string name;
  std::size_t worker = 0;
  ProcessId server = kNobody;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // 0: no answer.
  bool committed = false;
  bool durable_wanted = false;  // Answered only when saved.
  bool durable = false;         // The database has had it.
  std::vector<std::pair<std::string, List>> reads;
  std::vector<std::pair<std::string, history::Element>> writes;
};

struct Row {
  std::string key;
  List list;
};

class Database {
 public:
  Database(World& world, DatabaseOptions options, std::map<std::uint64_t, Work>& works);

  // All answers come later, or as an error: kUnavailable (it did not happen) or kUnknownOutcome.
  template <typename T>
  using Answer = std::function<void(Result<T>)>;

  void Start(ProcessId from, const FenceStartOptions& options, Answer<FenceStart> answer);
  void InTheWay(ProcessId from, const FenceStartOptions& options,
                Answer<std::vector<LiveServer>> answer);
  void EvictSilent(ProcessId from, const LiveServer& seen, Answer<bool> answer);
  void Finish(ProcessId from, std::int32_t server_id, std::int64_t epoch, Answer<bool> answer);
  void RaiseTerm(ProcessId from, const GlobalStart& start, Answer<std::int64_t> answer);
  void ReadTerm(ProcessId from, std::int32_t shard, Answer<Fence::TermRow> answer);
  void Terms(ProcessId from, Answer<std::map<std::int32_t, std::int64_t>> answer);
  void ListLive(ProcessId from, Answer<std::vector<LiveServer>> answer);
  void Evict(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
             std::int64_t term, const EvictUnless& unless, Answer<EvictOutcome> answer);
  void Wanted(ProcessId from, std::int32_t server_id, std::int64_t epoch,
              Answer<std::map<std::int32_t, std::int64_t>> answer);
  // kFenced: another epoch.
  void Yield(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
             const YieldMark& mark, Answer<bool> answer);
  void Want(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
            std::int64_t term, Answer<bool> answer);
  void Unwant(ProcessId from, std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
              std::int64_t term, Answer<bool> answer);
  void Yields(ProcessId from, std::int32_t shard, Answer<std::vector<YieldedServer>> answer);
  void LeaseOver(ProcessId from, std::int32_t server_id, std::int64_t epoch, Answer<bool> answer);
  void Read(ProcessId from, std::int32_t server_id, Answer<Fence::ServerRow> answer);
  void Load(ProcessId from, const std::string& key, Answer<List> answer);
  // kFenced: another epoch. Repeat with the same number after kUnknownOutcome.
  void Flush(ProcessId from, std::int32_t server_id, FenceLane lane, std::int64_t epoch,
             std::int64_t seq, std::vector<Row> rows, Answer<bool> answer);

  const std::map<std::string, List>& rows() const { return rows_; }
  FenceTable& fences() { return fences_; }
  // Extra time for every request, as if the disk were slow.
  void Slow(Time extra) { slow_ = extra; }
  // From now on no request or answer is late or lost.
  void BecomeReliable() { reliable_ = true; }

  // Who appended an element.
  void Register(history::Element element, std::uint64_t work) { owners_[element] = work; }

 private:
  struct Flushing {
    std::int32_t server_id;
    FenceLane lane;
    std::int64_t epoch;
    std::int64_t seq;
    std::vector<Row> rows;
    std::function<void(Result<bool>)> reply;
  };

  // Carries a request to the database and its answer back.
  template <typename T>
  void Ask(ProcessId from, std::function<void(std::function<void(Result<T>)>)> at_database,
           Answer<T> answer);
  // What is left of a start's options by the rules that are left out.
  FenceStartOptions Compared(FenceStartOptions options) const;
  // A flush of the server holds its fence row.
  bool Busy(std::int32_t server_id) const;
  void BeginFlush(Flushing flushing);
  void CommitFlush(std::uint64_t number);
  Result<bool> Judge(const Flushing& flushing) const;
  void Apply(const std::vector<Row>& rows);
  void CheckCut(const Work& work) const;
  Time WorkTime();

  World& world_;
  const DatabaseOptions options_;
  std::map<std::uint64_t, Work>& works_;
  FenceTable fences_;
  std::map<std::string, List> rows_;
  std::map<history::Element, std::uint64_t> owners_;
  Time slow_{0};
  bool reliable_ = false;
  std::uint64_t last_flush_ = 0;
  std::map<std::uint64_t, Flushing> flushing_;  // Between the fence and the commit.
  std::map<std::pair<std::int32_t, FenceLane>, std::vector<Flushing>> queued_;
};

}  // namespace zeze::simulation
