// The process that the test of large commits kills: zeze_large_workload PLACE MODE COUNT BYTES
//
// PLACE is a directory or the address of a database, MODE "whole" or "groups". With default options
// it commits COUNT documents of BYTES as fast as it can, tries one of 300 MB, which every storage
// refuses, saves, says "durable", and goes on.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fault/large_tables.h"
#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/transaction.h"

namespace zeze::fault {
namespace {

template <typename R>
void Check(const R& result) {
  if (result.ok()) return;
  std::cerr << result.error().message() << '\n';
  std::_Exit(1);
}

class Workload {
 public:
  Workload(const std::string& place, bool groups, std::size_t bytes) : bytes_(bytes) {
    Result<std::unique_ptr<Storage>> opened = OpenPlace(place);
    Check(opened);
    storage_ = std::move(opened).value();
    engine_ = std::make_unique<Engine>(EngineOptions{.storage = storage_.get()});
    Check(tables_.AddTo(*engine_, groups));
    Check(engine_->Start());
  }

  [[noreturn]] void Run(std::int64_t count) {
    const auto begin = SystemClock().Now();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([this, count] {
        while (true) {
          const std::int64_t key = next_.fetch_add(1);
          if (key >= count) return;
          Commit(key);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> committed = SystemClock().Now() - begin;
    CommitTooLarge();
    Check(engine_->CheckpointNow());
    const std::chrono::duration<double> saved = SystemClock().Now() - begin;
    const CheckpointStatistics statistics = engine_->statistics().checkpoint;
    std::cout << "durable " << count << ": committed after " << committed.count()
              << " s, saved after " << saved.count() << " s, " << statistics.flushes << " flushes, "
              << statistics.failed_flushes << " failed, " << refused_ << " refused, peak "
              << PeakMegabytes() << " MB\n"
              << std::flush;
    for (std::int64_t key = count;; ++key) Commit(key);
  }

 private:
  void Commit(std::int64_t key) {
    const std::string text = DocumentText(key, bytes_);
    while (true) {
      const std::int64_t code = engine_->Call("commit", [&](Transaction& tx) -> std::int64_t {
        BDocument document;
        document.parts.PushBack(Binary{text});
        tables_.documents.Put(tx, key, document);
        tables_.seals.Put(tx, key, BSeal{.bytes = static_cast<std::int64_t>(text.size())});
        return result_code::kSuccess;
      });
      if (code == result_code::kSuccess) return;
      if (code != result_code::kBusy) {
        std::cerr << "commit of " << key << ": " << code << '\n';
        std::_Exit(1);
      }
      ++refused_;
    }
  }

  void CommitTooLarge() {
    const std::int64_t code = engine_->Call("too large", [&](Transaction& tx) -> std::int64_t {
      BDocument document;
      for (int i = 0; i < 3; ++i) document.parts.PushBack(Binary{std::string(100 << 20, 'x')});
      tables_.documents.Put(tx, -1, document);
      tables_.seals.Put(tx, -1, BSeal{.bytes = 300 << 20});
      return result_code::kSuccess;
    });
    std::cout << "300 MB: " << code << '\n' << std::flush;
  }

  static std::size_t PeakMegabytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      std::size_t kilobytes = 0;
      if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
    }
    return 0;
  }

  const std::size_t bytes_;
  std::unique_ptr<Storage> storage_;
  LargeTables tables_;
  std::unique_ptr<Engine> engine_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<std::int64_t> refused_ = 0;
};

}  // namespace
}  // namespace zeze::fault

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  zeze::fault::Workload workload(argv[1], std::string(argv[2]) == "groups", std::stoul(argv[4]));
  workload.Run(std::stol(argv[3]));
}
