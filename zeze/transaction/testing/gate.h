// Gate: holds threads up where a test wants them.
//
//   Gate gate;
//   std::thread other([&] { gate.Pass(); });   // Waits inside.
//   gate.AwaitArrivals(1);                     // It is there now.
//   gate.Open();                               // For it and for all that come later.

#pragma once

#include <cstddef>

#include "zeze/base/mutex.h"

namespace zeze::testing {

class Gate {
 public:
  Gate() = default;
  // Opens, and waits for those who are still in it: the test that ends may be faster than they are.
  ~Gate() {
    Open();
    const MutexLock lock(mutex_);
    while (passed_ < arrivals_) changed_.Wait(mutex_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Pass() {
    const MutexLock lock(mutex_);
    ++arrivals_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
    ++passed_;
    changed_.NotifyAll();
  }

  void AwaitArrivals(std::size_t count) {
    const MutexLock lock(mutex_);
    while (arrivals_ < count) changed_.Wait(mutex_);
  }

  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ZEZE_GUARDED_BY(mutex_) = false;
  std::size_t arrivals_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t passed_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze::testing
