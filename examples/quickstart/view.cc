#include "view.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include "zeze/base/clock.h"

namespace quickstart {

namespace {

constexpr std::size_t kCurvePoints = 40;

// 1234567 as 1,234,567.
std::string Grouped(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

View::View(bool quiet) : quiet_(quiet), terminal_(!quiet && ::isatty(STDOUT_FILENO) == 1) {}

void View::Tell(const std::string& text) {
  drawn_lines_ = 0;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void View::NewProcess() {
  last_ = {};
  last_time_ = {};
  rates_.clear();
}

void View::Show(const LiveFigures& figures, std::uint64_t receipts) {
  const auto now = zeze::SystemClock().Now();
  const double seconds = std::chrono::duration<double>(now - last_time_).count();
  const bool first = last_time_.count() == 0;
  const double rate = first ? 0 : static_cast<double>(figures.commits - last_.commits) / seconds;
  const double conflicts =
      first ? 0 : static_cast<double>(figures.conflicts - last_.conflicts) / seconds;
  last_ = figures;
  last_time_ = now;
  if (first || quiet_) return;

  rates_.push_back(rate);
  if (rates_.size() > kCurvePoints) rates_.pop_front();
  const double hits = figures.accesses == 0 ? 100
                                            : 100 - 100.0 * static_cast<double>(figures.loads) /
                                                        static_cast<double>(figures.accesses);
  if (!terminal_) {
    if (now - last_line_ < std::chrono::seconds(1)) return;
    last_line_ = now;
    fmt::print(
        "  {} transactions/s, {} conflicts/s, {:.2f} % cache hits, {} unsaved, "
        "checkpoint {} ms ago, {} receipts\n",
        Grouped(rate), Grouped(conflicts), hits, figures.unsaved, figures.checkpoint_age_ms,
        receipts);
    std::fflush(stdout);
    return;
  }
  const double highest = *std::max_element(rates_.begin(), rates_.end());
  std::string curve;
  for (const double point : rates_) {
    static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const auto level = static_cast<std::size_t>(highest <= 0 ? 0 : point / highest * 7);
    curve += kBars[std::min<std::size_t>(level, 7)];
  }
  Redraw(fmt::format(
      "  transactions/s     {:>12}   {}\n"
      "  conflicts/s        {:>12}\n"
      "  cache hits         {:>11.2f}%\n"
      "  unsaved records    {:>12}\n"
      "  checkpoint age     {:>9} ms\n"
      "  receipts           {:>12}   acknowledged: never to be lost\n",
      Grouped(rate), curve, Grouped(conflicts), hits, Grouped(static_cast<double>(figures.unsaved)),
      figures.checkpoint_age_ms, Grouped(static_cast<double>(receipts))));
}

void View::Redraw(const std::string& block) {
  if (drawn_lines_ > 0) fmt::print("\x1b[{}A\x1b[J", drawn_lines_);
  fmt::print("{}", block);
  std::fflush(stdout);
  drawn_lines_ = static_cast<int>(std::count(block.begin(), block.end(), '\n'));
}

}  // namespace quickstart
