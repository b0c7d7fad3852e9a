// RedirectGather: one call to all groups, under way: who has answered, and what.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "zeze/arch/redirect/internal/redirect_raw.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"

namespace zeze::arch::internal {

// Each group is told once, whoever answers how often. Thread-safe.
class RedirectGather : public std::enable_shared_from_this<RedirectGather> {
 public:
  struct Answer {
    RedirectOutcome outcome = RedirectOutcome::kNotDone;
    std::int64_t code = 0;
    std::int64_t message_code = 0;
    std::string result = {};
  };
  struct GroupAnswer {
    std::uint32_t group = 0;
    Answer answer = {};
  };

  // Where callbacks run: on the executor, or, if it is null, on the thread that brings an answer.
  RedirectGather(std::uint32_t level, std::size_t result_bytes_max, Executor* executor,
                 RedirectAllDone done);

  // From whom a group's answer is expected; `connection_id` 0: from this process.
  void Expect(std::uint32_t group, std::int32_t server_id, std::int64_t connection_id);

  // Returns how many were not expected from there: unknown, double, or too late.
  std::size_t Add(std::int64_t connection_id, std::vector<GroupAnswer> answers);

  // All that are still expected from a connection, or from anywhere.
  void FailConnection(std::int64_t connection_id, const Answer& answer);
  void FailAll(const Answer& answer);

  bool finished() const;

 private:
  struct Group {
    std::int32_t server_id = -1;
    std::int64_t connection_id = 0;
    bool answered = false;
  };
  struct Ready {
    std::uint32_t group;
    std::int32_t server_id;
    Answer answer;
  };

  void Take(std::uint32_t group, Answer answer) ZEZE_REQUIRES(mutex_);
  void Deliver();
  void Drain();

  const std::size_t result_bytes_max_;
  Executor* const executor_;
  RedirectAllDone done_;  // Used by whoever drains.

  mutable Mutex mutex_;
  std::vector<Group> groups_ ZEZE_GUARDED_BY(mutex_);
  std::size_t missing_ ZEZE_GUARDED_BY(mutex_);
  std::size_t result_bytes_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::deque<Ready> ready_ ZEZE_GUARDED_BY(mutex_);
  bool draining_ ZEZE_GUARDED_BY(mutex_) = false;
  bool told_ ZEZE_GUARDED_BY(mutex_) = false;
};

}  // namespace zeze::arch::internal
