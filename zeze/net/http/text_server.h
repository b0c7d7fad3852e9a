// TextServer: pages of text for operators and their tools, over HTTP: metrics, for one.
//
//   Result<std::unique_ptr<TextServer>> server = TextServer::Start({.port = 9100});
//   server.value()->Add("/metrics", [&] { return linkd.GetStatistics().FormatMetrics(); });

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "zeze/base/result.h"

namespace zeze {

struct TextServerOptions {
  // Without TLS and without accounts: inside only.
  std::string ip = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any.

  // Connections at a time; more are closed at once.
  std::size_t connections_max = 16;
  // For everything of one connection.
  std::chrono::nanoseconds timeout = std::chrono::seconds(5);
};

// Answers GET, once for each connection, in a thread of its own: whoever asks disturbs nobody else.
// Thread-safe.
class TextServer {
 public:
  // Fails with kInUse or kInvalidArgument if it cannot listen there.
  static Result<std::unique_ptr<TextServer>> Start(const TextServerOptions& options);
  ~TextServer();
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;

  // What is behind a path. Called on the server's thread, and never after its end.
  void Add(const std::string& path, std::function<std::string()> page);

  std::uint16_t port() const;

 private:
  class Impl;
  explicit TextServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace zeze
