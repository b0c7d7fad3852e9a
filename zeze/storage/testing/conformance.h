// The suite that every storage driver must pass: the contract of zeze/storage/storage.h as tests.
//
// In a driver's test, in one source file:
//
//   class MyHome final : public StorageHome { ... };
//   INSTANTIATE_TEST_SUITE_P(My, StorageConformanceTest,
//                            testing::Values(DriverUnderTest{"my", MakeMyHome}),
//                            DriverUnderTestName);

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/storage.h"

namespace zeze {

// The place of one database, empty at first. Opened again, it shows what was written before.
class StorageHome {
 public:
  virtual ~StorageHome() = default;
  virtual Result<std::unique_ptr<Storage>> Open() = 0;
};

struct DriverUnderTest {
  std::string name;
  std::function<std::unique_ptr<StorageHome>()> make_home;
};

inline std::ostream& operator<<(std::ostream& out, const DriverUnderTest& driver) {
  return out << driver.name;
}

inline std::string DriverUnderTestName(const testing::TestParamInfo<DriverUnderTest>& info) {
  return info.param.name;
}

class StorageConformanceTest : public testing::TestWithParam<DriverUnderTest> {
 protected:
  using Row = std::pair<std::string, std::string>;
  using Rows = std::vector<Row>;

  StorageConformanceTest() : home_(GetParam().make_home()) { Open(); }

  void Open() {
    Result<std::unique_ptr<Storage>> opened = home_->Open();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    storage_ = std::move(opened).value();
  }

  void Reopen() {
    Result<void> closed = storage_->Close();
    EXPECT_TRUE(closed.ok()) << closed.error().message();
    storage_.reset();
    Open();
  }

  StorageTable* Table(std::string_view name) {
    Result<StorageTable*> table = storage_->OpenTable(name);
    EXPECT_TRUE(table.ok()) << table.error().message();
    return table.value();
  }

  Result<void> TryFlush(std::vector<StorageWrite> writes, bool sync = false) {
    std::sort(writes.begin(), writes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.table, a.key) < std::pair(b.table, b.key);
    });
    return storage_->Flush(writes, sync);
  }

  void Flush(std::vector<StorageWrite> writes, bool sync = false) {
    Result<void> flushed = TryFlush(std::move(writes), sync);
    ASSERT_TRUE(flushed.ok()) << flushed.error().message();
  }

  static StorageWrite Put(StorageTable* table, std::string_view key, std::string_view value) {
    return {.table = table, .key = key, .value = value};
  }

  static std::optional<std::string> Find(StorageTable* table, std::string_view key) {
    std::string value;
    Result<bool> found = table->Find(key, value);
    EXPECT_TRUE(found.ok()) << found.error().message();
    return found.value() ? std::optional(value) : std::nullopt;
  }

  static Rows Walk(StorageTable* table, const StorageWalk& walk = {}) {
    Rows rows;
    Result<std::size_t> given =
        table->Walk(walk, [&](std::string_view key, std::string_view value) {
          rows.emplace_back(key, value);
          return true;
        });
    EXPECT_TRUE(given.ok()) << given.error().message();
    EXPECT_EQ(given.value(), rows.size());
    return rows;
  }

  static std::vector<std::string> Keys(StorageTable* table, const StorageWalk& walk = {}) {
    std::vector<std::string> keys;
    for (auto& [key, value] : Walk(table, walk)) keys.push_back(std::move(key));
    return keys;
  }

  const std::unique_ptr<StorageHome> home_;
  std::unique_ptr<Storage> storage_;
};

// ---- Rows

TEST_P(StorageConformanceTest, FindsWhatWasFlushed) {
  StorageTable* table = Table("t");

  Flush({Put(table, "a", "1"), Put(table, "b", "2")});

  EXPECT_EQ(Find(table, "a"), "1");
  EXPECT_EQ(Find(table, "b"), "2");
  EXPECT_EQ(Find(table, "c"), std::nullopt);
  EXPECT_EQ(Find(table, ""), std::nullopt);
}

