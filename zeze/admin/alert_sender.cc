#include "zeze/admin/alert_sender.h"

#include <cctype>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/shell_command.h"
#include "zeze/net/http/http_post.h"
#include "zeze/serialize/utf8.h"

namespace zeze::admin {

namespace {

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : RepairUtf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < ' ' || byte == 0x7f) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string VariableName(std::string_view name) {
  std::string variable = "ZEZE_ALERT_";
  for (const char c : name) {
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

}  // namespace

std::string ToJson(const AlertMessage& message, const std::string& source) {
  std::string json = fmt::format(R"({{"kind":{},"text":{},"source":{})", Quote(message.kind),
                                 Quote(message.text), Quote(source));
  for (const auto& [name, value] : message.details) {
    json += fmt::format(",{}:{}", Quote(name), Quote(value));
  }
  return json + "}";
}

AlertSender::AlertSender(AlertSenderOptions options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

AlertSender::~AlertSender() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    stop_by_ = SystemClock().Now() + options_.timeout;
    changed_.NotifyAll();
  }
  thread_.join();
}

void AlertSender::Send(AlertMessage message) {
  if (!configured()) return;
  const MutexLock lock(mutex_);
  if (queue_.size() >= options_.queue_max) {
    ++statistics_.dropped;
    ZEZE_LOG_ERROR("too many alerts wait to be sent, one is dropped: {}", queue_.front().text);
    queue_.pop_front();
  }
  queue_.push_back(std::move(message));
  changed_.NotifyAll();
}

AlertSender::Statistics AlertSender::statistics() const {
  const MutexLock lock(mutex_);
  return statistics_;
}

void AlertSender::Run() {
  SetThreadName("alerts");
  while (true) {
    AlertMessage message;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(mutex_);
      if (queue_.empty()) return;
      if (stopping_ && SystemClock().Now() >= stop_by_) {
        ZEZE_LOG_ERROR("{} alerts were not sent before the end; the first: {}", queue_.size(),
                       queue_.front().text);
        return;
      }
      message = std::move(queue_.front());
      queue_.pop_front();
    }
    bool sent = true;
    if (!options_.command.empty()) sent = Try("command", message, &AlertSender::RunCommand);
    if (!options_.webhook.empty()) {
      sent = Try("webhook", message, &AlertSender::PostWebhook) && sent;
    }
    const MutexLock lock(mutex_);
    ++(sent ? statistics_.sent : statistics_.failed);
  }
}

bool AlertSender::Try(const char* way, const AlertMessage& message,
                      bool (AlertSender::*once)(const AlertMessage&) const) {
  for (int attempt = 1; attempt <= options_.attempts; ++attempt) {
    if ((this->*once)(message)) return true;
    const MutexLock lock(mutex_);
    const auto again = SystemClock().Now() + options_.retry_delay;
    while (!stopping_ && SystemClock().WaitUntil(changed_, mutex_, again)) {
    }
    if (stopping_) break;
  }
  ZEZE_LOG_ERROR("an alert was not sent by {}: {}", way, message.text);
  return false;
}

bool AlertSender::RunCommand(const AlertMessage& message) const {
  ShellCommand command{.command = options_.command,
                       .environment = {{"ZEZE_ALERT_KIND", message.kind},
                                       {"ZEZE_ALERT_TEXT", message.text},
                                       {"ZEZE_ALERT_SOURCE", options_.source}},
                       .timeout = options_.timeout};
  for (const auto& [name, value] : message.details) {
    command.environment.emplace_back(VariableName(name), value);
  }
  const Result<int> status = RunShellCommand(command);
  if (status.ok() && status.value() == 0) return true;
  ZEZE_LOG_WARNING("the alert command failed: {}", status.ok()
                                                       ? fmt::format("status {}", status.value())
                                                       : status.error().message());
  return false;
}

bool AlertSender::PostWebhook(const AlertMessage& message) const {
  const Result<void> posted = PostJson({.url = options_.webhook,
                                        .body = ToJson(message, options_.source),
                                        .timeout = options_.timeout,
                                        .authorities_file = options_.authorities_file});
  if (posted.ok()) return true;
  ZEZE_LOG_WARNING("the alert webhook failed: {}", posted.error().message());
  return false;
}

}  // namespace zeze::admin
