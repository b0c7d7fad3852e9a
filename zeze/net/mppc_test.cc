#include "zeze/net/mppc.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeze {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kNoLimit = std::size_t{1} << 30;
constexpr std::uint32_t kSeed = 20261115;

std::string Encode(std::string_view plain) {
  MppcEncoder encoder;
  std::string encoded;
  encoder.Write(plain, encoded);
  encoder.Flush(encoded);
  return encoded;
}

std::string Decode(std::string_view encoded) {
  MppcDecoder decoder;
  std::string plain;
  const Result<void> result = decoder.Write(encoded, kNoLimit, plain);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return plain;
}

// Text with repetitions near and far.
std::string Sample(std::mt19937& random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    if (text.size() > 10 && random() % 3 != 0) {
      const std::size_t offset = 1 + random() % std::min<std::size_t>(text.size(), 12000);
      const std::size_t length = 1 + random() % (random() % 10 == 0 ? 9000 : 40);
      for (std::size_t i = 0; i < length; ++i) text.push_back(text[text.size() - offset]);
    } else {
      text.push_back(static_cast<char>(random()));
    }
  }
  return text;
}

TEST(Mppc, ComesBackWhateverThePieces) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 30; ++round) {
    const std::string plain = Sample(random, random() % 60000);
    MppcEncoder encoder;
    MppcDecoder decoder;
    std::string decoded;
    std::string_view rest = plain;
    while (!rest.empty()) {
      const std::size_t piece = std::min<std::size_t>(rest.size(), random() % 20000);
      std::string encoded;
      encoder.Write(rest.substr(0, piece), encoded);
      rest.remove_prefix(piece);
      if (random() % 2 == 0 || rest.empty()) encoder.Flush(encoded);
      for (std::string_view in = encoded; !in.empty();) {
        const std::size_t part = std::min<std::size_t>(in.size(), 1 + random() % 100);
        ASSERT_TRUE(decoder.Write(in.substr(0, part), kNoLimit, decoded).ok());
        in.remove_prefix(part);
      }
      if (rest.empty()) {
        ASSERT_EQ(decoded, plain);
      }
    }
  }
}

TEST(Mppc, DeliversEverythingAtAFlush) {
  std::mt19937 random(kSeed);
  MppcEncoder encoder;
  MppcDecoder decoder;
  for (int i = 0; i < 2000; ++i) {
    const std::string plain = Sample(random, random() % 30);
    std::string encoded, decoded;
    encoder.Write(plain, encoded);
    encoder.Flush(encoded);
    ASSERT_TRUE(decoder.Write(encoded, kNoLimit, decoded).ok());
    ASSERT_EQ(decoded, plain);
  }
}

TEST(Mppc, WritesNothingWhenNothingIsPending) {
  MppcEncoder encoder;
  std::string encoded;
  encoder.Flush(encoded);
  EXPECT_EQ(encoded, "");
  encoder.Write("\x80", encoded);
  encoder.Flush(encoded);
  const std::size_t size = encoded.size();
  encoder.Flush(encoded);
  EXPECT_EQ(encoded.size(), size);
}

TEST(Mppc, ShrinksWhatRepeats) {
  EXPECT_LT(Encode(std::string(8000, 'a')).size(), 10U);
  EXPECT_EQ(Decode(Encode(std::string(100000, 'a'))), std::string(100000, 'a'));
  // What does not repeat grows by one bit in 16 at most.
  std::mt19937 random(kSeed);
  std::string noise;
  for (int i = 0; i < 8000; ++i) noise.push_back(static_cast<char>(random()));
  EXPECT_LT(Encode(noise).size(), 8000U * 9 / 8 + 2);
  EXPECT_EQ(Decode(Encode(noise)), noise);
}

TEST(Mppc, CopiesOverTheWholeOffsetAndLengthRange) {
  std::mt19937 random(kSeed);
  std::string block;
  for (int i = 0; i < 9000; ++i) block.push_back(static_cast<char>(random()));
  for (const std::size_t offset : {3U, 63U, 64U, 319U, 320U, 8191U, 8192U, 8999U}) {
    for (const std::size_t length : {3U, 4U, 7U, 8U, 4095U, 4096U, 8191U, 8192U}) {
      const std::string start = block.substr(0, offset);
      std::string plain = start;
      for (std::size_t i = 0; i < length; ++i) plain.push_back(plain[plain.size() - offset]);
      ASSERT_EQ(Decode(Encode(plain)), plain) << offset << " " << length;
    }
  }
}

TEST(MppcDecoder, RefusesCopiesFromBeforeTheBeginning) {
  MppcDecoder decoder;
  std::string plain;
  // A literal 'a', then offset 2.
  const Result<void> result = decoder.Write("\x61\xf0\x80", kNoLimit, plain);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(result.error().message(), HasSubstr("before the beginning"));
  // And stays so.
  EXPECT_FALSE(decoder.Write("\x61", kNoLimit, plain).ok());
}

TEST(MppcDecoder, RefusesLengthsThatNoEncoderWrites) {
  MppcDecoder decoder;
  std::string plain;
  // A literal, offset 1, then twelve ones.
  EXPECT_FALSE(decoder.Write("\x61\xf0\x7f\xff\xff\xff", kNoLimit, plain).ok());
}

TEST(MppcDecoder, StopsAtTheLimitOfItsOutput) {
  const std::string bomb = Encode(std::string(1 << 20, 'a'));
  EXPECT_LT(bomb.size(), 1000U);
  MppcDecoder decoder;
  std::string plain;
  EXPECT_FALSE(decoder.Write(bomb, 10000, plain).ok());
  EXPECT_LE(plain.size(), 10000U);
}

TEST(MppcDecoder, SurvivesNoise) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 20000; ++round) {
    std::string noise;
    for (std::size_t i = random() % 100; i > 0; --i) noise.push_back(static_cast<char>(random()));
    MppcDecoder decoder;
    std::string plain;
    static_cast<void>(decoder.Write(noise, 100000, plain).ok());
    ASSERT_LE(plain.size(), 100000U);
  }
}

}  // namespace
}  // namespace zeze
