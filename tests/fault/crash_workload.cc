// The process that the crash test kills: zeze_crash_workload DIRECTORY MODE SEED PIPE [STEP TIMES]
//
// MODE is "whole" or "groups"; acknowledged purchases are written to the file descriptor PIPE,
// after a first 0 that says that the workload has begun. With STEP it kills itself when a
// checkpoint reaches that step for the TIMES-th time.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/fault/crash_tables.h"
#include "zeze/base/check.h"
#include "zeze/base/result_code.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/transaction.h"

namespace zeze::fault {
namespace {

struct Arguments {
  std::string directory;
  bool groups = false;
  std::uint64_t seed = 0;
  int pipe = -1;
  int step = -1;
  int times = 0;
};

class Workload {
 public:
  explicit Workload(const Arguments& arguments) : arguments_(arguments) {
    Result<std::unique_ptr<Storage>> opened =
        OpenRocksDbStorage({.directory = arguments.directory});
    Check(opened);
    storage_ = std::move(opened).value();
    engine_ = std::make_unique<Engine>(
        EngineOptions{.storage = storage_.get(),
                      .checkpoint_period = std::chrono::milliseconds(3),
                      .sync = arguments.seed % 4 == 0,
                      .on_checkpoint_step = [this](CheckpointStep step) { OnStep(step); }});
    Check(tables_.AddTo(*engine_, arguments.groups));
    Check(engine_->Start());
    Prepare();
  }

  [[noreturn]] void Run() {
    Acknowledge(0);
    armed_ = true;
    for (std::uint64_t t = 0; t < 2; ++t) {
      threads_.emplace_back([this, t] { Transfer(t); });
      threads_.emplace_back([this, t] { Purchase(t); });
    }
    threads_.emplace_back([this] { Cause(); });
    Effect();
  }

 private:
  using Random = std::mt19937_64;

  template <typename R>
  static void Check(const R& result) {
    if (result.ok()) return;
    std::cerr << result.error().message() << '\n';
    std::_Exit(1);
  }

  void OnStep(CheckpointStep step) {
    if (!armed_ || static_cast<int>(step) != arguments_.step) return;
    if (++hits_ == arguments_.times) static_cast<void>(::raise(SIGKILL));
  }

  void Acknowledge(std::int64_t id) const {
    ZEZE_CHECK(::write(arguments_.pipe, &id, sizeof(id)) == sizeof(id));
  }

  // A new database gets its money; an old one says where its numbers end.
  void Prepare() {
    std::int64_t last = 0;
    Check(tables_.transfers.Walk([&last](std::int64_t key, const BTransfer&) {
      last = std::max(last, key);
      return true;
    }));
    next_ = last + 1;
    const std::int64_t code = engine_->Call("prepare", [&](Transaction& tx) -> std::int64_t {
      if (tables_.accounts.Contains(tx, 0)) return result_code::kSuccess;
      for (std::int64_t i = 0; i < kAccounts; ++i) {
        tables_.accounts.Insert(tx, i, BAmount{.value = kStart});
      }
      return result_code::kSuccess;
    });
    ZEZE_CHECK(code == result_code::kSuccess);
    Check(engine_->CheckpointNow());
  }

  [[noreturn]] void Transfer(std::uint64_t thread) {
    Random random(arguments_.seed * 10 + thread);
    while (true) {
      const BTransfer transfer{.from = Account(random),
                               .to = Account(random),
                               .amount = static_cast<std::int64_t>(random() % 100)};
      const std::int64_t id = next_.fetch_add(1);
      engine_->Call("transfer", [&](Transaction& tx) -> std::int64_t {
        tables_.accounts.Edit(tx, transfer.from)->value -= transfer.amount;
        tables_.accounts.Edit(tx, transfer.to)->value += transfer.amount;
        tables_.transfers.Insert(tx, id, transfer);
        return id % 16 == 0 ? 1 : result_code::kSuccess;  // Some change their mind.
      });
    }
  }

  // Takes money out of an account for a receipt, and tells the test when that is safe.
  [[noreturn]] void Purchase(std::uint64_t thread) {
    Random random(arguments_.seed * 10 + 2 + thread);
    while (true) {
      const BTransfer price{
          .from = Account(random), .to = -1, .amount = static_cast<std::int64_t>(1 + random() % 9)};
      const std::int64_t id = next_.fetch_add(1);
      engine_->Call("purchase", [&](Transaction& tx) -> std::int64_t {
        tables_.accounts.Edit(tx, price.from)->value -= price.amount;
        tables_.transfers.Insert(tx, id, price);
        tables_.receipts.Insert(tx, id, BAmount{.value = price.amount});
        if (arguments_.groups) {
          tx.AfterCommit([this, id] { Acknowledge(id); });
        } else {
          tx.AfterDurable([this, id] { Acknowledge(id); });
        }
        return result_code::kSuccess;
      });
      if (!arguments_.groups) std::this_thread::yield();
    }
  }

  [[noreturn]] void Cause() {
    for (std::int64_t n = 0;; ++n) {
      const std::int64_t chain = n % kChains;
      engine_->Call("cause", [&](Transaction& tx) -> std::int64_t {
        const std::int64_t value = tables_.causes.GetOrAdd(tx, chain)->value += 1;
        tables_.whispers.GetOrAdd(tx, chain)->value = value;
        return result_code::kSuccess;
      });
      if (n % 64 == 0) std::this_thread::yield();
    }
  }

  // Half of the chains read the cause itself, the others only what it left in memory.
  [[noreturn]] void Effect() {
    for (std::int64_t n = 0;; ++n) {
      const std::int64_t chain = n % kChains;
      engine_->Call("effect", [&](Transaction& tx) -> std::int64_t {
        auto& source = chain % 2 == 0 ? tables_.causes : tables_.whispers;
        const BAmount* cause = source.Get(tx, chain);
        if (cause == nullptr) return 1;
        tables_.effects.GetOrAdd(tx, chain)->value = cause->value;
        return result_code::kSuccess;
      });
    }
  }

  static std::int64_t Account(Random& random) {
    return static_cast<std::int64_t>(random() % kAccounts);
  }

  const Arguments arguments_;
  std::unique_ptr<Storage> storage_;
  Tables tables_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::thread> threads_;
  std::atomic<std::int64_t> next_ = 1;
  std::atomic<bool> armed_ = false;
  std::atomic<int> hits_ = 0;
};

}  // namespace
}  // namespace zeze::fault

int main(int argc, char** argv) {
  if (argc != 5 && argc != 7) {
    std::cerr << "usage: zeze_crash_workload DIRECTORY whole|groups SEED PIPE [STEP TIMES]\n";
    return 2;
  }
  zeze::fault::Arguments arguments{.directory = argv[1],
                                   .groups = std::string(argv[2]) == "groups",
                                   .seed = std::strtoull(argv[3], nullptr, 10),
                                   .pipe = std::atoi(argv[4])};
  if (argc == 7) {
    arguments.step = std::atoi(argv[5]);
    arguments.times = std::atoi(argv[6]);
  }
  zeze::fault::Workload(arguments).Run();
}
