// ActionList: the actions that a procedure has registered for the time after its end.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"

namespace zeze::internal {

class ActionList {
 public:
  enum class When : std::uint8_t {
    kCommit,
    kRollback,
    kDurable,
    kRolledBack,  // Whatever becomes of the procedure: a nested one has rolled back.
  };

  bool empty() const { return actions_.empty(); }
  std::size_t size() const { return actions_.size(); }

  void Add(When when, Task task) { actions_.push_back({when, std::move(task)}); }
  bool HasDurable() const {
    return std::any_of(actions_.begin(), actions_.end(),
                       [](const Action& action) { return action.when == When::kDurable; });
  }
  void DropDurable();
  void TakeDurable(std::vector<Task>& tasks);
  // Those that Run(kCommit) would run for the commit.
  std::vector<Task> TakeAfterCommit();

  // The nested procedure that registered all but the first `count` has rolled back.
  void RollBackTo(std::size_t count);
  void Truncate(std::size_t count) { actions_.resize(count); }
  void Clear() { actions_.clear(); }

  // Those of nested procedures that rolled back, and those for this outcome. What they throw is
  // logged with the procedure's name. They may register more.
  void Run(When outcome, const char* procedure);

 private:
  struct Action {
    When when = When::kCommit;
    Task task;
  };

  std::vector<Action> actions_;
};

}  // namespace zeze::internal
