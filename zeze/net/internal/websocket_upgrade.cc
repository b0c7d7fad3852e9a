#include "zeze/net/internal/websocket_upgrade.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/net/internal/http_head.h"
#include "zeze/net/websocket_options.h"

namespace zeze::internal {

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kVersion = "13";
constexpr std::size_t kKeyBytes = 16;

std::string Base64(std::span<const unsigned char> bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

// What a server that has understood the request makes of the key (RFC 6455, 4.2.2).
std::string AcceptOf(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned length = 0;
  const int done =
      EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr);
  ZEZE_CHECK(done == 1);
  return Base64(std::span(digest).first(length));
}

// 16 bytes in base 64.
bool IsKey(std::string_view key) {
  constexpr std::size_t kTextBytes = 24;
  if (key.size() != kTextBytes || !key.ends_with("==")) return false;
  return std::ranges::all_of(key.substr(0, kTextBytes - 2), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  });
}

bool IsVisible(char c) {
  return c > 0x20 && c < 0x7F;
}

// Of a stranger's text, what a line of the log can bear.
std::string_view Shown(std::string_view text) {
  return text.substr(0, 100);
}

UpgradeAnswer Refuse(std::string_view status, std::string_view sentence, std::string why,
                     std::string_view fields = {}) {
  return {.text = fmt::format("HTTP/1.1 {}\r\n"
                              "Content-Type: text/plain\r\n"
                              "Content-Length: {}\r\n"
                              "Connection: close\r\n"
                              "{}\r\n"
                              "{}\n",
                              status, sentence.size() + 1, fields, sentence),
          .refused = fmt::format("the upgrade to WebSocket is refused with status {}: {}",
                                 status.substr(0, 3), why)};
}

bool MayComeFrom(const std::vector<std::string>& allowed, std::string_view origin) {
  return allowed.empty() || std::ranges::any_of(allowed, [origin](const std::string& one) {
           return EqualsIgnoreCase(one, origin);
         });
}

}  // namespace

Result<bool> HttpHeadReader::Take(std::span<char>& bytes) {
  const std::size_t before = text_.size();
  const std::size_t room = kHttpHeadBytesMax - before;
  text_.append(bytes.data(), std::min(bytes.size(), room));
  // The end may have begun earlier.
  const std::size_t from = before - std::min(before, kHeadEnd.size() - 1);
  const std::size_t end = text_.find(kHeadEnd, from);
  if (end == std::string::npos) {
    if (bytes.size() <= room) {
      bytes = {};
      if (text_.size() < kHttpHeadBytesMax) return false;
    }
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("the head of an HTTP message has more than {} bytes", kHttpHeadBytesMax));
  }
  text_.resize(end + kHeadEnd.size());
  bytes = bytes.subspan(text_.size() - before);
  return true;
}

UpgradeAnswer RefuseLongHead() {
  return Refuse("431 Request Header Fields Too Large",
                fmt::format("The head of a request has at most {} bytes here.", kHttpHeadBytesMax),
                "its head is too long");
}

