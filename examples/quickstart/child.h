// Child: the server process as the director sees it: started, listened to, killed.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace quickstart {

// Not thread-safe.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command);
  // Kills it, if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line of its output; none if there is none within the time, or at the end of output.
  std::optional<std::string> ReadLine(int timeout_ms);
  bool ended() const { return ended_; }

  // As a power failure would: no chance to say goodbye.
  void Kill() const;
  // Closes its input, which asks it to stop in order.
  void AskToStop();
  // Its exit code; -1 if it was killed.
  int Wait();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace quickstart
