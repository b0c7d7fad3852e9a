// Each anomaly in the smallest history that has it: it must be found, named, and told as it is. And
// what only looks like one must pass. Here the anomalies of single reads; cycles are in
// checker_cycle_test.cc.

#include "tests/history/checker.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/history/history.h"
#include "tests/history/story.h"
#include "tests/history/story_check.h"

namespace zeze::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Check, EmptyHistoryPasses) {
  ExpectOk({});
}

TEST(Check, SerialHistoryPasses) {
  ExpectOk({
      {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}, .begin = 1, .end = 2},
      {.id = 2, .does = {Sees(7, {10}), Appends(7, 20), Appends(8, 21)}, .begin = 3, .end = 4},
      {.id = 3, .does = {SeesState(7, {10, 20}), Sees(8, {21})}, .begin = 5, .end = 6},
  });
}

TEST(Check, OverlappingTransactionsMayComeInAnyOrder) {
  ExpectOk({
      {.id = 1, .does = {Sees(7, {20}), Appends(7, 10)}},
      {.id = 2, .does = {Sees(7, {}), Appends(7, 20)}},
      {.id = 3, .does = {Sees(7, {})}},
  });
}

TEST(Check, CountsWhatItChecked) {
  const Report report = CheckStory({
      {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}},
      {.id = 2, .does = {Sees(7, {10}), Appends(8, 20)}},
      {.id = 3, .does = {Sees(7, {})}, .outcome = Outcome::kFailed},
      {.id = 4, .does = {Sees(7, {})}, .outcome = Outcome::kAborted},
  });

  EXPECT_EQ(report.transaction_count, 3u);
  EXPECT_EQ(report.committed_count, 2u);
  EXPECT_EQ(report.read_count, 3u);
  EXPECT_EQ(report.append_count, 2u);
  EXPECT_EQ(report.ordered_append_count, 1u);  // Nobody looked at key 8.
  EXPECT_EQ(report.key_count, 2u);
  EXPECT_EQ(report.dependency_count, 2u);  // T1 -> T2, T3 -> T1.
  EXPECT_THAT(report.ToString(), HasSubstr("serializable"));
}

// ---- Single reads.

TEST(Check, FindsElementFromNowhere) {
  const Anomaly anomaly =
      Find({{.id = 5, .name = "audit", .does = {Sees(7, {99})}}}, AnomalyKind::kUnknownElement);
  EXPECT_EQ(anomaly.text, "T5 `audit` read element 99 of key 7, which nobody appended there");
}

TEST(Check, SaysWhereAStrayElementBelongs) {
  const Anomaly anomaly = Find(
      {
          {.id = 4, .name = "deposit", .does = {Appends(8, 99)}},
          {.id = 5, .name = "audit", .does = {SeesState(7, {99})}},
      },
      AnomalyKind::kUnknownElement);
  EXPECT_THAT(anomaly.text, HasSubstr("(T4 `deposit` appended it to key 8)"));
}

TEST(Check, FindsAbortedRead) {
  for (const Outcome outcome : {Outcome::kAborted, Outcome::kFailed}) {
    const Anomaly anomaly = Find(
        {
            {.id = 4, .name = "deposit", .does = {Appends(7, 40)}, .outcome = outcome},
            {.id = 5, .name = "audit", .does = {SeesState(7, {40})}},
        },
        AnomalyKind::kAbortedRead);
    EXPECT_EQ(anomaly.text,
              "T5 `audit` read element 40 of key 7, which T4 `deposit` appended and rolled back");
    EXPECT_THAT(anomaly.transactions, ElementsAre(5, 4));
  }
}

TEST(Check, FindsAbortedReadInTheMiddleOfAList) {
  Find(
      {
          {.id = 4, .does = {Appends(7, 40)}, .outcome = Outcome::kAborted},
          {.id = 5, .does = {Appends(7, 50)}},
          {.id = 6, .does = {Sees(7, {40, 50})}},
      },
      AnomalyKind::kAbortedRead);
}

