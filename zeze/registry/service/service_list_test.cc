#include "zeze/registry/service/service_list.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "zeze/registry/messages.h"

namespace zeze::registry {
namespace {

using std::chrono::seconds;

ServiceInfo Info(const std::string& identity, std::int64_t version = 1,
                 const std::string& extra = "") {
  return {.name = "Shop", .identity = identity, .version = version, .extra_info = extra};
}

class SubscribedListTest : public ::testing::Test {
 protected:
  SubscribedList list_{{.name = "Shop"}, seconds(15)};
};

TEST_F(SubscribedListTest, NothingIsKnownBeforeTheFirstAnswer) {
  EXPECT_EQ(nullptr, list_.list());
  list_.OnEdit({.add = {Info("1")}});  // For an earlier subscription of the same name.
  EXPECT_EQ(nullptr, list_.list());
  list_.OnAnswer(seconds(0), {});
  ASSERT_NE(nullptr, list_.list());
  EXPECT_EQ(0U, list_.list()->size());
  EXPECT_EQ(1U, list_.list()->revision);
}

TEST_F(SubscribedListTest, EditsMakeNewListsAndLeaveTheOldOnesAlone) {
  list_.OnAnswer(seconds(0), {{1, {Info("1")}}});
  const ServiceListPtr before = list_.list();
  list_.OnEdit({.remove = {Info("1")}, .add = {Info("2"), Info("10"), Info("9", 2)}});

  EXPECT_EQ(1U, before->size());
  EXPECT_EQ((ServicesByVersion{{1, {Info("2"), Info("10")}}, {2, {Info("9", 2)}}}),
            list_.list()->versions);
  EXPECT_EQ(before->revision + 1, list_.list()->revision);
  EXPECT_EQ(Info("10"), *list_.list()->Find("10"));
  EXPECT_EQ(nullptr, list_.list()->Find("1"));
}

TEST_F(SubscribedListTest, WhatChangesNothingMakesNoNewList) {
  list_.OnAnswer(seconds(0), {{1, {Info("1")}}});
  const ServiceListPtr before = list_.list();
  list_.OnEdit({.remove = {Info("1")}, .add = {Info("1")}});
  list_.OnEdit({.add = {{.name = "Bank", .identity = "1"}}});
  EXPECT_EQ(before, list_.list());
}

TEST_F(SubscribedListTest, OnlyTheSubscribedVersionIsListed) {
  SubscribedList list({.name = "Shop", .version = 2}, seconds(15));
  list.OnAnswer(seconds(0), {{1, {Info("1")}}, {2, {Info("2", 2)}}});
  list.OnEdit({.add = {Info("3"), Info("4", 2)}});
  EXPECT_EQ((ServicesByVersion{{2, {Info("2", 2), Info("4", 2)}}}), list.list()->versions);
}

TEST_F(SubscribedListTest, DifferenceNamesWhatCameChangedAndWent) {
  list_.OnAnswer(seconds(0), {{1, {Info("1"), Info("2"), Info("3")}}});
  const ServiceListPtr before = list_.list();
  list_.OnEdit({.remove = {Info("1")}, .add = {Info("2", 1, "new"), Info("4")}});
  const ServiceChange change = Difference(*before, *list_.list());
  EXPECT_EQ((std::vector<ServiceInfo>{Info("1")}), change.removed);
  EXPECT_EQ((std::vector<ServiceInfo>{Info("2", 1, "new")}), change.updated);
  EXPECT_EQ((std::vector<ServiceInfo>{Info("4")}), change.added);
}

// The peer's agent replaces its list with what it gets, and tells only what came.
TEST(RegistryDefectOfAgents, AnEmptyAnswerAfterARestartRemovesNobodyAtOnce) {
  SubscribedList list({.name = "Shop"}, seconds(15));
  list.OnAnswer(seconds(0), {{1, {Info("1"), Info("2")}}});
  list.OnAnswer(seconds(100), {});
  EXPECT_EQ(2U, list.list()->size());
  EXPECT_EQ(seconds(115), list.NextTick());

  list.OnEdit({.add = {Info("1")}});  // Registered again.
  list.Tick(seconds(114));
  EXPECT_EQ(2U, list.list()->size());
  list.Tick(seconds(115));
  EXPECT_EQ((ServicesByVersion{{1, {Info("1")}}}), list.list()->versions);
  EXPECT_FALSE(list.NextTick().has_value());
}

TEST(RegistryDefectOfAgents, AServiceThatWentDuringTheOutageIsRemovedInTheEnd) {
  SubscribedList list({.name = "Shop"}, seconds(15));
  list.OnAnswer(seconds(0), {{1, {Info("1"), Info("2")}}});
  const ServiceListPtr before = list.list();
  list.OnAnswer(seconds(100), {{1, {Info("1")}}});
  list.Tick(seconds(115));
  EXPECT_EQ((std::vector<ServiceInfo>{Info("2")}), Difference(*before, *list.list()).removed);
}

TEST_F(SubscribedListTest, ADoubtfulServiceThatComesWithANewVersionIsThereOnce) {
  list_.OnAnswer(seconds(0), {{1, {Info("1")}}});
  list_.OnAnswer(seconds(100), {});
  list_.OnEdit({.add = {Info("1", 2)}});
  EXPECT_EQ((ServicesByVersion{{2, {Info("1", 2)}}}), list_.list()->versions);
}

}  // namespace
}  // namespace zeze::registry
