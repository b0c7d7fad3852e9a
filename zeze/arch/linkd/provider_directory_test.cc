// The rules of seed 001 about the choice of servers, and those of section 3.4 of Zeze 1.6.

#include "zeze/arch/linkd/provider_directory.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/base/result.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::arch {
namespace {

using std::chrono::seconds;
using Zeze::Builtin::Provider::BLoad;
using Zeze::Builtin::Provider::BModule;

constexpr std::int32_t kShop = 100;
constexpr std::int32_t kRank = 101;
constexpr std::int32_t kMap = 200;

class ProviderDirectoryTest : public ::testing::Test {
 protected:
  // A server with an id, connected as `connection`.
  void Connect(ProviderId connection, const std::string& identity, std::int64_t version = 0,
               const std::string& prefix = "Game.Server.Module#") {
    gauges_[connection] = std::make_shared<ProviderGauge>();
    directory_.Announce(connection, gauges_[connection],
                        {.ServiceNamePrefix = prefix,
                         .ServiceIdentity = identity,
                         .ProviderDirectIp = "10.0.0." + identity,
                         .ProviderDirectPort = 7000,
                         .AppVersion = version << 48,
                         .DisableChoice = true});
  }
  void Offer(ProviderId connection, const std::vector<std::int32_t>& modules,
             std::int32_t choice_type) {
    ProviderDirectory::Modules all;
    for (const std::int32_t module : modules) all.Put(module, {.ChoiceType = choice_type});
    EXPECT_TRUE(directory_.Bind(connection, all).ok());
    EXPECT_TRUE(directory_.SetDisableChoice(connection, false));
  }
  // Servers 1, 2, 3 on connections 11, 12, 13.
  void ThreeServers(std::int32_t choice_type, std::int32_t module = kShop) {
    for (int i = 1; i <= 3; ++i) {
      Connect(10 + i, std::to_string(i));
      Offer(10 + i, {module}, choice_type);
    }
  }
  void SetLoad(int server, const BLoad& load) {
    directory_.OnLoad("10.0.0." + std::to_string(server), 7000, load);
  }
  ProviderId Choose(const ChoiceSubject& subject = {.account = "alice"},
                    std::int32_t module = kShop) {
    return directory_.Choose(module, subject).provider;
  }
  std::map<ProviderId, int> ChooseOften(int times) {
    std::map<ProviderId, int> chosen;
    for (int i = 0; i < times; ++i) ++chosen[Choose()];
    return chosen;
  }
  void List(const std::string& name, const std::map<std::int64_t, std::vector<std::string>>& all) {
    registry::ServiceList list{.name = name};
    for (const auto& [version, identities] : all) {
      for (const std::string& identity : identities) {
        list.versions[version].push_back({.name = name, .identity = identity, .version = version});
      }
    }
    directory_.OnServiceList(list);
  }