TEST_P(StorageConformanceTest, LeavesTheStringAloneIfThereIsNoRow) {
  std::string value = "before";

  EXPECT_FALSE(Table("t")->Find("a", value).value());

  EXPECT_EQ(value, "before");
}

TEST_P(StorageConformanceTest, FindsManyAtOnce) {
  StorageTable* table = Table("t");
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(std::string(1, '\0') + "key" + std::to_string(i));
  for (std::size_t i = 0; i < keys.size(); i += 2) {
    const std::string value = "value of " + keys[i];
    Flush({Put(table, keys[i], value)});
  }
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, keys.size()}) {
    const std::vector<std::string_view> asked(keys.begin(),
                                              keys.begin() + static_cast<std::ptrdiff_t>(count));
    std::map<std::size_t, std::string> found;
    const Result<void> result =
        table->FindMany(asked, [&](std::size_t index, std::string_view value) {
          EXPECT_TRUE(found.emplace(index, value).second) << "twice: " << index;
        });
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(found.size(), (count + 1) / 2);
    for (const auto& [index, value] : found) EXPECT_EQ(value, "value of " + keys[index]);
  }
}

TEST_P(StorageConformanceTest, OverwritesAndRemoves) {
  StorageTable* table = Table("t");
  Flush({Put(table, "a", "1"), Put(table, "b", "2"), Put(table, "c", "3")});

  Flush({Put(table, "a", "one"), StorageWrite::Remove(table, "b"),
         StorageWrite::Remove(table, "never there")});

  EXPECT_EQ(Walk(table), (Rows{{"a", "one"}, {"c", "3"}}));
}

TEST_P(StorageConformanceTest, TakesAnEmptyFlush) {
  Flush({}, true);
}

TEST_P(StorageConformanceTest, KeepsEmptyKeysAndEmptyValues) {
  StorageTable* table = Table("t");

  Flush({Put(table, "", "value of the empty key"), Put(table, "empty", "")});

  EXPECT_EQ(Find(table, ""), "value of the empty key");
  EXPECT_EQ(Find(table, "empty"), "");
  EXPECT_EQ(Keys(table), (std::vector<std::string>{"", "empty"}));
  EXPECT_EQ(Keys(table, {.after = ""}), (std::vector<std::string>{"empty"}));
}

TEST_P(StorageConformanceTest, KeepsTablesApart) {
  StorageTable* a = Table("a");
  StorageTable* b = Table("b");

  Flush({Put(a, "key", "in a"), Put(b, "key", "in b")});
  Flush({StorageWrite::Remove(a, "key")});

  EXPECT_EQ(Find(a, "key"), std::nullopt);
  EXPECT_EQ(Find(b, "key"), "in b");
}

TEST_P(StorageConformanceTest, KeepsLargeValues) {
  StorageTable* table = Table("t");
  std::string large(std::size_t{8} << 20, '\0');
  std::mt19937_64 random(1);
  for (char& c : large) c = static_cast<char>(random());

  Flush({Put(table, "large", large)}, true);
  EXPECT_TRUE(Find(table, "large") == large);

  Reopen();
  EXPECT_TRUE(Find(Table("t"), "large") == large);
}

// ---- Limits

TEST_P(StorageConformanceTest, KeepsTheLongestKeys) {
  StorageTable* table = Table("t");
  ASSERT_LE(storage_->limits().key_bytes_max, kStorageKeyBytesMax);
  std::string longest(storage_->limits().key_bytes_max, '\0');
  std::mt19937_64 random(1);  // Some engines have room for more if it compresses well.
  for (char& c : longest) c = static_cast<char>(random());

  Flush({Put(table, longest, "1")});

  EXPECT_EQ(Find(table, longest), "1");
  EXPECT_EQ(Keys(table), std::vector<std::string>{longest});
}

TEST_P(StorageConformanceTest, RefusesLongerKeysAndWritesNothingOfThatFlush) {
  StorageTable* table = Table("some_table");
  const std::string too_long(storage_->limits().key_bytes_max + 1, 'k');

  Result<void> flushed = TryFlush({Put(table, "a", "1"), Put(table, too_long, "2")});

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(flushed.error().message().find("some_table"), std::string::npos);
  EXPECT_NE(flushed.error().message().find(std::to_string(too_long.size())), std::string::npos);
  EXPECT_TRUE(Walk(table).empty());
}

