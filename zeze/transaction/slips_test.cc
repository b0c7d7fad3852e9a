// No slip of a procedure ends the process: the procedure rolls back, the log names the place, and
// the next call is answered.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/testing/captured_log.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze {
namespace {

using testing::BAccount;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::EngineTest;
using ::testing::HasSubstr;
using ::testing::Not;

struct SwordChoices {
  using List = TypeList<Choice<BAccount, 1>, Choice<testing::BBag, 2>>;
};

class SlipsTest : public EngineTest {
 protected:
  using Accounts = Table<std::int64_t, BAccount>;
  using Slip = std::function<void(Transaction&)>;

  struct NamedSlip {
    std::string name;
    std::string said;  // A part of what the log says.
    Slip slip;
  };

  void SetUp() override {
    Open();
    ASSERT_EQ(0, Put(accounts, 1, 100));
  }

  // The procedure writes, slips, and rolls back; the next one is answered.
  void ExpectRollback(const NamedSlip& slip) {
    SCOPED_TRACE(slip.name);
    testing::CapturedLog log;
    int rolled_back = 0;
    const std::int64_t code = engine->Call("slips", [&](Transaction& tx) -> std::int64_t {
      accounts.Edit(tx, 1)->balance = 5;
      tx.AfterRollback([&] { ++rolled_back; });
      slip.slip(tx);
      return result_code::kSuccess;
    });
    EXPECT_EQ(result_code::kException, code);
    EXPECT_EQ(1, rolled_back);
    EXPECT_THAT(log.lines(), Contains(HasSubstr("procedure slips threw: ")));
    EXPECT_THAT(log.lines(), Contains(HasSubstr(slip.said)));
    EXPECT_EQ(100, Read(accounts, 1));
    EXPECT_EQ(0, Put(accounts, 2, 7)) << "the next call";
    EXPECT_EQ(0, engine->Call("remove", [&](Transaction& tx) -> std::int64_t {
      accounts.Remove(tx, 2);
      return 0;
    }));
  }

