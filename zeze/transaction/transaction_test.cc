#include "zeze/transaction/transaction.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/list.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze {
namespace {

using testing::BAccount;
using testing::BBag;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TableDescriptor kAccounts{.id = 1, .name = "test_accounts"};
constexpr TableDescriptor kBags{.id = 2, .name = "test_bags"};
constexpr TableDescriptor kScratch{.id = 3, .name = "test_scratch", .memory = true};

constexpr TableDescriptor kTrees{.id = 4, .name = "test_trees"};

// A bean that holds itself.
struct BTree {
  static constexpr std::string_view kFullName = "test.BTree";
  List<BTree> branches;

  static BTree Nested(int levels) {
    BTree tree;
    for (int i = 1; i < levels; ++i) {
      BTree outer;
      outer.branches.PushBack(tree);
      tree = outer;
    }
    return tree;
  }

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "branches"}, &BTree::branches);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BTree& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

class TransactionTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override { Close(); }

  void Open() {
    engine = std::make_unique<Engine>(
        EngineOptions{.storage = storage.get(), .checkpoint_period = std::chrono::seconds(0)});
    ASSERT_TRUE(engine->AddTable(accounts).ok());
    ASSERT_TRUE(engine->AddTable(bags).ok());
    ASSERT_TRUE(engine->AddTable(scratch).ok());
    ASSERT_TRUE(engine->Start().ok());
  }
  void Close() {
    ASSERT_TRUE(engine->Stop().ok());
    engine.reset();
  }

  // As another thread would, also inside a procedure.
  void Set(std::int64_t key, std::int64_t balance) {
    ASSERT_EQ(0, engine->CallApart("set", [&](Transaction& tx) {
      accounts.Put(tx, key, BAccount{.balance = balance, .owner = {}});
      return 0;
    }));
  }
  std::optional<std::int64_t> Balance(std::int64_t key) {
    auto copy = accounts.ReadCopy(key);
    if (!copy.value()) return std::nullopt;
    return copy.value()->balance;
  }

  std::unique_ptr<Storage> storage = OpenMemoryStorage();
  Table<std::int64_t, BAccount> accounts{kAccounts};
  Table<std::string, BBag> bags{kBags};
  Table<std::int64_t, BAccount> scratch{kScratch};
  std::unique_ptr<Engine> engine;
};

TEST_F(TransactionTest, CommitsWhenTheResultIsZero) {
  Set(1, 100);

  EXPECT_EQ(100, Balance(1));
  EXPECT_EQ(std::nullopt, Balance(2));
}

TEST_F(TransactionTest, RollsBackEverythingOnAnyOtherResult) {
  Set(1, 100);

  const auto code = engine->Call("fail", [&](Transaction& tx) {
    accounts.Edit(tx, 1)->balance = 5;
    accounts.Put(tx, 2, {});
    return 42;
  });

  EXPECT_EQ(42, code);
  EXPECT_EQ(100, Balance(1));
  EXPECT_EQ(std::nullopt, Balance(2));
}

TEST_F(TransactionTest, AnExceptionRollsBack) {
  Set(1, 100);

  const auto code = engine->Call("throws", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance = 5;
    throw std::runtime_error("out of luck");
  });

  EXPECT_EQ(result_code::kException, code);
  EXPECT_EQ(100, Balance(1));
}

TEST_F(TransactionTest, ANestedProcedureRollsBackAlone) {
  Set(1, 100);

  const auto code = engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    auto account = accounts.Edit(tx, 1);
    account->balance = 50;
    EXPECT_EQ(7, tx.Call("inner", [&](Transaction& inner) {
      accounts.Edit(inner, 1)->balance = 1;
      accounts.Put(inner, 2, {});
      accounts.Remove(inner, 1);
      return 7;
    }));
    EXPECT_EQ(50, accounts.Get(tx, 1)->balance);
    EXPECT_EQ(nullptr, accounts.Get(tx, 2));
    EXPECT_EQ(0, tx.Call("inner", [&](Transaction& inner) {
      accounts.GetOrAdd(inner, 3)->balance = 3;
      return 0;
    }));
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(50, Balance(1));
  EXPECT_EQ(std::nullopt, Balance(2));
  EXPECT_EQ(3, Balance(3));
}

