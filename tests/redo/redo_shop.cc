// The server of the crash test: redo_shop WHERE PORT. Says "ready"; ends in order with SIGTERM.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "tests/redo/shop.h"
#include "zeze/base/result.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto shop = zeze::redo_test::Shop::Open(argv[1], static_cast<std::uint16_t>(std::stoi(argv[2])));
  if (!shop.ok()) {
    std::cout << "failed: " << shop.error().message() << "\n" << std::flush;
    return 1;
  }
  std::cout << "ready" << "\n" << std::flush;
  int signal = 0;
  sigwait(&signals, &signal);
  const zeze::Result<void> stopped = shop.value()->application->Stop();
  if (!stopped.ok()) std::cout << "failed: " << stopped.error().message() << "\n" << std::flush;
  return stopped.ok() ? 0 : 1;
}
