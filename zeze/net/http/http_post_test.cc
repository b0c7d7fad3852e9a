#include "zeze/net/http/http_post.h"

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/net/testing/certificates.h"

namespace zeze {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using ::testing::HasSubstr;
using zeze::testing::Certificates;

// Takes one request and answers it, in a thread of its own.
class OneRequest {
 public:
  explicit OneRequest(unsigned status, bool tls = false)
      : acceptor_(io_, {asio::ip::address_v4::loopback(), 0}), thread_([this, status, tls] {
          asio::ip::tcp::socket socket(io_);
          boost::system::error_code error;
          if (acceptor_.accept(socket, error)) return;
          if (!tls) {
            Serve(socket, status);
            return;
          }
          asio::ssl::context context(asio::ssl::context::tls_server);
          context.use_certificate_chain_file(Certificates::Get().server_certificate);
          context.use_private_key_file(Certificates::Get().server_key, asio::ssl::context::pem);
          asio::ssl::stream<asio::ip::tcp::socket> stream(std::move(socket), context);
          if (!stream.handshake(asio::ssl::stream_base::server, error)) Serve(stream, status);
        }) {}
  ~OneRequest() { thread_.join(); }

  std::string Url(const std::string& scheme, const std::string& path = "/hook") const {
    return scheme + "://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + path;
  }
  http::request<http::string_body> Received() { return received_.get_future().get(); }

 private:
  template <typename Stream>
  void Serve(Stream& stream, unsigned status) {
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    boost::system::error_code error;
    http::read(stream, buffer, request, error);
    if (status != 0) {
      http::response<http::string_body> answer;
      answer.result(status);
      answer.prepare_payload();
      http::write(stream, answer, error);
    } else {
      // No answer: waits until the client gives up.
      char byte = 0;
      stream.read_some(asio::buffer(&byte, 1), error);
    }
    received_.set_value(request);
  }

  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  std::promise<http::request<http::string_body>> received_;
  std::thread thread_;
};

TEST(HttpPost, PostsJson) {
  OneRequest server(204);

  const Result<void> posted =
      PostJson({.url = server.Url("http", "/hook?key=1"), .body = R"({"kind":"lost"})"});

  EXPECT_TRUE(posted.ok()) << posted.error().message();
  const auto request = server.Received();
  EXPECT_EQ(http::verb::post, request.method());
  EXPECT_EQ("/hook?key=1", request.target());
  EXPECT_EQ("application/json", request[http::field::content_type]);
  EXPECT_EQ(R"({"kind":"lost"})", request.body());
}

TEST(HttpPost, AnAnswerThatIsNotOfThe200sIsAFailure) {
  OneRequest server(500);

  const Result<void> posted = PostJson({.url = server.Url("http"), .body = "{}"});

  ASSERT_FALSE(posted.ok());
  EXPECT_THAT(posted.error().message(), HasSubstr("status 500"));
}

TEST(HttpPost, GivesUpInTime) {
  OneRequest server(0);

  const Result<void> posted = PostJson(
      {.url = server.Url("http"), .body = "{}", .timeout = std::chrono::milliseconds(100)});

  EXPECT_FALSE(posted.ok());
}

TEST(HttpPost, TrustsACertificateOfItsAuthority) {
  OneRequest server(200, true);

  const Result<void> posted = PostJson({.url = server.Url("https"),
                                        .body = "{}",
                                        .authorities_file = Certificates::Get().authority});

  EXPECT_TRUE(posted.ok()) << posted.error().message();
  EXPECT_EQ("{}", server.Received().body());
}

TEST(HttpPost, RefusesACertificateOfSomebodyElse) {
  OneRequest server(200, true);

  const Result<void> posted = PostJson({.url = server.Url("https"),
                                        .body = "{}",
                                        .authorities_file = Certificates::Get().other_authority});

  ASSERT_FALSE(posted.ok());
  EXPECT_THAT(posted.error().message(), HasSubstr("agreeing on encryption"));
}

TEST(HttpPost, SaysWhatAnAddressLooksLike) {
  for (const char* good : {"http://h", "https://h:8443/a/b?c=d", "http://[::1]:80/x"}) {
    EXPECT_TRUE(CheckHttpUrl(good).ok()) << good;
  }
  for (const char* bad :
       {"", "h", "ftp://h/", "http://", "http:///x", "http://h:port/", "http://h:0/",
        "http://user:secret@h/", "http://h/a b", "http://h/\r\nX:"}) {
    const Result<void> checked = CheckHttpUrl(bad);
    ASSERT_FALSE(checked.ok()) << bad;
    EXPECT_THAT(checked.error().message(), HasSubstr("expected http://host[:port][/path]"));
  }
}

}  // namespace
}  // namespace zeze
