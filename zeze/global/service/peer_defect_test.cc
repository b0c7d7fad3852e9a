// What Zeze 1.6 does wrong around Global, by its number in the list of known defects, and that it
// does not happen here. Number 12 is in the tests of the daemon.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/name_hash.h"
#include "zeze/global/service/testing/small_cluster.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/frame.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {
namespace {

using testing::Global;
using testing::Server;
using zeze::testing::RawClient;

std::int64_t AwaitRead(Server& server, std::int64_t key) {
  while (true) {
    if (const std::optional<std::int64_t> seen = server.Read(key)) return *seen;
    std::this_thread::yield();
  }
}

// A server that says what the test tells it to.
class WireServer {
 public:
  explicit WireServer(Global& global) : client_(global.service().address()) {}

  std::uint32_t LogIn(std::int32_t server_id, std::int64_t epoch, std::int64_t start_term,
                      std::vector<HeldRight> rights = {}, std::int32_t shard = 0) {
    const wire::FencedLoginArgument argument{.server_id = server_id,
                                             .hash_index = shard,
                                             .epoch = epoch,
                                             .start_term = start_term,
                                             .rights = std::move(rights)};
    client_.Send(RawClient::RequestFrame<wire::FencedLogin>(1, argument));
    const std::optional<Frame> answer = client_.ReadFrame();
    if (!answer) return ~0U;
    wire::FencedLoginResult result;
    ByteReader in(answer->payload);
    result.Decode(in);
    return result.outcome;
  }
  void Send(const std::string& bytes) { client_.Send(bytes); }
  std::string Acquire(std::int64_t session, std::string_view key, Right right) {
    return RawClient::RequestFrame<wire::Acquire>(
        session, wire::KeyState{.key = key, .state = static_cast<std::uint32_t>(right)});
  }
  std::optional<Frame> Read() { return client_.ReadFrame(); }
  // The next message of that kind. Global hears of it meanwhile.
  template <typename Protocol>
  std::optional<Frame> Await() {
    while (true) {
      client_.Send(RawClient::RequestFrame<wire::KeepAlive>(1, {}));
      std::optional<Frame> frame = Read();
      if (!frame || frame->protocol_id == Protocol::kDescriptor.protocol_id) return frame;
    }
  }

 private:
  RawClient client_;
};

TEST(PeerDefect, No1ARestartedGlobalGrantsNothingThatSomebodyHolds) {
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<Global>(database, "g1");
  const std::uint16_t port = global->port();
  Server a(database, 1, port);
  EXPECT_EQ(0, a.Add(1, 5));  // Dirty.
  global = nullptr;
  global = std::make_unique<Global>(database, "g2", port);

  Server b(database, 2, port);
  EXPECT_EQ(0, b.Add(1, 1));
  EXPECT_EQ(6, AwaitRead(a, 1));
}

TEST(PeerDefect, No2AServerWhoseRightsWereTakenAwayIsNeverLetInAgain) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  EXPECT_EQ(0, a.Add(1, 5));
  EXPECT_TRUE(a.engine().CheckpointNow().ok());
  const std::int64_t term = global.service().GetStatus().term;

  EXPECT_TRUE(global.service().CleanUp(1));
  while (!a.fenced()) std::this_thread::yield();

  WireServer zombie(global);
  EXPECT_EQ(static_cast<std::uint32_t>(LoginOutcome::kFenced), zombie.LogIn(1, 1, term));
  EXPECT_NE(0, a.Add(1, 1));
  a.Crash();
}

TEST(PeerDefect, No3AnOrderlyStopSavesBeforeItGivesItsRightsBack) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server b(database, 2, global.port());
  for (std::int64_t round = 1; round <= 5; ++round) {
    {
      Server a(database, 1, global.port());
      for (std::int64_t key = 0; key < 200; ++key) {
        while (a.Add(key, 1) != 0) std::this_thread::yield();  // A session may be lost.
      }
    }
    for (std::int64_t key = 0; key < 200; ++key) EXPECT_EQ(round, AwaitRead(b, key));
  }
}

TEST(PeerDefect, No5And6AServerThatFailsInTheMiddleOfAnythingLeavesNoKeyBehind) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  const std::int64_t term = [&] {
    global.AwaitServing();
    return global.service().GetStatus().term;
  }();
  const std::string key("\7\0\0\0\2", 5);  // Key 1 of the accounts, as all servers write it.
  for (const std::int32_t id : {8, 9}) {
    ASSERT_TRUE(
        OpenMemoryStorage(database)->fence()->Start({.server_id = id, .holder = "test"}).ok());
  }
  auto holder = std::make_unique<WireServer>(global);
  ASSERT_EQ(0U, holder->LogIn(8, 1, term));
  holder->Send(holder->Acquire(2, key, Right::kModify));
  ASSERT_TRUE(holder->Read());
  WireServer asker(global);
  ASSERT_EQ(0U, asker.LogIn(9, 1, term));
  asker.Send(asker.Acquire(2, key, Right::kModify));
  // The holder gets the question, says nonsense, and is gone.
  ASSERT_TRUE(holder->Read());
  holder->Send(std::string(64, '\xff'));
  holder = nullptr;

  // It waits, is refused perhaps, but not stuck; and the key is free when the holder is out.
  std::optional<Frame> answer = asker.Await<wire::Acquire>();
  for (std::int64_t session = 3; answer && answer->result_code != 0; ++session) {
    asker.Send(asker.Acquire(session, key, Right::kModify));
    answer = asker.Await<wire::Acquire>();
  }
  EXPECT_TRUE(answer);
}

