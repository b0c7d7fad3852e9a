// The cycles of checker.h, the orders besides the data, and outcomes: see checker_test.cc.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/story.h"
#include "tests/history/story_check.h"

namespace zeze::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Order = Options::Order;
using Readers = Options::Readers;

// ---- Cycles.

TEST(Check, FindsDirtyWrite) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .name = "left", .does = {Appends(7, 10), Appends(8, 11)}},
          {.id = 2, .name = "right", .does = {Appends(7, 20), Appends(8, 21)}},
          {.id = 3, .name = "see7", .does = {Sees(7, {10, 20})}},
          {.id = 4, .name = "see8", .does = {Sees(8, {21, 11})}},
      },
      AnomalyKind::kDirtyWrite);
  EXPECT_THAT(Kinds(anomaly), ElementsAre("ww", "ww"));
  EXPECT_EQ(anomaly.text,
            "T2 `right` appended element 20 to key 7 after element 10 of T1 `left`\n"
            "T1 `left` appended element 11 to key 8 after element 21 of T2 `right`");
}

TEST(Check, FindsCircularInformationFlow) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .name = "left", .does = {Appends(7, 10), SeesState(8, {20})}},
          {.id = 2, .name = "right", .does = {Appends(8, 20), SeesState(7, {10})}},
      },
      AnomalyKind::kCircularRead);
  EXPECT_THAT(Kinds(anomaly), ElementsAre("wr", "wr"));
  EXPECT_EQ(anomaly.text,
            "T2 `right` read element 10 of key 7, which T1 `left` appended\n"
            "T1 `left` read element 20 of key 8, which T2 `right` appended");
}

TEST(Check, FindsLostUpdate) {
  // T13 overwrote the list that T12 had written: both went on from the same one.
  const std::vector<Told> story = {
      {.id = 1, .does = {Appends(7, 10)}},
      {.id = 12, .name = "transfer", .does = {SeesState(7, {10}), Appends(7, 44)}},
      {.id = 13, .name = "transfer", .does = {SeesState(7, {10}), Appends(7, 45)}},
      {.id = 14, .name = "audit", .does = {SeesState(7, {10, 45})}},
  };
  const Anomaly anomaly = Find(story, AnomalyKind::kLostUpdate);
  EXPECT_THAT(anomaly.transactions, ElementsAre(12, 13));
  EXPECT_EQ(anomaly.text,
            "T12 `transfer` read the list of key 7 (length 1) without element 45, which T13 "
            "`transfer` appended\n"
            "T13 `transfer` read the list of key 7 (length 1) without element 44, which T12 "
            "`transfer` appended");
  EXPECT_THAT(CheckStory(story).ToString(),
              HasSubstr("NOT serializable, 1 anomaly\n"
                        "1. lost update, a cycle of 2 transactions:\n"
                        "     T12 -> T13 (rw): T12 `transfer` read the list of key 7"));
}

TEST(Check, FindsLostUpdateThatNobodySawLater) {
  Find(
      {
          {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}},
          {.id = 2, .does = {Sees(7, {}), Appends(7, 20)}},
      },
      AnomalyKind::kLostUpdate);
}

TEST(Check, FindsLostUpdateWhereBothElementsSurvive) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .name = "decide", .does = {Sees(7, {}), Appends(7, 10)}},
          {.id = 2, .name = "blind", .does = {Appends(7, 20)}},
          {.id = 3, .does = {Sees(7, {20, 10})}},
      },
      AnomalyKind::kLostUpdate);
  EXPECT_THAT(Kinds(anomaly), ElementsAre("rw", "ww"));
}