// Hole 24: the outer handle writes into the one working copy, whatever nested procedures did.
TEST_F(TransactionTest, AnOuterHandleSurvivesNestedEditsAndRollbacks) {
  Set(1, 100);

  engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    auto account = accounts.Edit(tx, 1);
    BAccount* address = &*account;
    account->balance = 10;
    tx.Call("inner", [&](Transaction& inner) {
      accounts.Edit(inner, 1)->balance = 20;
      return 1;
    });
    EXPECT_EQ(address, &*account);
    EXPECT_EQ(10, account->balance);
    tx.Call("inner", [&](Transaction& inner) {
      accounts.Put(inner, 1, BAccount{.balance = 30, .owner = {}});
      return 0;
    });
    EXPECT_EQ(30, account->balance);
    account->balance += 1;
    return 0;
  });

  EXPECT_EQ(31, Balance(1));
}

TEST_F(TransactionTest, WhatWasFoundIsEditedWithoutLookingForItAgain) {
  Set(1, 100);

  EXPECT_EQ(0, engine->Call("found", [&](Transaction& tx) {
    EXPECT_FALSE(accounts.Find(tx, 2));
    const Found<BAccount> found = accounts.Find(tx, 1);
    EXPECT_EQ(found->balance, 100);
    found.Edit()->balance = 150;
    EXPECT_EQ(found->balance, 100);  // As a pointer of Get.
    EXPECT_EQ(1, tx.Call("nested", [&](Transaction&) {
      found.Edit()->balance = 999;
      return 1;
    }));
    EXPECT_EQ(accounts.Get(tx, 1)->balance, 150);
    found.Edit()->balance += 10;
    return 0;
  }));
  EXPECT_EQ(160, Balance(1));
  EXPECT_EQ(0, engine->Call("removed", [&](Transaction& tx) {
    const Found<BAccount> found = accounts.Find(tx, 1);
    accounts.Remove(tx, 1);
    EXPECT_FALSE(found.Edit());
    return 0;
  }));
  EXPECT_EQ(std::nullopt, Balance(1));
}

TEST_F(TransactionTest, SiblingSavepointsRestoreTheirOwnState) {
  Set(1, 0);

  engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    for (int i = 1; i <= 4; ++i) {
      tx.Call("keep", [&](Transaction& inner) {
        accounts.Edit(inner, 1)->balance += 1;
        return 0;
      });
      tx.Call("drop", [&](Transaction& inner) {
        accounts.Edit(inner, 1)->balance += 100;
        inner.Call("kept inside dropped", [&](Transaction& deep) {
          accounts.Edit(deep, 1)->balance += 1000;
          return 0;
        });
        return 1;
      });
      EXPECT_EQ(i, accounts.Get(tx, 1)->balance);
    }
    return 0;
  });

  EXPECT_EQ(4, Balance(1));
}

TEST_F(TransactionTest, ActionsRunAfterTheOutcomeTheyWereRegisteredFor) {
  std::vector<std::string> ran;
  const auto note = [&ran](const char* what) { return [&ran, what] { ran.emplace_back(what); }; };

  engine->Call("commits", [&](Transaction& tx) -> std::int64_t {
    tx.AfterCommit(note("commit 1"));
    tx.AfterRollback(note("never"));
    tx.Call("rolls back", [&](Transaction& inner) {
      inner.AfterCommit(note("never"));
      inner.AfterRollback(note("nested rollback"));
      return 1;
    });
    tx.AfterCommit(note("commit 2"));
    return 0;
  });
  engine->Call("rolls back", [&](Transaction& tx) -> std::int64_t {
    tx.AfterCommit(note("never"));
    tx.AfterRollback(note("rollback"));
    return 1;
  });

  EXPECT_THAT(ran, ElementsAre("commit 1", "nested rollback", "commit 2", "rollback"));
}

TEST_F(TransactionTest, TableOperationsSeeTheirOwnTransaction) {
  Set(1, 100);

  EXPECT_EQ(0, engine->Call("operations", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(accounts.Contains(tx, 1));
    EXPECT_FALSE(accounts.TryAdd(tx, 1, {}));
    EXPECT_TRUE(accounts.TryAdd(tx, 2, BAccount{.balance = 2, .owner = {}}));
    EXPECT_EQ(2, accounts.Get(tx, 2)->balance);
    EXPECT_TRUE(accounts.Remove(tx, 2));
    EXPECT_FALSE(accounts.Remove(tx, 2));
    EXPECT_FALSE(accounts.Edit(tx, 2));
    bool added = false;
    accounts.GetOrAdd(tx, 3, &added)->balance = 3;
    EXPECT_TRUE(added);
    EXPECT_TRUE(accounts.Remove(tx, 1));
    accounts.Insert(tx, 1, BAccount{.balance = 11, .owner = {}});
    EXPECT_THROW(accounts.Insert(tx, 1, {}), DuplicateKeyError);
    return 0;
  }));

  EXPECT_EQ(11, Balance(1));
  EXPECT_EQ(std::nullopt, Balance(2));
  EXPECT_EQ(3, Balance(3));
}

