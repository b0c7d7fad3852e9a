#include "zeze/base/shell_command.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze {

namespace {

// No descriptor tells of the end of a process on every kernel that we run on: look.
constexpr std::chrono::nanoseconds kLookPeriod = std::chrono::milliseconds(10);

std::vector<std::string> Environment(const ShellCommand& command) {
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : command.environment) {
      replaced = replaced || text.starts_with(name + "=");
    }
    if (!replaced) variables.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment) {
    // The text up to a NUL is what the command would see anyhow.
    variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

// Of its own process group, so that a time-out reaches what it has started; with the signals as a
// shell expects them, whatever this process blocks.
// NOLINTNEXTLINE(misc-include-cleaner): pid_t is of <sys/types.h>.
int Spawn(const ShellCommand& command, pid_t& child) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;  // NOLINT(misc-include-cleaner): of <csignal>.
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

  std::vector<std::string> variables = Environment(command);
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command.command;
  const std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
  const int failure =
      posix_spawn(&child, "/bin/sh", &files, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return failure;
}

}  // namespace

Result<int> RunShellCommand(const ShellCommand& command) {
  pid_t child = 0;
  if (const int failure = Spawn(command, child); failure != 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("starting /bin/sh for \"{}\": {}", command.command,
                             std::generic_category().message(failure)));
  }
  Clock& clock = SystemClock();
  const std::chrono::nanoseconds deadline = clock.Now() + command.timeout;
  bool killed = false;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, killed ? 0 : WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) {
      return Error(ErrorCode::kUnknownOutcome,
                   fmt::format("waiting for \"{}\": {}", command.command,
                               std::generic_category().message(errno)));
    }
    if (killed) continue;
    if (clock.Now() >= deadline) {
      kill(-child, SIGKILL);
      killed = true;
    } else {
      clock.SleepFor(kLookPeriod);
    }
  }
  if (killed) {
    return Error(ErrorCode::kUnknownOutcome,
                 fmt::format("\"{}\" took longer than {} and was killed", command.command,
                             FormatDuration(command.timeout)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string HostName() {
  std::string host(256, '\0');
  if (gethostname(host.data(), host.size() - 1) != 0) return "unknown";
  host.resize(host.find('\0'));
  return host;
}

}  // namespace zeze
