#include "zeze/base/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<Url> Parse(std::string_view text) {
  return ParseUrl(text, {{"ws", 80}, {"wss", 443}});
}

TEST(Url, HasItsParts) {
  const Url full = Parse("wss://game.example:8443/play?region=3#top").value();
  EXPECT_EQ(full.scheme, "wss");
  EXPECT_EQ(full.host, "game.example");
  EXPECT_EQ(full.port, 8443);
  EXPECT_EQ(full.target, "/play?region=3");

  const Url shortest = Parse("WS://h").value();
  EXPECT_EQ(shortest.scheme, "ws");
  EXPECT_EQ(shortest.host, "h");
  EXPECT_EQ(shortest.port, 80);
  EXPECT_EQ(shortest.target, "/");

  const Url v6 = Parse("ws://[::1]:81?q").value();
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.port, 81);
  EXPECT_EQ(v6.target, "/?q");
}

TEST(Url, SaysWhatWasExpected) {
  for (const char* bad :
       {"", "h", "http://h/", "ws:/h", "ws://", "ws:///x", "ws://h:port/", "ws://h:0/",
        "ws://h:65536", "ws://user:secret@h/", "ws://h/a b", "ws://h/\r\nX:", "ws://h/\xc3\xa4"}) {
    const Result<Url> url = Parse(bad);
    ASSERT_FALSE(url.ok()) << bad;
    EXPECT_EQ(url.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(url.error().message(),
                HasSubstr("expected ws://host[:port][/path] or wss://host[:port][/path]"));
  }
}

TEST(Url, MasksPasswords) {
  EXPECT_EQ(MaskPasswords("postgresql://u:sekret@h/g"), "postgresql://u:***@h/g");
  EXPECT_EQ(MaskPasswords("jdbc:mysql://u:s@h:3306/g?user=a&password=sekret&x=1"),
            "jdbc:mysql://u:***@h:3306/g?user=a&password=***&x=1");
  EXPECT_EQ(MaskPasswords("from postgres://u:a@h/g to mysql://v:b@i:1/g"),
            "from postgres://u:***@h/g to mysql://v:***@i:1/g");
  // Characters that should have been encoded.
  EXPECT_EQ(MaskPasswords("postgresql://u:se/k@ret@h/g"), "postgresql://u:***@h/g");
  EXPECT_EQ(MaskPasswords("postgresql://u:se?kret@h/g"), "postgresql://u:***@h/g");
  for (const char* open : {"postgresql://u@h:5432/g", "mysql://h:1,i:2/g?user=a@b",
                           "ws://[::1]:81/p", "plain text", "", "://", "a://b:c"}) {
    EXPECT_EQ(MaskPasswords(open), open);
  }
}

TEST(Url, ErrorsDoNotRepeatPasswords) {
  EXPECT_THAT(Parse("ws://user:sekret@h/").error().message(), Not(HasSubstr("sekret")));
}

}  // namespace
}  // namespace zeze
