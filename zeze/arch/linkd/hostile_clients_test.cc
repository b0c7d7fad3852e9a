// Strangers at the port for clients: whatever they do is refused, each thing with a counter of its
// own, memory stays bounded, and honest clients hardly notice.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/clock.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/zstd_stream.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FrameOf;
using testing::Gateway;
using testing::Received;
using testing::TestClient;
using testing::TestOptions;
using testing::TestProvider;
using zeze::testing::MemoryInUse;
using zeze::testing::RawClient;

constexpr std::int32_t kShop = 100;

// A header of a frame that claims so many bytes.
std::string Header(std::int32_t module, std::uint32_t bytes) {
  ByteWriter header;
  header.WriteInt4(module);
  header.WriteInt4(5);
  header.WriteInt4(static_cast<std::int32_t>(bytes));
  return std::string(header.view());
}

class HostileClients : public ::testing::Test {
 protected:
  void Start(const LinkdOptions& options, Clock* clock = &SystemClock()) {
    gateway_ = std::make_unique<Gateway>(options, IoThreads::Options{.clock = clock});
    provider_ = std::make_unique<TestProvider>(*gateway_, "1");
    provider_->Offer({kShop});
    honest_ = std::make_unique<TestClient>(*gateway_, "honest");
  }
  ~HostileClients() override { honest_ = nullptr; }

  // Somebody who plays on.
  void Honest() {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(honest_->Request(kShop, 5, "x"));
      ASSERT_EQ("x", honest_->Answer());
    }
  }
  std::uint64_t refused(Refusal refusal) { return gateway_->refused(refusal); }
  // Reads until the gateway has closed the connection.
  static void AwaitClosed(TestClient& client) {
    while (client.Receive().has_value()) {
    }
  }

  zeze::testing::ManualClock clock_;  // Of tests that move it; outlives the gateway.
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<TestProvider> provider_;
  std::unique_ptr<TestClient> honest_;
};

TEST_F(HostileClients, OversizeFramesAreRefusedByTheirHeader) {
  Start(TestOptions());
  const std::size_t before = MemoryInUse();
  std::vector<std::unique_ptr<TestClient>> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(std::make_unique<TestClient>(*gateway_, "stranger"));
    strangers.back()->raw().Send(Header(kShop, i % 2 == 0 ? 0x7fffffff : (64 << 10) + 1));
  }
  for (const auto& stranger : strangers) AwaitClosed(*stranger);
  EXPECT_EQ(100U, refused(Refusal::kOversizeFrame));
  EXPECT_LT(MemoryInUse(), before + (std::size_t{64} << 20));
  Honest();
}

TEST_F(HostileClients, BeforeAuthenticationFramesAreSmall) {
  Start(TestOptions());
  TestClient stranger(*gateway_);
  ASSERT_TRUE(stranger.EndHandshake());
  stranger.raw().Send(Header(kShop, 4097));
  AwaitClosed(stranger);
  EXPECT_EQ(1U, refused(Refusal::kOversizeFrame));

  TestClient chatty(*gateway_);
  ASSERT_TRUE(chatty.EndHandshake());
  for (int i = 0; i < 500; ++i) {
    chatty.raw().Send(
        FrameOf(0, kKeepAliveId, std::string_view("\0", 1), FrameFamily::kRequest, i));
  }
  AwaitClosed(chatty);
  EXPECT_EQ(1U, refused(Refusal::kUnauthenticatedBytes));
  Honest();
}

