// zeze_bench: what the library costs, each figure beside its limit measured in the same run.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "bench/bench.h"
#include "bench/measure.h"
#include "bench/serve.h"

namespace zeze::bench {

namespace {

constexpr const char* kExamples = R"(
Examples:
  zeze_bench                             everything
  zeze_bench core                        one suite
  zeze_bench --filter hot_record         the benchmarks with that in their name
  zeze_bench core storage --json out.json

Absolute figures depend on the machine and the moment; compare the ratios.)";

std::vector<Benchmark> AllBenchmarks() {
  std::vector<Benchmark> all;
  for (const auto part :
       {CoreRecordBenchmarks(), CoreEngineBenchmarks(), StorageBenchmarks(), SqlBenchmarks(),
        GlobalBenchmarks(), GatewayBenchmarks(), RankBenchmarks(), ComponentBenchmarks(),
        TimerBenchmarks(), CollectionBenchmarks(), RedoBenchmarks()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::string Short(double value) {
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

void PrintHeader() {
  fmt::print("{:<27} {:>17}  {:<22} {:>9} {:>7}  {:<15} {}\n", "name", "value", "beside",
             "its value", "ratio", "goal", "");
}

void PrintFigure(const Figure& figure) {
  const bool met = figure.goal.Met(figure.value, figure.ratio);
  fmt::print("{:<27} {:>17}  {:<22} {:>9} {:>7.3g}  {:<15} {}\n", figure.name,
             Short(figure.value) + " " + figure.unit, figure.peer, Short(figure.peer_value),
             figure.ratio, figure.goal.Text(figure.unit), met ? "met" : "NOT MET");
  std::fflush(stdout);
  if (!figure.note.empty()) fmt::print(stderr, "    {}\n", figure.note);
}

struct Arguments {
  std::vector<std::string> suites;
  std::string json;
  std::string filter;
  bool list = false;
  bool strict = false;
  bool measure_record_bytes = false;
  std::vector<std::string> serve;
  Settings settings;
};

// Those that the arguments ask for; an error in `problem` if they ask for what is not there.
std::vector<Benchmark> Choose(const Arguments& arguments, std::string& problem) {
  std::set<std::string, std::less<>> known;
  std::vector<Benchmark> chosen;
  for (const Benchmark& benchmark : AllBenchmarks()) {
    known.emplace(benchmark.suite());
    const bool in_suite =
        arguments.suites.empty() || std::find(arguments.suites.begin(), arguments.suites.end(),
                                              benchmark.suite()) != arguments.suites.end();
    if (in_suite && benchmark.name.find(arguments.filter) != std::string_view::npos) {
      chosen.push_back(benchmark);
    }
  }
  for (const std::string& suite : arguments.suites) {
    if (known.contains(suite)) continue;
    problem = fmt::format("there is no suite '{}'; there are:", suite);
    for (const std::string& name : known) problem += " " + name;
    return {};
  }
  if (chosen.empty()) {
    problem = fmt::format("no benchmark has '{}' in its name; --list shows them", arguments.filter);
  }
  return chosen;
}

bool OnDisk(const std::string& directory) {
  struct statfs info{};
  return ::statfs(directory.c_str(), &info) != 0 || info.f_type != TMPFS_MAGIC;
}

bool WriteJson(const std::string& path, std::span<const Figure> figures) {
  std::ofstream file(path, std::ios::trunc);
  file << FiguresAsJson(figures);
  file.close();
  if (file) return true;
  fmt::print(stderr, "zeze_bench: cannot write {}: is the directory there and writable?\n", path);
  return false;
}

int RunAll(const Arguments& arguments, std::span<const Benchmark> chosen) {
  Run run(arguments.settings, PrintFigure);
  std::vector<std::string> failed;
  const double begin = WallSeconds();
  PrintHeader();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    fmt::print(stderr, "[{:>2}/{} {:>4.0f} s] {}: {}\n", i + 1, chosen.size(),
               WallSeconds() - begin, chosen[i].name, chosen[i].what);
    try {
      chosen[i].run(run);
    } catch (const std::exception& e) {
      fmt::print(stderr, "zeze_bench: {} could not run: {}\n", chosen[i].name, e.what());
      failed.emplace_back(chosen[i].name);
    }
  }
  std::size_t missed = 0;
  for (const Figure& figure : run.figures()) {
    if (!figure.goal.Met(figure.value, figure.ratio)) ++missed;
  }
  fmt::print("{} figures in {:.0f} s: {} goals met, {} not met, {} could not run\n",
             run.figures().size(), WallSeconds() - begin, run.figures().size() - missed, missed,
             failed.size());
  if (!arguments.json.empty() && !WriteJson(arguments.json, run.figures())) return 2;
  if (!failed.empty()) return 2;
  return arguments.strict && missed != 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  arguments.settings.directory = std::filesystem::temp_directory_path().string();
  CLI::App app("Measures the library, each figure beside a peer or limit in the same run.",
               "zeze_bench");
  app.footer(kExamples);
  app.add_option(
      "suite", arguments.suites,
      "Suites to run: core, storage, global, gateway, rank, components. All if none is given");
  app.add_option("--json", arguments.json,
                 "Write a list of {suite, name, value, unit, peer, peer_value, ratio} here");
  app.add_option("--filter", arguments.filter, "Only benchmarks with this text in their name");
  app.add_option("--seconds", arguments.settings.seconds, "Time to measure one line")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--directory", arguments.settings.directory,
                 "Where databases are made and removed again; should be on a disk")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_flag("--list", arguments.list, "Name the benchmarks and end");
  app.add_flag("--strict", arguments.strict, "End with status 1 if a goal is not met");
  app.add_flag("--measure-record-bytes", arguments.measure_record_bytes)->group("");
  app.add_option("--serve", arguments.serve)->group("");
  CLI11_PARSE(app, argc, argv);

  if (!arguments.serve.empty()) return Serve(arguments.serve);
  if (arguments.measure_record_bytes) {
    fmt::print("{}\n", MeasureRecordBytes());
    return 0;
  }
  std::string problem;
  const std::vector<Benchmark> chosen = Choose(arguments, problem);
  if (!problem.empty()) {
    fmt::print(stderr, "zeze_bench: {}\n", problem);
    return 2;
  }
  if (arguments.list) {
    for (const Benchmark& benchmark : chosen) {
      fmt::print("{:<30} {}\n", benchmark.name, benchmark.what);
    }
    return 0;
  }
  if (!OnDisk(arguments.settings.directory)) {
    fmt::print(stderr,
               "zeze_bench: {} is in memory, so syncing costs nothing there; pass --directory "
               "with a place on a disk\n",
               arguments.settings.directory);
  }
  return RunAll(arguments, chosen);
}

}  // namespace

}  // namespace zeze::bench

int main(int argc, char** argv) {
  return zeze::bench::Main(argc, argv);
}
