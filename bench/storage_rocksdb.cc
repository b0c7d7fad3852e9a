// The RocksDB storage under the engine, beside bare RocksDB with the same options.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "bench/beans.h"
#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"
#include "bench/work_directory.h"
#include "zeze/base/check.h"
#include "zeze/bean/codec.h"
#include "zeze/storage/rocksdb/internal/rocksdb_options.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"

namespace zeze::bench {

namespace {

constexpr std::int64_t kRows = 100'000;
constexpr std::int64_t kKeySpace = 1'000'000;
constexpr std::int64_t kLoadRows = 400'000;
constexpr std::size_t kPayloadBytes = 90;  // 100 with the key and what encodes it.

void CheckStatus(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

RocksDbOptions OptionsAt(const std::string& directory) {
  RocksDbOptions options;
  options.directory = directory;
  options.block_cache_bytes = std::size_t{256} << 20;  // All rows fit: what is measured is code.
  return options;
}

std::unique_ptr<Storage> OpenStorage(const std::string& directory) {
  Result<std::unique_ptr<Storage>> opened = OpenRocksDbStorage(OptionsAt(directory));
  if (!opened.ok()) throw std::runtime_error(opened.error().message());
  return std::move(opened).value();
}

// A database opened with the options of the storage, and nothing around it.
class BareDb {
 public:
  explicit BareDb(const std::string& directory) {
    rocksdb::DB* db = nullptr;
    CheckStatus(rocksdb::DB::Open(MakeRocksDbOptions(OptionsAt(directory)), directory, &db));
    db_.reset(db);
  }

  void Write(std::span<const std::pair<std::string, std::string>> rows, bool sync) {
    rocksdb::WriteBatch batch;
    for (const auto& [key, value] : rows) CheckStatus(batch.Put(key, value));
    rocksdb::WriteOptions options;
    options.sync = sync;
    CheckStatus(db_->Write(options, &batch));
  }

  rocksdb::DB& operator*() { return *db_; }
  rocksdb::DB* operator->() { return db_.get(); }

 private:
  std::unique_ptr<rocksdb::DB> db_;
};

BRow RowValue(FastRandom& random) {
  static constexpr char kHex[] = "0123456789abcdef";
  BRow row;
  row.counter = 1;
  row.payload.resize(kPayloadBytes, 'x');
  // Half of it can be compressed away, as with real data.
  for (std::size_t i = 0; i < kPayloadBytes / 2; ++i) row.payload[i] = kHex[random.Next() >> 60];
  return row;
}

// Distinct keys from the whole range in random order.
std::vector<std::int64_t> SpreadKeys(std::int64_t count) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(kKeySpace));
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int64_t>(i);
  FastRandom random(7);
  for (std::size_t i = keys.size() - 1; i > 0; --i) {
    std::swap(keys[i], keys[random.Next() % (i + 1)]);
  }
  keys.resize(static_cast<std::size_t>(count));
  return keys;
}

std::vector<std::pair<std::string, std::string>> EncodedRows(std::span<const std::int64_t> keys,
                                                             std::int64_t counter) {
  FastRandom random(3);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::int64_t key : keys) {
    BRow row = RowValue(random);
    row.counter = counter;
    rows.emplace_back(EncodeKey(key), EncodeBean(row));
  }
  return rows;
}

void PutRows(TableFixture<BRow>& ours, std::span<const std::int64_t> keys, std::int64_t counter) {
  FastRandom random(3);
  for (std::size_t begin = 0; begin < keys.size(); begin += 100) {
    const auto part = keys.subspan(begin, std::min<std::size_t>(100, keys.size() - begin));
    std::vector<BRow> rows;
    for (std::size_t i = 0; i < part.size(); ++i) rows.push_back(RowValue(random));
    CheckCode(ours.engine.Call("put", [&](Transaction& tx) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        rows[i].counter = counter;
        ours.table.Put(tx, part[i], rows[i]);
      }
      return result_code::kSuccess;
    }));
  }
}

