#include "zeze/net/http/http_post.h"

#include <chrono>
#include <optional>

#include <boost/beast/http.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/net/http/testing/web_listener.h"
#include "zeze/net/testing/certificates.h"

namespace zeze {
namespace {

namespace http = boost::beast::http;
using ::testing::HasSubstr;
using zeze::testing::Certificates;
using zeze::testing::WebListener;

constexpr auto kPatience = std::chrono::seconds(60);

TEST(HttpPost, PostsJson) {
  WebListener server({.statuses = {204}});

  const Result<void> posted =
      PostJson({.url = server.Url("http", "/hook?key=1"), .body = R"({"kind":"lost"})"});

  EXPECT_TRUE(posted.ok()) << posted.error().message();
  const std::optional<WebListener::Request> request = server.Next(kPatience);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(http::verb::post, request->method());
  EXPECT_EQ("/hook?key=1", request->target());
  EXPECT_EQ("application/json", (*request)[http::field::content_type]);
  EXPECT_EQ(R"({"kind":"lost"})", request->body());
}

TEST(HttpPost, AnAnswerThatIsNotOfThe200sIsAFailure) {
  WebListener server({.statuses = {500}});

  const Result<void> posted = PostJson({.url = server.Url("http"), .body = "{}"});

  ASSERT_FALSE(posted.ok());
  EXPECT_THAT(posted.error().message(), HasSubstr("status 500"));
}

TEST(HttpPost, GivesUpInTime) {
  WebListener server({.statuses = {0}});

  const Result<void> posted = PostJson(
      {.url = server.Url("http"), .body = "{}", .timeout = std::chrono::milliseconds(100)});

  EXPECT_FALSE(posted.ok());
}

TEST(HttpPost, TrustsACertificateOfItsAuthority) {
  WebListener server({.tls = true});

  const Result<void> posted = PostJson({.url = server.Url("https"),
                                        .body = "{}",
                                        .authorities_file = Certificates::Get().authority});

  EXPECT_TRUE(posted.ok()) << posted.error().message();
  EXPECT_EQ("{}", server.Next(kPatience).value().body());
}

TEST(HttpPost, RefusesACertificateOfSomebodyElse) {
  WebListener server({.tls = true});

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
