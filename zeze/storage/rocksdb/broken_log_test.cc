// What happens when the disk fails where room was promised: at the log itself.

#include <atomic>
#include <string>

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include "zeze/storage/rocksdb/internal/rocksdb_storage_impl.h"
#include "zeze/storage/rocksdb/testing/batches.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

enum class Breakage { kNone, kAppend, kAppendNoRoom, kSync };

// Files of the operating system, except that logs break on demand.
class BreakingFiles final : public rocksdb::FileSystemWrapper {
 public:
  BreakingFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "BreakingFiles"; }

  void Break(Breakage breakage) { breakage_ = breakage; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewWritableFile(path, options, result, debug);
    if (status.ok() && path.ends_with(".log")) {
      *result = std::make_unique<File>(*this, std::move(*result));
    }
    return status;
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(BreakingFiles& files, std::unique_ptr<rocksdb::FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), files_(files) {}

    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (files_.breakage_ == Breakage::kAppend) return rocksdb::IOStatus::IOError("broken append");
      if (files_.breakage_ == Breakage::kAppendNoRoom) return rocksdb::IOStatus::NoSpace("full");
      return target()->Append(data, options, debug);
    }

    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo& /*verification*/,
                             rocksdb::IODebugContext* debug) override {
      return Append(data, options, debug);
    }

    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      if (files_.breakage_ == Breakage::kSync) return rocksdb::IOStatus::IOError("broken sync");
      return target()->Sync(options, debug);
    }

    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    BreakingFiles& files_;
  };

  std::atomic<Breakage> breakage_ = Breakage::kNone;
};

class BrokenLogTest : public testing::Test {
 protected:
  BrokenLogTest() {
    storage_ = RocksDbStorage::Open({.directory = directory_.File("data")}, files_).value();
    EXPECT_TRUE(TestBatches(*storage_).Flush(1, 100, true).ok());
  }

  // Batch 2 and then batch 3 while the log is broken.
  std::pair<Error, Error> FlushTwice(Breakage breakage) {
    TestBatches batches(*storage_);
    files_->Break(breakage);
    Result<void> first = batches.Flush(2, 100, true);
    files_->Break(Breakage::kNone);
    Result<void> second = batches.Flush(3, 100, true);
    EXPECT_FALSE(first.ok());
    EXPECT_FALSE(second.ok());
    EXPECT_EQ(batches.Read(), (TestBatches::State{.first = 1, .last = 1}));
    return {first.error(), second.error()};
  }

  TestBatches::State AfterRestart() {
    storage_.reset();
    storage_ = OpenRocksDbStorage({.directory = directory_.File("data")}).value();
    return TestBatches(*storage_).Read();
  }

  const TempDirectory directory_;
  const std::shared_ptr<BreakingFiles> files_ = std::make_shared<BreakingFiles>();
  std::unique_ptr<Storage> storage_;
};

TEST_F(BrokenLogTest, SaysUnknownWhenTheSyncFailsAndWritesNothingMore) {
  const auto [first, second] = FlushTwice(Breakage::kSync);

  EXPECT_EQ(first.code(), ErrorCode::kUnknownOutcome) << first.message();
  EXPECT_EQ(second.code(), ErrorCode::kUnknownOutcome) << second.message();
  EXPECT_NE(first.message().find("start the server again"), std::string::npos) << first.message();
  const TestBatches::State state = AfterRestart();
  EXPECT_TRUE(state.whole);
  EXPECT_EQ(state.first, state.last);
  EXPECT_TRUE(state.last == 1 || state.last == 2) << state.last;
}

TEST_F(BrokenLogTest, SaysUnknownWhenTheAppendFails) {
  const auto [first, second] = FlushTwice(Breakage::kAppend);

  EXPECT_EQ(first.code(), ErrorCode::kUnknownOutcome) << first.message();
  EXPECT_EQ(second.code(), ErrorCode::kUnknownOutcome) << second.message();
  EXPECT_TRUE(AfterRestart().whole);
}

TEST_F(BrokenLogTest, SaysNotWrittenWhenThePromisedRoomIsNotThere) {
  const auto [first, second] = FlushTwice(Breakage::kAppendNoRoom);

  EXPECT_EQ(first.code(), ErrorCode::kUnavailable) << first.message();
  EXPECT_EQ(second.code(), ErrorCode::kUnavailable) << second.message();
  EXPECT_NE(first.message().find("started again"), std::string::npos) << first.message();
  EXPECT_EQ(AfterRestart(), (TestBatches::State{.first = 1, .last = 1}));
}

}  // namespace
}  // namespace zeze
