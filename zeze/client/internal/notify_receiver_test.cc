#include "zeze/client/internal/notify_receiver.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/messages/notify_hash.h"

namespace zeze::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> TakeAll(NotifyReceiver& receiver) {
  std::vector<std::string> frames;
  while (const std::string* frame = receiver.Front()) {
    frames.push_back(*frame);
    receiver.PopFront();
  }
  return frames;
}

TEST(NotifyReceiver, HandsOnInOrderAndOnce) {
  NotifyReceiver receiver;
  receiver.Add(0, "a");
  receiver.Add(1, "b");
  EXPECT_THAT(TakeAll(receiver), ElementsAre("a", "b"));
  receiver.Add(0, "a");
  receiver.Add(1, "b");
  receiver.Add(2, "c");
  EXPECT_THAT(TakeAll(receiver), ElementsAre("c"));
  EXPECT_EQ(receiver.next(), 3);
}

TEST(NotifyReceiver, WaitsForWhatIsMissing) {
  NotifyReceiver receiver;
  receiver.Add(2, "c");
  receiver.Add(1, "b");
  EXPECT_THAT(TakeAll(receiver), IsEmpty());
  EXPECT_TRUE(receiver.HasGap());
  receiver.Add(0, "a");
  EXPECT_FALSE(receiver.HasGap());
  EXPECT_THAT(TakeAll(receiver), ElementsAre("a", "b", "c"));
  EXPECT_FALSE(receiver.HasGap());
}

TEST(NotifyReceiver, CountsWhatWasHandled) {
  NotifyReceiver receiver;
  EXPECT_EQ(receiver.hash(), kNotifyHashAtLogin);
  receiver.Add(0, "a");
  receiver.Add(1, "b");
  EXPECT_EQ(receiver.next(), 0);
  receiver.PopFront();
  EXPECT_EQ(receiver.next(), 1);
  EXPECT_EQ(receiver.hash(), ExtendNotifyHash(kNotifyHashAtLogin, "a"));
  receiver.Reset();
  EXPECT_EQ(receiver.next(), 0);
  EXPECT_EQ(receiver.hash(), kNotifyHashAtLogin);
  EXPECT_EQ(receiver.Front(), nullptr);
}

TEST(NotifyReceiver, KeepsOnlySoManyEarlyOnes) {
  NotifyReceiver receiver;
  constexpr auto kMany = static_cast<std::int64_t>(2 * NotifyReceiver::kFramesMax);
  for (std::int64_t i = 1; i < kMany; ++i) receiver.Add(i, "x");
  EXPECT_FALSE(receiver.Add(kMany, "x"));
  EXPECT_TRUE(receiver.Add(0, "x"));  // The one that all wait for has room.
  EXPECT_EQ(TakeAll(receiver).size(), NotifyReceiver::kFramesMax + 1);

  NotifyReceiver large;
  large.Add(1, std::string(NotifyReceiver::kBytesMax, 'x'));
  large.Add(2, "y");
  large.Add(0, "z");
  EXPECT_EQ(TakeAll(large).size(), 2U);
}

TEST(NotifyReceiver, WhateverTheOrderOfArrival) {
  constexpr std::uint32_t kSeed = 20261116;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    NotifyReceiver receiver;
    std::vector<std::int64_t> arrivals;
    for (std::int64_t i = 0; i < 100; ++i) arrivals.insert(arrivals.end(), 1 + random() % 3, i);
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    std::vector<std::string> handled;
    for (const std::int64_t index : arrivals) {
      receiver.Add(index, std::to_string(index));
      for (const std::string& frame : TakeAll(receiver)) handled.push_back(frame);
    }
    ASSERT_EQ(handled.size(), 100U);
    for (std::size_t i = 0; i < handled.size(); ++i) ASSERT_EQ(handled[i], std::to_string(i));
  }
}

}  // namespace
}  // namespace zeze::internal
