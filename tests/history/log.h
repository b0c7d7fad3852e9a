// ThreadLog: the records of one thread, in memory or in a file that outlives the process.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/history/history.h"
#include "zeze/base/result.h"

namespace zeze::history {

class Recorder;

namespace internal {

enum class RecordKind : std::uint8_t {
  kNone = 0,   // Not written yet: the log ends here.
  kHeader,     // a: magic number, b: thread.
  kName,       // size: bytes, in the payload records that follow. Names are numbered from 0.
  kBegin,      // a: stamp, b: id, size: name.
  kReadState,  // a: key, b: last element, c: hash, size: length.
  kReadList,   // a: key, size: length; elements in the payload records that follow.
  kAppend,     // a: key, b: element.
  kRollback,   // size: operations before the savepoint.
  kEnd,        // a: stamp, b: outcome.
  kPayload,    // 24 bytes of a name, or three elements.
};

// Stored, but only for the life of a test: reader and writer are of the same build.
struct Record {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  std::uint32_t size = 0;
  std::uint32_t kind = 0;  // A RecordKind, written last.
};
static_assert(sizeof(Record) == 32);

inline constexpr std::uint64_t kLogMagic = 0x31676f4c74736948;  // "HistLog1"

class ThreadLog {
 public:
  // In memory.
  explicit ThreadLog(std::size_t thread);
  // In a new file.
  static Result<std::unique_ptr<ThreadLog>> Create(const std::string& path, std::size_t thread);
  ~ThreadLog();
  ThreadLog(const ThreadLog&) = delete;
  ThreadLog& operator=(const ThreadLog&) = delete;

  void Write(RecordKind kind, std::uint32_t size, std::uint64_t a = 0, std::uint64_t b = 0,
             std::uint64_t c = 0);
  void WriteElements(std::span<const Element> elements);

  // The number of this name in the log.
  std::uint32_t Name(std::string_view name);

  // Adds everything to the history and forgets it.
  void MoveTo(History& history);

  // Reads a file that Create made into the history.
  static Result<void> Load(const std::string& path, History& history);

  // Kept by the attempts of this log.
  Recorder* recorder = nullptr;
  std::uint64_t attempt_count = 0;
  std::uint32_t current_name = 0;
  bool open = false;

  std::size_t thread() const { return thread_; }

 private:
  void Grow();

  const std::size_t thread_;
  Record* next_ = nullptr;
  Record* end_ = nullptr;
  std::vector<std::pair<Record*, std::size_t>> chunks_;  // Owned: from new[], or mapped.
  int file_ = -1;
  std::size_t file_bytes_ = 0;
  std::vector<std::string> names_;
};

}  // namespace internal
}  // namespace zeze::history
