#include "child.h"

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quickstart {

Child::Child(const std::vector<std::string>& command) {
  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) {
    ::dup2(to_child[0], STDIN_FILENO);
    ::dup2(from_child[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));  // NOLINT: execv does not write
    }
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    std::_Exit(127);
  }
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = to_child[1];
  output_ = from_child[0];
}

Child::~Child() {
  if (pid_ > 0) {
    Kill();
    Wait();
  }
  if (input_ >= 0) ::close(input_);
  ::close(output_);
}

std::optional<std::string> Child::ReadLine(int timeout_ms) {
  while (true) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (ended_) return std::nullopt;
    pollfd poll{.fd = output_, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, timeout_ms) <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count <= 0) {
      ended_ = true;
    } else {
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
  }
}

void Child::Kill() const {
  ::kill(pid_, SIGKILL);
}

void Child::AskToStop() {
  ::close(std::exchange(input_, -1));
}

int Child::Wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace quickstart
