#include "zeze/transaction/internal/intents.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/run.h"

namespace zeze::internal {

namespace {

// How long a first run lets a repeated one pass, and how long a repeated one waits for its turn. On
// a busy machine each round can take a time slice of everybody else, so time counts, too.
constexpr int kRoundsMax = 2000;
constexpr int kSpinningRounds = 64;  // Too short to look at a clock.
constexpr std::chrono::nanoseconds kTimeMax = std::chrono::milliseconds(5);

class IntentBackoff {
 public:
  bool Ended() {
    if (rounds_.rounds() >= kRoundsMax) return true;
    if (rounds_.rounds() < kSpinningRounds) return false;
    const std::chrono::nanoseconds now = SystemClock().Now();
    if (begin_.count() == 0) begin_ = now;
    return now - begin_ > kTimeMax;
  }
  void Wait() { rounds_.Wait(); }

 private:
  Backoff rounds_;
  std::chrono::nanoseconds begin_{0};
};

}  // namespace

void Intents::LetPass(const Record& record) {
  IntentBackoff backoff;
  while (record.intent.load(std::memory_order_relaxed) != 0 && !backoff.Ended()) backoff.Wait();
}

void Intents::Take(const Run& run) {
  Release();
  std::vector<Record*> wanted;
  for (const Access& access : run.accesses) {
    if (access.state != AccessState::kRead || access.record == run.culprit) {
      wanted.push_back(access.record);
    }
  }
  std::sort(wanted.begin(), wanted.end());
  for (Record* record : wanted) {
    IntentBackoff backoff;
    std::uint8_t free = 0;
    bool taken = false;
    while (true) {
      taken = record->intent.compare_exchange_weak(free, 1, std::memory_order_acquire);
      if (taken || backoff.Ended()) break;
      backoff.Wait();
      free = 0;
    }
    if (taken) records_.push_back(record);
  }
}

void Intents::Release() {
  for (Record* record : records_) record->intent.store(0, std::memory_order_release);
  records_.clear();
}

}  // namespace zeze::internal
