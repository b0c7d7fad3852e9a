#include "tools/cli/daemon_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): of POSIX.
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/alert_options.h"
#include "zeze/admin/alert_sender.h"
#include "zeze/admin/keeper.h"
#include "zeze/app/incarnation.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"

namespace zeze::cli {

namespace {

constexpr int kFailed = 1;

// Without a pause a server that cannot start would take a whole core.
constexpr std::chrono::milliseconds kDelayMin{10};

// Where the server finds the descriptor on which it says that it lives (zeze/app/liveness.h). One
// digit, so that a shell script can write to it, too.
constexpr int kLivenessDescriptor = 3;
constexpr std::string_view kLivenessVariable = "ZEZE_LIVENESS_FD";

// How many processes that have ended a new one is told of; the last is the one before it.
constexpr std::size_t kEndedMax = 16;

struct DaemonArguments {
  std::vector<std::string> command;
  admin::KeeperOptions keeper;
  AlertArguments alerts;
};

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

// The process that is kept, in a process group of its own with whatever it starts.
class Child {
 public:
  ~Child() { CloseLiveness(); }

  // Error: the reason why there is no process.
  Result<void> Start(std::vector<std::string> command, bool liveness) {
    std::array<int, 2> ends{-1, -1};
    // A socket and not a pipe: writing to it when this process is gone kills nobody.
    if (liveness && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return Error(ErrorCode::kUnavailable, ErrnoText(errno));
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (liveness) posix_spawn_file_actions_adddup2(&files, ends[1], kLivenessDescriptor);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;  // NOLINT(misc-include-cleaner): of <signal.h>.
    sigemptyset(&none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    incarnation_ = NewIncarnation();
    std::vector<std::string> variables = Environment(liveness);
    std::vector<char*> arguments = Pointers(command);
    std::vector<char*> environment = Pointers(variables);
    const int failure = posix_spawnp(&process_, arguments[0], &files, &attributes, arguments.data(),
                                     environment.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (liveness) close(ends[1]);
    CloseLiveness();
    liveness_ = ends[0];
    if (failure == 0) return {};
    process_ = 0;
    return Error(ErrorCode::kUnavailable, ErrnoText(failure));
  }

  // Nothing: it has not ended. Otherwise what it left running is killed, too: it must not stand in
  // the way of the next one.
  std::optional<admin::ProcessEnd> Ended() {
    if (process_ == 0) return std::nullopt;
    // NOLINTBEGIN(misc-include-cleaner): of <signal.h> and <sys/wait.h>.
    siginfo_t about{};
    // Not reaped yet, so that the number of its group cannot be anybody else's.
    if (waitid(P_PID, static_cast<id_t>(process_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        about.si_pid == 0) {
      return std::nullopt;
    }
    // NOLINTEND(misc-include-cleaner)
    kill(-process_, SIGKILL);
    int status = 0;
    waitpid(process_, &status, 0);
    // Proof that nothing is left which could use its rights (rule 62): the whole group is gone.
    if (kill(-process_, 0) != 0 && errno == ESRCH) {
      ended_.push_back(incarnation_);
      if (ended_.size() > kEndedMax) ended_.erase(ended_.begin());
    }
    process_ = 0;
    CloseLiveness();
    if (WIFEXITED(status)) return admin::ProcessEnd{.status = WEXITSTATUS(status)};
    return admin::ProcessEnd{.signal = WTERMSIG(status)};
  }

  void Signal(int signal) const {
    if (process_ != 0) kill(-process_, signal);
  }

  // True: it has said something since the last call.
  bool TakeBeats() {
    bool said = false;
    std::array<char, 256> bytes{};
    while (liveness_ >= 0) {
      const ssize_t size = recv(liveness_, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (size > 0) {
        said = true;
        continue;
      }
      if (size == 0) CloseLiveness();  // It has closed its end, and will say nothing more.
      if (size < 0 && errno == EINTR) continue;
      break;
    }
    return said;
  }

  int liveness() const { return liveness_; }
  pid_t process() const { return process_; }

 private:
  std::vector<std::string> Environment(bool liveness) const {
    constexpr std::array kOwn = {kLivenessVariable, kIncarnationVariable, kEndedVariable};
    std::vector<std::string> variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const bool own = std::any_of(kOwn.begin(), kOwn.end(), [text](std::string_view name) {
        return text.starts_with(name) && text.substr(name.size()).starts_with('=');
      });
      if (!own) variables.emplace_back(text);
    }
    if (liveness) variables.push_back(fmt::format("{}={}", kLivenessVariable, kLivenessDescriptor));
    variables.push_back(fmt::format("{}={}", kIncarnationVariable, incarnation_));
    variables.push_back(fmt::format("{}={}", kEndedVariable, fmt::join(ended_, ",")));
    return variables;
  }
  static std::string NewIncarnation() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
  }
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }
  void CloseLiveness() {
    if (liveness_ >= 0) close(liveness_);
    liveness_ = -1;
  }

  pid_t process_ = 0;
  int liveness_ = -1;
  std::string incarnation_;         // Of the last process.
  std::vector<std::string> ended_;  // Of earlier ones that have ended for certain.
};

class Daemon {
 public:
  explicit Daemon(const DaemonArguments& arguments)
      : arguments_(arguments),
        alerts_(AlertOptionsOf(arguments.alerts, "daemon")),
        keeper_(arguments.keeper, [this] { return std::uint64_t{random_()}; }) {}
  ~Daemon() {
    if (signals_ >= 0) close(signals_);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  int Run(const sigset_t& signals) {
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) {
      std::cerr << "zeze daemon: waiting for signals: " << ErrnoText(errno) << '\n';
      return kFailed;
    }
    while (true) {
      switch (keeper_.Next(Now())) {
        case admin::Keeper::Wish::kFinish:
          return keeper_.exit_code();
        case admin::Keeper::Wish::kStart:
          if (!Start()) return kFailed;
          break;
        case admin::Keeper::Wish::kTerminate:
          child_.Signal(stop_signal_);
          break;
        case admin::Keeper::Wish::kKill:
          child_.Signal(SIGKILL);
          break;
        case admin::Keeper::Wish::kNothing:
          Await();
      }
    }
  }

 private:
  static std::chrono::nanoseconds Now() { return SystemClock().Now(); }

  void Say(const std::string& text) const {
    std::cerr << fmt::format("zeze daemon: {} {}\n", arguments_.command.front(), text)
              << std::flush;
  }

  // False: it cannot be started even once, which waiting does not mend.
  bool Start() {
    const bool liveness = arguments_.keeper.liveness_timeout.count() != 0;
    const Result<void> started = child_.Start(arguments_.command, liveness);
    if (started.ok()) {
      ever_started_ = true;
      Say(fmt::format("runs as process {}", child_.process()));
      keeper_.OnStarted(Now());
      return true;
    }
    if (!ever_started_) {
      Say("cannot be started: " + started.error().message());
      return false;
    }
    keeper_.OnStartFailed(Now(), started.error().message());
    TellCrash();
    return true;
  }

  void TellCrash() {
    Say(keeper_.story());
    alerts_.Send({.kind = "restart",
                  .text = fmt::format("{} {}", fmt::join(arguments_.command, " "), keeper_.story()),
                  .details = {{"crashes", std::to_string(keeper_.crashes())}}});
  }

  // For a signal, a sign of life, or the time of the keeper's next decision.
  void Await() {
    int timeout = -1;
    if (const auto deadline = keeper_.NextDeadline(); deadline != admin::Keeper::Time::max()) {
      // NOLINTNEXTLINE(misc-include-cleaner): of <chrono>.
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now()).count();
      timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
    }
    std::array<pollfd, 2> sources{pollfd{.fd = signals_, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = child_.liveness(), .events = POLLIN, .revents = 0}};
    poll(sources.data(), sources.size(), timeout);
    if (child_.TakeBeats()) keeper_.OnBeat(Now());
    signalfd_siginfo signal{};
    while (read(signals_, &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo == SIGCHLD) continue;
      stop_signal_ = static_cast<int>(signal.ssi_signo);
      keeper_.OnStopRequested(Now());
    }
    if (const auto end = child_.Ended()) {
      keeper_.OnEnded(Now(), *end);
      if (keeper_.finished()) {
        Say(keeper_.story());
      } else {
        TellCrash();
      }
    }
  }

  const DaemonArguments& arguments_;
  std::random_device random_;
  admin::AlertSender alerts_;
  admin::Keeper keeper_;
  Child child_;
  int signals_ = -1;
  int stop_signal_ = SIGTERM;
  bool ever_started_ = false;
};

int RunDaemon(const DaemonArguments& arguments) {
  if (const Result<void> fits = CheckAlerts(arguments.alerts); !fits.ok()) {
    std::cerr << "zeze daemon: " << fits.error().message() << '\n';
    return kFailed;
  }
  // Before any thread starts, so that all of them leave the signals to this one.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Daemon(arguments).Run(signals);
}

}  // namespace

void AddDaemonCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DaemonArguments>();
  CLI::App* command =
      app.add_subcommand("daemon", "Run a server, and start it again when it crashes or hangs");
  admin::KeeperOptions& keeper = arguments->keeper;
  AddDurationOption(*command, "--first-delay", keeper.first_delay,
                    "Before the first restart; then twice as long each time", kDelayMin);
  AddDurationOption(*command, "--delay-max", keeper.delay_max, "The longest time between two runs",
                    kDelayMin);
  AddDurationOption(*command, "--steady", keeper.steady,
                    "After a run of so long the delays begin anew");
  AddDurationOption(*command, "--liveness-timeout", keeper.liveness_timeout,
                    "Kill it if its liveness probe does not succeed for so long; 0: never. It must "
                    "be a zeze Application, or write to the descriptor ZEZE_LIVENESS_FD");
  AddDurationOption(*command, "--start-timeout", keeper.start_timeout,
                    "The same for the first time after a start; 0: never");
  AddDurationOption(*command, "--stop-timeout", keeper.stop_timeout,
                    "Kill it if it has not ended so long after SIGTERM; 0: never");
  AddAlertOptions(*command, arguments->alerts);
  command->add_option("command", arguments->command, "Behind --: the server and its arguments")
      ->required();
  command->footer(
      "Ends when the server ends with status 0. SIGTERM and SIGINT are passed on to it.\n"
      "Example:\n"
      "  zeze daemon --liveness-timeout 30s --alert-command /etc/zeze/page -- ./shop --config "
      "zeze.xml");
  command->callback([arguments, &exit_code] { exit_code = RunDaemon(*arguments); });
}

}  // namespace zeze::cli
