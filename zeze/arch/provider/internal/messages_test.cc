#include "zeze/arch/provider/internal/messages.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/hex.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch::internal {
namespace {

namespace wire = Zeze::Builtin::Provider;
using zeze::testing::FromHex;

// Bytes of a peer: module 100, protocol 5, body 02 00, for client 5 with account acc5.
TEST(ProviderMessages, DecodesTheDispatchOfAPeer) {
  const std::string body = FromHex("02 10 05 13 04 61636335 10 7c6400000005 13 02 0200 00");

  const Result<DispatchView> view = DecodeDispatch(std::string_view(body).substr(1));

  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(view.value().link_sid, 5);
  EXPECT_EQ(view.value().account, "acc5");
  EXPECT_EQ(view.value().type_id, ProtocolTypeId(100, 5));
  EXPECT_EQ(view.value().body, std::string_view("\x02\x00", 2));
  EXPECT_EQ(view.value().context, "");
}

TEST(ProviderMessages, DecodesEveryFieldOfADispatch) {
  const wire::BDispatch dispatch{.linkSid = -7,
                                 .account = "ann",
                                 .protocolType = ProtocolTypeId(-3, -4),
                                 .protocolData = Binary{"data"},
                                 .context = "12",
                                 .contextx = Binary{"more"},
                                 .onlineSetName = "pvp"};
  ByteWriter out;
  dispatch.Encode(out);

  const Result<DispatchView> decoded = DecodeDispatch(out.view());

  ASSERT_TRUE(decoded.ok());
  const DispatchView& view = decoded.value();
  EXPECT_EQ(view.link_sid, -7);
  EXPECT_EQ(view.account, "ann");
  EXPECT_EQ(view.type_id, ProtocolTypeId(-3, -4));
  EXPECT_EQ(view.body, "data");
  EXPECT_EQ(view.context, "12");
  EXPECT_EQ(view.context_bytes, "more");
  EXPECT_EQ(view.online_set_name, "pvp");
  // Views into what was received, not copies.
  EXPECT_GE(view.body.data(), out.data());
  EXPECT_LT(view.body.data(), out.data() + out.size());
}

TEST(ProviderMessages, RefusesACutDispatchAtEveryByte) {
  ByteWriter out;
  wire::BDispatch{.linkSid = 1, .account = "ann", .protocolData = Binary{"data"}}.Encode(out);
  for (std::size_t size = 0; size < out.size(); ++size) {
    EXPECT_FALSE(DecodeDispatch(out.view().substr(0, size)).ok()) << size;
  }
}

TEST(ProviderMessages, EncodesSendAsTheBeanDoes) {
  for (const std::vector<std::int64_t>& sids :
       {std::vector<std::int64_t>{}, {5}, {1, -2, 1'000'000'000'000}}) {
    wire::BSend bean{.protocolType = ProtocolTypeId(100, 5),
                     .protocolWholeData = Binary{"whole frame"}};
    for (const std::int64_t sid : sids) bean.linkSids.PushBack(sid);
    ByteWriter expected;
    bean.Encode(expected);

    ByteWriter out;
    EncodeSend(sids, ProtocolTypeId(100, 5), "whole frame", out);

    EXPECT_EQ(out.view(), expected.view());
  }
}

TEST(ProviderMessages, ASendThatNobodyHearsOfIsARequestOfNoCall) {
  ByteWriter payload;
  const std::int64_t sid = 77;
  EncodeSend(std::span(&sid, 1), ProtocolTypeId(100, 5), "whole frame", payload);
  ByteWriter expected;
  EncodeFrame({.module_id = wire::Send::kDescriptor.module_id,
               .protocol_id = wire::Send::kDescriptor.protocol_id,
               .family = FrameFamily::kRequest,
               .session_id = 0,
               .payload = payload.view()},
              expected);

  ByteWriter out;
  EncodeUnheardSend(sid, ProtocolTypeId(100, 5), "whole frame", out);

  EXPECT_EQ(out.view(), expected.view());
}

TEST(ProviderMessages, ReadsTheTypeOfAFrame) {
  ByteWriter out;
  EncodeFrame({.module_id = 100, .protocol_id = -5}, out);

  EXPECT_EQ(TypeOfFrame(out.view()).value(), ProtocolTypeId(100, -5));
  EXPECT_FALSE(TypeOfFrame(out.view().substr(0, 11)).ok());
}

}  // namespace
}  // namespace zeze::arch::internal
