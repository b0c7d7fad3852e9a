// HookedStorage: a storage in front of another that calls the test around flushes, finds and walks,
// and that may claim to take less than the other.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze::testing {

// Set the hooks before they are needed by another thread.
class HookedStorage final : public Storage {
 public:
  explicit HookedStorage(Storage& behind) : behind_(behind), limits_(behind.limits()) {}

  // Before the storage behind is asked to flush.
  std::function<void(std::span<const StorageWrite>)> on_flush;
  // After the rows of a walk were read, before it returns.
  std::function<void()> after_walk;
  // After a row was looked for, before the answer is given.
  std::function<void()> after_find;
  // Flushes that did not ask for the disk.
  std::atomic<std::size_t> unsynced_flushes = 0;

  void set_limits(const StorageLimits& limits) { limits_ = limits; }

  std::string Description() const override { return "hooked " + behind_.Description(); }
  StorageLimits limits() const override { return limits_; }

  Result<StorageTable*> OpenTable(std::string_view name) override {
    Result<StorageTable*> opened = behind_.OpenTable(name);
    if (!opened.ok()) return opened;
    const std::lock_guard lock(mutex_);
    auto& table = tables_[std::string(name)];
    if (table == nullptr) table = std::make_unique<HookedTable>(*this, *opened.value());
    return table.get();
  }
  Result<std::vector<std::string>> ListTables() override { return behind_.ListTables(); }

  Result<void> Flush(std::span<const StorageWrite> writes, bool sync) override {
    if (on_flush) on_flush(writes);
    if (!sync) ++unsynced_flushes;
    if (Result<void> checked = CheckStorageWrites(writes, limits_); !checked.ok()) return checked;
    std::vector<StorageWrite> inner(writes.begin(), writes.end());
    for (StorageWrite& write : inner) {
      write.table = &static_cast<HookedTable*>(write.table)->behind;
    }
    return behind_.Flush(inner, sync);
  }

  Result<std::optional<VersionedData>> LoadVersioned(std::string_view id) override {
    return behind_.LoadVersioned(id);
  }
  Result<std::int64_t> SaveVersioned(std::string_view id, std::string_view data,
                                     std::int64_t version) override {
    return behind_.SaveVersioned(id, data, version);
  }
  Result<void> DropTable(std::string_view name) override { return behind_.DropTable(name); }
  Result<void> RenameTable(std::string_view from, std::string_view to) override {
    return behind_.RenameTable(from, to);
  }
  Result<void> Close() override { return behind_.Close(); }

 private:
  struct HookedTable final : StorageTable {
    HookedTable(HookedStorage& owner, StorageTable& table) : storage(owner), behind(table) {}

    const std::string& name() const override { return behind.name(); }
    Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) override {
      Result<bool> answer = behind.Find(key, found);
      if (storage.after_find) storage.after_find();
      return answer;
    }
    Result<std::size_t> Walk(const StorageWalk& walk,
                             FunctionRef<bool(std::string_view, std::string_view)> row) override {
      Result<std::size_t> walked = behind.Walk(walk, row);
      if (storage.after_walk) storage.after_walk();
      return walked;
    }
    Result<std::uint64_t> SizeApprox() override { return behind.SizeApprox(); }

    HookedStorage& storage;
    StorageTable& behind;
  };

  Storage& behind_;
  StorageLimits limits_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<HookedTable>> tables_;
};

}  // namespace zeze::testing
