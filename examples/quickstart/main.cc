// The quickstart: a market of two thousand players in a server process that is killed again and
// again, and never loses what it promised.
//
//   quickstart            watch it
//   quickstart --check    play it without a person; exit code 0 if every promise was kept

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "child.h"
#include "market.h"
#include "server.h"
#include "view.h"
#include "zeze/base/clock.h"

namespace quickstart {

namespace {

constexpr std::string_view kUsage =
    R"(quickstart: trades between players, with crashes.

Usage: quickstart [--check] [--crashes N] [--seconds S] [--keep]

  --check      play without a person: short acts, plain output, exit code 1 if a promise was broken
  --crashes N  how often the server is killed (2; with --check 5)
  --seconds S  how long it trades before each crash (6; with --check 1)
  --keep       leave the database directory and say where it is

Examples:
  quickstart
  quickstart --check --crashes 20
)";

struct Options {
  bool check = false;
  bool keep = false;
  int crashes = 0;
  double seconds = 0;
};

class Director {
 public:
  Director(const Options& options, std::string program, std::string config, std::string directory)
      : options_(options),
        view_(options.check),
        command_{std::move(program), "--serve", std::move(config), std::move(directory)} {}

  // True if every promise was kept.
  bool Play() {
    view_.Tell(
        fmt::format("\nA market of {} players opens. Gold and goods only change hands:\n"
                    "there are {} pieces of gold and {} goods, at every moment.\n",
                    kRoleCount, kRoleCount * kGoldEach, kRoleCount * kGoodKinds * kGoodsEach));
    for (int crash = 1; crash <= options_.crashes && kept_; ++crash) {
      Child server(command_);
      Listen(server, options_.seconds);
      server.Kill();
      server.Wait();
      while (const auto line = server.ReadLine(0)) Hear(*line);  // Said before it died.
      view_.Tell(
          fmt::format("\nCrash {} of {}: the server was killed in the middle of its trades, "
                      "with {} receipts acknowledged.\n",
                      crash, options_.crashes, acknowledged_.size()));
    }
    if (!kept_) return false;
    view_.Tell("Once more, and this time it stops in order.\n");
    Child server(command_);
    Listen(server, options_.seconds / 2);
    server.AskToStop();
    while (const auto line = server.ReadLine(30'000)) Hear(*line);
    const int code = server.Wait();
    Promise(code == 0, fmt::format("the orderly stop ended with exit code {}", code));
    Promise(stopped_, "the server did not say goodbye");
    return kept_;
  }

 private:
  void Promise(bool kept, const std::string& else_say) {
    if (kept) return;
    kept_ = false;
    view_.Tell("BROKEN PROMISE: " + else_say);
  }

  void Listen(Child& server, double seconds) {
    view_.NewProcess();
    found_.clear();
    ready_ = false;
    const auto patience = zeze::SystemClock().Now() + std::chrono::seconds(60);
    while (!ready_ && !server.ended() && zeze::SystemClock().Now() < patience) {
      if (const auto line = server.ReadLine(1000)) Hear(*line);
    }
    Promise(ready_, "the server did not become ready");
    if (!kept_) return;
    const auto end =
        zeze::SystemClock().Now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::duration<double>(seconds));
    while (!server.ended() && zeze::SystemClock().Now() < end) {
      if (const auto line = server.ReadLine(100)) Hear(*line);
    }
    Promise(!server.ended(), "the server ended by itself");
  }

  void Hear(const std::string& line) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "ack") {
      std::int64_t receipt = 0;
      in >> receipt;
      acknowledged_.insert(receipt);
    } else if (word == "has") {
      std::int64_t receipt = 0;
      in >> receipt;
      found_.insert(receipt);
    } else if (word == "live") {
      LiveFigures figures;
      in >> figures.commits >> figures.conflicts >> figures.accesses >> figures.loads >>
          figures.unsaved >> figures.checkpoint_age_ms;
      view_.Show(figures, acknowledged_.size());
    } else if (word == "ready" || word == "stopped") {
      Totals totals;
      in >> totals.roles >> totals.gold >> totals.goods >> totals.receipts >>
          totals.receipts_counted;
      CheckTotals(totals);
      if (word == "ready") CheckReceipts();
      (word == "ready" ? ready_ : stopped_) = true;
    }
  }

  void CheckTotals(const Totals& totals) {
    Promise(totals.roles == kRoleCount, fmt::format("{} players", totals.roles));
    Promise(totals.gold == kRoleCount * kGoldEach, fmt::format("{} pieces of gold", totals.gold));
    Promise(totals.goods == kRoleCount * kGoodKinds * kGoodsEach,
            fmt::format("{} goods", totals.goods));
    Promise(totals.receipts_counted == 2 * totals.receipts,
            fmt::format("{} receipts, but players remember {}", totals.receipts,
                        totals.receipts_counted));
  }

  void CheckReceipts() {
    for (const std::int64_t receipt : acknowledged_) {
      Promise(found_.contains(receipt),
              fmt::format("receipt {} was acknowledged and is gone", receipt));
    }
    if (!kept_) return;
    view_.Tell(
        fmt::format("The server is up: gold and goods are exact, all {} acknowledged receipts "
                    "are there ({} on the disk).\n",
                    acknowledged_.size(), found_.size()));
  }

  const Options options_;
  View view_;
  const std::vector<std::string> command_;
  std::set<std::int64_t> acknowledged_;
  std::set<std::int64_t> found_;
  bool ready_ = false;
  bool stopped_ = false;
  bool kept_ = true;
};

int Usage(const std::string& problem) {
  fmt::print(stderr, "quickstart: {}\n\n{}", problem, kUsage);
  return 2;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[1] == "--serve") return Serve(arguments[2], arguments[3]);
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (arguments[i] == "--check") {
      options.check = true;
    } else if (arguments[i] == "--keep") {
      options.keep = true;
    } else if (arguments[i] == "--crashes" && has_value) {
      options.crashes = std::atoi(arguments[++i].c_str());
    } else if (arguments[i] == "--seconds" && has_value) {
      options.seconds = std::atof(arguments[++i].c_str());
    } else {
      return Usage("unknown or incomplete option '" + arguments[i] + "'");
    }
  }
  if (options.crashes < 0 || options.seconds < 0) return Usage("numbers must be positive");
  if (options.crashes == 0) options.crashes = options.check ? 5 : 2;
  if (options.seconds == 0) options.seconds = options.check ? 1 : 6;

  std::string directory = (std::filesystem::temp_directory_path() / "quickstart-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    fmt::print(stderr, "quickstart: cannot make a directory like {}\n", directory);
    return 1;
  }
  Director director(options, std::filesystem::canonical("/proc/self/exe").string(),
                    ZEZE_QUICKSTART_CONFIG, directory + "/db");
  const bool kept = director.Play();
  if (options.keep || !kept) {
    fmt::print("The database is in {}\n", directory);
  } else {
    std::filesystem::remove_all(directory);
  }
  fmt::print("{}\n", kept ? "Every promise was kept." : "A promise was broken.");
  return kept ? 0 : 1;
}

}  // namespace

}  // namespace quickstart

int main(int argc, char** argv) {
  return quickstart::Main(std::vector<std::string>(argv, argv + argc));
}