TEST_F(TransactionTest, SurvivesAStopAndAStart) {
  Set(1, 100);
  Set(2, 200);
  engine->Call("remove", [&](Transaction& tx) {
    accounts.Remove(tx, 2);
    scratch.Put(tx, 1, {});
    return 0;
  });

  Close();
  Open();

  EXPECT_EQ(100, Balance(1));
  EXPECT_EQ(std::nullopt, Balance(2));
  EXPECT_EQ(std::nullopt, scratch.ReadCopy(1).value());
}

TEST_F(TransactionTest, TheVersionVariableCountsCommits) {
  for (int i = 0; i < 3; ++i) {
    engine->Call("push", [&](Transaction& tx) {
      bags.GetOrAdd(tx, "a")->items.PushBack(i);
      return 0;
    });
  }

  EXPECT_EQ(3, bags.ReadCopy("a").value()->version);
}

TEST_F(TransactionTest, AnEditThatChangedNothingCommitsNothing) {
  Set(1, 100);
  ASSERT_EQ(0, engine->Call("push", [&](Transaction& tx) {
    bags.GetOrAdd(tx, "a")->items.PushBack(1);
    return 0;
  }));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  const EngineStatistics before = engine->statistics();
  int changes = 0;
  accounts.AddListener([&](const RecordChange<std::int64_t, BAccount>&) { ++changes; });
  int other_runs = 0;

  EXPECT_EQ(0, engine->Call("looks", [&](Transaction& tx) -> std::int64_t {
    ++other_runs;
    accounts.Get(tx, 1);
    if (other_runs > 1) return 0;
    EXPECT_EQ(0, engine->CallApart("edits nothing", [&](Transaction& other) -> std::int64_t {
      const auto account = accounts.Edit(other, 1);
      account->balance += 5;
      account->balance -= 5;
      if (const auto bag = bags.Edit(other, "a")) bag->names.Erase(77);
      EXPECT_EQ(1, other.Call("rolls back", [&](Transaction& inner) -> std::int64_t {
        accounts.Edit(inner, 1)->balance = 1;
        return 1;
      }));
      return 0;
    }));
    return 0;
  }));

  EXPECT_EQ(1, other_runs) << "its read is still true";
  EXPECT_EQ(0, changes);
  EXPECT_EQ(before.commits, engine->statistics().commits);
  EXPECT_EQ(1, bags.ReadCopy("a").value()->version);
  ASSERT_TRUE(engine->CheckpointNow().ok());
  EXPECT_EQ(before.checkpoint.records_flushed, engine->statistics().checkpoint.records_flushed);
}

// It is a read: what it saw must be true when the procedure ends.
TEST_F(TransactionTest, AnEditThatChangedNothingIsValidated) {
  Set(1, 100);
  Set(2, 0);
  int runs = 0;

  EXPECT_EQ(0, engine->Call("copy", [&](Transaction& tx) -> std::int64_t {
    const auto source = accounts.Edit(tx, 1);
    const std::int64_t seen = source->balance;
    if (++runs == 1) Set(1, 500);
    accounts.Edit(tx, 2)->balance = seen;
    return 0;
  }));

  EXPECT_EQ(2, runs);
  EXPECT_EQ(500, Balance(2));
}

