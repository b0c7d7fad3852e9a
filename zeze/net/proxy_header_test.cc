// Tests of the PROXY protocol's parser.

#include "zeze/net/proxy_header.h"

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeze {
namespace {

using std::string_literals::operator""s;

const std::string signature = "\r\n\r\n\0\r\nQUIT\n"s;

// The source as text, "none" while incomplete, or "error"; and what is left of the stream.
std::string Parse(std::string_view stream, std::string* rest = nullptr) {
  Result<std::optional<ProxyHeader>> header = TakeProxyHeader(stream);
  if (rest != nullptr) *rest = stream;
  if (!header.ok()) return "error";
  if (!header.value().has_value()) return "none";
  return header.value()->source.ToString() + " " + header.value()->destination.ToString();
}

TEST(ProxyHeader, ReadsLinesAndLeavesWhatFollows) {
  std::string rest;
  EXPECT_EQ(Parse("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nframe", &rest),
            "192.0.2.1:56324 198.51.100.2:443");
  EXPECT_EQ(rest, "frame");
  EXPECT_EQ(Parse("PROXY TCP6 2001:db8::1 ::1 65535 40000\r\n"), "[2001:db8::1]:65535 [::1]:40000");
  EXPECT_EQ(Parse("PROXY UNKNOWN\r\n"), "unknown unknown");
  EXPECT_EQ(Parse("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), "unknown unknown");
}

TEST(ProxyHeader, ReadsBinaryHeaders) {
  std::string rest;
  // Ports above 32767 are where signed readers fail.
  EXPECT_EQ(Parse(signature + "\x21\x11\x00\x0c"s +
                      "\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb"s + "rest",
                  &rest),
            "192.0.2.1:56324 198.51.100.2:443");
  EXPECT_EQ(rest, "rest");
  // Extensions behind the addresses are passed over.
  EXPECT_EQ(Parse(signature + "\x21\x11\x00\x10"s +
                      "\xc0\x00\x02\x01\xc6\x33\x64\x02\x00\x01\x00\x02\x03\x00\x01x"s,
                  &rest),
            "192.0.2.1:1 198.51.100.2:2");
  EXPECT_EQ(rest, "");
  // The proxy itself, and families that are not ours.
  EXPECT_EQ(Parse(signature + "\x20\x00\x00\x00"s), "unknown unknown");
  EXPECT_EQ(Parse(signature + "\x21\x31\x00\x01z"s), "unknown unknown");
  const std::string v6 = std::string(15, '\0') + "\x01" + std::string(15, '\0') + "\x02";
  EXPECT_EQ(Parse(signature + "\x21\x21\x00\x24"s + v6 + "\x80\x00\xff\xff"s),
            "[::1]:32768 [::2]:65535");
}

TEST(ProxyHeader, WaitsForTheRest) {
  for (const std::string& whole :
       {"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"s,
        signature + "\x21\x11\x00\x0c"s + "\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb"s}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      std::string rest;
      EXPECT_EQ(Parse(std::string_view(whole).substr(0, length), &rest), "none");
      EXPECT_EQ(rest.size(), length);
    }
    EXPECT_NE(Parse(whole), "none");
  }
}

TEST(ProxyHeader, RefusesEverythingElseAsSoonAsItShows) {
  for (const std::string& bytes :
       {"G"s, "PROXX"s, "\r\n\r\r"s, "PROXY TCP4 1.2.3.4 1.2.3.4 1 70000\r\n"s,
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n"s, "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n"s,
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"s, "PROXY SCTP 1.2.3.4 1.2.3.4 1 2\r\n"s,
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n"s, "PROXY " + std::string(101, 'x'),
        signature + "\x11\x11\x00\x0c"s, signature + "\x22\x11\x00\x0c"s,
        signature + "\x21\x11\xff\xff"s, signature + "\x21\x11\x00\x0b"s + std::string(11, 'x')}) {
    EXPECT_EQ(Parse(bytes), "error") << bytes;
  }
}

}  // namespace
}  // namespace zeze