TEST(Check, BlamesTheBranchThatLost) {
  // T2 overwrote what T1 had written after T3 had seen it. The longer branch is the order.
  const Report report = CheckStory({
      {.id = 1, .does = {SeesState(7, {}), Appends(7, 10)}},
      {.id = 3, .name = "audit", .does = {SeesState(7, {10})}},
      {.id = 8, .name = "audit", .does = {SeesState(7, {10})}},
      {.id = 2, .does = {SeesState(7, {}), Appends(7, 20)}},
      {.id = 4, .does = {SeesState(7, {20}), Appends(7, 40)}},
      {.id = 5, .name = "count", .does = {SeesState(7, {20, 40}), Appends(7, 50)}},
      {.id = 6, .does = {SeesState(7, {20, 40, 50})}},
  });

  EXPECT_EQ(report.anomaly_count, 3u);  // T8 is only counted.
  ASSERT_THAT(report.anomalies, SizeIs(2)) << report.ToString();
  EXPECT_EQ(report.anomalies[0].kind, AnomalyKind::kLostUpdate);
  EXPECT_THAT(report.anomalies[0].transactions, UnorderedElementsAre(1, 2));
  EXPECT_EQ(report.anomalies[1].kind, AnomalyKind::kIncompatibleOrder);
  EXPECT_THAT(report.anomalies[1].transactions, ElementsAre(3, 4));
}

TEST(Check, FindsReadSkew) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .name = "transfer", .does = {Appends(7, 10), Appends(8, 11)}},
          {.id = 2, .name = "audit", .does = {SeesState(7, {10}), SeesState(8, {})}},
          {.id = 3, .does = {Sees(8, {11})}},
      },
      AnomalyKind::kReadSkew);
  EXPECT_THAT(Kinds(anomaly), ElementsAre("wr", "rw"));
  EXPECT_EQ(anomaly.text,
            "T2 `audit` read element 10 of key 7, which T1 `transfer` appended\n"
            "T2 `audit` read the list of key 8 (length 0) without element 11, which T1 `transfer` "
            "appended");
}

TEST(Check, FindsReadSkewOfAnAppendThatNobodyElseSaw) {
  Find(
      {
          {.id = 1, .does = {Appends(7, 10), Appends(8, 11)}},
          {.id = 2, .does = {SeesState(7, {10}), SeesState(8, {})}},
      },
      AnomalyKind::kReadSkew);
}

TEST(Check, FindsWriteSkew) {
  const Anomaly anomaly = Find(
      {
          {.id = 1, .name = "left", .does = {Sees(7, {}), Sees(8, {}), Appends(7, 10)}},
          {.id = 2, .name = "right", .does = {Sees(7, {}), Sees(8, {}), Appends(8, 20)}},
      },
      AnomalyKind::kWriteSkew);
  EXPECT_THAT(Kinds(anomaly), ElementsAre("rw", "rw"));
  EXPECT_EQ(anomaly.text,
            "T1 `left` read the list of key 8 (length 0) without element 20, which T2 `right` "
            "appended\n"
            "T2 `right` read the list of key 7 (length 0) without element 10, which T1 `left` "
            "appended");
}

TEST(Check, FindsTheShortestOfSeveralCycles) {
  // T1 -> T2 -> T3 -> T4 -> T1 by one key each, and T2 <-> T3 by key 20.
  const Anomaly anomaly = Find(
      {
          {.id = 1, .does = {Sees(11, {}), Appends(14, 1)}},
          {.id = 2, .does = {Appends(11, 2), Sees(12, {}), Appends(20, 2)}},
          {.id = 3, .does = {Appends(12, 3), Sees(13, {}), Sees(20, {})}},
          {.id = 4, .does = {Appends(13, 4), Sees(14, {})}},
      },
      AnomalyKind::kWriteSkew);
  EXPECT_THAT(anomaly.transactions, ElementsAre(2, 3));
  EXPECT_TRUE(anomaly.shortest);
}

TEST(Check, FindsALongCycle) {
  constexpr std::uint64_t kCount = 300;
  std::vector<Told> story;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    story.push_back({.id = i + 1, .does = {Sees(i, {}), Appends((i + 1) % kCount, i + 1)}});
  }

  const Anomaly anomaly = Find(story, AnomalyKind::kWriteSkew);

  EXPECT_THAT(anomaly.cycle, SizeIs(kCount));
  EXPECT_TRUE(anomaly.shortest);
}

