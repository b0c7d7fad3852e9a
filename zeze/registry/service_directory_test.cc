#include "zeze/registry/service_directory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/testing/recording_output.h"

namespace zeze::registry {
namespace {

ServiceInfo Info(const std::string& name, const std::string& identity, std::int64_t version = 1,
                 std::int32_t port = 7001) {
  return {.name = name,
          .identity = identity,
          .version = version,
          .passive_ip = "10.0.0.1",
          .passive_port = port};
}

constexpr SessionId kServer = 1;
constexpr SessionId kServerAgain = 2;
constexpr SessionId kReader = 10;
constexpr SessionId kReaderOfTwo = 11;

class ServiceDirectoryTest : public ::testing::Test {
 protected:
  void Add(SessionId session, const ServiceInfo& info) {
    EXPECT_TRUE(directory_.Edit(session, {.add = {info}}).ok());
  }
  void Remove(SessionId session, const ServiceInfo& info) {
    EXPECT_TRUE(directory_.Edit(session, {.remove = {info}}).ok());
  }
  ServicesByVersion Subscribe(SessionId session, const std::string& name,
                              std::int64_t version = 0) {
    return directory_.Subscribe(session, {{.name = name, .version = version}}).value().at(name);
  }
  // What a reader that comes now is told.
  std::vector<ServiceInfo> Listed(const std::string& name) {
    std::vector<ServiceInfo> all;
    for (const auto& [version, services] : Subscribe(99, name)) {
      all.insert(all.end(), services.begin(), services.end());
    }
    directory_.Close(99);
    return all;
  }
  std::vector<ServiceInfo> Seen(SessionId session) {
    std::vector<ServiceInfo> all;
    for (const auto& [key, info] : output_.seen[session]) all.push_back(info);
    return all;
  }

