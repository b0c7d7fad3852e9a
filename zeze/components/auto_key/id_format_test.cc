#include "zeze/components/auto_key/id_format.h"

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/testing/hex.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

std::string Written(std::int32_t server, std::uint64_t number) {
  ByteWriter out;
  if (server != 0) out.WriteUint(static_cast<std::uint32_t>(server));
  out.WriteUlong(number);
  return std::string(out.view());
}

TEST(IdFormat, IsThatOfThePeer) {
  const IdFormat format(1);
  EXPECT_EQ(format.IdOf(1), 257);
  EXPECT_EQ(format.IdOf(2), 258);
  EXPECT_EQ(format.IdOf(3), 259);
  EXPECT_EQ(format.IdOf(205), 0x0180cd);
  EXPECT_EQ(IdBytes(0x0180cd), std::string("\x01\x80\xcd"));
  EXPECT_EQ(IdText(0x0180cd), "AYDN");
  EXPECT_EQ(IdText(257), "AQE=");
}

TEST(IdFormat, IsTheServerAndTheNumberAsVarints) {
  std::mt19937_64 random(1);
  for (const std::int32_t server : {0, 1, 127, 128, 16383, 16384, 2'000'000, 300'000'000,
                                    std::numeric_limits<std::int32_t>::max()}) {
    const IdFormat format(server);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t number =
          1 + random() % (((format.number_max() - 1) >> random() % 28) + 1);
      ASSERT_EQ(IdBytes(format.IdOf(number)), Written(server, number)) << server << " " << number;
    }
    EXPECT_EQ(IdBytes(format.IdOf(format.number_max())).size(), 8U);
    EXPECT_EQ(Written(server, format.number_max()).size(), 8U);
    EXPECT_GT(Written(server, format.number_max() + 1).size(), 8U);
  }
}

TEST(IdFormat, IdsOfDifferentServersDiffer) {
  std::set<std::int64_t> ids;
  for (std::int32_t server = 0; server < 300; ++server) {
    for (std::uint64_t number = 1; number < 300; ++number) {
      ASSERT_TRUE(ids.insert(IdFormat(server).IdOf(number)).second) << server << " " << number;
    }
  }
}

TEST(IdFormat, FindsTheNumberOfAnId) {
  const IdFormat format(7);
  for (const std::uint64_t number : {1ULL, 127ULL, 128ULL, 16384ULL, 1ULL << 40}) {
    EXPECT_EQ(format.FirstNumberFrom(format.IdOf(number)), number);
  }
  EXPECT_EQ(format.FirstNumberFrom(0), 1U);
  EXPECT_EQ(format.FirstNumberFrom(format.IdOf(127) + 1), 128U);
  EXPECT_EQ(format.FirstNumberFrom(-1), format.number_max() + 1);
}

}  // namespace
}  // namespace zeze
