#include "tests/history/checker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "tests/history/analysis.h"
#include "tests/history/cycle.h"
#include "tests/history/graph.h"
#include "tests/history/history.h"
#include "tests/history/index_map.h"

namespace zeze::history {

namespace {

using internal::Analysis;
using internal::Cycle;
using internal::Cycles;
using internal::FindCycles;
using internal::Graph;
using internal::Step;

// The first or the last append of a transaction to a key that was not undone; null if none.
const Operation* FindAppend(const History& history, const Transaction& transaction, Key key,
                            bool last) {
  const Operation* found = nullptr;
  for (const Operation& operation : history.operations(transaction)) {
    if (operation.kind != OperationKind::kAppend || operation.key != key) continue;
    if (operation.detail != 0 || (found != nullptr && !last)) continue;
    found = &operation;
  }
  return found;
}

// Puts the edges of a found cycle into words.
class Explainer {
 public:
  Explainer(const Analysis& analysis, const Graph& graph) : analysis_(analysis), graph_(graph) {}

  Anomaly Explain(const Cycle& cycle) const {
    Anomaly anomaly;
    anomaly.shortest = cycle.shortest;
    for (const Step& step : PreferLostUpdate(cycle.steps)) {
      anomaly.cycle.push_back(Explain(step));
      anomaly.transactions.push_back(anomaly.cycle.back().from);
    }
    anomaly.kind = Classify(anomaly.cycle);
    for (const Dependency& dependency : anomaly.cycle) {
      if (!anomaly.text.empty()) anomaly.text += '\n';
      anomaly.text += dependency.text;
    }
    return anomaly;
  }

 private:
  // Two transactions often depend on each other in several ways. That both appended to the list
  // that one of them had read says more than anything else.
  std::vector<Step> PreferLostUpdate(const std::vector<Step>& steps) const {
    if (steps.size() != 2) return steps;
    const auto key_of = [&](const Graph::Edge& edge) {
      return analysis_.history().operations()[edge.operation].key;
    };
    for (const Graph::Edge& there : graph_.edges(steps[0].node)) {
      if (there.to != steps[1].node || !MayBeLostUpdate(there)) continue;
      for (const Graph::Edge& back : graph_.edges(steps[1].node)) {
        if (back.to != steps[0].node || !MayBeLostUpdate(back)) continue;
        if (key_of(there) != key_of(back) || (IsWriteWrite(there) && IsWriteWrite(back))) continue;
        return {{steps[0].node, there}, {steps[1].node, back}};
      }
    }
    return steps;
  }

  static bool IsWriteWrite(const Graph::Edge& edge) {
    return static_cast<DependencyKind>(edge.kind) == DependencyKind::kWriteWrite;
  }

  static bool MayBeLostUpdate(const Graph::Edge& edge) {
    return IsWriteWrite(edge) ||
           static_cast<DependencyKind>(edge.kind) == DependencyKind::kReadWrite;
  }

  Dependency Explain(const Step& step) const {
    const std::uint32_t from = graph_.transaction(step.node);
    const std::uint32_t to = graph_.transaction(step.edge.to);
    Dependency dependency;
    dependency.from = analysis_.Id(from);
    dependency.to = analysis_.Id(to);
    dependency.kind = static_cast<DependencyKind>(step.edge.kind);
    const History& history = analysis_.history();
    const Operation& operation = history.operations()[step.edge.operation];
    switch (dependency.kind) {
      case DependencyKind::kWriteWrite:
        ExplainWriteWrite(dependency, from, to, operation);
        break;
      case DependencyKind::kWriteRead:
        ExplainWriteRead(dependency, from, to, operation);
        break;
      case DependencyKind::kReadWrite:
        ExplainReadWrite(dependency, from, to, operation);
        break;
      case DependencyKind::kSession:
        dependency.text = fmt::format("{} ran before {} in thread {}", analysis_.Name(from),
                                      analysis_.Name(to), history.transactions()[from].thread);
        break;
      case DependencyKind::kRealTime:
        dependency.text =
            fmt::format("{} had ended before {} began", analysis_.Name(from), analysis_.Name(to));
        break;
    }
    return dependency;
  }

