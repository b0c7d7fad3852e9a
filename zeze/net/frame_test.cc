#include "zeze/net/frame.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeze {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBodyMax = 1000;

std::string Encode(const Frame& frame) {
  ByteWriter out;
  EncodeFrame(frame, out);
  return out.Release();
}

Frame Ping(std::int64_t session_id) {
  return {.module_id = 7,
          .protocol_id = -9,
          .family = FrameFamily::kRequest,
          .session_id = session_id,
          .payload = "argument"};
}

TEST(Frame, ComesBackFromItsBytes) {
  for (const FrameFamily family :
       {FrameFamily::kResponse, FrameFamily::kRequest, FrameFamily::kOneWay,
        FrameFamily::kRaftResponse, FrameFamily::kRaftRequest}) {
    const bool rpc = family != FrameFamily::kOneWay;
    const bool raft = family == FrameFamily::kRaftRequest || family == FrameFamily::kRaftResponse;
    const std::string bytes = Encode({.module_id = -1,
                                      .protocol_id = 0x12345678,
                                      .family = family,
                                      .result_code = -10,
                                      .session_id = 1LL << 40,
                                      .client_id = "client",
                                      .request_id = -3,
                                      .create_time = 99,
                                      .payload = "payload"});
    std::string_view stream = bytes;
    Result<std::optional<RawFrame>> raw = TakeFrame(stream, kBodyMax);
    ASSERT_TRUE(raw.ok() && raw.value().has_value());
    Result<Frame> frame = ParseFrame(*raw.value());
    ASSERT_TRUE(frame.ok());

    EXPECT_EQ(frame.value().module_id, -1);
    EXPECT_EQ(frame.value().protocol_id, 0x12345678);
    EXPECT_EQ(frame.value().family, family);
    EXPECT_EQ(frame.value().result_code, -10);
    EXPECT_EQ(frame.value().session_id, rpc ? 1LL << 40 : 0);
    EXPECT_EQ(frame.value().client_id, raft ? "client" : "");
    EXPECT_EQ(frame.value().request_id, raft ? -3 : 0);
    EXPECT_EQ(frame.value().create_time, raft ? 99 : 0);
    EXPECT_EQ(frame.value().payload, "payload");
  }
}

TEST(TakeFrame, WaitsForTheWholeFrame) {
  const std::string bytes = Encode(Ping(1));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::string_view stream = std::string_view(bytes).substr(0, size);
    Result<std::optional<RawFrame>> raw = TakeFrame(stream, kBodyMax);
    ASSERT_TRUE(raw.ok());
    EXPECT_FALSE(raw.value().has_value());
    EXPECT_EQ(stream.size(), size);
  }
}

TEST(TakeFrame, TakesFramesThatArriveTogetherOneByOne) {
  const std::string bytes = Encode(Ping(1)) + Encode(Ping(2)) + Encode(Ping(3)).substr(0, 15);
  std::string_view stream = bytes;
  for (std::int64_t session = 1; session <= 2; ++session) {
    Result<std::optional<RawFrame>> raw = TakeFrame(stream, kBodyMax);
    ASSERT_TRUE(raw.ok() && raw.value().has_value());
    EXPECT_EQ(ParseFrame(*raw.value()).value().session_id, session);
  }
  EXPECT_FALSE(TakeFrame(stream, kBodyMax).value().has_value());
  EXPECT_EQ(stream.size(), 15U);
}

TEST(TakeFrame, RefusesABodyAboveTheLimitAsSoonAsItIsClaimed) {
  const std::string bytes =
      Encode({.module_id = 7, .protocol_id = 8, .payload = std::string(1000, 'x')});
  std::string_view header = std::string_view(bytes).substr(0, kFrameHeaderBytes);
  Result<std::optional<RawFrame>> raw = TakeFrame(header, kBodyMax);

  ASSERT_FALSE(raw.ok());
  EXPECT_EQ(raw.error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(
      raw.error().message(),
      "a frame of module 7 protocol 8 claims a body of 1001 bytes; at most 1000 are accepted");
}

TEST(TakeFrame, TreatsTheSizeAsUnsigned) {
  const std::string bytes = std::string(8, '\0') + "\xff\xff\xff\xff";
  std::string_view stream = bytes;
  EXPECT_FALSE(TakeFrame(stream, kBodyMax).ok());
}

TEST(ParseFrame, RefusesFamiliesThatDoNotExist) {
  Result<Frame> frame = ParseFrame({.module_id = 7, .protocol_id = 8, .body = "\x05\x00"});
  ASSERT_FALSE(frame.ok());
  EXPECT_EQ(frame.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(frame.error().message(), HasSubstr("frame of module 7 protocol 8: 5 is no family"));
}

TEST(ParseFrame, RefusesBodiesThatEndEarly) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view body :
       {""sv, "\x01"sv, "\x20\x05"sv, "\x22"sv, "\x04\x01\x03\x61"sv, "\x03\x01\x00\x05"sv}) {
    EXPECT_FALSE(ParseFrame({.module_id = 0, .protocol_id = 0, .body = body}).ok());
  }
}

TEST(ParseFrame, IgnoresBitsThatHaveNoMeaningYet) {
  Result<Frame> frame = ParseFrame({.module_id = 0,
                                    .protocol_id = 0,
                                    .body = "\x80\x41\x05"
                                            "a"});
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame.value().family, FrameFamily::kRequest);
  EXPECT_EQ(frame.value().session_id, 5);
  EXPECT_EQ(frame.value().payload, "a");
}

}  // namespace
}  // namespace zeze
