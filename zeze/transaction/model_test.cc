// Random calls against a model, for values in their records and apart from them; and reads stopped
// behind every instruction.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
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
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/testing/single_step.h"
#include "zeze/transaction/transaction.h"

namespace zeze {
namespace {

template <typename Companion>
struct BPair {
  static constexpr std::string_view kFullName = "test.BPair";
  std::int64_t number = 0;
  Companion companion = {};  // Says the same.

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "number"}, &BPair::number);
    visit(Field{2, "companion"}, &BPair::companion);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }

  void Set(std::int64_t to) {
    number = to;
    if constexpr (std::is_same_v<Companion, std::string>) {
      companion = std::to_string(to) + " as a text that is not short";
    } else {
      companion = static_cast<Companion>(to);
    }
  }
  bool Says(std::int64_t expected) const {
    BPair same;
    same.Set(expected);
    return number == expected && (expected == 0 || companion == same.companion);
  }
};
using BFlat = BPair<std::int32_t>;
using BApart = BPair<std::string>;

struct BVersioned : BFlat {
  std::int32_t version = 0;
  static constexpr auto kVersion = &BVersioned::version;
};
static_assert(internal::kLivesInRecord<BFlat> && internal::kLivesInRecord<BVersioned>);
static_assert(!internal::kLivesInRecord<BApart>);

using Model = std::map<std::int64_t, std::int64_t>;

template <typename V>
class ModelTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kKeys = 3;
  static constexpr int kDepth = 3;
  static constexpr std::int64_t kNo = 5;

  ModelTest() : engine_({.storage = storage_.get()}) {
    EXPECT_TRUE(engine_.AddTable(table_).ok());
    EXPECT_TRUE(engine_.Start().ok());
    table_.AddListener([this](const RecordChange<std::int64_t, V>& change) {
      Expect((change.before != nullptr) == heard_.contains(change.key));
      if (change.before != nullptr) Expect(change.before->Says(heard_[change.key]));
      if (change.after != nullptr) {
        heard_[change.key] = change.after->number;
      } else {
        heard_.erase(change.key);
      }
    });
  }
  ~ModelTest() override { EXPECT_TRUE(engine_.Stop().ok()); }

  void Expect(bool truth) { wrong_ += truth ? 0 : 1; }

  void CallAnything(Transaction& tx, int depth) {
    for (std::size_t i = random_() % 6; i > 0; --i) {
      const auto key = static_cast<std::int64_t>(random_() % kKeys);
      switch (random_() % 8) {
        case 0:
          Get(tx, key);
          break;
        case 1:
          Edit(tx, key, depth);
          break;
        case 2:
          GetOrAdd(tx, key);
          break;
        case 3:
          Put(tx, key);
          break;
        case 4:
          TryAdd(tx, key);
          break;
        case 5:
          Expect(table_.Remove(tx, key) == (model_.erase(key) == 1));
          changed_.insert(key);
          break;
        default:
          Nest(tx, depth);
          break;
      }
    }
  }
  V Next(std::int64_t key) {
    V value;
    value.Set(++last_);
    model_[key] = last_;
    changed_.insert(key);
    return value;
  }
  void Get(Transaction& tx, std::int64_t key) {
    const V* value = table_.Get(tx, key);
    Expect((value != nullptr) == model_.contains(key));
    if (value == nullptr) return;
    Expect(value->Says(model_[key]));
    // What was read before anything was changed keeps showing that.
    if (!changed_.contains(key)) shown_.emplace_back(value, value->number);
  }
  void Edit(Transaction& tx, std::int64_t key, int depth) {
    auto edit = table_.Edit(tx, key);
    Expect(static_cast<bool>(edit) == model_.contains(key));
    if (!edit) return;
    Expect(edit->Says(model_[key]));
    edit->Set(Next(key).number);
    if (random_() % 3 != 0 || depth >= kDepth) return;
    const Model before = model_;
    tx.Call("undone", [&](Transaction& inner) {
      CallAnything(inner, depth + 1);
      return kNo;
    });
    model_ = before;
    Expect(edit->Says(model_[key]));
  }
  void GetOrAdd(Transaction& tx, std::int64_t key) {
    bool added = false;
    auto edit = table_.GetOrAdd(tx, key, &added);
    Expect(added != model_.contains(key));
    Expect(edit->Says(added ? 0 : model_[key]));
    edit->Set(Next(key).number);
  }
  void Put(Transaction& tx, std::int64_t key) { table_.Put(tx, key, Next(key)); }
  void TryAdd(Transaction& tx, std::int64_t key) {
    const bool absent = !model_.contains(key);
    V value;
    if (absent) value = Next(key);
    Expect(table_.TryAdd(tx, key, std::move(value)) == absent);
  }
  void Nest(Transaction& tx, int depth) {
    if (depth >= kDepth) return;
    const Model before = model_;
    const std::int64_t code = tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
      CallAnything(inner, depth + 1);
      const auto fate = random_() % 4;
      if (fate == 0) throw std::runtime_error("decided by the test");
      return fate == 1 ? kNo : 0;
    });
    if (code != 0) model_ = before;
  }
  void CallOnce() {
    const Model before = model_;
    const std::int64_t code = engine_.Call("anything", [&](Transaction& tx) -> std::int64_t {
      shown_.clear();
      changed_.clear();
      CallAnything(tx, 0);
      for (const auto& [value, number] : shown_) Expect(value->Says(number));
      return random_() % 4 == 0 ? kNo : 0;
    });
    if (code != 0) model_ = before;
  }
  void CheckEverything(bool storage) {
    Expect(heard_ == model_);
    for (std::int64_t key = 0; key < kKeys; ++key) {
      const std::optional<V> value = table_.ReadCopy(key).value();
      Expect(value.has_value() == model_.contains(key));
      if (value) Expect(value->Says(model_[key]));
    }
    if (!storage) return;
    Expect(engine_.CheckpointNow().ok());
    Model stored;
    Expect(table_
               .WalkStorage([&stored](std::int64_t key, const V& value) {
                 stored[key] = value.number;
                 return true;
               })
               .ok());
    Expect(stored == model_);
  }

  std::mt19937 random_{12345};  // NOLINT: the same every time.
  std::unique_ptr<Storage> storage_ = OpenMemoryStorage();
  Table<std::int64_t, V> table_{TableDescriptor{.id = 1, .name = "pairs"}};
  Engine engine_;
  Model model_;
  Model heard_;  // From the listener.
  std::vector<std::pair<const V*, std::int64_t>> shown_;
  std::set<std::int64_t> changed_;
  std::int64_t last_ = 0;
  int wrong_ = 0;
};

