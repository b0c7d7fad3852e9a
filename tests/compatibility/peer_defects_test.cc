// What the existing implementations do wrong in the parts that exist here, and that we do not.
// Where the format itself loses something, the test says what and shows that nothing more is lost.

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "zeze/bean/codec.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/net/aes_cfb.h"
#include "zeze/net/dh.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::compatibility {
namespace {

using testing::One;

template <typename T>
T Copy(const T& value) {
  Result<One<T>> copy = DecodeBean<One<T>>(EncodeBean(One<T>{value}));
  EXPECT_TRUE(copy.ok());
  return std::move(copy.value().value);
}

// The existing C++ client accepts incoming frames of any size.
TEST(PeerDefects, FramesAboveTheLimitAreRefusedByTheirHeaderAlone) {
  ByteWriter out;
  out.WriteInt4(1);
  out.WriteInt4(2);
  out.WriteInt4(0x7FFFFFFF);
  std::string_view stream = out.view();
  EXPECT_FALSE(TakeFrame(stream, 2 << 20).ok());
}

// The existing C++ client reads a key from freed memory for encryptType 2. Ours owns what it uses:
// this test runs under AddressSanitizer.
TEST(PeerDefects, KeysOutliveWhatTheyAreMadeFrom) {
  std::string message = "a frame";
  const auto make = [](AesCfb::Mode mode) {
    const DiffieHellman one = std::move(DiffieHellman::FromExponent("\x05").value());
    const std::string material = one.SharedMaterial(std::string("\x07")).value();
    return AesCfb(mode, DeriveSessionKeys(material, std::nullopt).to_server);
  };
  AesCfb encrypt = make(AesCfb::Mode::kEncrypt);
  AesCfb decrypt = make(AesCfb::Mode::kDecrypt);
  encrypt.Apply(message);
  EXPECT_NE(message, "a frame");
  decrypt.Apply(message);
  EXPECT_EQ(message, "a frame");
}

// The existing C++ client answers encryptType 3 with type 2 and an empty parameter: an error that a
// server can name, not a key.
TEST(PeerDefects, AnEmptyParameterGivesNoKey) {
  const DiffieHellman own = std::move(DiffieHellman::Generate().value());
  EXPECT_FALSE(own.SharedMaterial("").ok());
}

// C++ and TypeScript clients take every first byte from F0 up for a number of 5 bytes.
TEST(PeerDefects, NumbersOf32BitsNeverLookLikeLongerOnes) {
  for (const std::uint32_t value : {0x10000000U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    ByteWriter out;
    out.WriteUint(value);
    EXPECT_EQ(out.size(), 5U);
    EXPECT_EQ(out.view()[0], '\xF0');
  }
}

// A surrogate without its partner becomes U+FFFD when Java reads it. For us a string is its bytes.
TEST(PeerDefects, LoneSurrogatesSurvive) {
  EXPECT_EQ(Copy<std::string>("a\xed\xa0\x80z"), "a\xed\xa0\x80z");
  EXPECT_EQ(Copy<std::string>("\xff\xfe"), "\xff\xfe");
}

// A field of -0.0 is left out and read as 0.0: the format forces it, as "zero" is by comparison,
// and our bytes must be those of the others. Everywhere else the sign is kept.
TEST(PeerDefects, NegativeZeroIsLostOnlyAsAFieldOfItsOwn) {
  EXPECT_EQ(EncodeBean(One<float>{-0.0F}), std::string(1, '\0'));
  EXPECT_FALSE(std::signbit(Copy(-0.0F)));
  EXPECT_FALSE(std::signbit(Copy(-0.0)));

  List<double> list;
  list.PushBack(-0.0);
  EXPECT_TRUE(std::signbit(*Copy(list).begin()));
  Map<std::int32_t, float> map;
  map.Put(1, -0.0F);
  EXPECT_TRUE(std::signbit(*Copy(map).Find(1)));
  EXPECT_TRUE(std::signbit(Copy(Vector2{-0.0F, 1}).x));
  EXPECT_TRUE(std::signbit(DecodeKey<double>(EncodeKey(-0.0)).value()));
}

// C++ and TypeScript clients turn a value of the wrong type into zero without a word.
TEST(PeerDefects, AValueOfTheWrongTypeIsAnErrorThatSaysWhere) {
  Result<One<std::int32_t>> decoded =
      DecodeBean<One<std::int32_t>>(EncodeBean(One<std::string>{"seven"}));
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message().find("BYTES"), std::string::npos)
      << decoded.error().message();
  EXPECT_NE(decoded.error().message().find("offset 1"), std::string::npos);
}

}  // namespace
}  // namespace zeze::compatibility