TEST_P(StorageConformanceTest, RefusesAFlushAboveItsLimit) {
  StorageTable* table = Table("t");
  const StorageLimits limits = storage_->limits();
  ASSERT_GT(limits.value_bytes_max, 0U);
  ASSERT_GE(limits.flush_bytes_max, limits.value_bytes_max);
  const std::string part(std::size_t{16} << 20, 'v');
  std::vector<std::string> keys;
  for (std::size_t i = 0; i <= limits.flush_bytes_max / part.size(); ++i) {
    keys.push_back("key" + std::to_string(1000 + i));
  }
  std::vector<StorageWrite> writes;
  for (const std::string& key : keys) writes.push_back(Put(table, key, part));

  Result<void> flushed = TryFlush(writes);

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Keys(table).empty());
}

TEST_P(StorageConformanceTest, RefusesImpossibleTableNames) {
  for (const std::string& name :
       {std::string(), std::string(kStorageTableNameBytesMax + 1, 'x'), std::string("a\nb"),
        std::string("a\0b", 3), std::string(kStorageVersionedTable)}) {
    Result<StorageTable*> table = storage_->OpenTable(name);
    ASSERT_FALSE(table.ok()) << name;
    EXPECT_EQ(table.error().code(), ErrorCode::kInvalidArgument);
  }
}

// ---- Order and walks

TEST_P(StorageConformanceTest, OrdersKeysByUnsignedBytes) {
  using std::string_literals::operator""s;
  StorageTable* table = Table("t");
  const std::vector<std::string> ordered = {"\x00"s, "\x00\x00"s, "\x00\xff"s, "\x01"s,
                                            "\x7f"s, "\x7f\x00"s, "\x80"s,     "\xfe"s,
                                            "\xff"s, "\xff\x00"s, "\xff\xff"s};
  std::vector<StorageWrite> writes;
  for (const std::string& key : ordered) writes.push_back(Put(table, key, key));

  Flush(writes);

  EXPECT_EQ(Keys(table), ordered);
  EXPECT_EQ(Keys(table, {.descending = true}),
            std::vector<std::string>(ordered.rbegin(), ordered.rend()));
  for (const std::string& key : ordered) EXPECT_EQ(Find(table, key), key);
}

