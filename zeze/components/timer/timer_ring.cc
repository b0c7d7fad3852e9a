#include "zeze/components/timer/timer_ring.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

std::size_t ShardOfThread() {
  static std::atomic<std::size_t> next = 0;
  thread_local const std::size_t shard = next.fetch_add(1, std::memory_order_relaxed);
  return shard;
}

// The node that a transaction has made itself: others do not know it yet. Transactions of another
// life of the server, in the same process, may have the same address and serial.
struct OwnNode {
  const TimerRing* ring = nullptr;
  std::int64_t joined = 0;
  const Transaction* tx = nullptr;
  std::uint64_t serial = 0;
  std::int64_t node_id = 0;
};
thread_local OwnNode own_node;

// About what it takes in its node.
std::size_t BytesOf(const std::string& timer_id, const TimerBean& timer) {
  return 2 * timer_id.size() + timer.HandleName.size() + OneByOneKey(timer).size() +
         timer.CustomData.bytes().size();
}

}  // namespace

TakeOverChoice ChooseTakeOver(const TimerRoot* source, std::int64_t serial, std::int64_t version) {
  if (source == nullptr || source->HeadNodeId == 0) return TakeOverChoice::kNothing;
  const bool left = source->LeftSerialNo != 0 && source->LeftSerialNo == source->LoadSerialNo;
  if (source->LoadSerialNo != serial && !left) return TakeOverChoice::kNothing;
  return source->Version > version ? TakeOverChoice::kNewer : TakeOverChoice::kTake;
}

TimerRing::TimerRing(TimerTables& tables, AutoKey& node_ids, Options options)
    : tables_(tables), node_ids_(node_ids), options_(std::move(options)) {
  ZEZE_CHECK(options_.timers_per_node > 0);
}

TimerRing::Part TimerRing::Join(Transaction& tx, std::int64_t& serial) {
  const auto root = tables_.tNodeRoot.GetOrAdd(tx, options_.server_id);
  root->LoadSerialNo += 1;
  serial = root->LoadSerialNo;
  return {.head = root->HeadNodeId, .tail = root->TailNodeId, .serial = serial};
}

