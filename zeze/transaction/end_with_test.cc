// Last parts of procedures, which are repeated alone.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;

constexpr std::int64_t kOwn = 1;      // What the body uses.
constexpr std::int64_t kShared = 2;   // What the last part uses.
constexpr std::int64_t kAnother = 3;  // What both use.

class EndWithTest : public testing::EngineTest {
 protected:
  void SetUp() override {
    Open();
    for (const std::int64_t key : {kOwn, kShared, kAnother}) ASSERT_EQ(0, Put(accounts, key, 0));
  }

  // The body adds 1 to its record, the last part 10 to its own. `meanwhile` is called in each last
  // part, after it has read.
  std::int64_t Call(
      const std::function<void()>& meanwhile = [] {},
      const std::function<void(Transaction&)>& extra = [](Transaction&) {}) {
    return engine->Call("ends", [&](Transaction& tx) -> std::int64_t {
      ++bodies;
      accounts.Edit(tx, kOwn)->balance += 1;
      extra(tx);
      tx.EndWith([&](Transaction& end) -> std::int64_t {
        ++ends;
        accounts.Edit(end, kShared)->balance += 10;
        meanwhile();
        return 0;
      });
      return 0;
    });
  }

  int bodies = 0;
  int ends = 0;
};

TEST_F(EndWithTest, CommitsWithTheBody) {
  EXPECT_EQ(0, Call());
  EXPECT_EQ(1, Read(accounts, kOwn));
  EXPECT_EQ(10, Read(accounts, kShared));
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(1, ends);
}

TEST_F(EndWithTest, AChangeOfWhatOnlyItUsesRepeatsItAlone) {
  EXPECT_EQ(0, Call([&] {
              if (ends <= 3) Transfer(kAnother, kShared, 100);
            }));
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(4, ends);
  EXPECT_EQ(1, Read(accounts, kOwn));
  EXPECT_EQ(310, Read(accounts, kShared));
}

TEST_F(EndWithTest, AChangeOfWhatTheBodyUsesRepeatsBoth) {
  EXPECT_EQ(0, Call([&] {
              if (ends == 1) Transfer(kShared, kOwn, 100);
            }));
  EXPECT_EQ(2, bodies);
  EXPECT_EQ(2, ends);
  EXPECT_EQ(101, Read(accounts, kOwn));
  EXPECT_EQ(-90, Read(accounts, kShared));
}

// What the body only read counts as well.
TEST_F(EndWithTest, AChangeOfWhatTheBodyReadRepeatsBoth) {
  EXPECT_EQ(0, Call(
                   [&] {
                     if (ends == 1) Put(accounts, kAnother, 5);
                   },
                   [&](Transaction& tx) { accounts.Get(tx, kAnother); }));
  EXPECT_EQ(2, bodies);
}

// The conflict is met by the read of the last part that follows the change.
TEST_F(EndWithTest, ARepetitionMayBeginInTheMiddle) {
  int runs = 0;
  EXPECT_EQ(0, engine->Call("ends", [&](Transaction& tx) -> std::int64_t {
    ++bodies;
    accounts.Edit(tx, kOwn)->balance += 1;
    tx.EndWith([&](Transaction& end) -> std::int64_t {
      ++ends;
      const std::int64_t shared = accounts.Get(end, kShared)->balance;
      if (ends == 1) Transfer(kShared, kAnother, 7);
      const std::int64_t another = accounts.Get(end, kAnother)->balance;
      ++runs;
      EXPECT_EQ(0, shared + another);
      return 0;
    });
    return 0;
  }));
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(2, ends);
  EXPECT_EQ(1, runs);
}

