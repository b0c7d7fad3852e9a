// Peers that speak TLS correctly and mean no good.

#include <cstring>
#include <memory>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/testing/service_fixture.h"
#include "zeze/net/tls.h"

namespace zeze {
namespace {

using testing::Certificates;
using testing::MustListen;

constexpr int kBufferBytes = 16 << 10;

// Blocking, and with little room in the system.
internal::SocketDescriptor ConnectTo(const NetAddress& address) {
  internal::SocketDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const int option : {SO_SNDBUF, SO_RCVBUF}) {
    EXPECT_EQ(::setsockopt(client.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes),
              0);
  }
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port());
  std::memcpy(&to.sin_addr, address.bytes().data(), sizeof to.sin_addr);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return client;
}

// It asks for new keys without end, and does not read that it got them. Each answer has to be kept
// until it does: so the server must not read on.
TEST(TlsHostile, WhoAsksForNewKeysAndDoesNotReadIsNotReadFromEither) {
  constexpr int kUpdates = 20'000;  // Many times what the buffers hold.
  IoThreads io({});
  Service server(
      io, {.name = "server",
           .socket = {.send_buffer_bytes = kBufferBytes, .receive_buffer_bytes = kBufferBytes},
           .output_bytes_max = 64 << 10});
  const Certificates& certificates = Certificates::Get();
  const NetAddress address = MustListen(
      server, {.tls = TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                             .private_key_file = certificates.server_key})
                          .value()});
  const internal::SocketDescriptor client = ConnectTo(address);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  ASSERT_EQ(SSL_set_fd(ssl.get(), client.get()), 1);
  ASSERT_EQ(SSL_connect(ssl.get()), 1);

  int updates = 0;
  for (; updates < kUpdates; ++updates) {
    pollfd writable{.fd = client.get(), .events = POLLOUT, .revents = 0};
    constexpr int kLongMilliseconds = 2000;
    if (::poll(&writable, 1, kLongMilliseconds) == 0) break;
    ASSERT_EQ(SSL_key_update(ssl.get(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(ssl.get()), 1);
  }

  EXPECT_LT(updates, kUpdates) << "the server has read everything, and keeps the answers";
}

}  // namespace
}  // namespace zeze
