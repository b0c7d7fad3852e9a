#include "zeze/components/collections/linked_map/any_linked_map.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "Zeze/Builtin/Collections/LinkedMap.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using Zeze::Builtin::Collections::LinkedMap::BClearJobState;
using Zeze::Builtin::Collections::LinkedMap::BLinkedMapNodeId;
using Zeze::Builtin::Collections::LinkedMap::BLinkedMapNodeValue;

// Nodes that one step of a clear job removes, with the index of their values.
constexpr int kNodesInOneStep = 10;

std::size_t BytesOf(const BLinkedMapNodeValue& entry) {
  return entry.Id.size() + entry.Value.bytes().size();
}

std::string EncodeState(const BClearJobState& state) {
  ByteWriter out;
  state.Encode(out);
  return out.Release();
}

}  // namespace

AnyLinkedMap::AnyLinkedMap(LinkedMaps& maps, std::string name, LinkedMapOptions options)
    : maps_(&maps), name_(std::move(name)), options_(options) {
  ZEZE_REQUIRE(options_.node_size > 0,
               fmt::format("the nodes of linked map '{}' have no room", name_));
}

void AnyLinkedMap::ThrowDamaged(std::int64_t node_id, const char* what) const {
  throw std::runtime_error(
      fmt::format("linked map '{}' is damaged: its node {} {}", name_, node_id, what));
}

// What was cleared is still in the index for a while: it names nodes of before the clear.
AnyLinkedMap::Place AnyLinkedMap::Find(Transaction& tx, const std::string& id) const {
  const BLinkedMapNodeId* indexed =
      maps_->tValueIdToNodeId.Get(tx, ValueKey{.Name = name_, .ValueId = id});
  if (indexed == nullptr) return {};
  const BLinkedMapNodeId* cleared = maps_->tLinkedMapClears.Get(tx, name_);
  if (cleared != nullptr && indexed->NodeId <= cleared->NodeId) return {};
  const Node* node = maps_->tLinkedMapNodes.Get(tx, KeyOf(indexed->NodeId));
  if (node == nullptr) ThrowDamaged(indexed->NodeId, "is missing");
  std::size_t position = 0;
  for (const BLinkedMapNodeValue& value : node->Values) {
    if (value.Id == id) {
      return {.node_id = indexed->NodeId, .position = position, .value = &value.Value};
    }
    ++position;
  }
  ThrowDamaged(indexed->NodeId, ("does not have the value '" + id + "'").c_str());
}

Edited<AnyLinkedMap::Node> AnyLinkedMap::EditNode(Transaction& tx, std::int64_t node_id) const {
  Edited<Node> node = maps_->tLinkedMapNodes.Edit(tx, KeyOf(node_id));
  if (!node) ThrowDamaged(node_id, "is missing");
  return node;
}

// Values that are short for their number need no measuring: they add at most as much again.
bool AnyLinkedMap::HasRoom(const Node& node, const NodeValue& entry) const {
  if (node.Values.size() >= options_.node_size) return false;
  std::size_t bytes = BytesOf(entry);
  if (bytes <= options_.node_bytes_max / options_.node_size) return true;
  for (const NodeValue& held : node.Values) bytes += BytesOf(held);
  return node.Values.empty() || bytes <= options_.node_bytes_max;
}

std::int64_t AnyLinkedMap::AddValue(Transaction& tx, Root& root, const std::string& id,
                                    AnyBean value, MapEnd end) const {
  const bool head = end == MapEnd::kHead;
  const std::int64_t old_end = head ? root.HeadNodeId : root.TailNodeId;
  BLinkedMapNodeValue entry{.Id = id, .Value = std::move(value)};
  Edited<Node> neighbour;
  if (old_end != 0) {
    neighbour = EditNode(tx, old_end);
    if (HasRoom(*neighbour, entry)) {
      neighbour->Values.Insert(head ? 0 : neighbour->Values.size(), std::move(entry));
      return old_end;
    }
  }
  const std::int64_t fresh = ++root.LastNodeId;
  maps_->tLinkedMapNodes.Insert(tx, KeyOf(fresh),
                                Node{.PrevNodeId = head ? 0 : old_end,
                                     .NextNodeId = head ? old_end : 0,
                                     .Values = {std::move(entry)}});
  if (neighbour) (head ? neighbour->PrevNodeId : neighbour->NextNodeId) = fresh;
  if (head || old_end == 0) root.HeadNodeId = fresh;
  if (!head || old_end == 0) root.TailNodeId = fresh;
  return fresh;
}

