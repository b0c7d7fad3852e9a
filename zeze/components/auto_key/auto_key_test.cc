#include "zeze/components/auto_key/auto_key.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/base/check.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/binary.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/fake_coherence.h"

namespace zeze {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Zeze::Builtin::AutoKey::BSeed;
using Zeze::Builtin::AutoKey::BSeedKey;

// A server over a storage that outlives it.
struct Server {
  explicit Server(Storage& storage, std::int32_t id = 1, AutoKeyOptions options = {},
                  Clock& clock = SystemClock(), Executor* executor = nullptr,
                  Coherence* coherence = nullptr)
      : server_id(id),
        keys(options),
        engine({.storage = &storage,
                .coherence = coherence,
                .clock = &clock,
                .checkpoint_period = std::chrono::nanoseconds(0)}) {
    for (TableBase* table : keys.Tables()) ZEZE_CHECK(engine.AddTable(*table).ok());
    ZEZE_CHECK(engine.Start().ok());
    ZEZE_CHECK(keys.Attach(engine, id, executor).ok());
  }

  // As a process that is killed: nothing more is saved.
  void Crash() { engine.Abandon(); }

  std::int64_t NextId(const char* name = "item") {
    std::int64_t id = 0;
    const std::int64_t code = engine.Call("take", [&](Transaction& tx) {
      id = keys.GetOrAdd(name).NextId(tx);
      return result_code::kSuccess;
    });
    return code == result_code::kSuccess ? id : -1;
  }

  // What the database has.
  std::int64_t Saved(const std::string& name = "item") {
    std::int64_t saved = 0;
    ZEZE_CHECK(keys.tAutoKeys
                   .WalkStorage([&](const BSeedKey& key, const BSeed& seed) {
                     if (key.ServerId == server_id && key.KeyName == name) saved = seed.NextId;
                     return true;
                   })
                   .ok());
    return saved;
  }

  void Set(std::int64_t next_id) {
    ZEZE_CHECK(engine.Call("set", [&](Transaction& tx) {
      keys.tAutoKeys.Put(tx, {.ServerId = server_id, .KeyName = "item"}, {.NextId = next_id});
      return result_code::kSuccess;
    }) == result_code::kSuccess);
  }

  const std::int32_t server_id;
  AutoKeys keys;
  Engine engine;
};

class AutoKeyTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      storage = OpenRocksDbStorage({.directory = directory.path() + "/db"}).value();
    } else {
      storage = OpenMemoryStorage();
    }
  }

  TempDirectory directory;
  std::unique_ptr<Storage> storage;
};

INSTANTIATE_TEST_SUITE_P(Storages, AutoKeyTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "RocksDb" : "Memory"; });

TEST_P(AutoKeyTest, Seed002GetOrAddOfANameGivesItsOneAllocator) {
  Server server(*storage);
  EXPECT_EQ(server.NextId(), 257);
  EXPECT_EQ(server.NextId(), 258);
  EXPECT_EQ(server.NextId("role"), 257);
  EXPECT_EQ(&server.keys.GetOrAdd("role"), &server.keys.GetOrAdd("role"));
  EXPECT_EQ(server.keys.GetOrAdd("item").NextId().value(), 259);
}

TEST_P(AutoKeyTest, GivesBytesAndText) {
  Server server(*storage);
  server.engine.Call("take", [&](Transaction& tx) {
    EXPECT_EQ(server.keys.GetOrAdd("item").NextKeyBytes(tx), std::string("\x01\x01"));
    EXPECT_EQ(server.keys.GetOrAdd("item").NextKeyText(tx), "AQI=");
    return result_code::kSuccess;
  });
}

TEST_P(AutoKeyTest, IsUniqueOverRestartsAndCrashes) {
  std::set<std::int64_t> ids;
  for (int run = 0; run < 20; ++run) {
    Server server(*storage);
    for (int i = 0; i < 100; ++i) {
      const std::int64_t id = server.NextId();
      ASSERT_TRUE(ids.insert(id).second) << id;
    }
    if (run % 2 == 0) server.Crash();
  }
}

