// FindCycles: the shortest cycle of each tangle of a graph.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/history/graph.h"

namespace zeze::history::internal {

struct Step {
  std::uint32_t node = 0;
  Graph::Edge edge;  // To the node of the next step; of the last step, to the first.
};

struct Cycle {
  std::vector<Step> steps;
  bool shortest = true;
};

struct Cycles {
  std::vector<Cycle> cycles;  // Shortest first; data before real time.
  std::size_t tangle_count = 0;
  std::size_t tangle_size_max = 0;
};

// A tangle is a set of transactions each of which must come before each other: a strongly connected
// component of the graph. For each there is one shortest cycle. Violations of real-time order that
// only lead into a tangle are not reported on top of it; the others are gathered by the stretch of
// time that they contradict, and the shortest cycle of each stretch is reported.
//
// After steps_max edges in one tangle the search for a shorter cycle is given up.
Cycles FindCycles(const Graph& graph, std::uint64_t steps_max);

}  // namespace zeze::history::internal
