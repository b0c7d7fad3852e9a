// A million transactions must be checked in seconds, whether all is well, one thing is wrong, or
// everything is. The limits hold for an optimized build; sanitizers get a smaller history.

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/recorder.h"

namespace zeze::history {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::size_t kTransactions = 50'000;
#else
constexpr std::size_t kTransactions = 1'000'000;
#endif
constexpr std::size_t kClients = 8;
constexpr std::size_t kHotKeys = 10;
constexpr std::size_t kKeys = 100'000;
constexpr double kSecondsMax = 20;
constexpr std::size_t kMegabytesMax = 2000;

// Transactions that read and append to two keys each, every other one to a hot key.
class Workload {
 public:
  Workload() : recorder_({.thread_count = kClients}), clients_(kClients), lists_(kKeys) {}

  // One in stale_every appends goes on from a list as it was some time ago; 0: none.
  History Run(std::size_t stale_every) {
    std::vector<ListState> old = lists_;
    for (std::size_t i = 0; i < kTransactions; ++i) {
      const std::size_t thread = random_() % kClients;
      // The one before ends only now: eight transactions overlap all the time.
      if (clients_[thread]) clients_[thread]->Commit();
      clients_[thread].emplace(recorder_.Begin(thread, thread % 2 == 0 ? "transfer" : "trade"));
      for (int j = 0; j < 2; ++j) {
        const Key key = random_() % 4 == 0 ? random_() % kHotKeys : random_() % kKeys;
        const bool is_stale =
            stale_every > 0 && (2 * i + static_cast<std::size_t>(j)) % stale_every == 1;
        const ListState before = is_stale ? old[key] : lists_[key];
        if (i % 50 == 0) old[key] = lists_[key];
        const Element element = clients_[thread]->NewElement();
        clients_[thread]->Read(key, before);
        lists_[key] = before.Extended(element);
        clients_[thread]->Append(key, element);
      }
    }
    for (auto& client : clients_) client->Commit();
    clients_.clear();
    return recorder_.Finish();
  }

 private:
  std::mt19937_64 random_{1};
  Recorder recorder_;
  std::vector<std::optional<Attempt>> clients_;
  std::vector<ListState> lists_;
};

struct Measured {
  Report report;
  double seconds = 0;
};

Measured CheckTimed(const History& history, const Options& options) {
  // Processor time: other work on the machine is not ours.
  const std::clock_t start = std::clock();
  Measured measured;
  measured.report = Check(history, options);
  measured.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ::testing::Test::RecordProperty("seconds", std::to_string(measured.seconds));
  EXPECT_LT(measured.seconds, kSecondsMax);
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto megabytes = static_cast<std::size_t>(usage.ru_maxrss) / 1024;
  ::testing::Test::RecordProperty("megabytes", std::to_string(megabytes));
  EXPECT_LT(megabytes, kMegabytesMax);
  GTEST_LOG_(INFO) << measured.report.transaction_count << " transactions, "
                   << measured.report.dependency_count << " dependencies, " << measured.seconds
                   << " s, " << megabytes << " MB at most";
  return measured;
}

TEST(CheckPerformance, MillionGoodTransactions) {
  const History history = Workload().Run(0);

  const Measured measured = CheckTimed(history, {.readers = Options::Readers::kAll});

  EXPECT_TRUE(measured.report.ok()) << measured.report.ToString();
  EXPECT_EQ(measured.report.committed_count, kTransactions);
  EXPECT_EQ(measured.report.ordered_append_count, 2 * kTransactions);
}

TEST(CheckPerformance, OneStaleReadBetweenAMillion) {
  History history = Workload().Run(0);
  const Transaction last = history.transactions().back();
  history.Begin(kTransactions * 10, kClients, "late audit", last.end + 1);
  history.Read(3, ListState());
  history.End(Outcome::kCommitted, last.end + 2);

  const Measured measured = CheckTimed(history, {});

  ASSERT_EQ(measured.report.anomaly_count, 1u);
  EXPECT_EQ(measured.report.anomalies[0].kind, AnomalyKind::kRealTime);
  EXPECT_EQ(measured.report.anomalies[0].cycle.size(), 2u);
  EXPECT_EQ(measured.report.anomalies[0].transactions[0], kTransactions * 10);
}

TEST(CheckPerformance, MillionTransactionsWithoutValidation) {
  const History history = Workload().Run(100);

  const Measured measured = CheckTimed(history, {});

  ASSERT_FALSE(measured.report.ok());
}

}  // namespace
}  // namespace zeze::history
