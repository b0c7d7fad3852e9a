#include "zeze/base/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <spdlog/common.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze {

namespace {

// Time, level, thread, place, text: "2024-05-01 12:00:00.123456 warning 4711 clock.cc:12 text".
constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%f %^%l%$ %t %s:%# %v";

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kCritical:
      return spdlog::level::critical;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// Uses spdlog's sinks alone, without its loggers and registry, which are gone after exit.
class SpdlogSink final : public LogSink {
 public:
  explicit SpdlogSink(std::shared_ptr<spdlog::sinks::sink> sink) : sink_(std::move(sink)) {
    sink_->set_pattern(kPattern);
  }

  void Write(const LogRecord& record) override {
    const std::string file(record.file);
    const spdlog::source_loc place(file.c_str(), record.line, "");
    spdlog::details::log_msg message(
        record.time, place, "", ToSpdlog(record.level),
        spdlog::string_view_t(record.message.data(), record.message.size()));
    message.thread_id = static_cast<std::size_t>(record.thread_id);
    try {
      sink_->log(message);
      if (record.level >= LogLevel::kError) sink_->flush();
    } catch (const std::exception& error) {
      // A full disk must stop neither the server nor the words.
      std::fprintf(stderr, "cannot write to the log: %s; the line was: %.*s\n", error.what(),
                   static_cast<int>(record.message.size()), record.message.data());
    }
  }

  void Flush() override {
    try {
      sink_->flush();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "cannot flush the log: %s\n", error.what());
    }
  }

 private:
  const std::shared_ptr<spdlog::sinks::sink> sink_;
};

struct LogState {
  Mutex mutex;
  std::shared_ptr<LogSink> sink ZEZE_GUARDED_BY(mutex);
};

std::shared_ptr<LogSink> StderrSink() {
  static auto& sink = *new std::shared_ptr<LogSink>(
      std::make_shared<SpdlogSink>(std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));
  return sink;
}

// Never destroyed, so that destructors of static objects and late threads can log.
LogState& State() {
  static auto& state = *new LogState{.mutex = {}, .sink = StderrSink()};
  return state;
}

std::shared_ptr<LogSink> CurrentSink() {
  LogState& state = State();
  MutexLock lock(state.mutex);
  return state.sink;
}

std::int64_t ThreadId() {
  thread_local const std::int64_t id = gettid();
  return id;
}

LogLevel InitialLevel() {
  const char* text = std::getenv("ZEZE_LOG_LEVEL");  // NOLINT(concurrency-mt-unsafe): before main.
  if (text == nullptr) return LogLevel::kInfo;
  const Result<LogLevel> level = ParseLogLevel(text);
  if (level.ok()) return level.value();
  std::fprintf(stderr, "ZEZE_LOG_LEVEL: %s\n", level.error().message().c_str());
  return LogLevel::kInfo;
}

constexpr std::array<std::string_view, 7> kLevelNames = {"trace", "debug",    "info", "warning",
                                                         "error", "critical", "off"};

void WriteLine(LogLevel level, const char* file, int line, std::string_view message) {
  CurrentSink()->Write({.level = level,
                        .file = file,
                        .line = line,
                        .time = std::chrono::system_clock::now(),
                        .thread_id = ThreadId(),
                        .message = message});
}

}  // namespace

namespace internal {

constinit std::atomic<LogLevel> log_level = LogLevel::kInfo;

namespace {
[[maybe_unused]] const bool initial_level_is_set = (SetLogLevel(InitialLevel()), true);
}  // namespace

void WriteLog(LogLevel level, const char* file, int line, fmt::string_view format,
              fmt::format_args arguments) {
  fmt::memory_buffer text;
  fmt::vformat_to(std::back_inserter(text), format, arguments);
  WriteLine(level, file, line, {text.data(), text.size()});
}

bool LogLimiter::Allow(std::chrono::nanoseconds period, std::uint64_t& suppressed) {
  const std::int64_t now = SystemClock().Now().count();
  std::int64_t next = next_.load();
  if (now < next || !next_.compare_exchange_strong(next, now + period.count())) {
    ++suppressed_;
    return false;
  }
  suppressed = suppressed_.exchange(0);
  return true;
}

void WriteLimitedLog(LogLevel level, const char* file, int line, std::uint64_t suppressed,
                     fmt::string_view format, fmt::format_args arguments) {
  fmt::memory_buffer text;
  fmt::vformat_to(std::back_inserter(text), format, arguments);
  if (suppressed > 0) {
    fmt::format_to(std::back_inserter(text), " (and {} like it since the last such line)",
                   suppressed);
  }
  WriteLine(level, file, line, {text.data(), text.size()});
}

}  // namespace internal

std::string_view ToString(LogLevel level) {
  const auto index = static_cast<std::size_t>(level);
  return index < kLevelNames.size() ? kLevelNames[index] : "unknown";
}

Result<LogLevel> ParseLogLevel(std::string_view text) {
  const auto is = [text](std::string_view name) { return EqualsIgnoreCase(text, name); };
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (is(kLevelNames[i])) return static_cast<LogLevel>(i);
  }
  if (is("warn")) return LogLevel::kWarning;
  return Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not a log level; use one of {}",
                                                        text, fmt::join(kLevelNames, ", ")));
}

std::shared_ptr<LogSink> SetLogSink(std::shared_ptr<LogSink> sink) {
  if (sink == nullptr) sink = StderrSink();
  LogState& state = State();
  MutexLock lock(state.mutex);
  return std::exchange(state.sink, std::move(sink));
}

Result<std::shared_ptr<LogSink>> OpenLogFile(const std::string& path, LogFileOptions options) {
  try {
    return std::shared_ptr<LogSink>(
        std::make_shared<SpdlogSink>(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
            path, options.file_bytes_max, options.old_files_max)));
  } catch (const std::exception& error) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot open the log file {}: {}; check that its directory can be "
                             "written",
                             path, error.what()));
  }
}

void SetLogLevel(LogLevel level) {
  internal::log_level.store(level, std::memory_order_relaxed);
}

LogLevel GetLogLevel() {
  return internal::log_level.load(std::memory_order_relaxed);
}

void FlushLog() {
  CurrentSink()->Flush();
}

}  // namespace zeze
