// Linked maps beside std::list and std::map, walked while they change, cleared and filled again.

#include "zeze/components/collections/linked_map/linked_map.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Collections/LinkedMap.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/components/collections/linked_map/hashed_map.h"
#include "zeze/components/collections/linked_map/testing/linked_map_server.h"
#include "zeze/components/collections/queue/testing/stored_home.h"

namespace zeze {
namespace {

using testing::BValueLong;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Long;
using testing::MapServer;
using ::testing::Pair;
using testing::StoredHome;

constexpr std::chrono::hours kDay(24);

class LinkedMapTest : public ::testing::TestWithParam<StoredHome::Kind> {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override { Close(); }
  void Open() {
    storage = home.Open();
    server = std::make_unique<MapServer>(*storage, MapServer::Options{.clock = &clock});
    server->Start(1);
  }
  void Close() {
    ASSERT_TRUE(server->engine.Stop().ok());
    server.reset();
    storage.reset();
  }
  void Crash() {
    ASSERT_TRUE(server->engine.CheckpointNow().ok());
    server->engine.Abandon();
    server.reset();
    storage.reset();
  }
  void PutAll(LinkedMap<BValueLong>& map, std::int64_t from, std::int64_t to,
              MapEnd end = MapEnd::kTail) {
    for (std::int64_t i = from; i < to; ++i) {
      ASSERT_EQ(0, server->Do([&](Transaction& tx) {
        EXPECT_TRUE(map.Put(tx, std::to_string(i), Long(i), end));
      }));
    }
  }
  // Lets all jobs and removals happen.
  void Collect() {
    clock.Advance(kDay * 7);
    while (true) {
      const Result<std::size_t> done = server->delay_remove.Step(server->engine);
      ASSERT_TRUE(done.ok()) << done.error().message();
      if (done.value() == 0) return;
    }
  }
  std::int64_t CountOf(LinkedMap<BValueLong>& map) {
    std::int64_t count = -1;
    EXPECT_EQ(0, server->Do([&](Transaction& tx) { count = map.Count(tx); }));
    return count;
  }

  testing::ManualClock clock;
  StoredHome home{GetParam()};
  std::unique_ptr<Storage> storage;
  std::unique_ptr<MapServer> server;
};

INSTANTIATE_TEST_SUITE_P(Homes, LinkedMapTest,
                         ::testing::Values(StoredHome::Kind::kMemory, StoredHome::Kind::kRocksDb),
                         testing::KindName);

TEST_P(LinkedMapTest, PutsAtEitherEndAndFindsById) {
  LinkedMap<BValueLong> map = server->Open("m");
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    EXPECT_TRUE(map.Put(tx, "b", Long(2)));
    EXPECT_TRUE(map.Put(tx, "a", Long(1)));  // At the head, unless told otherwise.
    EXPECT_TRUE(map.Put(tx, "c", Long(3), MapEnd::kTail));
    EXPECT_FALSE(map.Put(tx, "b", Long(20)));  // Stays where it is.
    EXPECT_EQ(Long(20), map.Get(tx, "b"));
    EXPECT_EQ(std::nullopt, map.Get(tx, "d"));
    EXPECT_EQ(Long(3), map.GetOrAdd(tx, "c", Long(9)));
    EXPECT_EQ(Long(4), map.GetOrAdd(tx, "d", Long(4), MapEnd::kTail));
    EXPECT_TRUE(map.Update(tx, "d", [](BValueLong& value) { value.Value += 1; }));
    EXPECT_FALSE(map.Update(tx, "e", [](BValueLong&) {}));
    EXPECT_EQ(4, map.Count(tx));
  }));
  EXPECT_THAT(MapServer::Walk(map),
              ElementsAre(Pair("a", 1), Pair("b", 20), Pair("c", 3), Pair("d", 5)));
  EXPECT_THAT(MapServer::Walk(map, MapEnd::kTail),
              ElementsAre(Pair("d", 5), Pair("c", 3), Pair("b", 20), Pair("a", 1)));
}

