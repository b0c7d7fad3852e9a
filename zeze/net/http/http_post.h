// PostJson: tells something to a web service, once.
//
//   Result<void> told = PostJson({.url = "https://hooks.example.com/zeze", .body = R"({"a":1})"});

#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze {

struct HttpPost {
  std::string url;  // http://host[:port][/path] or https://...
  std::string body;
  // For everything together, from the name to the answer.
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  // https: PEM of who may sign the server's certificate. Empty: the authorities of the system.
  std::string authorities_file = {};
};

// Blocks. Succeeds if the answer is of the 200s; redirections are not followed. Errors:
// kInvalidArgument (the address), kUnavailable (anything else; it may have arrived all the same).
Result<void> PostJson(const HttpPost& post);

// Whether PostJson could use it, for checking a configuration before it is needed.
Result<void> CheckHttpUrl(std::string_view url);

}  // namespace zeze
