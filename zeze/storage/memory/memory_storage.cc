#include "zeze/storage/memory/memory_storage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/cluster.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// Values are shared so that a reader can look at one without the lock and without a copy.
using Value = std::shared_ptr<const std::string>;
using Rows = std::map<std::string, Value, std::less<>>;

// Rows that a walk copies under one hold of the lock.
constexpr std::size_t kWalkChunkRows = 256;

constexpr StorageLimits kLimits = {.key_bytes_max = kStorageKeyBytesMax,
                                   .value_bytes_max = std::size_t{256} << 20,
                                   .flush_bytes_max = std::size_t{1} << 30};

}  // namespace

class MemoryDatabase {
 public:
  Mutex mutex;
  // Rows are behind a pointer so that a renamed table keeps its address.
  std::map<std::string, std::shared_ptr<Rows>, std::less<>> tables ZEZE_GUARDED_BY(mutex);
  std::map<std::string, VersionedData, std::less<>> versioned ZEZE_GUARDED_BY(mutex);
  FenceTable fences ZEZE_GUARDED_BY(mutex);
  int copy ZEZE_GUARDED_BY(mutex) = 0;
};

void BecomeAnotherCopy(MemoryDatabase& database) {
  MutexLock lock(database.mutex);
  ++database.copy;
}

namespace {

void Apply(Rows& rows, std::string_view key, Value value) {
  auto it = rows.lower_bound(key);
  const bool exists = it != rows.end() && it->first == key;
  if (value == nullptr) {
    if (exists) rows.erase(it);
  } else if (exists) {
    it->second = std::move(value);
  } else {
    rows.emplace_hint(it, key, std::move(value));
  }
}

class MemoryTable final : public StorageTable {
 public:
  MemoryTable(MemoryDatabase& database, std::string name, std::shared_ptr<Rows> rows)
      : database_(database), name_(std::move(name)), rows_(std::move(rows)) {}

  const std::string& name() const override { return name_; }

  Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) override {
    Value value;
    {
      MutexLock lock(database_.mutex);
      auto it = rows_->find(key);
      if (it == rows_->end()) return false;
      value = it->second;
    }
    found(*value);
    return true;
  }

  Result<std::size_t> Walk(const StorageWalk& walk,
                           FunctionRef<bool(std::string_view, std::string_view)> row) override {
    std::optional<std::string> after = walk.after;
    std::size_t given = 0;
    std::vector<std::pair<std::string, Value>> chunk;
    while (given < walk.limit) {
      chunk.clear();
      CopyChunk(after, walk.descending, std::min(kWalkChunkRows, walk.limit - given), chunk);
      if (chunk.empty()) break;
      for (const auto& [key, value] : chunk) {
        ++given;
        if (!row(key, walk.keys_only ? std::string_view() : *value)) return given;
      }
      after = std::move(chunk.back().first);
    }
    return given;
  }

  Result<std::uint64_t> SizeApprox() override {
    MutexLock lock(database_.mutex);
    return std::uint64_t{rows_->size()};
  }

  // To be used under the mutex of the database.
  Rows& rows() { return *rows_; }

 private:
  void CopyChunk(const std::optional<std::string>& after, bool descending, std::size_t count,
                 std::vector<std::pair<std::string, Value>>& chunk) {
    MutexLock lock(database_.mutex);
    if (descending) {
      auto it = after ? rows_->lower_bound(*after) : rows_->end();
      while (it != rows_->begin() && chunk.size() < count) chunk.emplace_back(*--it);
    } else {
      auto it = after ? rows_->upper_bound(*after) : rows_->begin();
      for (; it != rows_->end() && chunk.size() < count; ++it) chunk.emplace_back(*it);
    }
  }

  MemoryDatabase& database_;
  const std::string name_;
  const std::shared_ptr<Rows> rows_;  // The rows themselves are guarded by database_.mutex.
};

// The fence of one storage: which server it is, and how far its lanes are.
class MemoryFence final : public Fence {
 public:
  explicit MemoryFence(MemoryDatabase& database) : database_(database) {}

  Result<FenceStart> Start(const FenceStartOptions& options) override {
    MutexLock lock(database_.mutex);
    ZEZE_CHECK(epoch_ == 0);  // Once in the life of a storage.
    Result<FenceStart> started = database_.fences.Start(options);
    if (!started.ok()) return started;
    server_id_ = options.server_id;
    epoch_ = started.value().epoch;
    return started;
  }

  Result<void> Share() override {
    MutexLock lock(database_.mutex);
    ZEZE_CHECK(epoch_ != 0);
    if (database_.fences.Share(server_id_, epoch_)) return {};
    return SayFenced();
  }

  Result<std::vector<LiveServer>> InTheWay(const FenceStartOptions& options) override {
    MutexLock lock(database_.mutex);
    return database_.fences.InTheWay(options);
  }

  Result<bool> EvictSilent(const LiveServer& seen) override {
    MutexLock lock(database_.mutex);
    return database_.fences.EvictSilent(seen);
  }

