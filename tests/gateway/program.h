// Program: a program that a test started and talks with, a line at a time.
//
//   Program strangers({ZEZE_STRANGERS, "10000"});
//   EXPECT_EQ("did 100", strangers.Ask("storm oversize 100"));

#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is of POSIX.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/base/check.h"

namespace zeze::testing {

class Program {
 public:
  explicit Program(std::vector<std::string> command) {
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
  ~Program() {
    ::close(input_);
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Tell(const std::string& line) {
    const std::string text = line + "\n";
    ZEZE_CHECK(::write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  // The next line that it says; empty: it has ended.
  std::string Line() {
    std::size_t end = 0;
    while ((end = said_.find('\n')) == std::string::npos) {
      char bytes[4096];
      const ssize_t count = ::read(output_, bytes, sizeof bytes);
      if (count <= 0) return {};
      said_.append(bytes, static_cast<std::size_t>(count));
    }
    std::string line = said_.substr(0, end);
    said_.erase(0, end + 1);
    return line;
  }
  std::string Ask(const std::string& line) {
    Tell(line);
    return Line();
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

 private:
  pid_t process_ = 0;
  int input_ = -1;
  int output_ = -1;
  std::string said_;
};

}  // namespace zeze::testing
