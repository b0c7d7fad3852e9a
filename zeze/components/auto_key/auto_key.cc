#include "zeze/components/auto_key/auto_key.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "Zeze/Builtin/AutoKey.h"
#include "zeze/app/application.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

using Zeze::Builtin::AutoKey::BSeedKey;

AutoKey::AutoKey(AutoKeys& owner, std::string name)
    : owner_(owner),
      name_(std::move(name)),
      format_(owner.server_id_),
      segment_(owner.options_.segment_min) {}

std::uint64_t AutoKey::TakeSlowly(Transaction& tx, std::uint64_t number) {
  Result<std::uint64_t> awaited = Await(number);
  if (awaited.ok()) return awaited.value();
  tx.AbortFailed(awaited.error().code() == ErrorCode::kOverloaded ? result_code::kException
                                                                  : result_code::kAbortException,
                 awaited.error().message());
}

Result<std::int64_t> AutoKey::NextId() {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  if (IsReady(number)) return format_.IdOf(number);
  const Result<std::uint64_t> awaited = Await(number);
  if (!awaited.ok()) return awaited.error();
  return format_.IdOf(awaited.value());
}

// The number, or another one if it lies between two segments.
Result<std::uint64_t> AutoKey::Await(std::uint64_t number) {
  if (IsOurs(number)) {
    if (!refilling_ahead_.exchange(true, std::memory_order_relaxed)) RefillAhead();
    return number;
  }
  const MutexLock lock(mutex_);
  while (!IsOurs(number)) {
    if (number < begin_.load(std::memory_order_relaxed)) {
      number = next_.fetch_add(1, std::memory_order_relaxed);
    } else if (refilling_) {
      changed_.Wait(mutex_);
    } else if (const Result<void> refilled = RefillUnlocked(0); !refilled.ok()) {
      return refilled.error();
    }
  }
  return number;
}

// Before somebody has to wait for it.
void AutoKey::RefillAhead() {
  owner_.executor_->Post(Task("allocate ids", [this] {
    const MutexLock lock(mutex_);
    // An error concerns whoever needs the numbers; it will ask again.
    if (!refilling_) static_cast<void>(RefillUnlocked(0).ok());
  }));
}

Result<void> AutoKey::RefillUnlocked(std::uint64_t from) {
  refilling_ = true;
  mutex_.Unlock();
  Result<void> refilled = Refill(from);
  mutex_.Lock();
  refilling_ = false;
  changed_.NotifyAll();
  return refilled;
}

// One at a time: by whoever set refilling_. In a transaction of its own, whatever becomes of the
// one that needs the number.
Result<void> AutoKey::Refill(std::uint64_t from) {
  const AutoKeyOptions& options = owner_.options_;
  const auto now = owner_.engine_->options().clock->Now();
  std::int64_t segment = segment_;  // Tries that fail do not count.
  if (last_refill_.count() != 0) {
    if (now - last_refill_ < options.busy) segment = std::min(segment * 2, options.segment_max);
    if (now - last_refill_ > options.idle) segment = std::max(segment / 2, options.segment_min);
  }
  // Others may wait with numbers that they have taken.
  const std::uint64_t taken = next_.load(std::memory_order_relaxed) - 1;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool damaged = false;
  const std::int64_t code =
      owner_.engine_->CallApart("allocate ids", [&](Transaction& tx) -> std::int64_t {
        const auto seed = owner_.tAutoKeys.GetOrAdd(
            tx, BSeedKey{.ServerId = owner_.server_id_, .KeyName = name_});
        damaged = seed->NextId < 0;
        if (damaged) return result_code::kLogicError;
        first = std::max(static_cast<std::uint64_t>(seed->NextId) + 1, from);
        if (first > format_.number_max()) return result_code::kLogicError;
        last = std::max(first + static_cast<std::uint64_t>(segment) - 1, taken);
        last = std::min(last, format_.number_max());
        seed->NextId = static_cast<std::int64_t>(last);
        tx.RequireDurable();
        return result_code::kSuccess;
      });
  if (code == result_code::kSuccess) {
    last_refill_ = now;
    segment_ = segment;
    Publish(first, last);
    return {};
  }
  if (code == result_code::kClosed) {
    return Error(ErrorCode::kShuttingDown,
                 fmt::format("no ids of \"{}\": the server has stopped", name_));
  }
  if (damaged) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("no ids of \"{}\": the record of server {} in table {} has a negative "
                             "NextId",
                             name_, owner_.server_id_, owner_.tAutoKeys.name()));
  }
  if (code == result_code::kLogicError) {
    return Error(ErrorCode::kOverloaded,
                 fmt::format("no id of \"{}\" is left for server {}: the last one that fits into "
                             "eight bytes has been given; use another server id or another name",
                             name_, owner_.server_id_));
  }
  return Error(ErrorCode::kUnavailable,
               fmt::format("no ids of \"{}\": a segment could not be allocated, result code {}",
                           name_, code));
}

