#include "tests/history/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/history/history.h"
#include "zeze/base/check.h"
#include "zeze/base/result.h"

namespace zeze::history::internal {

namespace {

// Small first, so that a test with hundreds of short logs stays cheap.
constexpr std::size_t kChunkRecordsMin = 256;
constexpr std::size_t kChunkRecordsMax = 65536;
constexpr std::size_t kPayloadBytes = 24;

std::string ErrnoText() {
  return std::error_code(errno, std::generic_category()).message();
}

std::size_t PayloadRecords(RecordKind kind, std::size_t size) {
  const std::size_t bytes = kind == RecordKind::kName ? size : size * sizeof(Element);
  return (bytes + kPayloadBytes - 1) / kPayloadBytes;
}

// Rebuilds transactions from records. Fed one record at a time, because a record and its payload
// may lie in different chunks.
class Replay {
 public:
  explicit Replay(History& history) : history_(history) {}

  // False if the record cannot stand here.
  bool Add(const Record& record) {
    const auto kind = static_cast<RecordKind>(record.kind);
    if (payload_left_ > 0) return kind == RecordKind::kPayload && AddPayload(record);
    switch (kind) {
      case RecordKind::kHeader:
        thread_ = record.b;
        return record.a == kLogMagic;
      case RecordKind::kName:
      case RecordKind::kReadList:
        head_ = record;
        bytes_.clear();
        payload_left_ = PayloadRecords(kind, record.size);
        if (payload_left_ == 0) FinishPayload();
        return true;
      case RecordKind::kBegin:
        if (open_ || record.size >= names_.size()) return false;
        history_.Begin(record.b, thread_, names_[record.size], record.a);
        begin_ = record.a;
        open_ = true;
        return true;
      case RecordKind::kEnd:
        if (!open_ || record.b > static_cast<std::uint64_t>(Outcome::kLost)) return false;
        history_.End(static_cast<Outcome>(record.b), record.a);
        open_ = false;
        return true;
      default:
        return open_ && AddOperation(kind, record);
    }
  }

  // Where the process was killed, or the recorder asked, in the middle of an attempt.
  void Finish() {
    if (open_) history_.End(Outcome::kUnknown, begin_);
    open_ = false;
  }

 private:
  bool AddOperation(RecordKind kind, const Record& record) {
    if (kind == RecordKind::kReadState) {
      history_.Read(record.a, ListState{record.size, record.b, record.c});
    } else if (kind == RecordKind::kAppend) {
      history_.Append(record.a, record.b);
    } else if (kind == RecordKind::kRollback) {
      history_.RollbackTo(record.size);
    } else {
      return false;
    }
    return true;
  }

  bool AddPayload(const Record& record) {
    const std::array<std::uint64_t, 3> words = {record.a, record.b, record.c};
    const auto* bytes = reinterpret_cast<const char*>(words.data());
    bytes_.append(bytes, kPayloadBytes);
    if (--payload_left_ == 0) FinishPayload();
    return true;
  }

  void FinishPayload() {
    if (static_cast<RecordKind>(head_.kind) == RecordKind::kName) {
      names_.emplace_back(bytes_.data(), head_.size);
      return;
    }
    std::vector<Element> elements(head_.size);
    if (head_.size > 0) std::memcpy(elements.data(), bytes_.data(), head_.size * sizeof(Element));
    if (open_) history_.Read(head_.a, elements);
  }

