#include "zeze/net/http/text_server.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"

namespace zeze {
namespace {

using ::testing::EndsWith;
using testing::RawClient;
using ::testing::StartsWith;

class TextServerTest : public ::testing::Test {
 protected:
  void Start(const TextServerOptions& options = {}) {
    Result<std::unique_ptr<TextServer>> started = TextServer::Start(options);
    ASSERT_TRUE(started.ok()) << started.error().message();
    server_ = std::move(started).value();
    server_->Add("/metrics", [] { return std::string("sessions 3\n"); });
  }
  NetAddress address() const { return NetAddress::FromText("127.0.0.1", server_->port()).value(); }

  // Everything until the server has closed.
  std::string Ask(std::string_view request) const {
    RawClient client(address());
    client.Send(request);
    return client.ReadBytes(1 << 20);
  }

  std::unique_ptr<TextServer> server_;
};

TEST_F(TextServerTest, ShowsItsPages) {
  Start();
  const std::string answer = Ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nsessions 3\n"));
  EXPECT_THAT(Ask("GET /other HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
}

TEST_F(TextServerTest, WhoDoesNotAskIsClosed) {
  Start({.timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(Ask("GET /metr"), "");
  EXPECT_EQ(Ask("\r\n\r\nnothing of HTTP\r\n\r\n"), "");
  EXPECT_EQ(Ask("GET /" + std::string(10'000, 'x')), "");
}

TEST_F(TextServerTest, ManyWhoDoNotAskAreFew) {
  Start({.connections_max = 2, .timeout = std::chrono::hours(1)});
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 2; ++i) idle.push_back(std::make_unique<RawClient>(address()));
  EXPECT_EQ(RawClient(address()).ReadBytes(1), "");
}

TEST_F(TextServerTest, APortIsTakenOnce) {
  Start();
  const auto second = TextServer::Start({.port = server_->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), ErrorCode::kInUse);
  EXPECT_FALSE(TextServer::Start({.ip = "nowhere"}).ok());
}

}  // namespace
}  // namespace zeze
