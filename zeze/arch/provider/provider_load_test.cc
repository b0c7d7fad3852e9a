// What a server does when there is too much to do.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "demo/Game.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/provider/testing/demo_server.h"
#include "zeze/arch/provider/testing/fake_linkd.h"
#include "zeze/arch/provider/testing/provider_fixture.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/net/rpc.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/byte_reader.h"

namespace zeze::arch {
namespace {

using demo::Game::Echo;
using demo::Game::EchoCritical;
using demo::Game::EchoDirect;
using demo::Game::Note;
using demo::Game::Optional;
using demo::Game::Usual;
using demo::Game::Wait;
using testing::DemoServer;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Zeze::Builtin::Provider::BLoad;

class ProviderLoadTest : public testing::ProviderFixture {
 protected:
  ~ProviderLoadTest() override {
    servers_.clear();
    if (observer_ != nullptr) observer_->Stop();
  }

  // Somebody who hears how busy servers with this module are, as gateways do.
  void Observe() {
    registry::RegistryAgentOptions options;
    options.on_load = [this](const registry::ServerLoad& load) {
      BLoad decoded;
      ByteReader in(load.param);
      decoded.Decode(in);
      EXPECT_TRUE(in.ok());
      MutexLock lock(mutex_);
      loads_.push_back(decoded);
      changed_.NotifyAll();
    };
    observer_ = registry_.NewAgent(std::move(options));
    observer_->Subscribe({.name = "Demo.Server.Module#100"}, [](const auto&, const auto&) {});
    ASSERT_TRUE(observer_->AwaitSettled(std::chrono::seconds(20)).ok());
  }
  // The first one from now on with this level.
  BLoad AwaitLoad(std::int32_t level) {
    const auto deadline = SystemClock().Now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    loads_.clear();
    while (true) {
      for (const BLoad& load : loads_) {
        if (load.Overload == level) return load;
      }
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) {
        ADD_FAILURE() << "no load report with level " << level;
        return {};
      }
    }
  }

