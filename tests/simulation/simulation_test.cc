// The simulation passes, and it fails when a rule is left out: otherwise it would prove nothing.

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/simulation/run.h"

namespace zeze::simulation {
namespace {

constexpr std::uint64_t kSeeds = 1000;

TEST(Simulation, NothingGoesWrongWhateverGoesWrong) {
  std::size_t committed = 0;
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunReport report = RunSeed(seed, {});
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.failure;
    committed += report.committed_count;
    lost += report.lost_count;
  }
  EXPECT_GT(committed, 20 * kSeeds);
  EXPECT_GT(lost, kSeeds / 20) << "no process took unsaved data along: are there faults?";
}

TEST(Simulation, TheSameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RunReport first = RunSeed(seed, {.keep_story = true});
    const RunReport second = RunSeed(seed, {.keep_story = true});
    EXPECT_EQ(first.story, second.story) << "seed " << seed;
    EXPECT_EQ(first.event_count, second.event_count);
  }
}

class SimulationWithout : public testing::TestWithParam<std::pair<LeftOut, std::string>> {};

TEST_P(SimulationWithout, ARuleItFails) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunReport report = RunSeed(seed, {.left_out = GetParam().first});
    if (report.ok()) continue;
    RecordProperty("seed", static_cast<int>(seed));
    return;
  }
  FAIL() << kSeeds << " seeds passed without the rule " << GetParam().second;
}

INSTANTIATE_TEST_SUITE_P(Rules, SimulationWithout, testing::ValuesIn(LeftOutNames()),
                         [](const auto& rule) {
                           std::string name = rule.param.second;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace zeze::simulation