TEST_F(TransactionTest, TheCallerLearnsWhyItFailed) {
  Set(1, 100);
  std::string cause = "of before";
  const auto call = [&](ProcedureBody body) {
    return engine->Call("fails", body, TransactionLevel::kSerializable, &cause);
  };

  EXPECT_EQ(0, call([](Transaction&) -> std::int64_t { return 0; }));
  EXPECT_EQ("", cause);
  EXPECT_EQ(result_code::kException,
            call([](Transaction&) -> std::int64_t { throw std::runtime_error("out of luck"); }));
  EXPECT_EQ("out of luck", cause);
  EXPECT_EQ(42, call([](Transaction&) -> std::int64_t { return 42; }));
  EXPECT_EQ("", cause) << "the code is the body's own";
  EXPECT_EQ(result_code::kTooManyTry, call([&](Transaction& tx) -> std::int64_t {
              Set(1, accounts.Get(tx, 1)->balance + 1);
              return 0;
            }));
  EXPECT_THAT(cause, HasSubstr("record 1 of table test_accounts was changed by others"));
  EXPECT_EQ(result_code::kException, call([&](Transaction& tx) -> std::int64_t {
              bags.Get(tx, std::string(100'000, 'x'));
              return 0;
            }));
  EXPECT_THAT(cause, HasSubstr("a key of table test_bags is 100"));
  std::string inner;
  EXPECT_EQ(3, call([&](Transaction& tx) -> std::int64_t {
              const auto throws = [&](Transaction& nested) -> std::int64_t {
                accounts.Edit(nested, 77)->balance = 1;
                return 0;
              };
              EXPECT_EQ(result_code::kException, tx.Call("inner", throws, &inner));
              return 3;
            }));
  EXPECT_EQ("record 77 of table test_accounts does not exist: test the handle before using it",
            inner);
  EXPECT_EQ("", cause);
}

TEST_F(TransactionTest, TwoTransactionsInOneThreadConflict) {
  Set(1, 100);
  int runs = 0;

  const auto code = engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    const std::int64_t seen = accounts.Get(tx, 1)->balance;
    if (runs == 1) Set(1, 500);
    accounts.Edit(tx, 1)->balance = seen + 1;
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(501, Balance(1));
}

// What a large transaction needs is forgotten before the next: thirty of them fit into memory.
TEST_F(TransactionTest, ManyLargeTransactionsFollowEachOther) {
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(0, engine->Call("large", [&](Transaction& tx) {
      for (std::int64_t i = 0; i < 40 + round * 10; ++i) {
        accounts.GetOrAdd(tx, i)->balance += 1;
        EXPECT_EQ(accounts.Get(tx, i), accounts.Get(tx, i));
      }
      return 0;
    }));
  }

  EXPECT_EQ(30, Balance(0));
  EXPECT_EQ(1, Balance(39 + 29 * 10));
}

// A failure decided on what is not true any more is not believed.
TEST_F(TransactionTest, AFailureIsValidatedToo) {
  Set(1, 0);
  int runs = 0;

  const auto code = engine->Call("withdraw", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    const std::int64_t seen = accounts.Get(tx, 1)->balance;
    if (runs == 1) Set(1, 500);
    if (seen < 100) return 9;
    accounts.Edit(tx, 1)->balance -= 100;
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(400, Balance(1));
}

// Hole 21: a doomed run never sees the new X beside the old Y.
TEST_F(TransactionTest, NeverSeesAMixedState) {
  Set(1, 50);
  Set(2, 50);
  int runs = 0;

  engine->Call("sum", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    const std::int64_t x = accounts.Get(tx, 1)->balance;
    if (runs == 1) {
      engine->CallApart("transfer", [&](Transaction& other) {
        accounts.Edit(other, 1)->balance -= 10;
        accounts.Edit(other, 2)->balance += 10;
        return 0;
      });
    }
    const std::int64_t y = accounts.Get(tx, 2)->balance;
    EXPECT_EQ(100, x + y);
    return 0;
  });

  EXPECT_EQ(2, runs);
}

// Hole 21, with more records than are checked at each access.
TEST_F(TransactionTest, ALargeProcedureDoesNotGoOnForLongAfterItLostARace) {
  for (std::int64_t i = 0; i < 100; ++i) Set(i, 1);
  int runs = 0;
  std::int64_t reached = 0;

  EXPECT_EQ(0, engine->Call("sum", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    for (std::int64_t i = 0; i < 100; ++i) {
      if (runs == 1 && i == 20) Set(0, 2);
      accounts.Get(tx, i);
      if (runs == 1) reached = i;
    }
    return 0;
  }));

  EXPECT_EQ(2, runs);
  EXPECT_LE(reached, 32) << "checked when the number of records doubles";
}

// Hole 21: what a doomed run throws, or does wrong, is nobody's business.
TEST_F(TransactionTest, AnExceptionOfADoomedRunIsNotBelieved) {
  Set(1, 0);
  int runs = 0;
  testing::CapturedLog log;

  const auto code = engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    const std::int64_t inner_code = tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
      const std::int64_t seen = accounts.Get(inner, 1)->balance;
      if (++runs == 1) Set(1, 500);
      if (seen < 100) throw std::runtime_error("too little");
      return 0;
    });
    EXPECT_EQ(0, inner_code) << "in run " << runs;
    return inner_code;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_THAT(log.lines(), Not(Contains(HasSubstr("threw"))));
}

TEST_F(TransactionTest, ABadHandleOfADoomedRunIsNotBelieved) {
  Set(1, 0);
  Set(2, 0);
  int runs = 0;

  const auto code = engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
    auto account = accounts.Edit(tx, 2);
    const std::int64_t seen = accounts.Get(tx, 1)->balance;
    if (seen == 0) accounts.Remove(tx, 2);
    if (++runs == 1) Set(1, 500);
    account->balance = seen;  // Throws if it is not doomed.
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(500, Balance(2));
}

