#include "zeze/storage/storage.h"

#include <gtest/gtest.h>

#include "zeze/storage/memory/memory_storage.h"

namespace zeze {
namespace {

TEST(StorageTest, NamesTheTableAndTheSizesWhenAWriteIsTooLarge) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  const StorageWrite write = {
      .table = storage->OpenTable("demo_tBag").value(), .key = "k", .value = "12345678901"};

  const Result<void> checked =
      CheckStorageWrites({&write, 1}, {.value_bytes_max = 10, .flush_bytes_max = 1000});

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(checked.error().message(),
            "cannot write to table 'demo_tBag': the value has 11 bytes, at most 10 are possible; "
            "split the record. Nothing of this flush was written.");
}

TEST(StorageTest, CountsNoValueForARemove) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  const StorageWrite write = StorageWrite::Remove(storage->OpenTable("t").value(), "k");

  EXPECT_TRUE(CheckStorageWrites({&write, 1}, {.value_bytes_max = 0, .flush_bytes_max = 33}).ok());
  EXPECT_FALSE(CheckStorageWrites({&write, 1}, {.value_bytes_max = 0, .flush_bytes_max = 32}).ok());
}

TEST(StorageTest, GivesTheValueToACallbackOnlyIfThereIsARow) {
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  StorageTable* table = storage->OpenTable("t").value();
  const StorageWrite write = {.table = table, .key = "k", .value = "v"};
  ASSERT_TRUE(storage->Flush({&write, 1}, true).ok());
  int calls = 0;
  auto found = [&](std::string_view value) {
    ++calls;
    EXPECT_EQ(value, "v");
  };

  EXPECT_TRUE(table->Find("k", found).value());
  EXPECT_FALSE(table->Find("absent", found).value());

  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace zeze
