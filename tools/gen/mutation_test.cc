// Whatever is done to a schema, the generator answers with diagnostics or with files, never with a
// crash.

#include <cstddef>
#include <random>
#include <string>
#include <utility>

#include "tools/gen/checker.h"
#include "tools/gen/emitter.h"
#include "tools/gen/lock_file.h"
#include "tools/gen/model.h"
#include "tools/gen/plan.h"
#include "tools/gen/reader.h"
#include "tools/gen/reports.h"
#include "tools/gen/testing/schema_fixture.h"

namespace zeze::gen {
namespace {

constexpr const char* kSchema = R"(<solution name="demo" ModuleIdAllowRanges="1-9,20">
<bean name="BTop"><variable id="1" name="note" type="string" default="x"/></bean>
<module name="A" id="1" handle="server" DefaultTransactionLevel="None">
  <enum name="eOne" value="1 + 2" group="Kind"/> one
  <bean name="BA" version="v" keepUnknownFields="true"> text
    <enum name="Red" value="A.eOne" type="long"/>
    <variable id="1" name="v" type="long"/>
    <variable id="2" name="class" type="list[BB]" comment="c"/>
    <variable id="3" name="m" type="map" key="BKey" value="dynamic:BTop"/>
    <variable id="4" name="g" type="gtable[int,string,BTop]"/>
    <variable id="5" name="d" type="dynamic">
      <value bean="BB:1"/><value bean="demo.BTop:2"/></variable>
  </bean>
  <bean name="BB" base="BTop"><variable id="15" name="p" type="vector2" default="1,2"/></bean>
  <beankey name="BKey"><variable id="1" name="k" type="int"/></beankey>
  <table name="tA" key="BKey" value="BA" suffix="@ServerId" version="2" memory="false"/>
  <table name="tB" key="long" value="BB" autokey="true" formerName="tOld" gen="x"/>
  <rpc name="R" argument="BA" result="BB" Timeout="5s"><enum name="eNo" value="4"/></rpc>
  <protocol name="P" argument="BKey" handle="server,client" CriticalLevel="Normal"/>
  <module name="Sub" id="2"><protocolref ref="demo.A.P"/><servlet name="s"/></module>
</module>
<project name="p" platform="cxx" GenTables="x,">
  <service name="S" handle="server"><module ref="A"/></service>
  <ModuleStartOrder><start module="A.Sub"/></ModuleStartOrder>
</project>
</solution>)";

class MutationTest : public SchemaFixture {
 protected:
  // Runs everything; true if the schema was accepted.
  bool RunAll(const std::string& text) {
    Diagnostics diagnostics;
    Model model;
    ReadModel({Write("s.xml", text)}, diagnostics, model);
    CheckModel(model, diagnostics);
    Explain(model, "*", diagnostics);
    const Plan plan = MakePlan(model, "", Language::kCxx, diagnostics);
    if (diagnostics.has_errors()) {
      EXPECT_FALSE(diagnostics.Format().empty());
      return false;
    }
    const std::string locked = LockFile::Of(model).Format();
    Diagnostics lock_diagnostics;
    EXPECT_EQ(
        LockFile::Parse(locked, "l", lock_diagnostics).Advance(model, lock_diagnostics).Format(),
        locked);
    EXPECT_EQ(lock_diagnostics.Format(), "");
    EXPECT_FALSE(Emit(plan, {.shards = 2}).empty());
    // Changes may leave no beans and no protocols; then, and only then, there is nothing to write.
    EXPECT_EQ(EmitTypeScript(plan, "zeze-client").empty(), plan.units.empty());
    return true;
  }
};

TEST_F(MutationTest, AcceptsTheOriginal) {
  EXPECT_TRUE(RunAll(kSchema)) << Diagnose(kSchema);
}

TEST_F(MutationTest, SurvivesChangedBytesAndSwappedPieces) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string original = kSchema;
  int accepted = 0;
  for (int round = 0; round < 200; ++round) {
    std::string text = original;
    const auto pick = [&](std::size_t size) { return random() % size; };
    for (std::size_t change = pick(4) + 1; change > 0; --change) {
      // A word of the schema in the place of another word: most results are well-formed XML.
      const auto word = [&] {
        const std::size_t quote = text.find('"', pick(text.size()));
        const std::size_t end = quote == std::string::npos ? quote : text.find('"', quote + 1);
        return end == std::string::npos ? std::pair<std::size_t, std::size_t>(0, 0)
                                        : std::pair(quote + 1, end - quote - 1);
      };
      const auto from = word();
      const auto to = word();
      switch (pick(4)) {
        case 0:
          text[pick(text.size())] = static_cast<char>(random());
          break;
        case 1:
          text.erase(to.first, to.second);
          break;
        case 2: {
          const std::size_t line = text.find('\n', pick(text.size()));
          const std::size_t next = line == std::string::npos ? line : text.find('\n', line + 1);
          if (next != std::string::npos) text.erase(line, next - line);
          break;
        }
        default:
          text.replace(to.first, to.second, text.substr(from.first, from.second));
          break;
      }
    }
    if (RunAll(text)) ++accepted;
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace zeze::gen