TEST_P(LinkedMapTest, NamesWithAnAtSignAreReserved) {
  EXPECT_THAT(server->maps.Open<BValueLong>("a@1").error().message(),
              HasSubstr("linked map name 'a@1': '@' is reserved"));
  EXPECT_FALSE(server->maps.Open<BValueLong>("").ok());
}

TEST_P(LinkedMapTest, RecordsStayBoundedHoweverLongValuesAndIdsAre) {
  using BText = Zeze::Builtin::Collections::LinkedMap::BClearJobState;
  const LinkedMapOptions options{.node_size = 30, .node_bytes_max = 1000};
  auto many = server->maps.Open<BText>("many", options).value();
  auto values = server->maps.Open<BText>("values", options).value();
  auto ids = server->maps.Open<BText>("ids", options).value();
  const std::string text(600, 'x');
  for (int i = 0; i < 10; ++i) {
    const std::string id = std::to_string(i);
    ASSERT_EQ(0, server->Do([&](Transaction& tx) {
      for (int n = 0; n < 10; ++n) many.Put(tx, id + std::to_string(n), {});
      values.Put(tx, id, {.Name = text});
      ids.Put(tx, id + text, {});
      EXPECT_TRUE(values.MoveToTail(tx, id));
      EXPECT_TRUE(ids.MoveToTail(tx, id + text));
    }));
  }
  ASSERT_TRUE(server->maps.tLinkedMapNodes
                  .Walk([](const auto& key, const auto& node) {
                    EXPECT_LE(node.Values.size(), key.Name == "many" ? 30u : 1u) << key.Name;
                    return true;
                  })
                  .ok());
}

// Seed 002: each node holds a number of items, and knows the records before and after it.
TEST_P(LinkedMapTest, Seed002NodesAreRecordsThatKnowTheirNeighboursAndHoldSomeItemsEach) {
  LinkedMap<BValueLong> map = server->Open("m", 3);
  PutAll(map, 0, 8);
  const auto node = [&](std::int64_t id) {
    return server->maps.tLinkedMapNodes.ReadCopy({.Name = "m", .NodeId = id}).value().value();
  };
  EXPECT_EQ(3u, node(1).Values.size());
  EXPECT_EQ(0, node(1).PrevNodeId);
  EXPECT_EQ(2, node(1).NextNodeId);
  EXPECT_EQ(3, node(2).NextNodeId);
  EXPECT_EQ(2u, node(3).Values.size());
  EXPECT_EQ(2, node(3).PrevNodeId);
  EXPECT_EQ(0, node(3).NextNodeId);
}

// Seed 002: "a walk that is under way goes on; one that begins afterwards sees only what is new".
TEST_P(LinkedMapTest, Seed002ARemovedNodeStaysForWalksThatAreUnderWayAndIsGoneForNewOnes) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 8);
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(
      map.Walk([&](const std::string&, const BValueLong& value) {
           seen.push_back(value.Value);
           if (value.Value == 1) {  // The next two nodes, and this one.
             for (const char* id : {"2", "3", "4", "5", "0", "1"}) {
               EXPECT_EQ(0, server->Do([&](Transaction& tx) { EXPECT_TRUE(map.Remove(tx, id)); }));
             }
           }
           return true;
         })
          .ok());
  EXPECT_THAT(seen, ElementsAre(0, 1, 6, 7));
  EXPECT_THAT(MapServer::Walk(map), ElementsAre(Pair("6", 6), Pair("7", 7)));
  EXPECT_EQ(4u, server->NodeCount());

  Collect();  // Some time later the records are really removed.
  EXPECT_EQ(1u, server->NodeCount());
  EXPECT_THAT(MapServer::Walk(map), ElementsAre(Pair("6", 6), Pair("7", 7)));
}

TEST_P(LinkedMapTest, AWalkBackwardsGoesOnAcrossRemovedNodes) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 8);
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(map.Walk(
                     [&](const std::string&, const BValueLong& value) {
                       seen.push_back(value.Value);
                       if (value.Value == 6) {
                         for (const char* id : {"4", "5", "6", "7", "2", "3"}) {
                           EXPECT_EQ(0, server->Do([&](Transaction& tx) { map.Remove(tx, id); }));
                         }
                       }
                       return true;
                     },
                     MapEnd::kTail)
                  .ok());
  EXPECT_THAT(seen, ElementsAre(7, 6, 1, 0));
}

