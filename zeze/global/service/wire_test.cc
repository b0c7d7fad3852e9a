// Global on the wire, byte by byte: what a Zeze 1.6 server would send and see.

#include "zeze/global/service/wire.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/testing/hex.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/global_service.h"
#include "zeze/net/io_threads.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {
namespace {

using zeze::testing::FromHex;

class WireTest : public ::testing::Test {
 protected:
  WireTest()
      : storage_(OpenMemoryStorage()),
        pool_({.name = "global", .thread_count = 1}),
        io_({.name = "io"}),
        service_(io_, *storage_->fence(), pool_, Options()) {
    EXPECT_TRUE(service_.Start().ok());
    EXPECT_EQ("127.0.0.1", service_.address().IpText()) << "unless an address is named";
    while (!service_.GetStatus().accepting) std::this_thread::yield();
    socket_ = Connect();
  }
  ~WireTest() override {
    close(socket_);
    service_.Stop();
  }

  static GlobalServiceOptions Options() {
    GlobalServiceOptions options;
    options.acceptor.port = 0;
    options.machine.unfenced_wait = std::chrono::hours(1);
    options.holder = "test";
    return options;
  }

  int Connect() const {
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(service_.address().port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(0, connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address));
    return made;
  }

  // Sends and reads as many bytes as are expected.
  void Exchange(std::string_view request, std::string_view answer) const {
    const std::string sent = FromHex(request);
    const std::string expected = FromHex(answer);
    ASSERT_EQ(static_cast<ssize_t>(sent.size()), send(socket_, sent.data(), sent.size(), 0));
    std::string got(expected.size(), '\0');
    ASSERT_EQ(static_cast<ssize_t>(got.size()), recv(socket_, got.data(), got.size(), MSG_WAITALL));
    EXPECT_EQ(expected, got) << request;
  }

  std::unique_ptr<Storage> storage_;
  ThreadPool pool_;
  IoThreads io_;
  GlobalService service_;
  int socket_ = -1;
};

// Ours, and older than the lease and the proof in it.
TEST(FencedLoginTest, ALoginOfAnEarlierBuildSaysNothingOfItsLeaseAndProvesNothing) {
  const wire::FencedLoginArgument login{.server_id = 7,
                                        .epoch = 3,
                                        .start_term = 2,
                                        .rights = {{.key = "k", .right = Right::kModify}},
                                        .lease_ms = 20'000,
                                        .cluster = "c",
                                        .proof = "p",
                                        .serial = 5,
                                        .yields = 6};
  ByteWriter out;
  login.Encode(out);
  wire::FencedLoginArgument decoded;
  ByteReader whole(out.view());
  decoded.Decode(whole);
  EXPECT_TRUE(whole.ok());
  EXPECT_EQ(20'000, decoded.lease_ms);
  EXPECT_EQ("c", decoded.cluster);
  EXPECT_EQ("p", decoded.proof);
  EXPECT_EQ(5, decoded.serial);
  EXPECT_EQ(6, decoded.yields);

  constexpr std::size_t kProofBytes = 6;  // With what follows it.
  ByteReader old(out.view().substr(0, out.view().size() - kProofBytes));
  decoded.Decode(old);
  EXPECT_TRUE(old.ok());
  EXPECT_EQ(20'000, decoded.lease_ms);
  EXPECT_EQ("", decoded.cluster);
  EXPECT_EQ("", decoded.proof);
  EXPECT_EQ(0, decoded.serial);
  EXPECT_EQ(0, decoded.yields);

  constexpr std::size_t kLeaseBytes = 3;
  ByteReader older(out.view().substr(0, out.view().size() - kProofBytes - kLeaseBytes));
  decoded.Decode(older);
  EXPECT_TRUE(older.ok());
  EXPECT_EQ(0, decoded.lease_ms);
  EXPECT_EQ(1U, decoded.rights.size());
}

TEST_F(WireTest, AnAcquireWithoutALoginIsRefused) {
  Exchange("00000000 c3b41049 0c000000 01 01 06 05000000 6b30 01 00 00",
           "00000000 c3b41049 0d000000 20 1e 01 06 05000000 6b30 00 00 00");
}

TEST_F(WireTest, AReLoginWithoutALoginIsRefused) {
  Exchange("00000000 ab035f47 05000000 01 02 01 00 00", "00000000 ab035f47 05000000 20 4050 02 00");
}

TEST_F(WireTest, ALoginIsAnsweredWithTheTimes) {
  Exchange("00000000 03cb54ab 05000000 01 03 01 00 00",
           "00000000 03cb54ab 0a000000 00 03 4bb8 6036b0 60ea60");
}

// The peer goes on to grant on a connection that has said goodbye.
TEST_F(WireTest, AfterNormalCloseNothingIsGranted) {
  Exchange("00000000 03cb54ab 05000000 01 03 01 00 00",
           "00000000 03cb54ab 0a000000 00 03 4bb8 6036b0 60ea60");
  Exchange("00000000 38bf45e0 03000000 01 04 00", "00000000 38bf45e0 03000000 00 04 00");
  std::array<char, 1> nothing{};
  const std::string acquire = FromHex("00000000 c3b41049 0c000000 01 05 06 05000000 6b30 01 00 00");
  send(socket_, acquire.data(), acquire.size(), MSG_NOSIGNAL);
  EXPECT_LE(recv(socket_, nothing.data(), 1, 0), 0) << "the connection is closed";
}

// The peer drops it without a word.
TEST_F(WireTest, ACleanUpWithTheOldKeyIsAnsweredAndRefused) {
  Exchange("00000000 a62f8d8e 06000000 01 06 01 01 78 00",
           "00000000 a62f8d8e 04000000 20 3c 06 00");
}

}  // namespace
}  // namespace zeze::global