  std::unique_ptr<registry::RegistryAgent> observer_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<BLoad> loads_ ZEZE_GUARDED_BY(mutex_);
};

TEST_F(ProviderLoadTest, ReportsHowManyUsersItHas) {
  servers_.push_back(std::make_unique<DemoServer>(
      registry_,
      testing::DemoOptions{.provider = {.propose_max_online = 500, .max_online_new = 7}}));
  servers_[0]->provider().SetOnlineCounter(
      [] { return Provider::OnlineCount{.online = 12, .online_new = 3}; });
  Observe();

  servers_[0]->Start();

  const BLoad load = AwaitLoad(BLoad::eWorkFine);
  EXPECT_EQ(load.Online, 12);
  EXPECT_EQ(load.OnlineNew, 3);
  EXPECT_EQ(load.ProposeMaxOnline, 500);
  EXPECT_EQ(load.MaxOnlineNew, 7);
}

TEST_F(ProviderLoadTest, ShedsByImportanceWhenWorkersDoNotFollow) {
  Observe();
  DemoServer& server = StartBoth({.worker_threads = 1,
                                  .provider = {.overload_threshold = std::chrono::milliseconds(300),
                                               .overload = std::chrono::milliseconds(600)}});
  const std::int64_t ann = linkd_->AddClient("ann");
  EXPECT_TRUE(linkd_->Call<Optional>(ann, {}).ok());
  const std::int64_t blocking = linkd_->Request<Wait>(ann, {.text = "x"});
  server.game.gate.AwaitWaiting(1);

  AwaitLoad(BLoad::eThreshold);
  EXPECT_EQ(linkd_->Call<Optional>(ann, {}).result_code, result_code::kBusy);
  AwaitLoad(BLoad::eOverload);
  EXPECT_EQ(linkd_->Call<Optional>(ann, {}).result_code, result_code::kBusy);
  EXPECT_EQ(linkd_->Call<Usual>(ann, {}).result_code, result_code::kBusy);
  EXPECT_EQ(server.provider().GetStatistics().shed, 3);
  // What is never shed waits for its turn.
  const std::int64_t important = linkd_->Request<Echo>(ann, {.text = "important"});
  EXPECT_TRUE(linkd_->Call<EchoDirect>(ann, {}).ok());
  EXPECT_THAT(linkd_->Answers<Echo>(ann, important), IsEmpty());

  server.game.gate.Open();
  EXPECT_EQ(linkd_->AwaitAnswer<Echo>(ann, important)->result.text, "important");
  EXPECT_TRUE(linkd_->AwaitAnswer<Wait>(ann, blocking)->ok());
  AwaitLoad(BLoad::eWorkFine);
  EXPECT_TRUE(linkd_->Call<Usual>(ann, {}).ok());
}

// Section 9, defect 23: what waits for one client is bounded, and so is what waits for all.
TEST_F(ProviderLoadTest, OneClientCannotFillTheQueue) {
  DemoServer& server = StartBoth({.provider = {.client_requests_max = 10}});
  const std::int64_t ann = linkd_->AddClient("ann");
  const std::int64_t first = linkd_->Request<Wait>(ann, {.text = "x"});
  server.game.gate.AwaitWaiting(1);

  std::vector<std::int64_t> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(linkd_->Request<Echo>(ann, {}));
  linkd_->Send<Note>(ann, {});
  ASSERT_EQ(linkd_->AwaitAnswer<Echo>(ann, requests.back())->result_code, result_code::kBusy);
  EXPECT_TRUE(linkd_->Call<Echo>(linkd_->AddClient("bob"), {}).ok());

  server.game.gate.Open();
  EXPECT_TRUE(linkd_->AwaitAnswer<Wait>(ann, first)->ok());
  int busy = 0;
  for (const std::int64_t request : requests) {
    const auto answer = linkd_->AwaitAnswer<Echo>(ann, request);
    if (answer->result_code == result_code::kBusy) ++busy;
  }
  EXPECT_EQ(busy, 11);
  EXPECT_EQ(server.provider().GetStatistics().refused, 12);
  EXPECT_THAT(server.game.notes(), IsEmpty());
  EXPECT_TRUE(linkd_->Call<Echo>(ann, {}).ok());
}

TEST_F(ProviderLoadTest, AllClientsTogetherAreBounded) {
  DemoServer& server = StartBoth({.provider = {.requests_max = 3}});
  std::vector<std::int64_t> clients;
  std::vector<std::int64_t> requests;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(linkd_->AddClient("c" + std::to_string(i)));
    requests.push_back(linkd_->Request<Wait>(clients.back(), {}));
  }
  server.game.gate.AwaitWaiting(3);

  EXPECT_EQ(linkd_->Call<Echo>(linkd_->AddClient("ann"), {}).result_code, result_code::kBusy);

  server.game.gate.Open();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_TRUE(linkd_->AwaitAnswer<Wait>(clients[i], requests[i])->ok());
  }
}

// Section 9, defect 19: busy answers are whole frames, so that what comes behind them is read.
TEST_F(ProviderLoadTest, ABusyAnswerIsAWholeFrame) {
  DemoServer& server = StartBoth({.provider = {.client_requests_max = 1}});
  const std::int64_t ann = linkd_->AddClient("ann");
  linkd_->Request<Wait>(ann, {});
  server.game.gate.AwaitWaiting(1);

  linkd_->Call<Echo>(ann, {});

  const std::string frame = linkd_->client(ann).frames.back();
  std::string_view stream = frame;
  const auto raw = TakeFrame(stream, frame.size());
  ASSERT_TRUE(raw.ok() && raw.value());
  EXPECT_TRUE(stream.empty());
  EXPECT_EQ(raw.value()->module_id, Echo::kModuleId);
  EXPECT_EQ(ParseFrame(*raw.value()).value().result_code, result_code::kBusy);
}

}  // namespace
}  // namespace zeze::arch
