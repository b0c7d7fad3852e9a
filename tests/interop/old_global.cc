// Stands in for the Java Global when that is not to be had: "listening on port N", until SIGTERM.

#include "zeze/global/service/testing/old_global.h"

#include <iostream>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

int main() {
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  zeze::global::testing::OldGlobal global;
  std::cout << "listening on port " << global.port() << '\n' << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}