// A visitor that stands still for longer than removed nodes stay.
TEST_P(LinkedMapTest, AWalkThatStoodStillTooLongFindsItsWayOrSaysSo) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 8);
  std::vector<std::int64_t> seen;
  const auto remove = [&](std::initializer_list<const char*> ids) {
    for (const char* id : ids) {
      EXPECT_EQ(0, server->Do([&](Transaction& tx) { EXPECT_TRUE(map.Remove(tx, id)); }));
    }
    Collect();
  };
  ASSERT_TRUE(map.Walk([&](const std::string&, const BValueLong& value) {
                   seen.push_back(value.Value);
                   if (value.Value == 1) remove({"2", "3"});
                   return true;
                 })
                  .ok());
  EXPECT_THAT(seen, ElementsAre(0, 1, 4, 5, 6, 7));

  const Result<std::size_t> lost = map.Walk([&](const std::string&, const BValueLong& value) {
    if (value.Value == 1) remove({"0", "1", "4", "5"});
    return true;
  });
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.error().message(), HasSubstr("begin again"));
}

TEST_P(LinkedMapTest, PeerDefect29AMovedValueIsStillFound) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 6);
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    EXPECT_TRUE(map.MoveToHead(tx, "4"));
    EXPECT_TRUE(map.MoveToTail(tx, "0"));
    EXPECT_TRUE(map.MoveToTail(tx, "0"));
    EXPECT_FALSE(map.MoveToHead(tx, "9"));
  }));
  for (std::int64_t i = 0; i < 6; ++i) {
    ASSERT_EQ(0, server->Do(
                     [&](Transaction& tx) { EXPECT_EQ(Long(i), map.Get(tx, std::to_string(i))); }));
  }
  EXPECT_THAT(MapServer::Walk(map), ElementsAre(Pair("4", 4), Pair("1", 1), Pair("2", 2),
                                                Pair("3", 3), Pair("5", 5), Pair("0", 0)));
  EXPECT_EQ(6, CountOf(map));
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_TRUE(map.Remove(tx, std::to_string(i)));
  }));
  EXPECT_THAT(MapServer::Walk(map), IsEmpty());
  Collect();
  EXPECT_EQ(0u, server->NodeCount());
  EXPECT_EQ(0u, server->IndexCount());
}

TEST_P(LinkedMapTest, PeerDefect29WhatIsPutAfterAClearIsNeverRemovedByItsJob) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 100);
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    map.Clear(tx);
    EXPECT_EQ(0, map.Count(tx));
    EXPECT_EQ(std::nullopt, map.Get(tx, "5"));
    EXPECT_FALSE(map.Remove(tx, "6"));
    EXPECT_FALSE(map.MoveToHead(tx, "7"));
    EXPECT_TRUE(map.Put(tx, "5", Long(50)));  // Before the job begins.
    EXPECT_TRUE(map.Put(tx, "500", Long(500)));
  }));
  EXPECT_THAT(MapServer::Walk(map), ElementsAre(Pair("500", 500), Pair("5", 50)));
  // Between the steps of the job, and through a second clear.
  ASSERT_EQ(0, server->Do([&](Transaction& tx) { EXPECT_TRUE(map.Put(tx, "7", Long(70))); }));
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    map.Clear(tx);
    EXPECT_TRUE(map.Put(tx, "7", Long(71)));
  }));
  Collect();

  EXPECT_THAT(MapServer::Walk(map), ElementsAre(Pair("7", 71)));
  ASSERT_EQ(0, server->Do([&](Transaction& tx) { EXPECT_EQ(Long(71), map.Get(tx, "7")); }));
  EXPECT_EQ(1u, server->NodeCount());
  EXPECT_EQ(1u, server->IndexCount());
}

