// Measuring on a shared machine: what is compared runs in turns of a tenth of a second in one
// process, rounds in which other processes took much of the machine are left out, and the result is
// the median of the ratios of single rounds. Absolute figures drift by a factor of two; these
// ratios do not.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zeze::bench {

// Repeats an operation until `stop`, and returns how often.
using Work = std::function<std::uint64_t(int thread, const std::atomic<bool>& stop)>;

struct Contender {
  int threads = 1;
  Work work;
};

// What one contender did in one turn, or the median of its turns.
struct Turn {
  double per_second = 0;
  double cpu_ns = 0;  // Of all threads, for each operation.
};

// One turn by itself, for what Compare cannot do: contenders in other processes.
Turn RunTurn(const Contender& contender, std::chrono::milliseconds duration);

struct Comparison {
  std::vector<Turn> medians;              // One for each contender.
  std::vector<std::vector<Turn>> rounds;  // The rounds that count, in each a turn per contender.
  std::size_t rounds_measured = 0;

  // Median over the rounds of a's rate (or CPU time) divided by b's.
  double RateRatio(std::size_t a, std::size_t b) const;
  double CpuRatio(std::size_t a, std::size_t b) const;
  // "31 of 40 rounds quiet, ratio 0.31 .. 0.38": the middle half.
  std::string Note(std::size_t a, std::size_t b) const;
};

// Runs all contenders in turns for about `seconds`.
Comparison Compare(const std::vector<Contender>& contenders, double seconds,
                   std::chrono::milliseconds turn = std::chrono::milliseconds(80));

double Median(std::vector<double> values);
double Percentile(std::vector<double> values, double fraction);
// The median of a[i] / b[i].
double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

double WallSeconds();
double ThreadCpuSeconds();
double ProcessCpuSeconds();
double ResidentBytes(int process = 0);  // 0: this one.

// Pseudo-random numbers that cost next to nothing.
class FastRandom {
 public:
  explicit FastRandom(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::int64_t Below(std::int64_t bound) {
    return static_cast<std::int64_t>(
        (static_cast<std::uint64_t>(Next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }

 private:
  std::uint64_t state_;
};

// Keeps the compiler from leaving out the computation of a value.
template <typename T>
inline void KeepValue(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace zeze::bench
