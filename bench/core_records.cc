// Transactions on records in the cache, beside what a careful programmer would write by hand.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>

#include <fmt/core.h>

#include "bench/beans.h"
#include "bench/bench.h"
#include "bench/fixtures.h"
#include "bench/measure.h"

namespace zeze::bench {

namespace {

constexpr std::int64_t kRecords = 100'000;
constexpr std::int64_t kReadRecords = 10'000;  // Of those, what nobody writes.
constexpr std::size_t kTen = 10;
constexpr int kBatch = 32;  // Operations between two looks at the clock.

using Small = TableFixture<BSmall>;
using SmallPeer = MutexMap<BSmall>;

// `operation(random)` over and over.
template <typename Operation>
Work Repeat(Operation operation) {
  return [operation](int thread, const std::atomic<bool>& stop) {
    FastRandom random(static_cast<std::uint64_t>(thread) + 1);
    std::uint64_t count = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      for (int i = 0; i < kBatch; ++i) operation(random);
      count += kBatch;
    }
    return count;
  };
}

template <typename V>
Work EditOne(TableFixture<V>& ours, std::int64_t records) {
  return Repeat([&ours, records](FastRandom& random) {
    const std::int64_t key = random.Below(records);
    CheckCode(ours.engine.Call("edit", [&](Transaction& tx) {
      ours.table.Edit(tx, key)->counter += 1;
      return result_code::kSuccess;
    }));
  });
}

template <typename V>
Work EditOne(MutexMap<V>& peer, std::int64_t records) {
  return Repeat([&peer, records](FastRandom& random) {
    auto& entry = peer.Find(random.Below(records));
    const std::lock_guard lock(entry.mutex);
    entry.value.counter += 1;
  });
}

Figure RateFigure(std::string name, const Comparison& comparison, std::string peer, Goal goal) {
  return {.name = std::move(name),
          .value = comparison.medians[0].per_second,
          .unit = "tx/s",
          .peer = std::move(peer),
          .peer_value = comparison.medians[1].per_second,
          .ratio = comparison.RateRatio(0, 1),
          .goal = goal,
          .note = comparison.Note(0, 1)};
}

void SameRecord(Run& run) {
  TableFixture<BDemo> ours;
  BDemo copied;
  copied.string3 = "name";
  ours.Fill(1, copied);
  const Work edit = Repeat([&](FastRandom&) {
    CheckCode(ours.engine.Call("add", [&](Transaction& tx) {
      ours.table.GetOrAdd(tx, 0)->long2 += 1;
      return result_code::kSuccess;
    }));
  });
  const Work copy = Repeat([&](FastRandom&) {
    const BDemo fresh = copied;
    KeepValue(&fresh);
  });
  const Comparison c = Compare({{1, edit}, {1, copy}}, run.settings().seconds);
  run.Report({.name = "core.same_record",
              .value = c.medians[0].cpu_ns,
              .unit = "ns CPU",
              .peer = "copy of the bean",
              .peer_value = c.medians[1].cpu_ns,
              .ratio = c.CpuRatio(0, 1),
              .goal = Goal::ValueAtMost(250),
              .note = "Java peer: 530-700 ns; " + c.Note(0, 1)});
}

template <typename V>
void EditRandomRecords(Run& run, const char* name, const V& value, Goal goal) {
  TableFixture<V> ours;
  ours.Fill(kRecords, value);
  MutexMap<V> peer(kRecords, value);
  const Comparison c =
      Compare({{2, EditOne(ours, kRecords)}, {2, EditOne(peer, kRecords)}}, run.settings().seconds);
  run.Report(RateFigure(name, c, "mutex per record", goal));
}

void RandomEdit(Run& run) {
  EditRandomRecords(run, "core.random_edit", SmallValue(), Goal::RatioAtLeast(0.25));
}

void RandomEditNamed(Run& run) {
  EditRandomRecords(run, "core.random_edit_named", NamedValue(), Goal());
}

void Scaling(Run& run) {
  Small ours;
  ours.Fill(kRecords, SmallValue());
  const Work edit = EditOne(ours, kRecords);
  const Comparison c = Compare({{2, edit}, {1, edit}}, run.settings().seconds);
  run.Report(RateFigure("core.scaling", c, "1 thread", Goal::RatioAtLeast(1.8)));
}

void HotRecord2(Run& run) {
  Small ours;
  ours.Fill(1, SmallValue());
  SmallPeer peer(1, SmallValue());
  const Comparison c =
      Compare({{2, EditOne(ours, 1)}, {2, EditOne(peer, 1)}}, run.settings().seconds);
  run.Report(RateFigure("core.hot_record_2", c, "mutex", Goal::RatioAtLeast(0.4)));
}

void HotRecord8(Run& run) {
  Small ours;
  ours.Fill(1, SmallValue());
  SmallPeer peer(1, SmallValue());
  const Work edit = EditOne(ours, 1);
  const Comparison c =
      Compare({{8, edit}, {8, EditOne(peer, 1)}, {2, edit}}, run.settings().seconds);
  run.Report(RateFigure("core.hot_record_8", c, "mutex", Goal::RatioAtLeast(0.4)));
  run.Report({.name = "core.hot_record_8_over_2",
              .value = c.medians[0].per_second,
              .unit = "tx/s",
              .peer = "2 threads",
              .peer_value = c.medians[2].per_second,
              .ratio = c.RateRatio(0, 2),
              .goal = Goal::RatioAtLeast(0.8),
              .note = c.Note(0, 2)});
}

std::array<std::int64_t, 2> TwoKeys(FastRandom& random) {
  const std::int64_t from = random.Below(kRecords);
  const std::int64_t to = random.Below(kRecords - 1);
  return {from, to < from ? to : to + 1};
}

void Transfer(Run& run) {
  Small ours;
  ours.Fill(kRecords, SmallValue());
  SmallPeer peer(kRecords, SmallValue());
  const Work transfer = Repeat([&](FastRandom& random) {
    const auto [from, to] = TwoKeys(random);
    CheckCode(ours.engine.Call("transfer", [&](Transaction& tx) {
      ours.table.Edit(tx, from)->counter -= 1;
      ours.table.Edit(tx, to)->counter += 1;
      return result_code::kSuccess;
    }));
  });
  const Work by_hand = Repeat([&](FastRandom& random) {
    const auto [from, to] = TwoKeys(random);
    auto& a = peer.Find(from);
    auto& b = peer.Find(to);
    const std::lock_guard first((&a < &b ? a : b).mutex);
    const std::lock_guard second((&a < &b ? b : a).mutex);
    a.value.counter -= 1;
    b.value.counter += 1;
  });
  const Comparison c = Compare({{2, transfer}, {2, by_hand}}, run.settings().seconds);
  run.Report(RateFigure("core.transfer", c, "two mutexes", Goal::RatioAtLeast(0.25)));
}

std::array<std::int64_t, kTen> TenKeys(FastRandom& random) {
  std::array<std::int64_t, kTen> keys{};
  for (std::int64_t& key : keys) key = random.Below(kRecords);
  return keys;
}

// All ten mutexes in the order of the addresses, then the sum of all, the first changed if asked.
std::int64_t TenByHand(SmallPeer& peer, const std::array<std::int64_t, kTen>& keys, bool write) {
  std::array<SmallPeer::Entry*, kTen> entries{};
  for (std::size_t i = 0; i < kTen; ++i) entries[i] = &peer.Find(keys[i]);
  SmallPeer::Entry& first = *entries[0];
  std::sort(entries.begin(), entries.end());
  const auto end = std::unique(entries.begin(), entries.end());
  std::int64_t sum = 0;
  for (auto entry = entries.begin(); entry != end; ++entry) (*entry)->mutex.lock();
  for (auto entry = entries.begin(); entry != end; ++entry) sum += (*entry)->value.counter;
  if (write) first.value.counter += 1;
  for (auto entry = entries.begin(); entry != end; ++entry) (*entry)->mutex.unlock();
  return sum;
}

void Ten(Run& run, const char* name, bool write, double goal) {
  Small ours;
  ours.Fill(kRecords, SmallValue());
  SmallPeer peer(kRecords, SmallValue());
  const Work read = Repeat([&](FastRandom& random) {
    const auto keys = TenKeys(random);
    std::int64_t sum = 0;
    CheckCode(ours.engine.Call("read ten", [&](Transaction& tx) {
      ours.table.Prefetch(tx, keys);
      sum = 0;
      for (const std::int64_t key : keys) sum += ours.table.Get(tx, key)->counter;
      if (write) ours.table.Edit(tx, keys[0])->counter += 1;
      return result_code::kSuccess;
    }));
    KeepValue(sum);
  });
  const Work by_hand =
      Repeat([&](FastRandom& random) { KeepValue(TenByHand(peer, TenKeys(random), write)); });
  const Comparison c = Compare({{2, read}, {2, by_hand}}, run.settings().seconds);
  run.Report(RateFigure(name, c, "ten mutexes", Goal::RatioAtLeast(goal)));
}

void Read10(Run& run) {
  Ten(run, "core.read_10", false, 1.0);
}

void Write1Read9(Run& run) {
  Ten(run, "core.write_1_read_9", true, 0.8);
}

// Each record that a procedure reads must fit to those before it: what that costs for one read, by
// the number of records, alone and beside a thread that writes others.
void Opacity(Run& run) {
  Small ours;
  ours.Fill(kRecords, SmallValue());
  const auto read = [&ours](std::int64_t records) -> Work {
    return [&ours, records](int thread, const std::atomic<bool>& stop) {
      FastRandom random(static_cast<std::uint64_t>(thread) + 1);
      std::uint64_t count = 0;
      for (; !stop.load(std::memory_order_relaxed); count += static_cast<std::uint64_t>(records)) {
        const std::int64_t first = random.Below(kReadRecords - records);
        std::int64_t sum = 0;
        CheckCode(ours.engine.Call("read", [&](Transaction& tx) {
          sum = 0;
          for (std::int64_t i = 0; i < records; ++i) {
            sum += ours.table.Get(tx, first + i)->counter;
          }
          return result_code::kSuccess;
        }));
        KeepValue(sum);
      }
      return count;
    };
  };
  const std::array<std::int64_t, 4> sizes = {2, 16, 100, 1000};
  for (const bool beside_writer : {false, true}) {
    std::atomic<bool> end = false;
    std::thread writer;
    if (beside_writer) {
      writer = std::thread([&] {
        FastRandom random(77);
        while (!end.load(std::memory_order_relaxed)) {
          const std::int64_t key = kReadRecords + random.Below(kRecords - kReadRecords);
          CheckCode(ours.engine.Call("edit", [&](Transaction& tx) {
            ours.table.Edit(tx, key)->counter += 1;
            return result_code::kSuccess;
          }));
        }
      });
    }
    const Comparison c = Compare(
        {{1, read(sizes[0])}, {1, read(sizes[1])}, {1, read(sizes[2])}, {1, read(sizes[3])}},
        run.settings().seconds);
    end = true;
    if (writer.joinable()) writer.join();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      run.Report({.name = fmt::format("core.opacity_{}{}", sizes[i],
                                      beside_writer ? "_beside_writer" : ""),
                  .value = c.medians[i].cpu_ns,
                  .unit = "ns CPU a read",
                  .peer = "16 records",
                  .peer_value = c.medians[1].cpu_ns,
                  .ratio = c.CpuRatio(i, 1),
                  .goal = Goal(),
                  .note = c.Note(i, 1)});
    }
  }
}

constexpr Benchmark kBenchmarks[] = {
    {"core.same_record", "1 thread edits one record with a bean of 50 variables", &SameRecord},
    {"core.random_edit", "2 threads edit 1 of 100,000 small records", &RandomEdit},
    {"core.random_edit_named", "the same with a text in the bean", &RandomEditNamed},
    {"core.scaling", "the same, 2 threads over 1", &Scaling},
    {"core.hot_record_2", "2 threads edit the same record", &HotRecord2},
    {"core.hot_record_8", "8 threads edit the same record", &HotRecord8},
    {"core.transfer", "2 threads move something between two random records", &Transfer},
    {"core.read_10", "2 threads read ten random records, announced first", &Read10},
    {"core.write_1_read_9", "the same, and change one of them", &Write1Read9},
    {"core.opacity", "1 thread reads 2, 16, 100 and 1,000 records in one procedure", &Opacity},
};

}  // namespace

std::span<const Benchmark> CoreRecordBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
