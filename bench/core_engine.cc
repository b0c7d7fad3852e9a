// What surrounds the edit of a record: other transactional stores, the worker pool, memory,
// containers.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>

#include "bench/allocations.h"
#include "bench/beans.h"
#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"
#include "bench/work_directory.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/wait_group.h"

namespace zeze::bench {

namespace {

constexpr std::int64_t kRecords = 100'000;
constexpr std::int64_t kPoolKeys = 5000;
constexpr std::int64_t kPoolGroup = 200;
constexpr std::int64_t kElements = 10'000;

void CheckStatus(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

// RocksDB's own transactions, without disk and log. Values are 64 raw bytes, so that the peer does
// not even decode.
class RocksDbPeer {
 public:
  RocksDbPeer() : directory_("/dev/shm") {
    rocksdb::Options options;
    options.create_if_missing = true;
    CheckStatus(rocksdb::OptimisticTransactionDB::Open(options, directory_.path(), &db_));
    owner_.reset(db_);
    write_.disableWAL = true;
    const std::string value(64, '\0');
    for (std::int64_t key = 0; key < kRecords; ++key) {
      CheckStatus(db_->Put(write_, KeyOf(key).view(), value));
    }
  }

  void Edit(std::int64_t number) {
    const Key key = KeyOf(number);
    while (true) {
      const std::unique_ptr<rocksdb::Transaction> tx(db_->BeginTransaction(write_));
      rocksdb::PinnableSlice pinned;
      CheckStatus(tx->GetForUpdate(read_, db_->DefaultColumnFamily(), key.view(), &pinned));
      std::array<char, 64> value{};
      std::memcpy(value.data(), pinned.data(), value.size());
      std::int64_t counter = 0;
      std::memcpy(&counter, value.data(), sizeof counter);
      ++counter;
      std::memcpy(value.data(), &counter, sizeof counter);
      CheckStatus(tx->Put(key.view(), rocksdb::Slice(value.data(), value.size())));
      const rocksdb::Status committed = tx->Commit();
      if (committed.ok()) return;
      if (!committed.IsBusy() && !committed.IsTryAgain()) CheckStatus(committed);
    }
  }

 private:
  struct Key {
    std::array<char, 8> bytes;
    rocksdb::Slice view() const { return {bytes.data(), bytes.size()}; }
  };
  static Key KeyOf(std::int64_t number) {
    Key key{};
    for (int i = 7; i >= 0; --i, number >>= 8) {
      key.bytes[static_cast<std::size_t>(i)] = static_cast<char>(number & 0xff);
    }
    return key;
  }

  WorkDirectory directory_;
  rocksdb::OptimisticTransactionDB* db_ = nullptr;
  std::unique_ptr<rocksdb::OptimisticTransactionDB> owner_;
  rocksdb::WriteOptions write_;
  rocksdb::ReadOptions read_;
};

void VersusRocksDbTxn(Run& run) {
  TableFixture<BSmall> ours;
  ours.Fill(kRecords, SmallValue());
  RocksDbPeer peer;
  const Work edit = [&](int thread, const std::atomic<bool>& stop) {
    FastRandom random(static_cast<std::uint64_t>(thread) + 1);
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) {
      const std::int64_t key = random.Below(kRecords);
      CheckCode(ours.engine.Call("edit", [&](Transaction& tx) {
        ours.table.Edit(tx, key)->counter += 1;
        return result_code::kSuccess;
      }));
    }
    return count;
  };
  const Work theirs = [&](int thread, const std::atomic<bool>& stop) {
    FastRandom random(static_cast<std::uint64_t>(thread) + 1);
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) peer.Edit(random.Below(kRecords));
    return count;
  };
  const Comparison c =
      Compare({{1, edit}, {1, theirs}, {2, edit}, {2, theirs}}, run.settings().seconds * 1.5);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    run.Report({.name = i == 0 ? "core.vs_rocksdb_txn" : "core.vs_rocksdb_txn_2",
                .value = c.medians[i].per_second,
                .unit = "tx/s",
                .peer = i == 0 ? "RocksDB optimistic" : "RocksDB, 2 threads",
                .peer_value = c.medians[i + 1].per_second,
                .ratio = c.RateRatio(i, i + 1),
                .goal = Goal::RatioAtLeast(i == 0 ? 30 : 50),
                .note = c.Note(i, i + 1)});
  }
}

