// FaultyStorage: a storage in front of another that fails, waits and stops on demand.
//
//   std::unique_ptr<Storage> memory = OpenMemoryStorage();
//   FaultyStorage storage(*memory);
//   storage.FailFlushes(2, ErrorCode::kUnavailable);        // The next two, then well again.
//   storage.BlockFlushes();                                 // Until UnblockFlushes.
//   std::thread checkpoint([&] { storage.Flush(writes, true); });
//   storage.AwaitBlockedFlushes(1);                         // It is inside now.
//   storage.UnblockFlushes();
//
// Its tables are its own: open them through it, not through the storage behind.

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/storage/storage.h"

namespace zeze {

// Thread-safe. The storage behind is borrowed.
class FaultyStorage final : public Storage {
 public:
  // Whether a flush that reports an error has happened all the same, as after a lost answer.
  enum class Effect { kNotWritten, kWritten };

  // Where a flush is when the hook is called: to block, to count, to kill the process.
  enum class FlushStep { kBefore, kAfter };

  explicit FaultyStorage(Storage& behind);
  ~FaultyStorage() override;

  // The next `count` flushes of at least one row return `code`. kWritten needs kUnknownOutcome.
  void FailFlushes(std::size_t count, ErrorCode code, Effect effect = Effect::kNotWritten);
  void FailFinds(std::size_t count, ErrorCode code);
  void FailWalks(std::size_t count, ErrorCode code);

  // Flushes (finds) that come from now on wait inside until they are let go.
  void BlockFlushes();
  void UnblockFlushes();
  void AwaitBlockedFlushes(std::size_t count);
  void BlockFinds();
  void UnblockFinds();
  void AwaitBlockedFinds(std::size_t count);

  // Called by every flush, outside of any lock; null for none. A slow disk is a hook that waits.
  void SetFlushHook(std::function<void(FlushStep)> hook);

  // Flushes that were asked for, refused ones included.
  std::size_t flush_count() const;

  std::string Description() const override { return "faulty " + behind_.Description(); }
  StorageLimits limits() const override { return behind_.limits(); }
  Result<StorageTable*> OpenTable(std::string_view name) override;
  Result<std::vector<std::string>> ListTables() override { return behind_.ListTables(); }
  Result<void> Flush(std::span<const StorageWrite> writes, bool sync) override;
  Fence* fence() override { return behind_.fence(); }
  Result<std::optional<VersionedData>> LoadVersioned(std::string_view id) override {
    return behind_.LoadVersioned(id);
  }
  Result<std::int64_t> SaveVersioned(std::string_view id, std::string_view data,
                                     std::int64_t version) override {
    return behind_.SaveVersioned(id, data, version);
  }
  Result<void> DropTable(std::string_view name) override;
  Result<void> RenameTable(std::string_view from, std::string_view to) override;
  Result<void> Close() override { return behind_.Close(); }

 private:
  class Table;

  enum Operation : std::size_t { kFlush, kFind, kWalk, kOperationCount };

  // Counted faults of one kind of operation, and the door that holds it up.
  struct Fault {
    std::size_t count = 0;
    ErrorCode code = ErrorCode::kUnavailable;
    Effect effect = Effect::kNotWritten;
    bool blocked = false;
    std::size_t waiting = 0;
  };
  struct Verdict {
    bool fails = false;
    ErrorCode code = ErrorCode::kUnavailable;
    Effect effect = Effect::kNotWritten;
  };

  Verdict Pass(Operation operation);
  void Set(Operation operation, std::size_t count, ErrorCode code, Effect effect);
  void SetBlocked(Operation operation, bool blocked);
  void AwaitBlocked(Operation operation, std::size_t count);
  void Forget(std::string_view name);

  Storage& behind_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::unique_ptr<Table>, std::less<>> tables_ ZEZE_GUARDED_BY(mutex_);
  std::array<Fault, kOperationCount> faults_ ZEZE_GUARDED_BY(mutex_);
  std::function<void(FlushStep)> hook_ ZEZE_GUARDED_BY(mutex_);
  std::size_t flush_count_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze
