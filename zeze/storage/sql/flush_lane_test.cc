// The decisions of a lane, against a table of fence rows and connections that break on demand.

#include "zeze/storage/sql/flush_lane.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence_table.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// Whoever sleeps is at once later.
class JumpingClock final : public Clock {
 public:
  std::chrono::nanoseconds Now() const override { return now_; }
  std::chrono::system_clock::time_point SystemNow() const override { return {}; }
  bool WaitUntil(CondVar& /*condition*/, Mutex& /*mutex*/,
                 std::chrono::nanoseconds deadline) override {
    now_ = deadline;
    return false;
  }
  void SleepFor(std::chrono::nanoseconds duration) override { now_ += duration; }

 private:
  std::chrono::nanoseconds now_ = std::chrono::hours(1);
};

class NamedTable final : public StorageTable {
 public:
  const std::string& name() const override { return name_; }
  Result<bool> Find(std::string_view, FunctionRef<void(std::string_view)>) override {
    return false;
  }
  Result<std::size_t> Walk(const StorageWalk&,
                           FunctionRef<bool(std::string_view, std::string_view)>) override {
    return std::size_t{0};
  }
  Result<std::uint64_t> SizeApprox() override { return std::uint64_t{0}; }

 private:
  const std::string name_ = "t";
};

// What happens to the next flushes; "well" when the list is at its end.
enum class Event : std::uint8_t {
  kWell,
  kLostBefore,  // The connection breaks, nothing was written.
  kLostAfter,   // It breaks after the commit.
  kLostStuck,   // It breaks, and the flush arrives later: Database::DeliverStuck.
  kCollides,
  kFails,
};

struct Database {
  FenceTable fences;
  std::map<std::string, std::string> rows;
  std::deque<Event> events;
  bool reachable = true;
  bool row_is_locked = false;  // By a lost session, until it is ended.
  int connections = 0;
  std::vector<std::string> ended;
  std::function<bool()> stuck;

  bool Apply(const std::optional<FlushNumber>& number,
             const std::map<std::string, std::string>& changes) {
    if (number &&
        !fences.Flush(number->owner.server_id, number->lane, number->owner.epoch, number->seq)) {
      return false;
    }
    for (const auto& [key, value] : changes) rows.insert_or_assign(key, value);
    return true;
  }
};

class FakeFlushConnection final : public FlushConnection {
 public:
  explicit FakeFlushConnection(Database& database)
      : database_(database), session_("session " + std::to_string(++database.connections)) {}

  bool IsOpen() override { return open_; }
  std::string session() const override { return session_; }

  FlushAttemptResult Flush(const std::optional<FlushNumber>& number,
                           std::span<const StorageWrite> writes) override {
    Event event = Event::kWell;
    if (!database_.events.empty()) {
      event = database_.events.front();
      database_.events.pop_front();
    }
    std::map<std::string, std::string> changes;
    for (const StorageWrite& write : writes) changes.emplace(write.key, write.value);
    switch (event) {
      case Event::kCollides:
        return {.attempt = FlushAttempt::kCollided, .message = "deadlock"};
      case Event::kFails:
        return {.attempt = FlushAttempt::kFailed, .message = "no room"};
      case Event::kLostStuck:
        database_.stuck = [this_database = &database_, number, changes] {
          return this_database->Apply(number, changes);
        };
        [[fallthrough]];
      case Event::kLostBefore:
        open_ = false;
        return {.attempt = FlushAttempt::kLost, .message = "connection lost"};
      case Event::kWell:
      case Event::kLostAfter:
        break;
    }
    if (!database_.Apply(number, changes)) return {.attempt = FlushAttempt::kFenceRefused};
    if (event == Event::kWell) return {.attempt = FlushAttempt::kCommitted};
    open_ = false;
    return {.attempt = FlushAttempt::kLost, .message = "connection lost"};
  }

  Result<FenceLaneRow> ReadLane(std::int32_t server_id, FenceLane lane) override {
    if (database_.row_is_locked) return Error(ErrorCode::kUnavailable, "lock time-out");
    return database_.fences.ReadLane(server_id, lane);
  }

  Result<void> EndSession(const std::string& session) override {
    database_.ended.push_back(session);
    database_.row_is_locked = false;
    return {};
  }

 private:
  Database& database_;
  const std::string session_;
  bool open_ = true;
};

class FlushLaneTest : public testing::Test {
 protected:
  void Start() {
    const std::int64_t epoch = database_.fences.Start({.server_id = 7, .holder = ""}).value().epoch;
    lane_.SetOwner({.server_id = 7, .epoch = epoch});
  }

  std::string Flush(std::string_view key, std::string_view value) {
    const StorageWrite write = {.table = &table_, .key = key, .value = value};
    const Result<void> flushed = lane_.Flush({&write, 1});
    return flushed.ok() ? "ok" : std::string(ToString(flushed.error().code()));
  }

