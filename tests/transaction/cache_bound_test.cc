// Writers that touch far more records than the cache holds wait for checkpoints and evictions; they
// do not make the cache grow.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze {
namespace {

using testing::BAccount;

constexpr std::size_t kCapacity = 20'000;
constexpr std::int64_t kWritesPerThread = 300'000;
constexpr int kThreads = 4;

TEST(CacheBound, WriteLoadOnRocksDbNeverExceedsTheCapacityByTenPercent) {
  const TempDirectory directory;
  auto storage = OpenRocksDbStorage({.directory = directory.File("db")});
  ASSERT_TRUE(storage.ok()) << storage.error().message();
  Table<std::int64_t, BAccount> table{TableDescriptor{.id = 1, .name = "bound"}};
  Engine engine({.storage = storage.value().get()});
  ASSERT_TRUE(engine.AddTable(table, {.cache_capacity = kCapacity}).ok());
  ASSERT_TRUE(engine.Start().ok());

  // Every writer looks after each of its writes: that is stricter than "for longer than a second".
  std::vector<std::size_t> most(kThreads);
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> writers;
    for (int thread = 0; thread < kThreads; ++thread) {
      writers.emplace_back([&, thread, &peak = most[static_cast<std::size_t>(thread)]] {
        for (std::int64_t i = 0; i < kWritesPerThread; ++i) {
          const std::int64_t key = i * kThreads + thread;
          const std::int64_t code = engine.Call("write", [&](Transaction& tx) {
            table.Put(tx, key, BAccount{.balance = key, .owner = "somebody"});
            return 0;
          });
          if (code != 0) ++failures;
          peak = std::max(peak, table.statistics().cached);
        }
      });
    }
  }

  EXPECT_EQ(0, failures);
  const std::size_t peak = *std::max_element(most.begin(), most.end());
  RecordProperty("peak_cached", static_cast<int>(peak));
  EXPECT_GE(peak, kCapacity) << "the load did not fill the cache";
  EXPECT_LE(peak, kCapacity + kCapacity / 10);
  EXPECT_TRUE(engine.Stop().ok());
}

}  // namespace
}  // namespace zeze
