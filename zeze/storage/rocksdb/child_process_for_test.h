// ChildProcess: a program started by a test, with pipes to its input and output.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"

namespace zeze {

class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> command) {
    int input[2];
    int output[2];
    ZEZE_CHECK(::pipe2(input, O_CLOEXEC) == 0);
    ZEZE_CHECK(::pipe2(output, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    ZEZE_CHECK(
        ::posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    output_ = output[0];
  }

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  ~ChildProcess() {
    Kill();
    ::close(input_);
    ::close(output_);
  }

  pid_t id() const { return process_; }

  // Collects what it says into said(), until `done` of what was said so far, the end of the
  // output, or the time is over.
  template <typename Done>
  void Listen(std::chrono::microseconds time, Done done) {
    const auto end = SystemClock().Now() + time;
    while (!done(said_)) {
      const auto left = end - SystemClock().Now();
      if (left <= std::chrono::nanoseconds(0)) return;
      const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      const timespec timeout = {.tv_sec = nanoseconds / 1'000'000'000,
                                .tv_nsec = nanoseconds % 1'000'000'000};
      pollfd readable = {.fd = output_, .events = POLLIN, .revents = 0};
      if (::ppoll(&readable, 1, &timeout, nullptr) <= 0) continue;
      char bytes[4096];
      const ssize_t count = ::read(output_, bytes, sizeof bytes);
      if (count <= 0) return;
      said_.append(bytes, static_cast<std::size_t>(count));
    }
  }

  void ListenToTheEnd() {
    Listen(std::chrono::minutes(1), [](const std::string&) { return false; });
  }

  const std::string& said() const { return said_; }

  // The last whole line it said.
  std::string LastLine() const {
    const std::size_t end = said_.rfind('\n');
    if (end == std::string::npos) return "";
    const std::size_t begin = end == 0 ? std::string::npos : said_.rfind('\n', end - 1);
    return said_.substr(begin + 1, end - begin - 1);
  }

  // SIGKILL, and waits until it is gone.
  void Kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  int input_ = -1;
  int output_ = -1;
  std::string said_;
};

}  // namespace zeze
