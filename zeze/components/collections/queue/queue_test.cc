// Queues beside std::deque, with aborts, conflicts, restarts and take-overs.

#include "zeze/components/collections/queue/queue.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Collections/LinkedMap.h"
#include "Zeze/Builtin/Game/Rank.h"
#include "zeze/app/application.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/components/collections/queue/testing/stored_home.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"

namespace zeze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StoredHome;
using Root = AnyQueue::Root;
using Node = AnyQueue::Node;
using NodeKey = AnyQueue::NodeKey;
using BValueLong = Zeze::Builtin::Game::Rank::BValueLong;

BValueLong Long(std::int64_t value) {
  return {.Value = value};
}

class QueueTest : public ::testing::TestWithParam<StoredHome::Kind> {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override { Close(); }

  void Open() {
    storage = home.Open();
    queues = std::make_unique<Queues>();
    engine = std::make_unique<Engine>(EngineOptions{
        .storage = storage.get(), .clock = &clock, .checkpoint_period = std::chrono::seconds(0)});
    for (TableBase* table : queues->Tables()) ASSERT_TRUE(engine->AddTable(*table).ok());
    ASSERT_TRUE(engine->Start().ok());
  }
  void Close() {
    if (engine == nullptr) return;
    ASSERT_TRUE(engine->Stop().ok());
    End();
  }
  // Loses what was not saved.
  void Crash() {
    engine->Abandon();
    End();
  }
  void End() {
    engine.reset();
    queues.reset();
    storage.reset();
  }

  Queue<BValueLong> OpenQueue(const std::string& name, std::size_t node_size = 3) {
    return queues->Open<BValueLong>(name, {.node_size = node_size}).value();
  }
  std::int64_t Do(const std::function<void(Transaction&)>& body) {
    return engine->Call("test", [&](Transaction& tx) {
      body(tx);
      return std::int64_t{0};
    });
  }
  std::vector<std::int64_t> Walked(const Queue<BValueLong>& queue) {
    std::vector<std::int64_t> values;
    const Result<std::size_t> walked = queue.Walk([&](const BValueLong& value) {
      values.push_back(value.Value);
      return true;
    });
    EXPECT_TRUE(walked.ok()) << walked.error().message();
    EXPECT_EQ(values.size(), walked.value());
    return values;
  }
  std::size_t NodeCount() {
    std::size_t count = 0;
    EXPECT_TRUE(queues->tQueueNodes
                    .Walk([&](const NodeKey&, const Node&) {
                      ++count;
                      return true;
                    })
                    .ok());
    return count;
  }
  std::int64_t SizeOf(Queue<BValueLong>& queue) {
    std::int64_t size = -1;
    EXPECT_EQ(0, Do([&](Transaction& tx) { size = queue.Size(tx); }));
    return size;
  }
  void AddAll(Queue<BValueLong>& queue, std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      ASSERT_EQ(0, Do([&](Transaction& tx) { queue.Add(tx, Long(i)); }));
    }
  }

  testing::ManualClock clock;
  StoredHome home{GetParam()};
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Queues> queues;
  std::unique_ptr<Engine> engine;
};

INSTANTIATE_TEST_SUITE_P(Homes, QueueTest,
                         ::testing::Values(StoredHome::Kind::kMemory, StoredHome::Kind::kRocksDb),
                         testing::KindName);

TEST_P(QueueTest, IsAQueueWithAddAndAStackWithPush) {
  Queue<BValueLong> queue = OpenQueue("q");
  AddAll(queue, 0, 5);
  ASSERT_EQ(0, Do([&](Transaction& tx) { queue.Push(tx, Long(-1)); }));

  EXPECT_THAT(Walked(queue), ElementsAre(-1, 0, 1, 2, 3, 4));
  ASSERT_EQ(0, Do([&](Transaction& tx) {
              EXPECT_EQ(6, queue.Size(tx));
              EXPECT_EQ(Long(-1), queue.Peek(tx));
              EXPECT_EQ(Long(-1), queue.Poll(tx));
              for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(Long(i), queue.Poll(tx));
              EXPECT_EQ(std::nullopt, queue.Poll(tx));
              EXPECT_TRUE(queue.IsEmpty(tx));
            }));
  EXPECT_EQ(0u, NodeCount());
}

