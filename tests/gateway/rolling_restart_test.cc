// All servers are restarted in turn while clients ask: nothing is lost, nothing is done twice.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "demo/Game.h"
#include "tests/gateway/gateway_fixture.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/client/client.h"
#include "zeze/net/rpc.h"

namespace zeze::arch {
namespace {

using demo::Game::Echo;

// How often something happened to each number; numbers are given out in order.
class Tally {
 public:
  explicit Tally(std::int64_t size) : counts_(static_cast<std::size_t>(size)) {}
  void Add(std::int64_t number) { ++counts_.at(static_cast<std::size_t>(number)); }
  std::int64_t NotOnce() const {
    std::int64_t wrong = 0;
    for (const std::atomic<int>& count : counts_) wrong += count == 1 ? 0 : 1;
    return wrong;
  }

 private:
  std::vector<std::atomic<int>> counts_;
};

// Keeps some requests in the air; each has a number of its own.
class Asker {
 public:
  Asker(Client& client, std::atomic<std::int64_t>& next, std::int64_t total, Tally& answered)
      : client_(client), next_(next), total_(total), answered_(answered) {}

  void Begin(int outstanding) {
    {
      const MutexLock lock(mutex_);
      left_ = outstanding;
    }
    for (int i = 0; i < outstanding; ++i) AskNext();
  }
  void AwaitEnd() {
    MutexLock lock(mutex_);
    while (left_ != 0) changed_.Wait(mutex_);
  }
  std::int64_t refused() const { return refused_; }

 private:
  void AskNext() {
    for (std::int64_t number = next_++; number < total_; number = next_++) {
      if (Ask(number)) return;
      ++refused_;
    }
    MutexLock lock(mutex_);
    if (--left_ == 0) changed_.NotifyAll();
  }
  bool Ask(std::int64_t number) {
    const Result<void> asked =
        client_.Call<Echo>({.number = number}, {.timeout = std::chrono::seconds(10)},
                           [this, number](const RpcReply<Echo>& reply) {
                             if (reply.ok() && reply.result.number == number) {
                               answered_.Add(number);
                             } else {
                               ++refused_;
                             }
                             AskNext();
                           });
    return asked.ok();
  }

  Client& client_;
  std::atomic<std::int64_t>& next_;
  const std::int64_t total_;
  Tally& answered_;
  std::atomic<std::int64_t> refused_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int left_ ZEZE_GUARDED_BY(mutex_) = 0;
};

class RollingRestartTest : public testing::GatewayFixture {};

TEST_F(RollingRestartTest, LosesAndDoublesNothing) {
  // ZEZE_ROLLING_REQUESTS=1000000 for the long one.
  const char* wanted = std::getenv("ZEZE_ROLLING_REQUESTS");  // NOLINT(concurrency-mt-unsafe)
  const std::int64_t total = wanted != nullptr ? std::atoll(wanted) : 100'000;
  constexpr int kClients = 16;
  constexpr int kOutstanding = 8;
  Tally executed(total);
  Tally answered(total);
  on_echo_ = [&](const testing::BText& text) {
    if (text.number < 0) return;
    executed.Add(text.number);
    // Some take long, so that a server that leaves always has something to wait for.
    if (text.number % 256 == 0) SystemClock().SleepFor(std::chrono::milliseconds(20));
  };
  StartLinkd();
  StartLinkd();
  for (int id = 1; id <= 3; ++id) servers_.push_back(NewServer(id));
  for (int i = 0; i < kClients; ++i) {
    MustBeReady(StartClient(fmt::format("client{}", i), static_cast<std::size_t>(i % 2)));
  }
  for (const auto& client : clients_) {
    ASSERT_TRUE(Eventually([&] {
      const auto reply = client->CallAndWait<Echo>({.number = -1});
      return reply.ok() && reply.value().ok();
    }));
  }

  std::atomic<std::int64_t> next = 0;
  std::vector<std::unique_ptr<Asker>> askers;
  for (const auto& client : clients_) {
    askers.push_back(std::make_unique<Asker>(*client, next, total, answered));
    askers.back()->Begin(kOutstanding);
  }
  int restarts = 0;
  while (next < total || restarts < 3) {
    servers_.front().reset();
    servers_.erase(servers_.begin());
    servers_.push_back(NewServer(restarts % 3 + 1));
    ++restarts;
  }
  std::int64_t refused = 0;
  for (const auto& asker : askers) {
    asker->AwaitEnd();
    refused += asker->refused();
  }

  EXPECT_EQ(refused, 0);
  EXPECT_EQ(answered.NotOnce(), 0);
  EXPECT_EQ(executed.NotOnce(), 0);
  fmt::print("{} requests over {} restarts: {} refused, {} not answered once, {} not run once\n",
             total, restarts, refused, answered.NotOnce(), executed.NotOnce());
}

}  // namespace
}  // namespace zeze::arch