UpgradeAnswer AnswerUpgrade(std::string_view head, const WebSocketAcceptOptions& options) {
  const auto bad = [](const std::string& why) {
    return Refuse("400 Bad Request", "This is no request for a WebSocket: " + why + ".", why);
  };
  const Result<HttpHead> parsed = HttpHead::Parse(head);
  if (!parsed.ok()) return bad(parsed.error().message());
  const HttpHead& request = parsed.value();
  const auto& [method, target, version] = request.words;
  if (version != "HTTP/1.1" || !target.starts_with('/')) {
    return bad("the first line is not of the form GET /path HTTP/1.1");
  }
  if (method != "GET") {
    return Refuse("405 Method Not Allowed", "A WebSocket begins with GET.",
                  fmt::format("the method {}", Shown(method)), "Allow: GET\r\n");
  }
  if (!request.HasToken("Upgrade", "websocket") || !request.HasToken("Connection", "upgrade")) {
    return Refuse("426 Upgrade Required",
                  "This port speaks WebSocket, and there is no page to see: connect with a client, "
                  "by ws:// or wss://.",
                  fmt::format("a plain request of {}", Shown(target)), "Upgrade: websocket\r\n");
  }
  if (request.Only("Sec-WebSocket-Version") != kVersion) {
    return Refuse("426 Upgrade Required", "This server speaks version 13 of WebSocket.",
                  "another version of WebSocket than 13",
                  "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  }
  const std::optional<std::string_view> key = request.Only("Sec-WebSocket-Key");
  if (!key.has_value() || !IsKey(*key)) return bad("Sec-WebSocket-Key is missing or wrong");
  if (!request.Only("Host").has_value()) return bad("Host is missing, or there twice");
  if (request.Has("Transfer-Encoding") || request.Only("Content-Length").value_or("0") != "0") {
    return bad("it has a body");
  }
  if (target.substr(0, target.find('?')) != options.path) {
    return Refuse("404 Not Found", "There is no WebSocket at this path.",
                  fmt::format("the path {}", Shown(target)));
  }
  if (request.Has("Origin")) {
    const std::string_view origin = request.Only("Origin").value_or("");
    if (!MayComeFrom(options.allowed_origins, origin)) {
      return Refuse("403 Forbidden", "Pages of this origin may not connect.",
                    fmt::format("the origin {}", Shown(origin)));
    }
  }
  return {.text = fmt::format("HTTP/1.1 101 Switching Protocols\r\n"
                              "Upgrade: websocket\r\n"
                              "Connection: Upgrade\r\n"
                              "Sec-WebSocket-Accept: {}\r\n"
                              "\r\n",
                              AcceptOf(*key))};
}

std::string NewUpgradeKey() {
  std::array<unsigned char, kKeyBytes> bytes = {};
  ZEZE_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  return Base64(bytes);
}

Result<void> CheckWebSocketPath(std::string_view path) {
  if (path.starts_with('/') && std::ranges::all_of(path, IsVisible)) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no path for a WebSocket: expected '/', and behind it letters, "
                           "digits and signs of ASCII, without blanks",
                           path));
}

Result<std::string> UpgradeRequest(const WebSocketConnectOptions& options, std::string_view key) {
  if (Result<void> checked = CheckWebSocketPath(options.path); !checked.ok()) {
    return checked.error();
  }
  if (!std::ranges::all_of(options.host, IsVisible) ||
      !std::ranges::all_of(options.origin, IsVisible)) {
    return Error(ErrorCode::kInvalidArgument,
                 "the host and the origin of a WebSocket have no blanks or control characters");
  }
  std::string request = fmt::format(
      "GET {} HTTP/1.1\r\n"
      "Host: {}\r\n"
      "Upgrade: websocket\r\n"
      "Connection: Upgrade\r\n"
      "Sec-WebSocket-Key: {}\r\n"
      "Sec-WebSocket-Version: {}\r\n",
      options.path, options.host, key, kVersion);
  if (!options.origin.empty()) request += fmt::format("Origin: {}\r\n", options.origin);
  return request + "\r\n";
}

Result<void> CheckUpgradeAnswer(std::string_view head, std::string_view key) {
  Result<HttpHead> parsed = HttpHead::Parse(head);
  if (!parsed.ok()) return parsed.error();
  const HttpHead& answer = parsed.value();
  const auto& [version, status, phrase] = answer.words;
  if (!version.starts_with("HTTP/1.")) {
    return Error(ErrorCode::kCorrupt, "the server does not answer with HTTP/1.1");
  }
  if (status != "101") {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the server refuses to upgrade to WebSocket: {} {}", Shown(status),
                             Shown(phrase)));
  }
  if (!answer.HasToken("Upgrade", "websocket") || !answer.HasToken("Connection", "upgrade") ||
      answer.Only("Sec-WebSocket-Accept") != AcceptOf(key)) {
    return Error(ErrorCode::kCorrupt, "the server's answer is not one to an upgrade to WebSocket");
  }
  if (answer.Has("Sec-WebSocket-Extensions") || answer.Has("Sec-WebSocket-Protocol")) {
    return Error(ErrorCode::kCorrupt,
                 "the server answers with an extension or a protocol that nobody asked for");
  }
  return {};
}

}  // namespace zeze::internal
