#include "zeze/base/name_hash.h"

#include <gtest/gtest.h>

namespace zeze {
namespace {

static_assert(HashName64("") == 0x2aaaaaaaaaaaab67);
static_assert(HashName64("demo.Bean1") == static_cast<std::int64_t>(0xfa4f2e835bf813f1U));
static_assert(HashName32("demo.Module1.Rpc1") == 0x4fe0897f);

TEST(NameHash, GivesTheIdsThatPeersUse) {
  EXPECT_EQ(HashName32("Zeze.Builtin.Timer.tNodes"), 453698467);
  EXPECT_EQ(HashName32("Zeze.Services.Handshake.SHandshake0"), -2018202792);
  EXPECT_EQ(HashName32("Zeze_Builtin_Game_Online_tlocal__set1"), -797953032);
}

TEST(NameHash, CountsUtf16UnitsNotBytes) {
  EXPECT_EQ(HashName64("\u4e2d\u6587"), HashName64(u"\u4e2d\u6587"));
  EXPECT_EQ(HashName64("x\U0001F600y"), HashName64(u"x\U0001F600y"));
  EXPECT_EQ(HashName64("\u07ff\u0800\uffff"), HashName64(u"\u07ff\u0800\uffff"));
  EXPECT_EQ(HashName32("\u00e9"), HashName32(u"\u00e9"));
}

TEST(NameHash, CountsAMalformedByteAsTheReplacementCharacter) {
  EXPECT_EQ(HashName64("a\xff"), HashName64(u"a\ufffd"));
  EXPECT_EQ(HashName64("a\xe4\xb8"), HashName64(u"a\ufffd\ufffd"));
}

TEST(RoutingHash, AgreesWithPeers) {
  EXPECT_EQ(RoutingHash(1), 0x9e3779b9U);
  EXPECT_EQ(RoutingHash(-1), 0x61c88646U);
  EXPECT_EQ(RoutingHashOfText("abc"), 0x84f09160U);
  EXPECT_EQ(RoutingHashOfBytes(std::string_view("\x00\xff\x80", 3)), 0x010001edU);
}

}  // namespace
}  // namespace zeze
