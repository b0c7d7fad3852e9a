// EngineTest: a fixture with an engine over a memory storage that fails and waits on demand.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/bean/codec.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/testing/faulty_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/testing/fake_coherence.h"
#include "zeze/transaction/testing/gate.h"
#include "zeze/transaction/testing/hooked_storage.h"

namespace zeze::testing {

class EngineTest : public ::testing::Test {
 protected:
  using Accounts = Table<std::int64_t, BAccount>;

  void Open() {
    engine = std::make_unique<Engine>(options);
    ASSERT_TRUE(engine->AddTable(accounts, account_options).ok());
    ASSERT_TRUE(engine->AddTable(ledger, {.durable_at_commit = durable_ledger}).ok());
    ASSERT_TRUE(engine->AddTable(scratch).ok());
    ASSERT_TRUE(engine->Start().ok());
  }

  void TearDown() override {
    faulty.UnblockFlushes();
    if (engine == nullptr) return;
    ASSERT_TRUE(engine->Stop().ok());
    engine.reset();
  }

  // As another thread would, also inside a procedure.
  std::int64_t Put(Accounts& table, std::int64_t key, std::int64_t balance) {
    return engine->CallApart("put", [&](Transaction& tx) -> std::int64_t {
      table.Put(tx, key, BAccount{.balance = balance, .owner = {}});
      return 0;
    });
  }

  // From one account to another, in one transaction, apart as well.
  std::int64_t Transfer(std::int64_t from, std::int64_t to, std::int64_t amount) {
    return engine->CallApart("transfer", [&](Transaction& tx) -> std::int64_t {
      accounts.GetOrAdd(tx, from)->balance -= amount;
      accounts.GetOrAdd(tx, to)->balance += amount;
      return 0;
    });
  }

  // What the cache and the storage together say.
  std::optional<std::int64_t> Read(Accounts& table, std::int64_t key) {
    const auto copy = table.ReadCopy(key);
    EXPECT_TRUE(copy.ok());
    if (!copy.ok() || !copy.value()) return std::nullopt;
    return copy.value()->balance;
  }

  // What the storage alone says, as a crash would leave it.
  std::optional<std::int64_t> Stored(const Accounts& table, std::int64_t key) {
    StorageTable* rows = memory->OpenTable(table.name()).value();
    std::string bytes;
    const Result<bool> found = rows->Find(EncodeKey(key), bytes);
    EXPECT_TRUE(found.ok());
    if (!found.ok() || !found.value()) return std::nullopt;
    BAccount account;
    ByteReader in(bytes);
    account.Decode(in);
    EXPECT_TRUE(in.ok());
    return account.balance;
  }

  // As another server would, behind the engine's back.
  void Store(const Accounts& table, std::int64_t key, std::int64_t balance) {
    ByteWriter value;
    BAccount{.balance = balance, .owner = {}}.Encode(value);
    const std::string key_bytes = EncodeKey(key);
    const StorageWrite write{
        .table = memory->OpenTable(table.name()).value(), .key = key_bytes, .value = value.view()};
    ASSERT_TRUE(memory->Flush({&write, 1}, true).ok());
  }

  static std::string GlobalKey(const Accounts& table, std::int64_t key) {
    ByteWriter out;
    out.WriteInt4(table.id());
    EncodeKey(out, key);
    return out.Release();
  }

  // Reads other keys until the record has left the cache: account_options.cache_capacity must be
  // small, and the record clean.
  void Evict(std::int64_t key) {
    while (accounts.ReadCached(key)) {
      ASSERT_TRUE(accounts.ReadCopy(next_filler_++).ok());
    }
  }

  std::size_t LoggedWords() {
    std::size_t sum = 0;
    engine->contexts()->ForEach([&sum](internal::Context& context) {
      sum += context.logs[0].words() + context.logs[1].words();
    });
    return sum;
  }

  // For actions, which run on a thread of their own.
  static void AwaitCount(const std::atomic<int>& count, int wanted) {
    const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
    while (count < wanted && SystemClock().Now() < deadline) std::this_thread::yield();
    EXPECT_EQ(wanted, count);
  }

  // Gives `other` the chance to do what it must not do yet. Waits in vain if all is well, so only
  // a little.
  template <typename Done>
  static void GiveChance(const Done& done) {
    for (int i = 0; i < 30 && !done(); ++i) {
      SystemClock().SleepFor(std::chrono::milliseconds(1));
    }
  }

  std::unique_ptr<Storage> memory = OpenMemoryStorage();
  FaultyStorage faulty{*memory};
  HookedStorage storage{faulty};
  FakeCoherence coherence;

  // What a test changes before Open.
  EngineOptions options{.storage = &storage, .checkpoint_period = std::chrono::seconds(0)};
  TableOptions account_options{.cache_capacity = 100'000};
  bool durable_ledger = false;  // Also turns checkpoints to groups.

  Accounts accounts{TableDescriptor{.id = 1, .name = "test_accounts"}};
  Accounts ledger{TableDescriptor{.id = 2, .name = "test_ledger"}};
  Accounts scratch{TableDescriptor{.id = 3, .name = "test_scratch", .memory = true}};
  std::unique_ptr<Engine> engine;

 private:
  std::int64_t next_filler_ = 1'000'000;
};

}  // namespace zeze::testing