void Flush(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  TableFixture<BRow> ours(OpenStorage(directory.Sub("ours")));
  BareDb bare(directory.Sub("bare"));
  const std::vector<std::int64_t> keys = SpreadKeys(kRows);
  std::vector<double> our_rates;
  std::vector<double> bare_rates;
  std::vector<double> ratios;
  const double end = WallSeconds() + run.settings().seconds * 2;
  for (std::int64_t round = 0; ratios.size() < 5 || WallSeconds() < end; ++round) {
    PutRows(ours, keys, round + 1000);
    double begin = WallSeconds();
    CheckDone(ours.engine.CheckpointNow());
    const double our_seconds = WallSeconds() - begin;

    const auto rows = EncodedRows(keys, round + 1000);
    begin = WallSeconds();
    bare.Write(rows, true);
    const double bare_seconds = WallSeconds() - begin;
    if (round == 0) continue;  // The first one makes files and takes memory.
    our_rates.push_back(static_cast<double>(kRows) / our_seconds);
    bare_rates.push_back(static_cast<double>(kRows) / bare_seconds);
    ratios.push_back(bare_seconds / our_seconds);
  }
  run.Report({.name = "storage.rocksdb_flush",
              .value = Median(our_rates),
              .unit = "rows/s",
              .peer = "bare WriteBatch",
              .peer_value = Median(bare_rates),
              .ratio = Median(ratios),
              .goal = Goal::RatioAtLeast(0.9),
              .note = fmt::format("{} rounds, ratio {:.2f} .. {:.2f}", ratios.size(),
                                  Percentile(ratios, 0.25), Percentile(ratios, 0.75))});
}

void Interference(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  TableFixture<BRow> ours(OpenStorage(directory.Sub("ours")));
  FastRandom random(1);
  ours.Fill(kRows, RowValue(random));
  CheckDone(ours.engine.CheckpointNow());
  const auto edit = [&](int, const std::atomic<bool>& stop) {
    FastRandom keys(5);
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) {
      const std::int64_t key = keys.Below(kRows);
      CheckCode(ours.engine.Call("edit", [&](Transaction& tx) {
        ours.table.Edit(tx, key)->counter += 1;
        return result_code::kSuccess;
      }));
    }
    return count;
  };
  // The worker's rate alone; checkpoints run one after the other on another thread meanwhile.
  const auto rate = [&](bool checkpoints) {
    std::atomic<bool> stop = false;
    std::thread saver([&] {
      while (checkpoints && !stop) CheckDone(ours.engine.CheckpointNow());
    });
    std::uint64_t count = 0;
    double seconds = 0;
    std::thread worker([&] {
      const double begin = WallSeconds();
      count = edit(0, stop);
      seconds = WallSeconds() - begin;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(checkpoints ? 600 : 200));
    stop = true;
    worker.join();
    saver.join();
    return static_cast<double>(count) / seconds;
  };
  rate(false);
  std::vector<double> disturbed;
  std::vector<double> alone;
  std::vector<double> ratios;
  const double end = WallSeconds() + run.settings().seconds * 1.5;
  while (ratios.size() < 5 || WallSeconds() < end) {
    CheckDone(ours.engine.CheckpointNow());
    alone.push_back(rate(false));
    disturbed.push_back(rate(true));
    ratios.push_back(disturbed.back() / alone.back());
  }
  run.Report({.name = "storage.rocksdb_interference",
              .value = Median(disturbed),
              .unit = "tx/s",
              .peer = "no checkpoint",
              .peer_value = Median(alone),
              .ratio = Median(ratios),
              .goal = Goal::RatioAtLeast(0.7),
              .note = fmt::format("{} rounds, ratio {:.2f} .. {:.2f}", ratios.size(),
                                  Percentile(ratios, 0.25), Percentile(ratios, 0.75))});
}

