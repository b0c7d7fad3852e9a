#include "zeze/xml/document.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/xml/diagnostics.h"

namespace zeze::xml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorsOf(std::string_view text, const ParseOptions& options = {}) {
  Diagnostics diagnostics;
  const auto document = Document::ParseText(text, "t.xml", diagnostics, options);
  EXPECT_EQ(document.has_value(), !diagnostics.has_errors());
  return diagnostics.Format();
}

Document MustParse(std::string_view text) {
  Diagnostics diagnostics;
  auto document = Document::ParseText(text, "t.xml", diagnostics);
  EXPECT_TRUE(document.has_value()) << diagnostics.Format();
  return std::move(*document);
}

TEST(Document, GivesEveryPartItsPlace) {
  const Document document = MustParse(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<a x='1'\n"
      "   long='2'>\n"
      "  text\n"
      "  <b/><!-- note --><![CDATA[raw & <]]>\n"
      "</a>\n");

  const Element& root = document.root();
  EXPECT_EQ(root.location(), (Location{"t.xml", 2, 1}));
  EXPECT_EQ(root.LocationOf("long"), (Location{"t.xml", 3, 4}));
  EXPECT_EQ(root.LocationOf("none"), root.location());
  ASSERT_EQ(root.children().size(), 1U);
  EXPECT_EQ(root.children()[0]->location(), (Location{"t.xml", 5, 3}));
  EXPECT_EQ(root.children()[0]->parent(), &root);
  ASSERT_EQ(root.nodes().size(), 4U);
  EXPECT_EQ(root.nodes()[root.children()[0]->index_in_parent()].element.get(), root.children()[0]);
  EXPECT_THAT(root.nodes()[0].text, HasSubstr("text"));
  EXPECT_EQ(root.nodes()[2].kind, NodeKind::kComment);
  EXPECT_EQ(root.nodes()[2].text, " note ");
  EXPECT_EQ(root.nodes()[3].text, "raw & <");
}

TEST(Document, GivesAttributes) {
  const Document document = MustParse("<a name='x &amp; &#65;' Empty=''/>");
  EXPECT_EQ(document.root().GetAttribute("name"), "x & A");
  EXPECT_EQ(document.root().GetAttribute("Empty", "other"), "");
  EXPECT_EQ(document.root().GetAttribute("missing", "other"), "other");
  EXPECT_FALSE(document.root().HasAttribute("NAME"));
  EXPECT_NE(document.root().FindAttributeIgnoreCase("NAME"), nullptr);
  EXPECT_NE(document.root().FindAttributeIgnoreCase("empty"), nullptr);
  EXPECT_EQ(document.root().FindAttributeIgnoreCase("nothing"), nullptr);
}

TEST(Document, AcceptsAByteOrderMark) {
  EXPECT_EQ(ErrorsOf("\xEF\xBB\xBF<a/>"), "");
}

TEST(Document, NamesTheElementThatIsNotClosed) {
  EXPECT_THAT(ErrorsOf("<a>\n  <b>\n</a>\n"),
              HasSubstr("error: <b> is not closed here: it was opened at line 2\n"
                        "  hint: add </b>"));
  EXPECT_THAT(ErrorsOf("<a>\n<b x='>'/>\n<!-- <c> -->"), HasSubstr("<a> is not closed here"));
}

TEST(Document, RefusesMalformedText) {
  EXPECT_THAT(ErrorsOf(""), HasSubstr("there is no element in this file"));
  EXPECT_THAT(ErrorsOf("<a x=1/>"), HasSubstr("t.xml:1:"));
  EXPECT_THAT(ErrorsOf("<a><!-- </a>"), HasSubstr("comment without its end"));
  EXPECT_THAT(ErrorsOf("<a/><b/>"), HasSubstr("second root element <b>"));
  EXPECT_THAT(ErrorsOf("<a x='1' x='2'/>"), HasSubstr("attribute 'x' is given twice"));
}

TEST(Document, RefusesDoctypesAndUnknownEntities) {
  EXPECT_THAT(ErrorsOf("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
              HasSubstr("document type declarations are not accepted"));
  EXPECT_THAT(ErrorsOf("<a>\n x &bomb; y</a>"), HasSubstr("t.xml:2:4: error: '&' does not start"));
  EXPECT_THAT(ErrorsOf("<a x='Tom & Jerry'/>"), HasSubstr("write &amp;"));
}

TEST(Document, RefusesOtherEncodings) {
  EXPECT_THAT(ErrorsOf("<?xml version='1.0' encoding='gb2312'?><a/>"),
              HasSubstr("encoding 'gb2312' is not supported"));
  EXPECT_THAT(ErrorsOf("\xFF\xFE<"), HasSubstr("the file is UTF-16"));
  EXPECT_THAT(ErrorsOf("<a>\n\xC0\xAF</a>"), HasSubstr("t.xml:2:1: error: byte 0xC0 is not UTF-8"));
  EXPECT_THAT(ErrorsOf(std::string_view("<a\0/>", 5)), HasSubstr("byte 0x00"));
  EXPECT_EQ(ErrorsOf("<a>\xE4\xB8\xAD\xF0\x9F\x98\x80</a>"), "");
}

TEST(Document, BoundsDepthSizeAndCount) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (int i = 0; i < 100'000; ++i) deep += "</a>";
  EXPECT_THAT(ErrorsOf(deep), HasSubstr("nested more than 64 deep"));

  std::string wide = "<r>";
  for (int i = 0; i < 50; ++i) wide += "<a/>";
  EXPECT_THAT(ErrorsOf(wide + "</r>", {.elements_max = 20}), HasSubstr("more than 20 elements"));
  EXPECT_THAT(ErrorsOf("<a></a>", {.bytes_max = 3}), HasSubstr("more than the limit of 3"));
}

class IncludeTest : public ::testing::Test {
 protected:
  IncludeTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("zeze_xml_" +
                 std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "sub");
  }
  ~IncludeTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& inside) const {
    std::ofstream(folder_ / name) << "<root xmlns:xi='http://www.w3.org/2001/XInclude'>" << inside
                                  << "</root>";
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
  Diagnostics diagnostics_;
};

