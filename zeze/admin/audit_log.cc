#include "zeze/admin/audit_log.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "zeze/admin/operator_key.h"
#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze::admin {

namespace {

constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kFieldsBeforeHash = 5;
constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP;

std::string ErrnoText() {
  return std::generic_category().message(errno);
}

std::string HashOf(std::string_view previous, std::string_view line) {
  const std::string text = fmt::format("{}\n{}", previous, line);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  ZEZE_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
             1);
  return ToHex({reinterpret_cast<const char*>(digest.data()), size});
}

// One field of a line, whatever bytes somebody sent.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string UtcText(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since) - seconds;
  const std::time_t whole = seconds.count();
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis.count());
}

// Goes through a log line by line.
class Verifier {
 public:
  explicit Verifier(const std::string& path) : path_(path) {
    summary_.hash = std::string(kHashDigits, '0');
  }

  Result<void> Take(std::string_view bytes) {
    rest_.append(bytes);
    std::size_t begin = 0;
    std::size_t end = 0;
    while ((end = rest_.find('\n', begin)) != std::string::npos) {
      if (Result<void> fits = Line(std::string_view(rest_).substr(begin, end - begin));
          !fits.ok()) {
        return fits;
      }
      begin = end + 1;
    }
    rest_.erase(0, begin);
    return {};
  }

  AuditLogSummary Finish() {
    summary_.torn_bytes = rest_.size();
    return summary_;
  }

 private:
  Error Wrong(std::string_view what) const {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}:{}: {}; the log was changed or damaged: keep it as it is for who "
                             "looks into that, and start a new one",
                             path_, summary_.lines + 1, what));
  }

  Result<void> Line(std::string_view line) {
    const std::size_t tab = line.rfind('\t');
    if (tab == std::string_view::npos || line.size() - tab - 1 != kHashDigits) {
      return Wrong("expected number, time, actor, action, details and hash, between tabs");
    }
    std::string_view content = line.substr(0, tab);
    std::size_t fields = 1;
    for (const char c : content) fields += c == '\t' ? 1 : 0;
    if (fields != kFieldsBeforeHash) {
      return Wrong(
          fmt::format("expected {} fields before the hash, found {}", kFieldsBeforeHash, fields));
    }
    const std::string number(content.substr(0, content.find('\t')));
    if (number != std::to_string(summary_.lines + 1)) {
      return Wrong(
          fmt::format("the line has the number {}, expected {}", number, summary_.lines + 1));
    }
    std::string expected = HashOf(summary_.hash, content);
    if (line.substr(tab + 1) != expected) {
      return Wrong("the hash does not fit this line and the ones before it");
    }
    summary_.hash = std::move(expected);
    ++summary_.lines;
    summary_.good_bytes += line.size() + 1;
    return {};
  }

  const std::string path_;
  std::string rest_;
  AuditLogSummary summary_;
};

Result<AuditLogSummary> VerifyOpen(int descriptor, const std::string& path) {
  struct stat about{};
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} is not an ordinary file", path));
  }
  Verifier verifier(path);
  std::string buffer(64 << 10, '\0');
  off_t at = 0;
  while (true) {
    const ssize_t size = pread(descriptor, buffer.data(), buffer.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return Error(ErrorCode::kUnavailable, fmt::format("reading {}: {}", path, ErrnoText()));
    }
    if (size == 0) return verifier.Finish();
    at += size;
    if (Result<void> fits =
            verifier.Take(std::string_view(buffer).substr(0, static_cast<std::size_t>(size)));
        !fits.ok()) {
      return fits.error();
    }
  }
}

Result<void> WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(descriptor, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Error(ErrorCode::kUnavailable, ErrnoText());
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return {};
}

// So that a new file is found after a crash.
void SyncDirectoryOf(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

Result<AuditLogSummary> VerifyAuditLog(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("opening the audit log {}: {}", path, ErrnoText()));
  }
  Result<AuditLogSummary> summary = VerifyOpen(descriptor, path);
  close(descriptor);
  return summary;
}

Result<std::unique_ptr<AuditLog>> AuditLog::Open(AuditLogOptions options) {
  const std::string& path = options.path;
  const int descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, kMode);
  if (descriptor < 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("opening the audit log {}: {}", path, ErrnoText()));
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    return Error(ErrorCode::kInUse,
                 fmt::format("the audit log {} is in use by another process; every Global has one "
                             "of its own",
                             path));
  }
  Result<AuditLogSummary> summary = VerifyOpen(descriptor, path);
  if (!summary.ok()) {
    close(descriptor);
    return summary.error();
  }
  const AuditLogSummary& found = summary.value();
  std::unique_ptr<AuditLog> log(new AuditLog(std::move(options), descriptor, found));
  if (found.lines == 0) SyncDirectoryOf(log->path());
  if (found.torn_bytes == 0) return log;
  if (ftruncate(descriptor, static_cast<off_t>(found.good_bytes)) != 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cutting the torn last line off {}: {}", log->path(), ErrnoText()));
  }
  if (Result<void> noted = log->Append(
          "-", "cut", fmt::format("{} bytes of a line without an end", found.torn_bytes));
      !noted.ok()) {
    return noted.error();
  }
  return log;
}

AuditLog::AuditLog(AuditLogOptions options, int descriptor, AuditLogSummary summary)
    : options_(std::move(options)), descriptor_(descriptor), summary_(std::move(summary)) {
  summary_.torn_bytes = 0;
}

AuditLog::~AuditLog() {
  close(descriptor_);
}

AuditLogSummary AuditLog::summary() const {
  const MutexLock lock(mutex_);
  return summary_;
}

Result<void> AuditLog::Append(std::string_view actor, std::string_view action,
                              std::string_view details) {
  const MutexLock lock(mutex_);
  if (!broken_.empty()) return Error(ErrorCode::kUnavailable, broken_);
  const std::string content =
      fmt::format("{}\t{}\t{}\t{}\t{}", summary_.lines + 1, UtcText(options_.clock->SystemNow()),
                  Escape(actor), Escape(action), Escape(details));
  std::string hash = HashOf(summary_.hash, content);
  const std::string line = fmt::format("{}\t{}\n", content, hash);
  if (const Result<void> written = WriteAll(descriptor_, line); !written.ok()) {
    const std::string why =
        fmt::format("writing to the audit log {}: {}", path(), written.error().message());
    // A part of the line may be there.
    if (ftruncate(descriptor_, static_cast<off_t>(summary_.good_bytes)) != 0) broken_ = why;
    return Error(ErrorCode::kUnavailable, why);
  }
  if (fsync(descriptor_) != 0) {
    // What the disk has is unknown, and the next fsync would not tell of this failure again.
    broken_ = fmt::format("saving the audit log {}: {}", path(), ErrnoText());
    return Error(ErrorCode::kUnavailable, broken_);
  }
  summary_.hash = std::move(hash);
  ++summary_.lines;
  summary_.good_bytes += line.size();
  return {};
}

}  // namespace zeze::admin
