// TimerLedger: timers of all kinds, and what each of them must and must not do. Every run is
// compared with the ones before it in its own transaction.
//
//   TimerLedger timer_ledger(ledger, timers);         // Before Start: registers the handler.
//   timer_ledger.Schedule(tx, server, slot);          // In a transaction.

#pragma once

#include <cstdint>
#include <string>

#include "crash/Ledger.h"
#include "tests/components/ledger.h"
#include "zeze/components/timer/timers.h"
#include "zeze/transaction/transaction.h"

namespace zeze::crash_test {

class TimerLedger {
 public:
  TimerLedger(Ledger& ledger, Timers& timers);

  // One that stays, in the whole cluster.
  void Begin(Transaction& tx);
  // The timer of this slot, of a kind that depends on the slot only.
  std::int64_t Schedule(Transaction& tx, std::int32_t server, std::int64_t slot);
  // Ends what would never end by itself.
  std::int64_t Finish(Transaction& tx, std::int32_t server);

  static constexpr const char* kStays = "named for ever";

 private:
  using BTimer = crash::Ledger::BTimer;

  std::int64_t Run(Transaction& tx, TimerContext& timer);
  std::int64_t Note(Transaction& tx, const std::string& id, const TimerSpec& spec, bool fails);
  std::int64_t ScheduleSome(Transaction& tx, const TimerSpec& spec, bool fails = false);
  std::int64_t ScheduleNamed(Transaction& tx, const std::string& name, const TimerSpec& spec);
  void CancelEndless(Transaction& tx, std::int32_t server);
  // Whether this occurrence may come after the last one.
  static bool MayFollow(const BTimer& record, std::int64_t planned);

  Ledger& ledger_;
  Timers& timers_;
};

}  // namespace zeze::crash_test
