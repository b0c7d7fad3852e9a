#include "zeze/arch/linkd/sid_source.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

namespace {

// Enough for any number, and a line of text that people can read.
constexpr std::size_t kLineBytes = 21;

Error Failed(const std::string& path, const char* what) {
  return {ErrorCode::kUnavailable, fmt::format("{} the file of session ids {}: {}", what, path,
                                               std::generic_category().message(errno))};
}

class SidFile final : public SidSource {
 public:
  SidFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~SidFile() override { ::close(descriptor_); }

  Result<void> Load() {
    const MutexLock lock(mutex_);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      return Error(ErrorCode::kInUse,
                   fmt::format("another process uses the file of session ids {}: every linkd needs "
                               "one of its own",
                               path_));
    }
    std::string line(kLineBytes + 1, '\0');
    const ssize_t size = ::pread(descriptor_, line.data(), line.size(), 0);
    if (size < 0) return Failed(path_, "reading");
    if (size == 0) return {};  // New.
    const char* end = line.data() + kLineBytes - 1;
    const auto [parsed, error] = std::from_chars(line.data(), end, next_);
    constexpr std::int64_t kNextMax = std::numeric_limits<std::int64_t>::max() / 2;
    if (static_cast<std::size_t>(size) == kLineBytes && error == std::errc() && parsed == end &&
        *end == '\n' && next_ >= 1 && next_ <= kNextMax) {
      return {};
    }
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} is not a file of session ids (one line with a number of 20 "
                             "digits): put in a number above all that were used",
                             path_));
  }

  Result<SidBlock> Allocate(std::uint32_t count) override {
    const MutexLock lock(mutex_);
    const SidBlock block{.next = next_, .end = next_ + count};
    // In place: a line of fixed length within one sector is there or not.
    const std::string line = fmt::format("{:020}\n", block.end);
    if (::pwrite(descriptor_, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()) ||
        ::fdatasync(descriptor_) != 0) {
      return Failed(path_, "writing");
    }
    next_ = block.end;
    return block;
  }

 private:
  const std::string path_;
  const int descriptor_;
  Mutex mutex_;
  std::int64_t next_ ZEZE_GUARDED_BY(mutex_) = 1;
};

class RegistrySids final : public SidSource {
 public:
  RegistrySids(registry::RegistryAgent& agent, std::string name)
      : agent_(agent), name_(std::move(name)) {}

  Result<SidBlock> Allocate(std::uint32_t count) override {
    Result<registry::IdBlock> block = agent_.AllocateIds(name_, count);
    if (!block.ok()) return block.error();
    const auto first = static_cast<std::int64_t>(block.value().start.low);
    return SidBlock{.next = first, .end = first + block.value().count};
  }

 private:
  registry::RegistryAgent& agent_;
  const std::string name_;
};

class MemorySids final : public SidSource {
 public:
  Result<SidBlock> Allocate(std::uint32_t count) override {
    const MutexLock lock(mutex_);
    const SidBlock block{.next = next_, .end = next_ + count};
    next_ = block.end;
    return block;
  }

 private:
  Mutex mutex_;
  std::int64_t next_ ZEZE_GUARDED_BY(mutex_) = 1;
};

void SyncDirectoryOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

}  // namespace

Result<std::unique_ptr<SidSource>> OpenSidFile(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return Failed(path, "opening");
  auto file = std::make_unique<SidFile>(path, descriptor);
  if (Result<void> loaded = file->Load(); !loaded.ok()) return loaded.error();
  SyncDirectoryOf(path);
  return std::unique_ptr<SidSource>(std::move(file));
}

std::unique_ptr<SidSource> SidsOfRegistry(registry::RegistryAgent& agent, std::string name) {
  return std::make_unique<RegistrySids>(agent, std::move(name));
}

std::unique_ptr<SidSource> SidsInMemory() {
  return std::make_unique<MemorySids>();
}

std::optional<std::int64_t> SidCounter::Next() {
  const MutexLock lock(mutex_);
  if (now_.next == now_.end) now_ = std::exchange(later_, {});
  if (now_.next == now_.end) return std::nullopt;
  return now_.next++;
}

bool SidCounter::WantsRefill() {
  const MutexLock lock(mutex_);
  if (refilling_ || later_.next != later_.end || now_.end - now_.next > block_ / 2) return false;
  refilling_ = true;
  return true;
}

Result<void> SidCounter::Refill() {
  Result<SidBlock> block = source_.Allocate(block_);
  const MutexLock lock(mutex_);
  refilling_ = false;
  if (!block.ok()) return block.error();
  (now_.next == now_.end ? now_ : later_) = block.value();
  return {};
}

}  // namespace zeze::arch
