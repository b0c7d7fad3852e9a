// What the tests of the checker expect of a story.

#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/story.h"

namespace zeze::history {

inline Report CheckStory(const std::vector<Told>& story, const Options& options = {}) {
  return Check(Tell(story), options);
}

inline void ExpectOk(const std::vector<Told>& story, const Options& options = {}) {
  const Report report = CheckStory(story, options);
  EXPECT_TRUE(report.ok()) << report.ToString();
}

// The one anomaly of the story.
inline Anomaly Find(const std::vector<Told>& story, AnomalyKind kind, const Options& options = {}) {
  const Report report = CheckStory(story, options);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.anomalies, ::testing::SizeIs(1)) << report.ToString();
  if (report.anomalies.empty()) return {};
  EXPECT_EQ(ToString(report.anomalies[0].kind), ToString(kind)) << report.ToString();
  return report.anomalies[0];
}

inline std::vector<std::string> Kinds(const Anomaly& anomaly) {
  std::vector<std::string> kinds;
  for (const Dependency& dependency : anomaly.cycle) kinds.emplace_back(ToString(dependency.kind));
  return kinds;
}

}  // namespace zeze::history
