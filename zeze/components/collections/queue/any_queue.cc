#include "zeze/components/collections/queue/any_queue.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "Zeze/Builtin/Collections/Queue.h"
#include "zeze/base/clock.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using Zeze::Builtin::Collections::Queue::BQueueNodeValue;

std::int64_t NowMs(const Transaction& tx) {
  const auto now = tx.engine().options().clock->SystemNow().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

AnyQueueEntry EntryOf(const BQueueNodeValue& value) {
  return {
      .added = std::chrono::system_clock::time_point(std::chrono::milliseconds(value.Timestamp)),
      .value = value.Value};
}

}  // namespace

AnyQueue::AnyQueue(Queues& queues, std::string name, QueueOptions options)
    : queues_(&queues), name_(std::move(name)), options_(options) {
  ZEZE_REQUIRE(options_.node_size > 0, "the nodes of queue " + name_ + " have no room");
}

// A key without a name: written by Zeze before nodes had names.
AnyQueue::NodeKey AnyQueue::HeadOf(const Root& root) const {
  if (!root.HeadNodeKey.Name.empty()) return root.HeadNodeKey;
  return {.Name = name_, .NodeId = root.HeadNodeId};
}

AnyQueue::NodeKey AnyQueue::TailOf(const Root& root) const {
  if (!root.TailNodeKey.Name.empty()) return root.TailNodeKey;
  return {.Name = name_, .NodeId = root.TailNodeId};
}

AnyQueue::NodeKey AnyQueue::NextOf(const NodeKey& key, const Node& node) {
  if (!node.NextNodeKey.Name.empty()) return node.NextNodeKey;
  return {.Name = key.Name, .NodeId = node.NextNodeId};
}

void AnyQueue::SetHead(Root& root, NodeKey key) const {
  root.HeadNodeKey = std::move(key);
  root.HeadNodeId = 0;
}

void AnyQueue::SetTail(Root& root, NodeKey key) const {
  root.TailNodeKey = std::move(key);
  root.TailNodeId = 0;
}

void AnyQueue::Detach(Root& root) const {
  SetHead(root, {.Name = name_, .NodeId = 0});
  SetTail(root, {.Name = name_, .NodeId = 0});
  root.Count = 0;
  ++root.DetachCount;
}

// Values that are short for their number need no measuring: they add at most as much again.
bool AnyQueue::HasRoom(const Node& node, const AnyBean& value) const {
  if (node.Values.size() >= options_.node_size) return false;
  if (value.bytes().size() <= options_.node_bytes_max / options_.node_size) return true;
  std::size_t bytes = value.bytes().size();
  for (const BQueueNodeValue& held : node.Values) bytes += held.Value.bytes().size();
  return node.Values.empty() || bytes <= options_.node_bytes_max;
}

void AnyQueue::ThrowMissing(const NodeKey& key) const {
  throw std::runtime_error(fmt::format("queue '{}' is damaged: its node {} of '{}' is missing",
                                       name_, key.NodeId, key.Name));
}

void AnyQueue::Add(Transaction& tx, AnyBean value) {
  const auto root = queues_->tQueues.GetOrAdd(tx, name_);
  const NodeKey tail = TailOf(*root);
  ++root->Count;
  BQueueNodeValue entry{.Timestamp = NowMs(tx), .Value = std::move(value)};
  Edited<Node> last;
  if (tail.NodeId != 0) {
    last = queues_->tQueueNodes.Edit(tx, tail);
    if (!last) ThrowMissing(tail);
    if (HasRoom(*last, entry.Value)) {
      last->Values.PushBack(std::move(entry));
      return;
    }
  }
  const NodeKey fresh{.Name = name_, .NodeId = ++root->LastNodeId};
  queues_->tQueueNodes.Insert(tx, fresh, Node{.Values = {std::move(entry)}});
  if (last) {
    last->NextNodeKey = fresh;
    last->NextNodeId = 0;
  } else {
    SetHead(*root, fresh);
  }
  SetTail(*root, fresh);
}

void AnyQueue::Push(Transaction& tx, AnyBean value) {
  const auto root = queues_->tQueues.GetOrAdd(tx, name_);
  const NodeKey head = HeadOf(*root);
  ++root->Count;
  BQueueNodeValue entry{.Timestamp = NowMs(tx), .Value = std::move(value)};
  if (head.NodeId != 0) {
    const Node* first = queues_->tQueueNodes.Get(tx, head);
    if (first == nullptr) ThrowMissing(head);
    if (HasRoom(*first, entry.Value)) {
      queues_->tQueueNodes.Edit(tx, head)->Values.Insert(0, std::move(entry));
      return;
    }
  }
  const NodeKey fresh{.Name = name_, .NodeId = ++root->LastNodeId};
  queues_->tQueueNodes.Insert(tx, fresh, Node{.Values = {std::move(entry)}, .NextNodeKey = head});
  SetHead(*root, fresh);
  if (head.NodeId == 0) SetTail(*root, fresh);
}

// The node may be the record itself: it is not looked at any more once that is removed.
void AnyQueue::DropHead(Transaction& tx, Root& root, const NodeKey& head, const Node& node) const {
  NodeKey next = NextOf(head, node);
  root.Count -= static_cast<std::int64_t>(node.Values.size());
  queues_->tQueueNodes.Remove(tx, head);
  if (next.NodeId == 0) SetTail(root, {.Name = name_, .NodeId = 0});
  SetHead(root, std::move(next));
}

