#include "zeze/global/directory.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/transaction/coherence.h"

namespace zeze::global {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Right kShare = Right::kShare;
constexpr Right kModify = Right::kModify;
constexpr Right kNothing = Right::kInvalid;

// Writes down what the directory wants: "grant 1 a 2" is session 1, key a, Modify.
class DirectoryTest : public ::testing::Test, private DirectoryOutput {
 protected:
  void Granted(SessionId session, std::uint64_t /*request*/, std::string_view key,
               Right right) override {
    said.push_back(fmt::format("grant {} {} {}", session, key, static_cast<int>(right)));
  }
  void Refused(SessionId session, std::uint64_t /*request*/, std::string_view key, Right /*wanted*/,
               Refusal refusal, SessionId holder) override {
    said.push_back(
        fmt::format("refuse {} {} {} by {}", session, key, static_cast<int>(refusal), holder));
  }
  void Reduce(SessionId holder, std::uint64_t number, std::string_view key, Right to,
              Time /*since*/) override {
    serial = number;
    said.push_back(fmt::format("reduce {} {} {}", holder, key, static_cast<int>(to)));
  }

  std::vector<std::string> Take() { return std::exchange(said, {}); }

  std::vector<std::string> said;
  std::uint64_t serial = 0;  // Of the last question.
  Directory directory{*this};
};

TEST_F(DirectoryTest, ManyReadOneWrites) {
  directory.Acquire(1, 1, "a", kShare);
  directory.Acquire(2, 1, "a", kShare);
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 1", "grant 2 a 1"));

  directory.Acquire(1, 2, "a", kModify);
  EXPECT_THAT(Take(), ElementsAre("reduce 2 a 0"));
  directory.Reduced(2, serial, "a", kNothing);

  EXPECT_THAT(Take(), ElementsAre("grant 1 a 2"));
  EXPECT_EQ(kModify, directory.Held(1, "a"));
  EXPECT_EQ(kNothing, directory.Held(2, "a"));
}

// The peer invalidates the writer's copy for every reader.
TEST_F(DirectoryTest, AReaderLeavesTheWriterACopyToRead) {
  directory.Acquire(1, 1, "a", kModify);
  Take();

  directory.Acquire(2, 1, "a", kShare);
  EXPECT_THAT(Take(), ElementsAre("reduce 1 a 1"));
  directory.Reduced(1, serial, "a", kShare);

  EXPECT_THAT(Take(), ElementsAre("grant 2 a 1"));
  EXPECT_EQ(kShare, directory.Held(1, "a"));
}

TEST_F(DirectoryTest, RequestsForAKeyAreServedInTheirOrder) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "a", kModify);
  directory.Acquire(3, 1, "a", kShare);
  directory.Acquire(4, 1, "b", kShare);
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 2", "reduce 1 a 0", "grant 4 b 1"));

  directory.Reduced(1, serial, "a", kNothing);
  EXPECT_THAT(Take(), ElementsAre("grant 2 a 2", "reduce 2 a 1"));
  directory.Reduced(2, serial, "a", kShare);
  EXPECT_THAT(Take(), ElementsAre("grant 3 a 1"));
}

TEST_F(DirectoryTest, AFailedHolderKeepsItsRightInTheBook) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "a", kModify);
  Take();

  directory.ReduceFailed(1, serial, "a", Refusal::kHolderFailed);

  EXPECT_THAT(Take(), ElementsAre("refuse 2 a 1 by 1"));
  EXPECT_EQ(kModify, directory.Held(1, "a"));
}

// Rule 68. An old peer holds its record's lock while it waits for a right, and cannot answer.
TEST_F(DirectoryTest, ASessionThatHangsWhileItWaitsIsNotLetWaitForAKeyItIsAskedAbout) {
  directory.Acquire(1, 1, "a", kShare);
  directory.Acquire(2, 1, "a", kShare);
  directory.Acquire(1, 2, "a", kModify);
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 1", "grant 2 a 1", "reduce 2 a 0"));

  directory.Acquire(2, 2, "a", kModify, Directory::WhileWaiting::kHangs);
  EXPECT_THAT(Take(), ElementsAre("refuse 2 a 3 by 65535"));
  directory.Acquire(2, 3, "a", kShare, Directory::WhileWaiting::kHangs);
  EXPECT_THAT(Take(), ElementsAre("refuse 2 a 3 by 65535"));
  directory.Reduced(2, serial, "a", kNothing);
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 2"));

  directory.Acquire(2, 4, "a", kModify, Directory::WhileWaiting::kHangs);
  EXPECT_THAT(Take(), ElementsAre("reduce 1 a 0")) << "it is not asked now, and waits in order";
}

