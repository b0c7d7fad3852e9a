// Servers that are gone.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/AutoKey.h"
#include "zeze/base/result_code.h"
#include "zeze/components/timer/testing/timers_fixture.h"
#include "zeze/components/timer/timer_ring.h"
#include "zeze/components/timer/timers.h"

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
  const std::size_t armed = server->timers.statistics().armed;
  server->Stop();
  Open({.server_id = 1});  // They come back to it.
  EXPECT_EQ(server->timers.statistics().armed, 120U);
  server->Stop();
  Open({.server_id = 2});
  EXPECT_EQ(server->timers.statistics().armed, armed - 120);
}

// A server of another kind, in the same cluster.
TEST_F(TakeOverTest, TakesOverOnlyTimersThatItHasHandlersFor) {
  Open({.handlers = {"count", "other"}});
  std::vector<std::string> others;
  for (int i = 0; i < 120; ++i) {
    left.push_back(server->Schedule(TimerSpec::After("count", 100s)));
    others.push_back(server->Schedule(TimerSpec::After("other", 100s)));
  }
  serial = server->Serial();
  server->Stop();

  Open({.server_id = 4, .handlers = {"nothing"}});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kRefused);
  EXPECT_EQ(server->Find(left[0])->server_id, 1);
  EXPECT_EQ(server->Serial(), serial);  // Nothing has changed.
  server->Stop();

  Open({.server_id = 2});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kRefused);  // Of the rest.
  EXPECT_EQ(server->timers.statistics().armed, 120U);
  EXPECT_EQ(server->Find(left[7])->server_id, 2);
  EXPECT_EQ(server->Find(others[7])->server_id, 1);
  server->Crash();  // What it said was saved.
  Open({.server_id = 2});
  EXPECT_EQ(server->timers.statistics().armed, 120U);
  clock.Advance(101s);
  server->told.Await(120);
  EXPECT_EQ(server->Effects(others[7]), 0);
  server->Stop();

  // Asked with the same serial: the service manager knows no other.
  Open({.server_id = 3, .handlers = {"other", "more"}});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  server->told.Await(120);
  for (const std::string& id : left) EXPECT_EQ(server->Effects(id), 1);
  for (const std::string& id : others) EXPECT_EQ(server->Effects(id), 1);
  EXPECT_EQ(server->timers.tNodeRoot.ReadCopy(1).value()->HeadNodeId, 0);
}

TEST_F(TakeOverTest, ATakeOverOfSomeEndsWhenTheOwnerIsBack) {
  Open({.handlers = {"count", "other"}});
  left.push_back(server->Schedule(TimerSpec::After("count", 100s)));
  left.push_back(server->Schedule(TimerSpec::After("other", 100s)));
  serial = server->Serial();
  server->Stop();
  Open({.server_id = 2});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kRefused);
  server->Stop();
  Open({.handlers = {"count", "other"}});
  EXPECT_EQ(server->timers.statistics().armed, 2U);
  server->Stop();
  Open({.server_id = 3, .handlers = {"count", "other"}});
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);  // Nothing.
  EXPECT_EQ(server->timers.statistics().armed, 0U);
}

TEST_F(TakeOverTest, TimersGoBackToTheirOwner) {
  Leave(120);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  const std::int64_t second = server->timers.tNodeRoot.ReadCopy(2).value()->LoadSerialNo;
  server->Stop();
  // That one dies, too.
  Open({.server_id = 3});
  EXPECT_EQ(server->timers.TakeOver(2, second, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  EXPECT_EQ(server->timers.statistics().armed, 180U);
  server->Stop();

  Open();
  EXPECT_EQ(server->timers.statistics().armed, 120U);
  for (const std::string& id : left) EXPECT_EQ(server->Find(id)->server_id, 1);
  server->Stop();
  Open({.server_id = 3});
  EXPECT_EQ(server->timers.statistics().armed, 60U);
  server->Stop();
  Open({.server_id = 2});
  EXPECT_EQ(server->timers.statistics().armed, 60U);
  clock.Advance(101s);
  server->told.Await(60);
  server->Stop();
  Open();
  server->told.Await(120);
  for (const std::string& id : left) EXPECT_EQ(server->Effects(id), 1);
}

// It was given another program meanwhile.
TEST_F(TakeOverTest, AnOwnerThatCannotRunThemAnyMoreLeavesThemWhereTheyAre) {
  Leave(10, 0);
  EXPECT_EQ(server->timers.TakeOver(1, serial, 20s), registry::TakeOver::kTaken);
  ASSERT_TRUE(server->timers.AwaitLoaded(20s));
  server->Stop();
  Open({.server_id = 1, .handlers = {"other"}});
  EXPECT_EQ(server->timers.statistics().armed, 0U);
  EXPECT_EQ(server->Find(left[0])->server_id, 2);
  server->Stop();
  Open();
  EXPECT_EQ(server->timers.statistics().armed, 10U);
}

TEST_F(TakeOverTest, NotFromItself) {
  Open();
  server->Schedule(TimerSpec::After("count", 100s));
  EXPECT_EQ(server->timers.TakeOver(1, server->Serial(), 20s), registry::TakeOver::kTaken);
  server->Stop();
  Open();
  EXPECT_EQ(server->timers.statistics().armed, 1U);
  EXPECT_EQ(server->timers.statistics().taken_over, 0U);
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

// The database as two servers see it, of which the first one was paused while the second one took
// over.
class RingTest : public TimersTest {
 protected:
  static constexpr std::int32_t kOne = 11;
  static constexpr std::int32_t kTwo = 12;

  RingTest() { Open(); }

  std::unique_ptr<TimerRing> MakeRing(std::int32_t server_id) {
    return std::make_unique<TimerRing>(
        server->timers, server->keys.GetOrAdd("nodes"),
        TimerRing::Options{.server_id = server_id,
                           .timers_per_node = 1,
                           .empty_nodes_max = 0,
                           .on_empty = [this](std::int64_t node_id) { empty.push_back(node_id); }});
  }
  std::int64_t Join(TimerRing& ring) {
    std::int64_t serial = 0;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { ring.Join(tx, serial); }));
    ring.Joined(serial);
    return serial;
  }
  std::int64_t Add(TimerRing& ring, const std::string& id) {
    std::int64_t node_id = 0;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) { node_id = ring.Add(tx, id, {}); }));
    return node_id;
  }
  std::int64_t Unlink(TimerRing& ring, std::int64_t node_id) {
    return server->Call([&](Transaction& tx) { ring.Unlink(tx, node_id); });
  }
  // From the head to the tail; fails the test if one is missing.
  std::vector<std::int64_t> Nodes(std::int32_t server_id) {
    std::vector<std::int64_t> nodes;
    EXPECT_EQ(0, server->Call([&](Transaction& tx) {
      nodes.clear();
      const TimerRoot* root = server->timers.tNodeRoot.Get(tx, server_id);
      std::int64_t at = root == nullptr ? 0 : root->HeadNodeId;
      while (at != 0) {
        const auto* node = server->timers.tNodes.Get(tx, at);
        ASSERT_NE(node, nullptr) << "node " << at << " is missing";
        nodes.push_back(at);
        at = at == root->TailNodeId ? 0 : node->NextNodeId;
      }
    }));
    return nodes;
  }

  std::vector<std::int64_t> empty;
};

