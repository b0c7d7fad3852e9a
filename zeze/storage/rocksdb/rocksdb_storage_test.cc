#include "zeze/storage/rocksdb/rocksdb_storage.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "zeze/base/testing/child_process.h"
#include "zeze/storage/rocksdb/internal/rocksdb_options.h"
#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

namespace fs = std::filesystem;

class RocksDbHome final : public StorageHome {
 public:
  explicit RocksDbHome(std::size_t memtable_bytes) : memtable_bytes_(memtable_bytes) {}

  Result<std::unique_ptr<Storage>> Open() override {
    return OpenRocksDbStorage(
        {.directory = directory_.File("data"), .memtable_bytes = memtable_bytes_});
  }

 private:
  const TempDirectory directory_;
  const std::size_t memtable_bytes_;
};

// The second one writes files and merges them all the time.
INSTANTIATE_TEST_SUITE_P(
    RocksDb, StorageConformanceTest,
    testing::Values(
        DriverUnderTest{"rocksdb", [] { return std::make_unique<RocksDbHome>(64 << 20); }},
        DriverUnderTest{"rocksdb_tiny_memtables", [] { return std::make_unique<RocksDbHome>(1); }}),
    DriverUnderTestName);

class RocksDbStorageTest : public testing::Test {
 protected:
  std::unique_ptr<Storage> Open() {
    Result<std::unique_ptr<Storage>> opened = OpenRocksDbStorage({.directory = data_});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }

  static Error MustFailToOpen(const RocksDbOptions& options) {
    Result<std::unique_ptr<Storage>> opened = OpenRocksDbStorage(options);
    EXPECT_FALSE(opened.ok());
    return opened.error();
  }

  static bool Contains(const Error& error, const std::string& text) {
    return error.message().find(text) != std::string::npos;
  }

  static void Put(Storage& storage, std::string_view table, std::string_view key,
                  std::string_view value) {
    const StorageWrite write = {
        .table = storage.OpenTable(table).value(), .key = key, .value = value};
    ASSERT_TRUE(storage.Flush({&write, 1}, true).ok());
  }

  static std::string Get(Storage& storage, std::string_view table, std::string_view key) {
    std::string value = "absent";
    EXPECT_TRUE(storage.OpenTable(table).value()->Find(key, value).ok());
    return value;
  }

  std::vector<fs::path> FilesEndingWith(std::string_view suffix) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(data_)) {
      if (entry.path().string().ends_with(suffix)) files.push_back(entry.path());
    }
    return files;
  }

  // Makes RocksDB put its rows into sorted files.
  void CloseAndCompact(std::unique_ptr<Storage> storage) {
    storage.reset();
    Open().reset();
    ASSERT_FALSE(FilesEndingWith(".sst").empty());
  }

  const TempDirectory directory_;
  const std::string data_ = directory_.File("data");
};

// ---- Who has it open

TEST_F(RocksDbStorageTest, NamesTheProcessThatHasTheDirectoryOpen) {
  ChildProcess holder({ZEZE_BATCH_WRITER, "hold", data_});
  holder.Listen(std::chrono::minutes(1), [](const std::string& said) { return said == "ready\n"; });
  ASSERT_EQ(holder.said(), "ready\n");

  const Error error = MustFailToOpen({.directory = data_});

  EXPECT_EQ(error.code(), ErrorCode::kInUse);
  EXPECT_TRUE(Contains(error, data_)) << error.message();
  EXPECT_TRUE(Contains(error, "process " + std::to_string(holder.id()))) << error.message();
  EXPECT_TRUE(Contains(error, "Stop that process")) << error.message();
  holder.Kill();
  EXPECT_NE(Open(), nullptr);
}

TEST_F(RocksDbStorageTest, RefusesASecondOpenInTheSameProcessUnderAnyPath) {
  const std::unique_ptr<Storage> storage = Open();
  Put(*storage, "t", "k", "v");
  fs::create_directory_symlink(data_, directory_.File("link"));

  for (const std::string& path : {data_, directory_.File("link"), data_ + "/../data"}) {
    const Error error = MustFailToOpen({.directory = path});
    EXPECT_EQ(error.code(), ErrorCode::kInUse);
    EXPECT_TRUE(Contains(error, "this process")) << error.message();
  }

  // The lock is still held, against others too.
  ChildProcess other({ZEZE_BATCH_WRITER, "hold", data_});
  other.ListenToTheEnd();
  EXPECT_EQ(other.said(), "");
  Put(*storage, "t", "k", "w");
}

TEST_F(RocksDbStorageTest, CanBeOpenedAgainAfterClose) {
  const std::unique_ptr<Storage> storage = Open();
  Put(*storage, "t", "k", "v");
  ASSERT_TRUE(storage->Close().ok());

  EXPECT_EQ(Get(*Open(), "t", "k"), "v");
}

// ---- Wrong places

TEST_F(RocksDbStorageTest, MakesTheDirectoryAndItsParents) {
  Result<std::unique_ptr<Storage>> opened =
      OpenRocksDbStorage({.directory = directory_.File("some/where/data")});

  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(opened.value()->Description(), "rocksdb " + directory_.File("some/where/data"));
}

TEST_F(RocksDbStorageTest, DoesNotMakeADatabaseUnlessItMay) {
  Error error = MustFailToOpen({.directory = data_, .create_if_missing = false});
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(Contains(error, data_)) << error.message();
  EXPECT_FALSE(fs::exists(data_));

  fs::create_directory(data_);
  error = MustFailToOpen({.directory = data_, .create_if_missing = false});
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(fs::is_empty(data_));

  Open().reset();
  EXPECT_TRUE(OpenRocksDbStorage({.directory = data_, .create_if_missing = false}).ok());
}

