// In the steady state a gateway forwards without allocating: calls of operator new are counted on
// its network thread.

#include "bench/allocations.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/base/executor.h"
#include "zeze/base/wait_group.h"

namespace zeze::arch {
namespace {

using testing::Gateway;
using testing::TestClient;
using testing::TestOptions;
using testing::TestProvider;

constexpr std::int32_t kShop = 100;

// Of the gateway's only network thread.
std::uint64_t AllocationsOf(Gateway& gateway) {
  std::uint64_t count = 0;
  WaitGroup done(1);
  gateway.io.Post(Task("count", [&] {
    count = bench::ThreadAllocations();
    done.Done();
  }));
  done.Wait();
  return count;
}

TEST(LinkdAllocations, ForwardingAllocatesNothing) {
  LinkdOptions options = TestOptions();
  // With all limits that are looked at for every message.
  options.limits.session_messages = {.per_second = 1e6, .burst = 1e6};
  options.limits.session_bytes = {.per_second = 1e9, .burst = 1e9};
  options.limits.account_messages = {.per_second = 1e6, .burst = 1e6};
  options.limits.address.exempt = {};
  options.limits.address.messages = {.per_second = 1e6, .burst = 1e6};
  options.limits.in_flight_max = 64;
  Gateway gateway(options);
  TestProvider provider(gateway, "1");
  provider.Offer({kShop, 101, 102});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<TestClient>(gateway, "a client with a long name"));
    provider.Tell<testing::provider::SetUserState>(
        {.linkSid = clients.back()->sid(), .userState = {.context = "a context of some length"}});
  }
  const std::string payload(64, 'x');
  const auto play = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const auto& client : clients) client->Request(kShop, 5, payload);
      for (const auto& client : clients) ASSERT_EQ(payload, client->Answer());
    }
  };
  play(500);

  constexpr int kRounds = 5000;
  const std::uint64_t before = AllocationsOf(gateway);
  play(kRounds);
  const std::uint64_t during = AllocationsOf(gateway) - before;

  // The tick of the gateway, some times a second, and what counts here.
  EXPECT_LT(during, 200U) << "in " << 4 * kRounds << " round trips";
  RecordProperty("allocations", static_cast<int>(during));
}

}  // namespace
}  // namespace zeze::arch
