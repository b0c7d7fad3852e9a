#include "zeze/storage/testing/faulty_storage.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

Error Injected(ErrorCode code, std::string_view what) {
  return {code, "injected fault: " + std::string(what)};
}

}  // namespace

class FaultyStorage::Table final : public StorageTable {
 public:
  Table(FaultyStorage& storage, StorageTable& behind) : storage_(storage), behind_(behind) {}

  const std::string& name() const override { return behind_.name(); }

  Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) override {
    const Verdict verdict = storage_.Pass(kFind);
    if (verdict.fails) return Injected(verdict.code, "find");
    return behind_.Find(key, found);
  }

  Result<std::size_t> Walk(const StorageWalk& walk,
                           FunctionRef<bool(std::string_view, std::string_view)> row) override {
    const Verdict verdict = storage_.Pass(kWalk);
    if (verdict.fails) return Injected(verdict.code, "walk");
    return behind_.Walk(walk, row);
  }

  Result<std::uint64_t> SizeApprox() override { return behind_.SizeApprox(); }

  StorageTable* behind() { return &behind_; }

 private:
  FaultyStorage& storage_;
  StorageTable& behind_;
};

FaultyStorage::FaultyStorage(Storage& behind) : behind_(behind) {}
FaultyStorage::~FaultyStorage() = default;

void FaultyStorage::FailFlushes(std::size_t count, ErrorCode code, Effect effect) {
  ZEZE_CHECK(effect == Effect::kNotWritten || code == ErrorCode::kUnknownOutcome);
  Set(kFlush, count, code, effect);
}

void FaultyStorage::FailFinds(std::size_t count, ErrorCode code) {
  Set(kFind, count, code, Effect::kNotWritten);
}

void FaultyStorage::FailWalks(std::size_t count, ErrorCode code) {
  Set(kWalk, count, code, Effect::kNotWritten);
}

void FaultyStorage::BlockFlushes() {
  SetBlocked(kFlush, true);
}
void FaultyStorage::UnblockFlushes() {
  SetBlocked(kFlush, false);
}
void FaultyStorage::AwaitBlockedFlushes(std::size_t count) {
  AwaitBlocked(kFlush, count);
}
void FaultyStorage::BlockFinds() {
  SetBlocked(kFind, true);
}
void FaultyStorage::UnblockFinds() {
  SetBlocked(kFind, false);
}
void FaultyStorage::AwaitBlockedFinds(std::size_t count) {
  AwaitBlocked(kFind, count);
}

void FaultyStorage::SetFlushHook(std::function<void(FlushStep)> hook) {
  MutexLock lock(mutex_);
  hook_ = std::move(hook);
}

std::size_t FaultyStorage::flush_count() const {
  MutexLock lock(mutex_);
  return flush_count_;
}

Result<StorageTable*> FaultyStorage::OpenTable(std::string_view name) {
  Result<StorageTable*> behind = behind_.OpenTable(name);
  if (!behind.ok()) return behind;
  MutexLock lock(mutex_);
  std::unique_ptr<Table>& table = tables_[std::string(name)];
  if (table == nullptr) table = std::make_unique<Table>(*this, *behind.value());
  return static_cast<StorageTable*>(table.get());
}

Result<void> FaultyStorage::Flush(std::span<const StorageWrite> writes, bool sync) {
  std::function<void(FlushStep)> hook;
  {
    MutexLock lock(mutex_);
    ++flush_count_;
    hook = hook_;
  }
  if (hook) hook(FlushStep::kBefore);
  Verdict verdict;
  if (!writes.empty()) verdict = Pass(kFlush);
  if (!verdict.fails || verdict.effect == Effect::kWritten) {
    std::vector<StorageWrite> behind(writes.begin(), writes.end());
    for (StorageWrite& write : behind) write.table = static_cast<Table*>(write.table)->behind();
    Result<void> flushed = behind_.Flush(behind, sync);
    if (!flushed.ok()) return flushed;
  }
  if (hook) hook(FlushStep::kAfter);
  if (verdict.fails) return Injected(verdict.code, "flush");
  return {};
}

Result<void> FaultyStorage::DropTable(std::string_view name) {
  Forget(name);
  return behind_.DropTable(name);
}

Result<void> FaultyStorage::RenameTable(std::string_view from, std::string_view to) {
  Forget(from);
  Forget(to);
  return behind_.RenameTable(from, to);
}

FaultyStorage::Verdict FaultyStorage::Pass(Operation operation) {
  MutexLock lock(mutex_);
  Fault& fault = faults_[operation];
  ++fault.waiting;
  changed_.NotifyAll();
  while (fault.blocked) changed_.Wait(mutex_);
  --fault.waiting;
  if (fault.count == 0) return {};
  --fault.count;
  return {.fails = true, .code = fault.code, .effect = fault.effect};
}

void FaultyStorage::Set(Operation operation, std::size_t count, ErrorCode code, Effect effect) {
  MutexLock lock(mutex_);
  Fault& fault = faults_[operation];
  fault.count = count;
  fault.code = code;
  fault.effect = effect;
}

void FaultyStorage::SetBlocked(Operation operation, bool blocked) {
  MutexLock lock(mutex_);
  faults_[operation].blocked = blocked;
  changed_.NotifyAll();
}

void FaultyStorage::AwaitBlocked(Operation operation, std::size_t count) {
  MutexLock lock(mutex_);
  const Fault& fault = faults_[operation];
  while (!fault.blocked || fault.waiting < count) changed_.Wait(mutex_);
}

void FaultyStorage::Forget(std::string_view name) {
  MutexLock lock(mutex_);
  auto it = tables_.find(name);
  if (it != tables_.end()) tables_.erase(it);
}

}  // namespace zeze