  Edited<BAccount> kept;
};

TEST_F(SlipsTest, AListOfTwentySlipsEachRollsBackAndTheNextCallIsAnswered) {
  Accounts lonely{TableDescriptor{.id = 20, .name = "test_lonely"}};
  Accounts foreign{TableDescriptor{.id = 21, .name = "test_foreign"}};
  Engine other({.storage = nullptr, .checkpoint_period = std::chrono::seconds(0)});
  ASSERT_TRUE(other.AddTable(foreign).ok());
  ASSERT_TRUE(other.Start().ok());
  Transaction* ended = nullptr;
  ASSERT_EQ(0, engine->Call("keep", [&](Transaction& tx) -> std::int64_t {
    kept = accounts.Edit(tx, 1);
    ended = &tx;
    return 0;
  }));
  List<std::int64_t> list = {1, 2, 3};
  Map<std::int32_t, std::string> map = {{1, "one"}};
  SortedMap<std::string, std::int32_t> sorted = {{"a", 1}};
  Dynamic<SwordChoices> dynamic{};
  dynamic.Set(BAccount{});

  const std::vector<NamedSlip> slips = {
      {"the handle of an absent record", "record 9 of table test_accounts does not exist",
       [&](Transaction& tx) { accounts.Edit(tx, 9)->balance = 1; }},
      {"what was found nowhere", "record 9 of table test_accounts does not exist",
       [&](Transaction& tx) { accounts.Put(tx, 3, *accounts.Find(tx, 9)); }},
      {"an edit of what was found nowhere", "record 9 of table test_accounts does not exist",
       [&](Transaction& tx) { accounts.Find(tx, 9).Edit()->balance = 1; }},
      {"an empty handle", "an empty record handle was used",
       [](Transaction&) { Edited<BAccount>()->balance = 1; }},
      {"a handle after a remove", "record 1 of table test_accounts was removed",
       [&](Transaction& tx) {
         auto account = accounts.Edit(tx, 1);
         accounts.Remove(tx, 1);
         account->balance = 1;
       }},
      {"a handle of an insert that was rolled back", "record 8 of table test_accounts was removed",
       [&](Transaction& tx) {
         Edited<BAccount> inner_account;
         tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
           inner_account = accounts.GetOrAdd(inner, 8);
           return 1;
         });
         inner_account->balance = 1;
       }},
      {"a handle of an earlier procedure", "after its procedure had ended",
       [&](Transaction&) { kept->balance = 1; }},
      {"a handle on another thread", "on another thread",
       [&](Transaction& tx) {
         const auto account = accounts.Edit(tx, 1);
         std::exception_ptr thrown;
         std::thread([&] {
           try {
             account->balance = 1;
           } catch (...) {
             thrown = std::current_exception();
           }
         }).join();
         if (thrown != nullptr) std::rethrow_exception(thrown);
       }},
      {"the transaction of an earlier procedure on another thread", "does not run on this thread",
       [&](Transaction&) {
         std::exception_ptr thrown;
         std::thread([&] {
           try {
             accounts.Get(*ended, 1);
           } catch (...) {
             thrown = std::current_exception();
           }
         }).join();
         if (thrown != nullptr) std::rethrow_exception(thrown);
       }},
      {"a table of no engine", "table test_lonely belongs to no engine",
       [&](Transaction& tx) { lonely.Put(tx, 1, {}); }},
      {"a table of another engine", "table test_foreign belongs to another engine",
       [&](Transaction& tx) { foreign.Put(tx, 1, {}); }},
      {"reading a table of no engine", "table test_lonely belongs to no engine",
       [&](Transaction&) { (void)lonely.ReadCopy(1); }},
      {"a list index", "index 3 of a list with 3 elements", [&](Transaction&) { (void)list[3]; }},
      {"setting beyond the end of a list", "index 7 of a list with 3 elements",
       [&](Transaction&) { list.Set(7, 1); }},
      {"erasing from an empty list", "of a list with 0 elements",
       [](Transaction&) { List<std::int64_t>().PopBack(); }},
      {"the front of an empty list", "index 0 of a list with 0 elements",
       [](Transaction&) { (void)List<std::int64_t>().front(); }},
      {"the end of a list", "an iterator was used at the end",
       [&](Transaction&) { (void)*list.end(); }},
      {"a missing key of a map", "does not have the key 7",
       [&](Transaction&) { (void)map.Get(7); }},
      {"a missing key of a sorted map", "does not have the key \"b\"",
       [&](Transaction&) { (void)sorted.Get("b"); }},
      {"an edit of a list inside its own update", "edited inside its own Update",
       [&](Transaction&) { list.Update(0, [&](std::int64_t&) { list.PushBack(4); }); }},
      {"an edit of a map inside its own update", "edited inside its own Update",
       [&](Transaction&) { map.Update(1, [&](std::string&) { map.Put(2, "two"); }); }},
      {"a dynamic variable of another type", "holds a bean with type id 1",
       [&](Transaction&) { (void)dynamic.Get<testing::BBag>(); }},
      {"a dynamic variable assigned inside its own update", "edited inside its own Update",
       [&](Transaction&) { dynamic.Update<BAccount>([&](BAccount&) { dynamic.Clear(); }); }},
      {"an insert of what exists", "record 1 of table test_accounts exists already",
       [&](Transaction& tx) { accounts.Insert(tx, 1, {}); }},
      {"a delayed removal that nobody does", "table test_accounts has no later removal",
       [&](Transaction& tx) { accounts.DelayRemove(tx, 1); }},
      {"the value of an error", "it failed because: nothing there",
       [](Transaction&) {
         (void)Result<int>(Error(ErrorCode::kNotFound, "nothing there")).value();
       }},
      {"an empty action", "an action must not be empty",
       [](Transaction& tx) { tx.AfterCommit(Task()); }},
      {"a page of a memory table", "table test_scratch is a memory table",
       [&](Transaction&) {
         (void)scratch.WalkPage(std::nullopt, 10,
                                [](std::int64_t, const BAccount&) { return true; });
       }},
      {"something that is not an exception", "something that is not a std::exception",
       [](Transaction&) { throw 7; }},  // NOLINT
  };
  EXPECT_GE(slips.size(), 20U);
  for (const NamedSlip& slip : slips) ExpectRollback(slip);
  EXPECT_TRUE(other.Stop().ok());
}

// What returns an error says so, and the procedure goes on.
TEST_F(SlipsTest, WhatCannotBeDoneInsideAProcedureIsRefusedWithASentence) {
  Accounts late{TableDescriptor{.id = 20, .name = "test_late"}};
  std::vector<std::string> said;
  const auto note = [&](const Result<void>& result) {
    said.push_back(result.ok() ? "done" : result.error().message());
  };
  ASSERT_EQ(0, engine->Call("refused", [&](Transaction& tx) -> std::int64_t {
    note(engine->AddTable(late));
    note(engine->Start());
    note(engine->Stop());
    tx.AfterCommit([&] { note(engine->Stop()); });
    return 0;
  }));
  const std::size_t listener = accounts.AddListener(
      [&](const RecordChange<std::int64_t, BAccount>&) { note(engine->Stop()); });
  ASSERT_EQ(0, Put(accounts, 1, 1));
  accounts.RemoveListener(listener);

  ASSERT_EQ(5U, said.size());
  EXPECT_EQ("table test_late cannot be added: the engine has started", said[0]);
  EXPECT_EQ("an engine can be started only once", said[1]);
  EXPECT_THAT(said[2], HasSubstr("Stop was called inside procedure refused"));
  EXPECT_THAT(said[3], HasSubstr("Stop was called inside procedure refused"));
  EXPECT_THAT(said[4], HasSubstr("Stop was called inside procedure put"));
  EXPECT_EQ(0, Put(accounts, 1, 2)) << "the next call";
}

