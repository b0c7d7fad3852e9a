// Strangers at the service manager's port: whatever they send, its memory stays bounded, and honest
// servers go on.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/registry/service/wire.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"

namespace zeze::registry {
namespace {

using testing::MemoryInUse;
using testing::RaiseOpenFiles;
using testing::RawClient;

class RegistryHostileInput : public ::testing::Test {
 protected:
  RegistryHostileInput()
      : pool_({.name = "pool", .thread_count = 2}),
        io_({.name = "registry-io"}),
        agent_io_({.name = "agent-io"}),
        storage_(OpenMemoryStorage()),
        service_(io_, *storage_, pool_, Options()) {
    EXPECT_TRUE(service_.Start().ok());
    honest_ = StartAgent();
  }
  ~RegistryHostileInput() override {
    honest_.reset();
    service_.Stop();
  }

  static RegistryServiceOptions Options() {
    RegistryServiceOptions options;
    options.acceptors = {{.ip = "127.0.0.1", .port = 0}};
    // Nobody gets in because somebody else's time is over.
    options.service.handshake_timeout = std::chrono::hours(1);
    return options;
  }
  std::unique_ptr<RegistryAgent> StartAgent() {
    RegistryAgentOptions options;
    options.connector = {.host = "127.0.0.1",
                         .port = service_.address().port(),
                         .first_delay = std::chrono::milliseconds(20),
                         .delay_max = std::chrono::milliseconds(50)};
    options.id_block = 1;
    auto agent = std::make_unique<RegistryAgent>(agent_io_, pool_, options);
    EXPECT_TRUE(agent->Start().ok());
    return agent;
  }
  void Honest() { Work(*honest_); }
  void Work(RegistryAgent& agent) {
    for (int i = 0; i < 10; ++i) {
      const Result<std::int64_t> id = agent.NextId("order");
      ASSERT_TRUE(id.ok()) << id.error().message();
      EXPECT_TRUE(ids_.insert(id.value()).second);
    }
    EXPECT_TRUE(agent.Register({.name = "Shop", .identity = "1"}).ok());
    const Result<void> settled = agent.AwaitSettled(std::chrono::seconds(30));
    EXPECT_TRUE(settled.ok()) << settled.error().message();
  }
  NetAddress address() const { return service_.address(); }

  // A stranger that has ended the handshake.
  std::unique_ptr<RawClient> Connect() const {
    auto client = std::make_unique<RawClient>(address());
    EXPECT_TRUE(client->EndHandshake());
    return client;
  }

  ThreadPool pool_;
  IoThreads io_;
  IoThreads agent_io_;
  std::unique_ptr<Storage> storage_;
  RegistryService service_;
  std::unique_ptr<RegistryAgent> honest_;
  std::set<std::int64_t> ids_;
};

// An agent of Zeze 1.6 sends Threading.KeepAlive every 10 s.
TEST_F(RegistryHostileInput, MessagesOfThePeersOwnModulesAreIgnored) {
  const auto peer = Connect();
  zeze::testing::ExpectPeerMessagesAreHarmless(*peer);
  Honest();
}

TEST_F(RegistryHostileInput, NoiseAndMutatedMessagesCloseTheirConnectionOnly) {
  std::mt19937 random(7);  // NOLINT: the same every time.
  const std::vector<std::string> valid = {
      RawClient::RequestFrame<wire::EditService>(
          1, {.edit = {.add = {{.name = "Shop", .identity = "2"}}}}),
      RawClient::RequestFrame<wire::Subscribe>(2, {.subscriptions = {{.name = "Shop"}}}),
      RawClient::RequestFrame<wire::AllocateId>(3, {.name = "order", .count = 5}),
      RawClient::RequestFrame<wire::NormalClose>(4, {})};
  for (int round = 0; round < 400; ++round) {
    const auto stranger = Connect();
    std::string bytes = valid[random() % valid.size()];
    const std::size_t changes = random() % 8;
    for (std::size_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (round % 3 == 0) {
      for (char& byte : bytes) byte = static_cast<char>(random());
    }
    stranger->Send(bytes.substr(0, 1 + random() % bytes.size()));
    if (round % 100 == 0) Honest();
  }
  Honest();
}

TEST_F(RegistryHostileInput, AClaimedSizeCostsNothing) {
  const std::size_t before = MemoryInUse();
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(Connect());
    ByteWriter header;
    header.WriteInt4(wire::EditService::kDescriptor.module_id);
    header.WriteInt4(wire::EditService::kDescriptor.protocol_id);
    header.WriteInt4(i % 2 == 0 ? 0x7fffffff : (2 << 20) - 1);  // 2 GB; and the most allowed.
    strangers.back()->Send(header.view());
  }
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{64} << 20));
}

TEST_F(RegistryHostileInput, TenThousandIdleConnectionsDoNotKeepAnybodyOut) {
  const std::size_t files = RaiseOpenFiles();
  const std::size_t before = MemoryInUse();
  std::vector<std::unique_ptr<RawClient>> idle;
  for (std::size_t i = 0; i < 10'000 && idle.size() + 1000 < files; ++i) {
    idle.push_back(std::make_unique<RawClient>(address()));  // None ends its handshake.
    if (i % 3 == 0) idle.back()->Send(std::string(7, '\0'));
    if (i % 1000 == 0) Honest();
  }
  const auto late = StartAgent();
  Work(*late);
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{256} << 20));
}

TEST_F(RegistryHostileInput, WhoDoesNotReadItsAnswersIsClosed) {
  const std::size_t before = MemoryInUse();
  const auto slow = Connect();
  const std::string request =
      RawClient::RequestFrame<wire::AllocateId>(1, {.name = "stranger", .count = 1});
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += request;
  for (int i = 0; i < 100 && slow->TrySend(many); ++i) {
  }
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{256} << 20));
}

}  // namespace
}  // namespace zeze::registry
