// DatabaseCopy: which copy of the database counts (rules 73 to 75 of docs/architecture.md).
//
// A database that is replicated exists more than once, and a copy that was promoted may lack what
// was acknowledged. The table zeze_home says which copy counts; it is copied with the rest. Every
// connection of a process compares it before its first use, so nothing is read from or written to
// another copy. The planned way from one copy to the next is `zeze cluster switch-over`.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze {

// The only row of zeze_home.
struct HomeRow {
  std::string home;         // Identity of the copy that counts.
  std::int64_t number = 0;  // How often that has changed; the first is 1.
  // Not 0: this copy takes no writes any more, a switch-over to the home of this number is under
  // way.
  std::int64_t frozen = 0;
  std::string marker;  // Of the last switch-over: a copy that has it has everything before it.

  bool operator==(const HomeRow&) const = default;
};

// The copy that a process uses.
struct KnownCopy {
  std::string identity;
  std::int64_t number = 0;

  bool operator==(const KnownCopy&) const = default;
};

enum class CopyVerdict : std::uint8_t {
  kUse,
  kFrozen,   // A switch-over is under way: wait until this copy or another one is its end.
  kOld,      // The copy before the last switch-over: pass it over.
  kForeign,  // It may lack what was acknowledged: never use it, and end.
};

// What a process must do with a copy, by what stands in it. `here` is the copy's own identity;
// `known` is absent in a process that has used none, and moves on when a switch-over is finished.
CopyVerdict JudgeCopy(std::optional<KnownCopy>& known, const std::string& here, const HomeRow& row);

// The judgement of all connections of one process. Thread-safe.
class DatabaseCopy {
 public:
  // Errors: kUnavailable (frozen, old; or the first connection of a process meets a copy that does
  // not count), kFenced (foreign: end).
  Result<void> Check(const std::string& place, const std::string& here, const HomeRow& row);

  // The copy that the first connection met; the same for the life of the process.
  std::string first() const;

  // The place in the address of the host that answered last: try it first.
  std::size_t host() const { return host_; }
  void set_host(std::size_t host) { host_ = host; }

 private:
  std::atomic<std::size_t> host_ = 0;
  mutable Mutex mutex_;
  std::optional<KnownCopy> known_ ZEZE_GUARDED_BY(mutex_);
  std::string first_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze
