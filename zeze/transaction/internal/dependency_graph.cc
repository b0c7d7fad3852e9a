#include "zeze/transaction/internal/dependency_graph.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/record.h"

namespace zeze::internal {

DependencyGraph::DependencyGraph(bool groups) : groups_(groups) {
  nodes_.emplace_back();
}

// Nobody completes these tickets any more. The records are gone.
DependencyGraph::~DependencyGraph() {
  DropTickets(loose_tickets_);
  for (const Node& node : nodes_) DropTickets(node.tickets);
}

void DependencyGraph::Take(const CommitLog::Entry& entry) {
  std::uint32_t root = 0;
  for (std::size_t n = 0; n < entry.size(); ++n) {
    const std::uint32_t node = NodeOf(entry.record(n));
    if (node == 0) continue;
    if (groups_) root = root == 0 ? Find(node) : Union(root, Find(node));
  }
  if (entry.ticket() != nullptr) Attach(root, entry.ticket());
}

// A record that is clean by now is in the storage with all it depended on: no tie any more. Looked
// at under its lock: a right that is lowered gives a clean record a new version in two steps, and
// between them it looks unsaved. It would be written later, over what its next owner has saved.
std::uint32_t DependencyGraph::NodeOf(Record* record) {
  if (record->node != 0) return record->node;
  const std::uint64_t word = LockRecord(*record);
  const bool dirty = record->Dirty(word);
  UnlockRecord(*record, word);
  if (!dirty) return 0;
  std::uint32_t node = 0;
  if (free_nodes_.empty()) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
  }
  nodes_[node] = {.parent = node, .next = node, .size = 1, .record = record, .tickets = nullptr};
  record->node = node;
  return node;
}

std::uint32_t DependencyGraph::Find(std::uint32_t node) {
  while (nodes_[node].parent != node) {
    nodes_[node].parent = nodes_[nodes_[node].parent].parent;
    node = nodes_[node].parent;
  }
  return node;
}

std::uint32_t DependencyGraph::Union(std::uint32_t a, std::uint32_t b) {
  if (a == b) return a;
  if (nodes_[a].size < nodes_[b].size) std::swap(a, b);
  Node& root = nodes_[a];
  Node& other = nodes_[b];
  other.parent = a;
  root.size += other.size;
  std::swap(root.next, other.next);  // Two rings become one.
  if (other.tickets != nullptr) {
    DurabilityTicket* last = other.tickets;
    while (last->next != nullptr) last = last->next;
    last->next = root.tickets;
    root.tickets = std::exchange(other.tickets, nullptr);
  }
  return a;
}

void DependencyGraph::Attach(std::uint32_t root, DurabilityTicket* ticket) {
  if (root == 0) {
    ticket->next = std::exchange(loose_tickets_, ticket);
    return;
  }
  if (ticket->urgent) urgent_nodes_.push_back(root);
  ticket->next = std::exchange(nodes_[root].tickets, ticket);
}

void DependencyGraph::ChooseAll() {
  chosen_.clear();
  for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].record != nullptr) chosen_.push_back(i);
  }
}

// Not by a look at all nodes: a small group is saved beside a million records that can wait.
void DependencyGraph::ChooseUrgent() {
  if (!groups_) return ChooseAll();
  chosen_.clear();
  std::vector<std::uint32_t> roots;
  roots.reserve(urgent_nodes_.size());
  for (const std::uint32_t node : urgent_nodes_) roots.push_back(Find(node));
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  for (const std::uint32_t root : roots) {
    std::uint32_t member = root;
    do {
      chosen_.push_back(member);
      member = nodes_[member].next;
    } while (member != root);
  }
}

DurabilityTicket* DependencyGraph::ForgetChosen() {
  DurabilityTicket* tickets = std::exchange(loose_tickets_, nullptr);
  const auto take = [&tickets](DurabilityTicket* list) {
    while (list != nullptr) {
      DurabilityTicket* next = std::exchange(list->next, tickets);
      tickets = std::exchange(list, next);
    }
  };
  for (const std::uint32_t member : chosen_) {
    Node& node = nodes_[member];
    take(node.tickets);
    node.record->node = 0;
    node = {};
    free_nodes_.push_back(member);
  }
  urgent_nodes_.clear();  // All of them were chosen.
  return tickets;
}

}  // namespace zeze::internal
