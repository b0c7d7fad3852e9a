#include "zeze/storage/memory/memory_storage.h"

#include <gtest/gtest.h>

#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/fence_conformance.h"

namespace zeze {
namespace {

class MemoryHome final : public StorageHome {
 public:
  Result<std::unique_ptr<Storage>> Open() override { return OpenMemoryStorage(database_); }

 private:
  const std::shared_ptr<MemoryDatabase> database_ = NewMemoryDatabase();
};

INSTANTIATE_TEST_SUITE_P(Memory, StorageConformanceTest,
                         testing::Values(DriverUnderTest{
                             "memory", [] { return std::make_unique<MemoryHome>(); }}),
                         DriverUnderTestName);

class FencedMemoryHome final : public FencedHome {
 public:
  Result<std::unique_ptr<Storage>> Open(int /*proxy_port*/, Patience /*patience*/) override {
    return OpenMemoryStorage(database_);
  }

 private:
  const std::shared_ptr<MemoryDatabase> database_ = NewMemoryDatabase();
};

INSTANTIATE_TEST_SUITE_P(Memory, FenceConformanceTest,
                         testing::Values(FencedDriver{
                             "memory", [] { return std::make_unique<FencedMemoryHome>(); }}),
                         FencedDriverName);

TEST(MemoryStorageTest, StartsEmptyEachTime) {
  const std::unique_ptr<Storage> first = OpenMemoryStorage();
  first->OpenTable("t").value();

  EXPECT_TRUE(OpenMemoryStorage()->ListTables().value().empty());
}

TEST(MemoryStorageTest, SharesADatabaseBetweenStorages) {
  const std::shared_ptr<MemoryDatabase> database = NewMemoryDatabase();
  const std::unique_ptr<Storage> one = OpenMemoryStorage(database);
  const std::unique_ptr<Storage> other = OpenMemoryStorage(database);

  const StorageWrite write = {.table = one->OpenTable("t").value(), .key = "k", .value = "v"};
  ASSERT_TRUE(one->Flush({&write, 1}, true).ok());

  std::string value;
  EXPECT_TRUE(other->OpenTable("t").value()->Find("k", value).value());
  EXPECT_EQ(value, "v");
}

TEST(MemoryStorageDeathTest, ChecksThatFlushesAreSorted) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  StorageTable* table = storage->OpenTable("t").value();
  const StorageWrite writes[] = {{.table = table, .key = "b"}, {.table = table, .key = "a"}};

  EXPECT_DEATH(storage->Flush(writes, true).ok(), "key");
}

}  // namespace
}  // namespace zeze
