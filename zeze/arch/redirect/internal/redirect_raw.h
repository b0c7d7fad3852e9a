// Calls of redirected methods without their types.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/app/module.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/unique_function.h"
#include "zeze/transaction/procedure_name.h"

namespace zeze::arch {
class Redirect;
}  // namespace zeze::arch

namespace zeze::arch::internal {

struct RedirectTarget {
  enum class Kind : std::uint8_t { kHash, kServer, kServerOrOther };

  Kind kind = Kind::kHash;
  std::int32_t value = 0;  // Hash or server id.
  std::uint32_t level = 0;
};

struct RedirectCallOptions {
  std::chrono::nanoseconds timeout{0};  // 0: RedirectOptions::timeout.
  std::int32_t key = 0;                 // 0: by the target.
  bool ordered = true;
};

// The bytes are valid during the call only.
struct RedirectRaw {
  RedirectOutcome outcome = RedirectOutcome::kNotDone;
  std::int64_t code = 0;
  std::int32_t server_id = -1;
  std::string_view result = {};
};
struct RedirectGroupRaw : RedirectRaw {
  std::uint32_t group = 0;
  std::int64_t message_code = 0;
};

using RedirectDone = UniqueFunction<void(const RedirectRaw& raw)>;

// Where a completion runs.
enum class RedirectWhere : std::uint8_t {
  kAnywhere,  // Also on a network thread: it must not wait.
  kWorker,
};

// `method` is the address of its kRedirectKey. `done` is called exactly once.
void BeginRedirect(Redirect& redirect, const void* method, const RedirectTarget& target,
                   const RedirectCallOptions& options, std::string parameters, RedirectWhere where,
                   RedirectDone done);

struct RedirectAllDone {
  // One at a time. Each group once.
  UniqueFunction<void(const RedirectGroupRaw& raw)> each;
  // After them. The code: see RedirectAllReply.
  UniqueFunction<void(std::int64_t code)> done;
};
void BeginRedirectAll(Redirect& redirect, const void* method, std::uint32_t level,
                      const RedirectCallOptions& options, const std::string& parameters,
                      RedirectWhere where, RedirectAllDone done);

// Of a method that was added; a wrong program otherwise.
struct RedirectHere {
  Module& module;
  ProcedureName procedure;
  std::int32_t server_id;
};
RedirectHere FindRedirect(Redirect& redirect, const void* method);

// When a caller stops waiting. Stops the program on a network thread.
struct RedirectPatience {
  Clock& clock;
  std::chrono::nanoseconds deadline;
};
RedirectPatience PatienceOf(Redirect& redirect, const RedirectCallOptions& options);

// A result that does not fit its type.
void LogBadRedirectResult(std::int32_t server_id, const std::string& why);

// A value that one thread waits for and another brings, perhaps too late.
template <typename T>
class RedirectWait {
 public:
  void Set(T value) {
    MutexLock lock(mutex_);
    value_ = std::move(value);
    changed_.NotifyAll();
  }
  std::optional<T> Await(const RedirectPatience& patience) {
    MutexLock lock(mutex_);
    while (!value_.has_value()) {
      if (!patience.clock.WaitUntil(changed_, mutex_, patience.deadline)) break;
    }
    return std::move(value_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<T> value_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch::internal
