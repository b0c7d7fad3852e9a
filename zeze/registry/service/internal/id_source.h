// IdSource: hands out the ids of a block, and fetches the next block when it is used up.

#pragma once

#include <cstdint>

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"

namespace zeze::registry {

// Thread-safe. One caller at a time fetches; the others wait for it.
class IdSource {
 public:
  // `fetch` may wait. Its error is returned to whoever fetched; others try by themselves.
  Result<Id128> Next(FunctionRef<Result<IdBlock>()> fetch);

 private:
  Mutex mutex_;
  CondVar fetched_;
  bool fetching_ ZEZE_GUARDED_BY(mutex_) = false;
  Id128 next_ ZEZE_GUARDED_BY(mutex_);
  std::uint32_t left_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze::registry