  std::mt19937_64 random_{1};  // NOLINT: the same every time.
  ProviderDirectory directory_{[this] { return random_(); }};
  std::map<ProviderId, std::shared_ptr<ProviderGauge>> gauges_;
};

TEST_F(ProviderDirectoryTest, Seed001ModuleGoesToTheServerThatOffersIt) {
  Connect(11, "1");
  Connect(12, "2");
  Offer(11, {kShop}, BModule::ChoiceTypeDefault);
  Offer(12, {kRank}, BModule::ChoiceTypeDefault);

  EXPECT_EQ(11, Choose({.account = "alice"}, kShop));
  EXPECT_EQ(12, Choose({.account = "alice"}, kRank));
}

TEST_F(ProviderDirectoryTest, Seed001AffinityBindsAllStaticModulesOfTheChosenServer) {
  Connect(11, "1");
  Offer(11, {kRank, kShop}, BModule::ChoiceTypeDefault);
  ProviderDirectory::Modules dynamic;
  dynamic.Put(kMap, {.Dynamic = true});
  EXPECT_TRUE(directory_.Subscribe(11, dynamic).ok());

  EXPECT_EQ((std::vector<std::int32_t>{kShop, kRank}), directory_.StaticModules(11));
}

TEST_F(ProviderDirectoryTest, Seed001DynamicModulesAreKnownAsSuch) {
  Connect(11, "1");
  ProviderDirectory::Modules modules;
  modules.Put(kMap, {});
  EXPECT_TRUE(directory_.Subscribe(11, modules).ok());

  EXPECT_TRUE(directory_.IsDynamic(kMap));
  EXPECT_FALSE(directory_.IsDynamic(kShop));
}

TEST_F(ProviderDirectoryTest, Seed001RoundRobinTakesOneAfterTheOther) {
  ThreeServers(BModule::ChoiceTypeRoundRobin);

  const std::vector<ProviderId> chosen = {Choose(), Choose(), Choose(), Choose()};

  EXPECT_EQ((std::vector<ProviderId>{11, 12, 13, 11}), chosen);
}

TEST_F(ProviderDirectoryTest, Seed001HashChoiceGoesByTheAccountAndAgreesWithThePeer) {
  constexpr std::int32_t kOnline = 11013;
  ThreeServers(BModule::ChoiceTypeHashAccount, kOnline);
  List("Game.Server.Module#11013", {{0, {"1", "2", "3"}}});

  EXPECT_EQ(12, Choose({.account = "alice"}, kOnline));
  EXPECT_EQ(11, Choose({.account = "bob"}, kOnline));
  EXPECT_EQ(11, Choose({.account = "carol"}, kOnline));
}

TEST_F(ProviderDirectoryTest, HashOfRolesAndAddressesStaysAsLongAsTheServerIsThere) {
  for (const std::int32_t type :
       {BModule::ChoiceTypeHashRoleId, BModule::ChoiceTypeHashSourceAddress}) {
    ThreeServers(type);
    std::set<ProviderId> used;
    for (int i = 0; i < 100; ++i) {
      const std::string role = std::to_string(i * 7919);
      const ChoiceSubject subject{.context = role, .source_address = role};
      const ProviderId first = Choose(subject);
      EXPECT_EQ(first, Choose(subject));
      used.insert(first);
    }
    EXPECT_EQ(3U, used.size());
  }
}

TEST_F(ProviderDirectoryTest, RingIsOfThoseRegisteredNotOfThoseConnected) {
  constexpr std::int32_t kOnline = 11013;
  Connect(11, "1");
  Offer(11, {kOnline}, BModule::ChoiceTypeHashAccount);
  Connect(12, "2");
  Offer(12, {kOnline}, BModule::ChoiceTypeHashAccount);
  List("Game.Server.Module#11013", {{0, {"1", "2", "3"}}});

  EXPECT_EQ(12, Choose({.account = "alice"}, kOnline)) << "as with all three";
  Connect(12, "9");  // Its identity is another now: nobody has alice's place.
  EXPECT_NE(0, Choose({.account = "bob"}, kOnline));
}

TEST_F(ProviderDirectoryTest, HashWithoutItsServerFallsBackInTurn) {
  constexpr std::int32_t kOnline = 11013;
  ThreeServers(BModule::ChoiceTypeHashAccount, kOnline);
  List("Game.Server.Module#11013", {{0, {"1", "2", "3"}}});
  directory_.Remove(12);

  std::set<ProviderId> others;
  for (int i = 0; i < 2; ++i) others.insert(Choose({.account = "alice"}, kOnline));

  EXPECT_EQ((std::set<ProviderId>{11, 13}), others);
}

TEST_F(ProviderDirectoryTest, DefaultPrefersThoseWithFewRequestsOfTheLastFiveSeconds) {
  ThreeServers(BModule::ChoiceTypeDefault);
  gauges_[11]->requests = 1'000'000;

  std::map<ProviderId, int> chosen = ChooseOften(1000);
  EXPECT_LT(chosen[11], 30);
  EXPECT_GT(chosen[12], 350);
  EXPECT_GT(chosen[13], 350);

  for (int i = 1; i <= 6; ++i) directory_.Tick(seconds(i * 1));
  chosen = ChooseOften(1000);
  EXPECT_GT(chosen[11], 250) << "long ago";
}

TEST_F(ProviderDirectoryTest, LoadPrefersThoseWithRoom) {
  ThreeServers(BModule::ChoiceTypeLoad);
  SetLoad(1, {.Online = 90, .ProposeMaxOnline = 100, .MaxOnlineNew = 10});
  SetLoad(2, {.Online = 10, .ProposeMaxOnline = 100, .MaxOnlineNew = 10});
  SetLoad(3, {.Online = 0, .ProposeMaxOnline = 100, .OnlineNew = 11, .MaxOnlineNew = 10});

  std::map<ProviderId, int> chosen = ChooseOften(1000);
  EXPECT_NEAR(chosen[11], 100, 50);
  EXPECT_NEAR(chosen[12], 900, 50);
  EXPECT_EQ(chosen[13], 0) << "too many newcomers";

  SetLoad(1, {.Online = 100, .ProposeMaxOnline = 100, .MaxOnlineNew = 10});
  SetLoad(2, {.Online = 100, .ProposeMaxOnline = 100, .MaxOnlineNew = 10});
  chosen = ChooseOften(900);
  EXPECT_EQ(3U, chosen.size()) << "all full: anybody";
}

TEST_F(ProviderDirectoryTest, FeedFullFillsOneAfterTheOther) {
  ThreeServers(BModule::ChoiceTypeFeedFullOneByOne);
  for (int i = 1; i <= 3; ++i) SetLoad(i, {.Online = 1, .ProposeMaxOnline = 10});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(11, Choose());

  SetLoad(1, {.Online = 10, .ProposeMaxOnline = 10});
  EXPECT_EQ(11, Choose()) << "the last one that it gets";
  EXPECT_EQ(12, Choose());
  EXPECT_EQ(12, Choose());

  SetLoad(2, {.Online = 2, .ProposeMaxOnline = 10, .OnlineNew = 6, .MaxOnlineNew = 5});
  EXPECT_EQ(13, Choose());
}

TEST_F(ProviderDirectoryTest, OverloadedServersAreNotChosen) {
  ThreeServers(BModule::ChoiceTypeRoundRobin);
  SetLoad(1, {.Overload = BLoad::eOverload});
  SetLoad(3, {.Overload = BLoad::eOverload});

  for (int i = 0; i < 5; ++i) EXPECT_EQ(12, Choose());

  SetLoad(2, {.Overload = BLoad::eOverload});
  const Choice choice = directory_.Choose(kShop, {});
  EXPECT_EQ(0, choice.provider);
  EXPECT_TRUE(choice.busy);

  SetLoad(2, {.Overload = BLoad::eThreshold});
  EXPECT_EQ(12, Choose());
}

TEST_F(ProviderDirectoryTest, LoadThatCameBeforeTheServerCounts) {
  SetLoad(1, {.Overload = BLoad::eOverload});
  Connect(11, "1");
  Offer(11, {kShop}, BModule::ChoiceTypeRoundRobin);

  EXPECT_TRUE(directory_.Choose(kShop, {}).busy);
}

TEST_F(ProviderDirectoryTest, DisabledServersGetNoNewClients) {
  ThreeServers(BModule::ChoiceTypeRoundRobin);
  directory_.SetDisableChoice(11, true);
  directory_.SetDisableChoice(12, true);

  for (int i = 0; i < 5; ++i) EXPECT_EQ(13, Choose());

  directory_.SetDisableChoice(13, true);
  EXPECT_EQ(0, Choose());
  EXPECT_EQ(kFailureNothingChosen, directory_.Choose(kShop, {}).failure);
}

TEST_F(ProviderDirectoryTest, NewServerIsNotChosenBeforeItIsReady) {
  Connect(11, "1");
  ProviderDirectory::Modules modules;
  modules.Put(kShop, {});
  EXPECT_TRUE(directory_.Bind(11, modules).ok());

  EXPECT_EQ(0, Choose());
  directory_.SetDisableChoice(11, false);
  EXPECT_EQ(11, Choose());
}

TEST_F(ProviderDirectoryTest, OnlyTheMainVersionIsCompared) {
  Connect(11, "1", 1);
  Connect(12, "2", 2);
  Offer(11, {kShop}, BModule::ChoiceTypeRoundRobin);
  Offer(12, {kShop}, BModule::ChoiceTypeRoundRobin);

  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(11, Choose({.main_version = 1}));
    EXPECT_EQ(12, Choose({.main_version = 2}));
  }
  EXPECT_EQ(0, Choose({.main_version = 3}));
  EXPECT_NE(Choose({.main_version = 0}), Choose({.main_version = 0})) << "any of them";
  EXPECT_EQ(2, MainVersion((std::int64_t{2} << 48) | 5));
}

