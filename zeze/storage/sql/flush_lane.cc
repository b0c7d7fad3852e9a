#include "zeze/storage/sql/flush_lane.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <openssl/evp.h>

#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/sql/retry_pause.h"
#include "zeze/storage/storage.h"

namespace zeze {

FlushLane::FlushLane(FenceLane lane, Connect connect, const FlushLaneOptions& options)
    : lane_(lane), connect_(std::move(connect)), options_(options) {}

FlushLane::~FlushLane() = default;

void FlushLane::SetOwner(const FenceOwner& owner) {
  MutexLock lock(mutex_);
  owner_ = owner;
  seq_ = 0;
  connection_.reset();
}

void FlushLane::Disconnect() {
  MutexLock lock(mutex_);
  connection_.reset();
}

Result<void> FlushLane::Flush(std::span<const StorageWrite> writes) {
  MutexLock lock(mutex_);
  return FlushLocked(writes);
}

Result<void> FlushLane::Renew() {
  MutexLock lock(mutex_);
  if (doubt_) {
    if (Result<void> cleared = FlushLocked({}); !cleared.ok()) return cleared;
  }
  return FlushLocked({});
}

Result<void> FlushLane::FlushLocked(std::span<const StorageWrite> writes) {
  if (doubt_ && doubt_->writes != FingerprintOf(writes)) {
    return Error(ErrorCode::kInvalidArgument,
                 "cannot flush: it is not known yet whether the flush before was written. Repeat "
                 "exactly that one first; nothing of this one was written.");
  }
  RetryPause pause(options_.retry_for, *options_.clock);
  for (;;) {
    const Result<Step> step = TakeStep(writes);
    if (!step.ok()) return step.error();
    if (step.value() == Step::kDone) return {};
    if (!pause.Wait()) return GiveUp();
  }
}

Result<FlushLane::Step> FlushLane::TakeStep(std::span<const StorageWrite> writes) {
  Result<Step> connected = EnsureConnected();
  if (!connected.ok() || connected.value() == Step::kAgain) return connected;
  if (doubt_) {
    Result<Step> cleared = ClearDoubt();
    if (!cleared.ok() || cleared.value() == Step::kDone) return cleared;
    if (connection_ == nullptr) return Step::kAgain;
  }
  std::optional<FlushNumber> number;
  if (owner_) number = FlushNumber{.owner = *owner_, .lane = lane_, .seq = seq_ + 1};
  FlushAttemptResult result = connection_->Flush(number, writes);
  switch (result.attempt) {
    case FlushAttempt::kCommitted:
      return NoteFlushed();
    case FlushAttempt::kFenceRefused:
      ZEZE_CHECK(owner_.has_value());
      return JudgeByRow();
    case FlushAttempt::kCollided:
      last_message_ = std::move(result.message);
      return Step::kAgain;
    case FlushAttempt::kFailed:
      last_message_ = std::move(result.message);
      return GiveUp();
    case FlushAttempt::kLost:
      if (!owner_) {
        LoseConnection(writes, std::move(result.message));
        return GiveUp();
      }
      return LoseConnection(writes, std::move(result.message));
  }
  ZEZE_CHECK(false);
}

Result<FlushLane::Step> FlushLane::EnsureConnected() {
  if (connection_ != nullptr && connection_->IsOpen()) return Step::kDone;
  connection_.reset();
  Result<std::unique_ptr<FlushConnection>> connected = connect_(owner_);
  if (connected.ok()) {
    connection_ = std::move(connected).value();
    return Step::kDone;
  }
  // Another copy of the database does not tell what became of the flush either.
  if (!doubt_ || connected.error().code() == ErrorCode::kFenced) return connected.error();
  last_message_ = connected.error().message();
  return Step::kAgain;
}

// kDone: the flush in doubt was written. kAgain: repeat it, if there still is a connection.
Result<FlushLane::Step> FlushLane::ClearDoubt() {
  if (doubt_->end_first && !doubt_->session.empty()) {
    EndLostSession();
    return Step::kAgain;
  }
  if (!owner_) return Step::kAgain;
  Result<Step> judged = JudgeByRow();
  // The lost session may hold the row until the database notices that we are gone: help it.
  if (judged.ok() && connection_ == nullptr && !doubt_->session.empty()) {
    Result<Step> connected = EnsureConnected();
    if (connected.ok() && connected.value() == Step::kDone) EndLostSession();
  }
  return judged;
}

void FlushLane::EndLostSession() {
  const Result<void> ended = connection_->EndSession(doubt_->session);
  if (ended.ok()) {
    doubt_->session.clear();
  } else {
    last_message_ = ended.error().message();
    connection_.reset();
  }
}

Result<FlushLane::Step> FlushLane::JudgeByRow() {
  Result<FenceLaneRow> row = connection_->ReadLane(owner_->server_id, lane_);
  if (!row.ok()) {
    last_message_ = row.error().message();
    connection_.reset();
    return Step::kAgain;
  }
  switch (JudgeFlush(row.value(), owner_->epoch, seq_ + 1)) {
    case FlushFate::kWritten:
      return NoteFlushed();
    case FlushFate::kNotWritten:
      return Step::kAgain;
    case FlushFate::kFenced:
    case FlushFate::kHistoryLost:
      break;
  }
  return FencedError(owner_->server_id, owner_->epoch, row.value());
}

// A flush stays in doubt when a later attempt fails for sure: the lost copy may still arrive.
FlushLane::Step FlushLane::LoseConnection(std::span<const StorageWrite> writes,
                                          std::string message) {
  if (!doubt_) doubt_.emplace(Doubt{.writes = FingerprintOf(writes), .session = {}});
  doubt_->session = connection_->session();
  doubt_->end_first = !owner_.has_value();
  ZEZE_LOG_WARNING(
      "a flush lost its connection to the database, looking whether it was written: {}", message);
  last_message_ = std::move(message);
  connection_.reset();
  return Step::kAgain;
}

FlushLane::Step FlushLane::NoteFlushed() {
  doubt_.reset();
  if (owner_) ++seq_;
  return Step::kDone;
}

Error FlushLane::GiveUp() const {
  if (doubt_) {
    return {
        ErrorCode::kUnknownOutcome,
        fmt::format("it is not known whether the flush was written: {}. Repeat exactly the same "
                    "flush until the database answers.",
                    last_message_)};
  }
  return {ErrorCode::kUnavailable,
          fmt::format("cannot flush: {}. Nothing was written.", last_message_)};
}

FlushLane::Fingerprint FlushLane::FingerprintOf(std::span<const StorageWrite> writes) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  ZEZE_CHECK(context != nullptr);
  ZEZE_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  auto add = [&](std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    ZEZE_CHECK(EVP_DigestUpdate(context.get(), &size, sizeof size) == 1);
    ZEZE_CHECK(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  };
  for (const StorageWrite& write : writes) {
    add(write.table->name());
    add(write.key);
    add(write.remove ? "remove" : "put");
    add(write.remove ? std::string_view() : write.value);
  }
  Fingerprint fingerprint = {};
  ZEZE_CHECK(EVP_DigestFinal_ex(context.get(), fingerprint.data(), nullptr) == 1);
  return fingerprint;
}

}  // namespace zeze
