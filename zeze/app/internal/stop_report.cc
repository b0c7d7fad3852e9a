#include "zeze/app/internal/stop_report.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"

namespace zeze {

std::string UnsavedText(std::uint64_t records, std::uint64_t bytes) {
  // Threads report the records that they have written in batches, and their room in bytes before.
  if (records == 0 && bytes > 0) {
    return fmt::format("some records (at most {} bytes) that are not saved", bytes);
  }
  return fmt::format("about {} records (at most {} bytes) that are not saved", records, bytes);
}

StopReport::StopReport(std::string name, std::function<std::string()> unsaved)
    : name_(std::move(name)), unsaved_(std::move(unsaved)), thread_([this] { Run(); }) {}

StopReport::~StopReport() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void StopReport::Enter(std::string phase) {
  const MutexLock lock(mutex_);
  phase_ = std::move(phase);
  problem_.clear();
}

void StopReport::Failed(std::string problem) {
  const MutexLock lock(mutex_);
  problem_ = std::move(problem);
}

void StopReport::Run() {
  SetThreadName("stop-report");
  const auto began = SystemClock().Now();
  for (auto due = began + kPeriod;; due += kPeriod) {
    std::string phase;
    std::string problem;
    {
      const MutexLock lock(mutex_);
      while (!over_ && SystemClock().WaitUntil(changed_, mutex_, due)) {
      }
      if (over_) return;
      phase = phase_;
      problem = problem_;
    }
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(SystemClock().Now() - began).count();
    ZEZE_LOG_WARNING(
        "{} has been stopping for {} s and waits {}; there are {}{}. To end it without saving, "
        "send "
        "the signal (SIGTERM) again, or SIGKILL",
        name_, seconds, phase, unsaved_(),
        problem.empty() ? "" : fmt::format("; the last try failed: {}", problem));
  }
}

}  // namespace zeze
