#include "zeze/xml/diagnostics.h"

#include <vector>

#include <gtest/gtest.h>

namespace zeze::xml {
namespace {

TEST(Diagnostics, PrintsLikeACompiler) {
  Diagnostics diagnostics;

  diagnostics.Error({"a.xml", 3, 7}, "no such type 'itn'", "did you mean 'int'?");
  diagnostics.Warning({"a.xml", 0, 0}, "odd file");

  EXPECT_EQ(diagnostics.Format(),
            "a.xml:3:7: error: no such type 'itn'\n"
            "  hint: did you mean 'int'?\n"
            "a.xml: warning: odd file\n"
            "1 error, 1 warning.\n");
}

TEST(Diagnostics, LeavesOutWhatIsBelowTheAskedSeverity) {
  Diagnostics diagnostics;
  diagnostics.Note({}, "by the way");
  EXPECT_EQ(diagnostics.Format(Severity::kWarning), "");
  EXPECT_EQ(diagnostics.Format(), "note: by the way\n");
}

TEST(Diagnostics, TurnsWarningsIntoErrorsWhenStrict) {
  Diagnostics diagnostics(true);
  diagnostics.Warning({}, "hm");
  EXPECT_TRUE(diagnostics.has_errors());
  EXPECT_EQ(diagnostics.warning_count(), 0U);
}

TEST(Diagnostics, NotesOnlyOnce) {
  Diagnostics diagnostics;
  diagnostics.NoteOnce({"a", 1, 1}, "no meaning");
  diagnostics.NoteOnce({"a", 2, 1}, "no meaning");
  EXPECT_EQ(diagnostics.all().size(), 1U);
}

TEST(Diagnostics, SortsByPlace) {
  Diagnostics diagnostics;
  diagnostics.Error({"b", 1, 1}, "3");
  diagnostics.Error({"a", 10, 1}, "2");
  diagnostics.Error({"a", 9, 1}, "1");
  diagnostics.SortByLocation();
  EXPECT_EQ(diagnostics.all()[0].message, "1");
  EXPECT_EQ(diagnostics.all()[2].message, "3");
}

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("name", "Name"), 0U);
  EXPECT_EQ(EditDistance("name", "nmae"), 1U);
  EXPECT_EQ(EditDistance("name", "names"), 1U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("abcdefgh", "", 3), 4U);
  EXPECT_EQ(EditDistance("aaaaaaaa", "bbbbbbbb", 3), 4U);
}

TEST(Nearest, FindsWhatWasMeantAndRefusesToGuessWildly) {
  const std::vector<std::string_view> names = {"memory", "version", "name"};
  EXPECT_EQ(Nearest("memroy", names), "memory");
  EXPECT_EQ(Nearest("Versoin", names), "version");
  EXPECT_EQ(Nearest("checkpoint", names), "");
  EXPECT_EQ(DidYouMean("nam", names), "did you mean 'name'?");
  EXPECT_EQ(DidYouMean("zzz", names), "");
}

}  // namespace
}  // namespace zeze::xml
