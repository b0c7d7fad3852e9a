#include "zeze/arch/redirect/internal/redirect_gather.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include "zeze/arch/redirect/internal/redirect_raw.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"

namespace zeze::arch::internal {

namespace {

// A callback that throws must not keep the others from being called.
template <typename Callback>
void CallSafely(Callback callback) {
  try {
    callback();
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("a callback of a call to all groups has thrown: {}", error.what());
  } catch (...) {
    ZEZE_LOG_ERROR("a callback of a call to all groups has thrown");
  }
}

}  // namespace

RedirectGather::RedirectGather(std::uint32_t level, std::size_t result_bytes_max,
                               Executor* executor, RedirectAllDone done)
    : result_bytes_max_(result_bytes_max),
      executor_(executor),
      done_(std::move(done)),
      groups_(level),
      missing_(level) {
  ZEZE_REQUIRE(level > 0, "a call to all groups needs at least one group");
}

void RedirectGather::Expect(std::uint32_t group, std::int32_t server_id,
                            std::int64_t connection_id) {
  MutexLock lock(mutex_);
  groups_[group].server_id = server_id;
  groups_[group].connection_id = connection_id;
}

std::size_t RedirectGather::Add(std::int64_t connection_id, std::vector<GroupAnswer> answers) {
  std::size_t unexpected = 0;
  {
    MutexLock lock(mutex_);
    for (GroupAnswer& each : answers) {
      const bool expected = each.group < groups_.size() && !groups_[each.group].answered &&
                            groups_[each.group].connection_id == connection_id;
      if (expected) {
        Take(each.group, std::move(each.answer));
      } else {
        ++unexpected;
      }
    }
  }
  Deliver();
  return unexpected;
}

void RedirectGather::FailConnection(std::int64_t connection_id, const Answer& answer) {
  {
    MutexLock lock(mutex_);
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].answered && groups_[i].connection_id == connection_id) Take(i, answer);
    }
  }
  Deliver();
}

void RedirectGather::FailAll(const Answer& answer) {
  {
    MutexLock lock(mutex_);
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].answered) Take(i, answer);
    }
  }
  Deliver();
}

bool RedirectGather::finished() const {
  MutexLock lock(mutex_);
  return missing_ == 0;
}

void RedirectGather::Take(std::uint32_t group, Answer answer) {
  groups_[group].answered = true;
  --missing_;
  if (result_bytes_ + answer.result.size() > result_bytes_max_) {
    // It ran, but there is no room for what it said.
    answer = {.outcome = RedirectOutcome::kUnknown, .code = result_code::kBusy};
  }
  result_bytes_ += answer.result.size();
  ready_.push_back({group, groups_[group].server_id, std::move(answer)});
}

void RedirectGather::Deliver() {
  {
    MutexLock lock(mutex_);
    if (draining_ || told_ || (ready_.empty() && missing_ > 0)) return;
    draining_ = true;
  }
  if (executor_ == nullptr) return Drain();
  executor_->Post(
      Task("results of a call to all groups", [self = shared_from_this()] { self->Drain(); }));
}

void RedirectGather::Drain() {
  for (;;) {
    std::deque<Ready> ready;
    bool last = false;
    {
      MutexLock lock(mutex_);
      ready.swap(ready_);
      last = missing_ == 0;
      if (ready.empty() && !last) {
        draining_ = false;
        return;
      }
      if (last) told_ = true;
    }
    for (Ready& each : ready) {
      RedirectGroupRaw raw;
      raw.outcome = each.answer.outcome;
      raw.code = each.answer.code;
      raw.server_id = each.server_id;
      raw.result = each.answer.result;
      raw.group = each.group;
      raw.message_code = each.answer.message_code;
      CallSafely([&] { done_.each(raw); });
    }
    if (last) return CallSafely([&] { done_.done(result_code::kSuccess); });
  }
}

}  // namespace zeze::arch::internal
