#include "tools/cli/alert_options.h"

#include <chrono>
#include <string>

#include <CLI/CLI.hpp>

#include "zeze/admin/alert_sender.h"
#include "zeze/base/result.h"
#include "zeze/base/shell_command.h"
#include "zeze/base/text.h"
#include "zeze/net/http/http_post.h"

namespace zeze::cli {

void AddAlertOptions(CLI::App& command, AlertArguments& arguments) {
  command.add_option("--alert-command", arguments.command,
                     "Run by /bin/sh for each alert, with ZEZE_ALERT_KIND, ZEZE_ALERT_TEXT, "
                     "ZEZE_ALERT_SOURCE in its environment");
  command.add_option("--alert-webhook", arguments.webhook,
                     "http or https address that each alert is posted to, as JSON");
}

Result<void> CheckAlerts(const AlertArguments& arguments) {
  if (arguments.webhook.empty()) return {};
  return CheckHttpUrl(arguments.webhook);
}

admin::AlertSenderOptions AlertOptionsOf(const AlertArguments& arguments, const std::string& who) {
  return {.command = arguments.command,
          .webhook = arguments.webhook,
          .source = who + " on " + HostName()};
}

void AddDurationOption(CLI::App& command, const std::string& name, std::chrono::nanoseconds& value,
                       const std::string& about, std::chrono::nanoseconds least) {
  const CLI::callback_t read = [&value, name, least](const CLI::results_t& texts) {
    const Result<std::chrono::nanoseconds> parsed =
        ParseDuration(texts.at(0), std::chrono::milliseconds(1));
    if (!parsed.ok()) throw CLI::ValidationError(name, parsed.error().message());
    if (parsed.value().count() < 0) {
      throw CLI::ValidationError(name, "a duration is not negative");
    }
    if (parsed.value() < least) {
      throw CLI::ValidationError(name, "it must be at least " + FormatDuration(least));
    }
    value = parsed.value();
    return true;
  };
  command.add_option(name, read, about)->default_str(FormatDuration(value))->type_name("DURATION");
}

CLI::Option* AddTextOption(CLI::App& command, const std::string& name, std::string& value,
                           const std::string& about) {
  return command.add_option(name, value, about)->check([](const std::string& text) -> std::string {
    return text.empty() ? "it must not be empty" : "";
  });
}

}  // namespace zeze::cli
