// zeze_sim: runs many seeds of the simulation on all cores, and shows the first that fails.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "tests/simulation/run.h"
#include "zeze/base/hash.h"

namespace zeze::simulation {
namespace {

struct Totals {
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::uint64_t> committed = 0;
  std::atomic<std::uint64_t> lost = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> faults = 0;
  std::atomic<std::uint64_t> events = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::optional<std::pair<std::uint64_t, std::string>> failure;  // The smallest seed.
};

void RunSeeds(std::uint64_t first, std::uint64_t count, const RunOptions& options, Totals& totals) {
  while (!totals.stop) {
    const std::uint64_t n = totals.next++;
    if (n >= count) return;
    const RunReport report = RunSeed(first + n, options);
    totals.committed += report.committed_count;
    totals.lost += report.lost_count;
    totals.refused += report.failed_count;
    totals.faults += report.fault_count;
    totals.events += report.event_count;
    if ((n + 1) % 1000 == 0) fmt::print(stderr, "{} seeds\n", n + 1);
    if (report.ok()) continue;
    const std::lock_guard lock(totals.mutex);
    totals.stop = true;
    if (!totals.failure || totals.failure->first > first + n) {
      totals.failure = {first + n, report.failure};
    }
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Simulates clusters under faults, each from a seed, and checks every run.");
  app.footer(
      "Examples:\n"
      "  zeze_sim --seeds 10000                     all must pass\n"
      "  zeze_sim --seed 4711 --story               what happened in this one\n"
      "  zeze_sim --seeds 1000 --without fence      leave a rule out: one must fail");
  std::uint64_t seeds = 1000;
  std::uint64_t first = 1;
  std::optional<std::uint64_t> single;
  bool story = false;
  std::string without;
  app.add_option("--seeds", seeds, "How many seeds to run")->capture_default_str();
  app.add_option("--first", first, "The first seed")->capture_default_str();
  app.add_option("--seed", single, "Run only this seed");
  app.add_flag("--story", story, "Print what happened (with --seed)");
  std::vector<std::string> names;
  for (const auto& [left_out, name] : LeftOutNames()) names.push_back(name);
  app.add_option("--without", without, "Leave a rule out")->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);

  SetHashSeed(0);  // A run depends on its seed alone.
  RunOptions options;
  for (const auto& [left_out, name] : LeftOutNames()) {
    if (name == without) options.left_out = left_out;
  }
  if (single) {
    options.keep_story = true;
    const RunReport report = RunSeed(*single, options);
    if (story || !report.ok()) {
      for (const std::string& line : report.story) fmt::print("{}\n", line);
    }
    fmt::print("seed {}: {}\n", *single, report.ok() ? "passed" : report.failure);
    return report.ok() ? 0 : 1;
  }
  Totals totals;
  {
    std::vector<std::jthread> threads;
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < cores; ++i) {
      threads.emplace_back([&] { RunSeeds(first, seeds, options, totals); });
    }
  }
  fmt::print(
      "{} seeds: {} transactions saved, {} lost with a process, {} refused; {} faults, {} events\n",
      std::min<std::uint64_t>(totals.next, seeds), totals.committed.load(), totals.lost.load(),
      totals.refused.load(), totals.faults.load(), totals.events.load());
  if (!totals.failure) {
    fmt::print("all passed\n");
    return 0;
  }
  fmt::print("seed {} FAILED: {}\nRun it with --seed {} --story{}\n", totals.failure->first,
             totals.failure->second, totals.failure->first,
             without.empty() ? "" : " --without " + without);
  return 1;
}

}  // namespace
}  // namespace zeze::simulation

int main(int argc, char** argv) {
  try {
    return zeze::simulation::Main(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "zeze_sim: {}\n", e.what());
    return 2;
  }
}
