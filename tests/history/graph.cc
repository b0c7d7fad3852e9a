#include "tests/history/graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_map>
#include <vector>

#include "tests/history/analysis.h"
#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/index_map.h"

namespace zeze::history::internal {

namespace {

// For a key whose last list was read often and that has many appends nobody ever saw: the product
// of both is cut off here, which can only hide an anomaly, never invent one.
constexpr std::size_t kUnseenPairsMax = 1'000'000;

}  // namespace

Graph::Graph(const Analysis& analysis)
    : analysis_(analysis), real_time_(analysis.options().order == Options::Order::kRealTime) {
  ChooseNodes();
  // Twice over the same edges, to count and to fill, instead of sorting them by origin.
  edge_begin_.assign(transactions_.size() + 1, 0);
  ForEachEdge([&](std::uint32_t from, const Edge&) { ++edge_begin_[from + 1]; });
  std::partial_sum(edge_begin_.begin(), edge_begin_.end(), edge_begin_.begin());
  edges_.resize(edge_begin_.back());
  std::vector<std::uint64_t> next(edge_begin_.begin(), edge_begin_.end() - 1);
  ForEachEdge([&](std::uint32_t from, const Edge& edge) { edges_[next[from]++] = edge; });
}

void Graph::ChooseNodes() {
  const auto roles = analysis_.roles();
  nodes_.assign(roles.size(), kNone);
  for (std::uint32_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == Analysis::Role::kOutside) continue;
    nodes_[i] = static_cast<std::uint32_t>(transactions_.size());
    transactions_.push_back(i);
  }
}

std::uint64_t Graph::begin_stamp(std::uint32_t node) const {
  return analysis_.history().transactions()[transactions_[node]].begin;
}

std::uint64_t Graph::end_stamp(std::uint32_t node) const {
  const Transaction& transaction = analysis_.history().transactions()[transactions_[node]];
  return transaction.outcome == Outcome::kUnknown ? UINT64_MAX : transaction.end;
}

// emit(from node, edge)
template <typename Emit>
void Graph::ForEachEdge(const Emit& emit) const {
  const auto emit_transactions = [&](std::uint32_t from, std::uint32_t to, DependencyKind kind,
                                     std::uint32_t operation) {
    if (from == to) return;
    emit(nodes_[from],
         Edge{nodes_[to], static_cast<std::uint32_t>(kind) & 7u, operation & ((1u << 29) - 1)});
  };
  for (std::uint32_t key = 0; key < analysis_.key_count(); ++key) {
    ForEachEdgeOfKey(key, emit_transactions);
    ForEachEdgeOfUnplaced(key, emit_transactions);
  }
  if (analysis_.options().order == Options::Order::kSession) ForEachSessionEdge(emit_transactions);
}

// emit(from transaction, to transaction, kind, operation)
template <typename Emit>
void Graph::ForEachEdgeOfKey(std::uint32_t key, const Emit& emit) const {
  const auto order = analysis_.OrderOf(key);
  const auto reads = analysis_.ReadsOf(key);
  const auto appends = analysis_.appends();
  // Unknown places and elements of rolled back transactions are passed over: what comes before and
  // behind them is still ordered.
  const auto next_writer = [&](std::size_t position) {
    while (position < order.size() &&
           (order[position] == kNone || !analysis_.IsWriter(order[position]))) {
      ++position;
    }
    return position;
  };
  std::uint32_t previous = kNone;  // Transaction.
  std::size_t read = 0;
  std::size_t next = next_writer(0);
  for (std::size_t length = 0; length <= order.size(); ++length) {
    if (length > next) {
      const auto& append = appends[order[next]];
      if (previous != kNone) {
        emit(previous, append.transaction, DependencyKind::kWriteWrite, append.operation);
      }
      previous = append.transaction;
      next = next_writer(length);
    }
    const std::uint32_t following = next < order.size() ? appends[order[next]].transaction : kNone;
    for (; read < reads.size() && analysis_.reads()[reads[read]].length <= length; ++read) {
      const auto& seen = analysis_.reads()[reads[read]];
      if (seen.broken) continue;
      if (previous != kNone) {
        emit(previous, seen.transaction, DependencyKind::kWriteRead, seen.operation);
      }
      // Not if it read in the middle of one transaction's appends, which is reported as such.
      if (following != kNone && following != previous) {
        emit(seen.transaction, following, DependencyKind::kReadWrite, seen.operation);
      }
    }
  }
}

// Committed appends without a place. Misplaced ones: their transaction read a list to which another
// transaction appended first; all that read this list did not see them. The others were never seen
// by anybody, so all that read the key, if it is known completely, came before.
template <typename Emit>
void Graph::ForEachEdgeOfUnplaced(std::uint32_t key, const Emit& emit) const {
  const auto order = analysis_.OrderOf(key);
  const auto reads = analysis_.ReadsOf(key);
  const auto length_of = [&](std::uint32_t read) { return analysis_.reads()[read].length; };
  std::size_t pairs_left = kUnseenPairsMax;
  std::uint32_t handled = kNone;  // One append for each transaction.
  for (const std::uint32_t index : analysis_.AppendsOf(key)) {
    const auto& append = analysis_.appends()[index];
    if (append.position != kNone || !analysis_.IsWriter(index)) continue;
    if (append.transaction == handled) continue;
    if (append.read != kNone && analysis_.reads()[append.read].broken) continue;
    if (!append.misplaced && analysis_.HasGaps(key)) continue;
    handled = append.transaction;
    const std::size_t length = append.misplaced ? length_of(append.read) : order.size();
    auto read = std::lower_bound(
        reads.begin(), reads.end(), length,
        [&](std::uint32_t left, std::size_t right) { return length_of(left) < right; });
    for (; read != reads.end() && length_of(*read) == length; ++read) {
      const auto& seen = analysis_.reads()[*read];
      if (seen.broken || pairs_left == 0) continue;
      --pairs_left;
      emit(seen.transaction, append.transaction, DependencyKind::kReadWrite, seen.operation);
    }
    const std::uint32_t before =
        append.misplaced ? order[length] : (order.empty() ? kNone : order.back());
    if (before != kNone && analysis_.IsWriter(before)) {
      emit(analysis_.appends()[before].transaction, append.transaction, DependencyKind::kWriteWrite,
           append.operation);
    }
  }
}

template <typename Emit>
void Graph::ForEachSessionEdge(const Emit& emit) const {
  std::unordered_map<std::uint32_t, std::uint32_t> last_of_thread;
  for (const std::uint32_t transaction : transactions_) {
    const std::uint32_t thread = analysis_.history().transactions()[transaction].thread;
    const auto [last, is_first] = last_of_thread.try_emplace(thread, transaction);
    if (!is_first) emit(last->second, transaction, DependencyKind::kSession, 0);
    last->second = transaction;
  }
}

}  // namespace zeze::history::internal
