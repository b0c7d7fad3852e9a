#include "zeze/bean/encoded_size.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "zeze/bean/codec.h"
#include "zeze/bean/inline_dynamic.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"

namespace zeze {
namespace {

using testing::BItem;
using testing::BRole;
using testing::One;
using testing::RandomRole;

template <typename T>
std::size_t SizeOf(const T& value) {
  return EncodedSize<One<T>>::Of(One<T>{value});
}

// Whatever is in it: never too low, and the change is the difference, however many edits lie
// between the two.
TEST(EncodedSize, IsNeverTooLowAndFollowsEveryEdit) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomRole random(seed);
    BRole role = random.Make(20);
    BRole before = role;
    auto bound = static_cast<std::ptrdiff_t>(EncodedSize<BRole>::Of(role));
    for (int i = 0; i < 300; ++i) {
      random.Edit(role);
      if (random.Below(3) == 0) continue;
      bound += EncodedSize<BRole>::Change(role, before);
      before = role;
      ASSERT_EQ(static_cast<std::ptrdiff_t>(EncodedSize<BRole>::Of(role)), bound) << seed;
      ASSERT_GE(EncodedSize<BRole>::Of(role), EncodeBean(role).size()) << seed;
    }
  }
}

// The largest numbers take as many bytes as were counted.
TEST(EncodedSize, NumbersAreCountedWithWhatTheirTypesCanTake) {
  const auto check = []<typename T>(T value) {
    const std::size_t bytes = EncodeBean(One<T>{value}).size();
    EXPECT_LE(bytes, SizeOf(value));
    EXPECT_GE(bytes + 1, SizeOf(value));
  };
  check(std::numeric_limits<std::int8_t>::min());
  check(std::numeric_limits<std::int16_t>::max());
  check(std::numeric_limits<std::int32_t>::min());
  check(std::numeric_limits<std::int64_t>::max());
  check(1.5F);
  check(2.5);
  check(true);
}

// As a list of three times 100 MB, which was once counted as three times 64 bytes.
TEST(EncodedSize, TextsInContainersCountWithTheirLength) {
  const std::string text(100'000, 'x');
  const auto check = [](const auto& value) {
    const std::size_t bytes = EncodeBean(One<std::remove_cvref_t<decltype(value)>>{value}).size();
    EXPECT_LE(bytes, SizeOf(value));
    EXPECT_GT(bytes + 1000, SizeOf(value));
  };
  check(List<Binary>{Binary{text}, Binary{text}, Binary{text}});
  check(Set<std::string>{text, text + "y"});
  Map<std::int32_t, List<std::string>> nested;
  nested.Put(1, {text, text});
  nested.Put(2, {text});
  check(nested);
  SortedMap<std::string, BItem> sorted;
  sorted.Put(text, BItem{.id = 1, .count = 2, .note = text});
  check(sorted);
  check(AnyBean::Of(BItem{.id = 1, .count = 2, .note = text}));
}

// A bean of numbers has one bound for all its values; lists of those are not looked through.
TEST(EncodedSize, KnowsWhatIsBoundedByItsType) {
  EXPECT_NE(0U, EncodedSize<One<std::int64_t>>::kFixed);
  EXPECT_EQ(0U, EncodedSize<BItem>::kFixed);
  EXPECT_EQ(0U, (EncodedSize<One<List<std::int64_t>>>::kFixed));
}

}  // namespace
}  // namespace zeze
