#include "zeze/arch/provider/module_binds.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/module.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::arch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Zeze::Builtin::Provider::BModule;

class NamedModule final : public Module {
 public:
  NamedModule(std::int32_t id, std::string name) : id_(id), name_(std::move(name)) {}
  std::int32_t id() const override { return id_; }
  std::string_view name() const override { return name_; }
  std::vector<TableBase*> Tables() override { return {}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

 private:
  const std::int32_t id_;
  const std::string name_;
};

class ModuleBindsTest : public ::testing::Test {
 protected:
  static ModuleBinds MustParse(const std::string& children) {
    Result<ModuleBinds> binds = Parse(children);
    EXPECT_TRUE(binds.ok()) << binds.error().message();
    return binds.ok() ? std::move(binds).value() : ModuleBinds();
  }
  static Result<ModuleBinds> Parse(const std::string& children) {
    return ModuleBinds::Parse("<ProviderModuleBinds>\n" + children + "\n</ProviderModuleBinds>",
                              "binds.xml");
  }
  // What is wrong with these children.
  static std::string Refusal(const std::string& children) {
    const Result<ModuleBinds> binds = Parse(children);
    EXPECT_FALSE(binds.ok());
    return binds.ok() ? "" : binds.error().message();
  }

  ModuleBinds::Offer OfferOf(const ModuleBinds& binds, std::int32_t server_id) {
    return binds.OfferOf(server_id, modules_);
  }

  static std::vector<std::int32_t> Ids(const std::map<std::int32_t, BModule>& modules) {
    std::vector<std::int32_t> ids;
    for (const auto& [id, module] : modules) ids.push_back(id);
    return ids;
  }

  NamedModule map_{1, "Game.Map"};
  NamedModule auction_{2, "Game.Auction"};
  NamedModule bag_{3, "Game.Bag"};
  std::vector<Module*> modules_{&map_, &auction_, &bag_};
};

TEST_F(ModuleBindsTest, WithoutAFileEverythingIsStatic) {
  const Result<ModuleBinds> binds = ModuleBinds::Load("/nowhere/provider.module.binds.xml");
  ASSERT_TRUE(binds.ok());

  const ModuleBinds::Offer offer = OfferOf(binds.value(), 1);

  EXPECT_THAT(Ids(offer.static_modules), ElementsAre(1, 2, 3));
  EXPECT_THAT(offer.dynamic_modules, IsEmpty());
}

TEST_F(ModuleBindsTest, ReadsAFile) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/provider.module.binds.xml";
  std::ofstream(path) << "<ProviderModuleBinds><module name='Game.Map' dynamic='true'/>"
                         "</ProviderModuleBinds>";

  const Result<ModuleBinds> binds = ModuleBinds::Load(path);

  ASSERT_TRUE(binds.ok()) << binds.error().message();
  EXPECT_THAT(Ids(OfferOf(binds.value(), 1).dynamic_modules), ElementsAre(1));
}

TEST_F(ModuleBindsTest, OffersAModuleOnTheServersThatAreNamed) {
  const ModuleBinds binds = MustParse(R"(<module name="Game.Auction" providers="7, 8"/>
      <ProviderNoDefaultModule providers="7"/>)");

  EXPECT_THAT(Ids(OfferOf(binds, 7).static_modules), ElementsAre(2));
  EXPECT_THAT(Ids(OfferOf(binds, 8).static_modules), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(OfferOf(binds, 9).static_modules), ElementsAre(1, 3));
}

TEST_F(ModuleBindsTest, StarMeansAllServers) {
  const ModuleBinds binds = MustParse(R"(<module name="Game.Auction" providers="*"/>
      <ProviderNoDefaultModule providers="*"/>)");

  EXPECT_THAT(Ids(OfferOf(binds, 5).static_modules), ElementsAre(2));
  EXPECT_THAT(OfferOf(binds, 5).dynamic_modules, IsEmpty());
}

TEST_F(ModuleBindsTest, DynamicModulesAreOfferedApart) {
  const ModuleBinds binds = MustParse(R"(<module name="Game.Map" dynamic="true" providers="3"/>)");

  const ModuleBinds::Offer offer = OfferOf(binds, 3);

  EXPECT_THAT(Ids(offer.static_modules), ElementsAre(2, 3));
  EXPECT_THAT(Ids(offer.dynamic_modules), ElementsAre(1));
  EXPECT_TRUE(offer.dynamic_modules.at(1).Dynamic);
  EXPECT_THAT(OfferOf(binds, 4).dynamic_modules, IsEmpty());
}

// Seed 001: a module listed with empty providers is bound dynamically.
TEST_F(ModuleBindsTest, EmptyProvidersAloneMarkADynamicModule) {
  const testing::CapturedLog log;

  const ModuleBinds binds = MustParse(R"(<module name="Game.Map" providers=""/>)");

  EXPECT_THAT(Ids(OfferOf(binds, 1).dynamic_modules), ElementsAre(1));
  EXPECT_THAT(log.lines(), Contains(AllOf(HasSubstr("binds.xml:2:"), HasSubstr("Game.Map"),
                                          HasSubstr("dynamic=\"true\""))));
}

