// Leaderboards beside the sorted sets of redis, which is another process, in turns.

#include "zeze/components/rank/rank.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/bench.h"
#include "bench/contest.h"
#include "bench/conversations.h"
#include "bench/fixtures.h"
#include "bench/load_client.h"
#include "bench/measure.h"
#include "bench/serve.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/transaction/engine.h"

namespace zeze::bench {
namespace {

constexpr std::int64_t kRoles = 1'000'000;
constexpr std::int64_t kScores = 1'000'000'000;
constexpr int kServerCore = 0;
constexpr int kClientCore = 1;
constexpr std::size_t kConnections = 8;
const RankBoard kBoard = RankBoard::Total(1);

class OurBoard {
 public:
  // Each group lists the best of its roles up to that number.
  OurBoard(std::uint32_t groups, std::size_t computed)
      : rank_({.concurrent_level = groups}),
        storage_(OpenMemoryStorage()),
        engine_({.storage = storage_.get(), .checkpoint_period = std::chrono::nanoseconds(0)}) {
    rank_.Define(kBoard.rank_type, {.shown_count = computed / 2, .computed_factor = 2});
    CheckDone(engine_.AddTable(rank_.table(), {.cache_capacity = 0}));
    CheckDone(engine_.Start());
    rank_.Attach(engine_);
    FastRandom random(7);
    for (std::int64_t role = 0; role < kRoles; ++role) Update(role, random.Below(kScores));
  }

  void Update(std::int64_t role, std::int64_t score) {
    CheckCode(engine_.Call("update", [&](Transaction& tx) -> std::int64_t {
      const Result<RankChange> updated = rank_.Update(tx, kBoard, role, RankLong(score));
      if (!updated.ok()) return 1;
      return result_code::kSuccess;
    }));
  }

  Work Updates() {
    return [this](int thread, const std::atomic<bool>& stop) {
      FastRandom random(static_cast<std::uint64_t>(thread) + ++seed_ * 16);
      std::uint64_t count = 0;
      for (; !stop.load(std::memory_order_relaxed); ++count) {
        Update(random.Below(kRoles), random.Below(kScores));
      }
      return count;
    };
  }

  LongRank& rank() { return rank_; }
  // Entries of all groups.
  std::size_t listed() { return rank_.Read(kBoard).value()->Certain().size(); }

 private:
  LongRank rank_;
  std::unique_ptr<Storage> storage_;
  Engine engine_;
  std::atomic<std::uint64_t> seed_ = 1;
};

void AppendBulk(std::string& out, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", text.size(), text);
}

void SayZadd(std::string& out, std::int64_t role, std::int64_t score) {
  out += "*4\r\n$4\r\nZADD\r\n$5\r\nboard\r\n";
  AppendBulk(out, std::to_string(score));
  AppendBulk(out, std::to_string(role));
}

// A sorted set with a score for each role.
class RedisBoard {
 public:
  RedisBoard() : server_(StartRedis()) {
    std::int64_t role = 0;
    FastRandom random(7);
    RedisCommands fill(64, [&](std::string& out) {
      SayZadd(out, role, random.Below(kScores));
      role = role + 1 == kRoles ? 0 : role + 1;
    });
    LoadClient client(server_->port(), 1, fill);
    client.RunUntil(kRoles);
    PinProcess(server_->id(), kServerCore);
  }

  static RedisCommands::Say Zadd() {
    return [random = FastRandom(3)](std::string& out) mutable {
      SayZadd(out, random.Below(kRoles), random.Below(kScores));
    };
  }
  static RedisCommands::Say Zrevrange() {
    return [](std::string& out) {
      out += "*4\r\n$9\r\nZREVRANGE\r\n$5\r\nboard\r\n$1\r\n0\r\n$2\r\n99\r\n";
    };
  }

  std::uint16_t port() const { return server_->port(); }
  int process() const { return server_->id(); }

