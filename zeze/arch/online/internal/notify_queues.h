// NotifyQueues: messages that a client gets even if its connection breaks meanwhile: kept with the
// login until the client has confirmed them.
//
// As long as nothing is lost: the queue has the frames from the confirmed index up to the index of
// the next one. Anything else is found out at the next confirmation or re-login, and refused: the
// client then logs in afresh.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/arch/online/internal/login_environment.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

template <typename Key>
class NotifyQueues {
 public:
  explicit NotifyQueues(LoginEnvironment<Key>& environment)
      : environment_(environment), kind_(environment.kind) {}

  // What to send now, if anything, and to which login. A code other than 0: refused.
  struct Added {
    std::int64_t code = 0;
    std::optional<std::string> frame = std::nullopt;
    std::int64_t version = 0;
  };
  Added Add(Transaction& tx, const Key& key, std::string_view mark, std::string_view frame);

  // Everything below the index has arrived, and this is its hash (notify_hash.h; 0: the client does
  // not say). A code other than 0: it cannot be so.
  std::int64_t Confirm(Transaction& tx, const Key& key, std::int64_t index, std::int64_t hash);

  // Everything that is not confirmed; none if that is nothing.
  std::optional<std::string> Rest(Transaction& tx, const Key& key);

 private:
  bool HasRoom(const NotifyQueue& queue, std::size_t bytes) const;

  LoginEnvironment<Key>& environment_;
  LoginKind<Key>& kind_;
};

}  // namespace zeze::arch::internal