TEST(Check, SaysWhenItGaveUpLookingForAShorterCycle) {
  std::vector<Told> story;
  for (std::uint64_t i = 0; i < 300; ++i) {
    story.push_back({.id = i + 1, .does = {Sees(i, {}), Appends((i + 1) % 300, i + 1)}});
  }

  const Report report = CheckStory(story, {.search_steps_max = 100});

  ASSERT_THAT(report.anomalies, SizeIs(1));
  EXPECT_FALSE(report.anomalies[0].shortest);
  EXPECT_THAT(report.ToString(), HasSubstr("(there may be a shorter one)"));
}

TEST(Check, ReportsOneCycleForEachTangleAndCountsTheRest) {
  std::vector<Told> story;
  for (std::uint64_t i = 0; i < 20; ++i) {
    story.push_back({.id = 2 * i + 1, .does = {Sees(i, {}), Appends(i, 1)}});
    story.push_back({.id = 2 * i + 2, .does = {Sees(i, {}), Appends(i, 2)}});
  }

  const Report report = CheckStory(story, {.anomalies_max = 3});

  EXPECT_EQ(report.anomaly_count, 20u);
  EXPECT_EQ(report.tangle_count, 20u);
  EXPECT_EQ(report.tangle_size_max, 2u);
  EXPECT_THAT(report.anomalies, SizeIs(3));
  EXPECT_THAT(report.ToString(), HasSubstr("... and 17 more"));
}

TEST(Check, NamesKeysAsAsked) {
  Options options;
  options.key_name = [](Key key) { return "role#" + std::to_string(key); };
  const Anomaly anomaly =
      Find({{.id = 5, .does = {Sees(7, {99})}}}, AnomalyKind::kUnknownElement, options);
  EXPECT_THAT(anomaly.text, HasSubstr("element 99 of role#7"));
}

// ---- Orders besides the data.

TEST(Check, FindsStaleRead) {
  const std::vector<Told> story = {
      {.id = 1, .name = "deposit", .does = {Appends(7, 10)}, .begin = 1, .end = 2},
      {.id = 2, .name = "audit", .does = {Sees(7, {})}, .begin = 3, .end = 4, .thread = 1},
  };

  const Anomaly anomaly = Find(story, AnomalyKind::kRealTime);

  EXPECT_THAT(Kinds(anomaly), ElementsAre("rw", "real time"));
  EXPECT_EQ(anomaly.text,
            "T2 `audit` read the list of key 7 (length 0) without element 10, which T1 `deposit` "
            "appended\n"
            "T1 `deposit` had ended before T2 `audit` began");
  ExpectOk(story, {.order = Order::kNone});
  ExpectOk(story, {.order = Order::kSession});
}

TEST(Check, AnEndAtTheStampOfABeginIsNoOrder) {
  ExpectOk({
      {.id = 1, .does = {Appends(7, 10)}, .begin = 1, .end = 3},
      {.id = 2, .does = {Sees(7, {})}, .begin = 3, .end = 4},
  });
}

TEST(Check, FindsStaleReadOverSeveralTransactions) {
  // T3 read something that T2 overwrote, T2 something that T1 overwrote; T1 was long over.
  const Anomaly anomaly = Find(
      {
          {.id = 1, .does = {Appends(7, 10)}, .begin = 1, .end = 2},
          {.id = 2, .does = {Sees(7, {}), Appends(8, 20)}, .begin = 1, .end = 90},
          {.id = 3, .does = {Sees(8, {})}, .begin = 5, .end = 90},
      },
      AnomalyKind::kRealTime);
  EXPECT_THAT(anomaly.transactions, ElementsAre(3, 2, 1));
  EXPECT_THAT(Kinds(anomaly), ElementsAre("rw", "rw", "real time"));
}

