#include "signals.h"

#include <chrono>
#include <csignal>
#include <ctime>

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

bool EndSignalWithin(std::chrono::nanoseconds patience) {
  if (patience <= std::chrono::nanoseconds(0)) return false;
  const sigset_t signals = EndSignals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (patience - seconds).count()};
  return sigtimedwait(&signals, nullptr, &wait) > 0;
}

}  // namespace arena_example