  void ExplainWriteWrite(Dependency& dependency, std::uint32_t from, std::uint32_t to,
                         const Operation& append) const {
    const History& history = analysis_.history();
    dependency.key = append.key;
    dependency.element = append.element;
    const Operation* const before =
        FindAppend(history, history.transactions()[from], append.key, true);
    const auto operation = static_cast<std::uint32_t>(&append - history.operations().data());
    const std::uint32_t index = analysis_.AppendOfOperation(operation);
    const bool was_seen = analysis_.appends()[index].position != internal::kNone;
    dependency.text =
        fmt::format("{} appended element {} to {} after element {} of {}{}", analysis_.Name(to),
                    append.element, analysis_.KeyName(append.key), before->element,
                    analysis_.Name(from), was_seen ? "" : ", since nobody has seen it there");
  }

  void ExplainWriteRead(Dependency& dependency, std::uint32_t from, std::uint32_t to,
                        const Operation& read) const {
    const History& history = analysis_.history();
    dependency.key = read.key;
    dependency.element = FindAppend(history, history.transactions()[from], read.key, true)->element;
    dependency.text =
        fmt::format("{} read element {} of {}, which {} appended", analysis_.Name(to),
                    dependency.element, analysis_.KeyName(read.key), analysis_.Name(from));
  }

  void ExplainReadWrite(Dependency& dependency, std::uint32_t from, std::uint32_t to,
                        const Operation& read) const {
    const History& history = analysis_.history();
    dependency.key = read.key;
    dependency.element = FindAppend(history, history.transactions()[to], read.key, false)->element;
    dependency.text =
        fmt::format("{} read the list of {} (length {}) without element {}, which {} appended",
                    analysis_.Name(from), analysis_.KeyName(read.key), read.length,
                    dependency.element, analysis_.Name(to));
  }

  AnomalyKind Classify(std::span<const Dependency> cycle) const {
    const auto count = [&](DependencyKind kind) {
      return std::ranges::count(cycle, kind, &Dependency::kind);
    };
    if (count(DependencyKind::kRealTime) > 0) return AnomalyKind::kRealTime;
    if (count(DependencyKind::kSession) > 0) return AnomalyKind::kSessionOrder;
    const auto read_write_count = count(DependencyKind::kReadWrite);
    if (read_write_count > 0 && cycle.size() == 2 && IsLostUpdate(cycle)) {
      return AnomalyKind::kLostUpdate;
    }
    if (read_write_count > 1) return AnomalyKind::kWriteSkew;
    if (read_write_count == 1) return AnomalyKind::kReadSkew;
    if (count(DependencyKind::kWriteRead) > 0) return AnomalyKind::kCircularRead;
    return AnomalyKind::kDirtyWrite;
  }

  // Both follow from one list that one of them, or both, read before they appended to it.
  bool IsLostUpdate(std::span<const Dependency> cycle) const {
    if (cycle[0].key != cycle[1].key) return false;
    const History& history = analysis_.history();
    return std::ranges::all_of(cycle, [&](const Dependency& dependency) {
      return dependency.kind != DependencyKind::kWriteRead &&
             FindAppend(history, *history.Find(dependency.from), dependency.key, true) != nullptr;
    });
  }

