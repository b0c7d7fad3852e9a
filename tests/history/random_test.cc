// Histories of a store that is serializable by construction must pass; the same with one fault must
// not; and on small histories the checker must agree with the definition: try all serial orders.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/history/checker.h"
#include "tests/history/cut.h"
#include "tests/history/history.h"
#include "tests/history/simulated_store.h"
#include "tests/history/story.h"

namespace zeze::history {
namespace {

using Order = Options::Order;
using Readers = Options::Readers;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 60;
constexpr std::uint64_t kRuns = 3'000;
#else
constexpr std::uint64_t kSeeds = 300;
constexpr std::uint64_t kRuns = 20'000;
#endif

TEST(RandomHistory, SerializableHistoriesPass) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimulatedStore store({.seed = seed,
                          .client_count = 2 + seed % 9,
                          .key_count = 2 + seed % 30,
                          .compact = seed % 2 == 0,
                          .blind = seed % 4 < 2});
    const Report report = Check(store.Run(), {.readers = Readers::kAll});
    ASSERT_TRUE(report.ok()) << "seed " << seed << "\n" << report.ToString();
    ASSERT_GT(report.dependency_count, report.committed_count);
  }
}

struct FaultCase {
  Fault fault;
  std::string name;
  std::vector<AnomalyKind> expected;  // One of these must be among the anomalies.
  Order order = Order::kNone;         // The weakest that must be enough to see it.
};

class RandomFault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(RandomFault, IsFoundInEverySeed) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimulatedStore store({.seed = seed,
                          .client_count = 2 + seed % 9,
                          .key_count = 2 + seed % 30,
                          .compact = seed % 2 == 0,
                          // Blind appends known only as states leave gaps: what is in them is
                          // taken on trust.
                          .blind = seed % 2 == 1,
                          .fault = GetParam().fault});
    const History history = store.Run();
    for (const Order order : {GetParam().order, Order::kRealTime}) {
      const Report report = Check(history, {.order = order});
      ASSERT_FALSE(report.ok()) << "seed " << seed;
      const bool found = std::ranges::any_of(report.anomalies, [](const Anomaly& anomaly) {
        return std::ranges::find(GetParam().expected, anomaly.kind) != GetParam().expected.end();
      });
      ASSERT_TRUE(found) << "seed " << seed << "\n" << report.ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RandomFault,
    ::testing::Values(
        FaultCase{Fault::kLostUpdate, "LostUpdate", {AnomalyKind::kLostUpdate}},
        FaultCase{Fault::kWriteSkew, "WriteSkew", {AnomalyKind::kWriteSkew}},
        FaultCase{Fault::kReadSkew, "ReadSkew", {AnomalyKind::kReadSkew}},
        FaultCase{Fault::kStaleRead, "StaleRead", {AnomalyKind::kRealTime}, Order::kRealTime},
        FaultCase{Fault::kHalfTransaction,
                  "HalfTransaction",
                  {AnomalyKind::kLostUpdate, AnomalyKind::kReadSkew, AnomalyKind::kWriteSkew}},
        FaultCase{Fault::kDirtyRead, "DirtyRead", {AnomalyKind::kAbortedRead}},
        FaultCase{Fault::kIntermediateRead, "IntermediateRead", {AnomalyKind::kIntermediateRead}}),
    [](const auto& fault) { return fault.param.name; });

// ---- Crashes.

FinalState StateOf(const std::vector<std::vector<Element>>& lists, bool compact) {
  FinalState state;
  for (Key key = 0; key < lists.size(); ++key) {
    if (compact) {
      state.Add(key, ListState::Of(lists[key]));
    } else {
      state.Add(key, lists[key]);
    }
  }
  return state;
}

TEST(RandomCut, TheStateAtAnyMomentIsAConsistentCut) {
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const bool compact = seed % 2 == 0;
    SimulatedStore store({.seed = seed, .compact = compact, .blind = seed % 4 < 2});
    History history = store.Run();
    const auto& [lists, committed] = store.snapshot();

    const CutReport report = CheckCut(history, StateOf(lists, compact), committed);

    ASSERT_TRUE(report.ok()) << "seed " << seed << "\n" << report.ToString();
    lost += report.lost.size();
    // Without what was lost, the history is one that ends there.
    history.MarkLost(report.lost);
    const Report rest = Check(history, {.readers = Readers::kAll});
    ASSERT_TRUE(rest.ok()) << "seed " << seed << "\n" << rest.ToString();
  }
  EXPECT_GT(lost, kSeeds * 20);
}