TEST_P(StorageConformanceTest, WalksInPagesWithAnExclusiveStart) {
  StorageTable* table = Table("t");
  Flush({Put(table, "a", "1"), Put(table, "c", "3"), Put(table, "e", "5"), Put(table, "g", "7")});

  EXPECT_EQ(Keys(table, {.limit = 2}), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(Keys(table, {.after = "c", .limit = 2}), (std::vector<std::string>{"e", "g"}));
  EXPECT_EQ(Keys(table, {.after = "d"}), (std::vector<std::string>{"e", "g"}));
  EXPECT_EQ(Keys(table, {.after = "g"}), (std::vector<std::string>{}));
  EXPECT_EQ(Keys(table, {.after = "e", .descending = true}), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(Keys(table, {.after = "f", .descending = true, .limit = 1}),
            (std::vector<std::string>{"e"}));
  EXPECT_EQ(Keys(table, {.after = "z", .descending = true, .limit = 1}),
            (std::vector<std::string>{"g"}));
  EXPECT_EQ(Keys(table, {.after = "a", .descending = true}), (std::vector<std::string>{}));
  EXPECT_EQ(Keys(table, {.limit = 0}), (std::vector<std::string>{}));
}

TEST_P(StorageConformanceTest, WalksKeysWithoutValues) {
  StorageTable* table = Table("t");
  Flush({Put(table, "a", "1"), Put(table, "b", "2")});

  EXPECT_EQ(Walk(table, {.keys_only = true}), (Rows{{"a", ""}, {"b", ""}}));
}

TEST_P(StorageConformanceTest, StopsAWalkWhenTheCallbackSaysSo) {
  StorageTable* table = Table("t");
  Flush({Put(table, "a", "1"), Put(table, "b", "2"), Put(table, "c", "3")});
  std::string seen;

  Result<std::size_t> given = table->Walk({}, [&](std::string_view key, std::string_view) {
    seen += key;
    return key != "b";
  });

  EXPECT_EQ(given.value(), 2U);
  EXPECT_EQ(seen, "ab");
}

TEST_P(StorageConformanceTest, AllowsFindAndFlushInsideAWalk) {
  StorageTable* table = Table("t");
  Flush({Put(table, "a", "1"), Put(table, "b", "2")});

  Result<std::size_t> given = table->Walk({}, [&](std::string_view key, std::string_view value) {
    EXPECT_EQ(Find(table, key), value);
    Flush({Put(table, key, "seen")});
    return true;
  });

  EXPECT_EQ(given.value(), 2U);
  EXPECT_EQ(Walk(table), (Rows{{"a", "seen"}, {"b", "seen"}}));
}

TEST_P(StorageConformanceTest, EstimatesTheSize) {
  StorageTable* table = Table("t");
  EXPECT_EQ(table->SizeApprox().value(), 0U);
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(std::to_string(1000 + i));
  std::vector<StorageWrite> writes;
  for (const std::string& key : keys) writes.push_back(Put(table, key, key));

  Flush(writes);

  EXPECT_GE(table->SizeApprox().value(), 500U);
  EXPECT_LE(table->SizeApprox().value(), 2000U);
}

TEST_P(StorageConformanceTest, AgreesWithAnOrderedMap) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto bytes = [&](std::size_t most) {
    std::string text(random() % (most + 1), '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 2);
    return text;
  };
  std::map<std::string, std::string> model[2];
  for (int round = 0; round < 60; ++round) {
    StorageTable* tables[2] = {Table("first"), Table("second")};
    std::map<std::pair<int, std::string>, std::optional<std::string>> changes;
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      std::optional<std::string> value;
      if (random() % 3 != 0) value = bytes(50);
      changes.insert_or_assign({static_cast<int>(random() % 2), bytes(4)}, std::move(value));
    }
    std::vector<StorageWrite> writes;
    for (const auto& [place, value] : changes) {
      const auto& [table, key] = place;
      writes.push_back(value ? Put(tables[table], key, *value)
                             : StorageWrite::Remove(tables[table], key));
      if (value) {
        model[table].insert_or_assign(key, *value);
      } else {
        model[table].erase(key);
      }
    }
    Flush(writes, random() % 8 == 0);
    if (random() % 16 == 0) {
      Reopen();
      continue;
    }
    const std::string start = bytes(4);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(Walk(tables[i]), Rows(model[i].begin(), model[i].end()));
      ASSERT_EQ(Walk(tables[i], {.after = start}),
                Rows(model[i].upper_bound(start), model[i].end()));
      Rows below(model[i].begin(), model[i].lower_bound(start));
      std::reverse(below.begin(), below.end());
      ASSERT_EQ(Walk(tables[i], {.after = start, .descending = true}), below);
    }
  }
}

// ---- Several threads

TEST_P(StorageConformanceTest, ShowsAFlushOverSeveralTablesAtOneMoment) {
  constexpr int kFlushes = 300;
  StorageTable* tables[3] = {Table("a"), Table("b"), Table("c")};
  auto flush = [&](int number) {
    const std::string value = std::to_string(1000 + number);
    Flush({Put(tables[0], "x", value), Put(tables[1], "x", value), Put(tables[2], "x", value)});
  };
  flush(0);
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      std::string last;
      // What a later read shows is never older, whichever table it looks at.
      for (std::size_t i = static_cast<std::size_t>(reader); !done; ++i) {
        std::optional<std::string> value = Find(tables[i % 3], "x");
        ASSERT_TRUE(value.has_value());
        ASSERT_LE(last, *value);
        last = *value;
      }
    });
  }

  for (int number = 1; number <= kFlushes; ++number) flush(number);

  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(Find(tables[1], "x"), std::to_string(1000 + kFlushes));
}

