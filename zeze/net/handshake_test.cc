#include "zeze/net/handshake.h"

#include <gtest/gtest.h>

namespace zeze {
namespace {

template <typename T>
T Copy(const T& value) {
  ByteWriter out;
  value.Encode(out);
  ByteReader in(out.view());
  T copy;
  copy.Decode(in);
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(in.remaining(), 0U);
  return copy;
}

TEST(Handshake, ArgumentsComeBackFromTheirBytes) {
  const ServerHello hello{.encrypt = EncryptType::kAes,
                          .supported_encrypt = {EncryptType::kAes},
                          .compress_to_client = CompressType::kZstd,
                          .compress_to_server = CompressType::kNone,
                          .supported_compress = {}};
  EXPECT_EQ(Copy(hello), hello);
  const ClientChoice client{.encrypt = EncryptType::kRsaAes,
                            .encrypt_parameter = "secret",
                            .compress_to_client = CompressType::kMppc,
                            .compress_to_server = CompressType::kZstd};
  EXPECT_EQ(Copy(client), client);
  const ServerChoice server{.encrypt_parameter = "public",
                            .compress_to_client = CompressType::kMppc,
                            .compress_to_server = CompressType::kZstd,
                            .encrypt = EncryptType::kAesWithIp};
  EXPECT_EQ(Copy(server), server);
}

TEST(Handshake, UnderstandsPeersThatSayNothingAboutCompression) {
  ServerHello hello;
  ByteReader without(std::string_view("\x00", 1));
  hello.Decode(without);
  EXPECT_TRUE(without.ok());
  EXPECT_EQ(hello.compress_to_client, CompressType::kNone);

  ServerChoice choice;
  ByteReader plain(std::string_view("\x00\x00\x00", 3));
  choice.Decode(plain);
  EXPECT_TRUE(plain.ok());
  EXPECT_EQ(choice.encrypt, EncryptType::kNone);
}

TEST(Handshake, BelievesNoListLongerThanThereAreTypes) {
  // A billion supported types.
  ServerHello hello;
  ByteReader in(
      "\x01\x78\x3b\x9a\xca\x00"
      "abc");
  hello.Decode(in);
  EXPECT_FALSE(in.ok());
  EXPECT_TRUE(hello.supported_encrypt.empty());

  ByteReader negative(
      "\x01\xff"
      "abc");
  hello.Decode(negative);
  EXPECT_FALSE(negative.ok());
}

}  // namespace
}  // namespace zeze