void Load(Run& run) {
  constexpr std::int64_t kPart = 20'000;
  const WorkDirectory directory(run.settings().directory);
  const std::vector<std::int64_t> keys = SpreadKeys(kLoadRows);
  BareDb bare(directory.Sub("bare"));
  {
    TableFixture<BRow> writer(OpenStorage(directory.Sub("ours")));
    PutRows(writer, keys, 1);
    CheckDone(writer.engine.Stop());
    const auto rows = EncodedRows(keys, 1);
    std::vector<std::pair<std::string, std::string>> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end());
    bare.Write(sorted, true);
    CheckStatus(bare->Flush({}));
  }
  std::unique_ptr<Storage> storage = OpenStorage(directory.Sub("ours"));
  StorageTable* table = storage->OpenTable(kTable.name).value();
  // Blocks into RocksDB's cache, on both sides: a miss of the record cache that finds them there.
  const rocksdb::ReadOptions read = MakeRocksDbFindOptions();
  for (const std::int64_t key : keys) {
    const std::string bytes = EncodeKey(key);
    rocksdb::PinnableSlice value;
    CheckStatus(bare->Get(read, bare->DefaultColumnFamily(), bytes, &value));
    const Result<bool> found = table->Find(bytes, [](std::string_view) {});
    ZEZE_CHECK(found.ok() && found.value());
  }
  TableFixture<BRow> ours(std::move(storage));
  std::vector<double> our_rates;
  std::vector<double> bare_rates;
  std::vector<double> ratios;
  for (std::size_t begin = 0; begin < keys.size(); begin += kPart) {
    const std::span<const std::int64_t> part(keys.data() + begin, kPart);
    double cpu = ThreadCpuSeconds();
    for (const std::int64_t key : part) {
      CheckCode(ours.engine.Call("read", [&](Transaction& tx) {
        KeepValue(ours.table.Get(tx, key)->counter);
        return result_code::kSuccess;
      }));
    }
    const double our_seconds = ThreadCpuSeconds() - cpu;
    cpu = ThreadCpuSeconds();
    for (const std::int64_t key : part) {
      rocksdb::PinnableSlice value;
      ByteWriter bytes;
      EncodeKey(bytes, key);
      CheckStatus(bare->Get(read, bare->DefaultColumnFamily(),
                            rocksdb::Slice(bytes.view().data(), bytes.size()), &value));
      KeepValue(value.size());
    }
    const double bare_seconds = ThreadCpuSeconds() - cpu;
    our_rates.push_back(kPart / our_seconds);
    bare_rates.push_back(kPart / bare_seconds);
    ratios.push_back(bare_seconds / our_seconds);
  }
  run.Report({.name = "storage.rocksdb_load",
              .value = Median(our_rates),
              .unit = "rows/s",
              .peer = "bare Get",
              .peer_value = Median(bare_rates),
              .ratio = Median(ratios),
              .goal = Goal::RatioAtLeast(0.75),
              .note = fmt::format("per CPU second; ratio {:.2f} .. {:.2f}",
                                  Percentile(ratios, 0.25), Percentile(ratios, 0.75))});
}

void Durable(Run& run) {
  const WorkDirectory directory(run.settings().directory);
  TableFixture<BRow> ours(OpenStorage(directory.Sub("ours")),
                          {.cache_capacity = 0, .durable_at_commit = true});
  BareDb bare(directory.Sub("bare"));
  FastRandom random(1);
  const BRow value = RowValue(random);
  std::vector<double> our_times;
  std::vector<double> bare_times;
  std::vector<double> ratios;
  const auto repeat = [](double seconds, const auto& operation) {
    std::vector<double> times;
    const double end = WallSeconds() + seconds;
    double now = WallSeconds();
    while (now < end) {
      operation();
      const double after = WallSeconds();
      times.push_back((after - now) * 1e6);
      now = after;
    }
    return Median(times);
  };
  const double end = WallSeconds() + run.settings().seconds;
  while (ratios.size() < 5 || WallSeconds() < end) {
    our_times.push_back(repeat(0.1, [&] {
      const std::int64_t key = random.Below(kRows);
      CheckCode(ours.engine.Call("pay", [&](Transaction& tx) {
        ours.table.Put(tx, key, value);
        return result_code::kSuccess;
      }));
    }));
    bare_times.push_back(repeat(0.1, [&] {
      const std::pair<std::string, std::string> row(EncodeKey(random.Below(kRows)),
                                                    EncodeBean(value));
      bare.Write({&row, 1}, true);
    }));
    ratios.push_back(our_times.back() / bare_times.back());
  }
  run.Report({.name = "storage.rocksdb_durable",
              .value = Median(our_times),
              .unit = "us p50",
              .peer = "bare synced Write",
              .peer_value = Median(bare_times),
              .ratio = Median(ratios),
              .goal = Goal::RatioAtMost(1.5),
              .note = fmt::format("{} rounds, ratio {:.2f} .. {:.2f}", ratios.size(),
                                  Percentile(ratios, 0.25), Percentile(ratios, 0.75))});
}

constexpr Benchmark kBenchmarks[] = {
    {"storage.rocksdb_flush", "a synced checkpoint of 100,000 changed rows of 100 bytes", &Flush},
    {"storage.rocksdb_interference", "1 worker edits while checkpoints run", &Interference},
    {"storage.rocksdb_load", "records read that are not in the cache", &Load},
    {"storage.rocksdb_durable", "latency of a transaction that is durable at commit", &Durable},
};

}  // namespace

std::span<const Benchmark> StorageBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
