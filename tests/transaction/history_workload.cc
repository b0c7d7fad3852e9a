#include "tests/transaction/history_workload.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/history/history.h"
#include "tests/history/recorder.h"
#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

using history::Attempt;
using history::ListState;

namespace {

// A ListState as a bean: with a number beside it its values live in their records, with a text
// apart.
template <typename Companion>
struct BListState {
  static constexpr std::string_view kFullName = "test.BListState";
  std::int64_t length = 0;
  std::int64_t last = 0;
  std::int64_t hash = 0;
  Companion companion = {};  // Always says the same as `last`.

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "length"}, &BListState::length);
    visit(Field{2, "last"}, &BListState::last);
    visit(Field{3, "hash"}, &BListState::hash);
    visit(Field{4, "companion"}, &BListState::companion);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }

  static Companion CompanionOf(std::int64_t last) {
    if constexpr (std::is_same_v<Companion, std::string>) {
      return fmt::format("the last of them is {}", last);
    } else {
      return last;
    }
  }
  ListState ToState() const {
    ZEZE_CHECK(length == 0 || companion == CompanionOf(last));
    return {.length = static_cast<std::uint64_t>(length),
            .last = static_cast<std::uint64_t>(last),
            .hash = static_cast<std::uint64_t>(hash)};
  }
  static BListState Of(const ListState& state) {
    BListState bean;
    bean.length = static_cast<std::int64_t>(state.length);
    bean.last = static_cast<std::int64_t>(state.last);
    bean.hash = static_cast<std::int64_t>(state.hash);
    bean.companion = CompanionOf(bean.last);
    return bean;
  }
};

constexpr TableDescriptor kLive{.id = 1, .name = "history_live"};
constexpr TableDescriptor kGraveyard{.id = 2, .name = "history_graveyard"};

constexpr std::int64_t kFailed = 77;

class Workload {
 public:
  explicit Workload(const HistoryWorkloadOptions& options)
      : options_(options),
        recorder_({.thread_count = options.thread_count,
                   .id_base = 0,
                   .now = &history::SteadyClockStamp}),
        engine_({.storage = options.storage,
                 .checkpoint_period = options.checkpoint_period,
                 .sync = false,
                 .unsafe_skip_validation = options.unsafe_skip_validation}) {
    TableOptions table{.cache_capacity = options.cache_capacity};
    ZEZE_CHECK(engine_.AddTable(live_, table).ok());
    table.durable_at_commit = options.durable;
    ZEZE_CHECK(engine_.AddTable(graveyard_, table).ok());
    ZEZE_CHECK(engine_.Start().ok());
  }

