// DependencyGraph: the unsaved records that logs have named. Records that a transaction tied
// together are one group: they are saved in one flush, or none of them is (rule 26).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/record.h"

namespace zeze::internal {

// Used by one thread at a time: the one that flushes. Owns Record::node.
class DependencyGraph {
 public:
  // Without groups all records are saved together.
  explicit DependencyGraph(bool groups);
  ~DependencyGraph();
  DependencyGraph(const DependencyGraph&) = delete;
  DependencyGraph& operator=(const DependencyGraph&) = delete;

  // What a commit has logged, or the lowering of a right.
  void Take(const CommitLog::Entry& entry);

  // Chooses what the next flush saves: everything, or the groups whose tickets are urgent. Without
  // groups both choose everything.
  void ChooseAll();
  void ChooseUrgent();
  std::size_t chosen() const { return chosen_.size(); }
  Record& record(std::size_t n) const { return *nodes_[chosen_[n]].record; }

  // The chosen records are saved: forgets them, and returns the tickets that this completes.
  DurabilityTicket* ForgetChosen();

 private:
  // A record in a forest of groups (union by size) and in its group's ring.
  struct Node {
    std::uint32_t parent;
    std::uint32_t next;
    std::uint32_t size;
    Record* record;
    DurabilityTicket* tickets;
  };

  std::uint32_t NodeOf(Record* record);
  std::uint32_t Find(std::uint32_t node);
  std::uint32_t Union(std::uint32_t a, std::uint32_t b);
  void Attach(std::uint32_t root, DurabilityTicket* ticket);

  const bool groups_;
  std::vector<Node> nodes_;  // [0] is unused.
  std::vector<std::uint32_t> free_nodes_;
  std::vector<std::uint32_t> urgent_nodes_;    // Their groups have urgent tickets.
  DurabilityTicket* loose_tickets_ = nullptr;  // Tied to no record, or without groups.
  std::vector<std::uint32_t> chosen_;
};

}  // namespace zeze::internal
