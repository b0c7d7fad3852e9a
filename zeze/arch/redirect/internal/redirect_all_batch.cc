#include "zeze/arch/redirect/internal/redirect_all_batch.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch::internal {

RedirectAllBatch::RedirectAllBatch(IoThreads& io, ConnectionPtr connection, Result header,
                                   std::size_t groups, std::int64_t message_code)
    : io_(io),
      connection_(std::move(connection)),
      header_(std::move(header)),
      message_code_(message_code),
      pending_(header_),
      missing_(groups) {}

void RedirectAllBatch::Add(std::int32_t group, std::int64_t code, std::string result) {
  {
    MutexLock lock(mutex_);
    pending_bytes_ += result.size();
    pending_.Hashs.Put(group, {.ReturnCode = code, .Params = Binary(std::move(result))});
    if (--missing_ == 0 || pending_bytes_ >= kCutBytes) return SendPending();
    if (std::exchange(flush_is_due_, true)) return;
  }
  io_.PostAfter(kLinger, Task("results of a call to all groups", [self = shared_from_this()] {
                  MutexLock lock(self->mutex_);
                  self->flush_is_due_ = false;
                  self->SendPending();
                }));
}

// Under the mutex: when the last group has been added, everything has been given to the connection.
void RedirectAllBatch::SendPending() {
  if (pending_.Hashs.empty()) return;
  const Result message = std::exchange(pending_, header_);
  pending_bytes_ = 0;
  using Zeze::Builtin::ProviderDirect::ModuleRedirectAllResult;
  const zeze::Result<void> sent =
      connection_->Send<ModuleRedirectAllResult>(message, message_code_);
  if (!sent.ok()) {
    ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "results of {} cannot be sent to {}: {}",
                           header_.MethodFullName, connection_->Describe(), sent.error().message());
  }
}

}  // namespace zeze::arch::internal