TEST(Check, GathersWhatLeadsToOneStaleRead) {
  // Everything between the write and the stale read of it is dragged in; one cycle tells it.
  std::vector<Told> story = {{.id = 1, .does = {Appends(7, 10)}, .begin = 1, .end = 2}};
  std::vector<Element> list;
  for (std::uint64_t i = 2; i < 100; ++i) {
    story.push_back(
        {.id = i, .does = {Sees(8, list), Appends(8, i)}, .begin = 2 * i, .end = 2 * i + 1});
    list.push_back(i);
  }
  story.push_back({.id = 100, .does = {Sees(7, {}), Sees(8, list)}, .begin = 200, .end = 201});

  const Anomaly anomaly = Find(story, AnomalyKind::kRealTime);

  EXPECT_THAT(anomaly.transactions, ElementsAre(100, 1));
}

TEST(Check, TellsStaleReadsAtDifferentTimesApart) {
  const Report report = CheckStory({
      {.id = 1, .does = {Appends(7, 10)}, .begin = 1, .end = 2},
      {.id = 2, .does = {Sees(7, {})}, .begin = 3, .end = 4},
      {.id = 3, .does = {Appends(8, 10)}, .begin = 5, .end = 6},
      {.id = 4, .does = {Sees(8, {})}, .begin = 7, .end = 8},
  });
  EXPECT_EQ(report.anomaly_count, 2u);
}

TEST(Check, FindsLostWrite) {
  // T1 committed and nobody ever saw its element.
  Find(
      {
          {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}, .begin = 1, .end = 2},
          {.id = 2, .does = {Sees(7, {})}, .begin = 3, .end = 4},
      },
      AnomalyKind::kRealTime);
}

TEST(Check, DataCyclesAreNotReportedAgainAsRealTime) {
  const Report report = CheckStory({
      {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}, .begin = 1, .end = 2},
      {.id = 2, .does = {Sees(7, {}), Appends(7, 20)}, .begin = 3, .end = 4},
      {.id = 3, .does = {Sees(7, {10})}, .begin = 5, .end = 6},
  });
  ASSERT_THAT(report.anomalies, SizeIs(1)) << report.ToString();
  EXPECT_EQ(report.anomalies[0].kind, AnomalyKind::kLostUpdate);
}

TEST(Check, FindsViolationOfTheOrderInAThread) {
  const std::vector<Told> story = {
      {.id = 1, .name = "deposit", .does = {Appends(7, 10)}, .thread = 3},
      {.id = 2, .name = "audit", .does = {Sees(7, {})}, .thread = 3},
  };

  const Anomaly anomaly = Find(story, AnomalyKind::kSessionOrder, {.order = Order::kSession});

  EXPECT_EQ(anomaly.text,
            "T1 `deposit` ran before T2 `audit` in thread 3\n"
            "T2 `audit` read the list of key 7 (length 0) without element 10, which T1 `deposit` "
            "appended");
  ExpectOk(story, {.order = Order::kNone});
}

// ---- Outcomes.

TEST(Check, RolledBackTransactionsLeaveNoTrace) {
  ExpectOk({
      {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}, .outcome = Outcome::kAborted},
      {.id = 2, .does = {Sees(7, {}), Appends(7, 20)}, .outcome = Outcome::kFailed},
      {.id = 3, .does = {Sees(7, {}), Appends(7, 30)}},
  });
}

TEST(Check, ReadsOfFailedProceduresMustBeConsistent) {
  const std::vector<Told> story = {
      {.id = 1, .does = {Appends(7, 10), Appends(8, 11)}},
      {.id = 2, .does = {Sees(7, {10}), Sees(8, {}), Appends(9, 20)}, .outcome = Outcome::kFailed},
  };

  Find(story, AnomalyKind::kReadSkew);
  Find(story, AnomalyKind::kReadSkew, {.readers = Readers::kAll});
  ExpectOk(story, {.readers = Readers::kCommitted});
}

