// The service manager on the wire, byte by byte: what an agent of Zeze 1.6 would send and see.

#include "zeze/registry/service/wire.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/testing/hex.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_service.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"

namespace zeze::registry {
namespace {

using zeze::testing::FromHex;

using testing::RawClient;

template <typename T>
std::string Encoded(const T& value) {
  ByteWriter out;
  value.Encode(out);
  return out.Release();
}

// What was decoded and encoded again.
template <typename T>
std::string Again(const std::string& bytes) {
  ByteReader in(bytes);
  T value;
  value.Decode(in);
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(0U, in.remaining());
  return Encoded(value);
}

// Of the peer, in the words of the specification of the protocol.
constexpr std::string_view kShop = "01 54 01 31 00 08 31302e302e302e31 5b59 00";

TEST(RegistryWireTest, ArgumentsAndResultsAreThoseOfThePeer) {
  const ServiceInfo shop{
      .name = "T", .identity = "1", .passive_ip = "10.0.0.1", .passive_port = 7001};
  const std::string edit = FromHex("00 01" + std::string(kShop));
  EXPECT_EQ(edit, Encoded(wire::EditArgument{.edit = {.add = {shop}}}));
  EXPECT_EQ(edit, Again<wire::EditArgument>(edit));

  const std::string subscribe = FromHex("02 01 54 00 01 55 02");
  EXPECT_EQ(subscribe, Encoded(wire::SubscribeArgument{
                           .subscriptions = {{.name = "T"}, {.name = "U", .version = 2}}}));
  EXPECT_EQ(subscribe, Again<wire::SubscribeArgument>(subscribe));

  const std::string list = FromHex("02 01 54 01 00 01" + std::string(kShop) + "01 55 00");
  EXPECT_EQ(list, Encoded(wire::SubscribeResult{.services = {{"T", {{0, {shop}}}}, {"U", {}}}}));
  EXPECT_EQ(list, Again<wire::SubscribeResult>(list));

  EXPECT_EQ(FromHex("02 01 54 01 55"), Encoded(wire::UnsubscribeArgument{.names = {"T", "U"}}));
  EXPECT_EQ(FromHex("02 01 54 01 55"), Again<wire::UnsubscribeArgument>(FromHex("02 01 54 01 55")));
  EXPECT_EQ(FromHex("01 54 4064"), Encoded(wire::AllocateIdArgument{.name = "T", .count = 100}));
  EXPECT_EQ(FromHex("01 4064"), Encoded(wire::AllocateIdResult{.start = 1, .count = 100}));
  EXPECT_EQ(FromHex("01 69 5b59 02 6162"),
            Encoded(wire::LoadArgument{.load = {.ip = "i", .port = 7001, .param = "ab"}}));
  EXPECT_EQ(FromHex("07 01 4e 03 01 63"),
            Encoded(wire::OfflineArgument{
                .notice = {.server_id = 7, .notify_id = "N", .serial = 3, .context = "c"}}));
  EXPECT_EQ(FromHex("ff 00 00 00"), Again<wire::OfflineArgument>(FromHex("ff 00 00 00"))) << "-1";
  const std::string announce = FromHex("00 01 4e 07 02 08 09 02 01 03");
  EXPECT_EQ(announce,
            Encoded(wire::AnnounceArgument{
                .announcement = {.notify_id = "N", .server_id = 7, .watched = {{8, 1}, {9, 3}}}}));
  EXPECT_EQ(announce, Again<wire::AnnounceArgument>(announce));
}

// Claims of many elements, and texts cut short: refused before anything is stored for them.
TEST(RegistryWireTest, HostileBytesAreRefused) {
  const auto refused = [](auto value, std::string_view hex) {
    const std::string bytes = FromHex(hex);
    ByteReader in(bytes);
    value.Decode(in);
    EXPECT_FALSE(in.ok()) << hex;
  };
  refused(wire::EditArgument(), "f0ffffffff");
  refused(wire::EditArgument(), "00 f0ffffff0f 01 54");
  refused(wire::SubscribeArgument(), "f0ffffffff 01 54 00");
  refused(wire::SubscribeResult(), "01 01 54 f0ffffffff");
  refused(wire::UnsubscribeArgument(), "05 01 54");
  refused(wire::AllocateIdArgument(), "7f 54");
  refused(wire::AnnounceArgument(), "00 01 4e 07 02 08 09 01 01");
}

TEST(RegistryWireTest, DatagramsAreThoseOfThePeer) {
  ByteWriter out;
  wire::EncodeDatagramRequest({.session_id = 77, .argument = {.name = "hist", .count = 16}}, out);
  EXPECT_EQ(FromHex("01 404d 04 68697374 10"), out.view());

  const std::string answer = FromHex("00 404d 00 10 10");
  ByteReader in(answer);
  const wire::DatagramAnswer decoded = wire::DecodeDatagramAnswer(in);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(77, decoded.session_id);
  EXPECT_EQ((Id128{.high = 0, .low = 16}), decoded.result.start);
  EXPECT_EQ(16, decoded.result.count);
}

class WireServiceTest : public ::testing::Test {
 protected:
  WireServiceTest()
      : storage_(OpenMemoryStorage()),
        pool_({.name = "registry", .thread_count = 1}),
        io_({.name = "io"}),
        service_(io_, *storage_, pool_, Options()) {
    EXPECT_TRUE(service_.Start().ok());
    EXPECT_EQ("127.0.0.1", service_.address().IpText()) << "unless an address is named";
  }
  ~WireServiceTest() override { service_.Stop(); }

