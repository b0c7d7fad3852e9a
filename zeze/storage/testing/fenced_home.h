// What the suite of fence_conformance.h runs on: a database with a fence and the ways into it, and
// the server processes that use it.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/loopback_proxy.h"

namespace zeze {

// How long a process tries again before it says that there is no database. A test whose database is
// there must not fail because the machine stands still for some seconds; a test whose database is
// gone would wait for nothing.
enum class Patience { kLong, kShort };

// The options of an SQL driver, for tests whose database is there.
template <typename Options>
Options PatientOptions(const std::string& url) {
  constexpr auto kPatience = std::chrono::minutes(1);
  return {.url = url,
          .connect_timeout = kPatience,
          .statement_timeout = kPatience,
          .renew_timeout = kPatience,
          .network_timeout = kPatience,
          .retry_for = kPatience};
}

// One database, and the ways into it.
class FencedHome {
 public:
  virtual ~FencedHome() = default;

  // As one more server process. Through that port if it is not 0.
  virtual Result<std::unique_ptr<Storage>> Open(int proxy_port, Patience patience) = 0;

  // --- for databases behind a network; 0 otherwise, and the tests that need one are skipped ---

  virtual int port() const { return 0; }

  // A text that stands in every flush when nothing of it has been run yet. Behind all of a flush
  // stands COMMIT.
  virtual std::string flush_begin() const { return ""; }

  // Whether a transaction that has passed the fence of this server is open.
  virtual bool FlushIsOpen(std::int32_t /*server_id*/) { return false; }

  // Whether a writer waits for another one that has the row, instead of one of them being turned
  // away when it commits.
  virtual bool writers_wait() const { return true; }

  // The database forgets the last flush of the server, as a restored backup would.
  virtual void LoseLastFlush(std::int32_t /*server_id*/) {}

  // Leaves only what an earlier build would have made, under running processes. False: there is
  // none.
  virtual bool BecomeOld() { return false; }

  // Ends and comes back. False: this one cannot.
  virtual bool Restart() { return false; }
};

struct FencedDriver {
  std::string name;
  std::function<std::unique_ptr<FencedHome>()> make_home;
};

inline std::ostream& operator<<(std::ostream& out, const FencedDriver& driver) {
  return out << driver.name;
}

inline std::string FencedDriverName(const testing::TestParamInfo<FencedDriver>& info) {
  return info.param.name;
}

// A server process: its storage and its table.
class FencedProcess {
 public:
  explicit FencedProcess(std::unique_ptr<Storage> storage)
      : storage_(std::move(storage)), table_(storage_->OpenTable("t").value()) {}

  Fence& fence() { return *storage_->fence(); }
  Storage& storage() { return *storage_; }

  std::int64_t Start(std::int32_t server_id,
                     std::chrono::milliseconds lease = std::chrono::milliseconds(0)) {
    Result<FenceStart> started = fence().Start(
        {.server_id = server_id, .holder = "holder " + std::to_string(server_id), .lease = lease});
    EXPECT_TRUE(started.ok()) << started.error().message();
    return started.ok() ? started.value().epoch : 0;
  }

  // Every time as another Global.
  std::int64_t RaiseTerm(std::int32_t shard) {
    static std::atomic<int> globals = 0;
    Result<std::int64_t> term = fence().RaiseTerm(
        {.shard = shard, .holder = "global " + std::to_string(++globals), .shards = 8});
    EXPECT_TRUE(term.ok()) << term.error().message();
    return term.ok() ? term.value() : 0;
  }

  Result<void> Flush(std::string_view key, std::string_view value) {
    const StorageWrite write = {.table = table_, .key = key, .value = value};
    return storage_->Flush({&write, 1}, true);
  }

  // "ok", or the name of the code.
  std::string FlushOutcome(std::string_view key, std::string_view value) {
    return Outcome(Flush(key, value));
  }

  // The same flush again until its outcome is known, as servers do.
  std::string FlushUntilKnown(std::string_view key, std::string_view value) {
    const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
    std::string outcome;
    do {
      outcome = FlushOutcome(key, value);
    } while ((outcome == "unknown outcome" || outcome == "unavailable") &&
             SystemClock().Now() < deadline);
    return outcome;
  }

  static std::string Outcome(const Result<void>& result) {
    return result.ok() ? "ok" : std::string(ToString(result.error().code()));
  }

  std::string Find(std::string_view key) {
    std::string value = "absent";
    Result<bool> found = table_->Find(key, value);
    EXPECT_TRUE(found.ok()) << found.error().message();
    return value;
  }

 private:
  std::unique_ptr<Storage> storage_;
  StorageTable* table_;
};

class FenceConformanceTest : public testing::TestWithParam<FencedDriver> {
 protected:
  FenceConformanceTest() : home_(GetParam().make_home()) {}

  std::unique_ptr<FencedProcess> Open(int proxy_port = 0, Patience patience = Patience::kLong) {
    Result<std::unique_ptr<Storage>> opened = home_->Open(proxy_port, patience);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::make_unique<FencedProcess>(std::move(opened).value());
  }

  // Behind a proxy of its own.
  std::unique_ptr<FencedProcess> OpenBehindProxy(Patience patience = Patience::kLong) {
    proxy_ = std::make_unique<LoopbackProxy>(home_->port());
    return Open(proxy_->port(), patience);
  }

  void AwaitOpenFlush(std::int32_t server_id) {
    const auto deadline = SystemClock().Now() + std::chrono::seconds(30);
    while (!home_->FlushIsOpen(server_id)) {
      ASSERT_LT(SystemClock().Now(), deadline) << "the flush has not passed its fence";
      std::this_thread::yield();
    }
  }

  // Starts a flush that passes the fence and stops right before this text of it arrives.
  std::future<std::string> FlushUpTo(std::string_view text, FencedProcess& process,
                                     std::int32_t server_id, std::string_view key,
                                     std::string_view value) {
    proxy_->WhenClientSends(text, LoopbackProxy::Action::kHold);
    std::future<std::string> outcome = std::async(
        std::launch::async, [&process, key = std::string(key), value = std::string(value)] {
          return process.FlushOutcome(key, value);
        });
    proxy_->AwaitTriggered();
    AwaitOpenFlush(server_id);
    return outcome;
  }

  std::future<std::string> FlushUpToCommit(FencedProcess& process, std::int32_t server_id,
                                           std::string_view key, std::string_view value) {
    return FlushUpTo("COMMIT", process, server_id, key, value);
  }

  const std::unique_ptr<FencedHome> home_;
  std::unique_ptr<LoopbackProxy> proxy_;
};

}  // namespace zeze
