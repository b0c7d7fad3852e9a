#include "tests/components/collection_ledger.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/list.h"

namespace zeze::crash_test {

namespace {

constexpr LinkedMapOptions kNodes{.node_size = 5};
constexpr int kStaying = 40;
constexpr std::uint64_t kMoving = 60;

std::string StayingId(int number) {
  return fmt::format("stays {:02}", number);
}

void Erase(List<std::string>& ids, const std::string& id) {
  const auto found = std::find(ids.begin(), ids.end(), id);
  if (found == ids.end()) return;
  ids.Erase(static_cast<std::size_t>(std::distance(ids.begin(), found)));
}

}  // namespace

CollectionLedger::CollectionLedger(Ledger& ledger, Queues& queues, LinkedMaps& maps)
    : ledger_(ledger),
      queues_(queues),
      maps_(maps),
      kept_(maps.Open<Number>("kept", kNodes).value()),
      cleared_(maps.Open<Number>("cleared", kNodes).value()),
      queue_(queues.Open<Number>("queue", {.node_size = 5}).value()) {}

void CollectionLedger::PutWhatStays(Transaction& tx) {
  if (ledger_.tOrders.Contains(tx, kept_.name())) return;
  const auto order = ledger_.tOrders.GetOrAdd(tx, kept_.name());
  for (int i = 0; i < kStaying; ++i) {
    // Between them some that go, so that their neighbours change.
    for (const std::string& id : {StayingId(i), fmt::format("moves {}", i)}) {
      kept_.Put(tx, id, {.number = i}, MapEnd::kTail);
      order->ids.PushBack(id);
    }
  }
}

std::int64_t CollectionLedger::Change(Transaction& tx, std::uint64_t random) {
  PutWhatStays(tx);
  switch (random % 3) {
    case 0:
      ChangeMap(tx, kept_, random / 3);
      break;
    case 1:
      ChangeMap(tx, cleared_, random / 3);
      break;
    default:
      ChangeQueue(tx, random / 3);
  }
  ledger_.Count(tx, "changes");
  return result_code::kSuccess;
}

void CollectionLedger::ChangeMap(Transaction& tx, LinkedMap<Number>& map, std::uint64_t random) {
  const auto order = ledger_.tOrders.GetOrAdd(tx, map.name());
  List<std::string>& ids = order->ids;
  const std::string id = fmt::format("moves {}", random / 16 % kMoving);
  const MapEnd end = random % 2 == 0 ? MapEnd::kHead : MapEnd::kTail;
  const bool there = ids.Contains(id);
  bool answer = false;
  bool expected = there;
  switch (random / 2 % 8) {
    case 0:
    case 1:
    case 2:
      answer = map.Put(tx, id, {.number = static_cast<std::int64_t>(random % 1000)}, end);
      expected = !there;
      if (!there) ids.Insert(end == MapEnd::kHead ? 0 : ids.size(), id);
      break;
    case 3:
    case 4:
      answer = map.Remove(tx, id);
      Erase(ids, id);
      break;
    case 5:
    case 6:
      answer = end == MapEnd::kHead ? map.MoveToHead(tx, id) : map.MoveToTail(tx, id);
      if (!there) break;
      Erase(ids, id);
      ids.Insert(end == MapEnd::kHead ? 0 : ids.size(), id);
      break;
    default:
      answer = expected;
      if (map.name() != cleared_.name() || random / 1024 % 4 != 0) break;
      map.Clear(tx);
      ids = {};
  }
  if (answer != expected) {
    ledger_.Fault(tx, fmt::format("linked map {} and its order differ about {}", map.name(), id));
  }
}

void CollectionLedger::ChangeQueue(Transaction& tx, std::uint64_t random) {
  const auto flow = ledger_.tFlows.GetOrAdd(tx, queue_.name());
  const std::int64_t size = flow->added - flow->taken;
  if (queue_.Size(tx) != size) {
    ledger_.Fault(tx, fmt::format("the queue has {} instead of {}", queue_.Size(tx), size));
  }
  if (random % 2 == 0 || size < 50) {
    for (int i = 0; i < 4; ++i) queue_.Add(tx, {.number = ++flow->added});
    return;
  }
  for (int i = 0; i < 4; ++i) {
    const std::optional<Number> first = queue_.Poll(tx);
    flow->taken += 1;
    if (first && first->number == flow->taken) continue;
    ledger_.Fault(tx, fmt::format("the queue gave {} instead of {}", first ? first->number : -1,
                                  flow->taken));
  }
}

std::int64_t CollectionLedger::Check(Transaction& tx) {
  PutWhatStays(tx);
  CheckMap(tx, kept_);
  CheckMap(tx, cleared_);
  CheckQueue(tx);
  ledger_.Count(tx, "checks");
  return result_code::kSuccess;
}

// Order, count, links in both directions, and the index.
void CollectionLedger::CheckMap(Transaction& tx, LinkedMap<Number>& map) {
  const std::string& name = map.name();
  std::vector<std::string> found;
  const auto* root = maps_.tLinkedMaps.Get(tx, name);
  std::int64_t before = 0;
  std::int64_t at = root == nullptr ? 0 : root->HeadNodeId;
  while (at != 0) {
    const auto* node = maps_.tLinkedMapNodes.Get(tx, {.Name = name, .NodeId = at});
    if (node == nullptr || node->PrevNodeId != before || node->Values.empty()) {
      return ledger_.Fault(tx, fmt::format("linked map {}: node {} behind {} is {}", name, at,
                                           before, node == nullptr ? "missing" : "wrong"));
    }
    for (const auto& value : node->Values) {
      found.push_back(value.Id);
      const auto* index = maps_.tValueIdToNodeId.Get(tx, {.Name = name, .ValueId = value.Id});
      if (index == nullptr || index->NodeId != at) {
        ledger_.Fault(tx, fmt::format("linked map {}: the index of {} is wrong", name, value.Id));
      }
    }
    before = at;
    at = node->NextNodeId;
  }
  if (root != nullptr && root->TailNodeId != before) {
    ledger_.Fault(tx, fmt::format("linked map {} does not end at its tail", name));
  }
  const auto* order = ledger_.tOrders.Get(tx, name);
  const std::vector<std::string> expected =
      order == nullptr ? std::vector<std::string>()
                       : std::vector<std::string>(order->ids.begin(), order->ids.end());
  if (found != expected || map.Count(tx) != static_cast<std::int64_t>(expected.size())) {
    ledger_.Fault(
        tx, fmt::format("linked map {} with count {} has [{}] instead of [{}]", name, map.Count(tx),
                        fmt::join(found, ", "), fmt::join(expected, ", ")));
  }
}

// All that was added and not taken, in its order.
void CollectionLedger::CheckQueue(Transaction& tx) {
  const auto* root = queues_.tQueues.Get(tx, queue_.name());
  const auto* flow = ledger_.tFlows.Get(tx, queue_.name());
  if (root == nullptr || flow == nullptr) {
    if (root != nullptr || flow != nullptr) ledger_.Fault(tx, "the queue and its flow differ");
    return;
  }
  std::int64_t last = flow->taken;
  AnyQueue::NodeKey before{.Name = queue_.name()};
  for (AnyQueue::NodeKey at = root->HeadNodeKey; at.NodeId != 0;) {
    const auto* node = queues_.tQueueNodes.Get(tx, at);
    if (node == nullptr) {
      return ledger_.Fault(tx, fmt::format("the queue: node {} is missing", at.NodeId));
    }
    for (const auto& value : node->Values) {
      const std::optional<Number> number = value.Value.As<Number>();
      if (!number || number->number != ++last) {
        return ledger_.Fault(tx, fmt::format("the queue has {} where {} should be",
                                             number ? number->number : -1, last));
      }
    }
    before = at;
    at = node->NextNodeKey;
  }
  if (last != flow->added || root->TailNodeKey != before ||
      queue_.Size(tx) != flow->added - flow->taken) {
    ledger_.Fault(
        tx, fmt::format("the queue ends with {} in node {}, its count is {}; its flow: {}", last,
                        before.NodeId, queue_.Size(tx), flow->ToString()));
  }
}

void CollectionLedger::Walk(Application& application) {
  const bool forwards = WalkMap(application, MapEnd::kHead);
  const bool backwards = WalkMap(application, MapEnd::kTail);
  if (!WalkQueue(application) || !forwards || !backwards) return;
  application.Call("count walk", [&](Transaction& tx) {
    ledger_.Count(tx, "walks");
    return result_code::kSuccess;
  });
}

bool CollectionLedger::WalkMap(Application& application, MapEnd from) {
  std::vector<std::string> found;
  const Result<std::size_t> walked = kept_.Walk(
      [&](const std::string& id, const Number&) {
        if (id.starts_with("stays")) found.push_back(id);
        return true;
      },
      from);
  if (!Walked(application, walked)) return false;
  std::vector<std::string> expected;
  for (int i = 0; i < kStaying; ++i) expected.push_back(StayingId(i));
  if (from == MapEnd::kTail) std::reverse(expected.begin(), expected.end());
  if (found != expected) {
    Report(application, fmt::format("a walk gave [{}]", fmt::join(found, ", ")));
    return false;
  }
  return Walked(application,
                cleared_.Walk([](const std::string&, const Number&) { return true; }, from));
}

bool CollectionLedger::WalkQueue(Application& application) {
  std::int64_t last = 0;
  return Walked(application, queue_.Walk([&](const Number& value) {
    if (value.number <= last) {
      Report(application, fmt::format("the queue gave {} after {}", value.number, last));
    }
    last = value.number;
    return true;
  }));
}

bool CollectionLedger::Walked(Application& application, const Result<std::size_t>& walked) {
  // Not now: a dead server has its rights still, or this one has no lease.
  if (!walked.ok() && walked.error().code() != ErrorCode::kUnavailable) {
    Report(application, "walk: " + walked.error().message());
  }
  return walked.ok();
}

void CollectionLedger::Report(Application& application, const std::string& what) {
  application.Call("report", [&](Transaction& tx) {
    ledger_.Fault(tx, what);
    return result_code::kSuccess;
  });
}

}  // namespace zeze::crash_test