  HistoryWorkloadResult Run() {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < options_.thread_count; ++t) {
      threads.emplace_back([this, t] { RunThread(t); });
    }
    for (std::thread& thread : threads) thread.join();
    HistoryWorkloadResult result;
    result.statistics = engine_.statistics();
    result.evictions = live_.statistics().evictions + graveyard_.statistics().evictions;
    ZEZE_CHECK(engine_.Stop().ok());
    ReadFinalState(live_, result.final_state);
    ReadFinalState(graveyard_, result.final_state);
    result.history = recorder_.Finish();
    return result;
  }

 private:
  using LiveState = BListState<std::int64_t>;
  using DeadState = BListState<std::string>;
  using Random = std::mt19937_64;

  void RunThread(std::size_t thread) {
    Random random(options_.seed * 1000 + thread);
    while (true) {
      const std::size_t number = started_.fetch_add(1, std::memory_order_relaxed);
      if (number >= options_.transaction_count) return;
      RunOne(thread, number, random);
    }
  }

  void RunOne(std::size_t thread, std::size_t number, Random& random) {
    const std::uint64_t kind = random() % 100;
    std::vector<std::int64_t> keys(1 + random() % 4);
    for (std::int64_t& key : keys) key = ChooseKey(number, random);
    const std::uint64_t seed = random();

    if (kind < 20) {
      Record(thread, "audit", [&](Transaction& tx, Attempt& attempt) -> std::int64_t {
        for (const std::int64_t key : keys) Observe(tx, attempt, key);
        return result_code::kSuccess;
      });
    } else if (kind < 65) {
      Record(thread, "append", [&](Transaction& tx, Attempt& attempt) -> std::int64_t {
        Random choice(seed);  // Each run decides the same.
        for (const std::int64_t key : keys) Touch(tx, attempt, key, choice);
        return result_code::kSuccess;
      });
    } else if (kind < 85) {
      Record(thread, "nested", [&](Transaction& tx, Attempt& attempt) -> std::int64_t {
        Random choice(seed);
        RunNested(tx, attempt, keys, choice, 2);
        return result_code::kSuccess;
      });
    } else if (kind < 95) {
      Record(thread, "fail", [&](Transaction& tx, Attempt& attempt) -> std::int64_t {
        Random choice(seed);
        for (const std::int64_t key : keys) Touch(tx, attempt, key, choice);
        return kFailed;
      });
    } else {
      Record(thread, "throw", [&](Transaction& tx, Attempt& attempt) -> std::int64_t {
        Random choice(seed);
        RunNested(tx, attempt, keys, choice, 1);
        return kFailed;
      });
    }
  }

  template <typename Body>
  void Record(std::size_t thread, ProcedureName name, const Body& body) {
    Attempt attempt = recorder_.Begin(thread, name.view());
    const std::int64_t code = engine_.Call(name, [&](Transaction& tx) -> std::int64_t {
      if (tx.attempt() > 1) attempt.Restart();
      return body(tx, attempt);
    });
    if (code == result_code::kSuccess) {
      attempt.Commit();
    } else if (code == kFailed) {
      attempt.Fail();
    } else {
      // Without validation inserts find records that "cannot" be there.
      ZEZE_CHECK(code == result_code::kTooManyTry || options_.unsafe_skip_validation);
      attempt.Abort();
    }
  }

  std::int64_t ChooseKey(std::size_t number, Random& random) const {
    if (random() % 100 < 25) {
      const std::size_t turn = number / options_.hot_turn;
      const std::size_t hot = random() % options_.hot_keys;
      // Hot keys are cold ones for most of their life.
      return static_cast<std::int64_t>((turn * options_.hot_keys + hot) % options_.cold_keys);
    }
    return static_cast<std::int64_t>(random() % options_.cold_keys);
  }

  ListState Observe(Transaction& tx, Attempt& attempt, std::int64_t key) {
    ListState state;
    if (const LiveState* live = live_.Get(tx, key)) {
      state = live->ToState();
    } else if (const DeadState* dead = graveyard_.Get(tx, key)) {
      state = dead->ToState();
    }
    attempt.Read(static_cast<history::Key>(key), state);
    if (attempt.id() * 31 % 100 < options_.yields) std::this_thread::yield();
    return state;
  }

  // Reads, appends or removes.
  void Touch(Transaction& tx, Attempt& attempt, std::int64_t key, Random& choice) {
    const std::uint64_t kind = choice() % 100;
    const ListState state = Observe(tx, attempt, key);
    if (kind < 30) return;
    const history::Element element = attempt.NewElement();
    const ListState next = state.Extended(element);
    if (kind < 45 && live_.Remove(tx, key)) {
      graveyard_.Insert(tx, key, DeadState::Of(next));
    } else if (auto edit = live_.Edit(tx, key)) {
      *edit = LiveState::Of(next);
    } else {
      live_.Insert(tx, key, LiveState::Of(next));
      graveyard_.Remove(tx, key);
    }
    attempt.Append(static_cast<history::Key>(key), element);
  }

  void RunNested(Transaction& tx, Attempt& attempt, const std::vector<std::int64_t>& keys,
                 Random& choice, int depth) {
    for (const std::int64_t key : keys) {
      Touch(tx, attempt, key, choice);
      const Attempt::Savepoint savepoint = attempt.CreateSavepoint();
      const std::uint64_t fate = choice() % 3;
      const std::int64_t code = tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
        Touch(inner, attempt, keys[choice() % keys.size()], choice);
        if (depth > 1) RunNested(inner, attempt, {keys[0]}, choice, depth - 1);
        if (fate == 0) throw std::out_of_range("decided by the test");
        return fate == 1 ? kFailed : result_code::kSuccess;
      });
      if (code != result_code::kSuccess) attempt.RollbackTo(savepoint);
    }
  }

  // Of the storage itself: the engine has stopped.
  template <typename State>
  void ReadFinalState(Table<std::int64_t, State>& table, history::FinalState& state) {
    Result<StorageTable*> stored = options_.storage->OpenTable(table.name());
    ZEZE_CHECK(stored.ok());
    Result<std::size_t> walked =
        stored.value()->Walk({}, [&](std::string_view key, std::string_view value) {
          state.Add(static_cast<history::Key>(DecodeKey<std::int64_t>(key).value()),
                    DecodeBean<State>(value).value().ToState());
          return true;
        });
    ZEZE_CHECK(walked.ok());
  }

  const HistoryWorkloadOptions options_;
  history::Recorder recorder_;
  Table<std::int64_t, LiveState> live_{kLive};
  Table<std::int64_t, DeadState> graveyard_{kGraveyard};
  Engine engine_;
  std::atomic<std::size_t> started_ = 0;
};

}  // namespace

std::string HistoryWorkloadResult::Summary() const {
  return fmt::format(
      "{} commits, {} read-only, {} failed, {} repeated; {} loads, {} evictions, {} flushes of {} "
      "records",
      statistics.commits, statistics.read_only, statistics.rollbacks, statistics.conflicts,
      statistics.loads, evictions, statistics.checkpoint.flushes,
      statistics.checkpoint.records_flushed);
}

HistoryWorkloadResult RunHistoryWorkload(const HistoryWorkloadOptions& options) {
  return Workload(options).Run();
}

}  // namespace zeze