// Whether the state without the last element of a list is a cut, too: its transaction wrote nothing
// else, was not known to be committed, and nobody of those that are there read from it.
bool MayLoseLast(const History& history, const SimulatedStore::Snapshot& snapshot, Key key) {
  std::set<TransactionId> there(snapshot.committed.begin(), snapshot.committed.end());
  TransactionId losing = 0;
  for (const Transaction& transaction : history.transactions()) {
    for (const Operation& operation : history.operations(transaction)) {
      if (operation.kind != OperationKind::kAppend) continue;
      const auto& list = snapshot.lists[operation.key];
      if (operation.key == key && operation.element == list.back()) {
        losing = transaction.id;
      } else if (std::ranges::find(list, operation.element) != list.end()) {
        there.insert(transaction.id);
      }
    }
  }
  if (there.contains(losing)) return false;
  return std::ranges::none_of(history.transactions(), [&](const Transaction& transaction) {
    return there.contains(transaction.id) &&
           std::ranges::any_of(history.operations(transaction), [&](const Operation& operation) {
             if (operation.kind == OperationKind::kAppend || operation.key != key) return false;
             const auto seen = history.elements(operation);
             return std::ranges::find(seen, snapshot.lists[key].back()) != seen.end();
           });
  });
}

TEST(RandomCut, OneMissingElementIsFound) {
  std::size_t harmless = 0;
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds / 3; ++seed) {
    SimulatedStore store({.seed = seed, .compact = false});
    const History history = store.Run();
    const auto& [lists, committed] = store.snapshot();
    for (std::size_t key = 0; key < lists.size(); ++key) {
      if (lists[key].empty()) continue;
      auto broken = lists;
      broken[key].pop_back();
      const CutReport report = CheckCut(history, StateOf(broken, seed % 2 == 0), committed);
      ASSERT_EQ(report.ok(), MayLoseLast(history, store.snapshot(), key))
          << "seed " << seed << " key " << key << "\n"
          << report.ToString();
      (report.ok() ? harmless : found) += 1;
    }
  }
  EXPECT_GT(harmless, 0u);
  EXPECT_GT(found, harmless);
}

TEST(RandomCut, OneElementMissingFromTheMiddleIsFound) {
  for (std::uint64_t seed = 1; seed <= kSeeds / 3; ++seed) {
    const bool compact = seed % 2 == 0;
    SimulatedStore store({.seed = seed, .compact = compact, .blind = !compact});
    const History history = store.Run();
    const auto& [lists, committed] = store.snapshot();
    for (std::size_t key = 0; key < lists.size(); ++key) {
      if (lists[key].size() < 2) continue;
      auto broken = lists;
      broken[key].erase(broken[key].begin() + static_cast<std::ptrdiff_t>(lists[key].size() / 2) -
                        1);
      ASSERT_FALSE(CheckCut(history, StateOf(broken, compact), {}).ok())
          << "seed " << seed << " key " << key;
    }
  }
}

// ---- Against the definition.

using Lists = std::map<Key, std::vector<Element>>;

// Runs the transaction alone. False if it would have read something else.
bool Replay(const Told& told, Lists& lists) {
  for (const Deed& deed : told.does) {
    if (const auto* sees = std::get_if<Sees>(&deed)) {
      if (lists[sees->key] != sees->list) return false;
    } else {
      const auto& appends = std::get<Appends>(deed);
      lists[appends.key].push_back(appends.element);
    }
  }
  return true;
}

bool HasSerialOrder(const std::vector<Told>& story, bool real_time) {
  std::vector<std::size_t> order(story.size());
  std::iota(order.begin(), order.end(), 0u);
  do {
    Lists lists;
    bool good = true;
    for (std::size_t i = 0; i < order.size() && good; ++i) {
      good = Replay(story[order[i]], lists);
      for (std::size_t j = i + 1; j < order.size() && real_time; ++j) {
        good = good && story[order[j]].end >= story[order[i]].begin;
      }
    }
    if (good) return true;
  } while (std::ranges::next_permutation(order).found);
  return false;
}