// What the last part did to records of the body is undone before it is repeated: edits, an edit of
// what the body left as it was, removals and insertions.
TEST_F(EndWithTest, ARepetitionFindsWhatTheBodyLeft) {
  ASSERT_EQ(0, Put(accounts, 4, 40));
  ASSERT_EQ(0, Put(accounts, 5, 50));
  EXPECT_EQ(0, Call(
                   [&] {
                     if (ends == 1) Put(accounts, kShared, 100);
                   },
                   [&](Transaction& tx) {
                     accounts.Edit(tx, kAnother)->balance += 0;  // As it was.
                     accounts.Edit(tx, 4)->balance += 1;
                     accounts.Remove(tx, 5);
                     accounts.Insert(tx, 6, BAccount{.balance = 60, .owner = {}});
                     tx.EndWith([&](Transaction& end) -> std::int64_t {
                       accounts.Edit(end, kOwn)->balance += 5;
                       accounts.Edit(end, kAnother)->balance += 5;
                       accounts.Edit(end, 4)->balance += 5;
                       EXPECT_EQ(nullptr, accounts.Get(end, 5));
                       accounts.Put(end, 5, BAccount{.balance = 55, .owner = {}});
                       EXPECT_EQ(60, accounts.Get(end, 6)->balance);
                       accounts.Remove(end, 6);
                       EXPECT_EQ(nullptr, accounts.Get(end, 7));
                       accounts.Insert(end, 7, BAccount{.balance = 70, .owner = {}});
                       return 0;
                     });
                   }));
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(2, ends);
  EXPECT_EQ(6, Read(accounts, kOwn));
  EXPECT_EQ(5, Read(accounts, kAnother));
  EXPECT_EQ(46, Read(accounts, 4));
  EXPECT_EQ(55, Read(accounts, 5));
  EXPECT_EQ(std::nullopt, Read(accounts, 6));
  EXPECT_EQ(70, Read(accounts, 7));
  EXPECT_EQ(110, Read(accounts, kShared));
}

// An edit that changes nothing becomes a read at the first try of the commit.
TEST_F(EndWithTest, ARepetitionMayLeaveWhatTheFirstTryWrote) {
  EXPECT_EQ(0, engine->Call("ends", [&](Transaction& tx) -> std::int64_t {
    ++bodies;
    accounts.Edit(tx, kOwn)->balance += 1;
    accounts.Edit(tx, kAnother)->balance += 0;
    tx.EndWith([&](Transaction& end) -> std::int64_t {
      ++ends;
      accounts.Get(end, kShared);
      if (ends == 1) {
        Put(accounts, kShared, 100);
      } else {
        accounts.Edit(end, kOwn)->balance -= 1;
        accounts.Edit(end, kAnother)->balance += 3;
      }
      return 0;
    });
    return 0;
  }));
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(0, Read(accounts, kOwn));
  EXPECT_EQ(3, Read(accounts, kAnother));
}

// More than a transaction finds by looking at each.
TEST_F(EndWithTest, ManyRecords) {
  constexpr std::int64_t kMany = 100;
  const auto add = [&](Transaction& tx, std::int64_t begin, std::int64_t end) {
    for (std::int64_t key = begin; key < end; ++key) accounts.GetOrAdd(tx, key)->balance += 1;
  };
  for (const std::int64_t of_body : {0, 5, 16, 17, 40}) {
    bodies = 0;
    ends = 0;
    const std::int64_t base = 1000 * (of_body + 1);
    EXPECT_EQ(0, Call(
                     [&] {
                       if (ends > 2) return;
                       Put(accounts, kShared, ends);
                     },
                     [&](Transaction& tx) {
                       add(tx, base, base + of_body);
                       tx.EndWith([&, of_body, base](Transaction& end) -> std::int64_t {
                         add(end, base + of_body / 2, base + kMany);
                         return 0;
                       });
                     }));
    EXPECT_EQ(1, bodies);
    EXPECT_EQ(3, ends);
    for (std::int64_t i = 0; i < kMany; ++i) {
      const std::int64_t both = i >= of_body / 2 && i < of_body ? 2 : 1;
      EXPECT_EQ(both, Read(accounts, base + i)) << i;
    }
  }
}