void AutoKey::Publish(std::uint64_t first, std::uint64_t last) {
  // Numbers between two segments are nobody's. Who takes one of them while this runs finds it
  // either at or behind the old end, or before the new begin.
  if (first != end_.load(std::memory_order_relaxed)) {
    begin_.store(first, std::memory_order_relaxed);
    std::uint64_t next = next_.load(std::memory_order_relaxed);
    while (next < first && !next_.compare_exchange_weak(next, first, std::memory_order_relaxed)) {
    }
  }
  const std::uint64_t end = last + 1;
  end_.store(end, std::memory_order_release);
  const bool ahead = owner_.executor_ != nullptr && last < format_.number_max();
  ready_end_.store(ahead ? end - (end - first) / 2 : end, std::memory_order_release);
  refilling_ahead_.store(!ahead, std::memory_order_relaxed);
}

Result<void> AutoKey::SetMinId(std::int64_t id) {
  const std::uint64_t number = format_.FirstNumberFrom(id);
  if (number > format_.number_max()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("server {} has no id of \"{}\" from {:#x} on", owner_.server_id_,
                             name_, static_cast<std::uint64_t>(id)));
  }
  return RaiseTo(number);
}

Result<void> AutoKey::Skip(std::int64_t count) {
  if (count < 0) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("cannot skip {} ids", count));
  }
  if (end_.load(std::memory_order_relaxed) == 0) {  // Where the numbers begin is not known yet.
    const Result<std::int64_t> taken = NextId();
    if (!taken.ok()) return taken.error();
  }
  const std::uint64_t number =
      next_.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(count);
  if (number > format_.number_max()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("cannot skip {} ids of \"{}\": fewer are left for server {}", count,
                             name_, owner_.server_id_));
  }
  return RaiseTo(number);
}

Result<void> AutoKey::RaiseTo(std::uint64_t number) {
  const MutexLock lock(mutex_);
  while (refilling_) changed_.Wait(mutex_);
  if (number >= end_.load(std::memory_order_relaxed)) {
    if (Result<void> refilled = RefillUnlocked(number); !refilled.ok()) return refilled;
  }
  std::uint64_t next = next_.load(std::memory_order_relaxed);
  while (next < number && !next_.compare_exchange_weak(next, number, std::memory_order_relaxed)) {
  }
  return {};
}

// --- AutoKeys ---

AutoKeys::AutoKeys(AutoKeyOptions options) : options_(options) {}

AutoKey& AutoKeys::GetOrAdd(std::string_view name) {
  ZEZE_REQUIRE(engine_ != nullptr, fmt::format("ids of \"{}\" before the start", name));
  const MutexLock lock(mutex_);
  auto at = keys_.find(name);
  if (at == keys_.end()) {
    at = keys_.emplace(name, std::make_unique<AutoKey>(*this, std::string(name))).first;
  }
  return *at->second;
}

Result<void> AutoKeys::Start(Application& application) {
  return Attach(application.engine(), application.options().server_id, &application.critical());
}

Result<void> AutoKeys::Attach(Engine& engine, std::int32_t server_id, Executor* executor) {
  if (server_id < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("server id {} is negative: ids begin with it, and it cannot be "
                             "written; use one from 0 on",
                             server_id));
  }
  if (options_.segment_min <= 0 || options_.segment_max < options_.segment_min) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("AutoKeyOptions: segments of {} to {} ids: segment_min must be at "
                             "least 1 and segment_max not smaller",
                             options_.segment_min, options_.segment_max));
  }
  server_id_ = server_id;
  engine_ = &engine;
  executor_ = executor;
  return {};
}

void AutoKeys::CheckAutoKey(const TableBase& table, std::string_view kind) {
  ZEZE_REQUIRE(table.descriptor().auto_key == kind,
               fmt::format("table {} has no autokey=\"{}\" in its schema", table.name(), kind));
}

Binary AutoKeys::RandomKey() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(),
                       device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  Binary key;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t word = random();
    key.bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return key;
}

}  // namespace zeze
