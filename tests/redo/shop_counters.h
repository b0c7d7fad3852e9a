// ShopCounters: what the tasks of two redo queues do. Task number N adds one to the record N of its
// queue's table: exactly once means that every record is 1.
//
//   ShopCounters counters;
//   counters.Register(redo_queue_server);
//   counters.AddTo(application);

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "zeze/app/application.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/transaction.h"

namespace zeze::redo_test {

inline constexpr const char* kQueues[] = {"recharge", "mail"};
inline constexpr std::int32_t kType = 1;

class ShopCounters {
 public:
  using Counts = Table<std::int64_t, testing::BAccount>;

  void Register(RedoQueueServer& redo) {
    for (const char* queue : kQueues) {
      Counts& counts = CountsOf(queue);
      redo.Register(queue, kType, [this, queue, &counts](Transaction& tx, const Binary& param) {
        const std::int64_t task = std::stoll(param.bytes);
        counts.GetOrAdd(tx, task)->balance += 1;
        const auto last = last_.GetOrAdd(tx, queue);
        if (task != last->balance + 1) disorder_.GetOrAdd(tx, queue)->balance += 1;
        last->balance = task;
        return true;
      });
    }
  }

  void AddTo(Application& application) {
    application.AddTable(recharge_);
    application.AddTable(mail_);
    application.AddTable(last_);
    application.AddTable(disorder_);
  }

  struct Outcome {
    std::int64_t tasks = 0;     // That were done at all.
    std::int64_t wrong = 0;     // Of them: more than once, or never added.
    std::int64_t disorder = 0;  // Ran before the one before them.
  };
  // Of a queue to which so many tasks were added. On a busy machine the short lease of the shop is
  // over now and then, and nothing can be read until it is renewed.
  Outcome OutcomeOf(const std::string& queue, std::int64_t added) {
    const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
    Result<Outcome> outcome = ReadOutcome(queue, added);
    while (!outcome.ok() && outcome.error().code() == ErrorCode::kUnavailable &&
           SystemClock().Now() < deadline) {
      outcome = ReadOutcome(queue, added);
    }
    ZEZE_CHECK(outcome.ok());
    return outcome.value();
  }

 private:
  Result<Outcome> ReadOutcome(const std::string& queue, std::int64_t added) {
    Outcome outcome;
    const Result<std::size_t> walked =
        CountsOf(queue).Walk([&](std::int64_t task, const testing::BAccount& done) {
          ++outcome.tasks;
          if (done.balance != 1 || task < 1 || task > added) ++outcome.wrong;
          return true;
        });
    if (!walked.ok()) return walked.error();
    const auto disorder = disorder_.ReadCopy(queue);
    if (!disorder.ok()) return disorder.error();
    if (disorder.value()) outcome.disorder = disorder.value()->balance;
    return outcome;
  }

  Counts& CountsOf(const std::string& queue) { return queue == kQueues[0] ? recharge_ : mail_; }

  Counts recharge_{TableDescriptor{.id = 1, .name = "redo_recharge"}};
  Counts mail_{TableDescriptor{.id = 2, .name = "redo_mail"}};
  Table<std::string, testing::BAccount> last_{TableDescriptor{.id = 3, .name = "redo_last"}};
  Table<std::string, testing::BAccount> disorder_{
      TableDescriptor{.id = 4, .name = "redo_disorder"}};
};

}  // namespace zeze::redo_test
