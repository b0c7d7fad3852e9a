#include "zeze/registry/id_allocator.h"

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/testing/recording_output.h"

namespace zeze::registry {
namespace {

class IdAllocatorTest : public ::testing::Test {
 protected:
  void Saved(bool saved = true) {
    const auto last = output_.limits.back();
    allocator_.OnSaved(last.name, last.limit, saved);
  }

  RecordingOutput output_;
  IdAllocator allocator_{{}, output_};
};

TEST_F(IdAllocatorTest, NothingIsGrantedBeforeTheLimitIsSaved) {
  allocator_.Allocate(1, "order", 5);

  EXPECT_TRUE(output_.grants.empty());
  ASSERT_EQ(1U, output_.limits.size());
  Saved();
  EXPECT_EQ((IdBlock{.start = {.high = 0, .low = 1}, .count = 5}), output_.grants.at(1));
}

TEST_F(IdAllocatorTest, OneSaveCoversTenBlocks) {
  allocator_.Allocate(1, "order", 5);
  Saved();
  for (std::uint64_t request = 2; request <= 10; ++request) {
    allocator_.Allocate(request, "order", 5);
    EXPECT_EQ(1 + 5 * (request - 1), output_.grants.at(request).start.low);
  }

  EXPECT_EQ(1U, output_.limits.size());
  allocator_.Allocate(11, "order", 5);
  EXPECT_EQ(2U, output_.limits.size());
}

TEST_F(IdAllocatorTest, ZeroAsksWhereTheNextBlockBeginsAndLessThanZeroIsOne) {
  allocator_.Allocate(1, "order", 0);
  EXPECT_EQ((IdBlock{.start = {.high = 0, .low = 1}, .count = 0}), output_.grants.at(1));
  allocator_.Allocate(2, "order", -7);
  Saved();
  EXPECT_EQ((IdBlock{.start = {.high = 0, .low = 1}, .count = 1}), output_.grants.at(2));
  allocator_.Allocate(3, "order", 0);
  EXPECT_EQ(2U, output_.grants.at(3).start.low);
}

TEST_F(IdAllocatorTest, ARestartBurnsWhatMayHaveBeenHandedOut) {
  allocator_.Allocate(1, "order", 5);
  const Id128 limit = output_.limits.back().limit;
  Saved();

  IdAllocator after({}, output_);
  after.Restore("order", limit);
  after.Allocate(2, "order", 5);
  after.OnSaved("order", output_.limits.back().limit, true);

  EXPECT_GT(output_.grants.at(2).start, limit);
}

TEST_F(IdAllocatorTest, AFailedSaveRefusesAndTheNextTryGoesOn) {
  allocator_.Allocate(1, "order", 5);
  allocator_.Allocate(2, "order", 5);
  Saved(false);

  EXPECT_EQ(2U, output_.refusals.size());
  EXPECT_TRUE(output_.grants.empty());
  allocator_.Allocate(3, "order", 5);
  Saved();
  EXPECT_EQ(1U, output_.grants.at(3).start.low);
}

TEST_F(IdAllocatorTest, RequestsOfOneNameShareASave) {
  allocator_.Allocate(1, "order", 5);
  allocator_.Allocate(2, "order", 5);
  allocator_.Allocate(3, "other", 1);

  EXPECT_EQ(2U, output_.limits.size());
  allocator_.OnSaved("order", output_.limits.front().limit, true);
  EXPECT_EQ(1U, output_.grants.at(1).start.low);
  EXPECT_EQ(6U, output_.grants.at(2).start.low);
}

TEST_F(IdAllocatorTest, HostileNamesAndCountsAreBounded) {
  IdAllocator small({.names_max = 2, .name_bytes_max = 3, .waiting_max = 1, .count_max = 10},
                    output_);
  small.Allocate(1, "abcd", 1);
  EXPECT_TRUE(output_.refusals.contains(1));
  small.Allocate(2, "a", INT32_MAX);
  small.Allocate(3, "a", 1);
  EXPECT_TRUE(output_.refusals.contains(3)) << "one waits already";
  small.OnSaved("a", output_.limits.back().limit, true);
  EXPECT_EQ(10U, output_.grants.at(2).count);
  small.Allocate(4, "b", 1);
  small.Allocate(5, "c", 1);
  EXPECT_TRUE(output_.refusals.contains(5));
}

TEST_F(IdAllocatorTest, TheLastIdsAreNotFollowedByTheFirst) {
  allocator_.Restore("order", {.high = 0, .low = std::uint64_t{INT64_MAX} - 3});
  allocator_.Allocate(1, "order", 5);
  EXPECT_TRUE(output_.refusals.contains(1));
}

TEST_F(IdAllocatorTest, The128BitIdsBeginAtZeroAndCarry) {
  const Id128 last{.high = UINT64_MAX, .low = UINT64_MAX};
  IdAllocator wide({.kind = IdKind::k128, .first = {}, .last = last}, output_);
  wide.Allocate(1, "order", 16);
  wide.OnSaved("order", output_.limits.back().limit, true);
  EXPECT_EQ((IdBlock{.start = {}, .count = 16}), output_.grants.at(1));

  wide.Restore("big", {.high = 0, .low = UINT64_MAX - 1});
  wide.Allocate(2, "big", 16);
  wide.OnSaved("big", output_.limits.back().limit, true);
  wide.Allocate(3, "big", 16);
  EXPECT_EQ((Id128{.high = 1, .low = 15}), output_.grants.at(3).start);
}

// Crashes at random moments, with and without the write that was under way: no id comes twice.
TEST_F(IdAllocatorTest, NoIdTwiceWhateverCrashes) {
  std::mt19937_64 random(7);
  std::set<std::uint64_t> handed_out;
  Id128 saved{};
  bool any_saved = false;
  std::uint64_t request = 0;
  for (int life = 0; life < 200; ++life) {
    RecordingOutput output;
    IdAllocator allocator({}, output);
    if (any_saved) allocator.Restore("order", saved);
    for (int step = 0; step < 20; ++step) {
      allocator.Allocate(++request, "order", static_cast<std::int64_t>(random() % 7));
      if (output.limits.empty()) continue;
      const Id128 limit = output.limits.back().limit;
      output.limits.clear();
      if (random() % 10 == 0) {  // Crash in the middle of a write.
        if (random() % 2 == 0) saved = limit;
        any_saved = any_saved || saved == limit;
        break;
      }
      const bool written = random() % 10 != 0;
      if (written) saved = limit;
      any_saved = any_saved || written;
      allocator.OnSaved("order", limit, written);
    }
    for (const auto& [key, block] : output.grants) {
      for (std::uint64_t i = 0; i < block.count; ++i) {
        EXPECT_TRUE(handed_out.insert(block.start.low + i).second) << block.start.low + i;
      }
    }
  }
  EXPECT_GT(handed_out.size(), 1000U);
}

}  // namespace
}  // namespace zeze::registry
