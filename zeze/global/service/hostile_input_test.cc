// Strangers at Global's port: whatever they send, its memory stays bounded, and honest servers go
// on.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/testing/process_resources.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/testing/small_cluster.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/frame.h"
#include "zeze/net/testing/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"

namespace zeze::global {
namespace {

using testing::Global;
using testing::Server;
using zeze::testing::MemoryInUse;
using zeze::testing::RaiseOpenFiles;
using zeze::testing::RawClient;

class HostileInput : public ::testing::Test {
 protected:
  // An honest server uses records all the time, with rights that come and go.
  void Honest() {
    for (std::int64_t key = 0; key < 20; ++key) {
      // What keeps Global busy for a moment may cost a session, not more.
      while (a_.Add(key, 1) != 0) std::this_thread::yield();
      while (b_.Add(key, 1) != 0) std::this_thread::yield();
    }
  }
  NetAddress address() { return global_.service().address(); }

  const std::shared_ptr<MemoryDatabase> database_ = NewMemoryDatabase();
  Global global_{database_, "g1"};
  Server a_{database_, 1, global_.port()};
  Server b_{database_, 2, global_.port()};
};

TEST_F(HostileInput, MessagesOfThePeersOwnModulesAreIgnored) {
  RawClient peer(address());
  zeze::testing::ExpectPeerMessagesAreHarmless(peer);
  Honest();
}

TEST_F(HostileInput, NoiseAndMutatedMessagesCloseTheirConnectionOnly) {
  std::mt19937 random(7);  // NOLINT: the same every time.
  const std::vector<std::string> valid = {
      RawClient::RequestFrame<wire::FencedLogin>(
          1, {.server_id = 5, .epoch = 1, .start_term = 1, .rights = {{"abc", Right::kModify}}}),
      RawClient::RequestFrame<wire::Acquire>(2, {.key = "some key", .state = 2}),
      RawClient::RequestFrame<wire::Login>(3, {.server_id = 6}),
      RawClient::RequestFrame<wire::Cleanup>(4, {.server_id = 1, .secure_key = "x"}),
      RawClient::RequestFrame<wire::NormalClose>(5, {})};
  for (int round = 0; round < 600; ++round) {
    RawClient stranger(address());
    std::string bytes = valid[random() % valid.size()];
    const std::size_t changes = random() % 8;
    for (std::size_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (round % 3 == 0) {
      for (char& byte : bytes) byte = static_cast<char>(random());
    }
    stranger.Send(bytes.substr(0, 1 + random() % bytes.size()));
    if (round % 100 == 0) Honest();
  }
  Honest();
}

// It would supersede the real server, which was then refused until Global restarted.
TEST_F(HostileInput, AStrangersLoginAsAServerChangesNothing) {
  for (const std::int64_t epoch : {999, 1}) {
    RawClient stranger(address());
    stranger.Send(RawClient::RequestFrame<wire::FencedLogin>(
        1, {.server_id = 1, .epoch = epoch, .start_term = 1, .rights = {}}));
    const std::optional<Frame> answer = stranger.ReadFrame();
    ASSERT_TRUE(answer);
    wire::FencedLoginResult result;
    ByteReader in(answer->payload);
    result.Decode(in);
    EXPECT_EQ(static_cast<std::uint32_t>(LoginOutcome::kRefused), result.outcome) << result.text;
    EXPECT_NE(std::string::npos, result.text.find("as server 1")) << result.text;
    Honest();
  }
  // Its next connection and its next process are accepted too.
  a_.Crash();
  Server again(database_, 1, global_.port());
  while (again.Add(1, 1) != 0) std::this_thread::yield();
}

TEST_F(HostileInput, AClaimedSizeCostsNothing) {
  const std::size_t before = MemoryInUse();
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(std::make_unique<RawClient>(address()));
    ByteWriter header;
    header.WriteInt4(0);
    header.WriteInt4(wire::Acquire::kDescriptor.protocol_id);
    header.WriteInt4(i % 2 == 0 ? 0x7fffffff : (2 << 20) - 1);  // 2 GB; and the most allowed.
    strangers.back()->Send(header.view());
  }
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{64} << 20));
}

TEST_F(HostileInput, RightsThatAreNamedWithoutEndAreNotKept) {
  const std::size_t before = MemoryInUse();
  wire::FencedLoginArgument part{.server_id = 9, .epoch = 1, .last = false, .rights = {}};
  part.rights.resize(500'000);  // Of empty keys: the most for a byte.
  const std::string bytes = RawClient::RequestFrame<wire::FencedLogin>(1, part);
  bool closed = false;
  RawClient stranger(address());
  for (int i = 0; i < 1000 && !closed; ++i) {
    closed = !stranger.Send(bytes) || !stranger.ReadFrame();
  }
  EXPECT_TRUE(closed);
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{1} << 30));
}

TEST_F(HostileInput, LongKeysThatAreNamedWithoutEndAreNotKept) {
  wire::FencedLoginArgument part{.server_id = 9, .epoch = 1, .last = false, .rights = {}};
  part.rights.push_back({.key = std::string(2'000'000, 'k'), .right = Right::kShare});
  const std::string bytes = RawClient::RequestFrame<wire::FencedLogin>(1, part);
  bool closed = false;
  RawClient stranger(address());
  int sent = 0;
  for (; sent < 1000 && !closed; ++sent) closed = !stranger.Send(bytes) || !stranger.ReadFrame();
  EXPECT_TRUE(closed);
  EXPECT_LT(sent, 140) << "parts of 2 MB";
  Honest();
}

TEST_F(HostileInput, TenThousandIdleConnectionsDoNotKeepAnybodyOut) {
  const std::size_t files = RaiseOpenFiles();
  constexpr std::size_t kConnections = 10'000;
  const std::size_t before = MemoryInUse();
  std::vector<std::unique_ptr<RawClient>> idle;
  for (std::size_t i = 0; i < kConnections && idle.size() + 1000 < files; ++i) {
    idle.push_back(std::make_unique<RawClient>(address()));
    if (i % 3 == 0) idle.back()->Send(std::string(7, '\0'));  // Half of a header.
    if (i % 1000 == 0) Honest();
  }
  Server late(database_, 3, global_.port());
  EXPECT_EQ(0, late.Add(1, 1));
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{256} << 20));
}

TEST_F(HostileInput, WhoDoesNotReadItsAnswersIsClosed) {
  const std::size_t before = MemoryInUse();
  RawClient slow(address());
  const std::string request = RawClient::RequestFrame<wire::Acquire>(
      1, {.key = std::string_view("0123456789012345678901234567890123456789"), .state = 1});
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += request;
  for (int i = 0; i < 500 && slow.TrySend(many); ++i) {
  }
  Honest();
  EXPECT_LT(MemoryInUse(), before + (std::size_t{256} << 20));
}

}  // namespace
}  // namespace zeze::global
