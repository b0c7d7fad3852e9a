// ListScript: a short way from one list to another by modifying, inserting and removing elements.

#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace zeze::internal {

struct ListStep {
  enum class Kind { kModify, kInsert, kRemove };

  Kind kind = Kind::kModify;
  // Where, counting the elements as they are when the steps before it are done.
  std::size_t position = 0;
  std::size_t old_index = 0;  // kModify, kRemove
  std::size_t new_index = 0;  // kModify, kInsert
};

// The steps are few rather than fewest: a search for the fewest insertions and removals gives up
// when the lists differ too much, and then elements are modified place by place.
class ListScript {
 public:
  using Equal = std::function<bool(std::size_t old_index, std::size_t new_index)>;

  ListScript(std::size_t old_size, std::size_t new_size, const Equal& equal);

  const std::vector<ListStep>& steps() const { return steps_; }

 private:
  std::vector<ListStep> steps_;
};

}  // namespace zeze::internal
