// DirectSender: messages between servers, as far as logins need them. RedirectSender is one.

#pragma once

#include <cstdint>
#include <string>

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

  // A login has ended elsewhere: the server looks whether it still has local data of it.
  virtual Result<void> RemoveLocal(std::int32_t server_id, const std::string& account) = 0;
  virtual Result<void> RemoveLocal(std::int32_t server_id, std::int64_t role,
                                   const std::string& set_name) = 0;
};

}  // namespace zeze::arch