  static RegistryServiceOptions Options() {
    RegistryServiceOptions options;
    options.acceptors = {{.port = 0}};
    options.keep_alive_period = {};
    return options;
  }

  std::unique_ptr<RawClient> Connect() const {
    auto client = std::make_unique<RawClient>(service_.address());
    EXPECT_TRUE(client->EndHandshake());
    return client;
  }

  // Sends a frame of the protocol with this body, and reads as many bytes as are expected.
  static void Exchange(RawClient& client, std::int32_t protocol, std::string_view request,
                       std::string_view answer) {
    SCOPED_TRACE(request);
    Send(client, protocol, request);
    Expect(client, protocol, answer);
  }
  static void Send(RawClient& client, std::int32_t protocol, std::string_view body) {
    EXPECT_TRUE(client.Send(FrameOf(protocol, body)));
  }
  static void Expect(RawClient& client, std::int32_t protocol, std::string_view body) {
    const std::string expected = FrameOf(protocol, body);
    EXPECT_EQ(expected, client.ReadBytes(expected.size()));
  }
  // A request of the service manager, which is answered.
  static void ExpectCall(RawClient& client, std::int32_t protocol, std::string_view argument) {
    const std::string header = client.ReadBytes(kFrameHeaderBytes);
    const std::string body = client.ReadBytes(static_cast<unsigned char>(header[8]));
    EXPECT_EQ(FrameOf(protocol, "").substr(0, 8), header.substr(0, 8));
    ByteReader in(body);
    EXPECT_EQ(1, in.ReadByte()) << "a request";
    const std::int64_t session_id = in.ReadLong();
    EXPECT_EQ(FromHex(argument), in.ReadRaw(in.remaining()));
    ByteWriter answer;
    EncodeFrame({.module_id = 0,
                 .protocol_id = protocol,
                 .family = FrameFamily::kResponse,
                 .session_id = session_id,
                 .payload = std::string_view("\0", 1)},
                answer);
    EXPECT_TRUE(client.Send(answer.view()));
  }
  static std::string FrameOf(std::int32_t protocol, std::string_view body) {
    const std::string bytes = FromHex(body);
    ByteWriter out;
    out.WriteInt4(0);
    out.WriteInt4(protocol);
    out.WriteInt4(static_cast<std::int32_t>(bytes.size()));
    out.WriteRaw(bytes);
    return out.Release();
  }

  static constexpr std::int32_t kEdit = -1344046521;
  static constexpr std::int32_t kSubscribe = 1138220698;
  static constexpr std::int32_t kUnsubscribe = -1962944542;
  static constexpr std::int32_t kAllocateId = -282549003;
  static constexpr std::int32_t kSetLoad = -790028280;
  static constexpr std::int32_t kOfflineRegister = -1713644993;
  static constexpr std::int32_t kNormalClose = 190287739;
  static constexpr std::int32_t kAnnounce = 893380350;

