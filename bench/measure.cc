#include "bench/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace zeze::bench {

namespace {

constexpr std::size_t kRoundsMin = 5;
// A round counts if other processes had less of the machine than this meanwhile.
constexpr double kOthersMax = 0.08;

double ClockSeconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// CPU time of the whole machine since it started, in ticks of a hundredth of a second.
double MachineBusySeconds() {
  std::ifstream file("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(file >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) {
    return 0;
  }
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return (user + nice + system + irq + softirq + steal) * tick;
}

// One thread on each core in turn: on a busy machine the scheduler may put two on one core, and a
// race between threads that never run at the same time is no race.
void PinToCore(int thread) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(thread) % cores, &set);
  ::sched_setaffinity(0, sizeof set, &set);  // Only a wish: a container may forbid it.
}

struct Shared {
  std::atomic<int> ready = 0;
  std::atomic<bool> go = false;
  std::atomic<bool> stop = false;
};

struct ThreadResult {
  std::uint64_t operations = 0;
  double cpu_seconds = 0;
  double end = 0;
};

std::vector<double> Ratios(const Comparison& comparison, std::size_t a, std::size_t b,
                           double Turn::* field) {
  std::vector<double> ratios;
  for (const auto& round : comparison.rounds) {
    if (round[b].*field > 0) ratios.push_back(round[a].*field / round[b].*field);
  }
  return ratios;
}

}  // namespace

Turn RunTurn(const Contender& contender, std::chrono::milliseconds duration) {
  Shared shared;
  std::vector<ThreadResult> results(static_cast<std::size_t>(contender.threads));
  std::vector<std::thread> threads;
  for (int t = 0; t < contender.threads; ++t) {
    threads.emplace_back([&contender, &shared, &result = results[static_cast<std::size_t>(t)], t] {
      PinToCore(t);
      shared.ready.fetch_add(1);
      while (!shared.go.load()) std::this_thread::yield();
      const double cpu = ThreadCpuSeconds();
      result.operations = contender.work(t, shared.stop);
      result.cpu_seconds = ThreadCpuSeconds() - cpu;
      result.end = WallSeconds();
    });
  }
  while (shared.ready.load() != contender.threads) std::this_thread::yield();
  const double begin = WallSeconds();
  shared.go = true;
  std::this_thread::sleep_for(duration);
  shared.stop = true;
  for (std::thread& thread : threads) thread.join();

  double operations = 0;
  double cpu = 0;
  double end = begin;
  for (const ThreadResult& result : results) {
    operations += static_cast<double>(result.operations);
    cpu += result.cpu_seconds;
    end = std::max(end, result.end);
  }
  if (operations == 0) return {};
  return {.per_second = operations / (end - begin), .cpu_ns = cpu / operations * 1e9};
}

double WallSeconds() {
  return ClockSeconds(CLOCK_MONOTONIC);
}

double ThreadCpuSeconds() {
  return ClockSeconds(CLOCK_THREAD_CPUTIME_ID);
}

double ProcessCpuSeconds() {
  return ClockSeconds(CLOCK_PROCESS_CPUTIME_ID);
}

double ResidentBytes(int process) {
  std::ifstream file(process == 0 ? "/proc/self/statm" : fmt::format("/proc/{}/statm", process));
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double Percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1))];
}

double Median(std::vector<double> values) {
  return Percentile(std::move(values), 0.5);
}

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return Median(ratios);
}

Comparison Compare(const std::vector<Contender>& contenders, double seconds,
                   std::chrono::milliseconds turn) {
  for (const Contender& contender : contenders) RunTurn(contender, turn / 2);  // Warm up.
  struct Round {
    double others;  // Share of the machine that other processes took.
    std::vector<Turn> turns;
  };
  std::vector<Round> rounds;
  const double cores = static_cast<double>(std::max(1U, std::thread::hardware_concurrency()));
  const double end = WallSeconds() + seconds;
  while (rounds.size() < kRoundsMin || WallSeconds() < end) {
    Round round{0, {}};
    const double begin = WallSeconds();
    const double busy = MachineBusySeconds();
    const double own = ProcessCpuSeconds();
    for (const Contender& contender : contenders) round.turns.push_back(RunTurn(contender, turn));
    const double others = MachineBusySeconds() - busy - (ProcessCpuSeconds() - own);
    round.others = others / ((WallSeconds() - begin) * cores);
    rounds.push_back(std::move(round));
  }
  std::sort(rounds.begin(), rounds.end(),
            [](const Round& a, const Round& b) { return a.others < b.others; });
  Comparison result;
  result.rounds_measured = rounds.size();
  for (Round& round : rounds) {
    // On a machine that is never quiet, the quietest third has to do.
    const std::size_t enough = std::max(kRoundsMin, rounds.size() / 3);
    if (round.others > kOthersMax && result.rounds.size() >= enough) break;
    result.rounds.push_back(std::move(round.turns));
  }
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    std::vector<double> rates;
    std::vector<double> cpu;
    for (const auto& round : result.rounds) {
      rates.push_back(round[c].per_second);
      cpu.push_back(round[c].cpu_ns);
    }
    result.medians.push_back({.per_second = Median(rates), .cpu_ns = Median(cpu)});
  }
  return result;
}

double Comparison::RateRatio(std::size_t a, std::size_t b) const {
  return Median(Ratios(*this, a, b, &Turn::per_second));
}

double Comparison::CpuRatio(std::size_t a, std::size_t b) const {
  return Median(Ratios(*this, a, b, &Turn::cpu_ns));
}

std::string Comparison::Note(std::size_t a, std::size_t b) const {
  const std::vector<double> ratios = Ratios(*this, a, b, &Turn::per_second);
  return fmt::format("{} of {} rounds, ratio of rates {:.2f} .. {:.2f}, CPU {:.0f} / {:.0f} ns",
                     rounds.size(), rounds_measured, Percentile(ratios, 0.25),
                     Percentile(ratios, 0.75), medians[a].cpu_ns, medians[b].cpu_ns);
}

}  // namespace zeze::bench
