#include "signals.h"

#include <csignal>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

namespace arena_example {

namespace {

sigset_t EndSignals() {  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void WaitForTheEnd() {
  const sigset_t signals = EndSignals();
  int signal = 0;
  sigwait(&signals, &signal);
}

}  // namespace arena_example
