// EngineParts: what the parts of one engine have in common.

#pragma once

#include <memory>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/version_clock.h"

namespace zeze {
class TableBase;
}  // namespace zeze

namespace zeze::internal {

// All of it outlives the parts.
struct EngineParts {
  const std::vector<TableBase*>& tables;  // By Record::table_index.
  const std::shared_ptr<ContextPool>& contexts;
  VersionClock& versions;
  Clock& clock;
  Coherence* coherence;  // Null: this process has the database to itself.

  TableBase& TableOf(const Record& record) const { return *tables[record.table_index]; }
};

}  // namespace zeze::internal