TEST_F(ModuleBindsTest, EmptyProvidersWithAnythingElseMeanAllServers) {
  const ModuleBinds binds = MustParse(R"(<module name="Game.Map" providers="" dynamic="false"/>
          <module name="Game.Bag" providers="" ChoiceType="ChoiceTypeHashAccount"/>)");

  EXPECT_THAT(Ids(OfferOf(binds, 1).static_modules), ElementsAre(1, 2, 3));
}

TEST_F(ModuleBindsTest, KnowsAllWaysToChoose) {
  const std::vector<std::pair<std::string, std::int32_t>> choices = {
      {"", 0},
      {"ChoiceTypeDefault", 0},
      {"ChoiceTypeHashAccount", 1},
      {"ChoiceTypeHashRoleId", 2},
      {"ChoiceTypeFeedFullOneByOne", 3},
      {"ChoiceTypeHashSourceAddress", 4},
      {"ChoiceTypeLoad", 5},
      {"ChoiceTypeRequest", 6},
      {"ChoiceTypeRoundRobin", 100}};
  for (const auto& [name, value] : choices) {
    const ModuleBinds binds =
        MustParse(R"(<module name="Game.Bag" ChoiceType=")" + name + R"("/>)");
    EXPECT_EQ(OfferOf(binds, 1).static_modules.at(3).ChoiceType, value) << name;
  }
}

TEST_F(ModuleBindsTest, TheDefaultModuleGivesTheChoiceOfThoseNotListed) {
  const ModuleBinds binds = MustParse(R"(<defaultModule ChoiceType="ChoiceTypeRoundRobin"/>
      <module name="Game.Bag" ChoiceType="ChoiceTypeLoad"/>
      <module name="Game.Map"/>)");

  const ModuleBinds::Offer offer = OfferOf(binds, 1);

  EXPECT_EQ(offer.static_modules.at(1).ChoiceType, 0);
  EXPECT_EQ(offer.static_modules.at(2).ChoiceType, 100);
  EXPECT_EQ(offer.static_modules.at(3).ChoiceType, 5);
}

TEST_F(ModuleBindsTest, RefusesAnUnknownChoice) {
  EXPECT_THAT(Refusal(R"(<module name="Game.Bag" ChoiceType="ChoiceTypeHashAcount"/>)"),
              AllOf(HasSubstr("binds.xml:2:"), HasSubstr("did you mean 'ChoiceTypeHashAccount'")));
  EXPECT_THAT(Refusal(R"(<module name="Game.Bag" ChoiceType="HashRoleId"/>)"),
              HasSubstr("did you mean 'ChoiceTypeHashRoleId'"));
  EXPECT_THAT(Refusal(R"(<defaultModule ChoiceType="x"/>)"), HasSubstr("ChoiceTypeRoundRobin"));
}

TEST_F(ModuleBindsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Refusal(R"(<modul name="Game.Bag"/>)"),
              AllOf(HasSubstr("unknown element <modul>"), HasSubstr("did you mean 'module'")));
  EXPECT_THAT(Refusal(R"(<module name="Game.Map" ConfigType="Dynamic"/>)"),
              AllOf(HasSubstr("ConfigType"), HasSubstr("dynamic=\"true\"")));
  EXPECT_THAT(Refusal(R"(<module/>)"), HasSubstr("without a name"));
  EXPECT_THAT(Refusal(R"(<module name="Game.Map" dynamic="maybe"/>)"),
              HasSubstr("expected true or false"));
  EXPECT_THAT(Refusal(R"(<module name="Game.Map" providers="1,x"/>)"),
              AllOf(HasSubstr("\"x\" is no server id"), HasSubstr("binds.xml:2:")));
  EXPECT_THAT(Refusal(R"(<module name="Game.Map" providers="-1"/>)"), HasSubstr("\"-1\""));
  EXPECT_THAT(Refusal("<module name='Game.Map'/>\n<module name='Game.Map'/>"),
              AllOf(HasSubstr("binds.xml:3:"), HasSubstr("listed twice")));
  EXPECT_THAT(Refusal("<defaultModule/>\n<defaultModule/>"), HasSubstr("in line 2"));
}

TEST_F(ModuleBindsTest, RefusesAnotherFile) {
  const Result<ModuleBinds> other = ModuleBinds::Parse("<zeze/>", "binds.xml");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message(), HasSubstr("expected <ProviderModuleBinds>"));

  const Result<ModuleBinds> broken = ModuleBinds::Parse("<ProviderModuleBinds>", "binds.xml");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message(), HasSubstr("binds.xml:1"));
}

TEST_F(ModuleBindsTest, WarnsOfAttributesThatNobodyReads) {
  const testing::CapturedLog log;

  MustParse(R"(<module name="Game.Map" provider="3"/><defaultModule dynamic="true"/>
      <ProviderNoDefaultModule/>)");

  EXPECT_THAT(log.lines(), Contains(HasSubstr("did you mean 'providers'")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("never dynamic")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("names no server")));
}

TEST_F(ModuleBindsTest, NamesModulesThatNobodyHas) {
  const ModuleBinds binds = MustParse(R"(<module name="Game.Bag"/><module name="Game.Bags"/>)");

  EXPECT_THAT(binds.UnknownNames(modules_), ElementsAre("Game.Bags"));
}

}  // namespace
}  // namespace zeze::arch
