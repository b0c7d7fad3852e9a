// Tests of a TLS connection without its socket.

#include "zeze/net/internal/tls_stream.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/tls.h"

namespace zeze::internal {
namespace {

using testing::Certificates;
using ::testing::HasSubstr;

struct Pair {
  std::unique_ptr<TlsStream> server = TlsStream::ForServer(
      TlsContext::ForServer({.certificate_file = Certificates::Get().server_certificate,
                             .private_key_file = Certificates::Get().server_key})
          .value());
  std::unique_ptr<TlsStream> client = TlsStream::ForClient(
      TlsContext::ForClient({.authorities_file = Certificates::Get().authority}).value(),
      "zeze.test");

  // Until neither has anything to say. What was decrypted last is in `plain`.
  void Exchange() {
    while (true) {
      std::string to_server;
      std::string to_client;
      client->TakeOutput(to_server);
      server->TakeOutput(to_client);
      if (to_server.empty() && to_client.empty()) return;
      ASSERT_TRUE(to_server.empty() || server->Read(to_server, plain).ok());
      ASSERT_TRUE(to_client.empty() || client->Read(to_client, plain).ok());
    }
  }

  std::string plain = {};
};

TEST(TlsStream, CarriesBytesWhenBothAreReady) {
  Pair pair;
  ASSERT_TRUE(pair.client->Start().ok());
  pair.Exchange();
  ASSERT_TRUE(pair.server->ready());
  ASSERT_TRUE(pair.client->Write("hello").ok());
  pair.Exchange();
  EXPECT_EQ(pair.plain, "hello");
}

// An answer may be on its way to the socket when the peer sends nonsense.
TEST(TlsStream, RefusesToWriteWhenThePeerHasBrokenIt) {
  Pair pair;
  ASSERT_TRUE(pair.client->Start().ok());
  pair.Exchange();
  ASSERT_TRUE(pair.client->Write("hello").ok());
  std::string wire;
  pair.client->TakeOutput(wire);
  wire.back() = static_cast<char>(wire.back() ^ 1);

  const Result<void> read = pair.server->Read(wire, pair.plain);
  const Result<void> written = pair.server->Write("answer");

  EXPECT_FALSE(read.ok());
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message(), HasSubstr("has failed before"));
}

}  // namespace
}  // namespace zeze::internal
