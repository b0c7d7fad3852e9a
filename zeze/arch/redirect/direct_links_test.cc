// The connections between servers, seen from the wire: a test plays the other server.

#include "zeze/arch/redirect/direct_links.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/session.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/arch/redirect/testing/redirect_cluster.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/hex.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {
namespace {

namespace direct = Zeze::Builtin::ProviderDirect;

using testing::kPatience;
using testing::ModuleBank;
using testing::RedirectCluster;
using zeze::testing::FromHex;
using zeze::testing::RawClient;

NetAddress AddressOf(Redirect& redirect) {
  return NetAddress::FromText(redirect.links().ip(), redirect.links().port()).value();
}

std::unique_ptr<RawClient> Connect(Redirect& to) {
  auto client = std::make_unique<RawClient>(AddressOf(to));
  EXPECT_TRUE(client->EndHandshake());
  return client;
}

std::string Announcement(std::int32_t server_id) {
  return RawClient::RequestFrame<direct::AnnounceProviderInfo>(
      1, {.Ip = "127.0.0.1", .Port = 7001, .ServerId = server_id});
}

// The code that comes back; none if the connection was closed.
std::optional<std::int64_t> Announce(RawClient& client, std::int32_t server_id) {
  client.Send(Announcement(server_id));
  const std::optional<Frame> answer = client.ReadFrame();
  if (!answer.has_value()) return std::nullopt;
  EXPECT_EQ(FrameFamily::kResponse, answer->family);
  EXPECT_EQ(1, answer->session_id);
  return answer->result_code;
}

direct::BModuleRedirectArgument CallOfWhere(std::string_view text) {
  ByteWriter parameters;
  parameters.WriteBytes(text);
  return {.ModuleId = ModuleBank::kModuleId,
          .HashCode = 5,
          .MethodFullName = "Test.Bank:where",
          .Params = Binary(parameters.Release()),
          .ServiceNamePrefix = "Test.Server.Module#"};
}

struct RawAnswer {
  std::int64_t code = 0;
  direct::BModuleRedirectResult result = {};
};
RawAnswer Call(RawClient& client, const direct::BModuleRedirectArgument& argument) {
  client.Send(RawClient::RequestFrame<direct::ModuleRedirect>(7, argument));
  const std::optional<Frame> answer = client.ReadFrame();
  if (!answer.has_value()) {
    ADD_FAILURE() << "the connection was closed";
    return {};
  }
  RawAnswer parsed{.code = answer->result_code};
  ByteReader in(answer->payload);
  parsed.result.Decode(in);
  EXPECT_TRUE(in.ok());
  return parsed;
}

TEST(DirectLinks, Defect22AnAnnouncementIsAnswered) {
  RedirectCluster cluster;
  cluster.Add(5);
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  EXPECT_EQ(0, Announce(*peer, 3)) << "once more does no harm";
  EXPECT_EQ(0, Announce(*Connect(cluster.redirect(5)), 8)) << "one that nobody could know";
}

// Also Transmit and TransmitAccount, which only servers with logins handle.
TEST(DirectLinks, MessagesOfThePeersOwnModulesAreIgnored) {
  RedirectCluster cluster;
  cluster.Add(5);
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  zeze::testing::ExpectPeerMessagesAreHarmless(*peer);
}

TEST(DirectLinks, WhoIsNotSmallerOrChangesItsIdIsRefused) {
  RedirectCluster cluster;
  cluster.Add(5);
  EXPECT_TRUE(cluster.at(5)
                  .agent
                  .Register({.name = "Test.Server.Module#77",
                             .identity = "6",
                             .passive_ip = "127.0.0.1",
                             .passive_port = 1})
                  .ok());
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster.at(5), 2));
  for (const std::int32_t id : {5, 6, -1}) {
    const auto peer = Connect(cluster.redirect(5));
    EXPECT_EQ(result_code::kLogicError, Announce(*peer, id));
    EXPECT_EQ(std::nullopt, peer->ReadFrame()) << "closed";
  }
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  EXPECT_EQ(result_code::kLogicError, Announce(*peer, 4));
  EXPECT_EQ(4U, cluster.redirect(5).links().GetStatistics().refused_announcements);
}

TEST(DirectLinks, AServerThatConnectsAgainReplacesItsStaleConnection) {
  RedirectCluster cluster;
  cluster.Add(5);
  // Listed, or it would not be used.
  EXPECT_TRUE(cluster.at(5)
                  .agent
                  .Register({.name = "Test.Server.Module#77",
                             .identity = "3",
                             .passive_ip = "127.0.0.1",
                             .passive_port = 1})
                  .ok());
  EXPECT_TRUE(RedirectCluster::AwaitRing(cluster.at(5), 2));
  const auto stale = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*stale, 3));
  const auto fresh = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*fresh, 3));

  EXPECT_EQ(std::nullopt, stale->ReadFrame()) << "closed by the server";
  EXPECT_EQ(1U, cluster.redirect(5).links().GetStatistics().replaced);
  cluster.redirect(5).ToServer<&ModuleBank::Slow>(3, 1).Send();
  const std::optional<Frame> call = fresh->ReadFrame();
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(direct::ModuleRedirect::kProtocolId, call->protocol_id);
}