TEST(Check, ReadsOfEveryAttemptMustBeConsistentIfAsked) {
  for (const Outcome outcome : {Outcome::kAborted, Outcome::kUnknown}) {
    const std::vector<Told> story = {
        {.id = 1, .does = {Appends(7, 10), Appends(8, 11)}},
        {.id = 2, .does = {Sees(7, {10}), Sees(8, {}), Appends(9, 20)}, .outcome = outcome},
    };
    ExpectOk(story);
    Find(story, AnomalyKind::kReadSkew, {.readers = Readers::kAll});
  }
}

TEST(Check, UnknownOutcomeMayMeanNotCommitted) {
  ExpectOk({
      {.id = 1, .does = {Sees(7, {}), Appends(7, 10)}, .outcome = Outcome::kUnknown, .end = 1},
      {.id = 2, .does = {Sees(7, {}), Appends(7, 20)}, .begin = 5},
      {.id = 3, .does = {Sees(7, {20})}, .begin = 6},
  });
}

TEST(Check, UnknownOutcomeIsCommittedOnceSeen) {
  // T1 has been seen, T2 through what T1 had read.
  const std::vector<Told> story = {
      {.id = 1, .does = {Sees(8, {20}), Appends(7, 10)}, .outcome = Outcome::kUnknown},
      {.id = 2, .does = {Appends(8, 20), Appends(9, 21)}, .outcome = Outcome::kUnknown},
      {.id = 3, .does = {Sees(7, {10})}},
  };
  EXPECT_EQ(CheckStory(story).committed_count, 3u);
  ExpectOk(story);

  auto bad = story;
  bad.push_back({.id = 4, .does = {Sees(8, {20}), Sees(9, {})}});
  Find(bad, AnomalyKind::kReadSkew);
}

TEST(Check, NobodyKnowsWhenAnUnknownOutcomeCameAbout) {
  // The commit may have happened long after its client was gone.
  ExpectOk({
      {.id = 1, .does = {Appends(7, 10)}, .outcome = Outcome::kUnknown, .begin = 1, .end = 2},
      {.id = 2, .does = {Sees(7, {})}, .begin = 3, .end = 4},
      {.id = 3, .does = {Sees(7, {10})}, .begin = 5, .end = 6},
  });
  // But not before it began.
  Find(
      {
          {.id = 2, .does = {Sees(7, {10})}, .begin = 3, .end = 4},
          {.id = 1, .does = {Appends(7, 10)}, .outcome = Outcome::kUnknown, .begin = 5, .end = 6},
      },
      AnomalyKind::kRealTime);
}

// ---- Orders that the reads tell only in part.

TEST(Check, BlindAppendsSeenOnlyAsStatesAreOrderedAsFarAsKnown) {
  // The first of T1 is never seen as the last of a list; its place follows from the second.
  const Report report = CheckStory({
      {.id = 1, .does = {Appends(7, 10), Appends(7, 11)}},
      {.id = 2, .does = {SeesState(7, {10, 11})}},
      {.id = 3, .does = {Appends(7, 30)}},
      {.id = 4, .does = {Appends(7, 40)}},
      {.id = 5, .does = {SeesState(7, {10, 11, 30, 40})}},
  });
  EXPECT_TRUE(report.ok()) << report.ToString();
  EXPECT_EQ(report.ordered_append_count, 3u);  // Not that of T3.
}

TEST(Check, OrderGoesOnBehindAGap) {
  // T3's place is not known, but T2 came before T4 in any case.
  Find(
      {
          {.id = 1, .does = {Appends(7, 10)}},
          {.id = 2, .does = {SeesState(7, {10}), SeesState(8, {40})}},
          {.id = 3, .does = {Appends(7, 30)}},
          {.id = 4, .does = {Appends(7, 40), Appends(8, 40)}},
          {.id = 5, .does = {SeesState(7, {10, 30, 40})}},
      },
      AnomalyKind::kReadSkew);
}

}  // namespace
}  // namespace zeze::history
