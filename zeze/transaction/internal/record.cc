#include "zeze/transaction/internal/record.h"

#include <atomic>
#include <cstdint>

#include <sched.h>

namespace zeze::internal {

namespace {

constexpr int kSpinRounds = 64;

}  // namespace

void Backoff::Wait() {
  if (++rounds_ <= kSpinRounds) {
    __builtin_ia32_pause();
  } else {
    sched_yield();
  }
}

std::uint64_t LockRecord(Record& record) {
  Backoff backoff;
  std::uint64_t word = 0;
  while (!TryLockRecord(record, word)) backoff.Wait();
  return word;
}

bool TryLockRecord(Record& record, std::uint64_t& word) {
  word = record.word.load(std::memory_order_relaxed);
  return !Word::Locked(word) &&
         record.word.compare_exchange_strong(word, word | Word::kLocked, std::memory_order_seq_cst,
                                             std::memory_order_relaxed);
}

}  // namespace zeze::internal