TEST(DirectLinks, AServerThatIsNotListedIsNotUsed) {
  RedirectCluster cluster;
  cluster.Add(5);
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  EXPECT_EQ(nullptr, cluster.redirect(5).links().Find(3)) << "perhaps it has another version";
}

// The peer of Zeze 1.6 never answers announcements.
TEST(DirectLinks, ALargerServerIsConnectedToAndNeedNotAnswerTheAnnouncement) {
  RedirectCluster cluster;
  RawClient peer;
  const std::uint16_t port = peer.Listen();
  cluster.Add(5);
  EXPECT_TRUE(cluster.at(5)
                  .agent
                  .Register({.name = "Test.Server.Module#77",
                             .identity = "9",
                             .passive_ip = "127.0.0.1",
                             .passive_port = port})
                  .ok());
  peer.Accept();
  ByteWriter offer;
  ServerHello().Encode(offer);  // No encryption, no compression.
  ByteWriter hello;
  EncodeFrame({.module_id = 0,
               .protocol_id = kServerHelloId,
               .family = FrameFamily::kOneWay,
               .payload = offer.view()},
              hello);
  peer.Send(hello.view());
  std::optional<Frame> done = peer.ReadFrame();
  ASSERT_TRUE(done.has_value());
  std::optional<Frame> announcement = peer.ReadFrame();
  ASSERT_TRUE(announcement.has_value());
  EXPECT_EQ(direct::AnnounceProviderInfo::kProtocolId, announcement->protocol_id);
  EXPECT_EQ(FrameFamily::kRequest, announcement->family);
  direct::BAnnounceProviderInfo info;
  ByteReader in(announcement->payload);
  info.Decode(in);
  EXPECT_EQ("127.0.0.1", info.Ip);
  EXPECT_EQ(cluster.redirect(5).links().port(), info.Port);
  EXPECT_EQ(5, info.ServerId);

  cluster.redirect(5).ToServer<&ModuleBank::Where>(9, "hi").OrderedBy(3).Send();
  const std::optional<Frame> call = peer.ReadFrame();
  ASSERT_TRUE(call.has_value());
  // 1 ModuleId 77, 2 HashCode 9, 3 RedirectType 1, 4 method, 5 parameters, 6 prefix, 8 key 3.
  EXPECT_EQ(FromHex("10 404d 10 09 10 01 13 0f 546573742e42616e6b3a7768657265 13 03 026869"
                    "13 13 546573742e5365727665722e4d6f64756c6523 20 03 00"),
            call->payload);
}

TEST(DirectLinks, ACallOfAnotherImplementationIsAnsweredAsItExpects) {
  RedirectCluster cluster;
  cluster.Add(5);
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  const RawAnswer answer = Call(*peer, CallOfWhere("hi"));
  EXPECT_EQ(0, answer.code);
  EXPECT_EQ(ModuleBank::kModuleId, answer.result.ModuleId);
  EXPECT_EQ(5, answer.result.ServerId);
  EXPECT_EQ(FromHex("05 02 6869"), answer.result.Params.bytes) << "fields in their order";
}

TEST(DirectLinks, WhatIsNotHereIsRefusedWithItsCode) {
  RedirectCluster cluster;
  cluster.Add(5);
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  direct::BModuleRedirectArgument call = CallOfWhere("hi");
  call.MethodFullName = "Test.Bank:undeclared";
  EXPECT_EQ(redirect_code::kMethodNotFound, Call(*peer, call).code);
  call.MethodFullName = "Test.Bank:where";
  call.Version = 1;
  EXPECT_EQ(redirect_code::kVersion, Call(*peer, call).code);
  call.Version = 0;
  call.Params.bytes = FromHex("00 02 6869");  // As 1.7 sends it.
  EXPECT_EQ(redirect_code::kError, Call(*peer, call).code);
  call.Params.bytes.clear();
  EXPECT_EQ(redirect_code::kError, Call(*peer, call).code);
  EXPECT_EQ(0, Call(*peer, CallOfWhere("hi")).code) << "the connection goes on";
}

