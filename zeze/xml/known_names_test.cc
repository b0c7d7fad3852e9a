#include "zeze/xml/known_names.h"

#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::xml {
namespace {

using ::testing::HasSubstr;

KnownNames Names() {
  return KnownNames()
      .Add({.kind = "table", .attributes = {"name", "memory"}, .unknown_child_is_error = false})
      .Add({.kind = "solution", .attributes = {"name"}, .children = {"table", "module"}})
      .Add({.kind = "free", .any_content = true})
      .AddDead("table", "CheckpointWhenCommit", "it is a setting of TableConf")
      .AddDead("*", "validator", "nothing has ever read it");
}

std::string Check(std::string_view text) {
  Diagnostics diagnostics;
  const auto document = Document::ParseText(text, "s.xml", diagnostics);
  EXPECT_TRUE(document.has_value()) << diagnostics.Format();
  if (document) Names().Check(document->root(), diagnostics);
  return diagnostics.Format();
}

TEST(KnownNames, AcceptsWhatIsKnown) {
  EXPECT_EQ(Check(R"(<solution name="a"><table/></solution>)"), "");
}

TEST(KnownNames, WarnsOfUnknownAttributesWithTheirPlace) {
  EXPECT_EQ(Check("<table name='t'\n  memroy='true'/>"),
            "s.xml:2:3: warning: unknown attribute 'memroy' of <table>\n"
            "  hint: did you mean 'memory'?\n"
            "1 warning.\n");
}

TEST(KnownNames, ExplainsDeadNames) {
  EXPECT_THAT(Check("<table CheckpointWhenCommit='true'/>"),
              HasSubstr("has no effect: it is a setting of TableConf"));
  EXPECT_THAT(Check("<solution validator='x'/>"), HasSubstr("nothing has ever read it"));
}

TEST(KnownNames, RefusesUnknownChildrenWhereTheLanguageIsClosed) {
  EXPECT_THAT(Check("<solution><tabel/></solution>"),
              HasSubstr("s.xml:1:11: error: unknown element <tabel> in <solution>\n"
                        "  hint: did you mean 'table'?"));
  EXPECT_THAT(Check("<table><x/></table>"), HasSubstr("warning: unknown element <x>"));
}

TEST(KnownNames, IgnoresNamespacesAndFreeContent) {
  EXPECT_EQ(Check("<solution xmlns='a' xmlns:xi='b' xi:type='c'/>"), "");
  EXPECT_EQ(Check("<free a='1'><b/></free>"), "");
}

}  // namespace
}  // namespace zeze::xml
