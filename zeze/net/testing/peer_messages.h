// ExpectPeerMessagesAreHarmless: everything that a service must take from a server of Zeze 1.6.
//
//   RawClient client(service.address());
//   ASSERT_TRUE(client.EndHandshake());
//   ExpectPeerMessagesAreHarmless(client);

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::testing {

// Sends each of them without any content, and after each asks for a sign of life.
inline void ExpectPeerMessagesAreHarmless(RawClient& client) {
  constexpr std::string_view kEmptyBean("\0", 1);
  // Messages of module 0 are sequences of values, not beans.
  constexpr std::string_view kEmptyValues("\0\0\0\0", 4);
  std::int64_t call = 1000;
  for (const PeerMessage& message : kPeerMessages) {
    ByteWriter out;
    EncodeFrame({.module_id = message.module_id,
                 .protocol_id = message.protocol_id,
                 .family = message.is_rpc ? FrameFamily::kRequest : FrameFamily::kOneWay,
                 .session_id = ++call,
                 .payload = message.module_id == 0 ? kEmptyValues : kEmptyBean},
                out);
    EncodeFrame({.module_id = 0,
                 .protocol_id = kKeepAliveId,
                 .family = FrameFamily::kRequest,
                 .session_id = ++call,
                 .payload = kEmptyBean},
                out);
    ASSERT_TRUE(client.Send(out.view())) << "before " << message.full_name;
    std::optional<Frame> got = client.ReadFrame();
    while (got.has_value() && (got->protocol_id != kKeepAliveId || got->session_id != call)) {
      got = client.ReadFrame();
    }
    ASSERT_TRUE(got.has_value()) << message.full_name << " closed the connection";
  }
}

}  // namespace zeze::testing
