#include "verify.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "buffs.h"
#include "daily.h"
#include "game.h"
#include "mail.h"
#include "players.h"
#include "recharge.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"

namespace arena_example {

namespace {

int Fail(const zeze::Error& error) {
  fmt::print(stderr, "arena: {}\n", error.message());
  return 1;
}

// Prints what is found, and remembers whether all of it was right.
class Findings {
 public:
  bool right() const { return right_; }

  void Expect(const char* what, std::int64_t found, std::int64_t expected) {
    fmt::print("{}: {}{}\n", what, found,
               found == expected ? "" : fmt::format(", but it should be {}", expected));
    right_ = right_ && found == expected;
  }
  template <typename T>
  void Expect(const char* what, const zeze::Result<T>& checked, const std::string& good) {
    fmt::print("{}: {}\n", what, checked.ok() ? good : checked.error().message());
    right_ = right_ && checked.ok();
  }

 private:
  bool right_ = true;
};

struct Kept {
  std::int64_t promised = 0;
  std::int64_t kept = 0;
};

Kept CountReceipts(Players& players, const std::string& file) {
  Kept trades;
  std::ifstream receipts(file);
  for (std::int64_t role = 0, number = 0; receipts >> role >> number;) {
    ++trades.promised;
    const auto receipt = players.tReceipt.ReadCopy({.role = role, .number = number});
    if (receipt.ok() && receipt.value()) ++trades.kept;
  }
  return trades;
}

zeze::Result<bool> Compare(Game& game, const Promises& promises) {
  const auto totals = game.players.Count();
  if (!totals.ok()) return totals.error();
  const auto buffs = game.buffs.Count();
  if (!buffs.ok()) return buffs.error();
  const auto board = game.board.Check();
  const auto mails = game.mails.Check();
  const auto days = game.daily.Check();
  const auto recharges = game.recharges.Check(promises.orders);
  const Kept trades = CountReceipts(game.players, promises.receipts);

  Findings findings;
  const Totals& all = totals.value();
  const BuffTotals& drunk = buffs.value();
  const MailTotals mail = mails.ok() ? mails.value() : MailTotals();
  const DailyTotals day = days.ok() ? days.value() : DailyTotals();
  const RechargeTotals paid = recharges.ok() ? recharges.value() : RechargeTotals();
  findings.Expect("players", all.players, promises.players < 0 ? all.players : promises.players);
  findings.Expect("recharges", recharges,
                  fmt::format("{} orders of {} gold, each credited once", paid.orders, paid.gold));
  findings.Expect("gold of players and in mails", all.gold + mail.gold_waiting,
                  all.players * kGoldAtStart + paid.gold + day.gold);
  findings.Expect("goods and potions that were drunk", all.goods + drunk.begun,
                  all.players * kGoodKinds * kGoodsAtStart);
  findings.Expect("trades noted at players", all.trades, 2 * all.receipts);
  findings.Expect("trades acknowledged and kept", trades.kept, trades.promised);
  findings.Expect("buffs that ended, or still have their timer", drunk.ended + drunk.active,
                  drunk.begun);
  findings.Expect("buffs that ended twice, or never will", drunk.strays + drunk.forgotten, 0);
  findings.Expect(
      "days", days,
      fmt::format(
          "{}, each begun once for all, with {} gold{}", day.days, day.gold,
          day.waiting == 0 ? "" : fmt::format("; the last is on its way to {}", day.waiting)));
  findings.Expect("mails", mails,
                  fmt::format("{} present, {} deleted ({} of them kept), {} claims", mail.present,
                              mail.deleted, mail.kept, mail.claims));
  findings.Expect("mails sent by trades and days", mail.sent, all.receipts + day.begun);
  findings.Expect("gold sent by trades and days", mail.gold_sent, all.gold_traded + day.gold);
  findings.Expect("leaderboard", board, "as the players' records say");
  return findings.right();
}

}  // namespace

int Verify(const std::string& config_file, const Promises& promises) {
  auto config = zeze::Config::Load(config_file);
  if (!config.ok()) return Fail(config.error());
  auto game_options = GameOptions::FromConfig(config.value());
  if (!game_options.ok()) return Fail(game_options.error());
  auto options = zeze::OptionsFromConfig(config.value());
  if (!options.ok()) return Fail(options.error());
  Game game(game_options.value());
  auto application = zeze::Application::Open("arena", options.value());
  if (!application.ok()) return Fail(application.error());
  game.AddTablesTo(*application.value());
  if (auto started = application.value()->Start(); !started.ok()) return Fail(started.error());
  const auto right = Compare(game, promises);
  if (auto stopped = application.value()->Stop(); !stopped.ok()) return Fail(stopped.error());
  if (!right.ok()) return Fail(right.error());
  return right.value() ? 0 : 1;
}

}  // namespace arena_example
