// CapturedLog: collects the log lines of a test, so that it can say what must have been logged.
//
//   CapturedLog log;
//   ...
//   EXPECT_THAT(log.lines(), Contains(HasSubstr("full")));

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/log.h"
#include "zeze/base/mutex.h"

namespace zeze::testing {

// While it exists, lines of level kDebug and above come here and nowhere else; then the previous
// sink and level are set again. Thread-safe.
class CapturedLog {
 public:
  CapturedLog() : sink_(std::make_shared<Sink>()), level_(GetLogLevel()) {
    SetLogLevel(LogLevel::kDebug);
    previous_ = SetLogSink(sink_);
  }

  ~CapturedLog() {
    SetLogSink(std::move(previous_));
    SetLogLevel(level_);
  }

  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  // Each as "level: message".
  std::vector<std::string> lines() const {
    MutexLock lock(sink_->mutex);
    return sink_->lines;
  }

 private:
  struct Sink final : LogSink {
    void Write(const LogRecord& record) override {
      MutexLock lock(mutex);
      lines.push_back(std::string(ToString(record.level)) + ": " + std::string(record.message));
    }
    Mutex mutex;
    std::vector<std::string> lines ZEZE_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Sink> sink_;
  const LogLevel level_;
  std::shared_ptr<LogSink> previous_;
};

}  // namespace zeze::testing