TEST_P(StorageConformanceTest, GivesRowsThatStayExactlyOnceWhileOthersChange) {
  StorageTable* table = Table("t");
  std::vector<std::string> stay;
  for (int i = 0; i < 500; ++i) stay.push_back(std::to_string(1000 + i));
  std::vector<StorageWrite> writes;
  for (const std::string& key : stay) writes.push_back(Put(table, key, "stays"));
  Flush(writes);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::size_t i = 0; !done; ++i) {
      const std::string key = stay[i % stay.size()] + "-comes-and-goes";
      Flush({i % 2 == 0 ? Put(table, key, "") : StorageWrite::Remove(table, key)});
    }
  });

  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> seen;
    const bool descending = round % 2 == 1;
    StorageWalk walk = {.descending = descending, .limit = 70};
    for (std::vector<std::string> page = Keys(table, walk); !page.empty();
         page = Keys(table, walk)) {
      walk.after = page.back();
      for (std::string& key : page) {
        if (key.size() == 4) seen.push_back(std::move(key));
      }
    }
    if (descending) std::reverse(seen.begin(), seen.end());
    EXPECT_EQ(seen, stay);
  }

  done = true;
  writer.join();
}

TEST_P(StorageConformanceTest, TakesFlushesFromSeveralThreads) {
  constexpr int kThreads = 4;
  constexpr int kFlushes = 100;
  StorageTable* table = Table("t");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kFlushes; ++i) {
        const std::string own = std::to_string(thread) + "-" + std::to_string(i);
        Flush({Put(table, own, own), Put(table, "shared", own)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(Keys(table).size(), static_cast<std::size_t>(kThreads * kFlushes + 1));
  EXPECT_TRUE(Find(table, "shared")->ends_with("-99"));
}

// ---- Versioned data

TEST_P(StorageConformanceTest, SavesVersionedDataOnlyOverTheVersionThatWasRead) {
  EXPECT_EQ(storage_->LoadVersioned("schema").value(), std::nullopt);

  EXPECT_EQ(storage_->SaveVersioned("schema", "first", 0).value(), 1);
  Result<std::int64_t> stale = storage_->SaveVersioned("schema", "stale", 0);
  EXPECT_EQ(storage_->SaveVersioned("schema", "second", 1).value(), 2);

  ASSERT_FALSE(stale.ok());
  EXPECT_EQ(stale.error().code(), ErrorCode::kConflict);
  EXPECT_EQ(storage_->LoadVersioned("schema").value(), (VersionedData{"second", 2}));
  EXPECT_EQ(storage_->SaveVersioned("absent", "x", 7).error().code(), ErrorCode::kConflict);
  EXPECT_EQ(storage_->LoadVersioned("absent").value(), std::nullopt);
}

TEST_P(StorageConformanceTest, KeepsVersionedDataUnderTheEmptyIdAndAcrossRestarts) {
  using std::string_literals::operator""s;
  ASSERT_EQ(storage_->SaveVersioned("", "\x00\xff"s, 0).value(), 1);
  ASSERT_EQ(storage_->SaveVersioned("empty", "", 0).value(), 1);

  Reopen();

  EXPECT_EQ(storage_->LoadVersioned("").value(), (VersionedData{"\x00\xff"s, 1}));
  EXPECT_EQ(storage_->LoadVersioned("empty").value(), (VersionedData{"", 1}));
  EXPECT_EQ(storage_->ListTables().value(), std::vector<std::string>{});
}

TEST_P(StorageConformanceTest, LosesNoIncrementOfVersionedData) {
  constexpr int kThreads = 4;
  constexpr int kIncrements = 25;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int done = 0; done < kIncrements;) {
        std::optional<VersionedData> read = storage_->LoadVersioned("n").value();
        const int next = read ? std::stoi(read->data) + 1 : 1;
        const std::int64_t version = read ? read->version : 0;
        if (storage_->SaveVersioned("n", std::to_string(next), version).ok()) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(storage_->LoadVersioned("n").value(), (VersionedData{"100", 100}));
}

// ---- Tables

TEST_P(StorageConformanceTest, GivesTheSameTableForTheSameName) {
  EXPECT_EQ(Table("t"), Table("t"));
  EXPECT_NE(Table("t"), Table("u"));
  EXPECT_EQ(Table("t")->name(), "t");
}

TEST_P(StorageConformanceTest, TakesLongAndForeignTableNames) {
  for (const std::string& name :
       {std::string(kStorageTableNameBytesMax, 'x'), std::string("demo_Game_tRole"),
        std::string("\xe8\xa7\x92\xe8\x89\xb2"), std::string("with space.and-'quote'")}) {
    StorageTable* table = Table(name);
    Flush({Put(table, "key", name)});
    EXPECT_EQ(Find(table, "key"), name);
  }
}

TEST_P(StorageConformanceTest, ShowsEverythingAgainAfterAReopen) {
  Flush({Put(Table("a"), "key", "in a"), Put(Table("b"), "key", "in b")}, true);
  Table("empty");

  Reopen();

  EXPECT_EQ(storage_->ListTables().value(), (std::vector<std::string>{"a", "b", "empty"}));
  EXPECT_EQ(Find(Table("a"), "key"), "in a");
  EXPECT_EQ(Find(Table("b"), "key"), "in b");
}

TEST_P(StorageConformanceTest, KeepsTablesThatNobodyOpened) {
  Flush({Put(Table("old"), "key", "still here")}, true);
  Reopen();
  Flush({Put(Table("new"), "key", "value")}, true);
  Reopen();

  EXPECT_EQ(storage_->ListTables().value(), (std::vector<std::string>{"new", "old"}));
  EXPECT_EQ(Find(Table("old"), "key"), "still here");
}

TEST_P(StorageConformanceTest, DropsATableWithItsRows) {
  Flush({Put(Table("gone"), "key", "value"), Put(Table("stays"), "key", "value")});

  ASSERT_TRUE(storage_->DropTable("gone").ok());

  EXPECT_EQ(storage_->ListTables().value(), std::vector<std::string>{"stays"});
  EXPECT_EQ(Find(Table("gone"), "key"), std::nullopt);
  Reopen();
  EXPECT_EQ(Find(Table("gone"), "key"), std::nullopt);
  EXPECT_EQ(storage_->DropTable("never there").error().code(), ErrorCode::kNotFound);
}

TEST_P(StorageConformanceTest, RenamesATable) {
  StorageTable* table = Table("before");
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(std::to_string(1000 + i));
  std::vector<StorageWrite> writes;
  for (const std::string& key : keys) writes.push_back(Put(table, key, key));
  Flush(writes);
  Table("after");  // An empty table gives its name up.

  ASSERT_TRUE(storage_->RenameTable("before", "after").ok());

  EXPECT_EQ(storage_->ListTables().value(), std::vector<std::string>{"after"});
  EXPECT_EQ(Keys(Table("after")), keys);
  EXPECT_EQ(Table("after")->name(), "after");
  Reopen();
  EXPECT_EQ(storage_->ListTables().value(), std::vector<std::string>{"after"});
  EXPECT_EQ(Keys(Table("after")), keys);
}

TEST_P(StorageConformanceTest, RefusesToRenameOntoRowsOrFromNothing) {
  Flush({Put(Table("a"), "key", "in a"), Put(Table("b"), "key", "in b")});

  EXPECT_EQ(storage_->RenameTable("a", "b").error().code(), ErrorCode::kConflict);
  EXPECT_EQ(storage_->RenameTable("c", "d").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->RenameTable("a", "").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(storage_->RenameTable("a", "a").ok());

  EXPECT_EQ(Find(Table("a"), "key"), "in a");
  EXPECT_EQ(Find(Table("b"), "key"), "in b");
}

TEST_P(StorageConformanceTest, ClosesTwice) {
  EXPECT_TRUE(storage_->Close().ok());
  EXPECT_TRUE(storage_->Close().ok());
}

TEST_P(StorageConformanceTest, SaysWhatItIs) {
  EXPECT_FALSE(storage_->Description().empty());
}

}  // namespace zeze
