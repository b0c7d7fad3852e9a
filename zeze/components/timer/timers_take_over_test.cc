// Servers that are gone.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/components/timer/timer_ring.h"
#include "zeze/components/timer/timers.h"
#include "zeze/components/timer/timers_for_test.h"

namespace zeze {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

TEST(ChooseTakeOver, ComparesSerialAndVersion) {
  const TimerRoot root{.HeadNodeId = 5, .TailNodeId = 6, .LoadSerialNo = 3, .Version = 2};
  EXPECT_EQ(ChooseTakeOver(nullptr, 3, 2), TakeOverChoice::kNothing);
  EXPECT_EQ(ChooseTakeOver(&root, 3, 2), TakeOverChoice::kTake);
  EXPECT_EQ(ChooseTakeOver(&root, 3, 9), TakeOverChoice::kTake);
  EXPECT_EQ(ChooseTakeOver(&root, 2, 2), TakeOverChoice::kNothing);  // It has come back.
  EXPECT_EQ(ChooseTakeOver(&root, 3, 1), TakeOverChoice::kNewer);
  const TimerRoot empty{.LoadSerialNo = 3};
  EXPECT_EQ(ChooseTakeOver(&empty, 3, 2), TakeOverChoice::kNothing);
}

class TakeOverTest : public TimersTest {
 protected:
  // Server 1 leaves some, and server 2 begins, with some of its own.
  void Leave(int count, int own = 60, TimersOptions options = {}) {
    Open();
    for (int i = 0; i < count; ++i) {
      left.push_back(server->Schedule(TimerSpec::After("count", 100s)));
    }
    serial = server->Serial();
    server->Stop();
    Open({.server_id = 2, .timers = options});
    for (int i = 0; i < own; ++i) server->Schedule(TimerSpec::After("count", 100s));
  }

  std::vector<std::string> left;
  std::int64_t serial = 0;
};

TEST_F(TakeOverTest, Seed002AnotherServerRunsThem) {
  Leave(120);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  EXPECT_EQ(server->timers.statistics().armed, 180U);
  EXPECT_EQ(server->Find(left[7])->server_id, 2);
  clock.Advance(101s);
  server->told.Await(180);
  for (const std::string& id : left) EXPECT_EQ(server->Effects(id), 1);
}

TEST_F(TakeOverTest, AnEmptyServerTakesOver) {
  Leave(120, 0);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  EXPECT_EQ(server->timers.statistics().armed, 120U);
  server->Stop();
  Open({.server_id = 2});  // The ring is whole.
  EXPECT_EQ(server->timers.statistics().armed, 120U);
}

TEST_F(TakeOverTest, OnlyOnce) {
  Leave(10, 0);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  EXPECT_EQ(server->timers.statistics().taken_over, 1U);
  EXPECT_EQ(server->timers.statistics().armed, 10U);
}

TEST_F(TakeOverTest, NotFromAServerThatHasComeBack) {
  Leave(10, 0);
  server->Stop();
  Open({.server_id = 1});
  server->Stop();
  Open({.server_id = 2});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  EXPECT_EQ(server->timers.statistics().armed, 0U);
}

TEST_F(TakeOverTest, ASavedTakeOverSurvivesACrashBeforeItIsLoaded) {
  Leave(120);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  server->Crash();
  Open({.server_id = 2});
  EXPECT_GE(server->timers.statistics().armed, 120U);
  server->Stop();
  Open({.server_id = 1});
  EXPECT_EQ(server->timers.statistics().armed, 0U);
}

// The peer says that it has taken them, and nobody else is asked.
TEST_F(TakeOverTest, PeerDefect17AnOlderProgramRefuses) {
  Open({.timers = {.version = 7}});
  const std::string id = server->Schedule(TimerSpec::After("count", 100s));
  serial = server->Serial();
  server->Stop();
  Open({.server_id = 2, .timers = {.version = 6}});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kRefused);
  EXPECT_EQ(server->Find(id)->server_id, 1);
}

TEST_F(TakeOverTest, AServerThatLivesFindsOutAndBeginsAnew) {
  Open();
  const std::string before = server->Schedule(TimerSpec::After("count", 10s));
  const std::int64_t old = server->Serial();
  // What another server does when it takes over.
  server->Call([&](Transaction& tx) {
    const auto root = server->timers.tNodeRoot.Edit(tx, 1);
    server->timers.tNodeRoot.GetOrAdd(tx, 2)->HeadNodeId = root->HeadNodeId;
    server->timers.tNodeRoot.GetOrAdd(tx, 2)->TailNodeId = root->TailNodeId;
    root->HeadNodeId = 0;
    root->TailNodeId = 0;
    root->LoadSerialNo += 1;
    server->timers.tIndexs.Edit(tx, before)->ServerId = 2;
  });
  std::int64_t code = 0;
  do {
    code = server->application->Call("schedule", [&](Transaction& tx) -> std::int64_t {
      static_cast<void>(server->timers.Schedule(tx, TimerSpec::After("count", 10s)).ok());
      return result_code::kSuccess;
    });
    EXPECT_TRUE(code == 0 || code == result_code::kBusy) << code;
  } while (code != 0);
  EXPECT_EQ(server->Serial(), old + 2);
  clock.Advance(10010ms);
  server->told.Await(1);
  EXPECT_EQ(server->Effects(before), 0);  // That one is server 2's.
  EXPECT_NE(server->timers.tNodeRoot.ReadCopy(1).value()->HeadNodeId,
            server->timers.tNodeRoot.ReadCopy(2).value()->HeadNodeId);
}

}  // namespace
}  // namespace zeze