std::optional<AnyQueueEntry> AnyQueue::Poll(Transaction& tx) {
  const Root* seen = queues_->tQueues.Get(tx, name_);
  if (seen == nullptr || HeadOf(*seen).NodeId == 0) return std::nullopt;
  const auto root = queues_->tQueues.Edit(tx, name_);
  while (true) {
    const NodeKey head = HeadOf(*root);
    if (head.NodeId == 0) return std::nullopt;
    const auto node = queues_->tQueueNodes.Edit(tx, head);
    if (!node) ThrowMissing(head);
    std::optional<AnyQueueEntry> first;
    if (!node->Values.empty()) {
      first = EntryOf(node->Values[0]);
      node->Values.Erase(0);
      --root->Count;
    }
    if (node->Values.empty()) DropHead(tx, *root, head, *node);
    if (first) return first;
  }
}

std::optional<AnyQueueEntry> AnyQueue::Peek(Transaction& tx) const {
  const Root* root = queues_->tQueues.Get(tx, name_);
  if (root == nullptr) return std::nullopt;
  for (NodeKey at = HeadOf(*root); at.NodeId != 0;) {
    const Node* node = queues_->tQueueNodes.Get(tx, at);
    if (node == nullptr) ThrowMissing(at);
    if (!node->Values.empty()) return EntryOf(node->Values[0]);
    at = NextOf(at, *node);
  }
  return std::nullopt;
}

std::int64_t AnyQueue::Size(Transaction& tx) const {
  const Root* root = queues_->tQueues.Get(tx, name_);
  return root == nullptr ? 0 : root->Count;
}

void AnyQueue::Clear(Transaction& tx) {
  const Root* root = queues_->tQueues.Get(tx, name_);
  if (root == nullptr || HeadOf(*root).NodeId == 0) return;
  queues_->Cleared().Append(tx, *this);
  tx.AfterCommit([queues = queues_] { queues->CollectSoon(); });
}

void AnyQueue::Append(Transaction& tx, const AnyQueue& other) {
  ZEZE_REQUIRE(name_ != other.name_, "queue " + name_ + " was appended to itself");
  const Root* seen = queues_->tQueues.Get(tx, other.name_);
  if (seen == nullptr || other.HeadOf(*seen).NodeId == 0) return;
  const auto from = queues_->tQueues.Edit(tx, other.name_);
  const auto to = queues_->tQueues.GetOrAdd(tx, name_);
  const NodeKey tail = TailOf(*to);
  if (tail.NodeId == 0) {
    SetHead(*to, other.HeadOf(*from));
  } else {
    const auto last = queues_->tQueueNodes.Edit(tx, tail);
    if (!last) ThrowMissing(tail);
    last->NextNodeKey = other.HeadOf(*from);
    last->NextNodeId = 0;
  }
  SetTail(*to, other.TailOf(*from));
  to->Count += from->Count;
  other.Detach(*from);
}

std::size_t AnyQueue::DropNodes(Transaction& tx, std::size_t nodes_max) {
  const Root* seen = queues_->tQueues.Get(tx, name_);
  if (seen == nullptr || HeadOf(*seen).NodeId == 0) return 0;
  const auto root = queues_->tQueues.Edit(tx, name_);
  std::size_t dropped = 0;
  for (; dropped < nodes_max; ++dropped) {
    const NodeKey head = HeadOf(*root);
    if (head.NodeId == 0) break;
    const Node* node = queues_->tQueueNodes.Get(tx, head);
    if (node == nullptr) ThrowMissing(head);
    DropHead(tx, *root, head, *node);
  }
  return dropped;
}

// Nodes go only from the head. So when the next one has gone, all that was before it has gone too:
// what the queue has now was not given yet, from its head on. The root is read after each node, to
// see whether the node was still a part of this queue.
Result<std::size_t> AnyQueue::Walk(FunctionRef<bool(const AnyQueueEntry&)> visit) const {
  std::size_t count = 0;
  Result<std::optional<Root>> root = queues_->tQueues.ReadCopy(name_);
  if (!root.ok()) return root.error();
  if (!root.value()) return count;
  std::int64_t detach_count = root.value()->DetachCount;
  NodeKey at = HeadOf(*root.value());
  while (at.NodeId != 0) {
    const Result<std::optional<Node>> node = queues_->tQueueNodes.ReadCopy(at);
    if (!node.ok()) return node.error();
    root = queues_->tQueues.ReadCopy(name_);
    if (!root.ok()) return root.error();
    if (!root.value()) return count;
    const bool detached = root.value()->DetachCount != detach_count;
    if (detached || !node.value()) {
      detach_count = root.value()->DetachCount;
      NodeKey head = HeadOf(*root.value());
      if (!detached && head == at) {
        return Error(ErrorCode::kCorrupt,
                     fmt::format("queue '{}' is damaged: its node {} of '{}' is missing", name_,
                                 at.NodeId, at.Name));
      }
      at = std::move(head);
      continue;
    }
    for (const BQueueNodeValue& value : node.value()->Values) {
      ++count;
      if (!visit(EntryOf(value))) return count;
    }
    at = NextOf(at, *node.value());
  }
  return count;
}

}  // namespace zeze
