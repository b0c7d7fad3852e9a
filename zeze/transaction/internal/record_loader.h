// RecordLoader: gives a record its right and its value, and takes the right away when Global asks.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/engine_parts.h"
#include "zeze/transaction/internal/record.h"

namespace zeze {
class Checkpoint;
class TableBase;
}  // namespace zeze

namespace zeze::internal {

struct DurabilityTicket;

// Thread-safe; runs on the threads of its callers. The context of a call is inside, and no record
// is locked.
class RecordLoader {
 public:
  // `durable_wait_max`: as in EngineOptions.
  RecordLoader(const EngineParts& parts, std::chrono::nanoseconds durable_wait_max)
      : parts_(parts), durable_wait_max_(durable_wait_max) {}

  // Before the first record is added. Requests of Global may come earlier: they find none.
  void Start(Checkpoint& checkpoint) { checkpoint_ = &checkpoint; }

  // Makes the record readable: right and value. Blocks. Without an error the caller looks at the
  // record again: it may be dead, or have lost the right already.
  // An error means that the record cannot be had now; `undecodable` is set if that is because its
  // row is not what a record of the table looks like. The right is there then.
  Result<void> Load(Context& context, Record& record, Right wanted, bool* undecodable = nullptr);

  // Gets rights and values of records of one table, in one round trip each, as far as that goes
  // without trouble. Load does the rest when a transaction opens them.
  void Fetch(Context& context, TableBase& table, std::span<Record* const> records, Right wanted);

  // The procedure of the context has ended: others may have the rights that it asked for.
  void UseUp(Context& context) const {
    if (context.fresh.keys.empty()) [[likely]]
      return;
    parts_.coherence->Used(context.fresh);
    context.fresh.keys.clear();
  }

  // The requests of Global, on contexts of their own: see Engine.
  Result<void> Reduce(std::string_view global_key, Right to);
  void ReduceThen(std::string_view global_key, Right to, Task saved);
  void ForEachRight(FunctionRef<void(std::string_view global_key, Right right)> visit);

 private:
  Result<void> AwaitAnswer(const Record& record, Backoff& backoff,
                           std::chrono::nanoseconds& waiting_since);
  Result<void> AcquireRight(Context& context, Record& record, Right wanted);
  void AcquireRights(Context& context, std::span<Record* const> records, Right wanted);
  void InstallRight(Context& context, Record& record, Right granted);
  Result<void> LoadValue(Context& context, Record& record, std::uint64_t stamp, bool* undecodable);
  void LoadValues(Context& context, TableBase& table, std::span<Record* const> records);
  void InstallValue(Context& context, TableBase& table, Record& record, std::uint64_t stamp,
                    ValueHeader* value);
  // The cached record of a global key, or null.
  Result<Record*> FindGlobal(Context& context, std::string_view global_key);
  DurabilityTicket* LowerRight(Context& context, Record& record, Right to, Task* then);

  const EngineParts parts_;
  const std::chrono::nanoseconds durable_wait_max_;
  Checkpoint* checkpoint_ = nullptr;
};

}  // namespace zeze::internal