// The peer does not look at the shard of a login.
TEST(PeerDefect, ALoginForAnotherShardChangesNothing) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  EXPECT_EQ(0, a.Add(1, 5));
  const std::int64_t term = global.service().GetStatus().term;

  WireServer stranger(global);
  EXPECT_EQ(static_cast<std::uint32_t>(LoginOutcome::kRefused),
            stranger.LogIn(1, 999, term, {}, 1));
  WireServer old_stranger(global);
  old_stranger.Send(RawClient::RequestFrame<wire::Login>(
      1, wire::LoginArgument{.server_id = 1, .hash_index = 1}));
  const std::optional<Frame> answer = old_stranger.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(wire::kLoginRefused, answer->result_code);

  EXPECT_EQ(0, a.Add(2, 5));
  EXPECT_EQ(5, a.Read(1));
  EXPECT_FALSE(a.fenced());
}

TEST(PeerDefect, No7AReaderLeavesTheWriterACopy) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server a(database, 1, global.port());
  Server b(database, 2, global.port());
  EXPECT_EQ(0, a.Add(1, 5));
  EXPECT_EQ(5, b.Read(1));

  const std::uint64_t loads = a.engine().statistics().loads;
  EXPECT_EQ(5, a.Read(1));
  EXPECT_EQ(loads, a.engine().statistics().loads);
}

TEST(PeerDefect, No8AServerThatIsBackIsAskedAtOnceAndAFailureConcernsOneKey) {
  const auto database = NewMemoryDatabase();
  auto global = std::make_unique<Global>(database, "g1");
  const std::uint16_t port = global->port();
  Server a(database, 1, port);
  Server b(database, 2, port);
  EXPECT_EQ(0, a.Add(1, 5));
  global = nullptr;
  EXPECT_EQ(std::nullopt, b.Read(1));
  global = std::make_unique<Global>(database, "g2", port);
  global->AwaitServing();

  // No time of punishment: both are in, so both are served.
  const auto begin = SystemClock().Now();
  EXPECT_EQ(5, AwaitRead(b, 1));
  EXPECT_EQ(0, b.Add(2, 1));
  EXPECT_LT(SystemClock().Now() - begin, std::chrono::seconds(2));
}

TEST(PeerDefect, No9ACrashedServerStartsAtOnceAndItsRecordsAreFreeWithItsLease) {
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  auto a = std::make_unique<Server>(database, 1, global.port());
  EXPECT_EQ(0, a->Add(1, 5));
  EXPECT_TRUE(a->engine().CheckpointNow().ok());
  a->Crash();

  // The connection of the old process may not even be noticed dead: no mark to be cleared by hand.
  const auto begin = SystemClock().Now();
  Server again(database, 1, global.port());
  EXPECT_EQ(5, AwaitRead(again, 1));
  EXPECT_LT(SystemClock().Now() - begin, testing::kLease.free_after() * 3);
}

TEST(PeerDefect, No10TheLossOfOneGlobalStopsItsKeysOnly) {
  const auto database = NewMemoryDatabase();
  constexpr std::chrono::nanoseconds kNoOldPeers(0);
  constexpr std::int32_t kShards = 2;  // Each says it: either may be the first to start.
  auto first =
      std::make_unique<Global>(database, "g1", 0, 0, kNoOldPeers, testing::kLease, kShards);
  Global second(database, "g2", 0, 1, kNoOldPeers, testing::kLease, kShards);
  const std::vector<std::uint16_t> ports = {first->port(), second.port()};
  Server a(database, 1, ports);
  Server b(database, 2, ports);
  std::vector<std::int64_t> of_second;
  for (std::int64_t key = 0; key < 100; ++key) {
    ByteWriter global_key;
    global_key.WriteInt4(7);
    global_key.WriteLong(key);
    if (RoutingHashOfBytes(global_key.view()) % 2 == 1) of_second.push_back(key);
    EXPECT_EQ(0, a.Add(key, key));
  }
  ASSERT_FALSE(of_second.empty());

  first = nullptr;
  for (const std::int64_t key : of_second) EXPECT_EQ(key, b.Read(key));
  first = std::make_unique<Global>(database, "g3", ports[0], 0);
  for (std::int64_t key = 0; key < 100; ++key) EXPECT_EQ(key, AwaitRead(b, key));
}

}  // namespace
}  // namespace zeze::global
