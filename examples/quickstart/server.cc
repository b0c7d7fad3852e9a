#include "server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "market.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/config/config.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/transaction.h"

namespace quickstart {

namespace {

constexpr int kTraderCount = 2;

std::mutex output_mutex;

// One write per line, so that a kill never leaves half of one.
void Say(const std::string& line) {
  const std::string text = line + "\n";
  const std::lock_guard lock(output_mutex);
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(1);
}

std::string Text(const char* word, const Totals& totals) {
  return fmt::format("{} {} {} {} {} {}", word, totals.roles, totals.gold, totals.goods,
                     totals.receipts, totals.receipts_counted);
}

Offer RandomOffer(std::mt19937_64& random) {
  Offer offer;
  offer.buyer = static_cast<std::int64_t>(random() % kRoleCount);
  offer.seller = static_cast<std::int64_t>(random() % kRoleCount);
  offer.good = static_cast<int>(random() % kGoodKinds);
  offer.price = static_cast<std::int64_t>(random() % 20 + 1);
  return offer;
}

class Traders {
 public:
  Traders(zeze::Application& application, Market& market, std::int64_t first_receipt)
      : application_(application), market_(market), next_receipt_(first_receipt) {
    for (int i = 0; i < kTraderCount; ++i) threads_.emplace_back([this] { Trade(); });
    threads_.emplace_back([this] { TradeWithReceipts(); });
    threads_.emplace_back([this] { Report(); });
  }

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Trade() {
    std::mt19937_64 random(std::random_device{}());
    while (!stop_) {
      const Offer offer = RandomOffer(random);
      application_.Call("trade", [&](zeze::Transaction& tx) { return market_.Trade(tx, offer); });
    }
  }

  void TradeWithReceipts() {
    std::mt19937_64 random(std::random_device{}());
    while (!stop_) {
      const Offer offer = RandomOffer(random);
      const std::int64_t receipt = next_receipt_;
      const std::int64_t code = application_.Call("trade with receipt", [&](zeze::Transaction& tx) {
        return market_.TradeWithReceipt(tx, offer, receipt);
      });
      if (code != zeze::result_code::kSuccess) continue;
      ++next_receipt_;
      Say(fmt::format("ack {}", receipt));  // From here on it must never be lost.
    }
  }

  void Report() {
    while (!stop_) {
      zeze::SystemClock().SleepFor(std::chrono::milliseconds(200));
      const zeze::EngineStatistics now = application_.engine().statistics();
      Say(fmt::format(
          "live {} {} {} {} {} {}", now.commits, now.conflicts, now.accesses, now.loads,
          now.checkpoint.dirty_records,
          std::chrono::duration_cast<std::chrono::milliseconds>(now.checkpoint.since_last_success)
              .count()));
    }
  }

  zeze::Application& application_;
  Market& market_;
  std::int64_t next_receipt_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

int Fail(const zeze::Error& error) {
  fmt::print(stderr, "quickstart server: {}\n", error.message());
  return 1;
}

}  // namespace

int Serve(const std::string& config_file, const std::string& directory) {
  auto config = zeze::Config::Load(config_file);
  if (!config.ok()) return Fail(config.error());
  auto options = zeze::OptionsFromConfig(config.value());
  if (!options.ok()) return Fail(options.error());
  options.value().storage = {.url = "rocksdb:" + directory};

  Market market;
  auto opened = zeze::Application::Open("bazaar", options.value());
  if (!opened.ok()) return Fail(opened.error());
  zeze::Application& application = *opened.value();
  application.AddModule(market);
  if (auto started = application.Start(); !started.ok()) return Fail(started.error());

  auto totals = market.Count();
  if (!totals.ok()) return Fail(totals.error());
  std::int64_t last_receipt = 0;
  auto walked = market.tReceipt.WalkKeys([&](std::int64_t receipt) {
    Say(fmt::format("has {}", receipt));
    last_receipt = std::max(last_receipt, receipt);
    return true;
  });
  if (!walked.ok()) return Fail(walked.error());
  Say(Text("ready", totals.value()));

  Traders traders(application, market, last_receipt + 1);
  char end = 0;
  while (::read(STDIN_FILENO, &end, 1) > 0) {
  }
  traders.Stop();
  totals = market.Count();
  if (!totals.ok()) return Fail(totals.error());
  Say(Text("stopped", totals.value()));
  if (auto stopped = application.Stop(); !stopped.ok()) return Fail(stopped.error());
  return 0;
}

}  // namespace quickstart
