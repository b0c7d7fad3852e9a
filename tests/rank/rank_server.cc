// A server whose players score. Each score is a record; the board has it after the commit. It says
// "ready", "scored 1000" after each thousand scores, "finished" after the last, and ends when told.
// With --check it scores nothing: it waits until no update is on its way to the board, compares the
// board with the records, and says "equal: ..." or what is different.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "zeze/app/application.h"
#include "zeze/arch/rank_redirect/rank_redirect.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/rank/rank.h"
#include "zeze/components/rank/rank_router.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Arguments {
  std::int32_t server_id = 0;
  std::int32_t servers = 1;
  std::string url;
  std::uint16_t global_port = 0;
  std::uint16_t registry_port = 0;
  std::int64_t scores = 0;
  std::int64_t rate = 1000;
  std::int64_t roles = 1000;
  bool check = false;
};

constexpr std::uint32_t kLevel = 32;
constexpr int kThreads = 2;
constexpr std::int32_t kRankType = 1;
const RankBoard kBoard = RankBoard::Total(kRankType);
constexpr TableDescriptor kScores{.id = 20'001, .name = "test_Rank_tScores"};

using Scores = Table<std::int64_t, BValueLong>;

template <typename R>
bool Failed(const R& result) {
  if (!result.ok()) std::cerr << result.error().message() << '\n';
  return !result.ok();
}

// Loses deliveries and their answers, delays and doubles them.
class BadRouter final : public RankRouter {
 public:
  explicit BadRouter(RankRouter& real) : real_(real) {}

  void Open(Application& application) { application_ = &application; }

  bool OwnsGroup(std::uint32_t group, std::uint32_t level) override {
    return real_.OwnsGroup(group, level);
  }
  void Send(std::uint32_t group, std::uint32_t level, std::string parameters,
            Completion done) override {
    real_.Send(group, level, std::move(parameters), std::move(done));
  }
  void Deliver(std::uint32_t group, std::uint32_t level, std::string updates,
               const Delivered& done) override {
    const std::uint32_t luck = Random() % 100;
    if (luck >= 6) return real_.Deliver(group, level, std::move(updates), done);
    Application* application = application_;
    if (luck < 2 || application == nullptr) return done(result_code::kTimeout, {});
    if (luck < 4) {
      return real_.Deliver(
          group, level, std::move(updates),
          [done](std::int64_t, const std::string&) { done(result_code::kTimeout, {}); });
    }
    if (luck < 5) {
      real_.Deliver(group, level, updates, done);
    } else {
      done(result_code::kTimeout, {});
    }
    application->scheduler().After(
        milliseconds(Random() % 4000), Task("late delivery", [this, group, level, updates] {
          real_.Deliver(group, level, updates, [](std::int64_t, const std::string&) {});
        }));
  }

 private:
  std::uint32_t Random() {
    MutexLock lock(mutex_);
    return static_cast<std::uint32_t>(random_());
  }

  RankRouter& real_;
  std::atomic<Application*> application_ = nullptr;
  Mutex mutex_;
  std::mt19937 random_ ZEZE_GUARDED_BY(mutex_){std::random_device()()};
};

ApplicationOptions OptionsOf(const Arguments& arguments) {
  ApplicationOptions options{.server_id = arguments.server_id,
                             .storage = {.url = arguments.url},
                             .globals = {{.host = "127.0.0.1", .port = arguments.global_port}},
                             .lease = seconds(3),
                             .worker_threads = 12,
                             .checkpoint_period = milliseconds(200),
                             .liveness = {.period = seconds(0)}};
  options.registry.emplace().connector = {
      .host = "127.0.0.1", .port = arguments.registry_port, .first_delay = milliseconds(20)};
  return options;
}

// Mostly of players whose home is here.
void Play(const Arguments& arguments, Application& application, Scores& scores, LongRank& rank,
          std::atomic<std::int64_t>& scored, const std::atomic<bool>& stop) {
  std::mt19937_64 random{std::random_device()()};
  const auto began = SystemClock().Now();
  std::int64_t own = 0;
  while (!stop && scored < arguments.scores) {
    auto role = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(arguments.roles));
    if (random() % 50 != 0) role += arguments.server_id - role % arguments.servers;
    const auto score = static_cast<std::int64_t>(random() % 1'000'000'000);
    const std::int64_t code = application.Call("score", [&](Transaction& tx) -> std::int64_t {
      scores.GetOrAdd(tx, role)->Value = score;
      rank.UpdateAfterCommit(tx, kBoard, role, RankLong(score));
      return 0;
    });
    if (code == 0) {
      const std::int64_t count = ++scored;
      if (count % 1000 == 0) std::cout << fmt::format("scored {}\n", count) << std::flush;
      ++own;
    }
    const auto due = began + seconds(1) * own * kThreads / arguments.rate;
    if (due > SystemClock().Now()) SystemClock().SleepFor(due - SystemClock().Now());
  }
}

// Alone: all others have ended.
int Check(LongRank& rank, Scores& scores) {
  const auto deadline = SystemClock().Now() + seconds(120);
  std::size_t waiting = 1;
  while (waiting > 0) {
    const Result<std::size_t> walked =
        rank.pending().Walk([](const auto&, const auto&) { return true; });
    if (walked.ok()) waiting = walked.value();
    if (SystemClock().Now() > deadline) {
      std::cout << fmt::format("{} updates do not reach the board\n", waiting) << std::flush;
      return 1;
    }
    SystemClock().SleepFor(milliseconds(100));
  }
  std::map<std::int64_t, std::int64_t> of_records;
  if (Failed(scores.Walk([&](std::int64_t role, const BValueLong& score) {
        of_records[role] = score.Value;
        return true;
      }))) {
    return 1;
  }
  Result<LongRank::ViewPointer> view = rank.Read(kBoard);
  // Rights of a server that was killed cannot be had before its lease is over.
  while (!view.ok() && SystemClock().Now() < deadline) {
    SystemClock().SleepFor(milliseconds(100));
    view = rank.Read(kBoard);
  }
  if (Failed(view)) return 1;
  std::map<std::int64_t, std::int64_t> of_board;
  for (const auto& entry : view.value()->Certain()) {
    of_board[entry.role] = entry.value.As<BValueLong>()->Value;
  }
  std::size_t different = 0;
  for (const auto& [role, score] : of_records) {
    const auto at = of_board.find(role);
    if (at != of_board.end() && at->second == score) continue;
    if (++different > 10) continue;
    std::cout << fmt::format("role {} has {}, on the board {}\n", role, score,
                             at == of_board.end() ? -1 : at->second);
  }
  const bool equal = different == 0 && of_board.size() == of_records.size();
  std::cout << fmt::format("{}: {} records, {} on the board, {} different, {} updates were left\n",
                           equal ? "equal" : "different", of_records.size(), of_board.size(),
                           different, rank.GetStatistics().adopted)
            << std::flush;
  return equal ? 0 : 1;
}

int Serve(const Arguments& arguments) {
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  arch::RankRedirect redirects;
  BadRouter router(redirects);
  LongRank rank({.concurrent_level = kLevel, .router = &router, .repair_period = seconds(2)});
  // Everybody is on the board.
  rank.Define(kRankType, {.shown_count = static_cast<std::size_t>(arguments.roles)});
  Scores scores{kScores};
  const Result<std::unique_ptr<Application>> opened =
      Application::Open("rank", OptionsOf(arguments));
  if (Failed(opened)) return 1;
  Application& application = *opened.value();
  application.AddTable(scores);
  application.AddModule(rank);
  if (Failed(application.Start())) return 1;

  IoThreads io({});
  arch::Redirect redirect(
      application, io, *application.registry(),
      {.name_prefix = "Game.Server.Module#", .direct = {.ip = "127.0.0.1"}, .timeout = seconds(5)});
  redirects.Connect(redirect, rank);
  if (Failed(redirect.Start())) return 1;
  router.Open(application);
  std::cout << "ready\n" << std::flush;

  int code = 0;
  if (arguments.check) {
    code = Check(rank, scores);
  } else {
    std::atomic<std::int64_t> scored = 0;
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] { Play(arguments, application, scores, rank, scored, stop); });
    }
    std::thread end([&] {
      for (std::thread& thread : threads) thread.join();
      std::cout << fmt::format("scored {}\n", scored.load());
      if (!stop) std::cout << "finished\n";
      std::cout << std::flush;
    });
    int signal = 0;
    sigwait(&signals, &signal);
    stop = true;
    end.join();
    const RankOutbox::Statistics done = rank.GetStatistics();
    std::cout
        << fmt::format(
               "outbox: {} wait, {} here, {} delivered, {} adopted, {} out of date, {} failed\n",
               done.waiting, done.done_here, done.delivered, done.adopted, done.out_of_date,
               done.failed)
        << std::flush;
  }
  redirect.Stop();
  if (Failed(application.Stop())) return 1;
  if (code == 0) std::cout << "stopped\n" << std::flush;
  return code;
}

}  // namespace
}  // namespace zeze

int main(int argc, char** argv) {
  zeze::Arguments arguments;
  CLI::App app("A server whose players score");
  app.add_option("--id", arguments.server_id)->required();
  app.add_option("--servers", arguments.servers);
  app.add_option("--url", arguments.url)->required();
  app.add_option("--global", arguments.global_port)->required();
  app.add_option("--registry", arguments.registry_port)->required();
  app.add_option("--scores", arguments.scores);
  app.add_option("--rate", arguments.rate, "Scores a second");
  app.add_option("--roles", arguments.roles);
  app.add_flag("--check", arguments.check);
  CLI11_PARSE(app, argc, argv);
  return zeze::Serve(arguments);
}
