// Tests of the key agreement, of encryption and of the zstd stream.

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/net/aes_cfb.h"
#include "zeze/net/dh.h"
#include "zeze/net/zstd_stream.h"

namespace zeze {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

constexpr std::size_t kNoLimit = std::size_t{1} << 30;

TEST(DiffieHellman, BothSidesFindTheSameMaterial) {
  for (int i = 0; i < 20; ++i) {
    Result<DiffieHellman> client = DiffieHellman::Generate();
    Result<DiffieHellman> server = DiffieHellman::Generate();
    ASSERT_TRUE(client.ok() && server.ok());
    EXPECT_NE(client.value().PublicValue(), server.value().PublicValue());
    const std::string one = client.value().SharedMaterial(server.value().PublicValue()).value();
    const std::string two = server.value().SharedMaterial(client.value().PublicValue()).value();
    EXPECT_EQ(one, two);
    // As few bytes as possible, and positive.
    EXPECT_EQ(static_cast<unsigned char>(one[0]) & 0x80, 0);
    EXPECT_TRUE(one[0] != 0 || (static_cast<unsigned char>(one[1]) & 0x80) != 0);
  }
}

TEST(DiffieHellman, RefusesValuesThatMakeTheKeyPredictable) {
  DiffieHellman own = std::move(DiffieHellman::Generate().value());
  // The prime, and its neighbours.
  std::string prime =
      "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xc9\x0f\xda\xa2\x21\x68\xc2\x34\xc4\xc6\x62\x8b\x80\xdc"
      "\x1c\xd1\x29\x02\x4e\x08\x8a\x67\xcc\x74\x02\x0b\xbe\xa6\x3b\x13\x9b\x22\x51\x4a\x08\x79\x8e"
      "\x34\x04\xdd\xef\x95\x19\xb3\xcd\x3a\x43\x1b\x30\x2b\x0a\x6d\xf2\x5f\x14\x37\x4f\xe1\x35\x6d"
      "\x6d\x51\xc2\x45\xe4\x85\xb5\x76\x62\x5e\x7e\xc6\xf4\x4c\x42\xe9\xa6\x3a\x36\x20\xff\xff\xff"
      "\xff\xff\xff\xff\xff"s;
  ASSERT_EQ(prime.size(), 97U);
  const auto with_last_byte = [&prime](char last) {
    std::string number = prime;
    number.back() = last;
    return number;
  };
  for (const std::string& value :
       {""s, "\x00"s, "\x01"s, "\xff"s, with_last_byte('\xfe'), with_last_byte('\xff'),
        "\x00\x01"s + prime.substr(1), std::string(98, '\x01')}) {
    Result<std::string> material = own.SharedMaterial(value);
    ASSERT_FALSE(material.ok());
    EXPECT_EQ(material.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_TRUE(own.SharedMaterial("\x02").ok());
  EXPECT_TRUE(own.SharedMaterial(with_last_byte('\xfd')).ok());
}

TEST(DiffieHellman, RefusesNegativeExponents) {
  EXPECT_FALSE(DiffieHellman::FromExponent("\xff").ok());
  EXPECT_FALSE(DiffieHellman::FromExponent("").ok());
}

TEST(SessionKeys, DifferByDirectionAndAddress) {
  const std::string material = "0123456789abcdef0";
  const SessionKeys plain = DeriveSessionKeys(material, std::nullopt);
  const SessionKeys here = DeriveSessionKeys(material, "\x7f\x00\x00\x01"s);
  const SessionKeys there = DeriveSessionKeys(material, "\x7f\x00\x00\x02"s);
  EXPECT_NE(plain.to_server.key, plain.to_client.key);
  EXPECT_NE(plain.to_server.key, here.to_server.key);
  EXPECT_NE(here.to_client.key, there.to_client.key);
  EXPECT_EQ(plain.to_client.key, Md5("89abcdef0"));
}

TEST(AesCfb, DecryptsWhatItEncryptsWhateverThePieces) {
  constexpr std::uint32_t kSeed = 20261115;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const AesKey key = DeriveSessionKeys("material", std::nullopt).to_server;
  AesCfb encrypt(AesCfb::Mode::kEncrypt, key);
  AesCfb decrypt(AesCfb::Mode::kDecrypt, key);
  std::string plain, sent, received;
  for (int i = 0; i < 200; ++i) {
    std::string piece(random() % 100, static_cast<char>(random()));
    plain += piece;
    encrypt.Apply(piece);
    sent += piece;
  }
  EXPECT_NE(sent, plain);
  for (std::size_t at = 0; at < sent.size();) {
    std::string piece = sent.substr(at, 1 + random() % 50);
    at += piece.size();
    decrypt.Apply(piece);
    received += piece;
  }
  EXPECT_EQ(received, plain);
}

TEST(AesCfb, KeepsItsPositionWhenMoved) {
  const AesKey key = DeriveSessionKeys("material", std::nullopt).to_server;
  std::string whole = "one stream", first = "one ", second = "stream";
  AesCfb(AesCfb::Mode::kEncrypt, key).Apply(whole);
  AesCfb begin(AesCfb::Mode::kEncrypt, key);
  begin.Apply(first);
  AesCfb end = std::move(begin);
  end.Apply(second);
  EXPECT_EQ(first + second, whole);
}

TEST(ZstdStream, DeliversEverythingAtAFlush) {
  std::mt19937 random(1);
  ZstdEncoder encoder;
  ZstdDecoder decoder;
  for (int i = 0; i < 200; ++i) {
    std::string plain;
    for (std::size_t n = random() % (i % 20 == 0 ? 100000 : 100); n > 0; --n) {
      plain.push_back(static_cast<char>('a' + random() % 7));
    }
    std::string encoded, decoded;
    encoder.Write(plain, encoded);
    encoder.Flush(encoded);
    ASSERT_TRUE(decoder.Write(encoded, kNoLimit, decoded).ok());
    ASSERT_EQ(decoded, plain);
  }
}

TEST(ZstdStream, BeginsWithoutAContextWhereItMay) {
  for (const std::size_t plain_bytes : {1U, 100U, 8192U, 200'000U}) {
    ZstdEncoder encoder(plain_bytes);
    ZstdDecoder decoder;
    std::size_t written = 0;
    for (int i = 0; i < 300; ++i) {
      const std::string plain(i % 50 == 0 ? 90'000 : 77, static_cast<char>('a' + i % 7));
      std::string encoded, decoded;
      encoder.Write(plain, encoded);
      encoder.Flush(encoded);
      ASSERT_TRUE(decoder.Write(encoded, kNoLimit, decoded).ok()) << written;
      ASSERT_EQ(decoded, plain) << written;
      if (written + plain.size() <= plain_bytes) {
        EXPECT_GT(encoded.size(), plain.size());
      } else if (written > plain_bytes) {
        EXPECT_LT(encoded.size(), plain.size());
      }
      written += plain.size();
    }
  }
}

TEST(ZstdStream, WritesNothingWhenNothingIsPending) {
  ZstdEncoder encoder;
  std::string encoded;
  encoder.Flush(encoded);
  EXPECT_EQ(encoded, "");
  encoder.Write("abc", encoded);
  encoder.Flush(encoded);
  const std::size_t size = encoded.size();
  encoder.Flush(encoded);
  EXPECT_EQ(encoded.size(), size);
}

TEST(ZstdDecoder, RefusesOtherDataAndStaysSo) {
  ZstdDecoder decoder;
  std::string plain;
  const Result<void> result = decoder.Write("not zstd at all", kNoLimit, plain);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
  EXPECT_FALSE(decoder.Write("", kNoLimit, plain).ok());
}

TEST(ZstdDecoder, StopsAtTheLimitOfItsOutput) {
  ZstdEncoder encoder;
  std::string bomb;
  encoder.Write(std::string(10 << 20, 'a'), bomb);
  encoder.Flush(bomb);
  EXPECT_LT(bomb.size(), 10000U);
  ZstdDecoder decoder;
  std::string plain;
  const Result<void> result = decoder.Write(bomb, 100000, plain);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("larger than the limit"));
  EXPECT_LE(plain.size(), 100000U);
}

TEST(ZstdDecoder, RefusesAWindowAboveItsMemory) {
  // A frame header that claims a window of 2 GiB.
  ZstdDecoder decoder;
  std::string plain;
  EXPECT_FALSE(decoder.Write("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"s, kNoLimit, plain).ok());
}

}  // namespace
}  // namespace zeze