  JumpingClock clock_;
  Database database_;
  NamedTable table_;
  FlushLane lane_{
      FenceLane::kFlush,
      [this](const std::optional<FenceOwner>&) -> Result<std::unique_ptr<FlushConnection>> {
        if (!database_.reachable) return Error(ErrorCode::kUnavailable, "not there");
        return std::unique_ptr<FlushConnection>(std::make_unique<FakeFlushConnection>(database_));
      },
      {.retry_for = std::chrono::hours(1), .clock = &clock_}};
};

TEST_F(FlushLaneTest, NumbersFlushes) {
  Start();

  EXPECT_EQ(Flush("k", "1"), "ok");
  EXPECT_EQ(Flush("k", "2"), "ok");

  EXPECT_EQ(database_.fences.ReadLane(7, FenceLane::kFlush).flush_seq, 2);
  EXPECT_EQ(database_.connections, 1);
}

TEST_F(FlushLaneTest, FindsOutWhetherALostFlushWasWritten) {
  Start();
  database_.events = {Event::kLostAfter, Event::kLostBefore};

  EXPECT_EQ(Flush("k", "1"), "ok");
  EXPECT_EQ(Flush("k", "2"), "ok");

  EXPECT_EQ(database_.rows.at("k"), "2");
  EXPECT_EQ(database_.fences.ReadLane(7, FenceLane::kFlush).flush_seq, 2);
}

TEST_F(FlushLaneTest, TriesACollisionAgainAndReportsAFailure) {
  Start();
  database_.events = {Event::kCollides, Event::kCollides, Event::kWell, Event::kFails};

  EXPECT_EQ(Flush("k", "1"), "ok");
  EXPECT_EQ(Flush("k", "2"), "unavailable");
  EXPECT_EQ(Flush("k", "3"), "ok");
  EXPECT_EQ(database_.connections, 1);
}

// A failure behind a lost copy is no certainty: the copy may still arrive.
TEST_F(FlushLaneTest, StaysInDoubtWhenTheRepetitionFails) {
  Start();
  database_.events = {Event::kLostStuck, Event::kFails};

  EXPECT_EQ(Flush("k", "1"), "unknown outcome");
  EXPECT_EQ(Flush("k", "another"), "invalid argument");
  EXPECT_TRUE(database_.stuck());
  EXPECT_EQ(Flush("k", "1"), "ok");

  EXPECT_EQ(database_.fences.ReadLane(7, FenceLane::kFlush).flush_seq, 1);
}

// Hole 32: whoever has seen the renewal that was in doubt counts the lease from there.
TEST_F(FlushLaneTest, ARenewalIsNotTheOneThatWasInDoubt) {
  Start();
  database_.events = {Event::kLostStuck, Event::kFails};
  EXPECT_FALSE(lane_.Renew().ok());
  EXPECT_TRUE(database_.stuck());

  EXPECT_TRUE(lane_.Renew().ok());
  EXPECT_EQ(database_.fences.ReadLane(7, FenceLane::kFlush).flush_seq, 2);
}

// Hole 1.
TEST_F(FlushLaneTest, AStuckCopyThatArrivesLateIsRefused) {
  Start();
  database_.events = {Event::kLostStuck};
  EXPECT_EQ(Flush("k", "1"), "ok");
  EXPECT_EQ(Flush("k", "2"), "ok");

  EXPECT_FALSE(database_.stuck());
  EXPECT_EQ(database_.rows.at("k"), "2");
}

TEST_F(FlushLaneTest, EndsALostSessionThatHoldsTheRow) {
  Start();
  database_.events = {Event::kLostBefore};
  database_.row_is_locked = true;

  EXPECT_EQ(Flush("k", "1"), "ok");

  EXPECT_EQ(database_.ended, (std::vector<std::string>{"session 1"}));
}

TEST_F(FlushLaneTest, SaysFencedWhateverWentBefore) {
  Start();
  database_.events = {Event::kLostStuck, Event::kFails};
  EXPECT_EQ(Flush("k", "1"), "unknown outcome");
  ASSERT_TRUE(database_.fences.Start({.server_id = 7, .holder = ""}).ok());

  EXPECT_EQ(Flush("k", "1"), "fenced");
  EXPECT_FALSE(database_.stuck());
}

TEST_F(FlushLaneTest, SaysUnavailableOnlyWhenNothingIsInDoubt) {
  Start();
  database_.reachable = false;
  EXPECT_EQ(Flush("k", "1"), "unavailable");
  database_.reachable = true;
  EXPECT_EQ(Flush("k", "2"), "ok");
}

TEST_F(FlushLaneTest, EndsTheLostSessionBeforeAnUnfencedRepetition) {
  database_.events = {Event::kLostBefore};

  EXPECT_EQ(Flush("k", "1"), "unknown outcome");
  EXPECT_EQ(Flush("k", "2"), "invalid argument");
  EXPECT_TRUE(database_.ended.empty());
  EXPECT_EQ(Flush("k", "1"), "ok");

  EXPECT_EQ(database_.ended, (std::vector<std::string>{"session 1"}));
  EXPECT_EQ(Flush("k", "2"), "ok");
}

}  // namespace
}  // namespace zeze
