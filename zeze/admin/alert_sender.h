// AlertSender: tells the operators: runs a command of theirs, posts to a web service of theirs.
//
//   AlertSender alerts({.command = "/etc/zeze/page", .source = "global 0 on host-a"});
//   alerts.Send({.kind = "lost", .text = "server 7 is silent", .details = {{"server_id", "7"}}});
//
// The command gets ZEZE_ALERT_KIND, ZEZE_ALERT_TEXT, ZEZE_ALERT_SOURCE and ZEZE_ALERT_SERVER_ID
// (the details) in its environment. The web service gets the same in JSON:
//
//   {"kind":"lost","text":"server 7 is silent","source":"global 0 on host-a","server_id":"7"}

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeze/base/mutex.h"

namespace zeze::admin {

struct AlertMessage {
  std::string kind;  // One word, for programs; the text is for people.
  std::string text;
  std::vector<std::pair<std::string, std::string>> details = {};  // Names like server_id.
};

std::string ToJson(const AlertMessage& message, const std::string& source);

struct AlertSenderOptions {
  std::string command = {};  // For /bin/sh. Empty: none.
  std::string webhook = {};  // http or https. Empty: none.
  std::string source = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);  // Of each attempt.
  int attempts = 3;
  std::chrono::nanoseconds retry_delay = std::chrono::seconds(1);
  // Messages that wait. When there are more the oldest is dropped, with a log line: the newest says
  // most about what is wrong now.
  std::size_t queue_max = 100;
  std::string authorities_file = {};  // For https; see HttpPost.
};

// Thread-safe. Send never waits; failures are logged.
class AlertSender {
 public:
  explicit AlertSender(AlertSenderOptions options);
  // Sends what waits, for as long as one attempt may take.
  ~AlertSender();
  AlertSender(const AlertSender&) = delete;
  AlertSender& operator=(const AlertSender&) = delete;

  void Send(AlertMessage message);

  struct Statistics {
    std::uint64_t sent = 0;    // By all ways that are configured.
    std::uint64_t failed = 0;  // By one of them at least.
    std::uint64_t dropped = 0;
  };
  Statistics statistics() const;
  bool configured() const { return !options_.command.empty() || !options_.webhook.empty(); }

 private:
  void Run();
  // Until it works, there are no more attempts, or the sender ends.
  bool Try(const char* way, const AlertMessage& message,
           bool (AlertSender::*once)(const AlertMessage&) const);
  bool RunCommand(const AlertMessage& message) const;
  bool PostWebhook(const AlertMessage& message) const;

  const AlertSenderOptions options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<AlertMessage> queue_ ZEZE_GUARDED_BY(mutex_);
  Statistics statistics_ ZEZE_GUARDED_BY(mutex_);
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  std::chrono::nanoseconds stop_by_ ZEZE_GUARDED_BY(mutex_){0};
  std::thread thread_;  // Last: it uses the rest.
};

}  // namespace zeze::admin