TEST_F(ProviderDirectoryTest, UnboundModulesAreNotOfferedAnyMore) {
  ThreeServers(BModule::ChoiceTypeRoundRobin);
  ProviderDirectory::Modules modules;
  modules.Put(kShop, {});
  directory_.Unbind(11, modules);

  for (int i = 0; i < 4; ++i) EXPECT_NE(11, Choose());
  EXPECT_TRUE(directory_.StaticModules(11).empty());
}

TEST_F(ProviderDirectoryTest, UnknownModuleHasItsOwnFailure) {
  EXPECT_EQ(kFailureUnknownModule, directory_.Choose(5, {}).failure);
}

TEST_F(ProviderDirectoryTest, NobodyBindsBeforeItHasSaidWhoItIs) {
  ProviderDirectory::Modules modules;
  modules.Put(kShop, {});
  EXPECT_FALSE(directory_.Bind(11, modules).ok());
  EXPECT_FALSE(directory_.SetDisableChoice(11, false));
}

// Seed 001: a module is implemented by one kind of server.
TEST_F(ProviderDirectoryTest, AModuleBelongsToTheKindOfServerThatOfferedItFirst) {
  Connect(11, "1");
  Offer(11, {kShop}, BModule::ChoiceTypeRoundRobin);
  Connect(21, "1", 0, "Mall.Server.Module#");
  ProviderDirectory::Modules modules;
  modules.Put(kRank, {});
  modules.Put(kShop, {});

  for (const auto& refused : {directory_.Bind(21, modules), directory_.Subscribe(21, modules)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(ErrorCode::kConflict, refused.error().code());
    EXPECT_EQ(
        "module 100 belongs to the servers registered as Game.Server.Module#100; server 1 offers "
        "it as Mall.Server.Module#100: give both the same name_prefix, or offer the module in one "
        "kind of server only",
        refused.error().message());
  }
  EXPECT_FALSE(directory_.IsKnown(kRank)) << "all of them or none";
  EXPECT_TRUE(directory_.StaticModules(21).empty());

  directory_.SetDisableChoice(21, false);
  EXPECT_EQ(11, Choose());
  directory_.Remove(21);
  EXPECT_EQ(11, Choose());
}

TEST_F(ProviderDirectoryTest, AModuleIsFreeWhenTheLastServerOfItsKindHasGone) {
  Connect(11, "1");
  Offer(11, {kShop}, BModule::ChoiceTypeRoundRobin);
  Connect(21, "1", 0, "Mall.Server.Module#");
  ProviderDirectory::Modules modules;
  modules.Put(kShop, {});

  List("Game.Server.Module#100", {{0, {"1"}}});
  directory_.Remove(11);
  EXPECT_FALSE(directory_.Bind(21, modules).ok()) << "registered: it comes again";

  List("Game.Server.Module#100", {});
  Offer(21, {kShop}, BModule::ChoiceTypeRoundRobin);
  EXPECT_EQ(21, Choose());
  Connect(11, "1");
  EXPECT_FALSE(directory_.Bind(11, modules).ok()) << "now it belongs to the others";
}

TEST_F(ProviderDirectoryTest, Defect20AServerThatComesAgainReplacesItselfAtOnce) {
  Connect(11, "1");
  Offer(11, {kShop}, BModule::ChoiceTypeRoundRobin);

  auto gauge = std::make_shared<ProviderGauge>();
  const std::optional<ProviderId> replaced = directory_.Announce(
      21, gauge, {.ServiceNamePrefix = "Game.Server.Module#", .ServiceIdentity = "1"});
  EXPECT_EQ(11, replaced);
  Offer(21, {kShop}, BModule::ChoiceTypeRoundRobin);
  EXPECT_EQ(21, Choose());

  directory_.Remove(11);  // The end of the old connection is noticed at last.
  EXPECT_EQ(21, Choose());
}

}  // namespace
}  // namespace zeze::arch
