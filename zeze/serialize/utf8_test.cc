#include "zeze/serialize/utf8.h"

#include <gtest/gtest.h>

namespace zeze {
namespace {

constexpr const char* kMark = "\uFFFD";

// The text with R for each replacement.
std::string Repaired(std::string_view text) {
  std::string repaired = RepairUtf8(text);
  for (std::size_t at = repaired.find(kMark); at != repaired.npos; at = repaired.find(kMark)) {
    repaired.replace(at, 3, "R");
  }
  return repaired;
}

TEST(Utf8, LeavesWellFormedTextAlone) {
  for (const char* text :
       {"", "plain", "\u00e9\u07ff\u0800\uffff", "x\U0001F600y", "\U0010FFFF", "\ud7ff\ue000"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(RepairUtf8(text), text);
  }
  EXPECT_TRUE(IsUtf8(std::string_view("a\0b", 3)));
}

TEST(Utf8, FindsEveryKindOfMalformedText) {
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe4\xb8", "\xf0\x9f\x98", "\xc3"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
    EXPECT_TRUE(IsUtf8(RepairUtf8(text))) << text;
  }
}

TEST(Utf8, ReplacesTheSamePartsAsJava) {
  EXPECT_EQ(Repaired("\xff"
                     "A"
                     "\x80"),
            "RAR");
  EXPECT_EQ(Repaired("\xed\xa0\x80"), "R");  // A surrogate as a whole.
  EXPECT_EQ(Repaired("\xed\xa0"
                     "A"),
            "RA");                             // The start of one.
  EXPECT_EQ(Repaired("\xe0\x80\x80"), "RRR");  // Over-long: no valid start.
  EXPECT_EQ(Repaired("\xe4\xb8"
                     "A"),
            "RA");  // Cut short.
  EXPECT_EQ(Repaired("\xf0\x9f\x98"
                     "A"),
            "RA");
  EXPECT_EQ(Repaired("\xf0\x9f\x98"), "R");
  EXPECT_EQ(Repaired("\xf4\x90\x80\x80"), "RRRR");  // Above U+10FFFF.
}

}  // namespace
}  // namespace zeze