TEST_F(HostileClients, MalformedFramesCloseTheirConnectionOnly) {
  Start(TestOptions());
  std::mt19937 random(7);  // NOLINT: the same every time.
  const std::vector<std::string> valid = {
      FrameOf(kShop, 5, "hello"), FrameOf(kShop, 5, "hello", FrameFamily::kRequest, 7),
      FrameOf(11900, 5, "hello"), FrameOf(0, kKeepAliveId, "x", FrameFamily::kRequest, 7)};
  for (int round = 0; round < 300; ++round) {
    std::string bytes = valid[random() % valid.size()];
    const std::size_t changes = 1 + random() % 8;
    for (std::size_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (round % 2 == 0) {
      TestClient stranger(*gateway_, "stranger");
      stranger.raw().Send(bytes);
    } else {
      RawClient stranger(gateway_->linkd.client_address());
      stranger.Send(bytes);
    }
    if (round % 100 == 0) Honest();
  }
  Honest();
}

TEST_F(HostileClients, MalformedFramesAreCounted) {
  Start(TestOptions());
  for (int i = 0; i < 10; ++i) {
    TestClient stranger(*gateway_, "stranger");
    stranger.raw().Send(Header(kShop, 1) + "\x1f");  // There is no such family.
    AwaitClosed(stranger);
  }
  EXPECT_EQ(10U, refused(Refusal::kMalformed));
  RawClient early(gateway_->linkd.client_address());
  early.Send(Header(kShop, 4097));  // Already as the handshake begins.
  while (!early.ReadBytes(1).empty()) {
  }
  EXPECT_EQ(1U, refused(Refusal::kOversizeFrame));
  EXPECT_EQ(10U, refused(Refusal::kMalformed));
  Honest();
}

TEST_F(HostileClients, HandshakesThatStallEndInTime) {
  Start(TestOptions(), &clock_);
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(std::make_unique<RawClient>(gateway_->linkd.client_address()));
    if (i % 2 == 0) strangers.back()->Send(std::string(7, '\0'));
  }
  // Whoever has the gateway's offer has a deadline.
  for (const auto& stranger : strangers) ASSERT_FALSE(stranger->ReadBytes(1).empty());
  clock_.Advance(seconds(10));
  for (const auto& stranger : strangers) {
    while (!stranger->ReadBytes(1).empty()) {
    }
  }
  EXPECT_EQ(50U, refused(Refusal::kHandshakeTimeout));
  Honest();
}

TEST_F(HostileClients, SlowlorisHasTenSecondsForHandshakeAndAuthenticationTogether) {
  Start(TestOptions(), &clock_);
  std::vector<std::unique_ptr<TestClient>> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(std::make_unique<TestClient>(*gateway_));
    if (i % 2 == 0) clock_.Advance(milliseconds(10));
  }
  for (const auto& stranger : strangers) ASSERT_TRUE(stranger->EndHandshake());
  ASSERT_TRUE(gateway_->AwaitSessions(51));
  clock_.Advance(seconds(9));
  // Byte by byte: every valid byte is progress, and still there are ten seconds in all.
  for (const auto& stranger : strangers) stranger->raw().Send(std::string(3, '\0'));
  Honest();
  EXPECT_EQ(0U, refused(Refusal::kAuthTimeout));
  clock_.Advance(seconds(1));
  for (const auto& stranger : strangers) AwaitClosed(*stranger);
  EXPECT_EQ(50U, refused(Refusal::kAuthTimeout));
  Honest();
}

TEST_F(HostileClients, FloodsAreAnsweredBusyThenClosedAndTheirAddressBanned) {
  LinkdOptions options = TestOptions();
  options.limits.session_messages = {.per_second = 50, .burst = 100};
  options.limits.refused_messages = {.per_second = 10, .burst = 200};
  options.limits.address.exempt = {};
  options.limits.address.connections_max = 0;
  options.limits.address.attempts = {};
  options.limits.address.strikes = {.per_second = 0.001, .burst = 2};
  Start(options, &clock_);
  for (int i = 0; i < 3; ++i) {
    TestClient stranger(*gateway_, "stranger");
    std::string many;
    for (int k = 0; k < 1000; ++k) many += FrameOf(kShop, 5, "x", FrameFamily::kRequest, k);
    stranger.raw().TrySend(many);
    int busy = 0;
    int served = 0;
    while (const std::optional<Received> got = stranger.Receive()) {
      if (got->family != FrameFamily::kResponse) continue;
      ++(got->code == -19 ? busy : served);
      EXPECT_TRUE(got->code == 0 || got->code == -19) << got->code;
    }
    EXPECT_LE(served, 100);  // What was served before the end may come too late for its client.
    EXPECT_EQ(200, busy);
  }
  EXPECT_EQ(603U, refused(Refusal::kSessionRate));
  EXPECT_EQ(3U, refused(Refusal::kFlood));
  ASSERT_EQ(1U, gateway_->linkd.Bans().size());
  RawClient again(gateway_->linkd.client_address());
  EXPECT_TRUE(again.ReadBytes(1).empty());
  EXPECT_EQ(1U, refused(Refusal::kBanned));
  Honest();
}