TEST_F(DirectoryTest, AWaitingRequestThatHangsIsRefusedBeforeItsSessionIsAsked) {
  directory.Acquire(1, 1, "a", kShare);
  directory.Pause();
  directory.Acquire(2, 1, "a", kModify);
  directory.Acquire(1, 2, "a", kModify, Directory::WhileWaiting::kHangs);
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 1"));

  directory.Resume();
  EXPECT_THAT(Take(), ElementsAre("refuse 1 a 3 by 65535", "reduce 1 a 0"));
  directory.Reduced(1, serial, "a", kNothing);
  EXPECT_THAT(Take(), ElementsAre("grant 2 a 2"));
}

// The peer refuses everything of a server for four seconds, also when it is back.
TEST_F(DirectoryTest, AQuestionOutlivesTheConnectionOfItsHolder) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "a", kModify);
  EXPECT_THAT(Take(), ElementsAre("grant 1 a 2", "reduce 1 a 0"));
  const std::uint64_t first = serial;

  directory.Unreachable(1);
  EXPECT_THAT(Take(), ElementsAre("reduce 1 a 0"));
  EXPECT_EQ(first, serial);
  directory.Reduced(1, serial, "a", kNothing);

  EXPECT_THAT(Take(), ElementsAre("grant 2 a 2"));
}

TEST_F(DirectoryTest, AnAnswerToAnOlderQuestionIsIgnored) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "a", kShare);
  const std::uint64_t first = serial;
  directory.ReduceFailed(1, first, "a", Refusal::kHolderUnreachable);
  directory.Acquire(2, 2, "a", kShare);
  Take();

  directory.Reduced(1, first, "a", kNothing);

  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(kModify, directory.Held(1, "a"));
}

TEST_F(DirectoryTest, AReleaseThatCrossesItsQuestionIsNotItsAnswer) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "a", kModify);
  Take();

  EXPECT_EQ(kModify, directory.Release(1, "a"));
  EXPECT_THAT(Take(), IsEmpty());
  directory.Reduced(1, serial, "a", kNothing);

  EXPECT_THAT(Take(), ElementsAre("grant 2 a 2"));
}

TEST_F(DirectoryTest, WhoAskedAndWentAwayGetsNothing) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "a", kModify);
  directory.Acquire(3, 1, "a", kShare);
  Take();

  directory.Unreachable(2);
  directory.Reduced(1, serial, "a", kNothing);

  EXPECT_THAT(Take(), ElementsAre("grant 3 a 1"));
  EXPECT_EQ(kNothing, directory.Held(2, "a"));
}

TEST_F(DirectoryTest, WhatADroppedSessionHeldGoesToWhoeverWaits) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(1, 2, "b", kModify);
  directory.Acquire(2, 1, "a", kModify);
  Take();

  directory.Drop(1);

  // What was asked of it is answered so: it has nothing.
  EXPECT_THAT(Take(), ElementsAre("grant 2 a 2"));
  directory.Acquire(2, 2, "b", kModify);
  EXPECT_THAT(Take(), ElementsAre("grant 2 b 2"));
}

TEST_F(DirectoryTest, NothingIsGrantedBeforeAllHaveAnnounced) {
  directory.Pause();
  directory.Acquire(1, 1, "a", kShare);
  const std::vector<HeldRight> rights = {{.key = "a", .right = kModify}};
  EXPECT_THAT(directory.Announce(2, rights, false), IsEmpty());
  EXPECT_THAT(Take(), IsEmpty());

  directory.Resume();

  EXPECT_THAT(Take(), ElementsAre("reduce 2 a 1"));
}

TEST_F(DirectoryTest, AnnouncedRightsThatContradictEachOtherAreNobodys) {
  const std::vector<HeldRight> modify = {{.key = "a", .right = kModify}};
  const std::vector<HeldRight> share = {{.key = "a", .right = kShare}};
  EXPECT_THAT(directory.Announce(1, modify, false), IsEmpty());

  EXPECT_THAT(directory.Announce(2, share, false), ElementsAre(1, 2));

  EXPECT_EQ(kNothing, directory.Held(2, "a"));
}

TEST_F(DirectoryTest, AReconnectGivesBackWhatItDoesNotName) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(1, 2, "b", kModify);
  const std::vector<HeldRight> rights = {{.key = "b", .right = kShare}};

  EXPECT_THAT(directory.Announce(1, rights, true), IsEmpty());

  EXPECT_EQ(kNothing, directory.Held(1, "a"));
  EXPECT_EQ(kShare, directory.Held(1, "b"));
  const std::vector<HeldRight> more = {{.key = "b", .right = kModify}};
  EXPECT_THAT(directory.Announce(1, more, true), ElementsAre(1)) << "it cannot have got that";
}

TEST_F(DirectoryTest, AKeyThatNobodyHoldsCostsNothing) {
  directory.Acquire(1, 1, "a", kModify);
  directory.Acquire(2, 1, "b", kShare);
  EXPECT_EQ(2U, directory.key_count());

  directory.Release(1, "a");
  directory.Release(2, "b");

  EXPECT_EQ(0U, directory.key_count());
}

}  // namespace
}  // namespace zeze::global
