// RedirectExecutor: runs redirected methods at the server where they belong, whoever asked.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/unique_function.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/transaction/procedure_name.h"

namespace zeze::arch::internal {

// A method that can be called, here and at other servers.
struct RedirectEntry {
  std::int32_t module_id;
  Module* module;  // Null if the method is not here, or is given in encoded form.
  std::string full_name;
  std::string service;
  ProcedureName procedure;
  std::int32_t version;
  bool in_transaction;
  // Whether the bytes were good is the reader's ok(). Empty: the method is only called from here.
  std::function<std::unique_ptr<RedirectInvocation>(ByteReader& parameters)> decode;

  bool is_here() const { return decode != nullptr; }
};

struct RedirectAnswer {
  RedirectOutcome outcome = RedirectOutcome::kNotDone;
  std::int64_t code = 0;
  std::string result = {};
};

// What a code that a server answered says about the method's effects.
RedirectOutcome OutcomeOf(std::int64_t code);

// Which calls wait for each other.
struct RedirectLane {
  std::uint64_t value = 0;

  static RedirectLane OfKey(std::int32_t key) { return {kKeys | static_cast<std::uint32_t>(key)}; }
  static RedirectLane OfConnection(std::int64_t id) {
    return {kConnections | static_cast<std::uint64_t>(id)};
  }

  static constexpr std::uint64_t kKeys = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kConnections = std::uint64_t{2} << 62;
};

// The key of a group, the same on all servers; never 0.
std::int32_t RedirectKeyOf(std::int32_t module_id, std::uint32_t group);

struct RedirectJob {
  const RedirectEntry* entry = nullptr;
  std::int32_t hash = 0;
  std::optional<RedirectLane> lane = std::nullopt;  // None: beside everything else.
  std::string parameters = {};
  // Not begun later than this.
  std::optional<std::chrono::nanoseconds> deadline = std::nullopt;
  // Exactly once: on the worker that ran it, or, if it did not run, anywhere.
  UniqueFunction<void(RedirectAnswer answer)> finish;
};

// Thread-safe. Ends before the application stops.
class RedirectExecutor {
 public:
  struct Options {
    std::size_t jobs_max = 65536;
    std::size_t bytes_max = 256 << 20;
    std::size_t result_bytes_max = 16 << 20;
    Clock* clock = &SystemClock();
  };
  RedirectExecutor(Application& application, const Options& options)
      : application_(application), options_(options) {}
  RedirectExecutor(const RedirectExecutor&) = delete;
  RedirectExecutor& operator=(const RedirectExecutor&) = delete;

  void Run(RedirectJob job);

  // Later jobs are refused with kClosed.
  void Close();
  // Until nothing waits or runs; false at the deadline.
  bool AwaitIdle(std::chrono::nanoseconds deadline);

  struct Statistics {
    std::uint64_t executions = 0;
    std::uint64_t refused = 0;
    std::uint64_t bad_parameters = 0;
    std::size_t waiting = 0;
  };
  Statistics GetStatistics() const;

 private:
  class Execution;

  void Leave(std::size_t bytes);
  RedirectAnswer Execute(RedirectJob& job);
  RedirectAnswer RunMethod(const RedirectJob& job, RedirectInvocation& invocation);

  Application& application_;
  const Options options_;

  mutable Mutex mutex_;
  CondVar idle_;
  bool closed_ ZEZE_GUARDED_BY(mutex_) = false;
  std::size_t jobs_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ ZEZE_GUARDED_BY(mutex_) = 0;
  Statistics statistics_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch::internal
