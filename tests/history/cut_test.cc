#include "tests/history/cut.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/story.h"

namespace zeze::history {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Lists = std::vector<std::pair<Key, std::vector<Element>>>;

// Each state is given both ways: as lists, and as the states of these lists.
std::vector<CutReport> CheckBoth(const History& history, const Lists& lists,
                                 const std::vector<TransactionId>& durable) {
  FinalState as_lists;
  FinalState as_states;
  for (const auto& [key, list] : lists) {
    as_lists.Add(key, list);
    as_states.Add(key, ListState::Of(list));
  }
  return {CheckCut(history, as_lists, durable), CheckCut(history, as_states, durable)};
}

void ExpectCut(const std::vector<Told>& story, const Lists& lists,
               const std::vector<TransactionId>& durable, const std::vector<TransactionId>& lost) {
  for (const CutReport& report : CheckBoth(Tell(story), lists, durable)) {
    EXPECT_TRUE(report.ok()) << report.ToString();
    EXPECT_EQ(report.lost, lost) << report.ToString();
  }
}

void ExpectProblem(const std::vector<Told>& story, const Lists& lists,
                   const std::vector<TransactionId>& durable, CutProblemKind kind,
                   const std::string& text) {
  for (const CutReport& report : CheckBoth(Tell(story), lists, durable)) {
    ASSERT_THAT(report.problems, SizeIs(1)) << report.ToString();
    EXPECT_EQ(report.problems[0].kind, kind) << report.ToString();
    EXPECT_EQ(report.problems[0].text, text);
  }
}

// T1 feeds T2 feeds T3; T4 is on its own.
std::vector<Told> Chain() {
  return {
      {.id = 1, .name = "mine", .does = {Sees(7, {}), Appends(7, 10), Appends(8, 11)}},
      {.id = 2, .name = "sell", .does = {Sees(7, {10}), Appends(7, 20), Appends(9, 21)}},
      {.id = 3, .name = "buy", .does = {Sees(9, {21}), Appends(5, 30)}},
      {.id = 4, .name = "chat", .does = {Appends(6, 40)}},
  };
}

TEST(CheckCut, EverythingAndNothingAreConsistent) {
  ExpectCut(Chain(), {{7, {10, 20}}, {8, {11}}, {9, {21}}, {5, {30}}, {6, {40}}}, {1, 2, 3, 4}, {});
  ExpectCut(Chain(), {}, {}, {1, 2, 3, 4});
}

TEST(CheckCut, PrefixOfCausesIsConsistent) {
  ExpectCut(Chain(), {{7, {10}}, {8, {11}}}, {1}, {2, 3, 4});
  ExpectCut(Chain(), {{7, {10, 20}}, {8, {11}}, {9, {21}}}, {2}, {3, 4});
}

TEST(CheckCut, IndependentTransactionMaySurviveAlone) {
  ExpectCut(Chain(), {{6, {40}}}, {4}, {1, 2, 3});
}

TEST(CheckCut, ReaderMayBeLostWhileWhatOverwroteItsReadSurvives) {
  ExpectCut(
      {
          {.id = 1, .does = {Sees(7, {}), Appends(8, 10)}},
          {.id = 2, .does = {Appends(7, 20)}},
      },
      {{7, {20}}}, {2}, {1});
}

TEST(CheckCut, FindsHalfATransaction) {
  ExpectProblem(Chain(), {{7, {10}}}, {}, CutProblemKind::kHalfTransaction,
                "T1 `mine`: element 10 of key 7 is there, element 11 of key 8 is not");
}

TEST(CheckCut, FindsEffectWithoutItsCause) {
  ExpectProblem(Chain(), {{7, {10}}, {8, {11}}, {5, {30}}}, {}, CutProblemKind::kEffectWithoutCause,
                "T3 `buy` is there; it had read the list of key 9 (length 1) with element 21, but "
                "T2 `sell`, which appended that, is not");
}

TEST(CheckCut, NamesTheOffendingPair) {
  const CutReport report = CheckBoth(Tell(Chain()), {{5, {30}}}, {})[0];
  ASSERT_THAT(report.problems, SizeIs(1));
  EXPECT_EQ(report.problems[0].first, 3u);
  EXPECT_EQ(report.problems[0].second, 2u);
  EXPECT_THAT(report.ToString(), HasSubstr("NOT a consistent cut, 1 problem\n"
                                           "1. effect without its cause: T3 `buy` is there"));
}

TEST(CheckCut, FindsLostDurableTransaction) {
  ExpectProblem(Chain(), {{7, {10}}, {8, {11}}}, {1, 4}, CutProblemKind::kDurableLost,
                "T4 `chat` was acknowledged as durable, but element 40 of key 6 is not there");
}

TEST(CheckCut, DurableAnswerThatOnlyReadNeedsWhatItRead) {
  const std::vector<Told> story = {
      {.id = 1, .name = "deposit", .does = {Appends(7, 10)}},
      {.id = 2, .name = "audit", .does = {Sees(7, {10})}},
  };
  ExpectCut(story, {{7, {10}}}, {2}, {});
  ExpectCut(story, {}, {}, {1, 2});
  ExpectProblem(story, {}, {2}, CutProblemKind::kEffectWithoutCause,
                "T2 `audit` was acknowledged as durable; it had read the list of key 7 (length 1) "
                "with element 10, but T1 `deposit`, which appended that, is not");
}

TEST(CheckCut, FindsAppendWithoutTheOneBefore) {
  // T2 appended after T1, which is not there: no list of the history looks like this.
  ExpectProblem(
      {
          {.id = 1, .name = "first", .does = {Appends(7, 10)}},
          {.id = 2, .name = "second", .does = {Appends(7, 20)}},
          {.id = 3, .name = "audit", .does = {Sees(7, {10, 20})}, .outcome = Outcome::kAborted},
          {.id = 4, .name = "audit", .does = {Sees(7, {10, 20})}},
      },
      {{7, {20}}}, {}, CutProblemKind::kBadState,
      "the recovered state read a list of key 7 with element 20 at index 0, T4 `audit` one with "
      "element 10 at index 0");
}

TEST(CheckCut, FindsElementsOfRolledBackTransactions) {
  ExpectProblem({{.id = 1, .name = "undo", .does = {Appends(7, 10)}, .outcome = Outcome::kAborted}},
                {{7, {10}}}, {}, CutProblemKind::kBadState,
                "the recovered state read element 10 of key 7, which T1 `undo` appended and rolled "
                "back");
}

TEST(CheckCut, FindsElementFromNowhere) {
  ExpectProblem({{.id = 1, .does = {Appends(7, 10)}}}, {{7, {99}}}, {}, CutProblemKind::kBadState,
                "the recovered state read element 99 of key 7, which nobody appended there");
}

TEST(CheckCut, TransactionThatWasRunningMayBeThereOrNotButNotInPart) {
  std::vector<Told> story = Chain();
  story.push_back({.id = 5,
                   .name = "late",
                   .does = {Sees(6, {40}), Appends(6, 50), Appends(4, 51)},
                   .outcome = Outcome::kUnknown});

  ExpectCut(story, {{6, {40}}}, {4}, {1, 2, 3, 5});
  ExpectCut(story, {{6, {40, 50}}, {4, {51}}}, {4}, {1, 2, 3});
  ExpectProblem(story, {{6, {40, 50}}}, {4}, CutProblemKind::kHalfTransaction,
                "T5 `late`: element 50 of key 6 is there, element 51 of key 4 is not");
}

TEST(CheckCut, HistoryGoesOnAfterWhatWasLost) {
  History history = Tell(Chain());
  FinalState state;
  state.Add(7, std::vector<Element>{10});
  state.Add(8, std::vector<Element>{11});
  const CutReport cut = CheckCut(history, state, {});
  ASSERT_TRUE(cut.ok()) << cut.ToString();

  history.MarkLost(cut.lost);
  history.Concatenate(Tell({
      {.id = 101, .name = "sell", .does = {Sees(7, {10}), Appends(7, 120), Sees(9, {})}},
      {.id = 102, .name = "audit", .does = {Sees(7, {10, 120})}},
  }));
  const Report report = Check(history, {});
  EXPECT_TRUE(report.ok()) << report.ToString();
  EXPECT_EQ(report.transaction_count, 3u);

  // What came back from the dead is seen.
  history.Concatenate(Tell({{.id = 201, .name = "audit", .does = {Sees(9, {21})}}}));
  EXPECT_THAT(Check(history, {}).ToString(),
              HasSubstr("T201 `audit` read element 21 of key 9, which T2 `sell` appended and a "
                        "crash took away"));
}

TEST(CheckCut, SurvivorsStayBeforeWhatHappensLater) {
  History history = Tell({{.id = 1, .does = {Appends(7, 10)}, .begin = 5, .end = 6}});
  history.Concatenate(Tell({{.id = 2, .does = {Sees(7, {})}, .begin = 1, .end = 2}}));
  EXPECT_FALSE(Check(history, {}).ok());
}

TEST(CheckCutDeathTest, DurableIdsMustBeInTheHistory) {
  const History history = Tell(Chain());
  const std::vector<TransactionId> durable = {77};
  EXPECT_DEATH(static_cast<void>(CheckCut(history, FinalState(), durable)), "found ==");
}

}  // namespace
}  // namespace zeze::history
