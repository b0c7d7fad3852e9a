#include "zeze/base/text.h"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::int64_t Size(std::string_view text) {
  const auto size = ParseSize(text);
  EXPECT_TRUE(size.ok()) << size.error().message();
  return size.ok() ? size.value() : -999;
}

nanoseconds Duration(std::string_view text) {
  const auto duration = ParseDuration(text, milliseconds(1));
  EXPECT_TRUE(duration.ok()) << duration.error().message();
  return duration.ok() ? duration.value() : nanoseconds(-999);
}

TEST(Text, SizesHaveSuffixesFractionsAndSeparators) {
  EXPECT_EQ(Size("0"), 0);
  EXPECT_EQ(Size(" 20_000 "), 20'000);
  EXPECT_EQ(Size("1,234'567 890"), 1'234'567'890);
  EXPECT_EQ(Size("1k"), 1024);
  EXPECT_EQ(Size("2.5M"), 2'621'440);
  EXPECT_EQ(Size("64 kb"), 65'536);
  EXPECT_EQ(Size("1GiB"), std::int64_t{1} << 30);
  EXPECT_EQ(Size("1t"), std::int64_t{1} << 40);
  EXPECT_EQ(Size("7e"), std::int64_t{7} << 60);
  EXPECT_EQ(Size("-1"), -1);
  EXPECT_EQ(Size("Max"), INT64_MAX);
  EXPECT_EQ(Size("9223372036854775807"), INT64_MAX);
}

TEST(Text, WhatIsNotASizeIsRefused) {
  for (const char* text : {"", "k", "1x", "1kk", "1.2.3", "one", "1ki", "--1", "0x10"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
  EXPECT_THAT(ParseSize("8e").error().message(), HasSubstr("too large"));
  EXPECT_THAT(ParseSize("9223372036854775808").error().message(), HasSubstr("too large"));
  EXPECT_THAT(ParseSize("many").error().message(), HasSubstr("\"many\" is not a size"));
}

TEST(Text, DurationsHaveUnitsAndPlainNumbersKeepTheOldOne) {
  EXPECT_EQ(Duration("500"), milliseconds(500));
  EXPECT_EQ(Duration("8s"), seconds(8));
  EXPECT_EQ(Duration("8 s"), seconds(8));
  EXPECT_EQ(Duration("500MS"), milliseconds(500));
  EXPECT_EQ(Duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(Duration("1h30m"), minutes(90));
  EXPECT_EQ(Duration("2min"), minutes(2));
  EXPECT_EQ(Duration("7d"), std::chrono::hours(7 * 24));
  EXPECT_EQ(Duration("-1"), milliseconds(-1));
  EXPECT_EQ(ParseDuration("8", seconds(1)).value(), seconds(8));
}

TEST(Text, WhatIsNotADurationIsRefused) {
  for (const char* text : {"", "s", "8x", "1h30", "1.2.3s", "8sx", "300000d", "-"}) {
    EXPECT_FALSE(ParseDuration(text, milliseconds(1)).ok()) << text;
  }
  EXPECT_THAT(ParseDuration("soon", milliseconds(1)).error().message(), HasSubstr("500ms"));
}

TEST(Text, FormattedValuesParseToTheSame) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    EXPECT_EQ(Size(FormatSize(value)), value);
    EXPECT_EQ(Size(FormatSize(-value)), -value);
    EXPECT_EQ(Duration(FormatDuration(nanoseconds(value))), nanoseconds(value));
    EXPECT_EQ(Duration(FormatDuration(nanoseconds(-value))), nanoseconds(-value));
  }
  EXPECT_EQ(FormatDuration(seconds(90)), "1m30s");
  EXPECT_EQ(FormatDuration(nanoseconds(0)), "0s");
  EXPECT_EQ(FormatSize(65536), "64k");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatSize(INT64_MAX), "max");
}

TEST(Text, IntegersAreWholeAndInRange) {
  EXPECT_EQ(ParseInteger(" +12 ").value(), 12);
  EXPECT_EQ(ParseInteger("-9223372036854775808").value(), INT64_MIN);
  for (const char* text : {"", "1.5", "12a", "0x1", "9223372036854775808"}) {
    EXPECT_FALSE(ParseInteger(text).ok()) << text;
  }
  EXPECT_THAT(ParseInteger("16384", 0, 16383).error().message(),
              HasSubstr("outside the range from 0 to 16383"));
}

TEST(Text, NumbersAndBooleans) {
  EXPECT_DOUBLE_EQ(ParseNumber("5.0").value(), 5.0);
  EXPECT_FALSE(ParseNumber("nan").ok());
  EXPECT_FALSE(ParseNumber("5,0").ok());
  EXPECT_TRUE(ParseBool("True").value());
  EXPECT_FALSE(ParseBool("off").value());
  EXPECT_FALSE(ParseBool("maybe").ok());
}

TEST(Text, SplitsAndTrims) {
  EXPECT_THAT(Split(" a, b ,,c", ','), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Split("", ','), ElementsAre());
  EXPECT_EQ(Trim(" \t x y\n"), "x y");
  EXPECT_EQ(ToLower("ServerId"), "serverid");
}

}  // namespace
}  // namespace zeze
