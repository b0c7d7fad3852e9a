// FlushLane: one connection to an SQL database through which flushes go one after the other, each
// with its number, and which finds out about those whose end nobody saw (rules 31 to 33).
//
//   FlushLane lane(FenceLane::kFlush, connect, {.retry_for = std::chrono::seconds(10)});
//   lane.Flush(writes);                 // Unfenced: for a server that is alone.
//   lane.SetOwner({.server_id = 7, .epoch = 3});
//   lane.Flush(writes);                 // Flush 1 of epoch 3.
//
// A flush is in doubt from the moment its connection is lost, until its number is seen in the
// database. While one is in doubt, only the same flush is taken: an older copy of it may still be
// on its way, and only equal bytes make it harmless.

#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/storage.h"

namespace zeze {

// The server process for which a connection works.
struct FenceOwner {
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
};

// What the fence statement of a flush says.
struct FlushNumber {
  FenceOwner owner;
  FenceLane lane = FenceLane::kFlush;
  std::int64_t seq = 0;
};

// How one attempt to flush over one connection ended.
enum class FlushAttempt : std::uint8_t {
  kCommitted,
  kFenceRefused,  // The fence statement met no row; rolled back.
  kCollided,      // Rolled back because of somebody else's locks: try again.
  kFailed,        // Rolled back for another reason, which the error gives.
  kLost,          // The connection is gone, and with it the knowledge.
};

struct FlushAttemptResult {
  FlushAttempt attempt = FlushAttempt::kCommitted;
  std::string message = {};  // What the database said.
};

// What a driver does for a lane. Used by one thread at a time.
class FlushConnection {
 public:
  FlushConnection(const FlushConnection&) = delete;
  FlushConnection& operator=(const FlushConnection&) = delete;
  virtual ~FlushConnection() = default;

  // False if the connection is known to be gone. Asks nobody.
  virtual bool IsOpen() = 0;

  // One database transaction: the fence statement if there is a number, then the writes.
  virtual FlushAttemptResult Flush(const std::optional<FlushNumber>& number,
                                   std::span<const StorageWrite> writes) = 0;

  // The row of a lane, behind every transaction that has it locked now. After an error the
  // connection is not used again.
  virtual Result<FenceLaneRow> ReadLane(std::int32_t server_id, FenceLane lane) = 0;

  // Names this session so that EndSession of another connection finds it.
  virtual std::string session() const = 0;

  // Success: that session runs nothing any more and never will.
  virtual Result<void> EndSession(const std::string& session) = 0;

 protected:
  FlushConnection() = default;
};

struct FlushLaneOptions {
  std::chrono::nanoseconds retry_for = std::chrono::seconds(10);
  Clock* clock = &SystemClock();
};

// Thread-safe: flushes queue up.
class FlushLane {
 public:
  using Connect =
      std::function<Result<std::unique_ptr<FlushConnection>>(const std::optional<FenceOwner>&)>;

  FlushLane(FenceLane lane, Connect connect, const FlushLaneOptions& options);
  ~FlushLane();

  // Flushes are those of this owner from now on, and numbered. Connects anew, so that the session
  // can be found by its owner.
  void SetOwner(const FenceOwner& owner);

  // Errors: those of Storage::Flush. kInvalidArgument also while another flush is in doubt.
  Result<void> Flush(std::span<const StorageWrite> writes);

  // An empty flush that was not sent before this call: one that an earlier call left in doubt is
  // cleared up first and does not count. Whoever saw that one in the row believes that the lease
  // ends by it (hole 32).
  Result<void> Renew();

  // Ends the connection; the next flush opens a new one.
  void Disconnect();

 private:
  using Fingerprint = std::array<unsigned char, 32>;
  struct Doubt {
    Fingerprint writes;
    std::string session;     // That of the lost connection; empty if it is known to be gone.
    bool end_first = false;  // No number protects from a late copy: end the session first.
  };
  enum class Step : std::uint8_t { kDone, kAgain };

  Result<void> FlushLocked(std::span<const StorageWrite> writes) ZEZE_REQUIRES(mutex_);
  // One turn: connects if need be, clears up what is in doubt, flushes. An error is final.
  Result<Step> TakeStep(std::span<const StorageWrite> writes) ZEZE_REQUIRES(mutex_);
  Result<Step> EnsureConnected() ZEZE_REQUIRES(mutex_);
  Result<Step> ClearDoubt() ZEZE_REQUIRES(mutex_);
  void EndLostSession() ZEZE_REQUIRES(mutex_);
  Result<Step> JudgeByRow() ZEZE_REQUIRES(mutex_);
  Step LoseConnection(std::span<const StorageWrite> writes, std::string message)
      ZEZE_REQUIRES(mutex_);
  Step NoteFlushed() ZEZE_REQUIRES(mutex_);
  Error GiveUp() const ZEZE_REQUIRES(mutex_);

  static Fingerprint FingerprintOf(std::span<const StorageWrite> writes);

  const FenceLane lane_;
  const Connect connect_;
  const FlushLaneOptions options_;

  Mutex mutex_;
  std::unique_ptr<FlushConnection> connection_ ZEZE_GUARDED_BY(mutex_);
  std::optional<FenceOwner> owner_ ZEZE_GUARDED_BY(mutex_);
  std::int64_t seq_ ZEZE_GUARDED_BY(mutex_) = 0;  // Of the last flush that is known to be written.
  std::optional<Doubt> doubt_ ZEZE_GUARDED_BY(mutex_);
  std::string last_message_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze
