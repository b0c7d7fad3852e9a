#include "zeze/bean/hash.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "zeze/bean/compare.h"
#include "zeze/bean/field.h"
#include "zeze/bean/map.h"
#include "zeze/bean/testing/test_beans.h"

namespace zeze {
namespace {

// A player knows this source and its constants, but not the seed. While the seed was a constant,
// these keys all fell into one place: every second variable undoes what the first did to the hash.
class KeysOfAnAttacker {
 public:
  struct Key {
    static constexpr std::string_view kFullName = "test.Key";
    std::int64_t a = 0;
    std::int64_t b = 0;
    template <typename Visitor>
    static constexpr void ForEachField(Visitor&& visit) {
      visit(Field{1, "a"}, &Key::a);
      visit(Field{2, "b"}, &Key::b);
    }
    std::weak_ordering operator<=>(const Key& other) const { return CompareFields(*this, other); }
    ZEZE_TEST_BEAN_MEMBERS(Key)
  };

  static Key Make(std::int64_t a) {
    const std::uint64_t first =
        Mix(kSeed * kFactor + Mix(static_cast<std::uint64_t>(a) ^ kSeed)) * kFactor;
    return {.a = a, .b = static_cast<std::int64_t>(Unmix(0 - first) ^ kSeed)};
  }

 private:
  static constexpr std::uint64_t kSeed = 0x2545F4914F6CDD1DU;
  static constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  static constexpr std::uint64_t kMix1 = 0x9FB21C651E98DF25U;
  static constexpr std::uint64_t kMix2 = 0xD6E8FEB86659FD93U;

  static constexpr std::uint64_t Mix(std::uint64_t value) {
    value = (value ^ (value >> 32)) * kMix1;
    value = (value ^ (value >> 29)) * kMix2;
    return value ^ (value >> 32);
  }
  static constexpr std::uint64_t Inverse(std::uint64_t odd) {
    std::uint64_t inverse = odd;
    for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
    return inverse;
  }
  static constexpr std::uint64_t Unmix(std::uint64_t value) {
    value = (value ^ (value >> 32)) * Inverse(kMix2);
    value ^= (value >> 29) ^ (value >> 58);
    value *= Inverse(kMix1);
    return value ^ (value >> 32);
  }
};

}  // namespace
}  // namespace zeze

template <>
struct std::hash<zeze::KeysOfAnAttacker::Key> {
  std::size_t operator()(const zeze::KeysOfAnAttacker::Key& key) const noexcept {
    return zeze::HashFields(key);
  }
};

namespace zeze {
namespace {

TEST(HashTest, KeysMadeFromTheSourceCodeDoNotCollide) {
  std::set<std::uint64_t> hashes;
  Map<KeysOfAnAttacker::Key, std::int32_t> map;
  for (std::int64_t i = 0; i < 10'000; ++i) {
    hashes.insert(HashKey(KeysOfAnAttacker::Make(i)));
    map.Put(KeysOfAnAttacker::Make(i), 1);
  }
  EXPECT_GT(hashes.size(), 9'990U);
  EXPECT_EQ(map.size(), 10'000U);
}

}  // namespace
}  // namespace zeze
