// ServerProcess: a database server that a test started, and what it says.
//
//   ServerProcess process({.command = {"/usr/sbin/mariadbd", ...}, .user = "mysql"});
//   if (!process.AwaitLine("ready for connections", std::chrono::minutes(1))) fail(process.said());
//
// The server ends with this object, and also if the test is killed.

#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "zeze/base/mutex.h"

namespace zeze {

struct ServerProcessOptions {
  std::vector<std::string> command;
  // Database servers refuse to run as root: as whom then. Ignored if we are not root.
  std::string user = {};
  int end_signal = 15;  // Sent to it when it shall end.
};

// Thread-safe. Make it on a thread that outlives it.
class ServerProcess {
 public:
  explicit ServerProcess(const ServerProcessOptions& options);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  pid_t id() const { return process_; }

  // True as soon as a line with this text was said, since the start. False: it ended before, or the
  // time is over.
  bool AwaitLine(std::string_view text, std::chrono::nanoseconds timeout);

  // Not any more once it has closed its output.
  bool running() const;

  // Waits for its end, and until all that it said has been read. The exit code, or 128 and the
  // signal.
  int AwaitEnd();

  void Signal(int signal) const;
  void Stop();  // The end signal, and waits.
  void Kill();  // SIGKILL, and waits.

  std::string said() const;

 private:
  void Listen();
  void Reap();

  const int end_signal_;
  pid_t process_ = 0;
  int output_ = -1;
  std::thread listener_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::string said_ ZEZE_GUARDED_BY(mutex_);
  bool ended_ ZEZE_GUARDED_BY(mutex_) = false;  // It closed its output.
  bool reaped_ = false;
  int exit_code_ = 0;
};

// Runs a program to its end; what it said if it failed. Input may be empty.
struct ProgramResult {
  int exit_code = 0;
  std::string said;
};
ProgramResult RunProgram(const ServerProcessOptions& options);

// The first of these that is a program, or empty. Names without '/' are looked for in PATH.
std::string FindProgram(const std::vector<std::string>& candidates);

// A TCP port on 127.0.0.1 that nobody has now.
int FreePort();

// Gives the directory to the user, if we are root.
void GiveDirectoryTo(const std::string& path, const std::string& user);

}  // namespace zeze
