// A board on which everybody is listed against a plain map: transactions of several updates commit,
// roll back, or roll a part of themselves back; roles are removed; the server starts again.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/components/rank/rank.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/engine.h"

namespace zeze {
namespace {

const RankBoard kBoard = RankBoard::Total(1);
using Scores = std::map<std::int64_t, std::int64_t>;

struct Server {
  explicit Server(Storage& storage)
      : engine({.storage = &storage, .checkpoint_period = std::chrono::seconds(0)}) {
    EXPECT_TRUE(engine.AddTable(rank.table()).ok());
    EXPECT_TRUE(engine.Start().ok());
    rank.Attach(engine);
  }
  ~Server() { EXPECT_TRUE(engine.Stop().ok()); }

  LongRank rank{{.concurrent_level = 2}};
  Engine engine;
};

class RankModelTest : public ::testing::Test {
 protected:
  void UpdateSome(Transaction& tx, Scores& scores, std::uint64_t count) {
    for (; count > 0; --count) {
      const auto role = static_cast<std::int64_t>(random() % 200);
      const auto score = static_cast<std::int64_t>(random() % 300);
      if (random() % 20 == 0) {
        const bool known = server->rank.Remove(tx, kBoard, role).value();
        EXPECT_EQ(known, scores.erase(role) == 1);
      } else {
        EXPECT_TRUE(server->rank.Update(tx, kBoard, role, RankLong(score)).ok());
        scores[role] = score;
      }
    }
  }

  // Runs a procedure with a nested one; gives what the board is then.
  Scores RunProcedure(const Scores& before) {
    Scores scores;
    const bool commits = random() % 4 != 0;
    const std::int64_t code = server->engine.Call("outer", [&](Transaction& tx) -> std::int64_t {
      scores = before;
      UpdateSome(tx, scores, random() % 4);
      Scores inner = scores;
      const bool inner_commits = random() % 2 != 0;
      const std::int64_t nested = tx.Call("inner", [&](Transaction& same) -> std::int64_t {
        UpdateSome(same, inner, random() % 3);
        return inner_commits ? 0 : 1;
      });
      EXPECT_EQ(nested, inner_commits ? 0 : 1);
      if (inner_commits) scores = std::move(inner);
      UpdateSome(tx, scores, 1);
      return commits ? 0 : 1;
    });
    EXPECT_EQ(code, commits ? 0 : 1);
    return commits ? scores : before;
  }

  void ExpectWholeBoardIs(const Scores& truth) {
    std::multiset<std::int64_t, std::greater<>> best;
    for (const auto& [role, score] : truth) best.insert(score);
    const auto view = server->rank.Read(kBoard).value();
    ASSERT_EQ(view->Certain().size(), truth.size());
    auto expected = best.begin();
    for (const auto& entry : view->Certain()) {
      const std::int64_t score = entry.value.As<BValueLong>()->Value;
      ASSERT_EQ(score, *expected++);
      ASSERT_EQ(score, truth.at(entry.role));
    }
  }

  std::mt19937_64 random;
  const std::unique_ptr<Storage> storage = OpenMemoryStorage();
  std::unique_ptr<Server> server = std::make_unique<Server>(*storage);
};

// At most 200 roles: fewer than a group computes, so nobody is outside.
TEST_F(RankModelTest, WithRollbacksAndRemovalsTheWholeBoardIsTheTruth) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random.seed(seed);
  Scores truth;
  for (int i = 0; i < 3000; ++i) {
    truth = RunProcedure(truth);
    if (i % 500 == 499) {
      server.reset();  // Saves everything.
      server = std::make_unique<Server>(*storage);
    }
    if (i % 5 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectWholeBoardIs(truth));
  }
}

}  // namespace
}  // namespace zeze
