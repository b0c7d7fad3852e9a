// CollectionLedger: linked maps and a queue that all servers change all the time, beside records
// that say what must be in them.
//
//   CollectionLedger collections(ledger, queues, maps);
//   collections.Change(tx, random());                 // One more change of one of them.
//   collections.Check(tx);                            // Whole, in one transaction.
//   collections.Walk(application);                    // As others do, while all of it changes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "crash/Ledger.h"
#include "tests/components/ledger.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/transaction/transaction.h"

namespace zeze::crash_test {

class CollectionLedger {
 public:
  CollectionLedger(Ledger& ledger, Queues& queues, LinkedMaps& maps);

  std::int64_t Change(Transaction& tx, std::uint64_t random);
  std::int64_t Check(Transaction& tx);
  void Walk(Application& application);  // After a Check.

 private:
  using Number = crash::Ledger::BNumber;

  void PutWhatStays(Transaction& tx);
  void ChangeMap(Transaction& tx, LinkedMap<Number>& map, std::uint64_t random);
  void ChangeQueue(Transaction& tx, std::uint64_t random);
  void CheckMap(Transaction& tx, LinkedMap<Number>& map);
  void CheckQueue(Transaction& tx);
  // False: not now.
  bool WalkMap(Application& application, MapEnd from);
  bool WalkQueue(Application& application);
  bool Walked(Application& application, const Result<std::size_t>& walked);
  void Report(Application& application, const std::string& what);

  Ledger& ledger_;
  Queues& queues_;
  LinkedMaps& maps_;
  LinkedMap<Number> kept_;     // Some of its values stay for ever, where they are.
  LinkedMap<Number> cleared_;  // From time to time.
  Queue<Number> queue_;
};

}  // namespace zeze::crash_test