TEST_F(IncludeTest, PutsTheIncludedRootInPlaceWithItsOwnFileName) {
  Write("a.xml", "<before/><xi:include href='sub/b.xml'/><after/>");
  Write("sub/b.xml", "<xi:include href='c.xml'/>");
  Write("sub/c.xml", "<leaf/>");

  const auto document = Document::ParseFile(Path("a.xml"), diagnostics_);

  ASSERT_TRUE(document.has_value()) << diagnostics_.Format();
  ASSERT_EQ(document->root().children().size(), 3U);
  const Element* included = document->root().children()[1];
  EXPECT_EQ(included->name(), "root");
  EXPECT_EQ(included->file(), Path("sub/b.xml"));
  EXPECT_EQ(included->parent(), &document->root());
  EXPECT_EQ(included->children()[0]->children()[0]->name(), "leaf");
  EXPECT_THAT(document->files(), ElementsAre(Path("a.xml"), Path("sub/b.xml"), Path("sub/c.xml")));
}

TEST_F(IncludeTest, RefusesCircles) {
  Write("a.xml", "<xi:include href='sub/b.xml'/>");
  Write("sub/b.xml", "<xi:include href='../a.xml'/>");
  EXPECT_FALSE(Document::ParseFile(Path("a.xml"), diagnostics_).has_value());
  EXPECT_THAT(diagnostics_.Format(), HasSubstr("includes itself"));
}

TEST_F(IncludeTest, BoundsWhatIncludesExpandTo) {
  Write("z.xml", "<x/><x/><x/><x/><x/><x/><x/><x/><x/><x/>");
  for (char name = 'y'; name >= 'q'; --name) {
    std::string inside;
    for (int i = 0; i < 10; ++i) {
      inside += std::string("<xi:include href='") + static_cast<char>(name + 1) + ".xml'/>";
    }
    Write(std::string(1, name) + ".xml", inside);
  }
  EXPECT_FALSE(
      Document::ParseFile(Path("q.xml"), diagnostics_, {.elements_max = 5'000}).has_value());
  EXPECT_THAT(diagnostics_.Format(), HasSubstr("more than 5000 elements"));
}

TEST_F(IncludeTest, SaysWhereAMissingFileWasAskedFor) {
  Write("a.xml", "\n  <xi:include href='gone.xml'/>");
  EXPECT_FALSE(Document::ParseFile(Path("a.xml"), diagnostics_).has_value());
  EXPECT_THAT(diagnostics_.Format(), HasSubstr("a.xml:2:3: error: included file"));
}

TEST_F(IncludeTest, UsesTheFallbackOfAMissingFile) {
  Write("a.xml", "<xi:include href='gone.xml'><xi:fallback><other/></xi:fallback></xi:include>");
  const auto document = Document::ParseFile(Path("a.xml"), diagnostics_);
  ASSERT_TRUE(document.has_value()) << diagnostics_.Format();
  EXPECT_EQ(document->root().children()[0]->name(), "other");
}

TEST_F(IncludeTest, LeavesElementsOfOtherNamespacesAlone) {
  std::ofstream(folder_ / "a.xml") << "<root xmlns:xi='urn:other'><xi:include/><include/></root>";
  const auto document = Document::ParseFile(Path("a.xml"), diagnostics_);
  ASSERT_TRUE(document.has_value()) << diagnostics_.Format();
  EXPECT_EQ(document->root().children().size(), 2U);
}

TEST_F(IncludeTest, NamesAMissingFile) {
  EXPECT_FALSE(Document::ParseFile(Path("none.xml"), diagnostics_).has_value());
  EXPECT_THAT(diagnostics_.Format(), HasSubstr("there is no such file"));
  EXPECT_FALSE(Document::ParseFile(Path("sub"), diagnostics_).has_value());
  EXPECT_THAT(diagnostics_.Format(), HasSubstr("it is not a file"));
}

}  // namespace
}  // namespace zeze::xml
