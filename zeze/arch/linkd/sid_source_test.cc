#include "zeze/arch/linkd/sid_source.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze::arch {
namespace {

class SidSourceTest : public ::testing::Test {
 protected:
  SidSourceTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "zeze_sids_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/linkd.sids";
  }
  ~SidSourceTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(SidSourceTest, BlocksNeverRepeatWhateverHappensToTheProcess) {
  std::int64_t last = 0;
  for (int start = 0; start < 3; ++start) {
    Result<std::unique_ptr<SidSource>> source = OpenSidFile(path_);
    ASSERT_TRUE(source.ok()) << source.error().message();
    for (int i = 0; i < 3; ++i) {
      const Result<SidBlock> block = source.value()->Allocate(100);
      ASSERT_TRUE(block.ok());
      EXPECT_GT(block.value().next, last);
      last = block.value().end - 1;
    }
  }
  EXPECT_EQ(900, last);
}

TEST_F(SidSourceTest, TwoGatewaysCannotShareAFile) {
  const Result<std::unique_ptr<SidSource>> first = OpenSidFile(path_);
  ASSERT_TRUE(first.ok());
  const Result<std::unique_ptr<SidSource>> second = OpenSidFile(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ErrorCode::kInUse, second.error().code());
}

TEST_F(SidSourceTest, AFileThatSaysNothingCertainIsRefused) {
  for (const char* text : {"12", "0000000000000000000x\n", "-0000000000000000005\n",
                           "000000000000000000010\n", "00000000000000000000\n"}) {
    std::ofstream(path_) << text;
    const Result<std::unique_ptr<SidSource>> source = OpenSidFile(path_);
    ASSERT_FALSE(source.ok()) << text;
    EXPECT_EQ(ErrorCode::kCorrupt, source.error().code());
  }
}

TEST_F(SidSourceTest, CounterAsksForMoreInTime) {
  const std::unique_ptr<SidSource> source = SidsInMemory();
  SidCounter counter(*source, 4);
  EXPECT_FALSE(counter.Next().has_value());
  EXPECT_TRUE(counter.WantsRefill());
  EXPECT_FALSE(counter.WantsRefill()) << "somebody is at it";
  ASSERT_TRUE(counter.Refill().ok());

  for (std::int64_t expected = 1; expected <= 100; ++expected) {
    EXPECT_EQ(expected, counter.Next());
    if (counter.WantsRefill()) {
      ASSERT_TRUE(counter.Refill().ok());
    }
  }
}

}  // namespace
}  // namespace zeze::arch
