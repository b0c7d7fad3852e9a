// ChildProcess: a program that a test has started, with pipes to its input and output.
//
//   ChildProcess strangers({ZEZE_STRANGERS, "10000"});
//   EXPECT_EQ("did 100", strangers.Ask("storm oversize 100"));
//
// Ends with this object.

#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is of POSIX.
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

  // --- a line at a time ---

  void Tell(const std::string& line) const {
    const std::string text = line + "\n";
    ZEZE_CHECK(::write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  // The next line that it says; empty: it has ended.
  std::string Line() {
    std::size_t end = 0;
    while ((end = said_.find('\n', lines_end_)) == std::string::npos) {
      if (!ReadMore()) return {};
    }
    std::string line = said_.substr(lines_end_, end - lines_end_);
    lines_end_ = end + 1;
    return line;
  }
  std::string Ask(const std::string& line) {
    Tell(line);
    return Line();
  }

  // --- all of it ---

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
      if (!ReadMore()) return;
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

  // It runs on the first processor only, so that two programs meet the same neighbours.
  void Pin() const {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process_) + "/task")) {
      ::sched_setaffinity(std::stoi(task.path().filename().string()), sizeof first, &first);
    }
  }

  // Resident bytes.
  std::size_t MemoryInUse() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
    std::size_t size = 0;
    std::size_t resident = 0;
    file >> size >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

  // SIGKILL, and waits until it is gone.
  void Kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  // False: it has closed its output.
  bool ReadMore() {
    char bytes[4096];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count <= 0) return false;
    said_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  pid_t process_ = 0;
  int input_ = -1;
  int output_ = -1;
  std::string said_;
  std::size_t lines_end_ = 0;  // In said_: behind what Line has given.
};

}  // namespace zeze
