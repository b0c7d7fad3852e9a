// How long a server takes to hand a record on, while a million others that have nothing to do with
// it are not saved.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_client.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze {
namespace {

using testing::BAccount;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::int64_t kDirtyRecords = 1'000'000;
constexpr std::int64_t kHandedOn = 10'000'000;  // The first key of those that are handed on.
constexpr global::LeaseOptions kLease{.duration = std::chrono::minutes(1)};

class Server {
 public:
  Server(const std::string& url, std::int32_t server_id, std::uint16_t port)
      : storage_(OpenStorage({.url = url}).value()),
        io_({.name = "server-io"}),
        client_(io_, *storage_->fence(),
                {.server_id = server_id,
                 .shards = {{.host = "127.0.0.1", .port = port}},
                 .holder = "test",
                 .lease = kLease}),
        engine_({.storage = storage_.get(),
                 .coherence = &client_,
                 .checkpoint_period = std::chrono::nanoseconds(0),
                 .dirty_records_max = 2 * kDirtyRecords}) {
    EXPECT_TRUE(engine_.AddTable(table_, {.cache_capacity = 0}).ok());
    const Result<void> started = client_.Start(engine_);
    EXPECT_TRUE(started.ok()) << started.error().message();
    EXPECT_TRUE(engine_.Start().ok());
  }
  ~Server() {
    engine_.Abandon();  // A million rows are not worth being saved here.
    client_.Abandon();
  }

  void AddToAll(std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kStep = 1000;
    for (std::int64_t first = begin; first < end; first += kStep) {
      std::vector<std::int64_t> keys;
      for (std::int64_t key = first; key < std::min(end, first + kStep); ++key) keys.push_back(key);
      ASSERT_EQ(0, engine_.Call("add", [&](Transaction& tx) {
        table_.Prefetch(tx, keys, Right::kModify);
        for (const std::int64_t key : keys) table_.GetOrAdd(tx, key)->balance += 1;
        return 0;
      }));
    }
  }

  // Two records that are changed together: the small group.
  void AddToBoth(std::int64_t key) {
    ASSERT_EQ(0, engine_.Call("both", [&](Transaction& tx) {
      table_.GetOrAdd(tx, key)->balance += 1;
      table_.GetOrAdd(tx, key + 1)->balance += 1;
      return 0;
    }));
  }

  // What Global asks for; answered when it is saved.
  void Reduce(std::int64_t key) {
    ByteWriter global_key;
    global_key.WriteInt4(7);
    global_key.WriteLong(key);
    EXPECT_TRUE(engine_.Reduce(global_key.view(), Right::kShare).ok());
  }

  std::int64_t Read(std::int64_t key) {
    std::int64_t balance = -1;
    EXPECT_EQ(0, engine_.Call("read", [&](Transaction& tx) {
      const BAccount* account = table_.Get(tx, key);
      balance = account == nullptr ? 0 : account->balance;
      return 0;
    }));
    return balance;
  }

 private:
  std::unique_ptr<Storage> storage_;
  IoThreads io_;
  global::GlobalClient client_;
  Table<std::int64_t, BAccount> table_{TableDescriptor{.id = 7, .name = "accounts"}};
  Engine engine_;
};

Milliseconds Median(std::vector<Milliseconds> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Of one row, fenced as all are.
std::vector<Milliseconds> CommitTimes(Storage& storage, int count) {
  StorageTable* table = storage.OpenTable("commits").value();
  std::vector<Milliseconds> times;
  for (int i = 0; i < count; ++i) {
    const std::string key = std::to_string(i);
    const std::vector<StorageWrite> writes = {{.table = table, .key = key, .value = "x"}};
    const auto begin = SystemClock().Now();
    EXPECT_TRUE(storage.Flush(writes, true).ok());
    times.emplace_back(SystemClock().Now() - begin);
  }
  return times;
}

TEST(ReduceLatency, TakesLessThanThreeCommitsBesideAMillionUnsavedRecords) {
  const std::unique_ptr<DatabaseServer> database = StartPostgresServer({.sync = true}).value();
  const std::string url = database->NewDatabase();
  const std::unique_ptr<Storage> global_storage = OpenStorage({.url = url}).value();
  ThreadPool pool({.name = "global", .thread_count = 2});
  IoThreads io({.name = "global-io"});
  global::GlobalService global(
      io, *global_storage->fence(), pool,
      {.acceptor = {.ip = "127.0.0.1", .port = 0}, .machine = {.lease = kLease}, .holder = "test"});
  ASSERT_TRUE(global.Start().ok());
  Server a(url, 1, global.address().port());
  Server b(url, 2, global.address().port());
  a.AddToAll(0, kDirtyRecords);

  const std::unique_ptr<Storage> other = OpenStorage({.url = url}).value();
  ASSERT_TRUE(other->fence()->Start({.server_id = 3, .holder = "commits"}).ok());

  // In turns, so that both see the same disk.
  std::vector<Milliseconds> commits;
  std::vector<Milliseconds> reduces;
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t key = kHandedOn + 2 * i;
    a.AddToBoth(key);
    const std::vector<Milliseconds> some = CommitTimes(*other, 3);
    commits.insert(commits.end(), some.begin(), some.end());
    const auto begin = SystemClock().Now();
    a.Reduce(key);
    reduces.emplace_back(SystemClock().Now() - begin);
    EXPECT_EQ(1, b.Read(key));
    EXPECT_EQ(1, b.Read(key + 1));
  }
  std::cout << "a commit takes " << Median(commits).count() << " ms, a record is handed on in "
            << Median(reduces).count() << " ms (medians)\n";
  EXPECT_LT(Median(reduces), 3 * Median(commits));
  global.Stop();
}

}  // namespace
}  // namespace zeze
