// The bytes of other implementations.

#include "zeze/arch/linkd/gateway_messages.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/admin/operator_key.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/hex.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {
namespace {

namespace provider = Zeze::Builtin::Provider;
using admin::ToHex;
using zeze::testing::FromHex;

template <typename Bean>
std::string Encoded(const Bean& bean) {
  ByteWriter out;
  bean.Encode(out);
  return std::string(out.view());
}

TEST(GatewayMessages, DispatchIsThatOfThePeer) {
  ByteWriter out;
  WriteDispatch({.link_sid = 5,
                 .account = "acc5",
                 .type = ProtocolTypeId(100, 5),
                 .body = std::string_view("\x02\x00", 2)},
                out);
  EXPECT_EQ("1005130461636335107c64000000051302020000", ToHex(out.view()));
}

TEST(GatewayMessages, DispatchHasAllFieldsOfItsBean) {
  provider::BDispatch bean{.linkSid = 123456789,
                           .account = "alice",
                           .protocolType = ProtocolTypeId(11013, -5),
                           .context = "77",
                           .onlineSetName = "set"};
  bean.protocolData = Binary("body");
  bean.contextx = Binary("more");
  ByteWriter out;
  WriteDispatch({.link_sid = 123456789,
                 .account = "alice",
                 .type = ProtocolTypeId(11013, -5),
                 .body = "body",
                 .context = "77",
                 .context_bytes = "more",
                 .online_set_name = "set"},
                out);
  EXPECT_EQ(ToHex(Encoded(bean)), ToHex(out.view()));
}

TEST(GatewayMessages, SendIsReadWithoutCopies) {
  provider::BSend bean{.protocolType = ProtocolTypeId(11013, -5)};
  for (const std::int64_t sid : {5, -1, 1'000'000'000}) bean.linkSids.PushBack(sid);
  bean.protocolWholeData = Binary("a whole frame");
  const std::string bytes = Encoded(bean);

  const Result<SendView> send = ParseSend(bytes);

  ASSERT_TRUE(send.ok());
  EXPECT_EQ(ProtocolTypeId(11013, -5), send.value().type);
  EXPECT_EQ("a whole frame", send.value().frame);
  EXPECT_GE(send.value().frame.data(), bytes.data());
  EXPECT_LT(send.value().frame.data(), bytes.data() + bytes.size());
  std::vector<std::int64_t> sids;
  send.value().ForEachSid([&](std::int64_t sid) { sids.push_back(sid); });
  EXPECT_EQ((std::vector<std::int64_t>{5, -1, 1'000'000'000}), sids);
}

TEST(GatewayMessages, SendResultIsThatOfThePeer) {
  provider::BSendResult result;
  result.ErrorLinkSids.PushBack(999999);
  EXPECT_EQ(
      "1410"
      "6f423f"
      "00",
      ToHex(Encoded(result)));
}

TEST(GatewayMessages, BindOfThePeerIsRead) {
  const std::string bytes = FromHex(
      "150602"
      "4064"
      "00"
      "602b05"
      "00"
      "00");
  ByteReader in(bytes);
  provider::BBind bind;
  bind.Decode(in);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(2U, bind.modules.size());
  EXPECT_TRUE(bind.modules.Contains(100));
  EXPECT_TRUE(bind.modules.Contains(11013));
}

TEST(GatewayMessages, BrokenMessagesAreRefused) {
  provider::BSend bean{.protocolType = 5};
  bean.linkSids.PushBack(5);
  bean.protocolWholeData = Binary("a whole frame");
  const std::string bytes = Encoded(bean);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseSend(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
}

TEST(GatewayMessages, BroadcastIsRead) {
  provider::BBroadcast bean{.protocolType = 7, .time = 60, .onlySameVersion = true};
  bean.protocolWholeData = Binary("frame");
  const std::string bytes = Encoded(bean);
  const Result<BroadcastView> broadcast = ParseBroadcast(bytes);
  ASSERT_TRUE(broadcast.ok());
  EXPECT_EQ(7, broadcast.value().type);
  EXPECT_EQ("frame", broadcast.value().frame);
  EXPECT_TRUE(broadcast.value().only_same_version);
}

TEST(GatewayMessages, OnlyWholeFramesGoToClients) {
  ByteWriter out;
  EncodeFrame({.module_id = 1, .protocol_id = 2, .payload = "x"}, out);
  const std::string frame(out.view());
  EXPECT_TRUE(ParseClientFrames(frame).whole);
  EXPECT_TRUE(ParseClientFrames(frame + frame).whole);
  EXPECT_FALSE(ParseClientFrames("").whole);
  EXPECT_FALSE(ParseClientFrames(frame.substr(1)).whole);
  EXPECT_FALSE(ParseClientFrames(frame + frame.substr(0, 5)).whole);
  EXPECT_FALSE(ParseClientFrames(std::string(12, '\0')).whole) << "a frame without a body";
}

TEST(GatewayMessages, WhatFramesAnswerIsKnownAndTheirBodiesAreForTheClientToJudge) {
  ByteWriter out;
  EncodeFrame({.module_id = 1, .protocol_id = 2, .payload = "a push"}, out);
  EncodeFrame({.module_id = 3,
               .protocol_id = -4,
               .family = FrameFamily::kResponse,
               .session_id = 77,
               .payload = "an answer"},
              out);
  EncodeFrame(
      {.module_id = 3, .protocol_id = 5, .family = FrameFamily::kRaftResponse, .session_id = 78},
      out);
  EncodeFrame({.module_id = 3,
               .protocol_id = 6,
               .family = FrameFamily::kResponse,
               .result_code = -9,
               .session_id = 79},
              out);

  const ClientFrames frames = ParseClientFrames(out.view());

  EXPECT_TRUE(frames.whole);
  EXPECT_EQ(out.view(), frames.bytes);
  ASSERT_EQ(2U, frames.answers.size());
  EXPECT_EQ(ProtocolTypeId(3, -4), frames.answers[0].type);
  EXPECT_EQ(77, frames.answers[0].call);
  EXPECT_EQ(ProtocolTypeId(3, 6), frames.answers[1].type);
  EXPECT_EQ(79, frames.answers[1].call);
}

}  // namespace
}  // namespace zeze::arch