TEST(DirectLinks, ACallToAllOfAnotherImplementationIsAnswered) {
  RedirectCluster cluster;
  cluster.Add(5);
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  ByteWriter parameters;
  parameters.WriteBytes("g");
  direct::BModuleRedirectAllRequest request{.ModuleId = ModuleBank::kModuleId,
                                            .HashCodeConcurrentLevel = 8,
                                            .HashCodes = {2, 7},
                                            .SourceProvider = 3,
                                            .SessionId = 77,
                                            .MethodFullName = "Test.Bank:groupName",
                                            .Params = Binary(parameters.Release()),
                                            .Version = 3};
  const auto ask = [&] {
    peer->Send(EncodeOneWayFrame<direct::ModuleRedirectAllRequest>(request));
    const std::optional<Frame> frame = peer->ReadFrame();
    RedirectAllReply<std::string> all;
    if (!frame.has_value()) return all;
    all.code = frame->result_code;
    direct::BModuleRedirectAllResult result;
    ByteReader in(frame->payload);
    result.Decode(in);
    EXPECT_EQ(77, result.SessionId);
    EXPECT_EQ(3, result.SourceProvider);
    EXPECT_EQ(5, result.ServerId);
    EXPECT_EQ("Test.Bank:groupName", result.MethodFullName);
    for (const auto& entry : result.Hashs) {
      RedirectGroupReply<std::string> reply;
      reply.group = static_cast<std::uint32_t>(entry.key);
      reply.code = entry.value.ReturnCode;
      reply.result = entry.value.Params.bytes;
      all.groups.push_back(reply);
    }
    return all;
  };
  const auto good = ask();
  ASSERT_EQ(2U, good.groups.size());
  EXPECT_TRUE(good.ok());
  EXPECT_TRUE(good.groups[0].result == "g2@5" || good.groups[0].result == "g7@5");

  request.Version = 4;
  const auto newer = ask();
  EXPECT_EQ(redirect_code::kVersion, newer.code);
  ASSERT_EQ(2U, newer.groups.size());
  EXPECT_EQ(result_code::kNotImplement, newer.groups[0].code);

  request.Version = 3;
  request.HashCodes.Add(8);
  EXPECT_EQ(redirect_code::kError, ask().code) << "a group that the level does not have";
}

TEST(DirectLinks, ResultsThatNobodyAskedForAreIgnored) {
  RedirectCluster cluster;
  cluster.Add(5);
  cluster.AwaitReady();
  const auto peer = Connect(cluster.redirect(5));
  EXPECT_EQ(0, Announce(*peer, 3));
  cluster.bank(5).door.Close();
  cluster.redirect(5).ToAll<&ModuleBank::Slow>(4, 1).Send();
  direct::BModuleRedirectAllResult result{.SessionId = 1};
  // Groups of server 5, a group that does not exist, and a negative one.
  for (const std::int32_t group : {0, 1, 99, -1}) result.Hashs.Put(group, {});
  peer->Send(EncodeOneWayFrame<direct::ModuleRedirectAllResult>(result));
  EXPECT_TRUE(RedirectCluster::AwaitTrue(
      [&] { return cluster.redirect(5).GetStatistics().ignored_results == 4; }));
  EXPECT_EQ(1U, cluster.redirect(5).GetStatistics().all_calls);
  cluster.bank(5).door.Open();
}

TEST(DirectLinks, MutatedMessagesHarmNobody) {
  RedirectCluster cluster;
  cluster.Add(5);
  cluster.Add(6);
  cluster.AwaitReady();
  std::mt19937 random(11);  // NOLINT: the same every time.
  ByteWriter amount;
  amount.WriteLong(1);
  amount.WriteLong(2);
  direct::BModuleRedirectArgument deposit = CallOfWhere("hi");
  deposit.MethodFullName = "Test.Bank:deposit";
  deposit.Params.bytes = amount.Release();
  const std::vector<std::string> valid = {
      Announcement(3), RawClient::RequestFrame<direct::ModuleRedirect>(2, CallOfWhere("hello")),
      RawClient::RequestFrame<direct::ModuleRedirect>(3, deposit),
      EncodeOneWayFrame<direct::ModuleRedirectAllRequest>({.ModuleId = ModuleBank::kModuleId,
                                                           .HashCodeConcurrentLevel = 8,
                                                           .HashCodes = {1, 2, 3},
                                                           .SessionId = 1,
                                                           .MethodFullName = "Test.Bank:large"}),
      EncodeOneWayFrame<direct::ModuleRedirectAllResult>({.SessionId = 1, .Hashs = {}})};
  for (int round = 0; round < 400; ++round) {
    const auto stranger = Connect(cluster.redirect(5));
    std::string bytes = valid[random() % valid.size()];
    for (std::size_t n = random() % 6; n > 0; --n) {
      // Mostly behind the header, which has its own tests.
      const std::size_t from = n % 3 == 0 ? 0 : kFrameHeaderBytes;
      bytes[from + random() % (bytes.size() - from)] = static_cast<char>(random());
    }
    stranger->Send(bytes);
    if (round % 50 == 0) {
      EXPECT_TRUE(cluster.redirect(6).ToServer<&ModuleBank::Where>(5, "x").Wait().ok());
    }
  }
  EXPECT_TRUE(cluster.redirect(6).ToServer<&ModuleBank::Where>(5, "x").Wait().ok());
  EXPECT_TRUE(cluster.redirect(5).ToAll<&ModuleBank::Large>(8).Wait().ok());
}

}  // namespace
}  // namespace zeze::arch