  History& history_;
  std::size_t thread_ = 0;
  std::vector<std::string> names_;
  bool open_ = false;
  std::uint64_t begin_ = 0;
  Record head_;
  std::size_t payload_left_ = 0;
  std::string bytes_;
};

}  // namespace

ThreadLog::ThreadLog(std::size_t thread) : thread_(thread) {}

Result<std::unique_ptr<ThreadLog>> ThreadLog::Create(const std::string& path, std::size_t thread) {
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
  if (file < 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot create the recording {}: {}", path, ErrnoText()));
  }
  auto log = std::make_unique<ThreadLog>(thread);
  log->file_ = file;
  log->Write(RecordKind::kHeader, 0, kLogMagic, thread);
  return log;
}

ThreadLog::~ThreadLog() {
  for (const auto& [records, count] : chunks_) {
    if (file_ >= 0) {
      ::munmap(records, count * sizeof(Record));
    } else {
      delete[] records;
    }
  }
  if (file_ >= 0) ::close(file_);
}

void ThreadLog::Write(RecordKind kind, std::uint32_t size, std::uint64_t a, std::uint64_t b,
                      std::uint64_t c) {
  if (next_ == end_) Grow();
  next_->a = a;
  next_->b = b;
  next_->c = c;
  next_->size = size;
  // Last, so that a log found after a kill never shows a record that is not complete.
  std::atomic_ref<std::uint32_t>(next_->kind)
      .store(static_cast<std::uint32_t>(kind), std::memory_order_release);
  ++next_;
}

void ThreadLog::WriteElements(std::span<const Element> elements) {
  for (std::size_t i = 0; i < elements.size(); i += 3) {
    const auto at = [&](std::size_t j) { return j < elements.size() ? elements[j] : 0; };
    Write(RecordKind::kPayload, 0, at(i), at(i + 1), at(i + 2));
  }
}

std::uint32_t ThreadLog::Name(std::string_view name) {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return static_cast<std::uint32_t>(found - names_.begin());
  names_.emplace_back(name);
  Write(RecordKind::kName, static_cast<std::uint32_t>(name.size()));
  for (std::size_t i = 0; i < name.size(); i += kPayloadBytes) {
    std::array<std::uint64_t, 3> words = {};
    const std::string_view part = name.substr(i, kPayloadBytes);
    std::memcpy(words.data(), part.data(), part.size());
    Write(RecordKind::kPayload, 0, words[0], words[1], words[2]);
  }
  return static_cast<std::uint32_t>(names_.size() - 1);
}

void ThreadLog::Grow() {
  const std::size_t count =
      chunks_.empty() ? kChunkRecordsMin : std::min(chunks_.back().second * 2, kChunkRecordsMax);
  Record* records = nullptr;
  if (file_ >= 0) {
    const std::size_t bytes = count * sizeof(Record);
    const auto offset = static_cast<off_t>(file_bytes_);
    const int no_room = ::posix_fallocate(file_, offset, static_cast<off_t>(bytes));
    ZEZE_CHECK(no_room == 0);
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
    ZEZE_CHECK(mapped != MAP_FAILED);
    records = static_cast<Record*>(mapped);
    file_bytes_ += bytes;
  } else {
    records = std::make_unique<Record[]>(count).release();
  }
  chunks_.emplace_back(records, count);
  next_ = records;
  end_ = records + count;
}

void ThreadLog::MoveTo(History& history) {
  Replay replay(history);
  Record header;
  header.kind = static_cast<std::uint32_t>(RecordKind::kHeader);
  header.a = kLogMagic;
  header.b = thread_;
  bool good = replay.Add(header);
  for (auto& [records, count] : chunks_) {
    for (std::size_t i = 0; i < count && records[i].kind != 0; ++i) good &= replay.Add(records[i]);
    if (file_ < 0) delete[] records;
  }
  ZEZE_CHECK(good);
  replay.Finish();
  if (file_ < 0) chunks_.clear();
  next_ = end_ = nullptr;
  names_.clear();
}

Result<void> ThreadLog::Load(const std::string& path, History& history) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot open the recording {}: {}", path, ErrnoText()));
  }
  Replay replay(history);
  std::vector<Record> records(kChunkRecordsMax);
  std::size_t index = 0;
  bool more = true;
  while (more) {
    const ssize_t bytes = ::read(file, records.data(), records.size() * sizeof(Record));
    if (bytes < static_cast<ssize_t>(sizeof(Record))) break;
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(Record);
    for (std::size_t i = 0; i < count && more; ++i, ++index) {
      more = records[i].kind != 0;
      const bool is_header = records[i].kind == static_cast<std::uint32_t>(RecordKind::kHeader);
      if (!more || (is_header == (index == 0) && replay.Add(records[i]))) continue;
      ::close(file);
      replay.Finish();
      return Error(ErrorCode::kCorrupt,
                   fmt::format("the recording {} is damaged at record {} (offset {}): a record of "
                               "kind {} cannot stand there",
                               path, index, index * sizeof(Record), records[i].kind));
    }
  }
  ::close(file);
  replay.Finish();
  return {};
}

}  // namespace zeze::history::internal