TEST_F(EndWithTest, ActionsOfTheRunThatCountsRunOnce) {
  std::vector<std::string> ran;
  EXPECT_EQ(0, engine->Call("ends", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, kOwn)->balance += 1;
    tx.AfterCommit([&] { ran.emplace_back("body"); });
    tx.EndWith([&](Transaction& end) -> std::int64_t {
      ++ends;
      accounts.Edit(end, kShared)->balance += 10;
      end.AfterCommit([&] { ran.push_back("end " + std::to_string(ends)); });
      end.AfterRollback([&] { ran.emplace_back("rolled back"); });
      if (ends == 1) Put(accounts, kShared, 100);
      return 0;
    });
    tx.EndWith([&](Transaction& end) -> std::int64_t {
      end.AfterCommit([&] { ran.emplace_back("last"); });
      return 0;
    });
    return 0;
  }));
  EXPECT_EQ(ran, (std::vector<std::string>{"body", "end 2", "last"}));
}

TEST_F(EndWithTest, AfterDurableOfTheBodySurvivesARepetition) {
  std::atomic<int> durable = 0;
  EXPECT_EQ(0, Call(
                   [&] {
                     if (ends == 1) Put(accounts, kShared, 100);
                   },
                   [&](Transaction& tx) {
                     tx.RequireDurable();
                     tx.AfterDurable([&] { ++durable; });
                   }));
  AwaitCount(durable, 1);
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(1, Stored(accounts, kOwn));
  EXPECT_EQ(110, Stored(accounts, kShared));
}

TEST_F(EndWithTest, ItsFailureRollsBackBoth) {
  const auto fail = [&](std::int64_t code, bool changes) {
    return engine->Call("ends", [&, code, changes](Transaction& tx) -> std::int64_t {
      ++bodies;
      accounts.Edit(tx, kOwn)->balance += 1;
      tx.EndWith([&, code, changes](Transaction& end) -> std::int64_t {
        accounts.Edit(end, kShared)->balance += 10;
        if (changes && bodies == 1) Put(accounts, kShared, 100);
        if (code == result_code::kException) throw std::runtime_error("end");
        return code;
      });
      tx.EndWith([&](Transaction&) -> std::int64_t {
        ADD_FAILURE() << "after one that failed";
        return 0;
      });
      return 0;
    });
  };
  for (const bool changes : {false, true}) {
    for (const std::int64_t code : {std::int64_t{7}, result_code::kException}) {
      bodies = 0;
      EXPECT_EQ(code, fail(code, changes));
      EXPECT_EQ(0, Read(accounts, kOwn));
      EXPECT_EQ(changes ? 100 : 0, Read(accounts, kShared));
    }
  }
}

TEST_F(EndWithTest, ThoseOfProceduresThatRolledBackAreDropped) {
  EXPECT_EQ(0, Call([] {},
                    [&](Transaction& tx) {
                      EXPECT_EQ(7, tx.Call("nested", [&](Transaction& nested) -> std::int64_t {
                        nested.EndWith([](Transaction&) -> std::int64_t {
                          ADD_FAILURE() << "of a procedure that rolled back";
                          return 0;
                        });
                        return 7;
                      }));
                    }));
  EXPECT_EQ(1, ends);
  EXPECT_EQ(7, engine->Call("rolls back", [&](Transaction& tx) -> std::int64_t {
    tx.EndWith([](Transaction&) -> std::int64_t {
      ADD_FAILURE() << "of a procedure that rolled back";
      return 0;
    });
    return 7;
  }));
  EXPECT_EQ(0, engine->Call("plain", [](Transaction&) -> std::int64_t { return 0; }));
}

TEST_F(EndWithTest, ItGivesUpAsAProcedureDoes) {
  EXPECT_EQ(result_code::kTooManyTry, Call([&] { Put(accounts, kShared, 100 + ends); }));
  EXPECT_EQ(1, bodies);
  EXPECT_EQ(options.attempts_max, ends);
  EXPECT_EQ(0, Read(accounts, kOwn));
}

