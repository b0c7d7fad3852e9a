#include "shop.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <ios>
#include <memory>
#include <ostream>
#include <random>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "arena/Recharge.h"
#include "players.h"
#include "recharge.h"
#include "signals.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/serialize/byte_reader.h"

namespace arena_example {

using arena::Recharge::BRecharge;

namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr std::size_t kReadAtATime = 1000;

class Shop {
 public:
  explicit Shop(const ShopOptions& options) : options_(options) {}

  zeze::Result<void> Open() {
    auto store = zeze::RedoStore::Open({.directory = options_.directory});
    if (!store.ok()) return store.error();
    auto queue =
        zeze::RedoQueueClient::Open(store.value(), {.name = kRechargeQueue,
                                                    .servers = options_.servers,
                                                    .answer_timeout = std::chrono::seconds(3),
                                                    .delay_max = std::chrono::seconds(2)});
    if (!queue.ok()) return queue.error();
    queue_ = std::move(queue).value();
    return Recover();
  }

  void Sell() {
    BRecharge order{
        .order = queue_->journal().added_id() + 1,
        .role = RoleOf(fmt::format("bot-{}", random_() % static_cast<unsigned>(options_.players))),
        .gold = static_cast<std::int64_t>(random_() % 20) + 1};
    // Only what is on the disk is confirmed.
    if (const auto added = queue_->Add(kRechargeTask, order); !added.ok()) {
      fmt::print(stderr, "arena: an order is not taken: {}\n", added.error().message());
      return;
    }
    Confirm(order);
  }

  zeze::Result<void> Finish() { return queue_->WaitDone(queue_->journal().added_id(), kPatience); }

  std::int64_t confirmed() const { return confirmed_; }

 private:
  void Confirm(const BRecharge& order) {
    confirmed_ = order.order;
    orders_ << fmt::format("{} {} {}\n", order.order, order.role, order.gold) << std::flush;
  }

  // An order that was on the disk when the shop was killed counts, whether or not it was confirmed.
  // Orders have the ids of their tasks.
  zeze::Result<void> Recover() {
    std::ifstream before(options_.orders_file);
    for (BRecharge order; before >> order.order >> order.role >> order.gold;) {
      confirmed_ = order.order;
    }
    if (confirmed_ > queue_->journal().added_id()) {
      return zeze::Error(zeze::ErrorCode::kCorrupt,
                         fmt::format("order {} was confirmed, but {} has only {}", confirmed_,
                                     options_.directory, queue_->journal().added_id()));
    }
    orders_.open(options_.orders_file, std::ios::app);
    while (confirmed_ < queue_->journal().added_id()) {
      const auto tasks = queue_->journal().Read(confirmed_, kReadAtATime, 1 << 20);
      if (!tasks.ok()) return tasks.error();
      for (const zeze::RedoTask& task : tasks.value()) {
        BRecharge order;
        zeze::ByteReader in(task.record.param.bytes);
        order.Decode(in);
        Confirm(order);
      }
    }
    return {};
  }

  const ShopOptions& options_;
  std::unique_ptr<zeze::RedoQueueClient> queue_;
  std::ofstream orders_;
  std::int64_t confirmed_ = 0;
  std::mt19937_64 random_{std::random_device{}()};
};

int Fail(const zeze::Error& error) {
  fmt::print(stderr, "arena: {}\n", error.message());
  return 1;
}

}  // namespace

int RunShop(const ShopOptions& options) {
  BlockSignals();
  Shop shop(options);
  if (auto opened = shop.Open(); !opened.ok()) return Fail(opened.error());
  std::atomic<bool> closing = false;
  std::thread seller([&] {
    while (!closing) {
      shop.Sell();
      zeze::SystemClock().SleepFor(options.pause);
    }
  });
  WaitForTheEnd();
  closing = true;
  seller.join();
  if (auto finished = shop.Finish(); !finished.ok()) return Fail(finished.error());
  fmt::print("{} orders confirmed and delivered\n", shop.confirmed());
  std::fflush(stdout);
  return 0;
}

}  // namespace arena_example
