// A walk over far more records than the cache holds gives every one of them, with unsaved edits,
// and needs memory for pages, not for the table.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/bean/codec.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze {
namespace {

using testing::BAccount;

constexpr std::int64_t kBatch = 100'000;
constexpr std::int64_t kEdited = 100'000;
constexpr std::int64_t kRecords = 5'000'000;

std::size_t PeakResidentKilobytes() {
  std::ifstream in("/proc/self/status");
  std::string word;
  while (in >> word) {
    if (word != "VmHWM:") continue;
    std::size_t kilobytes = 0;
    in >> kilobytes;
    return kilobytes;
  }
  return 0;
}

void Fill(Storage& storage) {
  StorageTable* table = storage.OpenTable("walk").value();
  for (std::int64_t begin = 0; begin < kRecords; begin += kBatch) {
    std::vector<std::string> keys;
    std::vector<std::string> values;
    for (std::int64_t key = begin; key < begin + kBatch; ++key) {
      keys.push_back(EncodeKey(key));
      values.push_back(EncodeBean(BAccount{.balance = key, .owner = "somebody with a name"}));
    }
    std::vector<StorageWrite> writes;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      writes.push_back({.table = table, .key = keys[i], .value = values[i]});
    }
    ASSERT_TRUE(storage.Flush(writes, false).ok());
  }
}

TEST(WalkLong, FiveMillionRecordsWithASmallCacheStayUnder400Megabytes) {
  const TempDirectory directory;
  auto storage = OpenRocksDbStorage({.directory = directory.File("db")});
  ASSERT_TRUE(storage.ok()) << storage.error().message();
  Fill(*storage.value());
  Table<std::int64_t, BAccount> table{TableDescriptor{.id = 1, .name = "walk"}};
  Engine engine({.storage = storage.value().get()});
  ASSERT_TRUE(engine.AddTable(table, {.cache_capacity = 100'000}).ok());
  ASSERT_TRUE(engine.Start().ok());
  for (std::int64_t i = 0; i < kEdited; ++i) {
    ASSERT_EQ(0, engine.Call("edit", [&](Transaction& tx) {
      table.Edit(tx, i * (kRecords / kEdited))->balance += 1;
      return 0;
    }));
  }

  std::int64_t sum = 0;
  std::int64_t last = -1;
  Result<std::size_t> count = table.Walk([&](std::int64_t key, const BAccount& account) {
    EXPECT_EQ(last + 1, key);
    last = key;
    sum += account.balance;
    return true;
  });

  ASSERT_TRUE(count.ok());
  EXPECT_EQ(static_cast<std::size_t>(kRecords), count.value());
  EXPECT_EQ(kRecords / 2 * (kRecords - 1) + kEdited, sum);
  EXPECT_LE(table.statistics().cached, 110'000U);
  RecordProperty("peak_resident_kilobytes", static_cast<int>(PeakResidentKilobytes()));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(PeakResidentKilobytes(), 400U * 1000U);
#endif
  EXPECT_TRUE(engine.Stop().ok());
}

}  // namespace
}  // namespace zeze