TEST_P(QueueTest, EntriesSayWhenTheyWereAdded) {
  Queue<BValueLong> queue = OpenQueue("q");
  ASSERT_EQ(0, Do([&](Transaction& tx) {
              queue.Add(tx, Long(1));
              EXPECT_EQ(clock.SystemNow(), queue.any().Peek(tx)->added);
            }));
}

TEST_P(QueueTest, RecordsStayBoundedHoweverLongTheQueueAndItsValues) {
  Queue<BValueLong> queue = OpenQueue("q", 30);
  AddAll(queue, 0, 100);
  auto texts = queues
                   ->Open<Zeze::Builtin::Collections::LinkedMap::BClearJobState>(
                       "texts", {.node_size = 30, .node_bytes_max = 1000})
                   .value();
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(0, Do([&](Transaction& tx) { texts.Add(tx, {.Name = std::string(600, 'x')}); }));
  }

  ASSERT_TRUE(queues->tQueueNodes
                  .Walk([&](const NodeKey& key, const Node& node) {
                    EXPECT_LE(node.Values.size(), key.Name == "q" ? 30u : 1u);
                    return true;
                  })
                  .ok());
  EXPECT_EQ(4u + 10u, NodeCount());
}

TEST_P(QueueTest, ABeanOfAnotherTypeIsAClearError) {
  Queue<BValueLong> queue = OpenQueue("q");
  auto other = queues->Open<Zeze::Builtin::Collections::LinkedMap::BClearJobState>("q").value();
  AddAll(queue, 0, 1);
  std::string message;
  EXPECT_NE(0, Do([&](Transaction& tx) {
              try {
                other.Poll(tx);
              } catch (const WrongBeanError& e) {
                message = e.what();
                throw;
              }
            }));
  EXPECT_THAT(message, HasSubstr("BClearJobState"));
  EXPECT_EQ(1, SizeOf(queue));
}

TEST_P(QueueTest, ReservedNamesAreRefused) {
  EXPECT_THAT(queues->Open<BValueLong>("a@1").error().message(), HasSubstr("'@' is reserved"));
  EXPECT_FALSE(queues->Open<BValueLong>("").ok());
  EXPECT_FALSE(queues->Open<BValueLong>("__GCTableQueue#1").ok());
}

