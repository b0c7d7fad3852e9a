#include "zeze/arch/redirect/internal/redirect_executor.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

RedirectOutcome OutcomeOf(std::int64_t code) {
  if (code == result_code::kSuccess) return RedirectOutcome::kDone;
  // The commit's outcome is not known; or the method had no transaction to roll back.
  if (code == result_code::kUnknown || code == redirect_code::kException) {
    return RedirectOutcome::kUnknown;
  }
  return RedirectOutcome::kNotDone;
}

std::int32_t RedirectKeyOf(std::int32_t module_id, std::uint32_t group) {
  const std::uint32_t key = RoutingHash((std::int64_t{module_id} << 32) | group);
  return key == 0 ? 1 : static_cast<std::int32_t>(key);
}

// A job on its way through the application's queues. One that is dropped there is answered, too.
class RedirectExecutor::Execution {
 public:
  Execution(RedirectExecutor& executor, RedirectJob job)
      : executor_(&executor), job_(std::make_unique<RedirectJob>(std::move(job))) {}
  Execution(Execution&& other) noexcept = default;
  Execution& operator=(Execution&&) = delete;
  ~Execution() {
    if (job_ != nullptr) Finish({.code = result_code::kBusy});
  }

  void operator()() {
    RedirectAnswer answer = executor_->Execute(*job_);
    Finish(std::move(answer));
  }

 private:
  void Finish(RedirectAnswer answer) {
    const std::unique_ptr<RedirectJob> job = std::move(job_);
    const std::size_t bytes = job->parameters.size();
    job->finish(std::move(answer));
    executor_->Leave(bytes);
  }

  RedirectExecutor* executor_;
  std::unique_ptr<RedirectJob> job_;
};

void RedirectExecutor::Run(RedirectJob job) {
  if (!job.entry->is_here()) return job.finish({.code = redirect_code::kMethodNotFound});
  bool closed = false;
  bool full = false;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    full = jobs_ >= options_.jobs_max || bytes_ + job.parameters.size() > options_.bytes_max;
    if (closed || full) {
      ++statistics_.refused;
    } else {
      ++jobs_;
      bytes_ += job.parameters.size();
    }
  }
  if (closed) return job.finish({.code = result_code::kClosed});
  if (full) return job.finish({.code = result_code::kBusy});
  const std::optional<RedirectLane> lane = job.lane;
  const char* const name = job.entry->procedure.c_str();
  Task task(name, Execution(*this, std::move(job)));
  const Result<void> posted = lane.has_value()
                                  ? application_.one_by_one().Post(lane->value, std::move(task))
                                  : application_.workers().TryPost(std::move(task));
  if (!posted.ok()) {
    MutexLock lock(mutex_);
    ++statistics_.refused;
  }
}

RedirectAnswer RedirectExecutor::Execute(RedirectJob& job) {
  if (job.deadline.has_value() && options_.clock->Now() >= *job.deadline) {
    return {.code = redirect_code::kRequestTimeout};
  }
  ByteReader in(job.parameters);
  const std::unique_ptr<RedirectInvocation> invocation = job.entry->decode(in);
  if (!in.ok()) {
    ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "the parameters of {} cannot be decoded: {}",
                           job.entry->full_name, in.error_message());
    MutexLock lock(mutex_);
    ++statistics_.bad_parameters;
    return {.code = redirect_code::kError};
  }
  {
    MutexLock lock(mutex_);
    ++statistics_.executions;
  }
  return RunMethod(job, *invocation);
}

RedirectAnswer RedirectExecutor::RunMethod(const RedirectJob& job, RedirectInvocation& invocation) {
  const RedirectEntry& entry = *job.entry;
  RedirectAnswer answer;
  if (entry.in_transaction) {
    answer.code = application_.CallApart(entry.procedure, [&](Transaction& tx) {
      return invocation.Run(entry.module, &tx, job.hash);
    });
  } else {
    try {
      answer.code = invocation.Run(entry.module, nullptr, job.hash);
    } catch (const std::exception& error) {
      ZEZE_LOG_ERROR("{} has thrown: {}", entry.full_name, error.what());
      answer.code = redirect_code::kException;
    } catch (...) {
      ZEZE_LOG_ERROR("{} has thrown", entry.full_name);
      answer.code = redirect_code::kException;
    }
  }
  answer.outcome = OutcomeOf(answer.code);
  if (answer.code != result_code::kSuccess) return answer;
  ByteWriter out;
  try {
    invocation.EncodeResult(out);
  } catch (const EncodeError& error) {
    ZEZE_LOG_ERROR("the result of {} cannot be sent: {}", entry.full_name, error.what());
    return {.outcome = RedirectOutcome::kUnknown, .code = redirect_code::kError};
  }
  if (out.size() > options_.result_bytes_max) {
    ZEZE_LOG_ERROR("the result of {} has {} bytes, at most {} can be sent", entry.full_name,
                   out.size(), options_.result_bytes_max);
    return {.outcome = RedirectOutcome::kUnknown, .code = redirect_code::kError};
  }
  answer.result = out.Release();
  return answer;
}

void RedirectExecutor::Leave(std::size_t bytes) {
  MutexLock lock(mutex_);
  bytes_ -= bytes;
  if (--jobs_ == 0) idle_.NotifyAll();
}

void RedirectExecutor::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

bool RedirectExecutor::AwaitIdle(std::chrono::nanoseconds deadline) {
  MutexLock lock(mutex_);
  while (jobs_ > 0) {
    if (!options_.clock->WaitUntil(idle_, mutex_, deadline)) return jobs_ == 0;
  }
  return true;
}

RedirectExecutor::Statistics RedirectExecutor::GetStatistics() const {
  MutexLock lock(mutex_);
  Statistics statistics = statistics_;
  statistics.waiting = jobs_;
  return statistics;
}

}  // namespace zeze::arch::internal
