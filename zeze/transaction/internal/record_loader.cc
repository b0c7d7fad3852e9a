#include "zeze/transaction/internal/record_loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/internal/commit_log.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/record_map.h"
#include "zeze/transaction/table_base.h"

namespace zeze::internal {

Result<void> RecordLoader::Load(Context& context, Record& record, Right wanted, bool* undecodable) {
  std::chrono::nanoseconds waiting_since{0};
  Backoff backoff;
  while (true) {
    const std::uint64_t word = record.word.load(std::memory_order_acquire);
    if (Word::Locked(word)) {
      backoff.Wait();
      continue;
    }
    if (Word::Dead(word)) return {};
    if (Word::RightOf(word) < wanted && record.Dirty(word)) {
      if (Result<void> waits = AwaitAnswer(record, backoff, waiting_since); !waits.ok()) {
        return waits;
      }
      continue;
    }
    if (Word::RightOf(word) < wanted) {
      if (Result<void> got = AcquireRight(context, record, wanted); !got.ok()) return got;
      continue;
    }
    if (Word::Loaded(word)) return {};
    if (Result<void> loaded = LoadValue(context, record, word, undecodable); !loaded.ok())
      return loaded;
  }
}

// The record was reduced and is not saved yet: what the storage has is old, and the answer has not
// left (rule 18). As long as the database takes nothing that does not change.
Result<void> RecordLoader::AwaitAnswer(const Record& record, Backoff& backoff,
                                       std::chrono::nanoseconds& waiting_since) {
  constexpr int kSpinningRounds = 1000;
  constexpr auto kFlushLookPeriod = std::chrono::milliseconds(100);
  if (backoff.rounds() < kSpinningRounds) {
    backoff.Wait();
    return {};
  }
  const auto now = parts_.clock.Now();
  if (waiting_since.count() == 0) waiting_since = now;
  if (now - waiting_since >= durable_wait_max_) {
    const TableBase& table = parts_.TableOf(record);
    return Error(ErrorCode::kUnavailable,
                 fmt::format("record {} of table {} belongs to another server as soon as it is "
                             "saved, and the database does not take it",
                             table.FormatKey(record), table.name()));
  }
  checkpoint_->AwaitFlush(now + kFlushLookPeriod);
  return {};
}

Result<void> RecordLoader::AcquireRight(Context& context, Record& record, Right wanted) {
  ZEZE_CHECK(parts_.coherence != nullptr);
  const std::string key = parts_.TableOf(record).GlobalKey(record);
  // This thread waits until the grant is installed, so whoever installs it may use its context.
  return parts_.coherence->Acquire(key, wanted, context.fresh,
                                   [&](Right granted) { InstallRight(context, record, granted); });
}

void RecordLoader::InstallRight(Context& context, Record& record, Right granted) {
  const std::uint64_t word = LockRecord(record);
  const Right held = Word::RightOf(word);
  // Lost and not yet saved since it was asked for: what the storage has is old (rule 18). Global
  // believes too much then, and whoever asks again gets it.
  if (held == Right::kInvalid && record.Dirty(word)) {
    UnlockRecord(record, word);
    return;
  }
  // Share to Modify keeps the version: what was read under Share is still true.
  const bool keeps = held == Right::kShare && granted == Right::kModify;
  const std::uint64_t version = keeps ? Word::Version(word) : context.NextVersion();
  if (!keeps && !record.Dirty(word)) {
    record.flushed_version.store(version, std::memory_order_relaxed);
  }
  record.word.store(
      Word::Make(version, std::max(held, granted), Word::Loaded(word)) | (word & Word::kDead),
      std::memory_order_release);
}

// Reads without any lock, and installs only if nothing happened to the record meanwhile (rule 6).
Result<void> RecordLoader::LoadValue(Context& context, Record& record, std::uint64_t stamp,
                                     bool* undecodable) {
  TableBase& table = parts_.TableOf(record);
  ValueHeader* value = nullptr;
  if (table.storage() != nullptr) {
    ContextStatistics::Count(context.statistics.loads);
    table.cache().loads.fetch_add(1, std::memory_order_relaxed);
    ByteWriter key;
    table.EncodeRecordKey(record, key);
    Result<void> decoded;
    Result<bool> found = table.storage()->Find(key.view(), [&](std::string_view bytes) {
      Result<ValueHeader*> result = table.DecodeValue(context.participant, bytes);
      if (result.ok()) {
        value = result.value();
      } else {
        decoded = result.error();
      }
    });
    if (!found.ok() || !decoded.ok()) {
      if (found.ok() && undecodable != nullptr) *undecodable = true;
      const Error& cause = found.ok() ? decoded.error() : found.error();
      return Error(cause.code(),
                   fmt::format("cannot load record {} of table {}: {}", table.FormatKey(record),
                               table.name(), cause.message()));
    }
  }
  InstallValue(context, table, record, stamp, value);
  return {};
}

void RecordLoader::InstallValue(Context& context, TableBase& table, Record& record,
                                std::uint64_t stamp, ValueHeader* value) {
  std::uint64_t expected = stamp;
  if (!record.word.compare_exchange_strong(expected, stamp | Word::kLocked,
                                           std::memory_order_seq_cst)) {
    if (value != nullptr) table.values().dispose(context.participant, value);
    return;
  }
  const bool in_record = table.values().in_record();
  ValueHeader* installed = value;
  if (in_record && value != nullptr) {
    table.values().store(record, *value);
    installed = &in_record_mark;
  } else if (value != nullptr) {
    value->birth_era = context.participant.era();
  }
  ValueHeader* old = record.value.exchange(installed, std::memory_order_seq_cst);
  const std::uint64_t version = context.NextLoadVersion();
  record.flushed_version.store(version, std::memory_order_relaxed);
  record.word.store(Word::Make(version, Word::RightOf(stamp), true), std::memory_order_release);
  if (in_record) {
    if (value != nullptr) table.values().dispose(context.participant, value);
  } else if (old != nullptr) {
    context.participant.Retire(old, old->birth_era, table.values().dispose);
  }
}

void RecordLoader::Fetch(Context& context, TableBase& table, std::span<Record* const> records,
                         Right wanted) {
  if (parts_.coherence != nullptr) AcquireRights(context, records, wanted);
  if (table.storage() != nullptr) LoadValues(context, table, records);
}

void RecordLoader::AcquireRights(Context& context, std::span<Record* const> records, Right wanted) {
  std::vector<Coherence::Wish> wishes;
  std::vector<Record*> asked;
  for (Record* record : records) {
    const std::uint64_t word = record->word.load(std::memory_order_acquire);
    if (Word::Locked(word) || Word::Dead(word) || Word::RightOf(word) >= wanted) continue;
    if (record->Dirty(word)) continue;  // See Load.
    Coherence::Wish& wish = wishes.emplace_back();
    wish.wanted = wanted;
    wish.key = parts_.TableOf(*record).GlobalKey(*record);
    asked.push_back(record);
  }
  if (wishes.empty()) return;
  Mutex one_at_a_time;  // Grants come on several threads, and there is one context.
  parts_.coherence->AcquireAll(wishes, context.fresh, [&](std::size_t index, Right granted) {
    const MutexLock lock(one_at_a_time);
    InstallRight(context, *asked[index], granted);
  });
}

void RecordLoader::LoadValues(Context& context, TableBase& table,
                              std::span<Record* const> records) {
  struct Row {
    Record* record = nullptr;
    std::uint64_t stamp = 0;
    ValueHeader* value = nullptr;
    bool decoded = true;
  };
  std::vector<Row> rows;
  std::vector<std::string> keys;
  for (Record* record : records) {
    const std::uint64_t word = record->word.load(std::memory_order_acquire);
    if (Word::Locked(word) || Word::Dead(word) || Word::Loaded(word)) continue;
    if (Word::RightOf(word) == Right::kInvalid) continue;
    rows.push_back({.record = record, .stamp = word});
    ByteWriter key;
    table.EncodeRecordKey(*record, key);
    keys.push_back(key.Release());
  }
  if (rows.empty()) return;
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const Result<void> found =
      table.storage()->FindMany(views, [&](std::size_t index, std::string_view bytes) {
        Result<ValueHeader*> result = table.DecodeValue(context.participant, bytes);
        rows[index].decoded = result.ok();
        if (result.ok()) rows[index].value = result.value();
      });
  for (const Row& row : rows) {
    if (!found.ok() || !row.decoded) {  // Whoever opens it gets the error.
      if (row.value != nullptr) table.values().dispose(context.participant, row.value);
      continue;
    }
    ContextStatistics::Count(context.statistics.loads);
    table.cache().loads.fetch_add(1, std::memory_order_relaxed);
    InstallValue(context, table, *row.record, row.stamp, row.value);
  }
}

Result<Record*> RecordLoader::FindGlobal(Context& context, std::string_view global_key) {
  if (global_key.size() < 4) {
    return Error(ErrorCode::kInvalidArgument, "a global key starts with four bytes of table id");
  }
  std::uint32_t id = 0;
  for (int i = 3; i >= 0; --i) {
    id = (id << 8) | static_cast<unsigned char>(global_key[static_cast<std::size_t>(i)]);
  }
  for (const TableBase* table : parts_.tables) {
    if (table->id() != static_cast<std::int32_t>(id)) continue;
    return table->FindEncoded(context.participant, global_key.substr(4));
  }
  return Error(ErrorCode::kNotFound, fmt::format("no table has the id {}", id));
}

Result<void> RecordLoader::Reduce(std::string_view global_key, Right to) {
  const ContextLease context(parts_.contexts);
  context->participant.Enter();
  Result<Record*> record = FindGlobal(*context, global_key);
  DurabilityTicket* ticket = nullptr;
  if (record.ok() && record.value() != nullptr) {
    ticket = LowerRight(*context, *record.value(), to, nullptr);
  }
  context->participant.Leave();
  if (!record.ok()) return record.error();
  if (ticket == nullptr) return {};
  const bool saved = checkpoint_->Await(*ticket, [] { return std::vector<Task>(); });
  if (!saved) return Error(ErrorCode::kUnavailable, "what is unsaved could not be saved");
  delete ticket;
  return {};
}

void RecordLoader::ReduceThen(std::string_view global_key, Right to, Task saved) {
  const ContextLease context(parts_.contexts);
  context->participant.Enter();
  // What is not here, or of a table that this process does not have, is not held.
  Result<Record*> record = FindGlobal(*context, global_key);
  bool waits = false;
  if (record.ok() && record.value() != nullptr) {
    waits = LowerRight(*context, *record.value(), to, &saved) != nullptr;
  }
  context->participant.Leave();
  if (waits) {
    checkpoint_->WantUrgent();
  } else {
    saved();
  }
}

void RecordLoader::ForEachRight(FunctionRef<void(std::string_view global_key, Right right)> visit) {
  const ContextLease context(parts_.contexts);
  std::vector<Record*> records;
  for (TableBase* table : parts_.tables) {
    if (table->memory()) continue;
    for (std::size_t shard = 0; shard < RecordMap::kShardCount; ++shard) {
      records.clear();
      context->participant.Enter();
      table->cache().records.Snapshot(context->participant, shard, records);
      for (Record* record : records) {
        // Under the lock: a record that is being loaded looks unsaved for an instant, and announced
        // with Modify it would contradict the server that has it.
        const std::uint64_t word = LockRecord(*record);
        const bool dirty = record->Dirty(word);
        UnlockRecord(*record, word);
        if (Word::Dead(word)) continue;
        // Only Modify leaves something unsaved.
        const Right right = dirty ? Right::kModify : Word::RightOf(word);
        if (right == Right::kInvalid) continue;
        visit(table->GlobalKey(*record), right);
      }
      context->participant.Leave();
    }
  }
}

// Lowers first, so that no later commit can write the record; then what is unsaved goes into the
// next cut (rules 17 and 25). Null: the record was clean.
DurabilityTicket* RecordLoader::LowerRight(Context& context, Record& record, Right to, Task* then) {
  const std::uint64_t word = LockRecord(record);
  const bool dirty = record.Dirty(word);
  const Right right = std::min(Word::RightOf(word), to);
  // A repeated request, too, is answered only when what the first one found unsaved is saved.
  if (Word::Dead(word) || (right == Word::RightOf(word) && (!dirty || right >= Right::kModify))) {
    UnlockRecord(record, word);
    return nullptr;
  }
  parts_.versions.NoteLowered();
  const std::uint64_t version = context.NextVersion();
  if (!dirty) record.flushed_version.store(version, std::memory_order_relaxed);
  DurabilityTicket* ticket = nullptr;
  if (dirty) {
    ticket = new DurabilityTicket;
    ticket->urgent = true;
    if (then != nullptr) {
      ticket->then = std::move(*then);
      ticket->owned = true;  // Nobody waits: the checkpoint runs it and deletes it.
    }
    const std::uint64_t epoch = checkpoint_->Announce(context);
    CommitLog& log = context.logs[epoch & 1];
    log.Begin(1, ticket);
    log.Add(&record);
  }
  record.word.store(Word::Make(version, right, Word::Loaded(word) && right != Right::kInvalid),
                    std::memory_order_release);
  context.epoch.store(0, std::memory_order_release);
  return ticket;
}

}  // namespace zeze::internal
