#include "zeze/storage/rocksdb/internal/rocksdb_log.h"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <rocksdb/env.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"

namespace zeze {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;
constexpr std::size_t kLineBytesMax = 2000;

class RocksDbLog final : public rocksdb::Logger {
 public:
  explicit RocksDbLog(const std::string& directory)
      : Logger(rocksdb::InfoLogLevel::INFO_LEVEL), path_(directory + "/LOG") {
    MutexLock lock(mutex_);
    Open();
  }

  RocksDbLog(const RocksDbLog&) = delete;
  RocksDbLog& operator=(const RocksDbLog&) = delete;

  ~RocksDbLog() override {
    MutexLock lock(mutex_);
    if (file_ >= 0) ::close(file_);
  }

  void Logv(const char* format, va_list arguments) override {
    Logv(rocksdb::InfoLogLevel::INFO_LEVEL, format, arguments);
  }

  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level < GetInfoLogLevel()) return;
    char text[kLineBytesMax];
    const int length = std::vsnprintf(text, sizeof text, format, arguments);
    if (length < 0) return;
    std::string_view line(text, std::min(static_cast<std::size_t>(length), sizeof text - 1));
    while (line.ends_with('\n')) line.remove_suffix(1);
    const bool serious = level == rocksdb::InfoLogLevel::WARN_LEVEL ||
                         level == rocksdb::InfoLogLevel::ERROR_LEVEL ||
                         level == rocksdb::InfoLogLevel::FATAL_LEVEL;
    if (serious) ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "rocksdb: {}", line);
    Write(line);
  }

 private:
  void Write(std::string_view line) {
    const std::string dated =
        fmt::format("{:%Y-%m-%d %H:%M:%S} {}\n", fmt::gmtime(SystemClock().SystemNow()), line);
    MutexLock lock(mutex_);
    if (bytes_ > kFileBytesMax) {
      if (file_ >= 0) ::close(file_);
      std::rename(path_.c_str(), (path_ + ".old").c_str());
      Open();
    }
    if (file_ < 0) return;
    const ssize_t written = ::write(file_, dated.data(), dated.size());
    if (written > 0) bytes_ += static_cast<std::size_t>(written);
  }

  void Open() ZEZE_REQUIRES(mutex_) {
    file_ = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    struct stat info = {};
    bytes_ = file_ >= 0 && ::fstat(file_, &info) == 0 ? static_cast<std::size_t>(info.st_size) : 0;
  }

  const std::string path_;
  Mutex mutex_;
  int file_ ZEZE_GUARDED_BY(mutex_) = -1;  // Negative: lines are lost.
  std::size_t bytes_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<rocksdb::Logger> OpenRocksDbLog(const std::string& directory) {
  return std::make_shared<RocksDbLog>(directory);
}

}  // namespace zeze
