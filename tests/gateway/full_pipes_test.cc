// A gateway and a server that both have more to write than the other one has read.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "demo/Game.h"
#include "tests/gateway/gateway_fixture.h"
#include "zeze/app/session.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/client/client.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"

namespace zeze::arch {
namespace {

using demo::Game::Echo;
using demo::Game::Note;
using demo::Game::Noted;
using demo::Game::WhoAmI;

constexpr std::size_t kOutput = 1 << 20;
constexpr SocketOptions kSmallBuffers{.send_buffer_bytes = 16 << 10,
                                      .receive_buffer_bytes = 16 << 10};

class FullPipesTest : public testing::GatewayFixture {
 protected:
  FullPipesTest() {
    LinkdOptions options;
    options.providers.output_bytes_max = kOutput;
    options.providers.socket = kSmallBuffers;
    options.limits.in_flight_max = 0;
    StartLinkd(std::move(options));
    ProviderOptions provider;
    provider.link_service.output_bytes_max = kOutput;
    provider.link_service.socket = kSmallBuffers;
    servers_.push_back(NewServer(1, std::move(provider)));
  }

  bool Answers(Client& client) {
    return Eventually([&] {
      const auto answered = client.CallAndWait<Echo>({.text = "x"});
      return answered.ok() && answered.value().ok();
    });
  }
};

// The interleaving: the server's network thread is held. The gateway forwards until the output to
// the server is full, and the server pushes until its own is. Then the thread goes on. If each of
// them stopped reading now, neither would write any more, for a minute.
TEST_F(FullPipesTest, TheGatewayAndTheServerDoNotWaitForEachOther) {
  Linkd& linkd = *linkds_.front();
  testing::DemoServer& server = *servers_.front();
  Client& ann = StartClient("ann");
  Client& bob = StartClient("bob");
  MustBeReady(ann);
  MustBeReady(bob);
  ASSERT_TRUE(Answers(ann));
  ASSERT_TRUE(Answers(bob));
  const auto who = bob.CallAndWait<WhoAmI>({});
  ASSERT_TRUE(who.ok());
  Links& links = server.provider().links();
  const LinkAddress address{links.names().front(), who.value().result.number};

  testing::Gate gate;
  server.io().Post(Task("wait for the test", [&gate] { gate.Pass(); }));
  gate.AwaitWaiting(1);
  const std::string text(4000, 'x');
  ASSERT_TRUE(Eventually([&] {
    static_cast<void>(bob.Send<Note>({.text = text}));
    return linkd.GetStatistics().of(Refusal::kProviderFull) > 0;
  }));
  const std::string frame = EncodeOneWayFrame<Noted>({.text = text});
  Result<void> pushed;
  for (int i = 0; pushed.ok(); ++i) {
    ASSERT_LT(i, 1000);
    pushed = links.Send(address, frame, nullptr);
  }
  EXPECT_EQ(pushed.error().code(), ErrorCode::kOverloaded);
  const std::uint64_t connected = linkd.GetStatistics().providers;
  gate.Open();

  EXPECT_TRUE(Answers(ann));
  EXPECT_TRUE(Answers(bob));
  EXPECT_EQ(connected, 1U);
  EXPECT_TRUE(links.Send(address, frame, nullptr).ok());
}

// Requests that come while the server's answers do not leave are refused, not run, and not lost.
TEST_F(FullPipesTest, WhileAnswersDoNotLeaveRequestsAreAnsweredBusy) {
  testing::DemoServer& server = *servers_.front();
  Client& ann = StartClient("ann");
  MustBeReady(ann);
  ASSERT_TRUE(Answers(ann));
  const auto who = ann.CallAndWait<WhoAmI>({});
  ASSERT_TRUE(who.ok());
  Links& links = server.provider().links();
  const LinkAddress address{links.names().front(), who.value().result.number};
  const std::string frame = EncodeOneWayFrame<Noted>({.text = std::string(4000, 'x')});

  testing::Gate gate;
  server.io().Post(Task("wait for the test", [&gate] { gate.Pass(); }));
  gate.AwaitWaiting(1);
  while (links.Send(address, frame, nullptr).ok()) {
  }
  testing::Gate answered;
  std::int64_t code = 0;
  ASSERT_TRUE(ann.Call<Echo>({.text = "x"}, {},
                             [&](const RpcReply<Echo>& reply) {
                               code = reply.result_code;
                               answered.Open();
                             })
                  .ok());
  gate.Open();
  answered.Pass();
  // The server reads it before its output has gone down, or behind that.
  EXPECT_TRUE(code == result_code::kBusy || code == 0) << code;
  EXPECT_TRUE(Answers(ann));
}

}  // namespace
}  // namespace zeze::arch
