// RunShellCommand: runs a command line of the operators: an alert, a fence.
//
//   Result<int> status = RunShellCommand({.command = "/etc/zeze/page-the-operator",
//                                         .environment = {{"ZEZE_ALERT_TEXT", text}},
//                                         .timeout = std::chrono::seconds(10)});

#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"

namespace zeze {

struct ShellCommand {
  std::string command;  // For /bin/sh -c. Untrusted text goes into variables, never in here.
  // Added to those of this process.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // Then it is killed with everything that it started and did not move to another process group.
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
};

// Blocks until it has ended. The exit status, 128 and the number of the signal that ended it as
// shells count. Errors: kUnavailable (could not be started), kUnknownOutcome (killed at the end of
// its time).
Result<int> RunShellCommand(const ShellCommand& command);

// The name of this machine, for messages; "unknown" if it has none.
std::string HostName();

}  // namespace zeze