TEST_F(HostileClients, KeepAlivesAreCountedToo) {
  LinkdOptions options = TestOptions();
  options.limits.session_messages = {.per_second = 50, .burst = 100};
  options.limits.refused_messages = {.per_second = 10, .burst = 200};
  Start(options, &clock_);
  TestClient stranger(*gateway_, "stranger");
  std::string many;
  for (int k = 0; k < 1000; ++k) {
    many += FrameOf(0, kKeepAliveId, std::string_view("\0", 1), FrameFamily::kRequest, k);
  }
  stranger.raw().TrySend(many);
  AwaitClosed(stranger);
  EXPECT_EQ(201U, refused(Refusal::kSessionRate));
  EXPECT_EQ(1U, refused(Refusal::kFlood));
}

TEST_F(HostileClients, EveryLimitOfMessagesHasItsCounter) {
  LinkdOptions options = TestOptions();
  options.limits.session_bytes = {.per_second = 1, .burst = 20'000};
  options.limits.account_messages = {.per_second = 0.001, .burst = 60};
  options.limits.address.exempt = {};
  options.limits.address.connections_max = 0;
  options.limits.address.attempts = {};
  options.limits.address.messages = {.per_second = 0.001, .burst = 150};
  options.limits.in_flight_max = 5;
  options.limits.protocols[ProtocolTypeId(kShop, 6)] = {.bytes_max = 100,
                                                        .rate = {.per_second = 0.001, .burst = 3}};
  Start(options);
  TestProvider silent(*gateway_, "2", 0, false);
  silent.Offer({300});
  {
    TestClient client(*gateway_, "bytes");
    client.Note(kShop, 5, std::string(15'000, 'x'));
    client.Note(kShop, 5, std::string(15'000, 'x'));
    client.Settle();
    EXPECT_EQ(1U, refused(Refusal::kSessionBytes));
  }
  {
    TestClient client(*gateway_, "protocol");
    for (int i = 0; i < 5; ++i) client.Note(kShop, 6, "x");
    client.Settle();
    EXPECT_EQ(2U, refused(Refusal::kProtocolRate));
    client.Note(kShop, 6, std::string(101, 'x'));
    AwaitClosed(client);
    EXPECT_EQ(1U, refused(Refusal::kOversizeProtocol));
  }
  {
    TestClient client(*gateway_, "flight");
    for (int i = 0; i < 7; ++i) client.Request(300, 5, "x", i);
    client.Settle();
    EXPECT_EQ(2U, refused(Refusal::kInFlight));
  }
  {
    TestClient one(*gateway_, "account");
    TestClient two(*gateway_, "account");
    for (int i = 0; i < 35; ++i) {
      one.Note(kShop, 5, "x");
      two.Note(kShop, 5, "x");
    }
    one.Settle();
    two.Settle();
    EXPECT_EQ(10U, refused(Refusal::kAccountRate));
  }
  {
    TestClient client(*gateway_, "address");
    for (int i = 0; i < 59; ++i) client.Note(kShop, 5, "x");
    client.Settle();
    TestClient more(*gateway_, "address, too");
    for (int i = 0; i < 59; ++i) more.Note(kShop, 5, "x");
    more.Settle();
    // Of 150: one of "bytes", six of "protocol", seven of "flight", sixty of "account", and these.
    EXPECT_EQ(42U, refused(Refusal::kAddressRate));
  }
}

TEST_F(HostileClients, AnsweredRequestsAreNotInFlight) {
  LinkdOptions options = TestOptions();
  options.limits.in_flight_max = 5;
  Start(options);
  for (int i = 0; i < 10; ++i) Honest();
  EXPECT_EQ(0U, refused(Refusal::kInFlight));
}

// Or a client whose answers were lost to a full pipe would have fewer requests at a time for ever.
TEST_F(HostileClients, RequestsWhoseAnswersAreDiscardedAreNotInFlight) {
  LinkdOptions options = TestOptions();
  options.limits.in_flight_max = 2;
  auto discard = std::make_shared<std::atomic<bool>>(true);
  options.limits.bandwidth = {
      .bytes_per_second = 1e9, .warn_ratio = 0, .decide = [discard](auto...) { return !*discard; }};
  Start(options);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    honest_->Request(kShop, 5, "x");
    ASSERT_TRUE(testing::Eventually([&] { return refused(Refusal::kBandwidth) == i; }));
  }

  *discard = false;
  Honest();

  EXPECT_EQ(0U, refused(Refusal::kInFlight));
}

TEST_F(HostileClients, TooManyConnectionsOfAnAddressAreRefused) {
  LinkdOptions options = TestOptions();
  options.limits.address.exempt = {};
  options.limits.address.connections_max = 10;
  options.limits.address.attempts = {.per_second = 0.001, .burst = 20};
  Start(options);
  {
    std::vector<std::unique_ptr<TestClient>> clients;
    for (int i = 0; i < 9; ++i) clients.push_back(std::make_unique<TestClient>(*gateway_, "c"));
    RawClient one_more(gateway_->linkd.client_address());
    EXPECT_TRUE(one_more.ReadBytes(1).empty());
    EXPECT_EQ(1U, refused(Refusal::kAddressConnections));
  }
  ASSERT_TRUE(gateway_->AwaitSessions(1));
  for (int i = 0; i < 9; ++i) TestClient(*gateway_, "c");
  RawClient too_often(gateway_->linkd.client_address());
  EXPECT_TRUE(too_often.ReadBytes(1).empty());
  EXPECT_EQ(1U, refused(Refusal::kAddressAttempts));
  Honest();
}

TEST_F(HostileClients, AfterAStartClientsComeOneAfterTheOther) {
  LinkdOptions options = TestOptions();
  options.limits.ramp = {.first = 10, .last = 10};
  options.limits.retry_hints = {.per_second = 0.001, .burst = 30};
  Start(options);
  int hinted = 0;
  int silent = 0;
  std::int32_t last = 0;
  for (int i = 0; i < 50; ++i) {
    TestClient client(*gateway_);
    if (!client.EndHandshake()) {
      ++silent;
      continue;
    }
    std::optional<Received> got = client.Receive();
    if (!got.has_value()) continue;
    // "retry after N ms", for clients that know no more; then the message for those that do.
    got = client.Receive();
    ASSERT_TRUE(got.has_value());
    Zeze::Builtin::LinkdAuth::BRetryAfter after;
    ByteReader in(got->payload);
    after.Decode(in);
    EXPECT_GT(after.milliseconds, last - 100);
    last = after.milliseconds;
    EXPECT_FALSE(client.Receive().has_value());
    ++hinted;
  }
  EXPECT_GT(hinted, 20);
  EXPECT_GT(silent, 5);
  EXPECT_GT(last, 1000);
  EXPECT_EQ(static_cast<std::uint64_t>(hinted), refused(Refusal::kRamp));
  EXPECT_EQ(static_cast<std::uint64_t>(silent), refused(Refusal::kRampSilent));
  Honest();
}

TEST_F(HostileClients, CompressionBombsAreRefused) {
  LinkdOptions options = TestOptions();
  options.clients.handshake->compress_to_server = CompressType::kZstd;
  gateway_ = std::make_unique<Gateway>(options);
  const std::size_t before = MemoryInUse();
  const auto send = [&](std::string_view compressed) {
    RawClient stranger(gateway_->linkd.client_address());
    const std::string header = stranger.ReadBytes(kFrameHeaderBytes);
    ASSERT_EQ(kFrameHeaderBytes, header.size());
    stranger.ReadBytes(static_cast<unsigned char>(header[8]));
    ByteWriter payload;
    ClientChoice choice;
    choice.compress_to_server = CompressType::kZstd;
    choice.Encode(payload);
    ByteWriter out;
    EncodeFrame({.protocol_id = kClientChoiceId, .payload = payload.view()}, out);
    ASSERT_TRUE(stranger.Send(out.view()));
    stranger.Send(compressed);
    while (!stranger.ReadBytes(1).empty()) {
    }
  };
  const auto bomb = [&](std::string_view content) {
    ZstdEncoder zstd;
    std::string wire;
    zstd.Write(content, wire);
    zstd.Flush(wire);
    send(wire);
  };
  std::string done;
  {
    ByteWriter out;
    EncodeFrame({.protocol_id = kClientDoneId, .payload = std::string_view("\0", 1)}, out);
    done = out.view();
  }
  for (int i = 0; i < 5; ++i) bomb(done + std::string(64 << 20, '\0'));
  for (int i = 0; i < 7; ++i) send("this is not compressed");
  // Of messages that are valid, each alone.
  std::string many = done;
  const std::string one =
      FrameOf(0, kKeepAliveId, std::string_view("\0", 1), FrameFamily::kRequest, 7);
  for (int i = 0; i < 30'000; ++i) many += one;
  bomb(many);
  // As many as are decoded at a time, or as many as may come before authentication.
  EXPECT_EQ(5U + 7U + 1U, refused(Refusal::kCompressionBomb) + refused(Refusal::kBadCompression) +
                              refused(Refusal::kUnauthenticatedBytes));
  EXPECT_EQ(7U, refused(Refusal::kBadCompression));
  EXPECT_GE(refused(Refusal::kCompressionBomb), 5U);
  EXPECT_LT(MemoryInUse(), before + (std::size_t{64} << 20));
}

// They are connected and not let in; their messages are compressed, and the answers to them.
TEST_F(HostileClients, StrangersCostLittleMemoryThoughCompressionIsOn) {
  LinkdOptions options = TestOptions();
  options.clients.handshake->compress_to_server = CompressType::kZstd;
  options.clients.handshake->compress_to_client = CompressType::kZstd;
  gateway_ = std::make_unique<Gateway>(options);
  std::string wire;
  {
    ByteWriter done;
    EncodeFrame({.protocol_id = kClientDoneId, .payload = std::string_view("\0", 1)}, done);
    ZstdEncoder zstd;
    zstd.Write(done.view(), wire);
    zstd.Write(FrameOf(0, kKeepAliveId, std::string_view("\0", 1), FrameFamily::kRequest, 7), wire);
    zstd.Flush(wire);
  }
  ByteWriter chosen;
  {
    ByteWriter payload;
    ClientChoice choice;
    choice.compress_to_server = CompressType::kZstd;
    choice.compress_to_client = CompressType::kZstd;
    choice.Encode(payload);
    EncodeFrame({.protocol_id = kClientChoiceId, .payload = payload.view()}, chosen);
  }
  std::vector<std::unique_ptr<RawClient>> strangers;
  const auto connect = [&] {
    auto& stranger =
        *strangers.emplace_back(std::make_unique<RawClient>(gateway_->linkd.client_address()));
    const std::string header = stranger.ReadBytes(kFrameHeaderBytes);
    ASSERT_EQ(kFrameHeaderBytes, header.size());
    stranger.ReadBytes(static_cast<unsigned char>(header[8]));
    ASSERT_TRUE(stranger.Send(chosen.view()));
    ASSERT_TRUE(stranger.Send(wire));
    // What ends the handshake is not compressed; the answer to the keep-alive is.
    const std::string end = stranger.ReadBytes(kFrameHeaderBytes);
    stranger.ReadBytes(static_cast<unsigned char>(end[8]));
    ZstdDecoder zstd;
    std::string answer;
    while (answer.size() < kFrameHeaderBytes + 2) {
      const std::string byte = stranger.ReadBytes(1);
      ASSERT_EQ(1U, byte.size());
      ASSERT_TRUE(zstd.Write(byte, 1000, answer).ok());
    }
  };
  for (int i = 0; i < 20; ++i) connect();  // What is allocated once.
  constexpr std::size_t kStrangers = 200;
  const std::size_t before = MemoryInUse();
  for (std::size_t i = 0; i < kStrangers; ++i) connect();
  const std::size_t each = (MemoryInUse() - before) / kStrangers;

  RecordProperty("bytes_of_a_stranger", static_cast<int>(each));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // What is allocated, of which a decoder uses little.
  EXPECT_LT(each, 512U << 10);
#else
  EXPECT_LT(each, 100U << 10);
#endif
}

TEST_F(HostileClients, ReplayedAndForgedTokensAreRefused) {
  const admin::OperatorKey key = admin::OperatorKey::Generate().value();
  LinkdOptions options = TestOptions();
  options.authenticator = std::make_shared<TokenAuthenticator>(
      TokenOptions{.public_keys = {key.public_key()}, .audience = "Linkd"});
  Gateway gateway(options);
  const std::string token = SignToken(key, NewToken("alice", "Linkd", seconds(60)));
  TestClient alice(gateway, token);
  for (int i = 0; i < 5; ++i) {
    TestClient thief(gateway);
    ASSERT_TRUE(thief.EndHandshake());
    EXPECT_EQ(-20, thief.Authenticate(token));
    EXPECT_FALSE(thief.Receive().has_value());
  }
  const auto show = [&](const std::string& wrong) {
    TestClient stranger(gateway);
    ASSERT_TRUE(stranger.EndHandshake());
    EXPECT_EQ(-20, stranger.Authenticate(wrong));
    EXPECT_FALSE(stranger.Receive().has_value());
  };
  for (int i = 0; i < 4; ++i) show("x" + token);  // Forged.
  auto late = NewToken("alice", "Linkd", seconds(60));
  late.expires = late.issued;
  for (int i = 0; i < 3; ++i) show(SignToken(key, late));
  for (int i = 0; i < 2; ++i) show(SignToken(key, NewToken("alice", "Elsewhere", seconds(60))));
  auto bound = NewToken("alice", "Linkd", seconds(60));
  bound.tlsBinding.bytes = std::string(32, 'x');
  show(SignToken(key, bound));
  EXPECT_EQ(5U, gateway.refused(Refusal::kReplayedToken));
  EXPECT_EQ(4U, gateway.refused(Refusal::kForgedToken));
  EXPECT_EQ(3U, gateway.refused(Refusal::kExpiredToken));
  EXPECT_EQ(2U, gateway.refused(Refusal::kUnsuitableToken));
  EXPECT_EQ(1U, gateway.refused(Refusal::kUnboundToken));
  EXPECT_TRUE(alice.Settle().empty()) << "she is still there";
}

TEST_F(HostileClients, WhoDoesNotReadLosesWhatMayBeLostAndIsThenClosed) {
  LinkdOptions options = TestOptions();
  options.clients.output_bytes_max = 64 << 10;
  options.clients.socket.send_buffer_bytes = 4096;
  options.limits.protocols[ProtocolTypeId(kShop, 8)] = {.level = CriticalLevel::kSheddable};
  options.limits.protocols[ProtocolTypeId(kShop, 9)] = {.level = CriticalLevel::kNormal};
  Start(options);
  TestClient slow(*gateway_, "slow");
  const std::string body(4000, 'x');
  const auto send = [&](std::int32_t protocol) {
    return provider_->Send({slow.sid()}, ProtocolTypeId(kShop, protocol),
                           FrameOf(kShop, protocol, body));
  };
  // Sheddable ones never fill it beyond a half, normal ones not beyond three quarters.
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(send(8).empty());
  const std::uint64_t shed = refused(Refusal::kShed);
  EXPECT_GT(shed, 100U);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(send(9).empty());
  EXPECT_GT(refused(Refusal::kShed), shed);
  EXPECT_EQ(0U, refused(Refusal::kSlowReader));
  // What must arrive does, or nothing does any more.
  bool closed = false;
  for (int i = 0; i < 30 && !closed; ++i) closed = !send(7).empty();
  EXPECT_TRUE(closed);
  EXPECT_EQ(1U, refused(Refusal::kSlowReader));
  Honest();
}

TEST_F(HostileClients, WhoReadsTooSlowlyForLongIsClosed) {
  LinkdOptions options = TestOptions();
  options.clients.output_bytes_max = 64 << 10;
  options.clients.socket.send_buffer_bytes = 4096;
  options.limits.protocols[ProtocolTypeId(kShop, 8)] = {.level = CriticalLevel::kSheddable};
  Start(options, &clock_);
  TestClient slow(*gateway_, "slow");
  const std::string frame = FrameOf(kShop, 8, std::string(4000, 'x'));
  const auto send = [&] {
    return provider_->Send({slow.sid()}, ProtocolTypeId(kShop, 8), frame).empty();
  };
  // The system takes a little more after the first one was shed. It is full when an exchange with
  // another client, which the same thread writes, made no room.
  for (bool full = false; !full;) {
    std::uint64_t shed = refused(Refusal::kShed);
    while (refused(Refusal::kShed) == shed) ASSERT_TRUE(send());
    Honest();
    shed = refused(Refusal::kShed);
    ASSERT_TRUE(send());
    full = refused(Refusal::kShed) > shed;
  }
  clock_.Advance(seconds(9));
  EXPECT_TRUE(send());
  clock_.Advance(seconds(2));
  EXPECT_FALSE(send());
  EXPECT_EQ(1U, refused(Refusal::kSlowReader));
  Honest();
}

TEST_F(HostileClients, BeyondAllConnectionsOneMoreIsRefused) {
  LinkdOptions options = TestOptions();
  options.clients.connections_max = 3;
  Start(options);
  TestClient second(*gateway_, "second");
  TestClient third(*gateway_, "third");
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(RawClient(gateway_->linkd.client_address()).ReadBytes(1).empty());
  }
  EXPECT_EQ(5U, refused(Refusal::kConnections));
  Honest();
}

TEST_F(HostileClients, TheSlowestHandshakesMakeRoomForOthers) {
  LinkdOptions options = TestOptions();
  options.clients.handshakes_max = 10;
  Start(options);
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(std::make_unique<RawClient>(gateway_->linkd.client_address()));
    ASSERT_FALSE(strangers.back()->ReadBytes(1).empty());  // It has the offer.
  }
  EXPECT_EQ(20U, refused(Refusal::kHandshakeDisplaced));
  TestClient late(*gateway_, "late");
  EXPECT_EQ(21U, refused(Refusal::kHandshakeDisplaced));
  Honest();
}

TEST_F(HostileClients, OnceIsEnoughToAuthenticate) {
  Start(TestOptions());
  TestClient twice(*gateway_, "twice");
  for (int i = 0; i < 3; ++i) EXPECT_NE(0, twice.Authenticate("somebody else"));
  EXPECT_EQ(3U, refused(Refusal::kRepeatedAuth));
  Honest();
}

// Tools read this: every reason has its line, also those that never happened.
TEST_F(HostileClients, ToAuthenticateAgainAndAgainIsAFloodToo) {
  LinkdOptions options = TestOptions();
  options.limits.session_messages = {.per_second = 50, .burst = 100};
  options.limits.refused_messages = {.per_second = 10, .burst = 200};
  Start(options, &clock_);
  TestClient stranger(*gateway_, "stranger");
  constexpr int kCount = 1000;
  std::string many;
  for (int k = 0; k < kCount; ++k) {
    many += RawClient::RequestFrame<Zeze::Builtin::LinkdAuth::Auth>(k, {});
  }
  stranger.raw().TrySend(many);
  int answers = 0;
  while (answers < kCount && stranger.Receive().has_value()) ++answers;

  EXPECT_EQ(100, answers) << "and then the gateway has closed the connection";
  EXPECT_EQ(100U, refused(Refusal::kRepeatedAuth));
  EXPECT_EQ(201U, refused(Refusal::kSessionRate));
  EXPECT_EQ(1U, refused(Refusal::kFlood));
}

TEST_F(HostileClients, AllCountersAreOnThePageOfMetrics) {
  Start(TestOptions());
  TestClient stranger(*gateway_, "stranger");
  stranger.raw().Send(Header(kShop, 0x7fffffff));
  AwaitClosed(stranger);
  const std::string page = gateway_->linkd.GetStatistics().FormatMetrics();
  for (std::size_t i = 0; i < static_cast<std::size_t>(Refusal::kCount); ++i) {
    const auto refusal = static_cast<Refusal>(i);
    const std::string line = fmt::format("\nzeze_linkd_refused_total{{reason=\"{}\"}} {}\n",
                                         ToString(refusal), refused(refusal));
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
  EXPECT_NE(page.find("{reason=\"oversize frame\"} 1\n"), std::string::npos) << page;
}

}  // namespace
}  // namespace zeze::arch
