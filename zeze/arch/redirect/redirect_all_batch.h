// RedirectAllBatch: what a server answers to a call to some of its groups, as they end.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/base/mutex.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"

namespace zeze::arch::internal {

// Sends one message when all groups have ended, or several when results are large. Thread-safe.
class RedirectAllBatch {
 public:
  using Result = Zeze::Builtin::ProviderDirect::BModuleRedirectAllResult;

  // A message is sent as soon as its results have so many bytes.
  static constexpr std::size_t kCutBytes = 1 << 20;

  // `header` is without groups. The message code is 0, or why none of them runs.
  RedirectAllBatch(ConnectionPtr connection, Result header, std::size_t groups,
                   std::int64_t message_code = 0);

  void Add(std::int32_t group, std::int64_t code, std::string result);

 private:
  const ConnectionPtr connection_;
  const Result header_;
  const std::int64_t message_code_;

  Mutex mutex_;
  Result pending_ ZEZE_GUARDED_BY(mutex_);
  std::size_t pending_bytes_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t missing_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch::internal
