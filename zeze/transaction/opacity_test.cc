// Opacity: the body of a procedure never sees a mixed state, however many records it reads, and
// whatever happens to them meanwhile. ZEZE_OPACITY_SECONDS makes it longer.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::EngineTest;

constexpr std::int64_t kPair = 1000;  // What the two records of a pair have together.
constexpr int kThreads = 8;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::int64_t Below(std::int64_t end) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(end));
  }

 private:
  std::uint64_t state_;
};

struct OpacityCase {
  std::string name;
  std::int64_t records;
  std::size_t cache_capacity = 100'000;
  std::int64_t others = 0;  // Records beside them that are read, too, so that some are evicted.
};

class OpacityTest : public EngineTest, public ::testing::WithParamInterface<OpacityCase> {
 protected:
  static std::chrono::nanoseconds Duration() {
    const char* text = std::getenv("ZEZE_OPACITY_SECONDS");  // NOLINT(concurrency-mt-unsafe)
    const double seconds = text == nullptr ? 0.5 : std::strtod(text, nullptr);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  }

  // The records of a pair are far from each other in the order of reading.
  static std::int64_t PartnerOf(std::int64_t key, std::int64_t records) {
    return (key + records / 2) % records;
  }

  // Moves something inside one pair: every pair, and with it the sum, stays as it was.
  std::int64_t Move(Random& random, std::int64_t records) {
    const std::int64_t key = random.Below(records);
    const std::int64_t amount = random.Below(10);
    return engine->Call("move", [&](Transaction& tx) -> std::int64_t {
      accounts.Edit(tx, key)->balance -= amount;  // Exists in every committed state.
      accounts.Edit(tx, PartnerOf(key, records))->balance += amount;
      return result_code::kSuccess;
    });
  }

  // Removes both records of a pair, or inserts them again: one of them alone is never there.
  void Toggle(Random& random, std::int64_t records) {
    const std::int64_t key = records + random.Below(records / 2);
    const std::int64_t partner = key + records / 2;
    engine->Call("toggle", [&](Transaction& tx) -> std::int64_t {
      if (accounts.Remove(tx, key)) {
        accounts.Remove(tx, partner);
      } else {
        accounts.Insert(tx, key, BAccount{.balance = 1, .owner = {}});
        accounts.Insert(tx, partner, BAccount{.balance = 2, .owner = {}});
      }
      return result_code::kSuccess;
    });
  }

  std::atomic<std::uint64_t> reads = 0;
  std::atomic<std::uint64_t> writes = 0;
  std::atomic<std::uint64_t> mixed = 0;
  std::atomic<std::uint64_t> seen = 0;  // Pairs that a body saw whole.
  std::atomic<std::uint64_t> commits = 0;
};