// Every record was read when the other one commits: only the commit itself can notice.
TEST_F(TransactionTest, AReadThatChangesAfterTheLastAccessIsNoticed) {
  Set(1, 100);
  Set(2, 0);
  int runs = 0;

  const auto code = engine->Call("copy", [&](Transaction& tx) -> std::int64_t {
    const std::int64_t seen = accounts.Get(tx, 1)->balance;
    accounts.Edit(tx, 2)->balance = seen;
    if (++runs == 1) Set(1, 500);
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(500, Balance(2));
}

TEST_F(TransactionTest, SwallowingTheAbortDoesNotCommit) {
  Set(1, 50);
  Set(2, 50);
  int runs = 0;

  const auto code = engine->Call("swallows", [&](Transaction& tx) -> std::int64_t {
    ++runs;
    try {
      accounts.Get(tx, 1);
      if (runs == 1) Set(1, 1);
      accounts.Get(tx, 2);
    } catch (...) {  // NOLINT: what a careless user does
    }
    accounts.Put(tx, 3, BAccount{.balance = runs, .owner = {}});
    return 0;
  });

  EXPECT_EQ(0, code);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(2, Balance(3));
}

TEST_F(TransactionTest, GivesUpAfterTooManyTriesAndSaysWhy) {
  Set(1, 0);
  int runs = 0;

  const auto code = engine->Call("unlucky", [&](Transaction& tx) -> std::int64_t {
    accounts.Get(tx, 1);
    Set(1, ++runs);
    return 0;
  });

  EXPECT_EQ(result_code::kTooManyTry, code);
  EXPECT_EQ(256, runs);
}

TEST_F(TransactionTest, TransfersKeepTheSum) {
  constexpr int kAccountCount = 20;
  for (int i = 0; i < kAccountCount; ++i) Set(i, 1000);

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::uint64_t random = 88172645463325252ULL + static_cast<std::uint64_t>(t);
      for (int i = 0; i < 20000; ++i) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const auto from = static_cast<std::int64_t>(random % kAccountCount);
        const auto to = static_cast<std::int64_t>((random >> 20) % kAccountCount);
        const auto amount = static_cast<std::int64_t>((random >> 40) % 10);
        engine->Call("transfer", [&](Transaction& tx) -> std::int64_t {
          auto source = accounts.Edit(tx, from);
          if (source->balance < amount) return 1;
          source->balance -= amount;
          accounts.Edit(tx, to)->balance += amount;
          return 0;
        });
        if (i % 5000 == 0) {
          EXPECT_TRUE(engine->CheckpointNow().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::int64_t sum = 0;
  EXPECT_EQ(kAccountCount, accounts
                               .Walk([&](std::int64_t, const BAccount& account) {
                                 sum += account.balance;
                                 return true;
                               })
                               .value());
  EXPECT_EQ(1000 * kAccountCount, sum);
}

TEST_F(TransactionTest, AValueThatCouldNotBeReadAgainIsRefusedAtCommit) {
  Close();
  Table<std::int64_t, BTree> trees{kTrees};
  const auto open = [&] {
    engine = std::make_unique<Engine>(
        EngineOptions{.storage = storage.get(), .checkpoint_period = std::chrono::seconds(0)});
    ASSERT_TRUE(engine->AddTable(trees).ok());
    ASSERT_TRUE(engine->Start().ok());
  };
  open();
  const auto put = [&](std::int64_t key, int levels) {
    return engine->Call("put", [&](Transaction& tx) {
      trees.Put(tx, key, BTree::Nested(levels));
      return 0;
    });
  };
  {
    const testing::CapturedLog log;
    EXPECT_EQ(result_code::kException, put(1, 200));
    EXPECT_THAT(log.lines(), Contains(HasSubstr("record 1 of table test_trees cannot be saved: "
                                                "beans are nested deeper than 128")));
  }
  EXPECT_EQ(0, put(2, 128));
  Close();

  open();
  EXPECT_EQ(std::nullopt, trees.ReadCopy(1).value());
  EXPECT_EQ(BTree::Nested(128), trees.ReadCopy(2).value());
  std::size_t rows = 0;
  EXPECT_TRUE(trees.Walk([&](std::int64_t, const BTree&) { return ++rows > 0; }).ok());
  EXPECT_EQ(1U, rows);
  Close();
  Open();
}

}  // namespace
}  // namespace zeze
