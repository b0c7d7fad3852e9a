#include "zeze/registry/service/internal/id_source.h"

#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"

namespace zeze::registry {

Result<Id128> IdSource::Next(FunctionRef<Result<IdBlock>()> fetch) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (left_ == 0 && fetching_) fetched_.Wait(mutex_);
      if (left_ > 0) {
        const Id128 id = next_;
        next_ = next_ + 1;
        --left_;
        return id;
      }
      fetching_ = true;
    }
    const Result<IdBlock> block = fetch();
    const MutexLock lock(mutex_);
    fetching_ = false;
    fetched_.NotifyAll();
    if (!block.ok()) return block.error();
    next_ = block.value().start;
    left_ = block.value().count;
    if (left_ == 0) return Error(ErrorCode::kUnavailable, "the service manager gave no ids");
  }
}

}  // namespace zeze::registry