// Queues of before nodes had names have numbers only.
TEST_P(QueueTest, ReadsTheOldNumberFields) {
  Queue<BValueLong> queue = OpenQueue("old");
  ASSERT_EQ(0, Do([&](Transaction& tx) {
              Root root{.HeadNodeId = 4, .TailNodeId = 7, .Count = 3, .LastNodeId = 7};
              Node first{.NextNodeId = 7};
              first.Values.PushBack({.Timestamp = 1, .Value = AnyBean::Of(Long(1))});
              first.Values.PushBack({.Timestamp = 1, .Value = AnyBean::Of(Long(2))});
              Node last;
              last.Values.PushBack({.Timestamp = 1, .Value = AnyBean::Of(Long(3))});
              queues->tQueues.Put(tx, "old", root);
              queues->tQueueNodes.Put(tx, {.Name = "old", .NodeId = 4}, first);
              queues->tQueueNodes.Put(tx, {.Name = "old", .NodeId = 7}, last);
            }));
  EXPECT_THAT(Walked(queue), ElementsAre(1, 2, 3));
  AddAll(queue, 4, 8);
  EXPECT_THAT(Walked(queue), ElementsAre(1, 2, 3, 4, 5, 6, 7));

  // Hung behind another queue, its nodes are still found under its own name.
  Queue<BValueLong> other = OpenQueue("other");
  AddAll(other, 0, 1);
  ASSERT_EQ(0, Do([&](Transaction& tx) { other.Append(tx, queue); }));
  EXPECT_THAT(Walked(other), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  ASSERT_EQ(0, Do([&](Transaction& tx) {
              for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(Long(i), other.Poll(tx));
              EXPECT_EQ(0, queue.Size(tx));
            }));
  EXPECT_EQ(0u, NodeCount());
}

TEST_P(QueueTest, ClearTakesNoTimeAndItsRecordsGoAfterwards) {
  Queue<BValueLong> queue = OpenQueue("q", 2);
  AddAll(queue, 0, 1000);
  Queue<BValueLong> other = OpenQueue("other", 2);
  AddAll(other, 0, 10);
  ASSERT_EQ(0, Do([&](Transaction& tx) {
              queue.Clear(tx);
              EXPECT_TRUE(queue.IsEmpty(tx));
              queue.Add(tx, Long(7));
            }));
  ASSERT_EQ(0, Do([&](Transaction& tx) { other.Clear(tx); }));
  EXPECT_EQ(506u, NodeCount());

  EXPECT_EQ(505u, queues->CollectCleared(*engine).value());

  EXPECT_THAT(Walked(queue), ElementsAre(7));
  EXPECT_EQ(1u, NodeCount());
}

TEST_P(QueueTest, ClearedRecordsGoAfterARestartToo) {
  Queue<BValueLong> queue = OpenQueue("q", 2);
  AddAll(queue, 0, 100);
  ASSERT_EQ(0, Do([&](Transaction& tx) { queue.Clear(tx); }));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  Crash();
  Open();
  EXPECT_EQ(50u, NodeCount());
  EXPECT_EQ(50u, queues->CollectCleared(*engine).value());
  EXPECT_EQ(0u, NodeCount());
}

TEST_P(QueueTest, AWalkGoesOnWhenNodesVanish) {
  Queue<BValueLong> queue = OpenQueue("q", 2);
  AddAll(queue, 0, 10);
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(queue
                  .Walk([&](const BValueLong& value) {
                    seen.push_back(value.Value);
                    if (value.Value == 1) {  // Takes 0 to 6: the next nodes are gone.
                      EXPECT_EQ(0, Do([&](Transaction& tx) {
                                  for (int i = 0; i < 7; ++i) queue.Poll(tx);
                                }));
                    }
                    return true;
                  })
                  .ok());
  EXPECT_THAT(seen, ElementsAre(0, 1, 7, 8, 9));
}

TEST_P(QueueTest, AWalkNeverLeavesItsQueue) {
  Queue<BValueLong> queue = OpenQueue("q", 2);
  AddAll(queue, 0, 6);
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(queue
                  .Walk([&](const BValueLong& value) {
                    seen.push_back(value.Value);
                    if (value.Value == 1) {
                      EXPECT_EQ(0, Do([&](Transaction& tx) {
                                  queue.Clear(tx);
                                  queue.Add(tx, Long(100));
                                }));
                    }
                    return true;
                  })
                  .ok());
  EXPECT_THAT(seen, ElementsAre(0, 1, 100));
}

TEST_P(QueueTest, ADamagedQueueIsToldAndNotHidden) {
  Queue<BValueLong> queue = OpenQueue("q", 2);
  AddAll(queue, 0, 4);
  ASSERT_EQ(
      0, Do([&](Transaction& tx) { queues->tQueueNodes.Remove(tx, {.Name = "q", .NodeId = 1}); }));
  EXPECT_NE(0, Do([&](Transaction& tx) { queue.Poll(tx); }));
  const Result<std::size_t> walked = queue.Walk([](const BValueLong&) { return true; });
  ASSERT_FALSE(walked.ok());
  EXPECT_THAT(walked.error().message(), HasSubstr("node 1 of 'q' is missing"));
}

TEST_P(QueueTest, BesideADequeWithRollbacksAndRestarts) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::deque<std::int64_t> model;
  for (int round = 0; round < 2000; ++round) {
    Queue<BValueLong> queue = OpenQueue("q");
    std::deque<std::int64_t> next = model;
    const bool rolls_back = random() % 5 == 0;
    const std::uint64_t start = random();
    const std::int64_t code = engine->Call("round", [&](Transaction& tx) -> std::int64_t {
      std::mt19937_64 steps(start);
      next = model;
      for (int n = 0; n < 4; ++n) {
        const std::uint64_t what = steps() % 100;
        if (what < 45) {
          queue.Add(tx, Long(round * 10 + n));
          next.push_back(round * 10 + n);
        } else if (what < 55) {
          queue.Push(tx, Long(round * 10 + n));
          next.push_front(round * 10 + n);
        } else if (what < 98) {
          const std::optional<BValueLong> value = queue.Poll(tx);
          EXPECT_EQ(!next.empty(), value.has_value());
          if (value) {
            EXPECT_EQ(next.front(), value->Value);
            next.pop_front();
          }
        } else if (what == 98) {
          queue.Clear(tx);
          next.clear();
        }
        EXPECT_EQ(static_cast<std::int64_t>(next.size()), queue.Size(tx));
      }
      return rolls_back ? 7 : 0;
    });
    ASSERT_EQ(rolls_back ? 7 : 0, code);
    if (!rolls_back) model = next;
    if (round % 500 == 499) {
      Close();
      Open();
      EXPECT_THAT(Walked(OpenQueue("q")), ::testing::ElementsAreArray(model));
    }
  }
  ASSERT_TRUE(queues->CollectCleared(*engine).ok());
  EXPECT_LE(NodeCount(), model.size() + 1);
}

