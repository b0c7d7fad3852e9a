#include "tests/history/cycle.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/history/checker.h"
#include "tests/history/graph.h"
#include "tests/history/index_map.h"
#include "zeze/base/check.h"

namespace zeze::history::internal {

namespace {

// Tarjan's algorithm with an explicit stack (a history can be a path of a million transactions).
// Calls leave(nodes) for each component, a component after all that it leads to.
template <typename Leave>
void ForEachComponent(const Graph& graph, const Leave& leave) {
  struct Frame {
    std::uint32_t node;
    std::uint32_t next_edge;
  };
  std::vector<std::uint32_t> index(graph.node_count(), kNone);
  std::vector<std::uint32_t> low(graph.node_count(), kNone);  // kNone: component is known.
  std::vector<std::uint32_t> path;
  std::vector<Frame> frames;
  std::uint32_t next_index = 0;
  const auto enter = [&](std::uint32_t node) {
    index[node] = low[node] = next_index++;
    path.push_back(node);
    frames.push_back({node, 0});
  };
  const auto finish = [&](std::uint32_t root) {
    std::size_t first = path.size();
    do {
      --first;
      low[path[first]] = kNone;
    } while (path[first] != root);
    leave(std::span(path).subspan(first));
    path.resize(first);
  };
  for (std::uint32_t root = 0; root < graph.node_count(); ++root) {
    if (index[root] != kNone) continue;
    enter(root);
    while (!frames.empty()) {
      const std::uint32_t node = frames.back().node;
      if (frames.back().next_edge < graph.edges(node).size()) {
        const std::uint32_t to = graph.edges(node)[frames.back().next_edge++].to;
        if (index[to] == kNone) {
          enter(to);
        } else if (low[to] != kNone) {
          low[node] = std::min(low[node], index[to]);
        }
        continue;
      }
      const std::uint32_t own_low = low[node];
      frames.pop_back();
      if (own_low == index[node]) finish(node);
      if (!frames.empty()) {
        std::uint32_t& above = low[frames.back().node];
        above = std::min(above, own_low);
      }
    }
  }
}

class Finder {
 public:
  Finder(const Graph& graph, std::uint64_t steps_max)
      : graph_(graph),
        steps_max_(steps_max),
        tangle_of_(graph.node_count(), kNone),
        earliest_end_(graph.node_count(), UINT64_MAX),
        visit_(graph.node_count(), 0),
        parent_(graph.node_count()) {}

  Cycles Run() {
    ForEachComponent(graph_, [this](std::span<std::uint32_t> nodes) { AddComponent(nodes); });
    Cycles found;
    for (std::uint32_t i = 0; i < tangles_.size(); ++i) {
      tangle_ = i;
      Search(tangles_[i], found);
    }
    tangle_ = kNone;
    for (const auto& stretch : Stretches()) Search(stretch, found);
    std::ranges::stable_sort(found.cycles, {}, [](const Cycle& cycle) {
      return std::pair(cycle.steps.size(), IsRealTime(cycle.steps.back()));
    });
    return found;
  }

 private:
  static bool IsRealTime(const Step& step) {
    return step.edge.kind == static_cast<std::uint32_t>(DependencyKind::kRealTime);
  }

  // Components come after those that they lead to, so earliest_end_ of all successors is known.
  void AddComponent(std::span<std::uint32_t> nodes) {
    if (nodes.size() > 1) {
      std::ranges::sort(nodes);
      for (const std::uint32_t node : nodes) {
        tangle_of_[node] = static_cast<std::uint32_t>(tangles_.size());
      }
      tangles_.emplace_back(nodes.begin(), nodes.end());
      return;
    }
    if (!graph_.real_time()) return;
    const std::uint32_t node = nodes[0];
    std::uint64_t earliest = graph_.end_stamp(node);
    for (const Graph::Edge& edge : graph_.edges(node)) {
      if (tangle_of_[edge.to] == kNone) earliest = std::min(earliest, earliest_end_[edge.to]);
    }
    earliest_end_[node] = earliest;
    if (earliest < graph_.begin_stamp(node)) late_.push_back(node);
  }

