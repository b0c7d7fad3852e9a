// Kills a server with SIGKILL, at random moments and at every step of a checkpoint, and looks at
// what the database has then: a consistent cut with everything that was acknowledged as durable.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fault/crash_tables.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/engine.h"

namespace zeze::fault {
namespace {

constexpr int kStepCount = static_cast<int>(CheckpointStep::kMarkedClean) + 1;

// One life of the workload process.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    int ends[2];
    ZEZE_CHECK(::pipe(ends) == 0);
    pipe_ = ends[0];
    // Room for all that one life acknowledges: nobody reads before its end.
    ::fcntl(pipe_, F_SETPIPE_SZ, 1 << 20);
    arguments.insert(arguments.begin(), ZEZE_CRASH_WORKLOAD);
    arguments.insert(arguments.begin() + 4, std::to_string(ends[1]));
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    ZEZE_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      ::execv(argv[0], argv.data());
      std::_Exit(127);
    }
    ::close(ends[1]);
  }

  ~Child() { ::close(pipe_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // False: it ended before.
  bool AwaitBegin() const {
    std::int64_t zero = -1;
    return ::read(pipe_, &zero, sizeof(zero)) == sizeof(zero) && zero == 0;
  }

  void Kill() const { ::kill(pid_, SIGKILL); }

  // What it had acknowledged. The process must have been killed.
  std::vector<std::int64_t> AwaitEnd() const {
    std::vector<std::int64_t> acknowledged;
    std::int64_t id = 0;
    while (::read(pipe_, &id, sizeof(id)) == sizeof(id)) acknowledged.push_back(id);
    int status = 0;
    ZEZE_CHECK(::waitpid(pid_, &status, 0) == pid_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    return acknowledged;
  }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

class CrashTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    seed = std::random_device()();
    std::cout << "seed " << seed << '\n';
    random.seed(seed);
    NewDirectory();
  }

  // After some lives a new database: what was written makes looking at it slower and slower.
  void NewDirectory() {
    directory = std::make_unique<TempDirectory>();
    acknowledged.clear();
  }

  std::string Path() const { return directory->File("db"); }

  void Remember(const std::vector<std::int64_t>& ids) {
    acknowledged.insert(ids.begin(), ids.end());
    acknowledged_count += ids.size();
  }

  void Verify() {
    Result<std::unique_ptr<Storage>> storage =
        OpenRocksDbStorage({.directory = Path(), .create_if_missing = false});
    ASSERT_TRUE(storage.ok()) << storage.error().message();
    Tables tables;
    Engine engine({.storage = storage.value().get(), .checkpoint_period = std::chrono::seconds(0)});
    ASSERT_TRUE(tables.AddTo(engine, false).ok());
    ASSERT_TRUE(engine.Start().ok());
    VerifyMoney(tables);
    VerifyChains(tables);
    VerifyAcknowledged(tables);
    ASSERT_TRUE(engine.Stop().ok());
  }

  static void VerifyMoney(Tables& tables) {
    std::map<std::int64_t, std::int64_t> expected;
    for (std::int64_t i = 0; i < kAccounts; ++i) expected[i] = kStart;
    std::int64_t spent = 0;
    ASSERT_TRUE(tables.transfers
                    .Walk([&](std::int64_t, const BTransfer& transfer) {
                      expected[transfer.from] -= transfer.amount;
                      if (transfer.to >= 0) expected[transfer.to] += transfer.amount;
                      if (transfer.to < 0) spent += transfer.amount;
                      return true;
                    })
                    .ok());
    std::map<std::int64_t, std::int64_t> balances;
    std::int64_t total = 0;
    ASSERT_TRUE(tables.accounts
                    .Walk([&](std::int64_t account, const BAmount& balance) {
                      balances[account] = balance.value;
                      total += balance.value;
                      return true;
                    })
                    .ok());
    std::int64_t receipts = 0;
    ASSERT_TRUE(tables.receipts
                    .Walk([&](std::int64_t, const BAmount& price) {
                      receipts += price.value;
                      return true;
                    })
                    .ok());
    EXPECT_EQ(kTotal, total + receipts);
    EXPECT_EQ(spent, receipts);
    EXPECT_EQ(expected, balances);
  }

  static void VerifyChains(Tables& tables) {
    for (std::int64_t chain = 0; chain < kChains; ++chain) {
      const auto cause = tables.causes.ReadCopy(chain);
      const auto effect = tables.effects.ReadCopy(chain);
      ASSERT_TRUE(cause.ok() && effect.ok());
      if (!effect.value()) continue;
      ASSERT_TRUE(cause.value()) << "chain " << chain << " has an effect without any cause";
      EXPECT_LE(effect.value()->value, cause.value()->value) << "chain " << chain;
    }
  }

  void VerifyAcknowledged(Tables& tables) {
    for (const std::int64_t id : acknowledged) {
      const auto receipt = tables.receipts.ReadCopy(id);
      ASSERT_TRUE(receipt.ok());
      EXPECT_TRUE(receipt.value()) << "acknowledged purchase " << id << " is lost";
    }
  }

  std::uint64_t seed = 0;
  std::mt19937_64 random;
  std::unique_ptr<TempDirectory> directory;
  std::set<std::int64_t> acknowledged;  // In the present directory.
  std::size_t acknowledged_count = 0;
};

// 2 x 100 = 200 kills.
TEST_P(CrashTest, AKillAtAnyMomentLeavesAConsistentCut) {
  for (int round = 0; round < 100; ++round) {
    if (round % 8 == 0) NewDirectory();
    SCOPED_TRACE("round " + std::to_string(round));
    Child child({Path(), GetParam(), std::to_string(seed + static_cast<std::uint64_t>(round))});
    ASSERT_TRUE(child.AwaitBegin());
    // Not to wait for something: the moment of the kill is what varies.
    SystemClock().SleepFor(std::chrono::microseconds(random() % 100'000));
    child.Kill();
    Remember(child.AwaitEnd());
    Verify();
    if (HasFailure()) return;
  }
  EXPECT_GT(acknowledged_count, 0U);
}

TEST_P(CrashTest, AKillAtEachStepOfACheckpointLeavesAConsistentCut) {
  for (int step = 0; step < kStepCount; ++step) {
    for (int life = 0; life < 3; ++life) {
      SCOPED_TRACE("step " + std::to_string(step));
      Child child({Path(), GetParam(), std::to_string(seed + static_cast<std::uint64_t>(step)),
                   std::to_string(step), std::to_string(1 + random() % 20)});
      ASSERT_TRUE(child.AwaitBegin());
      Remember(child.AwaitEnd());
      Verify();
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CrashTest, ::testing::Values("whole", "groups"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace zeze::fault
