// UnsavedInserts: the encoded keys of one table's records that may be in the cache and not yet in
// the storage, in order, for walks.

#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/storage/storage.h"

namespace zeze::internal {

// Thread-safe. Noted and forgotten while the record is locked, before its new state is visible.
class UnsavedInserts {
 public:
  void Note(std::string_view key);
  void Forget(std::string_view key);

  // Those after (before) walk.after, at most walk.limit; with walk.after itself if `inclusive`.
  std::vector<std::string> Page(const StorageWalk& walk, bool inclusive) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace zeze::internal
