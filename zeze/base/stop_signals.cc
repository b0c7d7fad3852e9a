#include "zeze/base/stop_signals.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t is of POSIX.
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"

namespace zeze {
namespace {

// Of the process, as signals are.
struct UnsavedParts {
  Mutex mutex;
  std::map<const StopSignals::Unsaved*, std::function<std::string()>> parts ZEZE_GUARDED_BY(mutex);
};

UnsavedParts& Parts() {
  static auto* const parts = new UnsavedParts;  // Signals come until the very end.
  return *parts;
}

bool AnyUnsaved() {
  const MutexLock lock(Parts().mutex);
  return !Parts().parts.empty();
}

std::string DescribeUnsaved() {
  const MutexLock lock(Parts().mutex);
  std::string all;
  for (const auto& [part, describe] : Parts().parts) {
    all += (all.empty() ? "" : "; ") + describe();
  }
  return all.empty() ? "nothing" : all;
}

sigset_t BothSignals() {  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

const char* NameOf(int signal) {
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

// As if nobody had blocked the signal.
[[noreturn]] void EndBy(int signal) {
  std::signal(signal, SIG_DFL);
  const sigset_t signals = BothSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  ::kill(::getpid(), signal);
  std::_Exit(128 + signal);
}

}  // namespace

StopSignals::Unsaved::Unsaved(std::function<std::string()> describe) {
  const MutexLock lock(Parts().mutex);
  Parts().parts.emplace(this, std::move(describe));
}

StopSignals::Unsaved::~Unsaved() {
  const MutexLock lock(Parts().mutex);
  Parts().parts.erase(this);
}

StopSignals::StopSignals() {
  const sigset_t signals = BothSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  ZEZE_CHECK(signals_ >= 0 && end_ >= 0);
  listener_ = std::thread([this] { Listen(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  ZEZE_CHECK(::write(end_, &one, sizeof one) == sizeof one);
  listener_.join();
  ::close(signals_);
  ::close(end_);
  const sigset_t signals = BothSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

int StopSignals::Wait() {
  const MutexLock lock(mutex_);
  waiting_ = true;
  while (signal_ == 0) changed_.Wait(mutex_);
  return signal_;
}

void StopSignals::Listen() {
  SetThreadName("stop-signals");
  for (;;) {
    pollfd either[2] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                        {.fd = end_, .events = POLLIN, .revents = 0}};
    if (::poll(either, 2, -1) < 0) continue;
    if (either[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) == sizeof info) {
      OnSignal(static_cast<int>(info.ssi_signo));
    }
  }
}

void StopSignals::OnSignal(int signal) {
  const MutexLock lock(mutex_);
  if (signal_ != 0) {
    ZEZE_LOG_CRITICAL(
        "a second signal ({}) ends this process before its stop is complete; what "
        "is lost: {}",
        NameOf(signal), DescribeUnsaved());
    EndBy(signal);
  }
  if (!waiting_ && !AnyUnsaved()) {
    ZEZE_LOG_WARNING("{} ends this process before its start is complete", NameOf(signal));
    EndBy(signal);
  }
  signal_ = signal;
  changed_.NotifyAll();
}

}  // namespace zeze
