#include "zeze/net/internal/rpc_table.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace zeze::internal {

RpcTable::RpcTable(std::size_t calls_max) : calls_max_(std::min(calls_max, kCallsMax)) {}

std::int64_t RpcTable::SessionId(std::uint32_t index, const Slot& slot) {
  // Plus one: the first id is 1, as that of other implementations.
  return static_cast<std::int64_t>(slot.use * kCallsMax + index) + 1;
}

std::uint32_t RpcTable::IndexOf(std::int64_t session_id) const {
  if (session_id < 1) return kNone;
  const auto index =
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(session_id - 1) % kCallsMax);
  if (index >= slots_.size()) return kNone;
  const Slot& slot = slots_[index];
  return slot.used && SessionId(index, slot) == session_id ? index : kNone;
}

std::optional<std::int64_t> RpcTable::Add(Call&& call, std::chrono::nanoseconds now,
                                          std::chrono::nanoseconds timeout) {
  if (size_ >= calls_max_) return std::nullopt;
  std::uint32_t index = first_free_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    first_free_ = slots_[index].next;
  }
  Slot& slot = slots_[index];
  slot.call = std::move(call);
  slot.deadline = now + timeout;
  slot.sequence = added_++;
  slot.used = true;
  ++size_;
  // Multiplied, so that round numbers of milliseconds fall into different lists.
  const auto mixed = static_cast<std::uint64_t>(timeout.count()) * 0x9E3779B97F4A7C15;
  Insert(index, (mixed >> 32) % kListCount);
  return SessionId(index, slot);
}

void RpcTable::Insert(std::uint32_t index, std::size_t list_index) {
  List& list = lists_[list_index];
  Slot& slot = slots_[index];
  slot.list = static_cast<std::uint8_t>(list_index);
  std::uint32_t before = list.last;
  while (before != kNone && slots_[before].deadline > slot.deadline) {
    before = slots_[before].previous;
  }
  slot.previous = before;
  slot.next = before == kNone ? list.first : slots_[before].next;
  (before == kNone ? list.first : slots_[before].next) = index;
  (slot.next == kNone ? list.last : slots_[slot.next].previous) = index;
}

RpcTable::Call RpcTable::Remove(std::uint32_t index) {
  Slot& slot = slots_[index];
  List& list = lists_[slot.list];
  (slot.previous == kNone ? list.first : slots_[slot.previous].next) = slot.next;
  (slot.next == kNone ? list.last : slots_[slot.next].previous) = slot.previous;
  slot.used = false;
  ++slot.use;
  slot.next = first_free_;
  first_free_ = index;
  --size_;
  return std::move(slot.call);
}

std::optional<RpcTable::Call> RpcTable::Take(std::int64_t session_id) {
  const std::uint32_t index = IndexOf(session_id);
  if (index == kNone) return std::nullopt;
  return Remove(index);
}

const RpcTable::Call* RpcTable::Find(std::int64_t session_id) const {
  const std::uint32_t index = IndexOf(session_id);
  return index == kNone ? nullptr : &slots_[index].call;
}

std::vector<RpcTable::Call> RpcTable::TakeExpired(std::chrono::nanoseconds now) {
  std::vector<Call> expired;
  for (const List& list : lists_) {
    while (list.first != kNone && slots_[list.first].deadline <= now) {
      expired.push_back(Remove(list.first));
    }
  }
  return expired;
}

std::vector<RpcTable::Call> RpcTable::TakeAll() {
  std::vector<std::uint32_t> used;
  used.reserve(size_);
  for (std::uint32_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].used) used.push_back(index);
  }
  std::sort(used.begin(), used.end(), [this](std::uint32_t a, std::uint32_t b) {
    return slots_[a].sequence < slots_[b].sequence;
  });
  std::vector<Call> calls;
  calls.reserve(used.size());
  for (const std::uint32_t index : used) calls.push_back(Remove(index));
  return calls;
}

std::optional<std::chrono::nanoseconds> RpcTable::NextDeadline() const {
  std::optional<std::chrono::nanoseconds> next;
  if (size_ == 0) return next;
  for (const List& list : lists_) {
    if (list.first == kNone) continue;
    const std::chrono::nanoseconds deadline = slots_[list.first].deadline;
    next = next ? std::min(*next, deadline) : deadline;
  }
  return next;
}

}  // namespace zeze::internal
