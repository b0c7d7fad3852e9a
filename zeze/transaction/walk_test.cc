// Walks over a part of a table, over keys alone, in small pages, and past rows that cannot be read.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/bean/codec.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/key_range.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Numbers = KeyRange<std::int64_t>;
using Texts = KeyRange<std::string>;

class RangeTest : public testing::EngineTest {
 protected:
  using Keys = std::vector<std::int64_t>;

  // Half of them are saved; some were removed and some changed since.
  void Fill() {
    Open();
    for (const std::int64_t key : {-70'000, -300, -64, -2, 0, 1, 63, 64, 300, 70'000}) {
      Store(accounts, key, key);
    }
    for (const std::int64_t key : {-65, -1, 2, 65, 100, 1'000'000}) {
      ASSERT_EQ(0, Put(accounts, key, key));
    }
    ASSERT_EQ(0, Put(accounts, 300, -300));
    for (const std::int64_t key : {-300, 64, 100}) {
      ASSERT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
        return accounts.Remove(tx, key) ? 0 : 1;
      }));
    }
  }

  Keys WalkRange(const Numbers& range, const WalkOptions& how) {
    Keys keys;
    Keys with_values;
    const auto given = accounts.WalkKeys(
        range,
        [&](std::int64_t key) {
          keys.push_back(key);
          return true;
        },
        how);
    const auto walked = accounts.Walk(
        range,
        [&](std::int64_t key, const BAccount& account) {
          EXPECT_EQ(key == 300 ? -300 : key, account.balance);
          with_values.push_back(key);
          return true;
        },
        how);
    EXPECT_EQ(keys.size(), given.value());
    EXPECT_EQ(keys.size(), walked.value());
    EXPECT_EQ(keys, with_values);
    return keys;
  }
};

TEST_F(RangeTest, IntegersComeInTheOrderOfNumbers) {
  Fill();
  const Keys all = {-70'000, -65, -64, -2, -1, 0, 1, 2, 63, 65, 300, 70'000, 1'000'000};
  const auto expected = [&](const Numbers& range) {
    Keys keys;
    for (const std::int64_t key : all) {
      if (range.Contains(key)) keys.push_back(key);
    }
    return keys;
  };

  for (const std::size_t page_size : {1U, 2U, 3U, 1000U}) {
    const WalkOptions ascending{.descending = false, .page_size = page_size};
    const WalkOptions descending{.descending = true, .page_size = page_size};
    for (std::size_t f = 0; f < all.size(); ++f) {
      for (std::size_t t = f; t < all.size(); ++t) {
        for (const std::int64_t shift : {0, 1}) {
          const Numbers range = Numbers::Between(all[f] + shift, all[t] + shift);
          Keys keys = expected(range);
          ASSERT_EQ(keys, WalkRange(range, ascending)) << all[f] << " to " << all[t];
          std::reverse(keys.begin(), keys.end());
          ASSERT_EQ(keys, WalkRange(range, descending)) << all[f] << " to " << all[t];
        }
      }
      ASSERT_EQ(expected(Numbers::From(all[f])), WalkRange(Numbers::From(all[f]), ascending));
      ASSERT_EQ(expected(Numbers::Below(all[f])), WalkRange(Numbers::Below(all[f]), ascending));
    }
  }
  EXPECT_THAT(WalkRange(Numbers::Between(5, 5), {}), IsEmpty());
  EXPECT_THAT(WalkRange(Numbers::Between(5, 1), {}), IsEmpty());
  EXPECT_THAT(WalkRange(Numbers(), {}),
              ElementsAre(0, 1, 2, 63, 65, 300, 70'000, 1'000'000, -70'000, -65, -64, -2, -1))
      << "everything: as the storage has it";
}

TEST_F(RangeTest, AVisitorStopsARangeAndMayRunProcedures) {
  Fill();
  Keys seen;

  const auto walked =
      accounts.Walk(Numbers::Between(-2, 100), [&](std::int64_t key, const BAccount&) {
        seen.push_back(key);
        EXPECT_EQ(0, Put(accounts, key, 7));
        return seen.size() < 3;
      });

  EXPECT_EQ(3U, walked.value());
  EXPECT_THAT(seen, ElementsAre(-2, -1, 0));
}

TEST_F(RangeTest, AMemoryTableGivesARangeInNoOrder) {
  Open();
  for (std::int64_t key = -50; key < 50; ++key) ASSERT_EQ(0, Put(scratch, key, key));
  Keys keys;

  const auto walked = scratch.WalkKeys(Numbers::Between(-3, 4), [&](std::int64_t key) {
    keys.push_back(key);
    return true;
  });

  EXPECT_EQ(7U, walked.value());
  std::sort(keys.begin(), keys.end());
  EXPECT_THAT(keys, ElementsAre(-3, -2, -1, 0, 1, 2, 3));
}

class PrefixTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  void SetUp() override {
    ASSERT_TRUE(engine.AddTable(names).ok());
    ASSERT_TRUE(engine.Start().ok());
  }
  void TearDown() override { ASSERT_TRUE(engine.Stop().ok()); }

  void Add(const std::string& name) {
    ASSERT_EQ(0, engine.Call("add", [&](Transaction& tx) -> std::int64_t {
      names.Put(tx, name, BAccount{.balance = static_cast<std::int64_t>(name.size()), .owner = {}});
      return 0;
    }));
  }

  Names WalkPrefix(const std::string& prefix, const WalkOptions& how) {
    Names given;
    const auto walked = names.Walk(
        Texts::Prefix(prefix),
        [&](const std::string& name, const BAccount& account) {
          EXPECT_EQ(name.size(), static_cast<std::size_t>(account.balance));
          given.push_back(name);
          return true;
        },
        how);
    EXPECT_EQ(given.size(), walked.value());
    return given;
  }

  std::unique_ptr<Storage> memory = OpenMemoryStorage();
  Table<std::string, BAccount> names{TableDescriptor{.id = 8, .name = "test_names"}};
  Engine engine{{.storage = memory.get(), .checkpoint_period = std::chrono::seconds(0)}};
};

TEST_F(PrefixTest, FindsAllKeysThatBeginSoWhateverTheirLength) {
  Names all = {"",
               "a",
               "b",
               "ab",
               "ac",
               "abc",
               "abd",
               "xyz",
               "ab\xff",
               "ab\xff\xff",
               "\xff\xff",
               "\xff",
               "\xff\xff\xff",
               "b/1",
               "b/22",
               "b/333",
               "bb",
               "ab" + std::string(100, 'x'),
               "ab" + std::string(200, 'y'),
               "b" + std::string(300, 'z')};
  for (std::size_t i = 0; i < all.size(); ++i) {
    Add(all[i]);
    if (i != all.size() / 2) continue;
    ASSERT_TRUE(engine.CheckpointNow().ok());
  }
  std::sort(all.begin(), all.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });

  for (const std::string& prefix : Names{"", "a", "ab", "abc", "abz", "b/", "b", "\xff", "\xff\xff",
                                         "ab\xff", "q", "bbbbbbbbb"}) {
    Names expected;
    for (const std::string& name : all) {
      if (name.starts_with(prefix)) expected.push_back(name);
    }
    for (const std::size_t page_size : {1U, 2U, 1000U}) {
      EXPECT_EQ(expected, WalkPrefix(prefix, {.descending = false, .page_size = page_size}))
          << "prefix " << prefix;
    }
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(expected, WalkPrefix(prefix, {.descending = true, .page_size = 2}))
        << "prefix " << prefix;
  }
}

// A page is bounded by its bytes, whether they come from the storage or from the cache.
TEST_F(RangeTest, PagesAreBoundedInBytes) {
  Open();
  const WalkOptions small{.descending = false, .page_size = 1000, .page_bytes = 1000};
  for (std::int64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(0, engine->Call("put", [&](Transaction& tx) -> std::int64_t {
      accounts.Put(tx, i, BAccount{.balance = i, .owner = testing::LongName(100)});
      return 0;
    }));
  }
  const auto count_pages = [&] {
    std::size_t pages = 0;
    std::size_t records = 0;
    std::optional<std::int64_t> after;
    do {
      const auto next = accounts.WalkPage(
          after,
          [&](std::int64_t key, const BAccount&) {
            EXPECT_EQ(static_cast<std::size_t>(key), records);
            ++records;
            return true;
          },
          small);
      EXPECT_TRUE(next.ok());
      ++pages;
      after = next.ok() ? next.value() : std::nullopt;
    } while (after);
    EXPECT_EQ(50U, records);
    return pages;
  };

  EXPECT_GE(count_pages(), 5U) << "from the cache";
  ASSERT_TRUE(engine->CheckpointNow().ok());
  EXPECT_GE(count_pages(), 5U) << "from the storage";
  std::size_t walked = 0;
  EXPECT_EQ(50U, accounts
                     .Walk(
                         [&](std::int64_t, const BAccount&) {
                           ++walked;
                           return true;
                         },
                         small)
                     .value());
}

// --- rows that cannot be decoded ---

class BadRowTest : public testing::EngineTest {
 protected:
  void StoreBytes(std::string_view key, std::string_view value) {
    const StorageWrite write{
        .table = memory->OpenTable(accounts.name()).value(), .key = key, .value = value};
    ASSERT_TRUE(memory->Flush({&write, 1}, true).ok());
  }

