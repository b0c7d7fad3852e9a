// What confuses users of the older generator, and what happens here instead. One test for each weak
// point; configuration (the tenth) is tested where configuration is read.

#include <sstream>
#include <string>

#include "tools/gen/checker.h"
#include "tools/gen/generate.h"
#include "tools/gen/model.h"
#include "tools/gen/reader.h"
#include "tools/gen/testing/schema_fixture.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ImprovementsTest : public SchemaFixture {
 protected:
  std::string Go(const GenerateOptions& options) {
    std::ostringstream out;
    std::ostringstream err;
    code_ = Generate(options, out, err);
    return Plain(out.str() + err.str());
  }
  int code_ = 0;
};

TEST_F(ImprovementsTest, TypingErrorsAreTold) {
  const std::string said = InModule(
      "<bean name='BA'/><beankey name='BK' kind='rocks'/>\n"
      "<table name='t' key='int' value='BA' memroy='true' CheckpointWhenCommit='true'/>");
  EXPECT_THAT(said, HasSubstr("s.xml:3:38: warning: unknown attribute 'memroy' of <table>\n"
                              "  hint: did you mean 'memory'?"));
  EXPECT_THAT(said, HasSubstr("attribute 'CheckpointWhenCommit' of <table> has no effect: it is a "
                              "run-time setting"));
  EXPECT_THAT(said, HasSubstr("attribute 'kind' of <beankey> has no effect"));
}

TEST_F(ImprovementsTest, EveryErrorHasItsPlaceAndAWayOut) {
  Diagnostics diagnostics;
  Model model;
  ReadModel({Write("s.xml",
                   "<solution name='demo' ModuleIdAllowRanges='1'><module name='M' id='2'>"
                   "<bean name='B'><variable id='1' name='a' type='list[list[int]]'/></bean>"
                   "<rpc name='R' argument='Nothing'/></module></solution>")},
            diagnostics, model);
  CheckModel(model, diagnostics);
  EXPECT_EQ(diagnostics.error_count(), 4U);
  for (const xml::Diagnostic& diagnostic : diagnostics.all()) {
    EXPECT_GT(diagnostic.location.line, 0) << diagnostic.ToString();
    EXPECT_GT(diagnostic.location.column, 0) << diagnostic.ToString();
  }
}

TEST_F(ImprovementsTest, IdentitiesAreLockedAndRenamesNoticed) {
  const auto schema = [&](const std::string& table) {
    return Write("solution.xml",
                 "<solution name='demo' ModuleIdAllowRanges='1'><module name='M' id='1'>"
                 "<bean name='BA'/>" +
                     table + "</module></solution>");
  };
  const std::string file = schema("<table name='tOld' key='int' value='BA'/>");
  Go({.solutions = {file}, .lock = LockMode::kWrite});
  ASSERT_EQ(code_, 0);
  schema("<table name='tNew' key='int' value='BA'/>");
  EXPECT_THAT(Go({.solutions = {file}, .strict = true}), HasSubstr("add formerName=\"tOld\""));
  EXPECT_EQ(code_, 1);
  schema("<table name='tNew' key='int' value='BA' formerName='tOld'/>");
  EXPECT_THAT(Go({.solutions = {file}, .explain = "", .strict = true}), Not(HasSubstr("error")));
  EXPECT_EQ(code_, 0);
}

TEST_F(ImprovementsTest, AllNamesOfATableAreShownSideBySide) {
  const std::string said = Go(
      {.solutions = {Write("s.xml",
                           "<solution name='demo' ModuleIdAllowRanges='1'><module name='M' id='1'>"
                           "<bean name='BA'/><table name='t' key='int' value='BA' "
                           "suffix='@ServerId'/></module><project name='p' platform='cxx'>"
                           "<module ref='M'/></project></solution>")},
       .explain = "p"});
  EXPECT_THAT(said, AllOf(HasSubstr("table demo.M.t: int -> demo.M.BA, id "),
                          HasSubstr("stored as demo_M_t + @ServerId")));
}

TEST_F(ImprovementsTest, WiringIsExplainedAndDoubleClaimsAreErrors) {
  const std::string said =
      Go({.solutions = {Write("s.xml",
                              "<solution name='demo' ModuleIdAllowRanges='1'>"
                              "<module name='M' id='1' handle='server'><rpc name='Buy'/>"
                              "<protocol name='Tell' handle='client'/></module>"
                              "<project name='p' platform='cxx'><service name='S' handle='server'>"
                              "<module ref='M'/></service></project></solution>")},
          .explain = "p"});
  EXPECT_THAT(said, HasSubstr("rpc Buy: sent by client, handled here by ProcessBuy, serializable "
                              "transaction, Normal pool"));
  EXPECT_THAT(said, HasSubstr("protocol Tell: sent by server, not handled here"));
  EXPECT_THAT(Go({.solutions = {Path("s.xml")}, .explain = "q"}),
              HasSubstr("there is no project 'q' to explain\n  hint: did you mean 'p'?"));
  // The double claim itself: CheckerTest.RefusesAModuleThatTwoServicesClaim.
}