 private:
  std::unique_ptr<PeerServer> server_;
};

// How many requests under way at a time redis likes best; the best of three tries of each, because
// a disturbed one would choose for it badly.
std::size_t BestDepth(const RedisBoard& redis, const RedisCommands::Say& say) {
  std::size_t best = 0;
  double best_rate = 0;
  for (int tries = 0; tries < 3; ++tries) {
    for (const std::size_t depth : {4U, 16U, 64U, 256U}) {
      RedisCommands commands(depth, say);
      LoadClient client(redis.port(), kConnections, commands);
      client.Run(0.05);
      const double rate = client.Run(0.15).per_second();
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = depth;
    }
  }
  return best;
}

// For each turn.
struct Rates {
  std::vector<double> redis = {};
  std::vector<double> one = {};  // Of ours, by threads.
  std::vector<double> two = {};
  std::vector<double> redis_cpu_ns = {};  // Of the server.
  std::vector<double> one_cpu_ns = {};
  std::size_t depth = 0;
};

Rates RunInTurns(const RedisBoard& redis, const RedisCommands::Say& say, const Work& ours,
                 double seconds) {
  constexpr std::chrono::milliseconds kTurn(150);
  Rates rates;
  PinProcess(0, kClientCore);
  rates.depth = BestDepth(redis, say);
  RedisCommands commands(rates.depth, say);
  LoadClient client(redis.port(), kConnections, commands);
  client.Run(0.1);
  const double end = WallSeconds() + seconds;
  while (WallSeconds() < end || rates.redis.size() < 5) {
    PinProcess(0, kClientCore);
    const double cpu = ProcessCpuSeconds(redis.process());
    const Load load = client.Run(0.15);
    rates.redis.push_back(load.per_second());
    rates.redis_cpu_ns.push_back((ProcessCpuSeconds(redis.process()) - cpu) * 1e9 /
                                 static_cast<double>(load.done));
    UnpinProcess(0);
    const Turn one = RunTurn({1, ours}, kTurn);
    rates.one.push_back(one.per_second);
    rates.one_cpu_ns.push_back(one.cpu_ns);
    rates.two.push_back(RunTurn({2, ours}, kTurn).per_second);
  }
  return rates;
}

// Two threads of ours, because redis has two cores as well: one for the server, one for its client.
void ReportRates(Run& run, const std::string& name, const Rates& rates, const std::string& peer,
                 double goal, const std::string& note) {
  Figure figure{.name = name,
                .value = Median(rates.two),
                .unit = "/s",
                .peer = peer,
                .peer_value = Median(rates.redis),
                .ratio = MedianRatio(rates.two, rates.redis),
                .goal = Goal::RatioAtLeast(goal),
                .note = fmt::format("2 threads; {}; redis at its best with {} connections x {}",
                                    note, kConnections, rates.depth)};
  run.Report(figure);
  figure.name += "_1";
  figure.value = Median(rates.one);
  figure.ratio = MedianRatio(rates.one, rates.redis);
  figure.goal = {};
  figure.note =
      fmt::format("1 thread; CPU {:.0f} ns beside {:.0f} ns of the redis server, {:.1f} times",
                  Median(rates.one_cpu_ns), Median(rates.redis_cpu_ns),
                  MedianRatio(rates.redis_cpu_ns, rates.one_cpu_ns));
  run.Report(figure);
}

void UpdateRoles(Run& run, const std::string& name, OurBoard& ours, double goal) {
  const RedisBoard redis;
  const Rates rates =
      RunInTurns(redis, RedisBoard::Zadd(), ours.Updates(), 3 * run.settings().seconds);
  ReportRates(run, name, rates, "redis ZADD", goal,
              fmt::format("{} of {} roles listed", ours.listed(), kRoles));
}

void Update(Run& run) {
  OurBoard ours(128, 1000);
  UpdateRoles(run, "rank.update", ours, 8);
}

void UpdateAll(Run& run) {
  OurBoard ours(1024, 1200);
  UpdateRoles(run, "rank.update_all", ours, 5);
}

void Top100(Run& run) {
  OurBoard ours(128, 1000);
  const RedisBoard redis;
  const Work read = [&](int, const std::atomic<bool>& stop) {
    std::uint64_t count = 0;
    for (; !stop.load(std::memory_order_relaxed); ++count) {
      const auto view = ours.rank().Top(kBoard);
      std::int64_t sum = 0;
      for (const auto& entry : view.value()->Shown().first(100)) sum += entry.role;
      KeepValue(sum);
    }
    return count;
  };
  const Rates rates = RunInTurns(redis, RedisBoard::Zrevrange(), read, 3 * run.settings().seconds);
  ReportRates(run, "rank.top_100", rates, "redis ZREVRANGE 0 99", 50, "every role read");
}

constexpr Benchmark kBenchmarks[] = {
    {"rank.update", "scores of 1,000,000 roles; 128 groups list the best 1,000 of theirs each",
     &Update},
    {"rank.update_all", "the same with 1,024 groups: all roles are listed", &UpdateAll},
    {"rank.top_100", "the first 100 of the merged board, cached", &Top100},
};

}  // namespace

std::span<const Benchmark> RankBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
