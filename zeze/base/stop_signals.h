// StopSignals: SIGTERM and SIGINT, as requests to stop in order.
//
//   int main() {
//     zeze::StopSignals signals;              // Before any thread.
//     ... open and start ...
//     signals.Wait();
//     ... stop ...
//   }
//
// A signal that comes before Wait ends the process immediately, as it would without this class, as
// long as nothing can be lost: a start that waits for a database does not delay the end. Once there
// is an Unsaved (an Application has one from its start to its stop), the signal is kept until Wait.
// A second signal ends the process immediately in any case, and says what is lost.

#pragma once

#include <functional>
#include <string>
#include <thread>

#include "zeze/base/mutex.h"

namespace zeze {

// Thread-safe. One in a process.
class StopSignals {
 public:
  // Blocks both signals for this thread and all that it starts.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();  // From here on a signal ends the process.

  // Returns the first signal, also if it came before.
  int Wait();

  // Something that only an orderly stop saves, while it exists. `describe` completes the sentence
  // "what is lost: ..."; it is called on another thread.
  class Unsaved {
   public:
    explicit Unsaved(std::function<std::string()> describe);
    Unsaved(const Unsaved&) = delete;
    Unsaved& operator=(const Unsaved&) = delete;
    ~Unsaved();
  };

 private:
  void Listen();
  void OnSignal(int signal);

  int signals_ = -1;
  int end_ = -1;  // Wakes the listener for its end.
  std::thread listener_;

  Mutex mutex_;
  CondVar changed_;
  int signal_ ZEZE_GUARDED_BY(mutex_) = 0;
  bool waiting_ ZEZE_GUARDED_BY(mutex_) = false;
};

}  // namespace zeze
