#include "tools/gen/generate.h"

#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "tools/gen/emitter.h"
#include "tools/gen/testing/schema_fixture.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::gen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kShop =
    "<solution name='Shop' ModuleIdAllowRanges='1-9'>"
    "<module name='Order' id='1' handle='server'>"
    "<bean name='BOrder'><variable id='1' name='price' type='long'/> in cents\n</bean>"
    "<rpc name='Buy' argument='BOrder' result='BOrder'/>"
    "<table name='tOrder' key='long' value='BOrder'/></module>"
    "</solution>";

class GenerateTest : public SchemaFixture {
 protected:
  int Go(GenerateOptions options) {
    std::ostringstream out;
    std::ostringstream err;
    if (options.solutions.empty()) options.solutions = {Path("solution.xml")};
    const int code = Generate(options, out, err);
    out_ = Plain(out.str());
    err_ = Plain(err.str());
    return code;
  }
  int GoToOut() { return Go({.out = Path("out")}); }

  std::string out_;
  std::string err_;
};

TEST_F(GenerateTest, WritesHeadersSourcesAndModuleBases) {
  Write("solution.xml", kShop);

  EXPECT_EQ(GoToOut(), 0) << err_;

  const std::string header = Read(Path("out/Shop/Order.h"));
  EXPECT_THAT(header, HasSubstr("// in cents\n  std::int64_t price = 0;"));
  EXPECT_THAT(header, HasSubstr("visit(zeze::Field{1, \"price\"}, &BOrder::price);"));
  const std::string module = Read(Path("out/Shop/Order.module.h"));
  EXPECT_THAT(module,
              HasSubstr("virtual std::int64_t ProcessBuy(zeze::Transaction& tx, zeze::Session& "
                        "session, const BOrder& argument, BOrder& result);"));
  EXPECT_THAT(module, HasSubstr("zeze::Table<std::int64_t, BOrder> tOrder{ktOrder};"));
  EXPECT_THAT(Read(Path("out/shard_0.cc")), HasSubstr("#include \"Shop/Order.cc\""));
}

TEST_F(GenerateTest, MessagesAndModulesMayGoToDifferentPlaces) {
  Write("solution.xml", kShop);

  EXPECT_EQ(Go({.out = Path("messages"), .only = Parts::kMessages}), 0) << err_;
  EXPECT_EQ(Go({.out = Path("modules"), .only = Parts::kModules}), 0) << err_;
  EXPECT_EQ(GoToOut(), 0) << err_;

  for (const char* name : {"Shop/Order.h", "Shop/Order.cc"}) {
    EXPECT_EQ(Read(Path(std::string("messages/") + name)), Read(Path(std::string("out/") + name)));
    EXPECT_FALSE(std::filesystem::exists(Path(std::string("modules/") + name)));
  }
  for (const char* name : {"Shop/Order.module.h", "Shop/Order.module.cc"}) {
    EXPECT_EQ(Read(Path(std::string("modules/") + name)), Read(Path(std::string("out/") + name)));
    EXPECT_FALSE(std::filesystem::exists(Path(std::string("messages/") + name)));
  }
  // Programs that are no servers have no application.
  EXPECT_THAT(Read(Path("messages/Shop/Order.h")),
              AllOf(HasSubstr("zeze/net/protocol.h"), Not(HasSubstr("zeze/app/"))));
}

TEST_F(GenerateTest, DoesNotTouchWhatDoesNotChange) {
  Write("solution.xml", kShop);
  ASSERT_EQ(GoToOut(), 0);
  const auto before = std::filesystem::last_write_time(Path("out/Shop/Order.h"));
  const std::string text = Read(Path("out/Shop/Order.h"));

  ASSERT_EQ(GoToOut(), 0);

  EXPECT_THAT(out_, HasSubstr("0 files written"));
  EXPECT_EQ(std::filesystem::last_write_time(Path("out/Shop/Order.h")), before);
  EXPECT_EQ(Read(Path("out/Shop/Order.h")), text);
}

