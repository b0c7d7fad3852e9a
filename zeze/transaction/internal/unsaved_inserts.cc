#include "zeze/transaction/internal/unsaved_inserts.h"

#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/storage/storage.h"

namespace zeze::internal {

void UnsavedInserts::Note(std::string_view key) {
  const std::lock_guard lock(mutex_);
  keys_.emplace(key);
}

void UnsavedInserts::Forget(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto at = keys_.find(key);
  if (at != keys_.end()) keys_.erase(at);
}

std::vector<std::string> UnsavedInserts::Page(const StorageWalk& walk, bool inclusive) const {
  std::vector<std::string> keys;
  const std::lock_guard lock(mutex_);
  if (!walk.descending) {
    auto at = !walk.after ? keys_.begin()
              : inclusive ? keys_.lower_bound(*walk.after)
                          : keys_.upper_bound(*walk.after);
    for (; at != keys_.end() && keys.size() < walk.limit; ++at) keys.push_back(*at);
  } else {
    const auto end = walk.after ? keys_.lower_bound(*walk.after) : keys_.end();
    for (auto at = std::make_reverse_iterator(end); at != keys_.rend() && keys.size() < walk.limit;
         ++at) {
      keys.push_back(*at);
    }
  }
  return keys;
}

}  // namespace zeze::internal