  // Transactions that lead to one that had ended before they began, in groups whose stretches of
  // time (from that end to their begin) overlap. The latest first: it is the one that read
  // something old, the others mostly lead to it.
  std::vector<std::vector<std::uint32_t>> Stretches() {
    std::ranges::sort(late_, [&](std::uint32_t left, std::uint32_t right) {
      return std::pair(graph_.begin_stamp(left), left) >
             std::pair(graph_.begin_stamp(right), right);
    });
    std::vector<std::vector<std::uint32_t>> stretches;
    std::uint64_t start = 0;
    for (const std::uint32_t node : late_) {
      if (stretches.empty() || graph_.begin_stamp(node) < start) {
        stretches.emplace_back();
        start = UINT64_MAX;
      }
      stretches.back().push_back(node);
      start = std::min(start, earliest_end_[node]);
    }
    return stretches;
  }

  // Short cycles are by far the most common, and short searches from everywhere are cheap. A long
  // cycle is found from anywhere; then only shorter ones are of interest.
  void Search(std::span<const std::uint32_t> sources, Cycles& found) {
    ++found.tangle_count;
    found.tangle_size_max = std::max(found.tangle_size_max, sources.size());
    steps_left_ = steps_max_;
    Cycle best;
    for (std::size_t length_max = 2; length_max <= 4 && best.steps.empty(); ++length_max) {
      for (const std::uint32_t source : sources) {
        if (SearchFrom(source, length_max, best) || steps_left_ == 0) break;
      }
    }
    for (const std::uint32_t source : sources) {
      if (!best.steps.empty() && (best.steps.size() <= 4 || steps_left_ == 0)) break;
      SearchFrom(source, best.steps.empty() ? SIZE_MAX : best.steps.size() - 1, best);
    }
    ZEZE_CHECK(!best.steps.empty());
    best.shortest = steps_left_ > 0 || best.steps.size() == 2;
    found.cycles.push_back(std::move(best));
  }

  // Breadth first. In a tangle a cycle is closed by an edge to the source, in a stretch by a
  // transaction that had ended before the source began. True if one was found.
  bool SearchFrom(std::uint32_t source, std::size_t length_max, Cycle& best) {
    ++visit_number_;
    queue_.clear();
    queue_.push_back({source, 0});
    visit_[source] = visit_number_;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const auto [node, distance] = queue_[i];
      if (tangle_ == kNone && node != source && graph_.EndedBefore(node, source)) {
        Graph::Edge edge;
        edge.to = source;
        edge.kind = static_cast<std::uint32_t>(DependencyKind::kRealTime) & 7u;
        best = MakeCycle(source, node, edge);
        return true;
      }
      const bool may_go_on = distance + 2 <= length_max;
      if (tangle_ == kNone && !may_go_on) continue;
      for (const Graph::Edge& edge : graph_.edges(node)) {
        if (steps_left_ > 0) --steps_left_;
        if (tangle_of_[edge.to] != tangle_) continue;
        if (edge.to == source) {
          best = MakeCycle(source, node, edge);
          return true;
        }
        if (!may_go_on || visit_[edge.to] == visit_number_) continue;
        visit_[edge.to] = visit_number_;
        parent_[edge.to] = {node, edge};
        queue_.push_back({edge.to, distance + 1});
      }
    }
    return false;
  }

  Cycle MakeCycle(std::uint32_t source, std::uint32_t last, const Graph::Edge& closing) const {
    Cycle cycle;
    cycle.steps.push_back({last, closing});
    for (std::uint32_t node = last; node != source; node = parent_[node].node) {
      cycle.steps.push_back(parent_[node]);
    }
    std::ranges::reverse(cycle.steps);
    return cycle;
  }

  struct Visit {
    std::uint32_t node;
    std::size_t distance;
  };

  const Graph& graph_;
  const std::uint64_t steps_max_;
  std::vector<std::uint32_t> tangle_of_;
  std::vector<std::vector<std::uint32_t>> tangles_;
  std::vector<std::uint64_t> earliest_end_;  // Of what a node leads to without touching a tangle.
  std::vector<std::uint32_t> late_;

  std::uint32_t tangle_ = kNone;  // The one being searched.
  std::uint64_t steps_left_ = 0;
  std::uint32_t visit_number_ = 0;
  std::vector<std::uint32_t> visit_;
  std::vector<Step> parent_;  // How the search came to a node.
  std::vector<Visit> queue_;
};

}  // namespace

Cycles FindCycles(const Graph& graph, std::uint64_t steps_max) {
  return Finder(graph, steps_max).Run();
}

}  // namespace zeze::history::internal
