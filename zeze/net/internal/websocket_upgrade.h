// How a connection becomes a WebSocket: one HTTP request and its answer, as text.
//
//   const std::string key = NewUpgradeKey();
//   Send(UpgradeRequest(options, key).value());
//   Result<void> accepted = CheckUpgradeAnswer(head, key);             // The client.
//
//   UpgradeAnswer answer = AnswerUpgrade(head, options);               // The server.
//   Send(answer.text);
//   if (!answer.refused.empty()) ...

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/websocket_options.h"

namespace zeze::internal {

// No browser's request is longer, unless it is full of somebody else's cookies.
inline constexpr std::size_t kHttpHeadBytesMax = 8192;

// Collects a head that comes in pieces.
class HttpHeadReader {
 public:
  // Removes what belongs to the head from the front. True when it is complete. Fails with kCorrupt,
  // and keeps nothing more, when it would be longer than kHttpHeadBytesMax.
  Result<bool> Take(std::span<char>& bytes);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct UpgradeAnswer {
  std::string text;          // To send.
  std::string refused = {};  // For the log. Empty: the connection is a WebSocket now.
};

// 101, or the status that says what is wrong with the request: 400 (no HTTP/1.1, no key, a body),
// 403 (origin), 404 (path), 405 (method), 426 (no upgrade, or another version than 13).
UpgradeAnswer AnswerUpgrade(std::string_view head, const WebSocketAcceptOptions& options);

// 431.
UpgradeAnswer RefuseLongHead();

std::string NewUpgradeKey();

// Fails with kInvalidArgument if an option cannot stand in a request.
Result<std::string> UpgradeRequest(const WebSocketConnectOptions& options, std::string_view key);

// Fails with kUnavailable if the server refuses, and with kCorrupt if this is no answer to the key.
Result<void> CheckUpgradeAnswer(std::string_view head, std::string_view key);

// Whether it can be asked for: a '/', and behind it neither blanks nor control characters. Fails
// with kInvalidArgument.
Result<void> CheckWebSocketPath(std::string_view path);

}  // namespace zeze::internal