using Beans = ::testing::Types<BFlat, BVersioned, BApart>;
TYPED_TEST_SUITE(ModelTest, Beans);

TYPED_TEST(ModelTest, AnySequenceOfCallsGivesWhatTheModelGives) {
  for (int i = 0; i < 10'000; ++i) {
    this->CallOnce();
    this->CheckEverything(i % 7 == 0);
  }
  EXPECT_EQ(0, this->wrong_);
}

// --- reads and evictions ------------------------------------------------------------------------

std::atomic<int> copies_of_the_dead = 0;

struct BMortal {
  static constexpr std::string_view kFullName = "test.BMortal";
  static constexpr std::uint64_t kAlive = 0x1234567890abcdef;
  std::int64_t number = 0;
  volatile std::uint64_t life = kAlive;

  BMortal() = default;
  BMortal(const BMortal& other) : number(other.number) {
    if (other.life != kAlive) ++copies_of_the_dead;
  }
  BMortal& operator=(const BMortal& other) = default;
  ~BMortal() { life = 0; }

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "number"}, &BMortal::number);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// A read that loses its core anywhere, while the record is changed, saved and evicted.
TEST(EvictionTest, AReadNeverCopiesWhatWasFreed) {
  if (ZEZE_SINGLE_STEP == 0) GTEST_SKIP() << "no single steps here";
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  Table<std::int64_t, BMortal> table(TableDescriptor{.id = 1, .name = "mortals"});
  Engine engine({.storage = storage.get()});
  ASSERT_TRUE(engine.AddTable(table, {.cache_capacity = 100}).ok());
  ASSERT_TRUE(engine.Start().ok());
  const auto put = [&](std::int64_t key, std::int64_t number) {
    ASSERT_EQ(0, engine.Call("put", [&](Transaction& tx) -> std::int64_t {
      table.GetOrAdd(tx, key)->number = number;
      return 0;
    }));
  };
  std::int64_t filler = 1000;
  bool stopped = true;
  for (std::size_t n = 1; stopped; ++n) {
    put(1, 1);
    put(2, 1);
    testing::SingleStep step(n);
    std::thread reader([&] {
      static_cast<void>(table.ReadCached(2));  // Takes a context, which needs a lock.
      step.Begin();
      static_cast<void>(table.ReadCached(1));
      step.End();
    });
    stopped = step.AwaitStop();
    if (stopped) {
      for (int i = 0; i < 200; ++i) put(2, i);  // New eras.
      put(1, 2);
      ASSERT_TRUE(engine.CheckpointNow().ok());
      for (int i = 0; i < 600 || table.ReadCached(1).has_value(); ++i) {
        ASSERT_TRUE(table.ReadCopy(filler++).ok());
      }
    }
    step.GoOn();
    reader.join();
  }
  EXPECT_EQ(0, copies_of_the_dead);
  EXPECT_TRUE(engine.Stop().ok());
}

}  // namespace
}  // namespace zeze