  Result<void> Renew() override {
    MutexLock lock(database_.mutex);
    ZEZE_CHECK(epoch_ != 0);
    return Pass(FenceLane::kRenew);
  }

  Result<void> Finish() override {
    MutexLock lock(database_.mutex);
    ZEZE_CHECK(epoch_ != 0);
    if (database_.fences.Finish(server_id_, epoch_)) return {};
    return SayFenced();
  }

  Result<std::int64_t> RaiseTerm(const GlobalStart& start) override {
    MutexLock lock(database_.mutex);
    const TermRow row = database_.fences.ReadTerm(start.shard);
    if (row.term > 0 && row.holder == start.holder) return row.term;
    const Result<void> raised = database_.fences.RaiseTermFrom(start, row.term);
    if (!raised.ok()) return raised.error();
    return row.term + 1;
  }

  Result<TermRow> ReadTerm(std::int32_t shard) override {
    MutexLock lock(database_.mutex);
    return database_.fences.ReadTerm(shard);
  }

  Result<std::optional<ClusterRow>> Cluster() override {
    MutexLock lock(database_.mutex);
    return database_.fences.cluster();
  }

  Result<std::map<std::string, std::int32_t>> TableIds() override {
    MutexLock lock(database_.mutex);
    return database_.fences.table_ids();
  }

  Result<void> Change(const ClusterChange& change) override {
    MutexLock lock(database_.mutex);
    return database_.fences.Change(change);
  }

  Result<void> LeaseOver(std::int32_t server_id, std::int64_t epoch) override {
    MutexLock lock(database_.mutex);
    database_.fences.LeaseOver(server_id, epoch);
    return {};
  }

  Result<std::map<std::int32_t, std::int64_t>> Terms() override {
    MutexLock lock(database_.mutex);
    return database_.fences.Terms();
  }

  Result<std::vector<LiveServer>> ListLive() override {
    MutexLock lock(database_.mutex);
    return database_.fences.ListLive();
  }

  Result<EvictOutcome> Evict(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                             std::int64_t term, const EvictUnless& unless) override {
    MutexLock lock(database_.mutex);
    return database_.fences.Evict(server_id, epoch, shard, term, unless);
  }

  Result<std::map<std::int32_t, std::int64_t>> Wanted() override {
    MutexLock lock(database_.mutex);
    ZEZE_CHECK(epoch_ != 0);
    return database_.fences.Wanted(server_id_, epoch_);
  }

  Result<void> Yield(std::int32_t shard, const YieldMark& mark) override {
    MutexLock lock(database_.mutex);
    ZEZE_CHECK(epoch_ != 0);
    if (database_.fences.Yield(server_id_, epoch_, shard, mark)) return {};
    return SayFenced();
  }

  Result<bool> Want(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                    std::int64_t term) override {
    MutexLock lock(database_.mutex);
    return database_.fences.Want(server_id, epoch, shard, term);
  }

  Result<void> Unwant(std::int32_t server_id, std::int64_t epoch, std::int32_t shard,
                      std::int64_t term) override {
    MutexLock lock(database_.mutex);
    database_.fences.Unwant(server_id, epoch, shard, term);
    return {};
  }

  Result<std::vector<YieldedServer>> Yields(std::int32_t shard) override {
    MutexLock lock(database_.mutex);
    return database_.fences.Yields(shard);
  }

  Result<ServerRow> Read(std::int32_t server_id) override {
    MutexLock lock(database_.mutex);
    return database_.fences.Read(server_id);
  }

  Result<std::string> History() override {
    MutexLock lock(database_.mutex);
    return "memory " + std::to_string(database_.copy);
  }

  // The fence statement of a flush, under the lock of the database; nothing to check before Start.
  Result<void> PassFlush() {
    database_.mutex.AssertHeld();
    if (epoch_ == 0) return {};
    return Pass(FenceLane::kFlush);
  }

 private:
  Error SayFenced() const ZEZE_REQUIRES(database_.mutex) {
    return FencedError(server_id_, epoch_,
                       database_.fences.ReadLane(server_id_, FenceLane::kFlush));
  }

  Result<void> Pass(FenceLane lane) ZEZE_REQUIRES(database_.mutex) {
    std::int64_t& seq = seqs_.at(static_cast<std::size_t>(lane));
    if (!database_.fences.Flush(server_id_, lane, epoch_, seq + 1)) {
      return FencedError(server_id_, epoch_, database_.fences.ReadLane(server_id_, lane));
    }
    ++seq;
    return {};
  }

  MemoryDatabase& database_;
  std::int32_t server_id_ ZEZE_GUARDED_BY(database_.mutex) = 0;
  std::int64_t epoch_ ZEZE_GUARDED_BY(database_.mutex) = 0;  // 0: not started.
  std::array<std::int64_t, kFenceLaneCount> seqs_ ZEZE_GUARDED_BY(database_.mutex) = {};
};

class MemoryStorage final : public Storage {
 public:
  explicit MemoryStorage(std::shared_ptr<MemoryDatabase> database)
      : database_(std::move(database)), fence_(*database_) {}

