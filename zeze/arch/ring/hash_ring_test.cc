#include "zeze/arch/ring/hash_ring.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace zeze {
namespace {

HashRing ThreeServers() {
  return HashRing("Game.Server.Module#11013", {"1", "2", "3"});
}

TEST(HashRing, AgreesWithThePeer) {
  const HashRing ring = ThreeServers();
  EXPECT_EQ(*ring.Lookup(0), "3");
  EXPECT_EQ(*ring.Lookup(1), "1");
  EXPECT_EQ(*ring.Lookup(100), "1");
  EXPECT_EQ(*ring.LookupText("alice"), "2");
  EXPECT_EQ(*ring.LookupText("bob"), "1");
  EXPECT_EQ(*ring.LookupText("carol"), "1");
  std::string groups;
  for (std::uint32_t group = 0; group < 16; ++group) groups += *ring.LookupGroup(group);
  EXPECT_EQ(groups, "3112111332111212");
}

TEST(HashRing, DoesNotDependOnTheOrderOfTheServers) {
  const HashRing ring = ThreeServers();
  const HashRing other("Game.Server.Module#11013", {"3", "1", "2"});
  for (std::int64_t hash = -5000; hash < 5000; ++hash) {
    ASSERT_EQ(*ring.Lookup(hash), *other.Lookup(hash)) << hash;
  }
}

TEST(HashRing, ALeavingServerMovesOnlyItsOwnHashes) {
  const HashRing before = ThreeServers();
  const HashRing after("Game.Server.Module#11013", {"1", "3"});
  for (std::int64_t hash = 0; hash < 10'000; ++hash) {
    if (*before.Lookup(hash) != "2") {
      ASSERT_EQ(*before.Lookup(hash), *after.Lookup(hash)) << hash;
    }
  }
}

TEST(HashRing, SpreadsHashesOverTheServers) {
  std::vector<std::string> servers;
  for (int server = 0; server < 10; ++server) servers.push_back(std::to_string(server));
  const HashRing ring("Game.Server.Module#1", servers);
  std::map<std::string, int> counts;
  for (std::int64_t hash = 0; hash < 100'000; ++hash) ++counts[*ring.Lookup(hash)];
  ASSERT_EQ(counts.size(), 10U);
  for (const auto& [server, count] : counts) {
    EXPECT_GT(count, 6'000) << server;
    EXPECT_LT(count, 15'000) << server;
  }
}

TEST(HashRing, NobodyIsOnAnEmptyRing) {
  EXPECT_EQ(HashRing("X#1", {}).Lookup(7), nullptr);
  EXPECT_EQ(HashRing().LookupText("ann"), nullptr);
}

TEST(HashRing, GroupsOfNegativeHashesAreUnsigned) {
  EXPECT_EQ(HashGroup(-1, 16), 15U);
  EXPECT_EQ(HashGroup(17, 16), 1U);
}

}  // namespace
}  // namespace zeze