TEST_F(GenerateTest, GivesTheSameBytesWhereverTheSchemaStands) {
  Write("solution.xml", kShop);
  Write("elsewhere/solution.xml", kShop);
  ASSERT_EQ(GoToOut(), 0);
  ASSERT_EQ(Go({.solutions = {Path("elsewhere/solution.xml")}, .out = Path("out2")}), 0);
  for (const char* name : {"Shop/Order.h", "Shop/Order.cc", "Shop/Order.module.h", "shard_0.cc"}) {
    EXPECT_EQ(Read(Path(std::string("out/") + name)), Read(Path(std::string("out2/") + name)));
  }
}

TEST_F(GenerateTest, RemovesOnlyItsOwnStaleFiles) {
  Write("solution.xml", kShop);
  ASSERT_EQ(GoToOut(), 0);
  Write("out/Shop/Mine.h", "// mine\n");
  Write("out/Gone/Old.h", std::string(GeneratedMark()) + "\n");
  Write("out/notes.txt", std::string(GeneratedMark()) + "\n");

  ASSERT_EQ(GoToOut(), 0);

  EXPECT_TRUE(std::filesystem::exists(Path("out/Shop/Mine.h")));
  EXPECT_TRUE(std::filesystem::exists(Path("out/notes.txt")));
  EXPECT_FALSE(std::filesystem::exists(Path("out/Gone")));
  EXPECT_THAT(out_, HasSubstr("1 removed"));
}

TEST_F(GenerateTest, RefusesToOverwriteAFileOfSomebodyElse) {
  Write("solution.xml", kShop);
  Write("out/Shop/Order.h", "// mine\n");
  EXPECT_EQ(GoToOut(), 2);
  EXPECT_THAT(err_, HasSubstr("'out/Shop/Order.h' is in the way"));
  EXPECT_EQ(Read(Path("out/Shop/Order.h")), "// mine\n");
}

TEST_F(GenerateTest, WritesNothingWhenTheSchemaIsWrong) {
  Write("solution.xml", "<solution name='Shop'><module name='A' id='1'/></solution>");
  EXPECT_EQ(GoToOut(), 1);
  EXPECT_THAT(err_, HasSubstr("solution.xml:1:"));
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
}

TEST_F(GenerateTest, SplitsTheWorkIntoShards) {
  Write("solution.xml", kShop);
  ASSERT_EQ(Go({.out = Path("out"), .shards = 3}), 0);
  EXPECT_THAT(Read(Path("out/shard_0.cc")), HasSubstr("Shop/Order.cc"));
  EXPECT_THAT(Read(Path("out/shard_1.cc")), HasSubstr("Shop/Order.module.cc"));
  EXPECT_TRUE(std::filesystem::exists(Path("out/shard_2.cc")));
}

TEST_F(GenerateTest, TellsTheBuildWhichHeadersChanged) {
  Write("solution.xml", kShop);
  ASSERT_EQ(Go({.out = Path("out"), .tracks = 16}), 0);
  std::map<std::string, std::string> before;
  std::string track_of_beans;
  for (int track = 0; track < 16; ++track) {
    const std::string name = "track_" + std::to_string(track) + ".h";
    before[name] = Read(Path("out/" + name));
    if (before[name].find("// Shop/Order.h\n") != std::string::npos) track_of_beans = name;
  }
  EXPECT_THAT(Read(Path("out/Shop/Order.h")), HasSubstr("#include \"../" + track_of_beans + "\""));

  std::string changed = kShop;
  changed.replace(changed.find("in cents"), 8, "in euros");
  Write("solution.xml", changed);
  ASSERT_EQ(Go({.out = Path("out"), .tracks = 16}), 0);

  for (const auto& [name, text] : before) {
    EXPECT_EQ(Read(Path("out/" + name)) != text, name == track_of_beans) << name;
  }
}

TEST_F(GenerateTest, TellsTheBuildWhatItRead) {
  Write("common file.xml", "<solution name='Common'/>");
  Write("solution.xml", "<solution name='Shop'><import file='common file.xml'/></solution>");
  ASSERT_EQ(Go({.out = Path("out"), .depfile = Path("d"), .stamp = Path("stamp")}), 0) << err_;
  EXPECT_EQ(Plain(Read(Path("d"))), "stamp: \\\n  solution.xml \\\n  common\\ file.xml\n");
  EXPECT_TRUE(std::filesystem::exists(Path("stamp")));
}