  std::string Description() const override { return "memory"; }
  StorageLimits limits() const override { return kLimits; }

  Result<StorageTable*> OpenTable(std::string_view name) override {
    if (Result<void> valid = CheckStorageTableName(name); !valid.ok()) return valid.error();
    MutexLock lock(database_->mutex);
    CheckOpen();
    auto opened = opened_.find(name);
    if (opened != opened_.end()) return opened->second.get();
    auto it = database_->tables.try_emplace(std::string(name), std::make_shared<Rows>()).first;
    auto table = std::make_unique<MemoryTable>(*database_, it->first, it->second);
    return opened_.emplace(name, std::move(table)).first->second.get();
  }

  Result<std::vector<std::string>> ListTables() override {
    MutexLock lock(database_->mutex);
    CheckOpen();
    std::vector<std::string> names;
    names.reserve(database_->tables.size());
    for (const auto& [name, rows] : database_->tables) names.push_back(name);
    return names;
  }

  Result<void> Flush(std::span<const StorageWrite> writes, bool /*sync*/) override {
    if (Result<void> valid = CheckStorageWrites(writes, kLimits); !valid.ok()) return valid;
    // Copy the values first: readers wait for the lock.
    std::vector<Value> values;
    values.reserve(writes.size());
    for (const StorageWrite& write : writes) {
      values.push_back(write.remove ? nullptr : std::make_shared<const std::string>(write.value));
    }
    MutexLock lock(database_->mutex);
    CheckOpen();
    if (Result<void> passed = fence_.PassFlush(); !passed.ok()) return passed;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      Apply(static_cast<MemoryTable*>(writes[i].table)->rows(), writes[i].key,
            std::move(values[i]));
    }
    return {};
  }

  Fence* fence() override { return &fence_; }

  Result<std::optional<VersionedData>> LoadVersioned(std::string_view id) override {
    MutexLock lock(database_->mutex);
    CheckOpen();
    auto it = database_->versioned.find(id);
    if (it == database_->versioned.end()) return std::optional<VersionedData>();
    return std::optional<VersionedData>(it->second);
  }

  Result<std::int64_t> SaveVersioned(std::string_view id, std::string_view data,
                                     std::int64_t version) override {
    if (Result<void> valid = CheckStorageVersioned(id, data, kLimits); !valid.ok()) {
      return valid.error();
    }
    MutexLock lock(database_->mutex);
    CheckOpen();
    auto it = database_->versioned.find(id);
    const std::int64_t stored = it == database_->versioned.end() ? 0 : it->second.version;
    if (stored != version) return StorageVersionConflict(id, version, stored);
    database_->versioned.insert_or_assign(
        std::string(id), VersionedData{.data = std::string(data), .version = version + 1});
    return version + 1;
  }

  Result<void> DropTable(std::string_view name) override {
    MutexLock lock(database_->mutex);
    CheckOpen();
    auto it = database_->tables.find(name);
    if (it == database_->tables.end()) return StorageTableNotFound("drop", name);
    database_->tables.erase(it);
    Forget(name);
    return {};
  }

  Result<void> RenameTable(std::string_view from, std::string_view to) override {
    if (Result<void> valid = CheckStorageTableName(to); !valid.ok()) return valid;
    MutexLock lock(database_->mutex);
    CheckOpen();
    auto it = database_->tables.find(from);
    if (it == database_->tables.end()) return StorageTableNotFound("rename", from);
    if (from == to) return {};
    auto target = database_->tables.find(to);
    if (target != database_->tables.end()) {
      if (!target->second->empty()) return StorageRenameConflict(from, to);
      database_->tables.erase(target);
    }
    auto node = database_->tables.extract(it);
    node.key() = std::string(to);
    database_->tables.insert(std::move(node));
    Forget(from);
    Forget(to);
    return {};
  }

  Result<void> Close() override {
    MutexLock lock(database_->mutex);
    closed_ = true;
    return {};
  }

 private:
  void CheckOpen() const ZEZE_REQUIRES(database_->mutex) { ZEZE_CHECK(!closed_); }

  void Forget(std::string_view name) ZEZE_REQUIRES(database_->mutex) {
    auto it = opened_.find(name);
    if (it != opened_.end()) opened_.erase(it);
  }

  const std::shared_ptr<MemoryDatabase> database_;
  MemoryFence fence_;
  std::map<std::string, std::unique_ptr<MemoryTable>, std::less<>> opened_
      ZEZE_GUARDED_BY(database_->mutex);
  bool closed_ ZEZE_GUARDED_BY(database_->mutex) = false;
};

}  // namespace

std::shared_ptr<MemoryDatabase> NewMemoryDatabase() {
  return std::make_shared<MemoryDatabase>();
}

std::unique_ptr<Storage> OpenMemoryStorage(std::shared_ptr<MemoryDatabase> database) {
  if (database == nullptr) database = NewMemoryDatabase();
  return std::make_unique<MemoryStorage>(std::move(database));
}

}  // namespace zeze