// Item by item: a handle in an action of every kind, while the transaction object still exists and
// when it is gone.
TEST_F(SlipsTest, AHandleInAnActionIsRefusedWhateverTheOutcome) {
  std::vector<std::string> said;
  std::vector<std::string> said_when_durable;  // By a thread that Stop ends.
  const auto use = [](const Edited<BAccount>& handle, std::vector<std::string>& out) {
    return [&out, handle] {
      try {
        handle->balance = 55;
        out.emplace_back("written");
      } catch (const UsageError& e) {
        out.emplace_back(e.what());
      }
    };
  };
  ASSERT_EQ(0, engine->Call("commits", [&](Transaction& tx) -> std::int64_t {
    kept = accounts.Edit(tx, 1);
    kept->balance = 101;
    tx.AfterCommit(use(kept, said));
    tx.AfterDurable(use(kept, said_when_durable));
    return 0;
  }));
  ASSERT_TRUE(engine->CheckpointNow().ok());
  ASSERT_EQ(3, engine->Call("rolls back", [&](Transaction& tx) -> std::int64_t {
    const auto account = accounts.Edit(tx, 1);
    tx.AfterRollback(use(account, said));
    tx.Call("inner", [&](Transaction& inner) -> std::int64_t {
      inner.AfterRollback(use(account, said));
      return 1;
    });
    return 3;
  }));
  ASSERT_EQ(0, engine->Call("finds", [&](Transaction& tx) -> std::int64_t {
    const Found<BAccount> found = accounts.Find(tx, 1);
    tx.AfterCommit([&said, found] {
      try {
        said.push_back(std::to_string(found.Edit()->balance));
      } catch (const UsageError& e) {
        said.emplace_back(e.what());
      }
    });
    return 0;
  }));
  ASSERT_EQ(0, engine->Call("uses its transaction", [&](Transaction& tx) -> std::int64_t {
    tx.AfterCommit([&] {
      try {
        accounts.Put(tx, 1, {});
        said.emplace_back("written");
      } catch (const UsageError& e) {
        said.emplace_back(e.what());
      }
    });
    return 0;
  }));

  ASSERT_EQ(5U, said.size());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_THAT(said[i], HasSubstr("procedure had ended"));
  EXPECT_THAT(said[4], HasSubstr("does not run on this thread"));
  EXPECT_EQ(101, Read(accounts, 1));

  ASSERT_TRUE(engine->Stop().ok());
  EXPECT_THAT(said_when_durable, ElementsAre(HasSubstr("procedure had ended")));
  engine.reset();
  EXPECT_THROW(kept->balance = 1, UsageError) << "the engine is gone";
}

