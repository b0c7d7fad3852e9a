// Intents: the intention locks of a procedure that runs again (rule 23). A procedure that lost a
// race announces what it wrote last time, so that first runs of others wait for it instead of
// beating it again. Local, ordered by address, given up after a bounded wait; they protect nothing.

#pragma once

#include <algorithm>
#include <vector>

#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/run.h"

namespace zeze::internal {

class Intents {
 public:
  bool empty() const { return records_.empty(); }
  const std::vector<Record*>& records() const { return records_; }
  bool Holds(const Record* record) const {
    return std::binary_search(records_.begin(), records_.end(), record);
  }

  // Waits while another one intends to write the record, but not for long: it may wait for us.
  static void LetPass(const Record& record);

  // Announces what the run wrote, and what it lost its race over.
  void Take(const Run& run);
  void Release();

 private:
  std::vector<Record*> records_;  // Sorted.
};

}  // namespace zeze::internal