TEST_F(EndWithTest, HandlesOfAnotherRunAreVoid) {
  Edited<BAccount> of_body;
  Edited<BAccount> of_end;
  EXPECT_EQ(0, engine->Call("ends", [&](Transaction& tx) -> std::int64_t {
    of_body = accounts.Edit(tx, kOwn);
    tx.EndWith([&](Transaction& end) -> std::int64_t {
      ++ends;
      EXPECT_THROW(of_body->balance += 1, UsageError);
      if (ends == 2) {
        EXPECT_THROW(of_end->balance += 1, UsageError);
      }
      EXPECT_THROW(end.EndWith([](Transaction&) -> std::int64_t { return 0; }), UsageError);
      of_end = accounts.Edit(end, kShared);
      if (ends == 1) Put(accounts, kShared, 100);
      return 0;
    });
    return 0;
  }));
  EXPECT_EQ(2, ends);
}

// Threads that change one record after having changed their own.
TEST_F(EndWithTest, ManyThreadsRunEachBodyOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  std::atomic<int> run = 0;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        EXPECT_EQ(0, engine->Call("ends", [&, t](Transaction& tx) -> std::int64_t {
          ++run;
          accounts.GetOrAdd(tx, 100 + t)->balance += 1;
          tx.EndWith([&](Transaction& end) -> std::int64_t {
            accounts.Edit(end, kShared)->balance += 1;
            return 0;
          });
          return 0;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kThreads * kRounds, run);
  EXPECT_EQ(kThreads * kRounds, Read(accounts, kShared));
  for (std::int64_t t = 0; t < kThreads; ++t) EXPECT_EQ(kRounds, Read(accounts, 100 + t));
}

// --- Peek ---

TEST_F(EndWithTest, WhatWasPeekedAtMayChange) {
  for (const std::int64_t before : {1, 20}) {
    bodies = 0;
    std::int64_t seen = -1;
    ASSERT_EQ(0, Put(accounts, kShared, 4));
    EXPECT_EQ(0, engine->Call("peeks", [&](Transaction& tx) -> std::int64_t {
      ++bodies;
      for (std::int64_t i = 0; i < before; ++i) accounts.GetOrAdd(tx, 100 + i)->balance += 1;
      tx.Peek([&] {
        seen = accounts.Get(tx, kShared)->balance;
        EXPECT_NE(nullptr, accounts.Get(tx, 100));
        EXPECT_EQ(nullptr, accounts.Get(tx, 99));
      });
      Put(accounts, kShared, 5);
      Put(accounts, 99, 5);
      EXPECT_EQ(5, accounts.Get(tx, kShared)->balance);
      accounts.Remove(tx, 99);
      return 0;
    }));
    EXPECT_EQ(1, bodies);
    EXPECT_EQ(4, seen);
    EXPECT_EQ(std::nullopt, Read(accounts, 99));
  }
}

// What was read before stays read.
TEST_F(EndWithTest, WhatWasReadBeforeAPeekIsChecked) {
  EXPECT_EQ(0, engine->Call("peeks", [&](Transaction& tx) -> std::int64_t {
    ++bodies;
    accounts.Get(tx, kShared);
    tx.Peek([&] { accounts.Get(tx, kShared); });
    if (bodies == 1) Put(accounts, kShared, 5);
    accounts.Edit(tx, kOwn)->balance += 1;
    return 0;
  }));
  EXPECT_EQ(2, bodies);
}

TEST_F(EndWithTest, NothingIsWrittenInAPeek) {
  EXPECT_EQ(result_code::kException, engine->Call("peeks", [&](Transaction& tx) -> std::int64_t {
    tx.Peek([&] { accounts.Edit(tx, kShared)->balance += 1; });
    return 0;
  }));
  EXPECT_EQ(0, Read(accounts, kShared));
}

}  // namespace
}  // namespace zeze
