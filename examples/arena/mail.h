// Mails: a box for each player, and gold that comes with mails and is claimed once.

#pragma once

#include <cstdint>
#include <string>

#include "arena/Mail.h"
#include "arena/Mail.module.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/logins.h"
#include "zeze/base/result.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Players;

// What is in all boxes, and what they say was done.
struct MailTotals {
  std::int64_t sent = 0;
  std::int64_t gold_sent = 0;
  std::int64_t present = 0;
  std::int64_t gold_waiting = 0;  // Not claimed yet.
  std::int64_t claims = 0;
  std::int64_t gold_claimed = 0;
  std::int64_t deleted = 0;
  std::int64_t kept = 0;  // Of the deleted ones.
};

class Mails final : public arena::Mail::ModuleMailBase {
 public:
  // All outlive the mails. Deleted mails are kept for as long as DelayRemove is told.
  Mails(Players& players, zeze::AutoKeys& auto_keys, zeze::LinkedMaps& maps);

  // Before the first message: players hear of their mails at once. Outlives the mails' use.
  void Connect(zeze::arch::Logins<std::int64_t>& logins) { logins_ = &logins; }

  // In the transaction of what it is about: both or neither. Also to players who never came.
  void Send(zeze::Transaction& tx, std::int64_t role, std::string text, std::int64_t gold);

  // Each has an effect once: a client that got no answer asks again, and is told so.
  std::int64_t MarkRead(zeze::Transaction& tx, std::int64_t role, std::int64_t id);
  std::int64_t Claim(zeze::Transaction& tx, std::int64_t role, std::int64_t id);
  std::int64_t Delete(zeze::Transaction& tx, std::int64_t role, std::int64_t id);

  // At most `count` of the newest, while others send and delete.
  zeze::Result<arena::Mail::BListResult> List(std::int64_t role, std::size_t count);

  std::int64_t ProcessList(zeze::Session& session, const arena::Mail::BList& argument,
                           arena::Mail::BListResult& result) override;
  std::int64_t ProcessRead(zeze::Transaction& tx, zeze::Session& session,
                           const arena::Mail::BMailId& argument) override;
  std::int64_t ProcessClaim(zeze::Transaction& tx, zeze::Session& session,
                            const arena::Mail::BMailId& argument,
                            arena::Mail::BClaimResult& result) override;
  std::int64_t ProcessDelete(zeze::Transaction& tx, zeze::Session& session,
                             const arena::Mail::BMailId& argument) override;

  zeze::Result<void> Start(zeze::Application& application) override;

  // When nothing runs: walks every box. An error tells which one says something that is not so.
  zeze::Result<MailTotals> Check();

 private:
  zeze::LinkedMap<arena::Mail::BMail> BoxOf(std::int64_t role);

  Players& players_;
  zeze::AutoKeys& auto_keys_;
  zeze::LinkedMaps& maps_;
  zeze::Application* application_ = nullptr;
  zeze::AutoKey* ids_ = nullptr;
  zeze::arch::Logins<std::int64_t>* logins_ = nullptr;
};

}  // namespace arena_example
