// Options that several commands share: where alerts go, and durations.

#pragma once

#include <chrono>
#include <string>

#include <CLI/CLI.hpp>

#include "zeze/admin/alert_sender.h"
#include "zeze/base/result.h"

namespace zeze::cli {

struct AlertArguments {
  std::string command;
  std::string webhook;
};

void AddAlertOptions(CLI::App& command, AlertArguments& arguments);
// Whether they can work at all.
Result<void> CheckAlerts(const AlertArguments& arguments);
// `who` with the name of the host is the source of the alerts.
admin::AlertSenderOptions AlertOptionsOf(const AlertArguments& arguments, const std::string& who);

// "30s", "1m30s"; a plain number is milliseconds. The default is what `value` has.
void AddDurationOption(CLI::App& command, const std::string& name, std::chrono::nanoseconds& value,
                       const std::string& about);

}  // namespace zeze::cli
