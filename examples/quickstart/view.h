// View: what a person sees while the demo runs: a block that is redrawn on a terminal, or a line a
// second elsewhere.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

namespace quickstart {

// The figures of one "live" line (server.h).
struct LiveFigures {
  std::uint64_t commits = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t accesses = 0;
  std::uint64_t loads = 0;
  std::uint64_t unsaved = 0;
  std::uint64_t checkpoint_age_ms = 0;
};

class View {
 public:
  explicit View(bool quiet);

  // A sentence of the story, kept on the screen.
  void Tell(const std::string& text);
  void Show(const LiveFigures& figures, std::uint64_t receipts);
  // The next figures are those of a new process.
  void NewProcess();

 private:
  void Redraw(const std::string& block);

  const bool quiet_;
  const bool terminal_;
  int drawn_lines_ = 0;
  LiveFigures last_;
  std::chrono::nanoseconds last_time_{0};
  std::chrono::nanoseconds last_line_{0};
  std::deque<double> rates_;
};

}  // namespace quickstart
