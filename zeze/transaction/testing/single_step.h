// SingleStep: runs a piece of code one machine instruction at a time and stops it behind the n-th,
// so that a test can let another thread do its work exactly there. Trying all n tries every place
// where a thread may lose its core.
//
//   for (std::size_t n = 1;; ++n) {
//     SingleStep step(n);
//     std::thread thread([&] {
//       step.Begin();
//       Commit();
//       step.End();
//     });
//     const bool stopped = step.AwaitStop();
//     TakeCut();
//     step.GoOn();
//     thread.join();
//     if (!stopped) break;  // It ended before: all places were tried.
//   }

#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include <sched.h>
#include <ucontext.h>

// Sanitizers run far too many instructions of their own, and keep signals back.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ZEZE_SINGLE_STEP 1
#else
#define ZEZE_SINGLE_STEP 0
#endif

namespace zeze::testing {

// One at a time in a process.
class SingleStep {
 public:
  // Stops behind the n-th instruction of what runs between Begin and End.
  explicit SingleStep(std::size_t n) : left_(n) {
#if ZEZE_SINGLE_STEP
    current_ = this;
    struct sigaction action{};
    action.sa_sigaction = &OnTrap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &previous_);
#endif
  }
  ~SingleStep() {
#if ZEZE_SINGLE_STEP
    sigaction(SIGTRAP, &previous_, nullptr);
    current_ = nullptr;
#endif
  }
  SingleStep(const SingleStep&) = delete;
  SingleStep& operator=(const SingleStep&) = delete;

  // On the thread that is to be stopped.
  void Begin() { SetTrapFlag(true); }
  void End() {
    SetTrapFlag(false);
    State running = State::kRunning;
    state_.compare_exchange_strong(running, State::kEnded);
  }

  // True once it stands still; false if it came to the end before.
  bool AwaitStop() const {
    while (state_ == State::kRunning) sched_yield();
    return state_ == State::kStopped;
  }
  void GoOn() { state_ = State::kGoingOn; }

 private:
  enum class State : std::uint8_t { kRunning, kStopped, kGoingOn, kEnded };

  static constexpr std::uint64_t kTrapFlag = 0x100;

  static void SetTrapFlag([[maybe_unused]] bool on) {
#if ZEZE_SINGLE_STEP
    const std::uint64_t flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(on ? flags | kTrapFlag : flags & ~kTrapFlag);
#endif
  }

#if ZEZE_SINGLE_STEP
  // Only what a signal handler may do: no lock, no memory from the heap.
  static void OnTrap(int /*signal*/, siginfo_t* /*info*/, void* context) {
    SingleStep& step = *current_;
    if (step.left_ == 0) return;
    if (--step.left_ != 0) return;
    auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    flags &= ~static_cast<greg_t>(kTrapFlag);
    const int saved = errno;
    step.state_ = State::kStopped;
    while (step.state_ == State::kStopped) sched_yield();
    errno = saved;
  }

  // NOLINTNEXTLINE(readability-identifier-naming): private, though the check sees a variable.
  static inline SingleStep* current_ = nullptr;
  struct sigaction previous_{};
#endif

  [[maybe_unused]] std::size_t left_;
  std::atomic<State> state_ = State::kRunning;
};

}  // namespace zeze::testing
