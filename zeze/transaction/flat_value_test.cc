// Values that live in their records: never torn, and otherwise like all values.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/value.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {
namespace {

// As large as a value in a record may be; all variables are changed together.
struct BWide {
  static constexpr std::string_view kFullName = "test.BWide";
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t third = 0;
  std::int64_t fourth = 0;
  std::int64_t fifth = 0;
  std::int64_t sixth = 0;
  std::int64_t seventh = 0;
  std::int64_t eighth = 0;
  std::array<std::int64_t, 8> rest = {};  // Not stored.

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "first"}, &BWide::first);
    visit(Field{2, "second"}, &BWide::second);
    visit(Field{3, "third"}, &BWide::third);
    visit(Field{4, "fourth"}, &BWide::fourth);
    visit(Field{5, "fifth"}, &BWide::fifth);
    visit(Field{6, "sixth"}, &BWide::sixth);
    visit(Field{7, "seventh"}, &BWide::seventh);
    visit(Field{8, "eighth"}, &BWide::eighth);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }

  void SetAll(std::int64_t value) {
    for (std::int64_t* one :
         {&first, &second, &third, &fourth, &fifth, &sixth, &seventh, &eighth}) {
      *one = value;
    }
    rest.fill(value);
  }
  bool Whole() const {
    for (const std::int64_t one : {second, third, fourth, fifth, sixth, seventh, eighth}) {
      if (one != first) return false;
    }
    for (const std::int64_t one : rest) {
      if (one != first) return false;
    }
    return true;
  }
};
static_assert(internal::kLivesInRecord<BWide>);
static_assert(sizeof(BWide) == internal::kInRecordBytesMax);

// Not a multiple of words, with a version variable.
struct BOdd {
  static constexpr std::string_view kFullName = "test.BOdd";
  std::int32_t version = 0;
  bool flag = false;
  std::int8_t small = 0;
  std::int32_t number = 0;
  static constexpr auto kVersion = &BOdd::version;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "version"}, &BOdd::version);
    visit(Field{2, "flag"}, &BOdd::flag);
    visit(Field{3, "small"}, &BOdd::small);
    visit(Field{4, "number"}, &BOdd::number);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BOdd&) const = default;
};
static_assert(sizeof(BOdd) == 12 && internal::kLivesInRecord<BOdd>);

struct BText {
  std::string_view view;
  std::vector<int> items;
};
static_assert(!internal::kLivesInRecord<BText>);

class FlatValueTest : public ::testing::Test {
 protected:
  FlatValueTest() : engine_({.storage = storage_.get()}) {
    EXPECT_TRUE(engine_.AddTable(wide_).ok());
    EXPECT_TRUE(engine_.AddTable(odd_).ok());
    EXPECT_TRUE(engine_.AddTable(named_).ok());
    EXPECT_TRUE(engine_.Start().ok());
  }
  ~FlatValueTest() override { EXPECT_TRUE(engine_.Stop().ok()); }

  template <typename Body>
  std::int64_t Run(const Body& body) {
    return engine_.Call("run", [&](Transaction& tx) -> std::int64_t { return body(tx); });
  }
  BOdd Committed(std::int64_t key) {
    const Result<std::optional<BOdd>> read = odd_.ReadCopy(key);
    EXPECT_TRUE(read.ok() && read.value());
    return read.value().value_or(BOdd{});
  }

  std::unique_ptr<Storage> storage_ = OpenMemoryStorage();
  Table<std::int64_t, BWide> wide_{TableDescriptor{.id = 1, .name = "wide"}};
  Table<std::int64_t, BOdd> odd_{TableDescriptor{.id = 2, .name = "odd"}};
  Table<std::string, BOdd> named_{TableDescriptor{.id = 3, .name = "named"}};
  Engine engine_;
};