// A procedure of the same thread and object, later: not the same transaction.
TEST_F(SlipsTest, AHandleDoesNotComeToLifeAgainWithTheNextProcedure) {
  ASSERT_EQ(0, engine->Call("keep", [&](Transaction& tx) -> std::int64_t {
    kept = accounts.Edit(tx, 1);
    return 0;
  }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(result_code::kException, engine->Call("next", [&](Transaction& tx) -> std::int64_t {
      accounts.Edit(tx, 1);
      kept->balance = 7;
      return 0;
    }));
  }
  EXPECT_EQ(100, Read(accounts, 1));
}

// Hole 21: what a doomed run throws is nobody's business, whatever its type.
TEST_F(SlipsTest, ASlipOfADoomedRunIsNotBelieved) {
  testing::CapturedLog log;
  for (const int kind : {0, 1, 2}) {
    int runs = 0;
    const std::int64_t code = engine->Call("doomed", [&](Transaction& tx) -> std::int64_t {
      const bool absent = accounts.Get(tx, 50 + kind) == nullptr;
      if (++runs == 1) {
        engine->CallApart("other", [&](Transaction& inner) -> std::int64_t {
          accounts.Put(inner, 50 + kind, {});
          return 0;
        });
      }
      if (!absent) return 0;
      if (kind == 0) accounts.Edit(tx, 50)->balance = 1;
      if (kind == 1) (void)List<int>()[0];
      throw 7;  // NOLINT: what a careless user does
    });
    EXPECT_EQ(0, code);
    EXPECT_EQ(2, runs);
  }
  EXPECT_THAT(log.lines(), Not(Contains(HasSubstr("threw"))));
}

// --- outcomes and their actions ---

TEST_F(SlipsTest, AfterRollbackRunsOnceForEveryOutcomeThatIsNoCommit) {
  std::vector<std::string> ran;
  const auto run = [&](const std::string& name, std::int64_t expected, const Slip& body) {
    SCOPED_TRACE(name);
    EXPECT_EQ(expected, engine->Call("outcome", [&](Transaction& tx) -> std::int64_t {
      tx.AfterCommit([&] { ran.push_back(name + ": committed"); });
      tx.AfterDurable([&] { ran.push_back(name + ": durable"); });
      tx.AfterRollback([&] { ran.push_back(name + ": rolled back"); });
      body(tx);
      return result_code::kSuccess;
    }));
  };
  run("too many runs", result_code::kTooManyTry, [&](Transaction& tx) {
    accounts.Get(tx, 1);
    engine->CallApart("other", [&](Transaction& inner) -> std::int64_t {
      accounts.Edit(inner, 1)->balance += 1;
      return 0;
    });
  });
  run("a load that fails", result_code::kAbortException, [&](Transaction& tx) {
    faulty.FailFinds(1, ErrorCode::kUnavailable);
    accounts.Get(tx, 77);
  });
  run("an exception", result_code::kException, [&](Transaction&) { (void)List<int>()[0]; });
  run("a swallowed failure", result_code::kAbortException, [&](Transaction& tx) {
    faulty.FailFinds(1, ErrorCode::kUnavailable);
    try {
      accounts.Get(tx, 78);
    } catch (...) {  // NOLINT: what a careless user does
    }
  });

  EXPECT_THAT(
      ran, ::testing::ElementsAre("too many runs: rolled back", "a load that fails: rolled back",
                                  "an exception: rolled back", "a swallowed failure: rolled back"));
}

// --- calls inside calls ---

TEST_F(SlipsTest, ACallInsideAProcedureIsANestedProcedure) {
  // Rolls back with the procedure around it.
  EXPECT_EQ(9, engine->Call("outer", [&](Transaction&) -> std::int64_t {
    EXPECT_EQ(0, engine->Call("inner", [&](Transaction& inner) -> std::int64_t {
      accounts.Put(inner, 1, BAccount{.balance = 5, .owner = {}});
      return 0;
    }));
    EXPECT_EQ(100, Read(accounts, 1)) << "not committed yet";
    return 9;
  }));
  EXPECT_EQ(100, Read(accounts, 1));

  // Sees what the procedure around it has written, and rolls back alone.
  EXPECT_EQ(0, engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    accounts.Edit(tx, 1)->balance = 7;
    EXPECT_EQ(3, engine->Call("inner", [&](Transaction& inner) -> std::int64_t {
      EXPECT_EQ(&tx, &inner);
      EXPECT_EQ(7, accounts.Get(inner, 1)->balance);
      accounts.Edit(inner, 1)->balance = 8;
      return 3;
    }));
    return 0;
  }));
  EXPECT_EQ(7, Read(accounts, 1));

  // Apart it is another transaction; so is a call in an action.
  EXPECT_EQ(9, engine->Call("outer", [&](Transaction& tx) -> std::int64_t {
    EXPECT_EQ(0, engine->CallApart("apart", [&](Transaction& inner) -> std::int64_t {
      EXPECT_NE(&tx, &inner);
      accounts.Put(inner, 2, BAccount{.balance = 2, .owner = {}});
      inner.AfterCommit([&] {
        EXPECT_EQ(0, engine->Call("in an action", [&](Transaction& own) -> std::int64_t {
          EXPECT_NE(&tx, &own);
          accounts.Put(own, 3, BAccount{.balance = 3, .owner = {}});
          return 0;
        }));
      });
      return 0;
    }));
    return 9;
  }));
  EXPECT_EQ(2, Read(accounts, 2));
  EXPECT_EQ(3, Read(accounts, 3));
}

// --- listeners ---

TEST_F(SlipsTest, AListenerThatWritesIsRefused) {
  testing::CapturedLog log;
  std::vector<std::int64_t> codes;
  accounts.AddListener([&](const RecordChange<std::int64_t, BAccount>& change) {
    codes.push_back(Put(accounts, change.key + 1, 0));
    codes.push_back(Put(ledger, change.key, 0));
    codes.push_back(engine->Call("reads", [&](Transaction& tx) -> std::int64_t {
      return accounts.Contains(tx, change.key) ? 0 : 1;
    }));
  });
  EXPECT_EQ(0, Put(accounts, 1, 200));

  EXPECT_THAT(codes, ::testing::ElementsAre(result_code::kLogicError, result_code::kLogicError, 0));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("called by a listener of table test_accounts")));
  EXPECT_EQ(std::nullopt, Read(accounts, 2));
  EXPECT_EQ(200, Read(accounts, 1));
}

}  // namespace
}  // namespace zeze