TEST_F(ImprovementsTest, NamesAreLookedForOutward) {
  EXPECT_EQ(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'>"
                     "<bean name='BTop'/>"
                     "<module name='A' id='1'><bean name='BA'/>"
                     "<module name='Sub' id='2'><bean name='BSub'>"
                     "<variable id='1' name='a' type='BA'/>"
                     "<variable id='2' name='b' type='BTop'/>"
                     "<variable id='3' name='c' type='list[B.BB]'/>"
                     "<variable id='4' name='d' type='demo.B.BB'/></bean></module></module>"
                     "<module name='B' id='3'><bean name='BB'/></module></solution>"),
            "");
  EXPECT_THAT(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'>"
                       "<bean name='BX'/>"
                       "<module name='A' id='1'><bean name='BX'/><module name='Sub' id='2'>"
                       "<bean name='BSub'><variable id='1' name='a' type='list[BX]'/></bean>"
                       "</module></module></solution>"),
              HasSubstr("type 'BX' is ambiguous: it could be demo.A.BX or demo.BX\n"
                        "  hint: write the full name"));
}

TEST_F(ImprovementsTest, DefaultsAreLiteralsAndTheCommentSaysWhatAbsentMeans) {
  Go({.solutions = {Write(
          "s.xml",
          "<solution name='demo' ModuleIdAllowRanges='1'><module name='M' id='1'>"
          "<bean name='BA'><variable id='1' name='a' type='string' default='it\"s'/>"
          "</bean></module></solution>")},
      .out = Path("out")});
  ASSERT_EQ(code_, 0);
  EXPECT_THAT(
      Read(Path("out/demo/M.h")),
      AllOf(HasSubstr("// Starts as \"it\\\"s\"; absent in stored or sent bytes means zero."),
            HasSubstr(".zero_when_absent = true")));
}

TEST_F(ImprovementsTest, DispatchIsSaidInTheSchema) {
  EXPECT_EQ(Diagnose("<solution name='demo' ModuleIdAllowRanges='1'>"
                     "<module name='M' id='1' handle='server' DispatchMode='Critical' Timeout='2s'>"
                     "<rpc name='A'/><rpc name='B' DispatchMode='Normal' OneByOne='true'/>"
                     "</module></solution>"),
            "");
  const auto& protocols = model_.AllModules()[0]->protocols;
  EXPECT_EQ(protocols[0]->dispatch_mode, "Critical");
  EXPECT_EQ(protocols[0]->timeout_ms, 2000);
  EXPECT_EQ(protocols[1]->dispatch_mode, "Normal");
  EXPECT_TRUE(protocols[1]->one_by_one);
}

TEST_F(ImprovementsTest, FilesOfTheUserAreNeverEdited) {
  const std::string file =
      Write("s.xml",
            "<solution name='demo' ModuleIdAllowRanges='1'>"
            "<module name='M' id='1' handle='server'><rpc name='A'/></module></solution>");
  Go({.solutions = {file}, .out = Path("out"), .skeleton = Path("src")});
  ASSERT_EQ(code_, 0);
  const std::string before = Read(Path("src/ModuleM.h"));
  Write("s.xml",
        "<solution name='demo' ModuleIdAllowRanges='1'><module name='M' id='1' handle='server'>"
        "<rpc name='A'/><rpc name='New'/></module></solution>");
  Go({.solutions = {file}, .out = Path("out"), .skeleton = Path("src")});
  EXPECT_EQ(Read(Path("src/ModuleM.h")), before);
  // The new handler is there all the same, answers NotImplement, and is listed as missing.
  EXPECT_THAT(Read(Path("out/demo/M.module.h")),
              AllOf(HasSubstr("virtual std::int64_t ProcessNew("),
                    HasSubstr("missing.emplace_back(\"ProcessNew\")")));
}

TEST_F(ImprovementsTest, WhatHasNoMeaningInCxxIsNotedOnce) {
  const std::string said = InModule(
      "<bean name='BA' UseData='true'><variable id='1' name='a' type='list[int]' "
      "javaType='IntList'/></bean>\n<bean name='BB' UseData='only'/>");
  EXPECT_THAT(said, HasSubstr("s.xml:2:17: note: 'UseData' of <bean> has no meaning in C++"));
  EXPECT_THAT(said, HasSubstr("note: 'javaType' of <variable> has no meaning in C++"));
  EXPECT_THAT(said, Not(HasSubstr("s.xml:3:")));
}

}  // namespace
}  // namespace zeze::gen