// Several threads add and take; a walker runs all the time. Nothing is lost, doubled or out of its
// thread's order.
TEST_P(QueueTest, ThreadsAddAndTakeWhileAWalkerRuns) {
  constexpr std::int64_t kEach = 1500;
  Queue<BValueLong> queue = OpenQueue("q", 5);
  ASSERT_EQ(0, Do([&](Transaction& tx) { queue.Add(tx, Long(-1)); }));
  std::atomic<int> adding = 2;
  std::vector<std::int64_t> taken[2];
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < kEach; ++i) {
        EXPECT_EQ(0, Do([&](Transaction& tx) { queue.Add(tx, Long(t * 1'000'000 + i)); }));
      }
      --adding;
    });
    threads.emplace_back([&, t] {
      while (true) {
        const bool last = adding == 0;
        std::optional<BValueLong> value;
        EXPECT_EQ(0, Do([&](Transaction& tx) { value = queue.Poll(tx); }));
        if (value && value->Value >= 0) taken[t].push_back(value->Value);
        if (!value && last) return;
      }
    });
  }
  threads.emplace_back([&] {
    while (adding > 0) {
      std::set<std::int64_t> seen;
      for (const std::int64_t value : Walked(queue)) EXPECT_TRUE(seen.insert(value).second);
    }
  });
  for (std::thread& thread : threads) thread.join();

  std::multiset<std::int64_t> all;
  for (const auto& list : taken) {
    std::int64_t last[2] = {-1, -1};
    for (const std::int64_t value : list) {
      EXPECT_GT(value, last[value / 1'000'000]);
      last[value / 1'000'000] = value;
      all.insert(value);
    }
  }
  EXPECT_EQ(2u * kEach, all.size());
  EXPECT_EQ(2u * kEach, (std::set<std::int64_t>(all.begin(), all.end()).size()));
  EXPECT_EQ(0, SizeOf(queue));
}

// --- queues of servers ---