  const Analysis& analysis_;
  const Graph& graph_;
};

void CountWork(const Analysis& analysis, Report& report) {
  for (const Analysis::Role role : analysis.roles()) {
    report.transaction_count += role != Analysis::Role::kOutside ? 1 : 0;
    report.committed_count += role == Analysis::Role::kWriter ? 1 : 0;
  }
  report.read_count = analysis.reads().size();
  for (std::uint32_t i = 0; i < analysis.appends().size(); ++i) {
    if (!analysis.IsWriter(i)) continue;
    ++report.append_count;
    report.ordered_append_count += analysis.appends()[i].position != internal::kNone ? 1 : 0;
  }
  report.key_count = analysis.key_count();
}

}  // namespace

std::string_view ToString(AnomalyKind kind) {
  switch (kind) {
    case AnomalyKind::kDuplicateAppend:
      return "element appended twice";
    case AnomalyKind::kUnknownElement:
      return "element from nowhere";
    case AnomalyKind::kAbortedRead:
      return "aborted read (G1a)";
    case AnomalyKind::kIntermediateRead:
      return "intermediate read (G1b)";
    case AnomalyKind::kInternal:
      return "internal inconsistency";
    case AnomalyKind::kDuplicateElement:
      return "duplicated element";
    case AnomalyKind::kIncompatibleOrder:
      return "incompatible orders";
    case AnomalyKind::kDirtyWrite:
      return "dirty write (G0)";
    case AnomalyKind::kCircularRead:
      return "circular information flow (G1c)";
    case AnomalyKind::kLostUpdate:
      return "lost update";
    case AnomalyKind::kReadSkew:
      return "read skew (G-single)";
    case AnomalyKind::kWriteSkew:
      return "write skew (G2-item)";
    case AnomalyKind::kSessionOrder:
      return "violation of the order in a thread";
    case AnomalyKind::kRealTime:
      return "violation of real-time order (stale read or lost write)";
  }
  return "?";
}

std::string_view ToString(DependencyKind kind) {
  switch (kind) {
    case DependencyKind::kWriteWrite:
      return "ww";
    case DependencyKind::kWriteRead:
      return "wr";
    case DependencyKind::kReadWrite:
      return "rw";
    case DependencyKind::kSession:
      return "session";
    case DependencyKind::kRealTime:
      return "real time";
  }
  return "?";
}

Report Check(const History& history, const Options& options) {
  Analysis analysis(history, options);
  Report report;
  CountWork(analysis, report);
  const Graph graph(analysis);
  report.dependency_count = graph.edge_count();
  const Cycles cycles = FindCycles(graph, options.search_steps_max);
  report.tangle_count = cycles.tangle_count;
  report.tangle_size_max = cycles.tangle_size_max;
  const Explainer explainer(analysis, graph);
  for (std::size_t i = 0; i < std::min(cycles.cycles.size(), options.anomalies_max); ++i) {
    report.anomalies.push_back(explainer.Explain(cycles.cycles[i]));
  }
  std::ranges::move(analysis.anomalies.anomalies, std::back_inserter(report.anomalies));
  report.anomaly_count = cycles.cycles.size() + analysis.anomalies.count;
  return report;
}

std::string Report::ToString() const {
  std::string text = fmt::format(
      "{} transactions checked ({} committed, {} reads, {} appends to {} keys, {} of them in known "
      "order, {} dependencies): ",
      transaction_count, committed_count, read_count, append_count, key_count, ordered_append_count,
      dependency_count);
  auto out = std::back_inserter(text);
  if (ok()) {
    text += "serializable\n";
    return text;
  }
  fmt::format_to(out, "NOT serializable, {} {}\n", anomaly_count,
                 anomaly_count == 1 ? "anomaly" : "anomalies");
  for (std::size_t i = 0; i < anomalies.size(); ++i) {
    const Anomaly& anomaly = anomalies[i];
    fmt::format_to(out, "{}. {}", i + 1, history::ToString(anomaly.kind));
    if (anomaly.cycle.empty()) {
      fmt::format_to(out, ": {}\n", anomaly.text);
      continue;
    }
    fmt::format_to(out, ", a cycle of {} transactions{}:\n", anomaly.cycle.size(),
                   anomaly.shortest ? "" : " (there may be a shorter one)");
    for (const Dependency& dependency : anomaly.cycle) {
      fmt::format_to(out, "     T{} -> T{} ({}): {}\n", dependency.from, dependency.to,
                     history::ToString(dependency.kind), dependency.text);
    }
  }
  if (anomaly_count > anomalies.size()) {
    fmt::format_to(out, "... and {} more\n", anomaly_count - anomalies.size());
  }
  return text;
}

}  // namespace zeze::history