  RecordingOutput output_;
  ServiceDirectory directory_{{}, output_};
};

TEST_F(ServiceDirectoryTest, ASubscriberGetsTheListAndThenTheEdits) {
  Add(kServer, Info("Shop", "1"));

  const ServicesByVersion list = Subscribe(kReader, "Shop");
  EXPECT_EQ((ServicesByVersion{{1, {Info("Shop", "1")}}}), list);
  Add(kServer, Info("Shop", "2"));
  Remove(kServer, Info("Shop", "1"));

  ASSERT_EQ(2U, output_.edits.size());
  EXPECT_EQ((ServiceEdit{.add = {Info("Shop", "2")}}), output_.edits[0].second);
  EXPECT_EQ((ServiceEdit{.remove = {Info("Shop", "1")}}), output_.edits[1].second);
}

TEST_F(ServiceDirectoryTest, AnEditIsOneMessageForEachSubscriber) {
  Subscribe(kReader, "Shop");
  Subscribe(kReader, "Bank");
  Subscribe(kReaderOfTwo, "Shop", 2);

  EXPECT_TRUE(directory_
                  .Edit(kServer, {.add = {Info("Shop", "1"), Info("Bank", "1"),
                                          Info("Shop", "2", 2), Info("Mail", "1")}})
                  .ok());

  ASSERT_EQ(2U, output_.edits.size());
  EXPECT_EQ(3U, output_.edits[0].second.add.size());
  EXPECT_EQ((ServiceEdit{.add = {Info("Shop", "2", 2)}}), output_.edits[1].second);
}

TEST_F(ServiceDirectoryTest, TheListIsInTheOrderOfIdentities) {
  for (const char* identity : {"@1.1.1.1_5", "10", "9", "#x", "-1", ""}) {
    Add(kServer, Info("Shop", identity));
  }
  std::vector<std::string> order;
  for (const ServiceInfo& info : Listed("Shop")) order.push_back(info.identity);
  EXPECT_EQ((std::vector<std::string>{"", "#x", "-1", "9", "10", "@1.1.1.1_5"}), order);
}

TEST_F(ServiceDirectoryTest, AnUnknownNameIsAnsweredWithAnEmptyList) {
  EXPECT_TRUE(Subscribe(kReader, "Nobody").empty());
}

TEST_F(ServiceDirectoryTest, TheEndOfAConnectionRemovesWhatItRegistered) {
  Subscribe(kReader, "Shop");
  Add(kServer, Info("Shop", "1"));
  Add(kServerAgain, Info("Shop", "2"));

  directory_.Close(kServer);

  EXPECT_EQ((std::vector<ServiceInfo>{Info("Shop", "2")}), Seen(kReader));
  EXPECT_EQ(1U, directory_.service_count());
}

TEST_F(ServiceDirectoryTest, NobodyRemovesWhatIsNotHis) {
  Add(kServer, Info("Shop", "1"));
  Remove(kServerAgain, Info("Shop", "1"));
  EXPECT_EQ(1U, Listed("Shop").size());
}

TEST_F(ServiceDirectoryTest, RegisteringTheSameAgainIsNoNews) {
  Add(kServer, Info("Shop", "1"));
  Subscribe(kReader, "Shop");
  Add(kServerAgain, Info("Shop", "1"));
  EXPECT_TRUE(output_.edits.empty());
}

TEST_F(ServiceDirectoryTest, NothingIsSentAfterUnsubscribeOrClose) {
  Subscribe(kReader, "Shop");
  Subscribe(kReaderOfTwo, "Shop");
  directory_.Unsubscribe(kReader, {"Shop", "Unknown"});
  directory_.Close(kReaderOfTwo);
  Add(kServer, Info("Shop", "1"));
  EXPECT_TRUE(output_.edits.empty());
}

TEST_F(ServiceDirectoryTest, WhatIsBeyondALimitChangesNothing) {
  ServiceDirectory small({.text_bytes_max = 4,
                          .extra_bytes_max = 4,
                          .services_max = 3,
                          .services_per_session_max = 2,
                          .subscriptions_per_session_max = 1},
                         output_);
  EXPECT_TRUE(small.Edit(kServer, {.add = {Info("Shop", "1")}}).error().code() ==
              ErrorCode::kInvalidArgument)
      << "the address is too long";
  const auto named = [](const std::string& identity) {
    return ServiceInfo{.name = "Shop", .identity = identity};
  };
  EXPECT_EQ(ErrorCode::kOverloaded,
            small.Edit(kServer, {.add = {named("1"), named("2"), named("3")}}).error().code());
  EXPECT_EQ(0U, small.service_count());
  EXPECT_TRUE(small.Edit(kServer, {.add = {named("1"), named("2")}}).ok());
  EXPECT_TRUE(small.Edit(kServer, {.add = {named("1"), named("2")}}).ok()) << "the same again";
  EXPECT_TRUE(small.Edit(kServerAgain, {.add = {named("3")}}).ok());
  EXPECT_FALSE(small.Edit(kServerAgain, {.add = {named("4")}}).ok());
  EXPECT_TRUE(small.Subscribe(kReader, {{.name = "Shop"}}).ok());
  EXPECT_FALSE(small.Subscribe(kReader, {{.name = "Bank"}}).ok());
  EXPECT_TRUE(small.Subscribe(kReader, {{.name = "Shop", .version = 2}}).ok());
}

// --- The peer's defects ---

using RegistryDefectOfServices = ServiceDirectoryTest;

TEST_F(RegistryDefectOfServices, AStaleConnectionsCloseKeepsTheRegistrationOfTheNewOne) {
  Subscribe(kReader, "Shop");
  Add(kServer, Info("Shop", "1"));
  Add(kServerAgain, Info("Shop", "1"));  // Before the old connection was noticed to be dead.

  directory_.Close(kServer);

  EXPECT_EQ(1U, Listed("Shop").size());
  EXPECT_EQ((std::vector<ServiceInfo>{Info("Shop", "1")}), Seen(kReader));
}

TEST_F(RegistryDefectOfServices, ANewVersionReplacesTheOldOne) {
  Subscribe(kReader, "Shop");
  Subscribe(kReaderOfTwo, "Shop", 2);
  Add(kServer, Info("Shop", "1", 1));
  Add(kServer, Info("Shop", "1", 2));

  EXPECT_EQ((std::vector<ServiceInfo>{Info("Shop", "1", 2)}), Listed("Shop"));
  EXPECT_EQ((std::vector<ServiceInfo>{Info("Shop", "1", 2)}), Seen(kReader));
  EXPECT_EQ((std::vector<ServiceInfo>{Info("Shop", "1", 2)}), Seen(kReaderOfTwo));

  Add(kServerAgain, Info("Shop", "1", 3));  // By another connection, too.
  EXPECT_EQ((std::vector<ServiceInfo>{Info("Shop", "1", 3)}), Seen(kReader));
  EXPECT_TRUE(Seen(kReaderOfTwo).empty());
}

// An agent of Zeze 1.6 would drop a removal that comes beside an addition of the same identity.
TEST_F(RegistryDefectOfServices, ARemovalFromTheOldVersionIsAMessageOfItsOwn) {
  Subscribe(kReader, "Shop");
  Add(kServer, Info("Shop", "1", 1));
  output_.edits.clear();
  Add(kServer, Info("Shop", "1", 2));

  ASSERT_EQ(2U, output_.edits.size());
  EXPECT_EQ((ServiceEdit{.remove = {Info("Shop", "1", 1)}}), output_.edits[0].second);
  EXPECT_EQ((ServiceEdit{.add = {Info("Shop", "1", 2)}}), output_.edits[1].second);
}

TEST_F(RegistryDefectOfServices, TheLoadOfAServiceThatCameAfterTheSubscriptionIsDelivered) {
  Subscribe(kReader, "Shop");
  Add(kServer, Info("Shop", "1"));
  const ServerLoad load{.ip = "10.0.0.1", .port = 7001, .param = "busy"};

  directory_.SetLoad(load);

  ASSERT_EQ(1U, output_.loads.size());
  EXPECT_EQ(kReader, output_.loads[0].first);
  EXPECT_EQ(load, output_.loads[0].second);
}

TEST_F(RegistryDefectOfServices, ALateSubscriberHearsTheLastLoad) {
  Add(kServer, Info("Shop", "1"));
  Add(kServer, Info("Bank", "1"));
  directory_.SetLoad({.ip = "10.0.0.1", .port = 7001, .param = "busy"});

  const std::vector<Subscription> wanted{{.name = "Shop"}, {.name = "Bank"}};
  EXPECT_TRUE(directory_.Subscribe(kReader, wanted).ok());
  directory_.SendLoadsTo(kReader, wanted);
  ASSERT_EQ(1U, output_.loads.size()) << "once for each address";

  Subscribe(kReaderOfTwo, "Mail");
  Add(kServer, Info("Mail", "1"));  // At an address whose load is known.
  EXPECT_EQ(2U, output_.loads.size());
}

TEST_F(ServiceDirectoryTest, LoadsOfUnknownAddressesAreForgotten) {
  directory_.SetLoad({.ip = "10.0.0.9", .port = 1, .param = "busy"});
  Subscribe(kReader, "Shop");
  Add(kServer, Info("Shop", "1", 1, 7001));
  directory_.SetLoad({.ip = "10.0.0.1", .port = 7001, .param = "busy"});
  directory_.Close(kServer);
  output_.loads.clear();

  Add(kServer, Info("Shop", "1", 1, 7001));
  EXPECT_TRUE(output_.loads.empty()) << "the load of an earlier life";
}

TEST_F(ServiceDirectoryTest, LoadsGoOnlyToThoseWhoSeeTheVersion) {
  Subscribe(kReader, "Shop", 1);
  Subscribe(kReaderOfTwo, "Shop", 2);
  Add(kServer, Info("Shop", "1", 2));
  directory_.SetLoad({.ip = "10.0.0.1", .port = 7001, .param = "busy"});
  ASSERT_EQ(1U, output_.loads.size());
  EXPECT_EQ(kReaderOfTwo, output_.loads[0].first);
}

}  // namespace
}  // namespace zeze::registry
