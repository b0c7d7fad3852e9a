// MapServer: the components that linked maps need, over one engine.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/Game/Rank.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"

namespace zeze::testing {

using BValueLong = Zeze::Builtin::Game::Rank::BValueLong;
using MapNode = Zeze::Builtin::Collections::LinkedMap::BLinkedMapNode;
using MapNodeKey = Zeze::Builtin::Collections::LinkedMap::BLinkedMapNodeKey;

inline BValueLong Long(std::int64_t value) {
  return {.Value = value};
}

class MapServer {
 public:
  struct Options {
    Clock* clock = &SystemClock();
    Coherence* coherence = nullptr;
    std::chrono::nanoseconds checkpoint_period{};
    DelayRemoveOptions removal = {};
  };

  MapServer(Storage& storage, Options options)
      : delay_remove(queues, options.removal),
        maps(delay_remove),
        engine({.storage = &storage,
                .coherence = options.coherence,
                .clock = options.clock,
                .checkpoint_period = options.checkpoint_period}) {
    for (Module* module : {static_cast<Module*>(&queues), static_cast<Module*>(&delay_remove),
                           static_cast<Module*>(&maps)}) {
      for (TableBase* table : module->Tables()) EXPECT_TRUE(engine.AddTable(*table).ok());
    }
  }

  void Start(std::int32_t server_id) {
    ASSERT_TRUE(engine.Start().ok());
    const Result<void> opened = delay_remove.Open(engine, server_id);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
  }

  LinkedMap<BValueLong> Open(const std::string& name, std::size_t node_size = 3) {
    return maps.Open<BValueLong>(name, {.node_size = node_size}).value();
  }
  std::int64_t Do(const std::function<void(Transaction&)>& body) {
    return engine.Call("test", [&](Transaction& tx) {
      body(tx);
      return std::int64_t{0};
    });
  }

  using Walked = std::vector<std::pair<std::string, std::int64_t>>;
  static Walked Walk(const LinkedMap<BValueLong>& map, MapEnd from = MapEnd::kHead) {
    Walked values;
    const Result<std::size_t> walked = map.Walk(
        [&](const std::string& id, const BValueLong& value) {
          values.emplace_back(id, value.Value);
          return true;
        },
        from);
    EXPECT_TRUE(walked.ok()) << walked.error().message();
    return values;
  }

  std::size_t NodeCount() {
    const Result<std::size_t> count =
        maps.tLinkedMapNodes.Walk([](const MapNodeKey&, const MapNode&) { return true; });
    EXPECT_TRUE(count.ok());
    return count.value();
  }
  std::size_t IndexCount() {
    const Result<std::size_t> count =
        maps.tValueIdToNodeId.Walk([](const auto&, const auto&) { return true; });
    EXPECT_TRUE(count.ok());
    return count.value();
  }

  Queues queues;
  DelayRemove delay_remove;
  LinkedMaps maps;
  Engine engine;
};

}  // namespace zeze::testing