TEST_F(RingTest, AnEmptyNodeThatAnotherServerHasNowStaysInItsRing) {
  const auto one = MakeRing(kOne);
  const std::int64_t serial = Join(*one);
  const std::int64_t tail = Add(*one, "a");
  const std::int64_t head = Add(*one, "b");
  server->Call([&](Transaction& tx) { one->Remove(tx, head, "b"); });
  EXPECT_EQ(empty, std::vector{head});  // To be unlinked; but before that it is paused.

  const auto two = MakeRing(kTwo);
  Join(*two);
  EXPECT_EQ(0, server->Call([&](Transaction& tx) {
    TimerRing::Part part;
    EXPECT_EQ(two->TakeOver(tx, kOne, serial, part), TakeOverChoice::kTake);
  }));

  EXPECT_TRUE(Nodes(kOne).empty());
  EXPECT_EQ(Unlink(*one, head), result_code::kBusy);
  Join(*one);
  const std::int64_t own = Add(*one, "c");
  EXPECT_EQ(Unlink(*one, head), 0);
  EXPECT_EQ(Nodes(kTwo), (std::vector{head, tail}));

  // Nor does it matter that it was this server that took the last timer out.
  empty.clear();
  server->Call([&](Transaction& tx) { one->Remove(tx, tail, "a"); });
  for (const std::int64_t node_id : empty) EXPECT_EQ(Unlink(*one, node_id), 0);
  EXPECT_EQ(Unlink(*one, tail), 0);
  EXPECT_EQ(Nodes(kTwo), (std::vector{head, tail}));
  EXPECT_EQ(Nodes(kOne), std::vector{own});
}

// It was paused while it loaded its timers: the rest belongs to another now.
TEST_F(TakeOverTest, AServerThatWasTakenOverWhileItLoadedLeavesTheRestAlone) {
  Open();
  const std::string id = server->Schedule(TimerSpec::After("count", 100s));
  std::int64_t serials = 0;
  // A node that cannot be loaded for now: its timer needs a serial, and there are none to be had.
  const Zeze::Builtin::AutoKey::BSeedKey key{.ServerId = 1,
                                             .KeyName = "Zeze.Component.Timer.SerialId"};
  server->Call([&](Transaction& tx) {
    server->timers.tIndexs.Edit(tx, id)->SerialId = 0;
    serials = std::exchange(server->keys.tAutoKeys.Edit(tx, key)->NextId, -1);
  });
  server->Stop();
  server = std::make_unique<TimerServer>(directory.path(), clock);
  ASSERT_TRUE(server->application->Start().ok());

  server->Call([&](Transaction& tx) {
    const auto root = server->timers.tNodeRoot.Edit(tx, 1);
    server->timers.tNodeRoot.GetOrAdd(tx, 2)->HeadNodeId = root->HeadNodeId;
    server->timers.tNodeRoot.GetOrAdd(tx, 2)->TailNodeId = root->TailNodeId;
    root->HeadNodeId = 0;
    root->TailNodeId = 0;
    root->LoadSerialNo += 1;
    server->timers.tIndexs.Edit(tx, id)->ServerId = 2;
    server->keys.tAutoKeys.Edit(tx, key)->NextId = serials;
  });
  // A try that fails only now waits for a moment that is yet to come.
  while (!server->timers.AwaitLoaded(0s)) {
    clock.Advance(10ms);
    std::this_thread::yield();
  }
  EXPECT_EQ(server->Find(id)->server_id, 2);
  EXPECT_EQ(server->timers.statistics().armed, 0U);
}

}  // namespace
}  // namespace zeze