TEST_P(AutoKeyTest, Seed002IdsAreUniqueInTheWholeSystem) {
  std::set<std::int64_t> ids;
  for (const std::int32_t id : {0, 1, 2, 200}) {
    Server server(*storage, id);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(ids.insert(server.NextId()).second);
  }
}

// Somebody outside may have seen the id: a crash must not give it again.
TEST_P(AutoKeyTest, ASegmentIsSavedBeforeItIsUsed) {
  Server server(*storage);
  for (int i = 0; i < 1000; ++i) {
    const auto id = static_cast<std::uint64_t>(server.NextId());
    ASSERT_GE(server.Saved(), static_cast<std::int64_t>(
                                  IdFormat(1).FirstNumberFrom(static_cast<std::int64_t>(id))));
  }
}

TEST_P(AutoKeyTest, ARollbackGivesNothingBack) {
  Server server(*storage);
  std::set<std::int64_t> ids;
  for (int i = 0; i < 100; ++i) {
    server.engine.Call("roll back", [&](Transaction& tx) -> std::int64_t {
      EXPECT_TRUE(ids.insert(server.keys.GetOrAdd("item").NextId(tx)).second);
      return result_code::kLogicError;
    });
  }
  EXPECT_EQ(ids.size(), 100U);
}

TEST_P(AutoKeyTest, ThreadsNeverGetTheSame) {
  ThreadPool pool({.name = "refill", .thread_count = 1});
  std::set<std::int64_t> ids;
  {
    Server server(*storage, 1, {.segment_max = 5000}, SystemClock(), &pool);
    std::vector<std::vector<std::int64_t>> taken(4);
    std::vector<std::thread> threads;
    for (std::vector<std::int64_t>& mine : taken) {
      threads.emplace_back([&server, &mine] {
        for (int i = 0; i < 20'000; ++i) {
          mine.push_back(server.NextId());
          if (i % 1000 == 0) static_cast<void>(server.keys.GetOrAdd("item").Skip(i % 7000).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& mine : taken) ids.insert(mine.begin(), mine.end());
    EXPECT_EQ(ids.size(), 80'000U);
    EXPECT_FALSE(ids.contains(-1));
    pool.Shutdown(ThreadPool::Pending::kRun);
  }
}

TEST_P(AutoKeyTest, SegmentsGrowWithUseAndShrinkWhenIdle) {
  testing::ManualClock clock;
  clock.Advance(std::chrono::hours(1));
  Server server(*storage, 1, {.segment_max = 100}, clock);
  const auto take = [&](int count) {
    for (int i = 0; i < count; ++i) server.NextId();
    return server.Saved();
  };
  EXPECT_EQ(take(1), 16);
  EXPECT_EQ(take(16), 16 + 32);
  EXPECT_EQ(take(32), 16 + 32 + 64);
  const std::int64_t fast = take(1000);
  EXPECT_LE(fast, 2200);  // At most 100 at a time.

  clock.Advance(std::chrono::seconds(121));
  const std::int64_t slow = take(200);
  clock.Advance(std::chrono::seconds(60));
  EXPECT_LE(take(1) - slow, 100);
  for (int i = 0; i < 10; ++i) {
    clock.Advance(std::chrono::seconds(1000));
    server.keys.GetOrAdd("item").Skip(100).ok();
  }
  const std::int64_t before = server.Saved();
  clock.Advance(std::chrono::seconds(1000));
  static_cast<void>(server.keys.GetOrAdd("item").Skip(16).ok());
  EXPECT_EQ(server.Saved() - before, 16);
}

TEST_P(AutoKeyTest, SegmentsThatCouldNotBeTakenDoNotGrow) {
  testing::FakeCoherence coherence;
  Server server(*storage, 1, {}, SystemClock(), nullptr, &coherence);
  AutoKey& key = server.keys.GetOrAdd("item");
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(key.NextId().ok());
  EXPECT_EQ(server.Saved(), 16);
  coherence.lease = false;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(key.NextId().error().code(), ErrorCode::kUnavailable);
  coherence.lease = true;
  EXPECT_TRUE(key.NextId().ok());
  EXPECT_EQ(server.Saved(), 16 + 32);
}

TEST_P(AutoKeyTest, FailsLoudlyWhenNoIdIsLeft) {
  Server server(*storage);
  const std::uint64_t last = IdFormat(1).number_max();
  server.Set(static_cast<std::int64_t>(last) - 2);
  EXPECT_EQ(server.NextId(), IdFormat(1).IdOf(last - 1));
  EXPECT_EQ(server.NextId(), IdFormat(1).IdOf(last));
  testing::CapturedLog log;
  EXPECT_EQ(server.NextId(), -1);
  EXPECT_EQ(server.NextId(), -1);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("no id of \"item\" is left for server 1")));
  EXPECT_EQ(server.keys.GetOrAdd("item").NextId().error().code(), ErrorCode::kOverloaded);
}

TEST_P(AutoKeyTest, RefusesADamagedRecord) {
  Server server(*storage);
  server.Set(-5);
  const Result<std::int64_t> id = server.keys.GetOrAdd("item").NextId();
  ASSERT_FALSE(id.ok());
  EXPECT_THAT(id.error().message(), HasSubstr("has a negative NextId"));
}

TEST_P(AutoKeyTest, OnlyMovesForward) {
  Server server(*storage);
  AutoKey& key = server.keys.GetOrAdd("item");
  const IdFormat format(1);
  ASSERT_TRUE(key.SetMinId(format.IdOf(1000)).ok());
  EXPECT_EQ(server.NextId(), format.IdOf(1000));
  ASSERT_TRUE(key.SetMinId(format.IdOf(10)).ok());
  EXPECT_EQ(server.NextId(), format.IdOf(1001));
  ASSERT_TRUE(key.SetMinId(format.IdOf(1005)).ok());  // In the segment that is there.
  EXPECT_EQ(server.NextId(), format.IdOf(1005));
  ASSERT_TRUE(key.Skip(100).ok());
  EXPECT_EQ(server.NextId(), format.IdOf(1106));
  EXPECT_FALSE(key.Skip(-1).ok());
  const Result<void> too_many = key.Skip(std::numeric_limits<std::int64_t>::max());
  EXPECT_THAT(too_many.error().message(), HasSubstr("fewer are left"));
  EXPECT_EQ(server.NextId(), format.IdOf(1107));
  EXPECT_FALSE(key.SetMinId(-1).ok());

  Server again(*storage, 2);
  ASSERT_TRUE(again.keys.GetOrAdd("item").Skip(5).ok());
  EXPECT_EQ(again.NextId(), IdFormat(2).IdOf(7));
}

TEST_P(AutoKeyTest, FailsWhenTheServerHasStopped) {
  Server server(*storage);
  server.NextId();
  ASSERT_TRUE(server.engine.Stop().ok());
  for (int i = 0; i < 20; ++i) {
    if (const Result<std::int64_t> id = server.keys.GetOrAdd("item").NextId(); !id.ok()) {
      EXPECT_EQ(id.error().code(), ErrorCode::kShuttingDown);
      return;
    }
  }
  FAIL() << "more than a segment";
}

TEST(AutoKeys, InsertsIntoTablesWithAutokey) {
  constexpr TableDescriptor kLong{.id = 901, .name = "test_long", .auto_key = "true"};
  constexpr TableDescriptor kRandom{.id = 902, .name = "test_random", .auto_key = "random"};
  constexpr TableDescriptor kPlain{.id = 903, .name = "test_plain"};
  Table<std::int64_t, BSeed> by_long{kLong};
  Table<Binary, BSeed> by_bytes{kRandom};
  Table<std::int64_t, BSeed> plain{kPlain};
  AutoKeys keys;
  auto opened = Application::Open("test", {.server_id = 1, .storage = {.url = "memory:"}});
  Application& application = *opened.value();
  application.AddModule(keys);
  for (TableBase* table : std::initializer_list<TableBase*>{&by_long, &by_bytes, &plain}) {
    application.AddTable(*table);
  }
  ASSERT_TRUE(application.Start().ok());

  EXPECT_EQ(0, application.Call("insert", [&](Transaction& tx) {
    const std::int64_t first = keys.Insert(tx, by_long, BSeed{});
    const std::int64_t second = keys.Insert(tx, by_long, BSeed{});
    EXPECT_NE(first, second);
    EXPECT_TRUE(by_long.Contains(tx, first));
    const Binary key = keys.Insert(tx, by_bytes, BSeed{});
    EXPECT_EQ(16U, key.bytes.size());
    EXPECT_NE(key, keys.Insert(tx, by_bytes, BSeed{}));
    EXPECT_TRUE(by_bytes.Contains(tx, key));
    EXPECT_THROW(keys.Insert(tx, plain, BSeed{}), UsageError);
    return 0;
  }));
  EXPECT_TRUE(application.Stop().ok());
  opened.value().reset();
}

TEST(AutoKeys, RefusesANegativeServerId) {
  AutoKeys keys;
  auto opened = Application::Open("test", {.server_id = -1, .storage = {.url = "memory:"}});
  ASSERT_TRUE(opened.ok());
  opened.value()->AddModule(keys);
  const Result<void> started = opened.value()->Start();
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("server id -1 is negative"));
}

// Nothing is declared or configured: a name that was never heard of has ids at once, and goes on
// with them in the next life of the server.
TEST(AutoKeys, RefusesSegmentsWithoutIds) {
  for (const AutoKeyOptions& options :
       {AutoKeyOptions{.segment_min = 0}, AutoKeyOptions{.segment_min = 9, .segment_max = 8}}) {
    AutoKeys keys(options);
    auto application = Application::Open("keys", {.storage = {.url = "memory:"}}).value();
    application->AddModule(keys);
    const Result<void> started = application->Start();
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message(), ::testing::HasSubstr("segment_min must be at least 1"));
  }
}

TEST(AutoKeys, Seed002NeedsNoInitialisationBeyondTheModule) {
  const TempDirectory directory;
  for (const std::int64_t first : {257, 257 + 16}) {
    AutoKeys keys;
    auto opened = Application::Open(
        "test", {.server_id = 1, .storage = {.url = "rocksdb:" + directory.path() + "/db"}});
    ASSERT_TRUE(opened.ok());
    opened.value()->AddModule(keys);
    ASSERT_TRUE(opened.value()->Start().ok());
    EXPECT_EQ(keys.GetOrAdd("never heard of").NextId().value(), first);
    EXPECT_TRUE(opened.value()->Stop().ok());
  }
}

TEST(AutoKeys, InAnApplicationMostCallsWaitForNothing) {
  AutoKeys keys;
  auto opened = Application::Open("test", {.server_id = 3, .storage = {.url = "memory:"}});
  Application& application = *opened.value();
  application.AddModule(keys);
  ASSERT_TRUE(application.Start().ok());
  std::set<std::int64_t> ids;
  for (int i = 0; i < 100'000; ++i) {
    application.Call("take", [&](Transaction& tx) {
      ids.insert(keys.GetOrAdd("item").NextId(tx));
      return result_code::kSuccess;
    });
  }
  EXPECT_EQ(ids.size(), 100'000U);
  EXPECT_LT(application.engine().statistics().commits, 100U);
  EXPECT_TRUE(application.Stop().ok());
}

}  // namespace
}  // namespace zeze
