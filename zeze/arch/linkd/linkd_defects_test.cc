// What goes wrong in Zeze 1.6 at this place, by the numbers of the list of its defects.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/net/frame.h"

namespace zeze::arch {
namespace {

using testing::FrameOf;
using testing::Gateway;
using testing::Received;
using testing::TestClient;
using testing::TestOptions;
using testing::TestProvider;
namespace provider = testing::provider;

constexpr std::int32_t kShop = 100;

// A server whose connection is never read: its output at the gateway fills up.
LinkdOptions SmallProviderOutput() {
  LinkdOptions options = TestOptions();
  options.providers.output_bytes_max = 4096;
  options.providers.socket.send_buffer_bytes = 4096;
  return options;
}

TEST(LinkdDefects, Defect19ABusyAnswerIsAWholeFrame) {
  Gateway gateway(SmallProviderOutput());
  // Announced by hand, and then silent.
  zeze::testing::RawClient deaf(gateway.linkd.provider_address());
  ASSERT_TRUE(deaf.EndHandshake());
  const auto send = [&deaf](const std::string& bytes) { ASSERT_TRUE(deaf.Send(bytes)); };
  ByteWriter payload;
  provider::BAnnounceProviderInfo{.ServiceNamePrefix = "Game.Module#", .ServiceIdentity = "1"}
      .Encode(payload);
  send(FrameOf(provider::AnnounceProviderInfo::kDescriptor.module_id,
               provider::AnnounceProviderInfo::kDescriptor.protocol_id, payload.view()));
  provider::BBind bind;
  bind.modules.Put(kShop, {});
  send(zeze::testing::RawClient::RequestFrame<provider::Bind>(1, bind));
  ASSERT_TRUE(deaf.ReadFrame().has_value());
  TestClient client(gateway, "alice");

  const std::string large(30'000, 'x');
  std::int64_t call = 0;
  std::optional<Received> answer;
  for (; call < 2000 && !answer.has_value(); ++call) {
    client.Request(kShop, 5, large, call);
    std::vector<Received> got = client.Settle();
    if (!got.empty()) answer = got.front();
  }

  ASSERT_TRUE(answer.has_value()) << "its output has a bound";
  EXPECT_EQ(ProtocolTypeId(kShop, 5), answer->type);
  EXPECT_EQ(FrameFamily::kResponse, answer->family);
  EXPECT_EQ(-19, answer->code);
  EXPECT_EQ(call - 1, answer->session_id);
  // The stream goes on as if nothing had happened, with the report behind the answer.
  client.Request(kShop, 5, large, 5000);
  const std::optional<Received> next = client.Receive();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(5000, next->session_id);
  EXPECT_EQ("0 3", client.Report());
  EXPECT_GE(gateway.refused(Refusal::kProviderFull), 2U);
}

TEST(LinkdDefects, Defect20AServerThatComesAgainIsUsableAtOnce) {
  Gateway gateway;
  // The gateway does not know yet that the old connection is dead.
  TestProvider old(gateway, "1");
  old.Offer({kShop});
  TestClient client(gateway, "alice");
  client.Request(kShop, 5, "x");
  EXPECT_EQ("x", client.Answer());

  const zeze::testing::CapturedLog log;
  TestProvider again(gateway, "1");
  again.Offer({kShop});
  EXPECT_THAT(log.lines(), ::testing::Contains(::testing::HasSubstr("the same server id")));
  client.Request(kShop, 5, "y");
  EXPECT_EQ("y", client.Answer());
  EXPECT_EQ(1U, again.dispatched.value().size());

  // And stays so when the end of the old one is noticed.
  EXPECT_TRUE(old.closed.Await([](bool closed) { return closed; }));
  TestClient late(gateway, "bob");
  late.Request(kShop, 5, "z");
  EXPECT_EQ("z", late.Answer());
  EXPECT_EQ(2U, again.dispatched.value().size());
}

TEST(LinkdDefects, Defect21ASessionIdIsNeverUsedAgain) {
  std::string pattern = std::filesystem::temp_directory_path() / "zeze_linkd_XXXXXX";
  const std::string directory = ::mkdtemp(pattern.data());
  LinkdOptions options = TestOptions();
  options.sid_file = directory + "/linkd.sids";
  options.sid_block = 10;
  std::int64_t last = 0;
  for (int start = 0; start < 3; ++start) {
    Gateway gateway(options);
    TestProvider provider(gateway, "1");
    for (int i = 0; i < 25; ++i) {
      // More than the blocks that there are: some have to wait for one.
      TestClient client(gateway);
      if (!client.EndHandshake() || client.Authenticate("alice") != 0) continue;
      EXPECT_GT(client.sid(), last);
      last = client.sid();
    }
    EXPECT_GT(last, 0);
  }
  // What a server says to a session of an earlier life reaches nobody.
  Gateway gateway(options);
  TestProvider provider(gateway, "1");
  TestClient client(gateway, "bob");
  EXPECT_EQ((std::vector<std::int64_t>{last}),
            provider.Send({last}, ProtocolTypeId(kShop, 9), FrameOf(kShop, 9, "old")));
  std::filesystem::remove_all(directory);
}

TEST(LinkdDefects, Defect23WhatWaitsForAServerHasABound) {
  Gateway gateway(SmallProviderOutput());
  TestProvider provider(gateway, "1", 0, false);
  provider.Offer({kShop});
  TestClient client(gateway, "alice");
  // It reads, but slower than clients send: everything is forwarded, or refused and counted.
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += FrameOf(kShop, 5, std::string(100, 'x'));
  client.raw().TrySend(many);
  client.Settle();

  const Linkd::Statistics all = gateway.linkd.GetStatistics();
  EXPECT_EQ(20'000U, all.forwarded + all.of(Refusal::kProviderFull));
  EXPECT_TRUE(provider.AwaitDispatched(all.forwarded));
}

}  // namespace
}  // namespace zeze::arch
