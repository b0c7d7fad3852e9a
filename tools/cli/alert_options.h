// Options that several commands share: where alerts go, durations, and texts that say something.

#pragma once

#include <chrono>
#include <cstdint>
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

// For options that count milliseconds: what a validator prints must be readable, as the largest
// double is not.
inline constexpr std::int64_t kMillisecondsMax = std::int64_t{365} * 24 * 3600 * 1000;

// "30s", "1m30s"; a plain number is milliseconds. The default is what `value` has. A shorter one
// than `least` is refused.
void AddDurationOption(CLI::App& command, const std::string& name, std::chrono::nanoseconds& value,
                       const std::string& about,
                       std::chrono::nanoseconds least = std::chrono::nanoseconds(0));

// An option that is refused if its text is empty, as an unset variable of a shell makes it: an
// empty file of certificates must not mean that the connection is not encrypted.
CLI::Option* AddTextOption(CLI::App& command, const std::string& name, std::string& value,
                           const std::string& about);

}  // namespace zeze::cli
