#include "zeze/components/rank/view_cache.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/testing/manual_clock.h"
#include "zeze/transaction/testing/gate.h"

namespace zeze {
namespace {

using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

using Cache = ViewCache<int>;

class ViewCacheTest : public ::testing::Test {
 protected:
  int Get(const RankBoard& board = {}) {
    const auto view = cache.Get(board, [this] { return Make(); });
    return view.ok() ? *view.value() : -1;
  }
  Result<Cache::Pointer> Make() {
    if (fails) return Error(ErrorCode::kUnavailable, "no");
    return std::make_shared<const int>(++made);
  }

  testing::ManualClock clock;
  Cache cache{{.lifetime = minutes(5), .boards_max = 2, .clock = &clock}};
  std::atomic<int> made = 0;
  bool fails = false;
};

TEST_F(ViewCacheTest, AViewIsKeptForItsLifetime) {
  EXPECT_EQ(Get(), 1);
  clock.Advance(minutes(5) - nanoseconds(1));
  EXPECT_EQ(Get(), 1);
  clock.Advance(nanoseconds(1));
  EXPECT_EQ(Get(), 2);
}

TEST_F(ViewCacheTest, ErrorsAreNotKept) {
  fails = true;
  EXPECT_EQ(Get(), -1);
  fails = false;
  EXPECT_EQ(Get(), 1);
}

TEST_F(ViewCacheTest, AFailedRenewalDoesNotMakeAnOldViewYoung) {
  EXPECT_EQ(Get(), 1);
  clock.Advance(minutes(6));
  fails = true;
  EXPECT_EQ(Get(), -1);
  EXPECT_EQ(Get(), -1);
  fails = false;
  EXPECT_EQ(Get(), 2);
}

TEST_F(ViewCacheTest, TheBoardReadLongestAgoMakesRoom) {
  EXPECT_EQ(Get(RankBoard::Total(1)), 1);
  clock.Advance(seconds(1));
  EXPECT_EQ(Get(RankBoard::Total(2)), 2);
  clock.Advance(seconds(1));
  EXPECT_EQ(Get(RankBoard::Total(1)), 1);
  clock.Advance(seconds(1));
  EXPECT_EQ(Get(RankBoard::Total(3)), 3);
  EXPECT_EQ(Get(RankBoard::Total(1)), 1);
  EXPECT_EQ(Get(RankBoard::Total(2)), 4);
}

TEST_F(ViewCacheTest, ABoardIsMadeOnceForAllWhoAskMeanwhile) {
  testing::Gate gate;
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      const auto view = cache.Get({}, [&] {
        gate.Pass();
        return Make();
      });
      EXPECT_EQ(*view.value(), 1);
    });
  }
  gate.AwaitArrivals(1);
  gate.Open();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(made, 1);
}

TEST_F(ViewCacheTest, WhileABoardIsRenewedOthersGetTheOldView) {
  EXPECT_EQ(Get(), 1);
  clock.Advance(minutes(6));
  testing::Gate gate;
  std::thread renewer([&] {
    const auto view = cache.Get({}, [&] {
      gate.Pass();
      return Make();
    });
    EXPECT_EQ(*view.value(), 2);
  });
  gate.AwaitArrivals(1);
  EXPECT_EQ(Get(), 1);
  gate.Open();
  renewer.join();
  EXPECT_EQ(Get(), 2);
}

TEST_F(ViewCacheTest, WhoWaitedForAFailureGetsIt) {
  testing::Gate gate;
  fails = true;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      const auto view = cache.Get({}, [&] {
        gate.Pass();
        return Make();
      });
      EXPECT_FALSE(view.ok());
    });
  }
  gate.AwaitArrivals(1);
  gate.Open();
  for (std::thread& reader : readers) reader.join();
}

TEST_F(ViewCacheTest, ForgottenBoardsAreMadeAgain) {
  EXPECT_EQ(Get(), 1);
  cache.Forget({});
  EXPECT_EQ(Get(), 2);
}

}  // namespace
}  // namespace zeze
