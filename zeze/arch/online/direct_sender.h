// DirectSender: messages between servers, as far as logins need them.

#pragma once

#include <cstdint>
#include <string_view>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/base/result.h"

namespace zeze::arch {

// Best effort: what is lost is not missed for ever (docs/online.md). Thread-safe; nothing waits.
class DirectSender {
 public:
  virtual ~DirectSender() = default;

  virtual Result<void> Send(std::int32_t server_id,
                            const Zeze::Builtin::ProviderDirect::BTransmit& message) = 0;
  virtual Result<void> Send(std::int32_t server_id,
                            const Zeze::Builtin::ProviderDirect::BTransmitAccount& message) = 0;

  // Calls a redirected method that returns nothing. `parameters` are encoded as the peer does it.
  virtual Result<void> Call(std::int32_t server_id, std::int32_t module_id,
                            std::string_view method_full_name, std::string_view parameters) = 0;
};

}  // namespace zeze::arch
