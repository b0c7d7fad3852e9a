#include "zeze/storage/testing/server_process.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/text.h"

namespace zeze {
namespace {

// The user as numbers, asked for before the fork. Root itself if there is no such user.
struct Identity {
  bool change = false;
  uid_t user = 0;
  gid_t group = 0;
};

Identity IdentityOf(const std::string& user) {
  if (::getuid() != 0 || user.empty()) return {};
  const passwd* entry = ::getpwnam(user.c_str());      // NOLINT(concurrency-mt-unsafe): tests only.
  if (entry == nullptr) entry = ::getpwnam("nobody");  // NOLINT(concurrency-mt-unsafe)
  if (entry == nullptr) return {};
  return {.change = true, .user = entry->pw_uid, .group = entry->pw_gid};
}

[[noreturn]] void BecomeProgram(const Identity& identity, int output, int signal_at_end,
                                char* const* arguments) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  bool ready = ::setpgid(0, 0) == 0;
  if (identity.change) {
    ready = ready && ::setgroups(0, nullptr) == 0 && ::setgid(identity.group) == 0 &&
            ::setuid(identity.user) == 0;
  }
  // Behind setuid, which clears it.
  ready = ready && ::prctl(PR_SET_PDEATHSIG, signal_at_end) == 0;
  if (ready) ::execv(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

ServerProcess::ServerProcess(const ServerProcessOptions& options)
    : end_signal_(options.end_signal) {
  int output[2] = {-1, -1};
  ZEZE_CHECK(::pipe2(output, O_CLOEXEC) == 0);
  const Identity identity = IdentityOf(options.user);
  std::vector<std::string> command = options.command;
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  process_ = ::fork();
  ZEZE_CHECK(process_ >= 0);
  if (process_ == 0) BecomeProgram(identity, output[1], end_signal_, arguments.data());
  ::close(output[1]);
  output_ = output[0];
  listener_ = std::thread([this] { Listen(); });
}

ServerProcess::~ServerProcess() {
  Stop();
  listener_.join();
  ::close(output_);
}

void ServerProcess::Listen() {
  char bytes[4096];
  for (;;) {
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    MutexLock lock(mutex_);
    if (count <= 0) {
      ended_ = true;
      changed_.NotifyAll();
      return;
    }
    said_.append(bytes, static_cast<std::size_t>(count));
    changed_.NotifyAll();
  }
}

bool ServerProcess::AwaitLine(std::string_view text, std::chrono::nanoseconds timeout) {
  const auto deadline = SystemClock().Now() + timeout;
  MutexLock lock(mutex_);
  while (said_.find(text) == std::string::npos) {
    if (ended_ || !SystemClock().WaitUntil(changed_, mutex_, deadline)) {
      return said_.find(text) != std::string::npos;
    }
  }
  return true;
}

std::string ServerProcess::said() const {
  MutexLock lock(mutex_);
  return said_;
}

bool ServerProcess::running() const {
  MutexLock lock(mutex_);
  return !ended_;
}

void ServerProcess::Signal(int signal) const {
  if (!reaped_) ::kill(process_, signal);
}

void ServerProcess::Reap() {
  if (reaped_) return;
  int status = 0;
  ZEZE_CHECK(::waitpid(process_, &status, 0) == process_);
  reaped_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int ServerProcess::AwaitEnd() {
  Reap();
  // Its end is also the end of its output, unless it left children behind.
  const auto deadline = SystemClock().Now() + std::chrono::seconds(10);
  MutexLock lock(mutex_);
  while (!ended_ && SystemClock().WaitUntil(changed_, mutex_, deadline)) {
  }
  return exit_code_;
}

void ServerProcess::Stop() {
  Signal(SIGCONT);
  Signal(end_signal_);
  Reap();
}

void ServerProcess::Kill() {
  Signal(SIGKILL);
  Reap();
}

ProgramResult RunProgram(const ServerProcessOptions& options) {
  ServerProcess process(options);
  ProgramResult result;
  result.exit_code = process.AwaitEnd();
  result.said = process.said();
  return result;
}

std::string FindProgram(const std::vector<std::string>& candidates) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it.
  for (const std::string& candidate : candidates) {
    if (candidate.find('/') != std::string::npos) {
      if (::access(candidate.c_str(), X_OK) == 0) return candidate;
      continue;
    }
    for (std::string_view folder : Split(path == nullptr ? "" : path, ':')) {
      std::string full = std::string(folder) + "/" + candidate;
      if (::access(full.c_str(), X_OK) == 0) return full;
    }
  }
  return "";
}

int FreePort() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ZEZE_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  ZEZE_CHECK(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(listener);
  return ntohs(address.sin_port);
}

void GiveDirectoryTo(const std::string& path, const std::string& user) {
  const Identity identity = IdentityOf(user);
  if (identity.change) ZEZE_CHECK(::chown(path.c_str(), identity.user, identity.group) == 0);
}

}  // namespace zeze