TEST_P(OpacityTest, ABodyNeverSeesAMixedState) {
  const OpacityCase& with = GetParam();
  const std::int64_t records = with.records;
  account_options.cache_capacity = with.cache_capacity;
  options.checkpoint_period = std::chrono::milliseconds(20);
  Open();
  for (std::int64_t key = 0; key < records; ++key) ASSERT_EQ(0, Put(accounts, key, kPair / 2));

  const auto end = SystemClock().Now() + Duration();
  const auto read = [&](Random& random) {
    const std::int64_t first = random.Below(records);
    const std::int64_t code = engine->Call("read", [&](Transaction& tx) -> std::int64_t {
      std::vector<std::int64_t> balances(static_cast<std::size_t>(records), -1);
      for (std::int64_t i = 0; i < records; ++i) {
        const std::int64_t key = (first + i) % records;
        const std::int64_t partner = PartnerOf(key, records);
        ++reads;
        balances[static_cast<std::size_t>(key)] = accounts.Find(tx, key)->balance;
        const std::int64_t other = balances[static_cast<std::size_t>(partner)];
        if (i >= records / 2) {
          ++seen;
          if (balances[static_cast<std::size_t>(key)] + other != kPair) ++mixed;
        }
        if (with.others > 0) accounts.Contains(tx, 10'000 + random.Below(with.others));
        if (records >= 4) {
          const std::int64_t toggled = records + key % (records / 2);
          const bool one = accounts.Contains(tx, toggled);
          const bool two = accounts.Contains(tx, toggled + records / 2);
          if (one != two) ++mixed;
        }
      }
      return result_code::kSuccess;
    });
    if (code == result_code::kSuccess) ++commits;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t) + 1);
      while (SystemClock().Now() < end) {
        if (t < kThreads / 2) {
          read(random);
        } else if (writes * static_cast<std::uint64_t>(records) > 2 * reads) {
          std::this_thread::yield();  // About two writes for each body, so that some get through.
        } else {
          ++writes;
          EXPECT_EQ(0, Move(random, records));
          if (records >= 4) Toggle(random, records);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(0U, mixed);
  EXPECT_GT(seen, 0U);
  const EngineStatistics statistics = engine->statistics();
  if (std::getenv("ZEZE_OPACITY_SECONDS") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::printf(
        "%lld records: %llu pairs seen, %llu mixed, %llu procedures, %llu runs repeated, "
        "%llu loads\n",
        static_cast<long long>(records), static_cast<unsigned long long>(seen),
        static_cast<unsigned long long>(mixed), static_cast<unsigned long long>(commits),
        static_cast<unsigned long long>(statistics.conflicts),
        static_cast<unsigned long long>(statistics.loads));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, OpacityTest,
    ::testing::Values(OpacityCase{.name = "Two", .records = 2},
                      OpacityCase{.name = "Sixteen", .records = 16},
                      OpacityCase{.name = "Twenty", .records = 20},
                      OpacityCase{.name = "Hundred", .records = 100},
                      OpacityCase{.name = "Thousand", .records = 1000},
                      OpacityCase{
                          .name = "Evicted", .records = 40, .cache_capacity = 300, .others = 2000}),
    [](const auto& with) { return with.param.name; });

// --- single steps ---

class OpacityStepTest : public EngineTest {
 protected:
  // Reads `count` records, then `then`, then the records from `count` on, up to the hundredth. True
  // if the first run was broken off before it had read all of them.
  bool BrokenOff(std::int64_t count, const std::function<void()>& then) {
    int runs = 0;
    bool through = false;
    EXPECT_EQ(0, engine->Call("read", [&](Transaction& tx) -> std::int64_t {
      ++runs;
      for (std::int64_t key = 0; key < 100; ++key) {
        if (runs == 1 && key == count) then();
        accounts.Get(tx, key);
      }
      if (runs == 1) through = true;
      return 0;
    }));
    return !through;
  }
};

// The hundredth record is new, the first one old: the procedure must not get to see both.
TEST_F(OpacityStepTest, ARecordWrittenMeanwhileIsNotShownBesideOldOnes) {
  Open();
  for (std::int64_t key = 0; key < 100; ++key) ASSERT_EQ(0, Put(accounts, key, 50));
  for (const std::int64_t count : {10, 16, 17, 40, 63, 64, 90}) {
    int runs = 0;
    EXPECT_EQ(0, engine->Call("sum", [&](Transaction& tx) -> std::int64_t {
      ++runs;
      std::int64_t first = 0;
      for (std::int64_t key = 0; key < 99; ++key) {
        if (runs == 1 && key == count) {
          EXPECT_EQ(0, Transfer(0, 99, 10));
        }
        const std::int64_t balance = accounts.Get(tx, key)->balance;
        if (key == 0) first = balance;
      }
      const std::int64_t last = accounts.Get(tx, 99)->balance;
      EXPECT_EQ(100, first + last) << "after " << count;
      return 0;
    }));
    EXPECT_EQ(2, runs);
  }
}

// Written, saved, evicted and loaded again in the middle of a procedure: loaded, but new.
TEST_F(OpacityStepTest, ARecordThatWasEvictedAndLoadedIsNotShownBesideOldOnes) {
  account_options.cache_capacity = 60;
  Open();
  for (std::int64_t key = 0; key < 40; ++key) Store(accounts, key, 50);
  Store(accounts, 99, 50);
  int runs = 0;
  EXPECT_EQ(0, engine->Call("sum", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    std::int64_t first = 0;
    for (std::int64_t key = 0; key < 30; ++key) {
      if (runs == 1 && key == 20) {
        EXPECT_EQ(0, Transfer(0, 99, 10));
        EXPECT_TRUE(engine->CheckpointNow().ok());
        Evict(99);
      }
      const BAccount* account = accounts.Get(tx, key);
      if (key == 0) first = account->balance;
    }
    EXPECT_EQ(100, first + accounts.Get(tx, 99)->balance);
    return 0;
  }));
  EXPECT_GE(runs, 2);
}

// Another server takes a record away, writes it together with another one, and that is loaded here.
TEST_F(OpacityStepTest, ARecordOfAnotherServerIsNotShownBesideOldOnes) {
  options.coherence = &coherence;
  Open();
  for (std::int64_t key = 0; key < 40; ++key) Store(accounts, key, 50);
  Store(accounts, 99, 50);
  int runs = 0;
  EXPECT_EQ(0, engine->Call("sum", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    std::int64_t first = 0;
    for (std::int64_t key = 0; key < 30; ++key) {
      if (runs == 1 && key == 20) {
        EXPECT_TRUE(engine->Reduce(GlobalKey(accounts, 0), Right::kInvalid).ok());
        Store(accounts, 0, 40);
        Store(accounts, 99, 60);
      }
      const BAccount* account = accounts.Get(tx, key);
      if (key == 0) first = account->balance;
    }
    EXPECT_EQ(100, first + accounts.Get(tx, 99)->balance);
    return 0;
  }));
  EXPECT_EQ(2, runs);
}

// What nobody has changed is not a reason to check everything again, nor to break off.
TEST_F(OpacityStepTest, LoadsAndOldWritesBreakNothingOff) {
  account_options.cache_capacity = 0;
  Open();
  for (std::int64_t key = 0; key < 50; ++key) ASSERT_EQ(0, Put(accounts, key, 1));
  EXPECT_FALSE(BrokenOff(30, [] {}));
  EXPECT_FALSE(BrokenOff(30, [&] { EXPECT_EQ(0, Put(accounts, 500, 1)); })) << "another record";
}

}  // namespace
}  // namespace zeze