// A store without isolation: the operations of all transactions happen as they come. Some of them
// work on lists that they fetched when they began, and put them back when they end.
class LawlessStore {
 public:
  explicit LawlessStore(std::uint64_t seed) : random_(seed) {}

  std::vector<Told> Run() {
    const std::size_t count = 2 + random_() % 4;
    std::vector<Running> running(count);
    std::vector<Told> story(count + 1);
    for (std::size_t i = 0; i <= count; ++i) story[i].id = i + 1;
    std::size_t left = count;
    while (left > 0) {
      const std::size_t chosen = random_() % count;
      left -= Step(running[chosen], story[chosen]) ? 1 : 0;
    }
    Told& audit = story.back();
    audit.begin = ++now_;
    for (Key key = 0; key < kKeys; ++key) audit.does.emplace_back(Sees(key, lists_[key]));
    audit.end = ++now_;
    return story;
  }

 private:
  static constexpr Key kKeys = 3;

  struct Running {
    std::size_t step = 0;
    std::size_t step_count = 0;
    bool isolated = false;
    Lists copy;
  };

  // True if this was its last step.
  bool Step(Running& running, Told& told) {
    if (running.step_count > 0 && running.step > running.step_count) return false;
    if (running.step++ == 0) {
      told.begin = ++now_;
      running.step_count = 1 + random_() % 4;
      running.isolated = random_() % 3 == 0;
      running.copy = lists_;
      return false;
    }
    Lists& lists = running.isolated ? running.copy : lists_;
    const Key key = random_() % kKeys;
    if (random_() % 2 == 0) {
      told.does.emplace_back(Sees(key, lists[key]));
    } else {
      const Element element = ++element_;
      lists[key].push_back(element);
      told.does.emplace_back(Appends(key, element));
      if (running.isolated && random_() % 2 == 0) lists_[key] = lists[key];
    }
    if (running.step <= running.step_count) return false;
    told.end = ++now_;
    return true;
  }

  std::mt19937_64 random_;
  Lists lists_;
  std::uint64_t now_ = 0;
  Element element_ = 0;
};

std::vector<Told> WithStates(std::vector<Told> story) {
  for (Told& told : story) {
    for (Deed& deed : told.does) {
      if (const auto* sees = std::get_if<Sees>(&deed)) {
        deed = Deed(SeesState(sees->key, std::vector<Element>(sees->list)));
      }
    }
  }
  return story;
}

TEST(RandomHistory, CheckerAgreesWithTryingAllSerialOrders) {
  std::size_t serializable = 0;
  std::size_t strict = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const std::vector<Told> story = LawlessStore(seed).Run();
    const bool has_order = HasSerialOrder(story, false);
    const bool has_strict_order = has_order && HasSerialOrder(story, true);
    const History history = Tell(story);

    const Report report = Check(history, {.order = Order::kNone});
    ASSERT_EQ(report.ok(), has_order) << "seed " << seed << "\n" << report.ToString();
    const Report strict_report = Check(history, {});
    ASSERT_EQ(strict_report.ok(), has_strict_order) << "seed " << seed << "\n"
                                                    << strict_report.ToString();

    // States tell less than lists: an anomaly may be missed, never invented.
    const Report compact = Check(Tell(WithStates(story)), {.order = Order::kNone});
    ASSERT_TRUE(compact.ok() || !has_order) << "seed " << seed << "\n" << compact.ToString();
    const Report strict_compact = Check(Tell(WithStates(story)), {});
    ASSERT_TRUE(strict_compact.ok() || !has_strict_order) << "seed " << seed << "\n"
                                                          << strict_compact.ToString();
    serializable += has_order ? 1 : 0;
    strict += has_strict_order ? 1 : 0;
  }
  // Both verdicts must be common, or nothing was compared.
  EXPECT_GT(serializable, kRuns / 10);
  EXPECT_LT(serializable, kRuns * 9 / 10);
  EXPECT_LT(strict, serializable);
  RecordProperty("serializable", std::to_string(serializable));
  RecordProperty("strictly_serializable", std::to_string(strict));
}

}  // namespace
}  // namespace zeze::history