TEST_F(RocksDbStorageTest, RefusesPathsThatCannotBeADatabase) {
  std::ofstream(directory_.File("file")) << "text";

  Error error = MustFailToOpen({.directory = ""});
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);

  error = MustFailToOpen({.directory = directory_.File("file")});
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Contains(error, "not a directory")) << error.message();

  error = MustFailToOpen({.directory = directory_.File("file/data")});
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);

  // A directory with somebody's files in it.
  error = MustFailToOpen({.directory = directory_.path()});
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Contains(error, "'file'")) << error.message();
  EXPECT_FALSE(fs::exists(directory_.File("CURRENT")));
}

TEST_F(RocksDbStorageTest, RefusesAFlushLimitAboveWhatRocksDbTakes) {
  const Error error = MustFailToOpen({.directory = data_, .flush_bytes_max = std::size_t{4} << 30});

  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
}

// ---- Damage

TEST_F(RocksDbStorageTest, SaysThatADamagedRowIsDamaged) {
  std::unique_ptr<Storage> storage = Open();
  Put(*storage, "t", "k", std::string(1000, 'v'));
  CloseAndCompact(std::move(storage));
  for (const fs::path& path : FilesEndingWith(".sst")) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.write("garbage", 7);
  }

  storage = Open();
  std::string value;
  Result<bool> found = storage->OpenTable("t").value()->Find("k", value);
  Result<std::size_t> walked = storage->OpenTable("t").value()->Walk(
      {}, [](std::string_view, std::string_view) { return true; });

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(Contains(found.error(), "'t'")) << found.error().message();
  EXPECT_TRUE(Contains(found.error(), "backup")) << found.error().message();
  ASSERT_FALSE(walked.ok());
  EXPECT_EQ(walked.error().code(), ErrorCode::kCorrupt);
}

TEST_F(RocksDbStorageTest, RefusesToOpenWithAMissingFile) {
  std::unique_ptr<Storage> storage = Open();
  Put(*storage, "t", "k", "v");
  CloseAndCompact(std::move(storage));
  for (const fs::path& path : FilesEndingWith(".sst")) fs::remove(path);

  const Error error = MustFailToOpen({.directory = data_});

  EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.message();
  EXPECT_TRUE(Contains(error, data_)) << error.message();
}

TEST_F(RocksDbStorageTest, RefusesToOpenWithADamagedManifest) {
  Open().reset();
  for (const auto& entry : fs::directory_iterator(data_)) {
    if (entry.path().filename().string().starts_with("MANIFEST-")) {
      std::ofstream(entry.path(), std::ios::binary) << "garbage, and enough of it to be a record";
    }
  }

  const Error error = MustFailToOpen({.directory = data_});

  EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.message();
}

// ---- What is on disk

TEST_F(RocksDbStorageTest, StoresRowsBareInAColumnFamilyOfTheTablesName) {
  std::unique_ptr<Storage> storage = Open();
  Put(*storage, "demo_Game_tRole", "key", "value");
  ASSERT_TRUE(storage->SaveVersioned("id", "data", 0).ok());
  storage.reset();

  std::vector<std::string> names;
  rocksdb::Options options = MakeRocksDbOptions({.directory = data_});
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(options, data_, &names).ok());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names,
            (std::vector<std::string>{"_ZezeDataWithVersion_", "default", "demo_Game_tRole"}));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, options);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* database = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, data_, families, &handles, &database).ok());
  std::string value;
  EXPECT_TRUE(database->Get({}, handles[2], "key", &value).ok());
  EXPECT_EQ(value, "value");
  // Length and bytes of the data, then the version.
  EXPECT_TRUE(database->Get({}, handles[0], "id", &value).ok());
  EXPECT_EQ(value,
            "\x04"
            "data\x01");
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    EXPECT_TRUE(database->DestroyColumnFamilyHandle(handle).ok());
  }
  delete database;
}

TEST_F(RocksDbStorageTest, RefusesTheNameThatRocksDbKeepsForItself) {
  EXPECT_EQ(Open()->OpenTable("default").error().code(), ErrorCode::kInvalidArgument);
}

// As a process leaves it that was killed while it renamed "before" to "after".
TEST_F(RocksDbStorageTest, FinishesAnInterruptedRenameWhenItOpens) {
  std::unique_ptr<Storage> storage = Open();
  Put(*storage, "before", "1", "one");
  Put(*storage, "before", "2", "two");
  Put(*storage, "after", "1", "a part of the copy");
  storage.reset();
  {
    rocksdb::Options options = MakeRocksDbOptions({.directory = data_});
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {"default", options}, {"before", options}, {"after", options}};
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* database = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, data_, families, &handles, &database).ok());
    ASSERT_TRUE(database->Put({}, "rename after", "before").ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      EXPECT_TRUE(database->DestroyColumnFamilyHandle(handle).ok());
    }
    delete database;
  }

  for (int time = 0; time < 2; ++time) {
    storage = Open();
    EXPECT_EQ(storage->ListTables().value(), std::vector<std::string>{"after"});
    EXPECT_EQ(Get(*storage, "after", "1"), "one");
    EXPECT_EQ(Get(*storage, "after", "2"), "two");
    storage.reset();
  }
}

}  // namespace
}  // namespace zeze
