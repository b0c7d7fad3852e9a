#include "zeze/storage/fence_table.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace zeze {
namespace {

class FenceTableTest : public testing::Test {
 protected:
  std::int64_t Start(std::int32_t server) {
    return fences_.Start({.server_id = server, .holder = "somebody"}).value().epoch;
  }
  bool Flush(std::int64_t epoch, std::int64_t seq) {
    return fences_.Flush(7, FenceLane::kFlush, epoch, seq);
  }
  FlushFate Judge(std::int64_t epoch, std::int64_t seq) {
    return JudgeFlush(fences_.ReadLane(7, FenceLane::kFlush), epoch, seq);
  }

  FenceTable fences_;
};

TEST_F(FenceTableTest, CountsFlushesWithoutGapAndWithoutRepetition) {
  const std::int64_t epoch = Start(7);

  EXPECT_TRUE(Flush(epoch, 1));
  EXPECT_FALSE(Flush(epoch, 1));
  EXPECT_FALSE(Flush(epoch, 3));
  EXPECT_TRUE(Flush(epoch, 2));
  EXPECT_FALSE(Flush(epoch, 1));
}

TEST_F(FenceTableTest, CountsLanesApart) {
  const std::int64_t epoch = Start(7);
  EXPECT_TRUE(Flush(epoch, 1));

  EXPECT_TRUE(fences_.Flush(7, FenceLane::kRenew, epoch, 1));
  EXPECT_TRUE(Flush(epoch, 2));
}

TEST_F(FenceTableTest, JudgesFlushesInDoubt) {
  const std::int64_t epoch = Start(7);
  EXPECT_EQ(Judge(epoch, 1), FlushFate::kNotWritten);
  EXPECT_TRUE(Flush(epoch, 1));
  EXPECT_EQ(Judge(epoch, 1), FlushFate::kWritten);
  EXPECT_EQ(Judge(epoch, 2), FlushFate::kNotWritten);
  EXPECT_EQ(Judge(epoch, 3), FlushFate::kHistoryLost);

  EXPECT_TRUE(fences_.Finish(7, epoch));
  EXPECT_EQ(Judge(epoch, 1), FlushFate::kWritten);
  EXPECT_EQ(Judge(epoch, 2), FlushFate::kFenced);

  Start(7);
  EXPECT_EQ(Judge(epoch, 1), FlushFate::kFenced);
}

TEST_F(FenceTableTest, TheOlderOfTwoProcessesIsToldWhoHasItsServerId) {
  const std::int64_t epoch =
      fences_.Start({.server_id = 7, .holder = "shop on a, pid 1"}).value().epoch;
  ASSERT_TRUE(fences_.Start({.server_id = 7, .holder = "shop on b, pid 2"}).ok());

  const Error error = FencedError(7, epoch, fences_.ReadLane(7, FenceLane::kFlush));
  EXPECT_NE(error.message().find("the same server id: shop on b, pid 2."), std::string::npos)
      << error.message();
}

TEST_F(FenceTableTest, ABackupPutInPlaceIsLostHistory) {
  const std::int64_t epoch = Start(7);
  ASSERT_TRUE(Flush(epoch, 1));
  const FenceTable backup = fences_;
  ASSERT_TRUE(Flush(epoch, 2));

  fences_ = backup;

  EXPECT_EQ(Judge(epoch, 3), FlushFate::kHistoryLost);
  EXPECT_FALSE(Flush(epoch, 3));
  EXPECT_EQ(Judge(epoch + 1, 1), FlushFate::kHistoryLost);
}

TEST_F(FenceTableTest, EvictsOnceAndNeverASuccessor) {
  const std::int64_t epoch = Start(7);
  const std::int64_t term = fences_.RaiseTerm(0);

  EXPECT_EQ(fences_.Evict(7, epoch, 0, term, {}), EvictOutcome::kEvicted);
  EXPECT_EQ(fences_.Evict(7, epoch, 0, term, {}), EvictOutcome::kEvicted);
  EXPECT_EQ(fences_.Read(7).epoch, epoch + 1);
  const std::int64_t successor = Start(7);
  EXPECT_EQ(fences_.Evict(7, epoch, 0, term, {}), EvictOutcome::kEvicted);

  EXPECT_FALSE(Flush(epoch, 1));
  EXPECT_TRUE(Flush(successor, 1));
  EXPECT_TRUE(fences_.Read(7).live);
}

TEST_F(FenceTableTest, EvictsAServerThatIsNotKnownYet) {
  const std::int64_t term = fences_.RaiseTerm(0);

  EXPECT_EQ(fences_.Evict(7, 5, 0, term, {}), EvictOutcome::kEvicted);

  EXPECT_EQ(Start(7), 7);
}

TEST_F(FenceTableTest, RefusesAnEvictionUnderAnOldTerm) {
  const std::int64_t epoch = Start(7);
  const std::int64_t old_term = fences_.RaiseTerm(0);
  fences_.RaiseTerm(0);

  EXPECT_EQ(fences_.Evict(7, epoch, 0, old_term, {}), EvictOutcome::kTermPassed);
  EXPECT_EQ(fences_.Evict(7, epoch, 1, old_term, {}), EvictOutcome::kTermPassed);
  EXPECT_TRUE(Flush(epoch, 1));
}

TEST_F(FenceTableTest, ListsWhoIsLive) {
  Start(9);
  Start(7);
  const std::int64_t finished = Start(8);
  ASSERT_TRUE(fences_.Finish(8, finished));

  EXPECT_EQ(fences_.ListLive(), (std::vector<LiveServer>{{7, 1, "somebody"}, {9, 1, "somebody"}}));
}

TEST_F(FenceTableTest, KeepsTheLeaseOfEachEpoch) {
  using std::chrono::milliseconds;
  const std::int64_t term = fences_.RaiseTerm(0);
  ASSERT_TRUE(fences_.Start({.server_id = 7, .holder = "a", .lease = milliseconds(9000)}).ok());
  ASSERT_TRUE(fences_.Start({.server_id = 7, .holder = "b", .lease = milliseconds(1000)}).ok());
  fences_.Evict(7, 2, 0, term, {});
  ASSERT_TRUE(fences_.Start({.server_id = 7, .holder = "c"}).ok());

  EXPECT_EQ(fences_.ListLive(), (std::vector<LiveServer>{{7, 1, "", true, milliseconds(9000)},
                                                         {7, 2, "", true, milliseconds(1000)},
                                                         {7, 4, "c", false, milliseconds(0)}}));
}

}  // namespace
}  // namespace zeze