  void SetUp() override {
    ByteWriter value;
    BAccount{.balance = std::int64_t{1} << 50, .owner = {}}.Encode(value);
    bad_bytes = std::string(value.view().substr(0, 3));
    for (const std::int64_t key : {1, 2, 3}) Store(accounts, key, key);
    StoreBytes(EncodeKey(std::int64_t{2}), bad_bytes);
  }

  std::string bad_bytes;
};

TEST_F(BadRowTest, AWalkLeavesItOutAndReportsIt) {
  Open();
  std::vector<std::int64_t> given;
  std::vector<std::pair<std::string, std::string>> bad;
  WalkOptions how;
  how.on_bad_row = [&](const BadRow& row) {
    EXPECT_EQ("test_accounts", row.table);
    EXPECT_THAT(std::string(row.why), HasSubstr("record 2 of table test_accounts"));
    bad.emplace_back(row.key, row.value);
  };
  const auto visit = [&](std::int64_t key, const BAccount&) {
    given.push_back(key);
    return true;
  };

  EXPECT_EQ(2U, accounts.Walk(visit, how).value());
  EXPECT_EQ(2U, accounts.WalkStorage(visit, how).value());
  EXPECT_EQ(std::nullopt, accounts.WalkPage(std::nullopt, visit, how).value());

  EXPECT_THAT(given, ElementsAre(1, 3, 1, 3, 1, 3));
  const std::pair<std::string, std::string> row{EncodeKey(std::int64_t{2}), bad_bytes};
  EXPECT_THAT(bad, ElementsAre(row, row, row));
  EXPECT_EQ(3U, accounts.WalkKeys([](std::int64_t) { return true; }).value()) << "no value is read";
}

TEST_F(BadRowTest, TheLogNamesTheFirstOnesByDefault) {
  Open();
  for (std::int64_t key = 100; key < 120; ++key) StoreBytes(EncodeKey(key), bad_bytes);
  testing::CapturedLog log;

  EXPECT_EQ(2U, accounts.Walk([](std::int64_t, const BAccount&) { return true; }).value());

  EXPECT_THAT(log.lines(), SizeIs(11));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("record 2 of table test_accounts")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("11 more rows")));
}

TEST_F(BadRowTest, AKeyThatCannotBeDecodedIsReported) {
  Open();
  StoreBytes("\x7f", "what is this");
  int bad = 0;
  WalkOptions how{.descending = false, .page_size = 1};
  how.on_bad_row = [&](const BadRow& row) { bad += row.key == "\x7f" ? 1 : 0; };

  EXPECT_EQ(3U, accounts.WalkKeys([](std::int64_t) { return true; }, how).value());

  EXPECT_EQ(1, bad);
}

TEST_F(BadRowTest, ItCannotBeReadButReplaced) {
  Open();
  std::vector<bool> before;
  accounts.AddListener([&](const RecordChange<std::int64_t, BAccount>& change) {
    before.push_back(change.before != nullptr);
  });
  const auto read = [&] {
    return engine->Call("read", [&](Transaction& tx) -> std::int64_t {
      return accounts.Get(tx, 2)->balance == 5 ? 0 : 1;
    });
  };
  EXPECT_EQ(result_code::kAbortException, read());
  EXPECT_EQ(result_code::kAbortException,
            engine->Call("edit", [&](Transaction& tx) -> std::int64_t {
              accounts.GetOrAdd(tx, 2);
              return 0;
            }));

  EXPECT_EQ(0, Put(accounts, 2, 5));

  EXPECT_EQ(0, read());
  EXPECT_THAT(before, ElementsAre(false));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(5, Stored(accounts, 2));
}

TEST_F(BadRowTest, ItCanBeRemoved) {
  Open();

  EXPECT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(accounts.Remove(tx, 2));
    EXPECT_FALSE(accounts.Remove(tx, 2));
    EXPECT_FALSE(accounts.Contains(tx, 2));
    return 0;
  }));

  EXPECT_EQ(std::nullopt, Read(accounts, 2));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(std::nullopt, Stored(accounts, 2));
}

TEST_F(BadRowTest, AReplacementThatIsRolledBackLeavesItUnreadable) {
  Open();
  const auto replace_in_vain = [&](Transaction& tx) {
    EXPECT_EQ(9, tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
      accounts.Put(inner, 2, BAccount{.balance = 5, .owner = {}});
      EXPECT_EQ(5, accounts.Get(inner, 2)->balance);
      return 9;
    }));
  };

  EXPECT_EQ(result_code::kAbortException, engine->Call("get", [&](Transaction& tx) -> std::int64_t {
    replace_in_vain(tx);
    accounts.Get(tx, 2);
    return 0;
  }));
  EXPECT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
    replace_in_vain(tx);
    return accounts.Remove(tx, 2) ? 0 : 1;
  }));
  EXPECT_EQ(std::nullopt, Read(accounts, 2));
}

}  // namespace
}  // namespace zeze
