// RedirectAllBatch: what a server answers to a call to some of its groups, as they end.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/base/mutex.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"

namespace zeze::arch::internal {

// Sends results together that come within kLinger, so that a group waits for no other one: usually
// one message, several if some groups are slow or results are large. Thread-safe.
class RedirectAllBatch : public std::enable_shared_from_this<RedirectAllBatch> {
 public:
  using Result = Zeze::Builtin::ProviderDirect::BModuleRedirectAllResult;

  // A message is sent as soon as its results have so many bytes.
  static constexpr std::size_t kCutBytes = 1 << 20;

  // A result is sent no later than this after it has come, unless the io threads are busy.
  static constexpr std::chrono::nanoseconds kLinger = std::chrono::milliseconds(1);

  // `header` is without groups. The message code is 0, or why none of them runs. The io threads are
  // those of the connection.
  RedirectAllBatch(IoThreads& io, ConnectionPtr connection, Result header, std::size_t groups,
                   std::int64_t message_code = 0);

  void Add(std::int32_t group, std::int64_t code, std::string result);

 private:
  void SendPending() ZEZE_REQUIRES(mutex_);

  IoThreads& io_;
  const ConnectionPtr connection_;
  const Result header_;
  const std::int64_t message_code_;

  Mutex mutex_;
  Result pending_ ZEZE_GUARDED_BY(mutex_);
  std::size_t pending_bytes_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t missing_ ZEZE_GUARDED_BY(mutex_);
  bool flush_is_due_ ZEZE_GUARDED_BY(mutex_) = false;
};

}  // namespace zeze::arch::internal