  std::unique_ptr<Storage> storage_;
  ThreadPool pool_;
  IoThreads io_;
  RegistryService service_;
};

TEST_F(WireServiceTest, EditSubscribeAndNotifications) {
  const auto server = Connect();
  const auto reader = Connect();
  const std::string shop(kShop);
  Exchange(*reader, kSubscribe, "01 01 01 01 54 00", "00 01 01 01 54 00");
  Exchange(*server, kEdit, "01 01 00 01" + shop, "00 01 00");
  ExpectCall(*reader, kEdit, "00 01" + shop);
  Exchange(*reader, kSubscribe, "01 02 01 01 54 00", "00 02 01 01 54 01 00 01" + shop);
  Exchange(*server, kEdit, "01 02 01" + shop + "00", "00 02 00");
  ExpectCall(*reader, kEdit, "01" + shop + "00");
  Exchange(*reader, kUnsubscribe, "01 03 01 01 54", "00 03 00");
}

TEST_F(WireServiceTest, LoadsAreForwardedUnchanged) {
  const auto server = Connect();
  const auto reader = Connect();
  Exchange(*reader, kSubscribe, "01 01 01 01 54 00", "00 01 01 01 54 00");
  Exchange(*server, kEdit, "01 01 00 01" + std::string(kShop), "00 01 00");
  ExpectCall(*reader, kEdit, "00 01" + std::string(kShop));
  Send(*server, kSetLoad, "02 08 31302e302e302e31 5b59 02 6162");
  Expect(*reader, kSetLoad, "02 08 31302e302e302e31 5b59 02 6162");
}

TEST_F(WireServiceTest, IdsBeginAtOne) {
  const auto server = Connect();
  Exchange(*server, kAllocateId, "01 01 01 54 00", "00 01 01 00");
  Exchange(*server, kAllocateId, "01 02 01 54 4064", "00 02 01 4064");
  Exchange(*server, kAllocateId, "01 03 01 54 ff", "00 03 4065 01");
  Exchange(*server, kAllocateId, "01 04 01 54 00", "00 04 4066 00");
}

TEST_F(WireServiceTest, NoticesAndGoodbye) {
  const auto server = Connect();
  Exchange(*server, kOfflineRegister, "01 01 07 01 4e 03 01 63", "00 01 00");
  Exchange(*server, kAnnounce, "01 02 00 01 4e 07 01 08 01 01", "00 02 00");
  EXPECT_EQ(2U, service_.GetStatus().offline_notices);
  Exchange(*server, kNormalClose, "01 03 00", "00 03 00");
  EXPECT_EQ(1U, service_.GetStatus().offline_notices);
}

TEST_F(WireServiceTest, WhatIsTooLongIsRefusedWithACode) {
  const auto server = Connect();
  ByteWriter argument;
  wire::EditArgument{.edit = {.add = {{.name = std::string(600, 'x'), .identity = "1"}}}}.Encode(
      argument);
  ByteWriter frame;
  EncodeFrame({.module_id = 0,
               .protocol_id = kEdit,
               .family = FrameFamily::kRequest,
               .session_id = 1,
               .payload = argument.view()},
              frame);
  EXPECT_TRUE(server->Send(frame.view()));
  Expect(*server, kEdit, "20 fa 01 00");  // -6
  EXPECT_EQ(0U, service_.GetStatus().services);
}

// The header alone is enough: nothing is stored, the connection is gone.
TEST_F(WireServiceTest, AFrameThatClaimsTooMuchIsNotWaitedFor) {
  const auto server = Connect();
  ByteWriter header;
  header.WriteInt4(0);
  header.WriteInt4(kEdit);
  header.WriteInt4(3 << 20);
  EXPECT_TRUE(server->Send(header.view()));
  EXPECT_FALSE(server->ReadFrame().has_value());
}

TEST_F(WireServiceTest, AHostileArgumentClosesItsConnectionOnly) {
  const auto hostile = Connect();
  const auto server = Connect();
  Send(*hostile, kEdit, "01 01 f0ffffffff");
  EXPECT_FALSE(hostile->ReadFrame().has_value());
  Exchange(*server, kEdit, "01 01 00 01" + std::string(kShop), "00 01 00");
}

// A connected UDP socket.
class RawDatagrams {
 public:
  explicit RawDatagrams(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(0, ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to));
  }
  ~RawDatagrams() { ::close(socket_); }
  RawDatagrams(const RawDatagrams&) = delete;
  RawDatagrams& operator=(const RawDatagrams&) = delete;

  void Send(std::string_view bytes) const {
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), ::send(socket_, bytes.data(), bytes.size(), 0));
  }
  std::string Receive() const {
    std::array<char, 2048> buffer = {};
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    return {buffer.data(), static_cast<std::size_t>(size)};
  }

 private:
  const int socket_;
};

TEST_F(WireServiceTest, DatagramsAreAnsweredWithIdsOf128Bits) {
  const RawDatagrams client(service_.address().port());
  client.Send(FromHex("01 404d 04 68697374 10"));
  EXPECT_EQ(FromHex("00 404d 00 00 10"), client.Receive());
  client.Send(FromHex("01 404d 04 68697374 10"));
  EXPECT_EQ(FromHex("00 404d 00 10 10"), client.Receive());

  client.Send(FromHex("ffff"));  // Nothing comes back for this,
  client.Send(FromHex("01 404e 04 68697374 10 01 404f 05 6f74686572 01"));
  EXPECT_EQ(FromHex("00 404e 00 20 10 00 404f 00 00 01"), client.Receive());  // for both at once.
}

}  // namespace
}  // namespace zeze::registry