TEST_F(FlatValueTest, NobodySeesHalfACommit) {
  constexpr std::int64_t kKeys = 3;
  constexpr std::int64_t kTimes = 300'000;
  for (std::int64_t key = 0; key < kKeys; ++key) {
    Run([&](Transaction& tx) { return wide_.Insert(tx, key, {}), 0; });
  }
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0;
  const auto until_stopped = [&](const auto& read) {
    return std::thread([&, read] {
      for (std::int64_t key = 0; !stop; key = (key + 1) % kKeys) {
        if (!read(key)) ++torn;
      }
    });
  };
  std::vector<std::thread> readers;
  readers.push_back(until_stopped([this](std::int64_t key) {
    bool whole = true;  // Also in runs that are repeated: user code never sees it torn.
    Run([&](Transaction& tx) { return whole = wide_.Get(tx, key)->Whole() && whole, 0; });
    return whole;
  }));
  readers.push_back(until_stopped(
      [this](std::int64_t key) { return wide_.ReadCopy(key).value().value().Whole(); }));
  readers.push_back(until_stopped([this](std::int64_t key) {
    const std::optional<BWide> cached = wide_.ReadCached(key);
    return !cached || cached->Whole();
  }));
  readers.push_back(until_stopped([this](std::int64_t) {
    bool whole = true;
    wide_.WalkCache([&](std::int64_t, const BWide& value) { return whole = value.Whole(); });
    return whole;
  }));
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&] {
      for (std::int64_t i = 0; i < kTimes; ++i) {
        Run([&](Transaction& tx) {
          auto edit = wide_.Edit(tx, i % kKeys);
          edit->SetAll(edit->first + 1);
          return 0;
        });
        if (i % 10'000 == 0) {
          EXPECT_TRUE(engine_.CheckpointNow().ok());
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(0, torn);
  std::int64_t sum = 0;
  wide_.WalkCache([&](std::int64_t, const BWide& value) { return sum += value.first, true; });
  EXPECT_EQ(2 * kTimes, sum);
}

TEST_F(FlatValueTest, APointerShowsWhatWasReadWhateverIsEdited) {
  Run([&](Transaction& tx) { return odd_.Insert(tx, 1, {.number = 5}), 0; });
  Run([&](Transaction& tx) {
    const BOdd* before = odd_.Get(tx, 1);
    odd_.Edit(tx, 1)->number = 6;
    EXPECT_EQ(5, before->number);
    EXPECT_EQ(6, odd_.Get(tx, 1)->number);
    return 0;
  });
  EXPECT_EQ(6, Committed(1).number);
}

TEST_F(FlatValueTest, ANestedRollbackPutsBackWhatWasThere) {
  Run([&](Transaction& tx) { return odd_.Insert(tx, 1, {.number = 5}), 0; });
  Run([&](Transaction& tx) {
    // First edited inside: after the rollback it is as committed.
    EXPECT_EQ(7, tx.Call("inner", [&](Transaction& inner) {
      odd_.Edit(inner, 1)->number = 6;
      return 7;
    }));
    EXPECT_EQ(5, odd_.Get(tx, 1)->number);
    // Edited outside, then removed and put again inside.
    auto edit = odd_.Edit(tx, 1);
    edit->number = 8;
    EXPECT_EQ(7, tx.Call("inner", [&](Transaction& inner) {
      EXPECT_TRUE(odd_.Remove(inner, 1));
      odd_.GetOrAdd(inner, 1)->small = 1;
      return 7;
    }));
    EXPECT_EQ(8, edit->number);
    return 0;
  });
  EXPECT_EQ((BOdd{.version = 2, .number = 8}), Committed(1));
}

TEST_F(FlatValueTest, ARolledBackProcedureLeavesNothing) {
  Run([&](Transaction& tx) { return odd_.Insert(tx, 1, {.number = 5}), 0; });
  EXPECT_EQ(7, Run([&](Transaction& tx) {
              odd_.Edit(tx, 1)->number = 6;
              odd_.Insert(tx, 2, {.number = 7});
              return 7;
            }));
  EXPECT_EQ(5, Committed(1).number);
  EXPECT_FALSE(odd_.ReadCopy(2).value().has_value());
}

TEST_F(FlatValueTest, VersionsAreRaised) {
  for (int i = 0; i < 3; ++i) {
    Run([&](Transaction& tx) { return odd_.GetOrAdd(tx, 1)->number = i, 0; });
  }
  EXPECT_EQ(3, Committed(1).version);
}

TEST_F(FlatValueTest, ListenersSeeBothSides) {
  std::vector<std::pair<int, int>> seen;  // -1: absent.
  odd_.AddListener([&](const RecordChange<std::int64_t, BOdd>& change) {
    seen.emplace_back(change.before ? change.before->number : -1,
                      change.after ? change.after->number : -1);
  });
  Run([&](Transaction& tx) { return odd_.Insert(tx, 1, {.number = 5}), 0; });
  Run([&](Transaction& tx) { return odd_.Edit(tx, 1)->number = 6, 0; });
  EXPECT_TRUE(engine_.CheckpointNow().ok());
  Run([&](Transaction& tx) { return odd_.Edit(tx, 1)->number = 7, 0; });
  Run([&](Transaction& tx) { return odd_.Remove(tx, 1) ? 0 : 1; });
  EXPECT_EQ((std::vector<std::pair<int, int>>{{-1, 5}, {5, 6}, {6, 7}, {7, -1}}), seen);
}

TEST_F(FlatValueTest, AllBytesAreStoredAndLoaded) {
  const BOdd value{.version = 1, .flag = true, .small = -3, .number = -70000};
  Run([&](Transaction& tx) { return named_.Put(tx, "a key that is longer than most", value), 0; });
  EXPECT_TRUE(engine_.Stop().ok());

  Table<std::string, BOdd> named(TableDescriptor{.id = 3, .name = "named"});
  Engine again({.storage = storage_.get()});
  ASSERT_TRUE(again.AddTable(named).ok());
  ASSERT_TRUE(again.Start().ok());
  EXPECT_EQ(value, named.ReadCopy("a key that is longer than most").value());
  EXPECT_FALSE(named.ReadCopy("another").value().has_value());
  EXPECT_TRUE(again.Stop().ok());
}

}  // namespace
}  // namespace zeze
