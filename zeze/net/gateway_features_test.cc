// What gateways need of a service: who is let in, how much it may send, and what is passed on.

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/peer_messages.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/service_fixture.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

using testing::Counter;
using testing::Echo;
using testing::ExpectPeerMessagesAreHarmless;
using testing::HandleEcho;
using testing::MustListen;
using testing::RawClient;

TEST(Service, ForwardsAnswersThatNobodyHereWaitsFor) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  Counter forwarded;
  server.ForwardOthers(
      [&forwarded](Connection&, const Frame& frame, std::string_view) -> Result<void> {
        EXPECT_EQ(frame.module_id, 9);
        forwarded.Add();
        return {};
      });
  RawClient client(MustListen(server));
  ByteWriter out;
  EncodeFrame({.module_id = 9, .protocol_id = 1, .family = FrameFamily::kResponse}, out);
  EncodeFrame({.module_id = Echo::kDescriptor.module_id,
               .protocol_id = Echo::kDescriptor.protocol_id,
               .family = FrameFamily::kResponse},
              out);
  ASSERT_TRUE(client.Send(out.view()));
  ASSERT_TRUE(client.Send(client.RequestFrame<Echo>(64, {"still there"})));

  EXPECT_TRUE(forwarded.WaitFor(1));
  ASSERT_TRUE(client.ReadFrame().has_value());
  EXPECT_EQ(server.GetStatistics().late_answers, 1U) << "of a type that is handled here";
}

// Calls of this side, and those of whoever it forwards for, are numbered independently.
TEST(Service, ForwardsAnAnswerWhoseNumberIsThatOfAnotherCallHere) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  Counter forwarded;
  server.ForwardOthers(
      [&forwarded](Connection&, const Frame& frame, std::string_view) -> Result<void> {
        EXPECT_EQ(frame.module_id, 9);
        forwarded.Add();
        return {};
      });
  Counter answered;
  server.OnOpen([&answered](const ConnectionPtr& connection) {
    ASSERT_TRUE(connection
                    ->Call<Echo>({"who are you"}, {},
                                 [&answered](const RpcReply<Echo>& reply) {
                                   EXPECT_TRUE(reply.ok());
                                   answered.Add();
                                 })
                    .ok());
  });
  RawClient client(MustListen(server));
  const std::optional<Frame> asked = client.ReadFrame();
  ASSERT_TRUE(asked.has_value());
  ByteWriter out;
  EncodeFrame({.module_id = 9,
               .protocol_id = 1,
               .family = FrameFamily::kResponse,
               .session_id = asked->session_id},
              out);
  EncodeFrame({.module_id = Echo::kDescriptor.module_id,
               .protocol_id = Echo::kDescriptor.protocol_id,
               .family = FrameFamily::kResponse,
               .session_id = asked->session_id,
               .payload = asked->payload},
              out);
  ASSERT_TRUE(client.Send(out.view()));

  EXPECT_TRUE(forwarded.WaitFor(1));
  EXPECT_TRUE(answered.WaitFor(1)) << "Echo has no handler here, but a call waits for it";
}

TEST(Service, CountsAndIgnoresMessagesOfThePeersOwnModules) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  RawClient peer(MustListen(server));
  ExpectPeerMessagesAreHarmless(peer);
  EXPECT_EQ(server.GetStatistics().peer_messages, std::size(kPeerMessages));

  static_assert(FindPeerMessage(11030, 1149398977)->full_name ==
                "Zeze.Builtin.Threading.KeepAlive");
  ByteWriter out;
  EncodeFrame({.module_id = 11030,
               .protocol_id = HashName32("Zeze.Builtin.Threading.MutexTryLock"),
               .family = FrameFamily::kRequest,
               .session_id = 5},
              out);
  ASSERT_TRUE(peer.Send(out.view()));
  const std::optional<Frame> answer = peer.ReadFrame();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->session_id, 5);
  EXPECT_EQ(answer->result_code, result_code::kNotImplement);

  // A request in place of a one-way message would wait for its answer.
  ByteWriter wrong;
  EncodeFrame({.module_id = 11030, .protocol_id = 1149398977, .family = FrameFamily::kRequest},
              wrong);
  ASSERT_TRUE(peer.Send(wrong.view()));
  EXPECT_FALSE(peer.ReadFrame().has_value());
  EXPECT_EQ(server.GetStatistics().protocol_errors, 1U);
}

TEST(Service, AsksBeforeItTalksToWhoHasConnected) {
  struct Guest final : ConnectionState {
    explicit Guest(std::uint16_t port_in) : port(port_in) {}
    const std::uint16_t port;
  };
  IoThreads io({});
  bool open = true;
  ServiceOptions options{.name = "server"};
  options.admit = [&open](const NetAddress& peer) -> std::shared_ptr<ConnectionState> {
    if (!open) return nullptr;
    return std::make_shared<Guest>(peer.port());
  };
  Service server(io, options);
  Counter opened;
  server.OnOpen([&opened](const ConnectionPtr& connection) {
    EXPECT_EQ(connection->state<Guest>()->port, connection->peer_address().port());
    opened.Add();
  });
  const NetAddress address = MustListen(server);
  RawClient guest(address);
  EXPECT_TRUE(opened.WaitFor(1));

  open = false;
  RawClient stranger(address);
  EXPECT_FALSE(stranger.ReadFrame().has_value());
  EXPECT_EQ(server.GetStatistics().not_admitted, 1U);
  EXPECT_EQ(server.connection_count(), 1U);
}

TEST(Service, ClosesWhoSendsMoreThanItsOwnLimit) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  server.OnOpen([](const ConnectionPtr& connection) { connection->set_frame_bytes_max(100); });
  Counter closed;
  server.OnClose([&closed](const ConnectionPtr&, const Error& why) {
    EXPECT_EQ(why.code(), ErrorCode::kCorrupt) << "for what it has sent";
    closed.Add();
  });
  RawClient client(MustListen(server));
  ASSERT_TRUE(client.Send(client.RequestFrame<Echo>(1, {"short"})));
  EXPECT_TRUE(client.ReadFrame().has_value());
  client.Send(client.RequestFrame<Echo>(2, {std::string(200, 'x')}));
  EXPECT_FALSE(client.ReadFrame().has_value());
  EXPECT_TRUE(closed.WaitFor(1));
  EXPECT_EQ(server.GetStatistics().oversize_frames, 1U);
}

}  // namespace
}  // namespace zeze
