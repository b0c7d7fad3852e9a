// Graph: who must come before whom.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/history/analysis.h"
#include "tests/history/checker.h"
#include "tests/history/history.h"

namespace zeze::history::internal {

// The transactions that take part are the nodes 0 .. node_count() - 1; the edges are ww, wr, rw
// and, if asked for, the order in each thread.
//
// Real-time order needs no edges. A cycle with two such edges a -> b and c -> d can always be cut
// short: if a ended first it ended before d began, too, else c ended before b began; one of the two
// closes a smaller cycle. So there is a cycle with real-time edges exactly if some transaction
// leads by data to one that had ended before it began (cycle.h), and EndedBefore is all that is
// needed.
class Graph {
 public:
  struct Edge {
    std::uint32_t to = 0;
    std::uint32_t kind : 3 = 0;        // A DependencyKind.
    std::uint32_t operation : 29 = 0;  // The read of wr and rw, the append of ww.
  };

  explicit Graph(const Analysis& analysis);

  std::size_t node_count() const { return transactions_.size(); }
  std::size_t edge_count() const { return edges_.size(); }

  // Index in the history.
  std::uint32_t transaction(std::uint32_t node) const { return transactions_[node]; }

  std::span<const Edge> edges(std::uint32_t node) const {
    return std::span(edges_).subspan(edge_begin_[node], edge_begin_[node + 1] - edge_begin_[node]);
  }

  bool real_time() const { return real_time_; }
  std::uint64_t begin_stamp(std::uint32_t node) const;
  // UINT64_MAX if nobody knows when it ended.
  std::uint64_t end_stamp(std::uint32_t node) const;
  bool EndedBefore(std::uint32_t first, std::uint32_t second) const {
    return end_stamp(first) < begin_stamp(second);
  }

 private:
  template <typename Emit>
  void ForEachEdge(const Emit& emit) const;
  template <typename Emit>
  void ForEachEdgeOfKey(std::uint32_t key, const Emit& emit) const;
  template <typename Emit>
  void ForEachEdgeOfUnplaced(std::uint32_t key, const Emit& emit) const;
  template <typename Emit>
  void ForEachSessionEdge(const Emit& emit) const;

  void ChooseNodes();

  const Analysis& analysis_;
  bool real_time_;
  std::vector<std::uint32_t> transactions_;  // Of each node.
  std::vector<std::uint32_t> nodes_;         // Of each transaction, or kNone.
  std::vector<std::uint64_t> edge_begin_;
  std::vector<Edge> edges_;
};

}  // namespace zeze::history::internal