TEST_F(GenerateTest, StrictMakesWarningsErrors) {
  Write("solution.xml", "<solution name='Shop' nmae='x'/>");
  EXPECT_EQ(GoToOut(), 0);
  EXPECT_THAT(err_, HasSubstr("warning: unknown attribute 'nmae'"));
  EXPECT_EQ(Go({.out = Path("out"), .strict = true}), 1);
}

TEST_F(GenerateTest, ChoosesTheProjectForCxx) {
  const std::string modules =
      "<solution name='Shop' ModuleIdAllowRanges='1-9'><module name='A' id='1'/>"
      "<module name='B' id='2'/>";
  Write("solution.xml", modules +
                            "<project name='j' platform='java'><module ref='A'/></project>"
                            "<project name='c' platform='zeze+cxx'><module ref='B'/></project>"
                            "</solution>");
  ASSERT_EQ(GoToOut(), 0) << err_;
  EXPECT_FALSE(std::filesystem::exists(Path("out/Shop/A.module.h")));
  EXPECT_TRUE(std::filesystem::exists(Path("out/Shop/B.module.h")));
  ASSERT_EQ(Go({.project = "j", .out = Path("out")}), 0) << err_;
  EXPECT_TRUE(std::filesystem::exists(Path("out/Shop/A.module.h")));
  EXPECT_EQ(Go({.project = "k", .out = Path("out")}), 1);
  EXPECT_THAT(err_, HasSubstr("there is no project 'k'"));

  Write("solution.xml", modules +
                            "<project name='one' platform='cxx'/>"
                            "<project name='two' platform='cxx'/></solution>");
  EXPECT_EQ(GoToOut(), 1);
  EXPECT_THAT(err_, HasSubstr("several projects are for C++: one, two\n"
                              "  hint: choose one with --project NAME"));
}

TEST_F(GenerateTest, SelectsTablesByTheirTag) {
  Write("solution.xml",
        "<solution name='Shop' ModuleIdAllowRanges='1-9'><module name='A' id='1'>"
        "<bean name='BA'/><table name='t' key='int' value='BA'/>"
        "<table name='u' key='int' value='BA' gen='client'/></module>"
        "<project name='p' platform='cxx' GenTables='client'><module ref='A'/></project>"
        "</solution>");
  ASSERT_EQ(GoToOut(), 0) << err_;
  EXPECT_THAT(Read(Path("out/Shop/A.module.h")), AllOf(HasSubstr("ku{"), Not(HasSubstr("kt{"))));
}

TEST_F(GenerateTest, GeneratesHandWrittenBeansNotAtAll) {
  const std::string schema =
      "<solution name='Shop' ModuleIdAllowRanges='1-9'><module name='A' id='1'>"
      "<external bean='my.BHand' HEADER/><bean name='BA'>"
      "<variable id='1' name='h' type='my.BHand'/></bean></module></solution>";
  std::string with = schema;
  with.replace(with.find("HEADER"), 6, "header='my/hand.h'");
  Write("solution.xml", with);
  ASSERT_EQ(GoToOut(), 0) << err_;
  EXPECT_THAT(Read(Path("out/Shop/A.h")),
              AllOf(HasSubstr("#include \"my/hand.h\""), HasSubstr("::my::BHand h = {};")));
  std::string without = schema;
  without.replace(without.find("HEADER"), 6, "");
  Write("solution.xml", without);
  EXPECT_EQ(GoToOut(), 1);
  EXPECT_THAT(err_, HasSubstr("'my.BHand' is written by hand, but nothing says where"));
}