TEST(Check, FindsReadOfWhatANestedProcedureRolledBack) {
  const Anomaly anomaly = Find(
      {
          {.id = 4,
           .name = "outer",
           .does = {Appends(8, 39), Appends(7, 40), RollsBackTo(1), Appends(8, 41)}},
          {.id = 5, .name = "audit", .does = {Sees(7, {40}), Sees(8, {39, 41})}},
      },
      AnomalyKind::kAbortedRead);
  EXPECT_THAT(anomaly.text, HasSubstr("which T4 `outer` appended and rolled back"));
}

TEST(Check, FindsReadOfATransactionLostInACrash) {
  const Anomaly anomaly = Find(
      {
          {.id = 4, .name = "deposit", .does = {Appends(7, 40)}, .outcome = Outcome::kLost},
          {.id = 5, .name = "audit", .does = {Sees(7, {40})}},
      },
      AnomalyKind::kAbortedRead);
  EXPECT_THAT(anomaly.text, HasSubstr("which T4 `deposit` appended and a crash took away"));
}

TEST(Check, FindsIntermediateRead) {
  for (const bool compact : {false, true}) {
    const Anomaly anomaly = Find(
        {
            {.id = 4, .name = "twice", .does = {Appends(7, 40), Appends(7, 41)}},
            {.id = 5,
             .name = "audit",
             .does = {compact ? Deed(SeesState(7, {40})) : Deed(Sees(7, {40}))}},
            {.id = 6, .does = {Sees(7, {40, 41})}},
        },
        AnomalyKind::kIntermediateRead);
    EXPECT_EQ(anomaly.text,
              "T5 `audit` read the list of key 7 ending with element 40, in the middle of the "
              "appends of T4 `twice`");
  }
}

TEST(Check, WhatComesBeforeAnUndoneAppendIsNotIntermediate) {
  ExpectOk({
      {.id = 4, .does = {Appends(7, 40), Appends(7, 41), RollsBackTo(1)}},
      {.id = 5, .does = {Sees(7, {40})}},
  });
}

TEST(Check, TransactionSeesItsOwnAppends) {
  ExpectOk({
      {.id = 1, .does = {Appends(7, 10)}},
      {.id = 2,
       .does = {Sees(7, {10}), Appends(7, 20), SeesState(7, {10, 20}), Appends(7, 21),
                Sees(7, {10, 20, 21})}},
      {.id = 3, .does = {Appends(8, 30), SeesState(8, {30}), Appends(8, 31), Sees(8, {30, 31})}},
  });
}

TEST(Check, FindsTransactionThatDoesNotSeeItsOwnAppend) {
  for (const bool compact : {false, true}) {
    const Deed read = compact ? Deed(SeesState(7, {})) : Deed(Sees(7, {}));
    const Anomaly anomaly =
        Find({{.id = 2, .name = "deposit", .does = {Sees(7, {}), Appends(7, 20), read}}},
             AnomalyKind::kInternal);
    EXPECT_EQ(anomaly.text,
              "T2 `deposit` read the list of key 7 (length 0) without its own element 20, which it "
              "had appended before");
  }
}

TEST(Check, TransactionSeesItsOwnRollbacks) {
  ExpectOk({{.id = 2,
             .does = {Appends(7, 20), Appends(7, 21), SeesState(7, {20, 21}), RollsBackTo(1),
                      SeesState(7, {20}), Appends(7, 22), Sees(7, {20, 22})}}});
}

TEST(Check, FindsTransactionThatSeesWhatItUndid) {
  const Anomaly anomaly =
      Find({{.id = 2, .does = {Sees(7, {}), Appends(7, 20), RollsBackTo(1), Sees(7, {20})}}},
           AnomalyKind::kInternal);
  EXPECT_THAT(anomaly.text, HasSubstr("twice and it changed in between"));
  Find({{.id = 2, .does = {Appends(7, 20), RollsBackTo(0), Sees(7, {20})}}},
       AnomalyKind::kInternal);
}