// A node that becomes empty leaves the chain but keeps its neighbours: a walk that stands on it, or
// is about to, goes on from there.
void AnyLinkedMap::TakeValue(Transaction& tx, Root& root, const Place& place) const {
  const Edited<Node> node = EditNode(tx, place.node_id);
  node->Values.Erase(place.position);
  if (!node->Values.empty()) return;
  const std::int64_t before = node->PrevNodeId;
  const std::int64_t behind = node->NextNodeId;
  (before == 0 ? root.HeadNodeId : EditNode(tx, before)->NextNodeId) = behind;
  (behind == 0 ? root.TailNodeId : EditNode(tx, behind)->PrevNodeId) = before;
  maps_->tLinkedMapNodes.DelayRemove(tx, KeyOf(place.node_id));
}

std::optional<AnyBean> AnyLinkedMap::Get(Transaction& tx, const std::string& id) const {
  const Place place = Find(tx, id);
  if (place.node_id == 0) return std::nullopt;
  return *place.value;
}

bool AnyLinkedMap::Put(Transaction& tx, const std::string& id, AnyBean value, MapEnd end) {
  const Place place = Find(tx, id);
  if (place.node_id != 0) {
    EditNode(tx, place.node_id)->Values.Update(place.position, [&](BLinkedMapNodeValue& held) {
      held.Value = std::move(value);
    });
    return false;
  }
  const auto root = maps_->tLinkedMaps.GetOrAdd(tx, name_);
  const std::int64_t node_id = AddValue(tx, *root, id, std::move(value), end);
  maps_->tValueIdToNodeId.Put(tx, ValueKey{.Name = name_, .ValueId = id},
                              BLinkedMapNodeId{.NodeId = node_id});
  ++root->Count;
  return true;
}

bool AnyLinkedMap::Remove(Transaction& tx, const std::string& id) {
  const Place place = Find(tx, id);
  if (place.node_id == 0) return false;
  const auto root = maps_->tLinkedMaps.GetOrAdd(tx, name_);
  TakeValue(tx, *root, place);
  maps_->tValueIdToNodeId.Remove(tx, ValueKey{.Name = name_, .ValueId = id});
  --root->Count;
  return true;
}

bool AnyLinkedMap::Move(Transaction& tx, const std::string& id, MapEnd end) {
  const Place place = Find(tx, id);
  if (place.node_id == 0) return false;
  const Root* seen = maps_->tLinkedMaps.Get(tx, name_);
  if (seen == nullptr) ThrowDamaged(place.node_id, "has no root");
  const Node* node = maps_->tLinkedMapNodes.Get(tx, KeyOf(place.node_id));
  const bool there = end == MapEnd::kHead ? seen->HeadNodeId == place.node_id && place.position == 0
                                          : seen->TailNodeId == place.node_id &&
                                                place.position + 1 == node->Values.size();
  if (there) return true;
  const auto root = maps_->tLinkedMaps.Edit(tx, name_);
  AnyBean value = *place.value;
  TakeValue(tx, *root, place);
  const std::int64_t node_id = AddValue(tx, *root, id, std::move(value), end);
  maps_->tValueIdToNodeId.Put(tx, ValueKey{.Name = name_, .ValueId = id},
                              BLinkedMapNodeId{.NodeId = node_id});
  return true;
}

std::int64_t AnyLinkedMap::Count(Transaction& tx) const {
  const Root* root = maps_->tLinkedMaps.Get(tx, name_);
  return root == nullptr ? 0 : root->Count;
}

// --- clear ------------------------------------------------------------------------------------

// The chain is cut off as a whole. Nobody adds to it any more, because nothing leads to it: the
// root has forgotten it and the index does not count for it.
void AnyLinkedMap::Clear(Transaction& tx) {
  const Root* seen = maps_->tLinkedMaps.Get(tx, name_);
  if (seen == nullptr || seen->HeadNodeId == 0) return;
  const auto root = maps_->tLinkedMaps.Edit(tx, name_);
  const BClearJobState state{
      .HeadNodeId = root->HeadNodeId, .TailNodeId = root->TailNodeId, .Name = name_};
  maps_->tLinkedMapClears.Put(tx, name_, BLinkedMapNodeId{.NodeId = root->LastNodeId});
  root->HeadNodeId = 0;
  root->TailNodeId = 0;
  root->Count = 0;
  maps_->delay_remove().StartJob(tx, LinkedMaps::kClearJob, EncodeState(state));
}

