#include "zeze/registry/offline_book.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/testing/recording_output.h"

namespace zeze::registry {
namespace {

using std::chrono::seconds;

constexpr SessionId kDead = 1;
constexpr SessionId kOther = 2;
constexpr SessionId kThird = 3;
constexpr SessionId kAgain = 4;

OfflineNotice Notice(std::int32_t server_id, std::int64_t serial = 1,
                     const std::string& notify_id = "Timer") {
  return {.server_id = server_id, .notify_id = notify_id, .serial = serial, .context = "c"};
}

class OfflineBookTest : public ::testing::Test {
 protected:
  void Register(SessionId session, const OfflineNotice& notice) {
    EXPECT_TRUE(book_.Register(now_, session, notice).ok());
  }
  void Close(SessionId session, const std::vector<ServiceKey>& services = {}) {
    book_.Close(now_, session, services);
  }
  void Pass(std::chrono::nanoseconds time) {
    now_ += time;
    book_.Tick(now_);
  }
  void Answer(OfflineAnswer answer) { book_.OnAnswer(now_, output_.asks.back().ask, answer); }

  std::chrono::nanoseconds now_ = seconds(1000);
  RecordingOutput output_;
  std::uint64_t random_ = 0;
  OfflineBook book_{{}, output_, [this] { return random_++; }};
};

TEST_F(OfflineBookTest, OneOtherServerIsAskedAfterTheDelay) {
  Register(kDead, Notice(7));
  Register(kOther, Notice(8));
  Register(kThird, Notice(9));
  Close(kDead);

  Pass(seconds(599));
  EXPECT_TRUE(output_.asks.empty());
  Pass(seconds(1));
  ASSERT_EQ(1U, output_.asks.size());
  EXPECT_EQ(Notice(7), output_.asks[0].notice);
  Answer(OfflineAnswer::kTaken);
  Pass(seconds(10'000));
  EXPECT_EQ(1U, output_.asks.size()) << "told once";
  EXPECT_FALSE(output_.offline.contains({7, "Timer"}));
}

TEST_F(OfflineBookTest, OnlyThoseWithTheSameNotifyIdAreAsked) {
  Register(kDead, Notice(7));
  Register(kOther, Notice(8, 1, "Rank"));
  Close(kDead);
  Pass(seconds(600));
  EXPECT_TRUE(output_.asks.empty());
}

TEST_F(OfflineBookTest, AServerThatComesBackInTimeIsNotTakenOver) {
  Register(kOther, Notice(8));
  Register(kDead, Notice(7));
  Close(kDead);
  Pass(seconds(300));
  Register(kAgain, Notice(7, 2));
  Pass(seconds(10'000));
  EXPECT_TRUE(output_.asks.empty());
}

TEST_F(OfflineBookTest, AnOrderlyEndLeavesNothing) {
  Register(kOther, Notice(8));
  Register(kDead, Notice(7));
  book_.NormalClose(kDead);
  Close(kDead);
  Pass(seconds(10'000));
  EXPECT_TRUE(output_.asks.empty());
  EXPECT_FALSE(output_.offline.contains({7, "Timer"}));
}

TEST_F(OfflineBookTest, WithoutAServerIdItIsToldAtOnce) {
  Register(kOther, Notice(8));
  Register(kDead, Notice(-1));
  Close(kDead);
  Pass(seconds(0));
  EXPECT_EQ(1U, output_.asks.size());
}

TEST_F(OfflineBookTest, WhatNobodyCanTakeWaitsForSomebodyWhoCan) {
  Register(kDead, Notice(7));
  Close(kDead);
  Pass(seconds(600));
  EXPECT_TRUE(output_.asks.empty());

  Register(kOther, Notice(8));
  Pass(seconds(0));
  EXPECT_EQ(1U, output_.asks.size());
}

TEST_F(OfflineBookTest, WhoeverDiesWhileItIsAskedIsFollowedByTheNext) {
  Register(kDead, Notice(7));
  Register(kOther, Notice(8));
  Register(kThird, Notice(9));
  Close(kDead);
  Pass(seconds(600));
  const SessionId first = output_.asks[0].to;
  Answer(OfflineAnswer::kLost);
  Close(first);

  ASSERT_EQ(2U, output_.asks.size());
  EXPECT_NE(first, output_.asks[1].to);
}

TEST_F(OfflineBookTest, ALateAnswerAboutAServerThatIsBackIsIgnored) {
  Register(kDead, Notice(7));
  Register(kOther, Notice(8));
  Close(kDead);
  Pass(seconds(600));
  Register(kAgain, Notice(7, 2));
  Answer(OfflineAnswer::kTaken);
  EXPECT_TRUE(output_.offline.contains({7, "Timer"})) << "its new notice is bound";

  Close(kAgain);
  Pass(seconds(600));
  ASSERT_EQ(2U, output_.asks.size());
  EXPECT_EQ(2, output_.asks[1].notice.serial);
}

// Agents of Zeze 1.6 do not register their notices again after a lost connection.
TEST_F(OfflineBookTest, AServerThatRegistersItsServicesAgainIsBack) {
  const ServiceKey service{"Shop", "7"};
  Register(kOther, Notice(8));
  Register(kDead, Notice(7));
  Close(kDead, {service});
  book_.OnService(kAgain, service, kNoSession);
  Pass(seconds(10'000));
  EXPECT_TRUE(output_.asks.empty());

  Close(kAgain, {service});
  Pass(seconds(600));
  EXPECT_EQ(1U, output_.asks.size()) << "and can be lost again";
}

TEST_F(OfflineBookTest, AServerThatIsBackWhileSomebodyRefusesIsNotTakenOver) {
  const ServiceKey service{"Shop", "7"};
  Register(kDead, Notice(7));
  Register(kOther, Notice(8));
  Register(kThird, Notice(9));
  Close(kDead, {service});
  Pass(seconds(600));
  book_.OnService(kAgain, service, kNoSession);
  Answer(OfflineAnswer::kRefused);
  Pass(seconds(10'000));
  EXPECT_EQ(1U, output_.asks.size());
}

TEST_F(OfflineBookTest, AnnouncedServersAreNotWatchedAndTheOthersAreTakenOver) {
  EXPECT_TRUE(book_
                  .Announce(now_, kOther,
                            {.notify_id = "Timer", .server_id = 8, .watched = {{7, 3}, {9, 1}}})
                  .ok());
  Pass(seconds(100));
  EXPECT_TRUE(book_
                  .Announce(now_, kThird,
                            {.notify_id = "Timer", .server_id = 9, .watched = {{8, 1}, {7, 3}}})
                  .ok());
  Pass(seconds(499));
  EXPECT_TRUE(output_.asks.empty());

  Pass(seconds(1));
  ASSERT_EQ(1U, output_.asks.size()) << "7 only: 8 and 9 are there";
  EXPECT_EQ(7, output_.asks[0].notice.server_id);
  EXPECT_EQ(3, output_.asks[0].notice.serial);
  Answer(OfflineAnswer::kTaken);
  Pass(seconds(10'000));
  EXPECT_EQ(1U, output_.asks.size());
}

TEST_F(OfflineBookTest, BoundsAreKept) {
  OfflineBook small({.notices_max = 1, .watched_max = 1, .text_bytes_max = 5}, output_,
                    [] { return 0; });
  EXPECT_TRUE(small.Register(now_, kDead, Notice(7)).ok());
  EXPECT_TRUE(small.Register(now_, kDead, Notice(7)).ok()) << "the same again";
  EXPECT_EQ(ErrorCode::kOverloaded, small.Register(now_, kDead, Notice(8)).error().code());
  EXPECT_EQ(ErrorCode::kInvalidArgument,
            small.Register(now_, kDead, Notice(7, 1, "Timers")).error().code());
  EXPECT_FALSE(small
                   .Announce(now_, kOther,
                             {.notify_id = "Timer", .server_id = 8, .watched = {{1, 1}, {2, 2}}})
                   .ok());
}

TEST_F(OfflineBookTest, WhoAnnouncesItselfForEverythingIsRefused) {
  OfflineBook small({.notify_ids_max = 2}, output_, [] { return 0; });
  const auto announce = [&](const std::string& notify_id) {
    return small.Announce(now_, kOther, {.notify_id = notify_id, .server_id = 8, .watched = {}});
  };
  EXPECT_TRUE(announce("Timer").ok());
  EXPECT_TRUE(announce("Queue").ok());
  EXPECT_TRUE(announce("Timer").ok()) << "the same again";
  EXPECT_EQ(ErrorCode::kOverloaded, announce("More").error().code());
  EXPECT_EQ(ErrorCode::kOverloaded,
            small.Register(now_, kOther, Notice(8, 1, "More")).error().code());
  small.Close(now_, kOther, {});
  EXPECT_TRUE(announce("More").ok());
}

// --- The peer's defects ---

using RegistryDefectOfNotices = OfflineBookTest;

TEST_F(RegistryDefectOfNotices, ConnectionsWithoutNoticesAreNotServerZero) {
  Register(kOther, Notice(8));
  Register(kDead, Notice(0));
  Close(50);  // A linkd, say: it never registered a notice.
  Close(kDead);
  Pass(seconds(600));
  ASSERT_EQ(1U, output_.asks.size());
  EXPECT_EQ(0, output_.asks[0].notice.server_id);
}

TEST_F(RegistryDefectOfNotices, ARefusedTakeOverGoesToTheNextServer) {
  Register(kDead, Notice(7));
  Register(kOther, Notice(8));
  Register(kThird, Notice(9));
  Close(kDead);
  Pass(seconds(600));
  Answer(OfflineAnswer::kRefused);
  ASSERT_EQ(2U, output_.asks.size());
  EXPECT_NE(output_.asks[0].to, output_.asks[1].to);
  Answer(OfflineAnswer::kRefused);
  EXPECT_EQ(2U, output_.asks.size());
  Pass(seconds(30));
  EXPECT_EQ(3U, output_.asks.size()) << "all have refused: again, later";
}

TEST_F(RegistryDefectOfNotices, TheDelayOfATakeOverCanBeChosen) {
  OfflineBook book({.delay = seconds(5)}, output_, [] { return 0; });
  EXPECT_TRUE(book.Register(now_, kDead, Notice(7)).ok());
  EXPECT_TRUE(book.Register(now_, kOther, Notice(8)).ok());
  book.Close(now_, kDead, {});
  book.Tick(now_ + seconds(5));
  EXPECT_EQ(1U, output_.asks.size());
}

// The close of a stale connection must not start the take-over of a server that lives on.
TEST_F(RegistryDefectOfNotices, AStaleConnectionsCloseStartsNoTakeOver) {
  Register(kOther, Notice(8));
  Register(kDead, Notice(7));
  Register(kAgain, Notice(7));
  Close(kDead);
  Pass(seconds(10'000));
  EXPECT_TRUE(output_.asks.empty());
}

// The same, of a server whose agent does not register its notices again.
TEST_F(RegistryDefectOfNotices, AStaleConnectionsCloseStartsNoTakeOverForAnOldAgent) {
  Register(kOther, Notice(8));
  Register(kDead, Notice(7));
  book_.OnService(kAgain, {"Shop", "7"}, kDead);
  Close(kDead);
  Pass(seconds(10'000));
  EXPECT_TRUE(output_.asks.empty());
}

}  // namespace
}  // namespace zeze::registry
