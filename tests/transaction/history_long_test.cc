// The same as history_test.cc, a million times.

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "tests/transaction/expect_serializable.h"
#include "tests/transaction/history_workload.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

TEST(HistoryLongTest, AMillionTransactionsOnRocksDb) {
  const TempDirectory directory;
  Result<std::unique_ptr<Storage>> rocks = OpenRocksDbStorage({.directory = directory.File("db")});
  ASSERT_TRUE(rocks.ok()) << rocks.error().message();
  ExpectSerializable({.transaction_count = 1'000'000,
                      .seed = NewSeed(),
                      .storage = rocks.value().get(),
                      .cache_capacity = 8'000});
}

TEST(HistoryLongTest, AMillionTransactionsInMemory) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  ExpectSerializable({.transaction_count = 1'000'000, .seed = NewSeed(), .storage = storage.get()});
}

}  // namespace
}  // namespace zeze