TEST_F(GenerateTest, SkeletonsAreWrittenOnce) {
  Write("solution.xml", kShop);
  ASSERT_EQ(Go({.out = Path("out"), .skeleton = Path("src")}), 0) << err_;
  EXPECT_THAT(Read(Path("src/ModuleOrder.h")),
              HasSubstr("class ModuleOrder final : public ModuleOrderBase {"));
  EXPECT_THAT(Read(Path("src/ModuleOrder.cc")), HasSubstr("ModuleOrder::ProcessBuy("));
  EXPECT_THAT(Read(Path("src/main.cc")), HasSubstr("int main("));
  Write("src/ModuleOrder.cc", "// my work\n");

  ASSERT_EQ(Go({.out = Path("out"), .skeleton = Path("src")}), 0);

  EXPECT_EQ(Read(Path("src/ModuleOrder.cc")), "// my work\n");
  EXPECT_THAT(out_, HasSubstr("kept src/ModuleOrder.cc"));
}

TEST_F(GenerateTest, LocksWhenAskedAndThenByItself) {
  Write("solution.xml", kShop);
  ASSERT_EQ(GoToOut(), 0);
  EXPECT_FALSE(std::filesystem::exists(Path("solution.lock")));
  ASSERT_EQ(Go({.out = Path("out"), .lock = LockMode::kWrite}), 0) << err_;
  EXPECT_THAT(Read(Path("solution.lock")), HasSubstr("1 long price"));

  std::string changed = kShop;
  changed.replace(changed.find("type='long'"), 11, "type='string'");
  Write("solution.xml", changed);
  EXPECT_EQ(GoToOut(), 1);
  EXPECT_THAT(err_, HasSubstr("was long and is string now"));
  EXPECT_EQ(Go({.out = Path("out"), .lock = LockMode::kIgnore}), 0);
}

TEST_F(GenerateTest, FrozenBuildsChangeNoLock) {
  Write("solution.xml", kShop);
  EXPECT_EQ(Go({.lock = LockMode::kFrozen}), 1);
  EXPECT_THAT(err_, HasSubstr("there is no lock file"));
  ASSERT_EQ(Go({.lock = LockMode::kWrite}), 0);
  EXPECT_EQ(Go({.lock = LockMode::kFrozen}), 0) << err_;
  std::string changed = kShop;
  changed.replace(changed.find("<variable"), 9,
                  "<variable id='2' name='more' type='int'/><variable");
  Write("solution.xml", changed);
  EXPECT_EQ(Go({.lock = LockMode::kFrozen}), 1);
  EXPECT_THAT(err_, HasSubstr("the lock file does not fit the schema"));
}

TEST_F(GenerateTest, WritesAnXsdThatIsXml) {
  ASSERT_EQ(Go({.solutions = {}, .xsd = "-"}), 2);  // The fixture's solution is not there.
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(Generate({.xsd = Path("s.xsd")}, out, err), 0) << err.str();
  xml::Diagnostics diagnostics;
  const auto document = xml::Document::ParseFile(Path("s.xsd"), diagnostics);
  ASSERT_TRUE(document.has_value()) << diagnostics.Format();
  EXPECT_THAT(Read(Path("s.xsd")), HasSubstr("<xs:attribute name=\"ModuleIdAllowRanges\""));
}

TEST_F(GenerateTest, StartsNewProjectsAndNeverOverwrites) {
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(NewProject({.name = "shop", .directory = Path("shop")}, out, err), 0) << err.str();
  for (const char* name : {"solution.xml", "CMakeLists.txt", "main.cc", "zeze.xml", "README.md"}) {
    EXPECT_TRUE(std::filesystem::exists(Path(std::string("shop/") + name))) << name;
  }
  EXPECT_EQ(Go({.solutions = {Path("shop/solution.xml")}, .out = Path("out"), .strict = true}), 0)
      << err_;
  EXPECT_EQ(err_, "");

  EXPECT_EQ(NewProject({.name = "shop", .directory = Path("shop")}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("is there already and not empty"));
  EXPECT_EQ(NewProject({.name = "my-shop", .directory = Path("x")}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("'my-shop' cannot be the name of a project"));
  EXPECT_EQ(NewProject({.name = "class", .directory = Path("x")}, out, err), 2);
}

}  // namespace
}  // namespace zeze::gen