TEST_P(LinkedMapTest, AClearGoesOnAfterACrash) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 60);
  ASSERT_EQ(0, server->Do([&](Transaction& tx) { map.Clear(tx); }));
  PutAll(map, 0, 5);
  Crash();
  Open();
  map = server->Open("m", 2);
  Collect();
  EXPECT_EQ(5, CountOf(map));
  EXPECT_EQ(3u, server->NodeCount());
  EXPECT_EQ(5u, server->IndexCount());
}

TEST_P(LinkedMapTest, AWalkNoticesAClear) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  PutAll(map, 0, 8);
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(map.Walk([&](const std::string&, const BValueLong& value) {
                   seen.push_back(value.Value);
                   if (value.Value == 1) {
                     EXPECT_EQ(0, server->Do([&](Transaction& tx) {
                       map.Clear(tx);
                       map.Put(tx, "x", Long(100));
                     }));
                   }
                   return true;
                 })
                  .ok());
  EXPECT_THAT(seen, ElementsAre(0, 1, 100));
}

TEST_P(LinkedMapTest, AHashedMapIsSpreadOverPartsAsThePeerSpreadsIt) {
  auto map = HashedMap<BValueLong>::Open(server->maps, "h").value();
  ASSERT_EQ(0, server->Do([&](Transaction& tx) {
    for (std::int64_t i = 0; i < 300; ++i) {
      EXPECT_TRUE(map.Put(tx, std::to_string(i), Long(i)));
    }
    // hashnr("abc") is -2064608928: 96 of 128.
    EXPECT_TRUE(map.Put(tx, "abc", Long(-1)));
    EXPECT_EQ(301, map.Count(tx));
    EXPECT_EQ(Long(5), map.Get(tx, "5"));
    EXPECT_TRUE(map.Remove(tx, "5"));
    EXPECT_FALSE(map.Contains(tx, "5"));
    EXPECT_EQ(Long(-1), LinkedMap<BValueLong>(AnyLinkedMap(server->maps, "h@96")).Get(tx, "abc"));
  }));
  std::set<std::string> seen;
  EXPECT_EQ(300u, map.Walk([&](const std::string& id, const BValueLong&) {
                       return seen.insert(id).second;
                     })
                      .value());
  EXPECT_EQ(300u, seen.size());
  ASSERT_EQ(0, server->Do([&](Transaction& tx) { map.Clear(tx); }));
  Collect();
  EXPECT_EQ(0u, server->NodeCount());
  EXPECT_FALSE(HashedMap<BValueLong>::Open(server->maps, "a@b").ok());
}

// The model: the order as a list, beside the map. A put of a known id keeps its place.
class Model {
 public:
  bool Put(const std::string& id, std::int64_t value, MapEnd end) {
    const auto at = Find(id);
    if (at != values_.end()) {
      at->second = value;
      return false;
    }
    values_.insert(end == MapEnd::kHead ? values_.begin() : values_.end(), {id, value});
    return true;
  }
  bool Remove(const std::string& id) {
    const auto at = Find(id);
    if (at == values_.end()) return false;
    values_.erase(at);
    return true;
  }
  bool Move(const std::string& id, MapEnd end) {
    const auto at = Find(id);
    if (at == values_.end()) return false;
    values_.splice(end == MapEnd::kHead ? values_.begin() : values_.end(), values_, at);
    return true;
  }
  std::optional<BValueLong> Get(const std::string& id) {
    const auto at = Find(id);
    return at == values_.end() ? std::nullopt : std::optional(Long(at->second));
  }
  void Clear() { values_.clear(); }
  const std::list<std::pair<std::string, std::int64_t>>& values() const { return values_; }

 private:
  std::list<std::pair<std::string, std::int64_t>>::iterator Find(const std::string& id) {
    return std::find_if(values_.begin(), values_.end(),
                        [&](const auto& value) { return value.first == id; });
  }
  std::list<std::pair<std::string, std::int64_t>> values_;
};