void TimerRing::Joined(std::int64_t serial) {
  for (std::atomic<std::int64_t>& node : filling_) node.store(0, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  rooms_.clear();
  ours_.clear();
  serial_.store(serial, std::memory_order_release);
}

TimerRing::Part TimerRing::Whole(Transaction& tx) {
  const TimerRoot* root = tables_.tNodeRoot.Get(tx, options_.server_id);
  if (root == nullptr || root->LoadSerialNo != serial()) return {};
  return {.head = root->HeadNodeId, .tail = root->TailNodeId, .serial = root->LoadSerialNo};
}

bool TimerRing::IsStillOurs(Transaction& tx, std::int64_t serial) {
  const TimerRoot* root = tables_.tNodeRoot.Get(tx, options_.server_id);
  return root != nullptr && root->LoadSerialNo == serial;
}

void TimerRing::Loaded(std::int64_t node_id, std::int64_t serial, bool empty) {
  NoteOurs(node_id, serial);
  if (empty) NoteRoom(node_id, true);
}

void TimerRing::NoteOurs(std::int64_t node_id, std::int64_t serial) {
  const MutexLock lock(mutex_);
  if (serial_.load(std::memory_order_relaxed) == serial) ours_.insert(node_id);
}

bool TimerRing::IsOurs(std::int64_t node_id, std::int64_t serial) {
  const MutexLock lock(mutex_);
  return serial_.load(std::memory_order_relaxed) == serial && ours_.contains(node_id);
}

// Every change of the ring reads the root: a take-over, which writes it, and this exclude each
// other.
void TimerRing::CheckOwner(Transaction& tx) {
  if (IsStillOurs(tx, serial())) return;
  if (options_.on_taken_over) options_.on_taken_over();
  tx.AbortFailed(result_code::kBusy,
                 fmt::format("the timers of server {} have been taken over; it begins anew",
                             options_.server_id));
}

std::int64_t TimerRing::Add(Transaction& tx, const std::string& timer_id, TimerBean timer) {
  CheckOwner(tx);
  if (BytesOf(timer_id, timer) > options_.node_bytes_max / 2) {  // No node is left half empty.
    const std::int64_t fresh = NewNode(tx, options_.server_id);
    tables_.tNodes.Edit(tx, fresh)->Timers.Put(timer_id, std::move(timer));
    return fresh;
  }
  if (tables_.tNodeRoot.Get(tx, options_.server_id)->Version < options_.version) {
    tables_.tNodeRoot.Edit(tx, options_.server_id)->Version = options_.version;
  }
  std::atomic<std::int64_t>& filling = filling_[ShardOfThread() % kShards];
  const bool own = own_node.ring == this && own_node.joined == serial() && own_node.tx == &tx &&
                   own_node.serial == tx.serial();
  std::int64_t node_id = own ? own_node.node_id : filling.load(std::memory_order_relaxed);
  while (true) {
    if (node_id == 0) node_id = TakeRoom();
    if (node_id == 0) {
      node_id = NewNode(tx, options_.server_id);
      own_node = {
          .ring = this, .joined = serial(), .tx = &tx, .serial = tx.serial(), .node_id = node_id};
      tx.AfterCommit([&filling, node_id] { filling.store(node_id, std::memory_order_relaxed); });
    } else if (!own) {
      filling.store(node_id, std::memory_order_relaxed);
    }
    if (const auto node = tables_.tNodes.Edit(tx, node_id);
        node && node->OwnerServerId == options_.server_id &&
        node->Timers.size() < options_.timers_per_node && HasRoom(*node, timer_id, timer)) {
      node->Timers.Put(timer_id, std::move(timer));
      return node_id;
    }
    node_id = 0;
  }
}

bool TimerRing::HasRoom(const TimerNode& node, const std::string& timer_id,
                        const TimerBean& timer) const {
  std::size_t bytes = BytesOf(timer_id, timer);
  if (bytes <= options_.node_bytes_max / options_.timers_per_node) return true;
  for (const auto& [id, other] : node.Timers) {
    if (id == timer_id) continue;
    bytes += BytesOf(id, other);
    if (bytes > options_.node_bytes_max) return false;
  }
  return true;
}

std::int64_t TimerRing::Put(Transaction& tx, std::int64_t node_id, const std::string& timer_id,
                            TimerBean timer) {
  const auto node = tables_.tNodes.Edit(tx, node_id);
  if (HasRoom(*node, timer_id, timer)) {
    node->Timers.Put(timer_id, std::move(timer));
    return node_id;
  }
  CheckOwner(tx);
  Remove(tx, node_id, timer_id);
  const std::int64_t fresh = NewNode(tx, options_.server_id);
  tables_.tNodes.Edit(tx, fresh)->Timers.Put(timer_id, std::move(timer));
  return fresh;
}

std::int64_t TimerRing::TakeRoom() {
  const MutexLock lock(mutex_);
  if (rooms_.empty()) return 0;
  const auto at = rooms_.begin();
  const std::int64_t node_id = *at;
  rooms_.erase(at);
  return node_id;
}

std::int64_t TimerRing::NewNode(Transaction& tx, std::int32_t server_id) {
  const std::int64_t node_id = node_ids_.NextId(tx);
  tables_.tNodes.Insert(tx, node_id, {.OwnerServerId = server_id});
  LinkBefore(tx, server_id, {.head = node_id, .tail = node_id});
  if (server_id != options_.server_id) return node_id;
  const std::int64_t serial = tables_.tNodeRoot.Get(tx, options_.server_id)->LoadSerialNo;
  tx.AfterCommit([this, node_id, serial] { NoteOurs(node_id, serial); });
  return node_id;
}

// The part becomes the beginning of the server's ring.
void TimerRing::LinkBefore(Transaction& tx, std::int32_t server_id, const Part& part) {
  const auto root = tables_.tNodeRoot.GetOrAdd(tx, server_id);
  const std::int64_t old_head = root->HeadNodeId;
  const std::int64_t tail = old_head == 0 ? part.tail : root->TailNodeId;
  tables_.tNodes.Edit(tx, part.head)->PrevNodeId = tail;
  tables_.tNodes.Edit(tx, part.tail)->NextNodeId = old_head == 0 ? part.head : old_head;
  if (old_head != 0) {
    tables_.tNodes.Edit(tx, old_head)->PrevNodeId = part.tail;
    tables_.tNodes.Edit(tx, tail)->NextNodeId = part.head;
  }
  root->HeadNodeId = part.head;
  root->TailNodeId = tail;
}

bool TimerRing::Remove(Transaction& tx, std::int64_t node_id, const std::string& timer_id) {
  const auto node = tables_.tNodes.Edit(tx, node_id);
  if (!node || !node->Timers.Erase(timer_id)) return false;
  const std::size_t left = node->Timers.size();
  if (node->OwnerServerId != options_.server_id) return true;
  if (left == 0 || left + 1 == options_.timers_per_node) {
    tx.AfterCommit([this, node_id, empty = left == 0] { NoteRoom(node_id, empty); });
  }
  return true;
}

void TimerRing::NoteRoom(std::int64_t node_id, bool empty) {
  {
    const MutexLock lock(mutex_);
    if (!ours_.contains(node_id)) return;
    if (!empty || rooms_.size() < options_.empty_nodes_max) {
      rooms_.insert(node_id);
      return;
    }
    rooms_.erase(node_id);
  }
  if (options_.on_empty) options_.on_empty(node_id);
}

// Takes a node out of a ring.
void TimerRing::Detach(Transaction& tx, std::int32_t server_id, std::int64_t node_id) {
  const auto* node = tables_.tNodes.Get(tx, node_id);
  const std::int64_t previous = node->PrevNodeId;
  const std::int64_t next = node->NextNodeId;
  const auto root = tables_.tNodeRoot.Edit(tx, server_id);
  if (previous == node_id) {
    root->HeadNodeId = 0;
    root->TailNodeId = 0;
  } else {
    tables_.tNodes.Edit(tx, previous)->NextNodeId = next;
    tables_.tNodes.Edit(tx, next)->PrevNodeId = previous;
    if (root->HeadNodeId == node_id) root->HeadNodeId = next;
    if (root->TailNodeId == node_id) root->TailNodeId = previous;
  }
  tables_.tNodes.Remove(tx, node_id);
}

void TimerRing::Unlink(Transaction& tx, std::int64_t node_id) {
  const auto* node = tables_.tNodes.Get(tx, node_id);
  if (node == nullptr || !node->Timers.empty()) return;
  CheckOwner(tx);
  // Else it is of a ring that this server had, and another one has now.
  if (!IsOurs(node_id, tables_.tNodeRoot.Get(tx, options_.server_id)->LoadSerialNo)) return;
  Detach(tx, options_.server_id, node_id);
  tx.AfterCommit([this, node_id] {
    const MutexLock lock(mutex_);
    ours_.erase(node_id);
  });
}

TakeOverChoice TimerRing::TakeOver(Transaction& tx, std::int32_t source, std::int64_t serial,
                                   Part& part) {
  part = {};
  if (source == options_.server_id) return TakeOverChoice::kNothing;
  const TimerRoot* root = tables_.tNodeRoot.Get(tx, source);
  const TakeOverChoice choice = ChooseTakeOver(root, serial, options_.version);
  if (choice != TakeOverChoice::kTake) return choice;
  CheckOwner(tx);
  part = {.head = root->HeadNodeId, .tail = root->TailNodeId};
  const std::int64_t version = root->Version;
  LinkBefore(tx, options_.server_id, part);
  const auto own = tables_.tNodeRoot.Edit(tx, options_.server_id);
  part.serial = own->LoadSerialNo;
  if (own->Version < version) own->Version = version;
  const auto left = tables_.tNodeRoot.Edit(tx, source);
  left->HeadNodeId = 0;
  left->TailNodeId = 0;
  left->LoadSerialNo += 1;  // If it lives it finds out, before it changes anything.
  left->LeftSerialNo = left->LoadSerialNo;
  left->TakenBy.Add(options_.server_id);
  return choice;
}

TakeOverChoice TimerRing::BeginTakeOver(Transaction& tx, std::int32_t source, std::int64_t serial,
                                        Part& part) {
  part = {};
  if (source == options_.server_id) return TakeOverChoice::kNothing;
  const TakeOverChoice choice =
      ChooseTakeOver(tables_.tNodeRoot.Get(tx, source), serial, options_.version);
  if (choice != TakeOverChoice::kTake) return choice;
  CheckOwner(tx);
  const auto left = tables_.tNodeRoot.Edit(tx, source);
  if (left->LeftSerialNo != left->LoadSerialNo) {
    left->LoadSerialNo += 1;
    left->LeftSerialNo = left->LoadSerialNo;
  }
  left->TakenBy.Add(options_.server_id);
  part = {.head = left->HeadNodeId, .tail = left->TailNodeId};
  return choice;
}

bool TimerRing::HasLeft(Transaction& tx, std::int32_t source) {
  const TimerRoot* root = tables_.tNodeRoot.Get(tx, source);
  return root != nullptr && root->LeftSerialNo != 0 && root->LeftSerialNo == root->LoadSerialNo;
}

TimerRing::Part TimerRing::Of(Transaction& tx, std::int32_t server_id) {
  const TimerRoot* root = tables_.tNodeRoot.Get(tx, server_id);
  if (root == nullptr) return {};
  return {.head = root->HeadNodeId, .tail = root->TailNodeId};
}

std::int64_t TimerRing::Move(Transaction& tx, std::int64_t node_id, const std::string& timer_id,
                             TimerBean timer) {
  Remove(tx, node_id, timer_id);
  return Add(tx, timer_id, std::move(timer));
}

void TimerRing::UnlinkFrom(Transaction& tx, std::int32_t source, std::int64_t node_id) {
  const auto* node = tables_.tNodes.Get(tx, node_id);
  if (node != nullptr && node->Timers.empty() && HasLeft(tx, source)) Detach(tx, source, node_id);
}

void TimerRing::NoteGuest(Transaction& tx, std::int32_t home) {
  const TimerRoot* root = tables_.tNodeRoot.Get(tx, home);
  if (root != nullptr && root->TakenBy.Contains(options_.server_id)) return;
  tables_.tNodeRoot.GetOrAdd(tx, home)->TakenBy.Add(options_.server_id);
}

}  // namespace zeze