TEST(Check, FindsListThatChangesUnderATransaction) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .does = {Appends(7, 10)}},
          {.id = 2, .name = "audit", .does = {SeesState(7, {}), SeesState(7, {10})}},
      },
      AnomalyKind::kInternal);
  EXPECT_EQ(anomaly.text,
            "T2 `audit` read the list of key 7 twice and it changed in between, not by its own "
            "appends: length 0 and last element 0, then length 1 and last element 10");
}

TEST(Check, FindsListThatChangesBelowItsLastElement) {
  const Report report = CheckStory({
      {.id = 1, .does = {Appends(7, 10)}},
      {.id = 2, .does = {Appends(7, 11)}},
      {.id = 3, .does = {Sees(7, {10}), Appends(7, 12), SeesState(7, {11, 12})}},
  });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.anomalies[0].kind, AnomalyKind::kInternal);
}

TEST(Check, FindsDuplicatedElement) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .does = {Appends(7, 10)}},
          {.id = 2, .does = {Appends(7, 20)}},
          {.id = 3, .does = {Appends(7, 30)}},
          {.id = 4, .name = "audit", .does = {Sees(7, {10, 20, 10})}},
      },
      AnomalyKind::kDuplicateElement);
  EXPECT_EQ(anomaly.text,
            "T4 `audit` read a list of key 7 that holds element 10 twice, at index 0 and 2");
}

TEST(Check, FindsListThatIsLongerThanAllAppends) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .does = {Appends(7, 10)}},
          {.id = 2, .name = "audit", .does = {SeesState(7, {10, 10})}},
      },
      AnomalyKind::kDuplicateElement);
  EXPECT_EQ(anomaly.text,
            "T2 `audit` read a list of key 7 with 2 elements, but only 1 were ever appended");
}

TEST(Check, FindsElementAppendedByTwo) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .name = "deposit", .does = {Appends(7, 10)}, .outcome = Outcome::kAborted},
          {.id = 2, .name = "deposit", .does = {Appends(7, 10)}},
      },
      AnomalyKind::kDuplicateAppend);
  EXPECT_THAT(anomaly.text, HasSubstr("T1 `deposit` and T2 `deposit` both appended element 10"));
}

TEST(Check, FindsIncompatibleOrders) {
  for (const bool compact : {false, true}) {
    const Deed first = compact ? Deed(SeesState(7, {10})) : Deed(Sees(7, {10}));
    const Deed second = compact ? Deed(SeesState(7, {20})) : Deed(Sees(7, {20}));
    const Anomaly anomaly = Find(
        {
            {.id = 1, .does = {Appends(7, 10)}},
            {.id = 2, .does = {Appends(7, 20)}},
            {.id = 3, .name = "audit", .does = {first}},
            {.id = 4, .name = "count", .does = {second}},
        },
        AnomalyKind::kIncompatibleOrder);
    EXPECT_EQ(anomaly.text,
              "T4 `count` read a list of key 7 with element 20 at index 0, T3 `audit` one with "
              "element 10 at index 0");
    EXPECT_THAT(anomaly.transactions, ElementsAre(4, 3));
  }
}

TEST(Check, FindsListsThatDifferOnlyBelowTheirLastElement) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .does = {Appends(7, 10)}},
          {.id = 2, .does = {Appends(7, 20)}},
          {.id = 3, .does = {Sees(7, {10, 20})}},
          {.id = 4, .does = {Appends(7, 30)}},
          {.id = 5, .does = {SeesState(7, {10, 20, 30})}},
          {.id = 6, .name = "count", .does = {SeesState(7, {20, 10, 30})}},
      },
      AnomalyKind::kIncompatibleOrder);
  EXPECT_EQ(anomaly.text,
            "T6 `count` read a list of key 7 (length 3, last element 30) whose other elements are "
            "not those that the rest of the history shows");
}

}  // namespace
}  // namespace zeze::history
