// What a benchmark is: a function that measures something beside its limit and reports figures.
//
//   void RandomEdit(Run& run) {
//     ...
//     run.Report({.name = "core.random_edit", .value = ..., .goal = Goal::RatioAtLeast(0.25)});
//   }
//   constexpr Benchmark kBenchmarks[] = {{"core.random_edit", "2 threads edit ...", &RandomEdit}};

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeze::bench {

struct Goal {
  enum class Of { kNothing, kValue, kRatio };
  Of of = Of::kNothing;
  bool at_least = true;
  double limit = 0;

  static Goal ValueAtLeast(double limit) { return {Of::kValue, true, limit}; }
  static Goal ValueAtMost(double limit) { return {Of::kValue, false, limit}; }
  static Goal RatioAtLeast(double limit) { return {Of::kRatio, true, limit}; }
  static Goal RatioAtMost(double limit) { return {Of::kRatio, false, limit}; }

  bool Met(double value, double ratio) const;
  std::string Text(std::string_view unit) const;
};

// One line of the result.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string peer;  // What it is compared with, measured in the same run.
  double peer_value = 0;
  double ratio = 0;  // value / peer_value, as the median of the rounds where there are rounds.
  Goal goal = {};
  std::string note = {};

  std::string_view suite() const { return std::string_view(name).substr(0, name.find('.')); }
};

struct Settings {
  double seconds = 4;     // To measure one line.
  std::string directory;  // On a real disk; for databases, removed afterwards.
};

class Run {
 public:
  Run(Settings settings, std::function<void(const Figure&)> on_figure)
      : settings_(std::move(settings)), on_figure_(std::move(on_figure)) {}

  const Settings& settings() const { return settings_; }
  void Report(Figure figure) {
    figures_.push_back(std::move(figure));
    on_figure_(figures_.back());
  }
  const std::vector<Figure>& figures() const { return figures_; }

 private:
  const Settings settings_;
  const std::function<void(const Figure&)> on_figure_;
  std::vector<Figure> figures_;
};

// `run` throws std::runtime_error when it cannot be run here.
struct Benchmark {
  std::string_view name;
  std::string_view what;
  void (*run)(Run& run);

  std::string_view suite() const { return name.substr(0, name.find('.')); }
};

std::span<const Benchmark> CoreRecordBenchmarks();
std::span<const Benchmark> CoreEngineBenchmarks();
std::span<const Benchmark> StorageBenchmarks();
std::span<const Benchmark> SqlBenchmarks();
std::span<const Benchmark> GlobalBenchmarks();
std::span<const Benchmark> GatewayBenchmarks();
std::span<const Benchmark> RankBenchmarks();
std::span<const Benchmark> ComponentBenchmarks();
std::span<const Benchmark> CollectionBenchmarks();
std::span<const Benchmark> RedoBenchmarks();
std::span<const Benchmark> TimerBenchmarks();

// Fills a table and returns resident bytes per record; only right in a process that did nothing
// else before.
double MeasureRecordBytes();

std::string FiguresAsJson(std::span<const Figure> figures);

}  // namespace zeze::bench
