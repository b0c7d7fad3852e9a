#include "tools/gen/comments.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::gen {
namespace {

xml::Document Parse(std::string_view text) {
  xml::Diagnostics diagnostics;
  auto document = xml::Document::ParseText(text, "c.xml", diagnostics);
  EXPECT_TRUE(document.has_value()) << diagnostics.Format();
  return std::move(*document);
}

std::string Of(std::string_view text, std::size_t index = 0) {
  const xml::Document document = Parse(text);
  return CommentOf(*document.root().children()[index]);
}

std::string TrailingOf(std::string_view text, std::size_t index = 0) {
  const xml::Document document = Parse(text);
  return TrailingCommentOf(*document.root().children()[index]);
}

TEST(Comments, TheAttributeComesFirst) {
  EXPECT_EQ(Of("<r><bean comment='said'> inside </bean></r>"), "said");
  EXPECT_EQ(TrailingOf("<r><variable comment='said'/> behind</r>"), "said");
  EXPECT_EQ(TrailingOf("<r><enum description='said'/></r>"), "said");
}

TEST(Comments, ThenTheTextInside) {
  EXPECT_EQ(Of("<r><bean>\n  a role\n  more\n <variable/></bean></r>"), "a role");
  EXPECT_EQ(Of("<r><bean><variable/> about the variable</bean></r>"), "");
}

TEST(Comments, ThenTheRestOfTheLine) {
  EXPECT_EQ(Of("<r>\n<table/> // the roles\n next\n</r>"), "the roles");
  EXPECT_EQ(Of("<r>\n<table/>\n about the next one\n<table/></r>", 0), "");
}

TEST(Comments, ThenWhatStandsBefore) {
  EXPECT_EQ(Of("<r>\n<!-- the roles -->\n<table/></r>"), "the roles");
  EXPECT_EQ(Of("<r><table/>\n about the next one\n<table/></r>", 1), "about the next one");
  EXPECT_EQ(Of("<r>\n<table/> <!-- about the first -->\n<bean><x/></bean></r>", 1), "");
}

TEST(Comments, OfVariablesTheTextBehindThemInOneLine) {
  EXPECT_EQ(TrailingOf("<r><variable/> the level\n of it\n<variable/></r>"), "the level of it");
  EXPECT_EQ(TrailingOf("<r>\n<variable/> <!-- the level -->\n<variable/></r>", 0), "the level");
  EXPECT_EQ(TrailingOf("<r>\n<variable/> <!-- the level -->\n<variable/></r>", 1), "");
  EXPECT_EQ(TrailingOf("<r>\n<!-- above -->\n<variable/>\n</r>"), "above");
}

}  // namespace
}  // namespace zeze::gen
