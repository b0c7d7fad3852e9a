// StopReport: says every few seconds what a stop waits for, so that nobody waits in silence.
//
//   StopReport report("shop", [&] { return engine.statistics(); });
//   report.Enter("for procedures that are running");
//   ...
//   report.Enter("until everything is saved");

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "zeze/base/mutex.h"

namespace zeze {

// "12 records (3,400 bytes at most) are not saved"
std::string UnsavedText(std::uint64_t records, std::uint64_t bytes);

// Thread-safe.
class StopReport {
 public:
  static constexpr std::chrono::seconds kPeriod{5};

  // `unsaved` is called on another thread.
  StopReport(std::string name, std::function<std::string()> unsaved);
  StopReport(const StopReport&) = delete;
  StopReport& operator=(const StopReport&) = delete;
  ~StopReport();

  // Completes the sentence "the stop waits ...".
  void Enter(std::string phase);
  // What the database said last; empty: nothing.
  void Failed(std::string problem);

 private:
  void Run();

  const std::string name_;
  const std::function<std::string()> unsaved_;

  Mutex mutex_;
  CondVar changed_;
  std::string phase_ ZEZE_GUARDED_BY(mutex_);
  std::string problem_ ZEZE_GUARDED_BY(mutex_);
  bool over_ ZEZE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace zeze