// Groups of tasks on the pool until `stop`; every thread of the pool counts.
template <typename Body>
std::uint64_t SubmitGroups(ThreadPool& pool, const std::atomic<bool>& stop, const Body& body) {
  std::uint64_t count = 0;
  std::int64_t key = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    WaitGroup group(kPoolGroup);
    for (std::int64_t i = 0; i < kPoolGroup; ++i) {
      key = key + 1 == kPoolKeys ? 0 : key + 1;
      CheckDone(pool.TryPost(Task("edit", [&body, &group, key] {
        body(key);
        group.Done();
      })));
    }
    group.Wait();
    count += kPoolGroup;
  }
  return count;
}

// CPU of the whole process, because it is spent on the threads of the pool.
template <typename Body>
double SubmitCpuNs(ThreadPool& pool, double seconds, const Body& body) {
  std::atomic<bool> stop = false;
  std::uint64_t count = 0;
  const double cpu = ProcessCpuSeconds();
  std::thread poster([&] { count = SubmitGroups(pool, stop, body); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  poster.join();
  return (ProcessCpuSeconds() - cpu) / static_cast<double>(count) * 1e9;
}

void SubmitEdit(Run& run) {
  TableFixture<BDemo> ours;
  ours.Fill(kPoolKeys, BDemo{});
  ThreadPool pool({.name = "worker"});
  const auto edit = [&](std::int64_t key) {
    CheckCode(ours.engine.Call("add", [&](Transaction& tx) {
      ours.table.GetOrAdd(tx, key)->long2 += 1;
      return result_code::kSuccess;
    }));
  };
  const auto nothing = [](std::int64_t key) { KeepValue(key); };
  std::vector<double> edits;
  std::vector<double> empties;
  std::vector<double> ratios;
  const double turn = 0.1;
  SubmitCpuNs(pool, turn, edit);
  for (double left = run.settings().seconds; left > 0 || ratios.size() < 5; left -= 2 * turn) {
    edits.push_back(SubmitCpuNs(pool, turn, edit));
    empties.push_back(SubmitCpuNs(pool, turn, nothing));
    ratios.push_back(edits.back() / empties.back());
  }
  pool.Shutdown(ThreadPool::Pending::kRun);
  run.Report({.name = "core.submit_edit",
              .value = Median(edits),
              .unit = "ns CPU",
              .peer = "empty task, same pool",
              .peer_value = Median(empties),
              .ratio = Median(ratios),
              .goal = Goal::ValueAtMost(700),
              .note = fmt::format("Java peer: 3,200-3,700 ns; best {:.0f}", Percentile(edits, 0))});
}

void RecordBytes(Run& run) {
  // In a process of its own: memory that earlier benchmarks freed would be used again unseen.
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + self + "' --measure-record-bytes";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  double bytes = 0;
  const int fields = std::fscanf(pipe, "%lf", &bytes);
  if (::pclose(pipe) != 0 || fields != 1) throw std::runtime_error(command + " failed");
  run.Report({.name = "core.record_bytes",
              .value = bytes,
              .unit = "bytes",
              .peer = "the bean alone",
              .peer_value = sizeof(BDemo),
              .ratio = bytes / sizeof(BDemo),
              .goal = Goal::ValueAtMost(1000),
              .note = "Java peer: 2,437; resident, 200,000 records"});
}

void Allocations(Run& run) {
  TableFixture<BNamed> ours;
  ours.Fill(kRecords, NamedValue());
  FastRandom random(1);
  const auto count = [&](bool write, int times) {
    const std::uint64_t before = ThreadAllocations();
    for (int i = 0; i < times; ++i) {
      const std::int64_t key = random.Below(kRecords);
      CheckCode(ours.engine.Call("edit", [&](Transaction& tx) {
        if (write) {
          ours.table.Edit(tx, key)->counter += 1;
        } else {
          KeepValue(ours.table.Get(tx, key)->counter);
        }
        return result_code::kSuccess;
      }));
    }
    return static_cast<double>(ThreadAllocations() - before) / times;
  };
  count(true, 200'000);
  const double writes = count(true, 200'000);
  const double reads = count(false, 200'000);
  run.Report({.name = "core.allocations",
              .value = writes,
              .unit = "per tx",
              .peer = "values written",
              .peer_value = 1,
              .ratio = writes,
              .goal = Goal::ValueAtMost(1),
              .note = "0 when pooled"});
  run.Report({.name = "core.allocations_read",
              .value = reads,
              .unit = "per tx",
              .peer = "none",
              .peer_value = 0,
              .ratio = reads,
              .goal = Goal::ValueAtMost(0)});
}

template <typename Edit, typename Copy>
void ReportEdit(Run& run, const char* name, const char* peer, const Edit& edit, const Copy& copy) {
  const Work ours = [&](int, const std::atomic<bool>& stop) {
    FastRandom random(1);
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) edit(random.Below(kElements));
    return count;
  };
  const Work theirs = [&](int, const std::atomic<bool>& stop) {
    FastRandom random(1);
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) copy(random.Below(kElements));
    return count;
  };
  const Comparison c = Compare({{1, ours}, {1, theirs}}, run.settings().seconds / 2);
  run.Report({.name = name,
              .value = c.medians[0].cpu_ns / 1000,
              .unit = "us CPU",
              .peer = peer,
              .peer_value = c.medians[1].cpu_ns / 1000,
              .ratio = c.CpuRatio(0, 1),
              .goal = Goal::ValueAtMost(3),
              .note = c.Note(0, 1)});
}

void ListEdit(Run& run) {
  TableFixture<BBag> ours;
  BBag bag;
  std::vector<BItem> list;
  std::unordered_map<std::int64_t, BItem> map;
  for (std::int64_t i = 0; i < kElements; ++i) {
    const BItem item{.id = i, .count = 1};
    bag.list.PushBack(item);
    bag.map.Put(i, item);
    list.push_back(item);
    map.emplace(i, item);
  }
  ours.Fill(1, bag);
  ReportEdit(
      run, "core.list_edit_10k", "copy of std::vector",
      [&](std::int64_t i) {
        CheckCode(ours.engine.Call("edit list", [&](Transaction& tx) {
          ours.table.Edit(tx, 0)->list.Update(static_cast<std::size_t>(i),
                                              [](BItem& item) { item.count += 1; });
          return result_code::kSuccess;
        }));
      },
      [&](std::int64_t i) {
        std::vector<BItem> copy = list;
        copy[static_cast<std::size_t>(i)].count += 1;
        list.swap(copy);
      });
  ReportEdit(
      run, "core.list_edit_10k_map", "std::unordered_map",
      [&](std::int64_t i) {
        CheckCode(ours.engine.Call("edit map", [&](Transaction& tx) {
          ours.table.Edit(tx, 0)->map.Update(i, [](BItem& item) { item.count += 1; });
          return result_code::kSuccess;
        }));
      },
      [&](std::int64_t i) {
        auto copy = map;
        copy[i].count += 1;
        map.swap(copy);
      });
}

constexpr Benchmark kBenchmarks[] = {
    {"core.vs_rocksdb_txn", "the edit, against RocksDB's optimistic transactions in memory",
     &VersusRocksDbTxn},
    {"core.submit_edit", "the edit submitted to the worker pool in groups of 200", &SubmitEdit},
    {"core.record_bytes", "memory of a cached record with a bean of 50 variables", &RecordBytes},
    {"core.allocations", "calls of operator new in a transaction", &Allocations},
    {"core.list_edit_10k", "one of 10,000 elements of a list and of a map changed", &ListEdit},
};

}  // namespace

std::span<const Benchmark> CoreEngineBenchmarks() {
  return kBenchmarks;
}

double MeasureRecordBytes() {
  constexpr std::int64_t kCount = 200'000;
  TableFixture<BDemo> ours;
  BDemo value;
  value.int1 = 1;
  value.string3 = "a player";
  ours.Fill(1, value);
  const double before = ResidentBytes();
  ours.Fill(kCount, value);
  return (ResidentBytes() - before) / kCount;
}

}  // namespace zeze::bench
