#include "tools/gen/literal.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tools/gen/model.h"

namespace zeze::gen {
namespace {

std::optional<std::int64_t> Constants(const std::string& name) {
  return name == "A.Two" ? std::optional<std::int64_t>(2) : std::nullopt;
}

std::string Cxx(TypeKind kind, std::string_view text) {
  const Literal literal = ParseLiteral(kind, text, Constants);
  return literal.error.empty() ? literal.cxx : "error: " + literal.error;
}

TEST(Literal, ReadsWholeNumbersAsOtherLanguagesWriteThem) {
  EXPECT_EQ(Cxx(TypeKind::kInt, "42"), "42");
  EXPECT_EQ(Cxx(TypeKind::kInt, " -1 "), "-1");
  EXPECT_EQ(Cxx(TypeKind::kLong, "1_000L"), "1000");
  EXPECT_EQ(Cxx(TypeKind::kInt, "0xFF"), "255");
  EXPECT_EQ(Cxx(TypeKind::kInt, "0b101"), "5");
  EXPECT_EQ(Cxx(TypeKind::kInt, "0"), "");
  EXPECT_EQ(Cxx(TypeKind::kLong, "-9223372036854775808"), "(-9223372036854775807 - 1)");
}

TEST(Literal, Calculates) {
  EXPECT_EQ(Cxx(TypeKind::kInt, "2 + 3 * 4"), "14");
  EXPECT_EQ(Cxx(TypeKind::kInt, "(2 + 3) * -4"), "-20");
  EXPECT_EQ(Cxx(TypeKind::kInt, "1 << 4 | 3"), "19");
  EXPECT_EQ(Cxx(TypeKind::kInt, "~0 & 0xF ^ 1"), "14");
  EXPECT_EQ(Cxx(TypeKind::kInt, "A.Two * 7 % 4"), "2");
  EXPECT_EQ(Cxx(TypeKind::kInt, "7 / 2 - 1"), "2");
}

TEST(Literal, RefusesWhatItCannotRepresent) {
  EXPECT_EQ(Cxx(TypeKind::kInt, "2147483648"),
            "error: 2147483648 is outside int (-2147483648 to 2147483647)");
  EXPECT_EQ(Cxx(TypeKind::kInt, "1 / 0"), "error: division by zero or out of range");
  EXPECT_EQ(Cxx(TypeKind::kInt, "1 << 64"), "error: a shift must be by 0 to 63");
  EXPECT_EQ(Cxx(TypeKind::kInt, "(1"), "error: ')' is missing");
  EXPECT_EQ(Cxx(TypeKind::kInt, "1 2"), "error: unexpected '2'");
  EXPECT_EQ(Cxx(TypeKind::kInt, ""), "error: a number is missing");
  EXPECT_EQ(Cxx(TypeKind::kInt, "new Random()"), "error: there is no constant 'new'");
  EXPECT_EQ(Cxx(TypeKind::kLong, "99999999999999999999"),
            "error: '99999999999999999999' is not a whole number of 64 bits");
  EXPECT_EQ(Cxx(TypeKind::kInt, std::string(100'000, '(')),
            "error: the expression is nested too deep");
  EXPECT_EQ(Cxx(TypeKind::kInt, std::string(100'000, '-')),
            "error: the expression is nested too deep");
}

TEST(Literal, ReadsFloatingPointNumbers) {
  EXPECT_EQ(Cxx(TypeKind::kFloat, "1"), "1.0F");
  EXPECT_EQ(Cxx(TypeKind::kFloat, "0.1f"), "0.1F");
  EXPECT_EQ(Cxx(TypeKind::kDouble, "1e3d"), "1000.0");
  EXPECT_EQ(Cxx(TypeKind::kDouble, "-0.0"), "");
  EXPECT_EQ(Cxx(TypeKind::kFloat, "1e39"), "error: 1e39 is outside float");
  EXPECT_EQ(Cxx(TypeKind::kDouble, "NaN"), "error: 'NaN' is not a number");
}

TEST(Literal, ReadsTheOtherTypes) {
  EXPECT_EQ(Cxx(TypeKind::kBool, "true"), "true");
  EXPECT_EQ(Cxx(TypeKind::kBool, "false"), "");
  EXPECT_EQ(Cxx(TypeKind::kString, "a\"b\\c\n"), R"("a\"b\\c\012")");
  EXPECT_EQ(Cxx(TypeKind::kDecimal, "-12.50e3"), R"({"-12.50e3"})");
  EXPECT_EQ(Cxx(TypeKind::kVector2, "1, 2.5"), "{1.0F, 2.5F}");
  EXPECT_EQ(Cxx(TypeKind::kVector3Int, "1,-2,3"), "{1, -2, 3}");
  EXPECT_EQ(Cxx(TypeKind::kVector2, "0,0"), "");
}

}  // namespace
}  // namespace zeze::gen