class ServerQueueTest : public ::testing::Test {
 protected:
  struct Server {
    Queues queues;
    std::unique_ptr<Application> application;
  };
  std::unique_ptr<Server> StartServer(std::int32_t id) {
    auto server = std::make_unique<Server>();
    Result<std::unique_ptr<Application>> opened =
        Application::Open("test", {.server_id = id,
                                   .storage = {.url = "rocksdb:" + directory.File("db")},
                                   .worker_threads = 2});
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    server->application = std::move(opened).value();
    server->application->AddModule(server->queues);
    const Result<void> started = server->application->Start();
    EXPECT_TRUE(started.ok()) << started.error().message();
    return server;
  }

  TempDirectory directory;
};

// The peer sets the node counter back on every open, and the nodes that others have taken over are
// written again.
TEST_F(ServerQueueTest, PeerDefect30OpeningAgainRaisesTheSerialAndKeepsNodeIds) {
  auto first = StartServer(1);
  Queue<BValueLong> left =
      first->queues.OpenForServer<BValueLong>(*first->application, "work").value();
  std::int64_t serial = 0;
  ASSERT_EQ(0, first->application->Call("add", [&](Transaction& tx) {
    for (std::int64_t i = 0; i < 100; ++i) left.Add(tx, Long(i));
    serial = first->queues.LoadSerial(tx, "work", 1);
    return 0;
  }));
  EXPECT_EQ(1, serial);
  ASSERT_TRUE(first->application->Stop().ok());
  first.reset();

  auto second = StartServer(2);
  Queue<BValueLong> own =
      second->queues.OpenForServer<BValueLong>(*second->application, "work").value();
  ASSERT_EQ(0, second->application->Call("take over", [&](Transaction& tx) {
    own.Add(tx, Long(1000));
    EXPECT_FALSE(second->queues.TakeOver(tx, "work", 1, serial + 1, 2));
    EXPECT_TRUE(second->queues.TakeOver(tx, "work", 1, serial, 2));
    EXPECT_FALSE(second->queues.TakeOver(tx, "work", 1, serial, 2));  // Once.
    return 0;
  }));
  ASSERT_TRUE(second->application->Stop().ok());
  second.reset();

  first = StartServer(1);
  Queue<BValueLong> again =
      first->queues.OpenForServer<BValueLong>(*first->application, "work").value();
  ASSERT_EQ(0, first->application->Call("add again", [&](Transaction& tx) {
    EXPECT_EQ(2, first->queues.LoadSerial(tx, "work", 1));
    EXPECT_TRUE(again.IsEmpty(tx));
    for (std::int64_t i = 0; i < 100; ++i) again.Add(tx, Long(-i));
    // Whoever still means the life before takes nothing.
    EXPECT_FALSE(first->queues.TakeOver(tx, "work", 1, serial, 2));
    Queue<BValueLong> taken(AnyQueue(first->queues, Queues::NameForServer("work", 2)));
    EXPECT_EQ(101, taken.Size(tx));
    EXPECT_EQ(Long(1000), taken.Poll(tx));
    for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(Long(i), taken.Poll(tx));
    EXPECT_TRUE(taken.IsEmpty(tx));
    return 0;
  }));
  ASSERT_TRUE(first->application->Stop().ok());
}

// The service manager has heard of the serial: it must not be another one after a crash, or nobody
// could take the queue over.
TEST_F(ServerQueueTest, TheSerialIsSavedBeforeOthersHearOfIt) {
  auto server = StartServer(1);
  ASSERT_TRUE(server->queues.OpenForServer<BValueLong>(*server->application, "work").ok());
  StorageTable* stored =
      server->application->storage().OpenTable(server->queues.tQueues.name()).value();
  std::size_t rows = 0;
  ASSERT_TRUE(stored
                  ->Walk({},
                         [&](std::string_view, std::string_view) {
                           ++rows;
                           return true;
                         })
                  .ok());
  EXPECT_EQ(rows, 1U);
  ASSERT_TRUE(server->application->Stop().ok());
}

}  // namespace
}  // namespace zeze
