// Tests of the request and the answer that make a WebSocket of a connection.

#include "zeze/net/internal/websocket_upgrade.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/net/internal/http_head.h"

namespace zeze::internal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Of RFC 6455.
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

std::string Replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

const WebSocketAcceptOptions kOptions{.path = "/game", .allowed_origins = {"https://game.example"}};

std::string Request() {
  return "GET /game HTTP/1.1\r\nHost: example.org\r\nUpgrade: WebSocket\r\n"
         "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: " +
         std::string(kKey) + "\r\nSec-WebSocket-Version: 13\r\n\r\n";
}

std::string Answer() {
  return AnswerUpgrade(Request(), kOptions).text;
}

TEST(AnswerUpgrade, HasTheAcceptOfTheStandard) {
  const UpgradeAnswer answer = AnswerUpgrade(Request(), kOptions);
  EXPECT_EQ(answer.refused, "");
  EXPECT_THAT(answer.text, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(answer.text, HasSubstr("Sec-WebSocket-Accept: " + std::string(kAccept) + "\r\n"));
  EXPECT_THAT(answer.text, EndsWith("\r\n\r\n"));
  EXPECT_THAT(answer.text, Not(HasSubstr("Extensions")));
}

TEST(AnswerUpgrade, PassesOverQueriesExtensionsAndUnknownFields) {
  std::string request = Replaced(Request(), "/game", "/game?token=a");
  request = Replaced(request, "\r\n\r\n",
                     "\r\nSec-WebSocket-Extensions: permessage-deflate\r\nCookie: \xff\r\n"
                     "Origin: HTTPS://game.example\r\n\r\n");
  EXPECT_EQ(AnswerUpgrade(request, kOptions).refused, "");
}

TEST(AnswerUpgrade, SaysWhatIsWrong) {
  struct Case {
    const char* what;
    const char* with;
    const char* status;
    const char* also = "";
  };
  const std::vector<Case> cases = {
      {"GET", "POST", "405 Method Not Allowed", "Allow: GET\r\n"},
      {"GET", "HEAD", "405 Method Not Allowed"},
      {"/game", "/other", "404 Not Found"},
      {"/game", "/game/", "404 Not Found"},
      {"/game", "http://example.org/game", "400 Bad Request"},
      {"HTTP/1.1", "HTTP/1.0", "400 Bad Request"},
      {"Upgrade: WebSocket", "Upgrade: h2c", "426 Upgrade Required", "Upgrade: websocket\r\n"},
      {"keep-alive, Upgrade", "close", "426 Upgrade Required", "speaks WebSocket"},
      {"Version: 13", "Version: 8", "426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n"},
      {"Sec-WebSocket-Version", "X", "426 Upgrade Required"},
      {"dGhl", "dG!l", "400 Bad Request"},
      {"==", "", "400 Bad Request"},
      {"Sec-WebSocket-Key", "X", "400 Bad Request"},
      {"Host", "X", "400 Bad Request", "Host"},
      {"Host: example.org", "Host: a\r\nHost: b", "400 Bad Request"},
      {"Host: example.org", "Host: example.org\r\nContent-Length: 1", "400 Bad Request", "body"},
      {"Host: example.org", "Host: example.org\r\nTransfer-Encoding: chunked", "400 Bad Request"},
      {"Host: example.org", "Host : example.org", "400 Bad Request"},
      {"Host: example.org", "Host: example.org\r\n folded: x", "400 Bad Request"},
      {"Host: example.org", "Host: example.org\nX: y", "400 Bad Request"},
      {"example.org", "example.org\r\nOrigin: https://evil.example", "403 Forbidden"},
      {"example.org", "example.org\r\nOrigin: null", "403 Forbidden"},
      {"GET /game HTTP/1.1", "GET", "400 Bad Request"},
      {"GET /game HTTP/1.1", "", "400 Bad Request"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.with);
    const UpgradeAnswer answer = AnswerUpgrade(Replaced(Request(), one.what, one.with), kOptions);
    EXPECT_NE(answer.refused, "");
    EXPECT_THAT(answer.text, StartsWith(std::string("HTTP/1.1 ") + one.status + "\r\n"));
    EXPECT_THAT(answer.text, HasSubstr(one.also));
    EXPECT_THAT(answer.text, HasSubstr("Connection: close\r\n"));
    // The body is as long as it says.
    const std::size_t body = answer.text.find("\r\n\r\n") + 4;
    EXPECT_THAT(answer.text,
                HasSubstr("Content-Length: " + std::to_string(answer.text.size() - body) + "\r\n"));
    EXPECT_GT(answer.text.size(), body + 10);
  }
}

TEST(AnswerUpgrade, LetsClientsInThatAreNoPages) {
  EXPECT_EQ(AnswerUpgrade(Request(), kOptions).refused, "");
  const std::string any = Replaced(Request(), "Host", "Origin: http://x\r\nHost");
  EXPECT_EQ(AnswerUpgrade(any, {.path = "/game"}).refused, "");
}

TEST(UpgradeRequest, IsOneThatAServerAccepts) {
  const std::string key = NewUpgradeKey();
  EXPECT_NE(key, NewUpgradeKey());
  const Result<std::string> request =
      UpgradeRequest({.path = "/game?a=1", .host = "h:1", .origin = "https://game.example"}, key);
  ASSERT_TRUE(request.ok());
  const UpgradeAnswer answer = AnswerUpgrade(request.value(), kOptions);
  EXPECT_EQ(answer.refused, "");
  EXPECT_TRUE(CheckUpgradeAnswer(answer.text, key).ok());
}

TEST(UpgradeRequest, RefusesOptionsThatWouldBeMoreThanTheyAre) {
  for (const WebSocketConnectOptions& options :
       {WebSocketConnectOptions{.path = ""}, WebSocketConnectOptions{.path = "game"},
        WebSocketConnectOptions{.path = "/a b"}, WebSocketConnectOptions{.path = "/\r\nX: y"},
        WebSocketConnectOptions{.host = "h\r\nX: y"},
        WebSocketConnectOptions{.origin = "o\r\nX: y"}}) {
    const Result<std::string> request = UpgradeRequest(options, kKey);
    ASSERT_FALSE(request.ok());
    EXPECT_EQ(request.error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST(CheckUpgradeAnswer, RefusesWhatIsNoAnswerToTheKey) {
  EXPECT_TRUE(CheckUpgradeAnswer(Answer(), kKey).ok());
  EXPECT_FALSE(CheckUpgradeAnswer(Answer(), NewUpgradeKey()).ok());
  for (const auto& [what, with] : std::vector<std::pair<const char*, const char*>>{
           {"Upgrade: websocket", "Upgrade: h2c"},
           {"Connection: Upgrade", "Connection: close"},
           {"Sec-WebSocket-Accept", "X"},
           {"Connection", "Sec-WebSocket-Extensions: permessage-deflate\r\nConnection"},
           {"Connection", "Sec-WebSocket-Protocol: chat\r\nConnection"},
           {"HTTP/1.1", "SSH-2.0"}}) {
    SCOPED_TRACE(with);
    EXPECT_FALSE(CheckUpgradeAnswer(Replaced(Answer(), what, with), kKey).ok());
  }
  const Result<void> refused = CheckUpgradeAnswer(
      Replaced(Answer(), "101 Switching Protocols", "503 Service Unavailable"), kKey);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("503 Service Unavailable"));
  EXPECT_TRUE(CheckUpgradeAnswer(Replaced(Answer(), "101 Switching Protocols", "101"), kKey).ok());
}

TEST(HttpHeadReader, FindsTheEndInWhateverPieces) {
  const std::string text = Request() + "rest";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    HttpHeadReader reader;
    std::string stream = text;
    std::span<char> left(stream);
    while (true) {
      std::span<char> bytes = left.first(std::min(piece, left.size()));
      const std::size_t before = bytes.size();
      const bool complete = reader.Take(bytes).value();
      left = left.subspan(before - bytes.size());
      if (complete) break;
      ASSERT_TRUE(bytes.empty());
    }
    ASSERT_EQ(reader.text(), Request());
    ASSERT_EQ(std::string(left.begin(), left.end()), "rest");
  }
}

TEST(HttpHeadReader, KeepsNoMoreThanItsLimit) {
  for (const std::size_t piece : {1U, 100U, 8192U, 100000U}) {
    HttpHeadReader reader;
    std::size_t sent = 0;
    while (true) {
      std::string endless(piece, 'a');
      std::span<char> bytes(endless);
      sent += piece;
      if (!reader.Take(bytes).ok()) break;
      ASSERT_LT(sent, kHttpHeadBytesMax);
    }
    EXPECT_LE(reader.text().size(), kHttpHeadBytesMax);
  }
  // A long one that ends in time.
  HttpHeadReader reader;
  std::string longest(kHttpHeadBytesMax - 4, 'a');
  longest += "\r\n\r\n";
  std::span<char> bytes(longest);
  EXPECT_TRUE(reader.Take(bytes).value());
}

TEST(HttpHead, FindsFieldsInWhateverCase) {
  const HttpHead head =
      HttpHead::Parse("HTTP/1.1 404 Not Found\r\nA:  x \t\r\nb:\r\na: y , Z\r\n\r\n").value();
  EXPECT_EQ(head.words[1], "404");
  EXPECT_EQ(head.words[2], "Not Found");
  EXPECT_TRUE(head.Has("B"));
  EXPECT_EQ(head.Only("B"), "");
  EXPECT_EQ(head.Only("A"), std::nullopt);
  EXPECT_TRUE(head.HasToken("a", "z"));
  EXPECT_TRUE(head.HasToken("a", "X"));
  EXPECT_FALSE(head.HasToken("a", "xy"));
  EXPECT_FALSE(HttpHead::Parse("GET / HTTP/1.1\r\nA: b\r\n").ok());
  EXPECT_FALSE(HttpHead::Parse("").ok());
}

}  // namespace
}  // namespace zeze::internal