TEST_P(LinkedMapTest, BesideAListWithRollbacksRestartsAndCollections) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Model model;
  for (int round = 0; round < 2500; ++round) {
    LinkedMap<BValueLong> map = server->Open("m");
    Model next;
    const bool rolls_back = random() % 5 == 0;
    const std::uint64_t start = random();
    const std::int64_t code = server->engine.Call("round", [&](Transaction& tx) -> std::int64_t {
      std::mt19937_64 steps(start);
      next = model;
      for (int n = 0; n < 3; ++n) {
        const std::string id = std::to_string(steps() % 60);
        const MapEnd end = steps() % 2 == 0 ? MapEnd::kHead : MapEnd::kTail;
        const std::uint64_t what = steps() % 200;
        if (what < 80) {
          EXPECT_EQ(next.Put(id, round, end), map.Put(tx, id, Long(round), end));
        } else if (what < 130) {
          EXPECT_EQ(next.Remove(id), map.Remove(tx, id));
        } else if (what < 160) {
          EXPECT_EQ(next.Move(id, end), map.any().Move(tx, id, end));
        } else if (what < 198) {
          EXPECT_EQ(next.Get(id), map.Get(tx, id));
        } else if (what == 198) {
          next.Clear();
          map.Clear(tx);
        }
        EXPECT_EQ(static_cast<std::int64_t>(next.values().size()), map.Count(tx));
      }
      return rolls_back ? 7 : 0;
    });
    ASSERT_EQ(rolls_back ? 7 : 0, code);
    if (!rolls_back) model = next;
    if (round % 50 == 0) {
      clock.Advance(kDay);
      ASSERT_TRUE(server->delay_remove.Step(server->engine).ok());
      ASSERT_THAT(MapServer::Walk(map), ::testing::ElementsAreArray(model.values()));
    }
    if (round % 800 == 799) {
      Crash();
      Open();
    }
  }
  Collect();
  EXPECT_EQ(model.values().size(), server->IndexCount());
  EXPECT_LE(server->NodeCount(), model.values().size());
}

// Writers put, remove, move and collect around pinned values, in both directions of walks: every
// walk gives each pinned value exactly once.
TEST_P(LinkedMapTest, WalkersMeetEveryValueThatStaysWhileOthersChangeTheMap) {
  LinkedMap<BValueLong> map = server->Open("m", 2);
  constexpr std::int64_t kPinned = 20;
  constexpr std::size_t kWalks = 20;
  for (std::int64_t i = 0; i < kPinned; ++i) {
    ASSERT_EQ(0, server->Do([&](Transaction& tx) {
      map.Put(tx, "pinned" + std::to_string(i), Long(-1), MapEnd::kTail);
      map.Put(tx, "x" + std::to_string(i), Long(i), MapEnd::kTail);
    }));
  }
  std::atomic<int> writing = 2;
  std::atomic<std::size_t> walks = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(std::random_device{}());
      for (int n = 0; n < 2000 || walks < kWalks; ++n) {
        const std::string id = "x" + std::to_string(t) + std::to_string(random() % 40);
        const MapEnd end = random() % 2 == 0 ? MapEnd::kHead : MapEnd::kTail;
        const std::uint64_t what = random() % 4;
        const bool rolls_back = random() % 10 == 0;
        server->engine.Call("change", [&](Transaction& tx) -> std::int64_t {
          if (what == 0) map.any().Move(tx, id, end);
          if (what == 1) map.Put(tx, id, Long(n), end);
          if (what >= 2) map.Remove(tx, id);
          return rolls_back ? 1 : 0;
        });
      }
      --writing;
    });
  }
  for (const MapEnd from : {MapEnd::kHead, MapEnd::kTail}) {
    threads.emplace_back([&, from] {
      while (writing > 0) {
        std::multiset<std::string> pinned;
        const Result<std::size_t> walked = map.Walk(
            [&](const std::string& id, const BValueLong& value) {
              if (value.Value == -1) pinned.insert(id);
              return true;
            },
            from);
        EXPECT_TRUE(walked.ok()) << walked.error().message();
        EXPECT_EQ(static_cast<std::size_t>(kPinned), pinned.size());
        EXPECT_EQ(static_cast<std::size_t>(kPinned),
                  (std::set<std::string>(pinned.begin(), pinned.end()).size()));
        ++walks;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(static_cast<std::int64_t>(MapServer::Walk(map).size()), CountOf(map));
}

}  // namespace
}  // namespace zeze
