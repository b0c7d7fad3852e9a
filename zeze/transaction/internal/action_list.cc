#include "zeze/transaction/internal/action_list.h"

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"

namespace zeze::internal {

void ActionList::DropDurable() {
  std::erase_if(actions_, [](const Action& action) { return action.when == When::kDurable; });
}

void ActionList::TakeDurable(std::vector<Task>& tasks) {
  for (Action& action : actions_) {
    if (action.when == When::kDurable) tasks.push_back(std::move(action.task));
  }
}

std::vector<Task> ActionList::TakeAfterCommit() {
  std::vector<Task> tasks;
  for (Action& action : actions_) {
    if (action.when == When::kCommit) tasks.push_back(std::move(action.task));
  }
  std::erase_if(actions_, [](const Action& action) { return action.when == When::kCommit; });
  return tasks;
}

void ActionList::RollBackTo(std::size_t count) {
  std::size_t kept = count;
  for (std::size_t i = count; i < actions_.size(); ++i) {
    if (actions_[i].when == When::kRollback) actions_[i].when = When::kRolledBack;
    if (actions_[i].when != When::kRolledBack) continue;
    if (kept != i) actions_[kept] = std::move(actions_[i]);
    ++kept;
  }
  actions_.resize(kept);
}

void ActionList::Run(When outcome, const char* procedure) {
  // An action may register more: by index, and moved out before it runs.
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const When when = actions_[i].when;
    if (when != When::kRolledBack && when != outcome) continue;
    const char* const after = when == When::kCommit ? "commit" : "rollback";
    Task task = std::move(actions_[i].task);
    try {
      task();
    } catch (const std::exception& e) {
      ZEZE_LOG_ERROR("procedure {}: an action after its {} threw: {}", procedure, after, e.what());
    } catch (...) {
      ZEZE_LOG_ERROR("procedure {}: an action after its {} threw", procedure, after);
    }
  }
}

}  // namespace zeze::internal
