// Log: leveled, formatted log lines, to stderr unless told otherwise.
//
//   ZEZE_LOG_INFO("opened {} tables in {} ms", count, elapsed.count());
//   ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "queue of {} is full", name);   // Hot paths.
//
// Arguments are evaluated only if the level is enabled. Formats are those of fmt, checked at
// compile time; for ranges or own types include fmt/ranges.h or fmt/ostream.h where you log them. A
// line can be written at any time in the life of the process, also before main and after it.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/base/result.h"

namespace zeze {

enum class LogLevel : std::uint8_t {
  kTrace,
  kDebug,
  kInfo,
  kWarning,
  kError,
  kCritical,
  kOff,  // Only as a setting: nothing is written.
};

std::string_view ToString(LogLevel level);

// Understands the names ToString gives, in any case, and "warn".
Result<LogLevel> ParseLogLevel(std::string_view text);

// One line. The views are valid only during LogSink::Write.
struct LogRecord {
  LogLevel level = LogLevel::kInfo;
  std::string_view file;  // As the compiler knew it.
  int line = 0;
  std::chrono::system_clock::time_point time;
  std::int64_t thread_id = 0;  // As the operating system knows it.
  std::string_view message;
};

// Where lines go. Write is called by many threads at once, and must not log.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(const LogRecord& record) = 0;
  virtual void Flush() {}
};

// Returns the previous sink; null sets stderr again. The old sink may still be in use by other
// threads when this returns: they hold references of their own.
std::shared_ptr<LogSink> SetLogSink(std::shared_ptr<LogSink> sink);

struct LogFileOptions {
  std::uint64_t file_bytes_max = 100 << 20;  // Then the file is renamed to x.1.log and so on.
  std::uint32_t old_files_max = 10;          // Older ones are deleted.
};

// A sink that writes to a file and starts a new one when it has grown large. Fails with
// kUnavailable if the file cannot be opened.
Result<std::shared_ptr<LogSink>> OpenLogFile(const std::string& path, LogFileOptions options = {});

// Lines below this level are not written. Initially kInfo, or what the environment variable
// ZEZE_LOG_LEVEL says.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();

void FlushLog();

namespace internal {

extern std::atomic<LogLevel> log_level;

inline bool LogEnabled(LogLevel level) {
  // Nothing is published with the level: a late change loses or adds a line.
  return level >= log_level.load(std::memory_order_relaxed);
}

void WriteLog(LogLevel level, const char* file, int line, fmt::string_view format,
              fmt::format_args arguments);

template <typename... Args>
void Log(LogLevel level, const char* file, int line, fmt::format_string<Args...> format,
         Args&&... arguments) {
  WriteLog(level, file, line, format, fmt::make_format_args(arguments...));
}

// One for each call site.
class LogLimiter {
 public:
  constexpr LogLimiter() = default;

  // True if a line may be written now; suppressed is then how many were not since the last one.
  bool Allow(std::chrono::nanoseconds period, std::uint64_t& suppressed);

 private:
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<std::uint64_t> suppressed_ = 0;
};

void WriteLimitedLog(LogLevel level, const char* file, int line, std::uint64_t suppressed,
                     fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
void LogLimited(LogLevel level, const char* file, int line, std::uint64_t suppressed,
                fmt::format_string<Args...> format, Args&&... arguments) {
  WriteLimitedLog(level, file, line, suppressed, format, fmt::make_format_args(arguments...));
}

}  // namespace internal

}  // namespace zeze

#define ZEZE_LOG(level, ...)                                         \
  do {                                                               \
    if (::zeze::internal::LogEnabled(level)) {                       \
      ::zeze::internal::Log(level, __FILE__, __LINE__, __VA_ARGS__); \
    }                                                                \
  } while (false)

// At most one line per period from this place in the source; it says how many were left out.
#define ZEZE_LOG_EVERY(level, period, ...)                                                     \
  do {                                                                                         \
    if (::zeze::internal::LogEnabled(level)) {                                                 \
      static constinit ::zeze::internal::LogLimiter zeze_limiter;                              \
      std::uint64_t zeze_suppressed = 0;                                                       \
      if (zeze_limiter.Allow(period, zeze_suppressed)) {                                       \
        ::zeze::internal::LogLimited(level, __FILE__, __LINE__, zeze_suppressed, __VA_ARGS__); \
      }                                                                                        \
    }                                                                                          \
  } while (false)

#define ZEZE_LOG_TRACE(...) ZEZE_LOG(::zeze::LogLevel::kTrace, __VA_ARGS__)
#define ZEZE_LOG_DEBUG(...) ZEZE_LOG(::zeze::LogLevel::kDebug, __VA_ARGS__)
#define ZEZE_LOG_INFO(...) ZEZE_LOG(::zeze::LogLevel::kInfo, __VA_ARGS__)
#define ZEZE_LOG_WARNING(...) ZEZE_LOG(::zeze::LogLevel::kWarning, __VA_ARGS__)
#define ZEZE_LOG_ERROR(...) ZEZE_LOG(::zeze::LogLevel::kError, __VA_ARGS__)
#define ZEZE_LOG_CRITICAL(...) ZEZE_LOG(::zeze::LogLevel::kCritical, __VA_ARGS__)

#define ZEZE_LOG_INFO_EVERY(period, ...) \
  ZEZE_LOG_EVERY(::zeze::LogLevel::kInfo, period, __VA_ARGS__)
#define ZEZE_LOG_WARNING_EVERY(period, ...) \
  ZEZE_LOG_EVERY(::zeze::LogLevel::kWarning, period, __VA_ARGS__)
#define ZEZE_LOG_ERROR_EVERY(period, ...) \
  ZEZE_LOG_EVERY(::zeze::LogLevel::kError, period, __VA_ARGS__)
