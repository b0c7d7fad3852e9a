#include "zeze/base/hash.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace zeze {
namespace {

// What another process of this program says its hash of 1 is.
std::string HashInAnotherProcess(const std::string& environment) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "env -u ZEZE_HASH_SEED " + environment + " '" + program +
                              "' --gtest_also_run_disabled_tests "
                              "--gtest_filter=HashSeed.DISABLED_Child 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), &pclose);
  std::string text;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), output.get()) != nullptr) text += buffer.data();
  const std::size_t at = text.find("hash=");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(HashSeed, DISABLED_Child) {
  std::printf("hash=%llu,%llu\n", static_cast<unsigned long long>(HashOf(1)),
              static_cast<unsigned long long>(HashBytes("one")));
}

TEST(HashSeed, IsRandomInEveryProcess) {
  std::set<std::string> hashes;
  for (int i = 0; i < 4; ++i) hashes.insert(HashInAnotherProcess(""));
  EXPECT_EQ(hashes.size(), 4U);
  EXPECT_FALSE(hashes.contains(""));
}

TEST(HashSeed, IsFixedByTheEnvironment) {
  const std::string seven = HashInAnotherProcess("ZEZE_HASH_SEED=7");
  EXPECT_NE(seven, "");
  EXPECT_EQ(seven, HashInAnotherProcess("ZEZE_HASH_SEED=7"));
  EXPECT_NE(seven, HashInAnotherProcess("ZEZE_HASH_SEED=8"));
  EXPECT_NE(HashInAnotherProcess("ZEZE_HASH_SEED="), HashInAnotherProcess("ZEZE_HASH_SEED="));
}

TEST(Hash, SpreadsOverAllBits) {
  for (const unsigned shift : {0U, 20U, 40U}) {
    for (const unsigned place : {0U, 5U, 24U, 40U, 54U}) {
      std::set<std::uint64_t> places;
      for (std::uint64_t i = 0; i < 1024; ++i) places.insert(HashOf(i << shift) >> place & 1023U);
      // 1024 balls into 1024 places leave about 647 of them used.
      EXPECT_GT(places.size(), 580U) << shift << " " << place;
    }
  }
}

TEST(Hash, PartsAreNotExchangeable) {
  const auto pair = [](int a, int b) {
    return CombineHash(CombineHash(CombinedHashStart(), HashOf(a)), HashOf(b));
  };
  EXPECT_NE(pair(1, 2), pair(2, 1));
  EXPECT_NE(pair(0, 1), pair(1, 0));
  std::set<std::uint64_t> hashes;
  for (int a = 0; a < 100; ++a) {
    for (int b = 0; b < 100; ++b) hashes.insert(pair(a, b));
  }
  EXPECT_EQ(hashes.size(), 10'000U);
}

}  // namespace
}  // namespace zeze