bool AnyLinkedMap::RemoveCleared(LinkedMaps& maps, Transaction& tx, std::string& state) {
  ByteReader in(state);
  BClearJobState left;
  left.Decode(in);
  if (!in.ok()) throw std::runtime_error("the state of a clear job is damaged");
  for (int n = 0; n < kNodesInOneStep; ++n) {
    const NodeKey key{.Name = left.Name, .NodeId = left.HeadNodeId};
    const Node* node = maps.tLinkedMapNodes.Get(tx, key);
    if (node == nullptr) return false;
    for (const BLinkedMapNodeValue& value : node->Values) {
      const ValueKey value_key{.Name = left.Name, .ValueId = value.Id};
      const BLinkedMapNodeId* indexed = maps.tValueIdToNodeId.Get(tx, value_key);
      // Else it was put in again since.
      const bool own = indexed != nullptr && indexed->NodeId == left.HeadNodeId;
      if (own) maps.tValueIdToNodeId.Remove(tx, value_key);
    }
    const std::int64_t next = node->NextNodeId;
    maps.tLinkedMapNodes.Remove(tx, key);
    if (left.HeadNodeId == left.TailNodeId || next == 0) return false;
    left.HeadNodeId = next;
  }
  state = EncodeState(left);
  return true;
}

// --- walk -------------------------------------------------------------------------------------

Result<std::int64_t> AnyLinkedMap::Cleared() const {
  const Result<std::optional<BLinkedMapNodeId>> cleared = maps_->tLinkedMapClears.ReadCopy(name_);
  if (!cleared.ok()) return cleared.error();
  return cleared.value() ? cleared.value()->NodeId : 0;
}

// In this order: a clear between the two is noticed when the first node has been read.
Result<AnyLinkedMap::Start> AnyLinkedMap::StartOf(MapEnd from) const {
  const Result<std::int64_t> cleared = Cleared();
  if (!cleared.ok()) return cleared.error();
  const Result<std::optional<Root>> root = maps_->tLinkedMaps.ReadCopy(name_);
  if (!root.ok()) return root.error();
  if (!root.value()) return Start{.cleared = cleared.value(), .node_id = 0};
  return Start{
      .cleared = cleared.value(),
      .node_id = from == MapEnd::kHead ? root.value()->HeadNodeId : root.value()->TailNodeId};
}

// The next node was removed and collected. The one before, if it is still in the chain, knows what
// comes now.
Result<std::int64_t> AnyLinkedMap::Detour(std::int64_t before, std::int64_t missing,
                                          MapEnd from) const {
  std::int64_t next = missing;
  if (before == 0) {
    const Result<Start> start = StartOf(from);
    if (!start.ok()) return start.error();
    next = start.value().node_id;
  } else {
    const Result<std::optional<Node>> node = maps_->tLinkedMapNodes.ReadCopy(KeyOf(before));
    if (!node.ok()) return node.error();
    if (node.value()) {
      next = from == MapEnd::kHead ? node.value()->NextNodeId : node.value()->PrevNodeId;
    }
  }
  if (next != missing) return next;
  return Error(ErrorCode::kUnavailable,
               fmt::format("the walk of linked map '{}' stood still at node {} until node {} was "
                           "collected: begin again, or let removed nodes stay for longer",
                           name_, before, missing));
}

Result<std::size_t> AnyLinkedMap::Walk(
    FunctionRef<bool(const std::string& id, const AnyBean& value)> visit, MapEnd from) const {
  std::size_t count = 0;
  Result<Start> start = StartOf(from);
  if (!start.ok()) return start.error();
  std::int64_t before = 0;
  std::int64_t at = start.value().node_id;
  while (at != 0) {
    const Result<std::optional<Node>> read = maps_->tLinkedMapNodes.ReadCopy(KeyOf(at));
    if (!read.ok()) return read.error();
    const Result<std::int64_t> cleared = Cleared();
    if (!cleared.ok()) return cleared.error();
    if (cleared.value() != start.value().cleared) {
      // What was there has gone. What is there now was not given yet.
      start = StartOf(from);
      if (!start.ok()) return start.error();
      before = 0;
      at = start.value().node_id;
      continue;
    }
    if (!read.value()) {
      const Result<std::int64_t> next = Detour(before, at, from);
      if (!next.ok()) return next.error();
      at = next.value();
      continue;
    }
    const Node& node = *read.value();
    const std::size_t size = node.Values.size();
    for (std::size_t i = 0; i < size; ++i) {
      const BLinkedMapNodeValue& value = node.Values[from == MapEnd::kHead ? i : size - 1 - i];
      ++count;
      if (!visit(value.Id, value.Value)) return count;
    }
    before = at;
    at = from == MapEnd::kHead ? node.NextNodeId : node.PrevNodeId;
  }
  return count;
}

}  // namespace zeze
