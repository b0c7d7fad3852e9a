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
#include "promises.h"
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

void Expect(Promises& promises, const char* what, std::int64_t found, std::int64_t expected) {
  promises.Data(found == expected, found == expected ? fmt::format("{}: {}", what, found)
                                                     : fmt::format("{}: {}, but it should be {}",
                                                                   what, found, expected));
}

template <typename T>
void Expect(Promises& promises, const char* what, const zeze::Result<T>& checked,
            const std::string& good) {
  promises.Data(checked.ok(),
                fmt::format("{}: {}", what, checked.ok() ? good : checked.error().message()));
}

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

zeze::Result<bool> Compare(Game& game, const Acknowledged& acknowledged) {
  const auto totals = game.players.Count();
  if (!totals.ok()) return totals.error();
  const auto buffs = game.buffs.Count();
  if (!buffs.ok()) return buffs.error();
  const auto board = game.board.Check();
  const auto mails = game.mails.Check();
  const auto days = game.daily.Check();
  const auto recharges = game.recharges.Check(acknowledged.orders);
  const Kept trades = CountReceipts(game.players, acknowledged.receipts);

  Promises promises;
  const Totals& all = totals.value();
  const BuffTotals& drunk = buffs.value();
  const MailTotals mail = mails.ok() ? mails.value() : MailTotals();
  const DailyTotals day = days.ok() ? days.value() : DailyTotals();
  const RechargeTotals paid = recharges.ok() ? recharges.value() : RechargeTotals();
  Expect(promises, "players", all.players,
         acknowledged.players < 0 ? all.players : acknowledged.players);
  Expect(promises, "recharges", recharges,
         fmt::format("{} orders of {} gold, each credited once", paid.orders, paid.gold));
  Expect(promises, "gold of players and in mails", all.gold + mail.gold_waiting,
         all.players * kGoldAtStart + paid.gold + day.gold);
  Expect(promises, "goods and potions that were drunk", all.goods + drunk.begun,
         all.players * kGoodKinds * kGoodsAtStart);
  Expect(promises, "trades noted at players", all.trades, 2 * all.receipts);
  Expect(promises, "trades acknowledged and kept", trades.kept, trades.promised);
  Expect(promises, "buffs that ended, or still have their timer", drunk.ended + drunk.active,
         drunk.begun);
  Expect(promises, "buffs that ended twice, or never will", drunk.strays + drunk.forgotten, 0);
  Expect(promises, "days", days,
         fmt::format(
             "{}, each begun once for all, with {} gold{}", day.days, day.gold,
             day.waiting == 0 ? "" : fmt::format("; the last is on its way to {}", day.waiting)));
  Expect(promises, "mails", mails,
         fmt::format("{} present, {} deleted ({} of them kept), {} claims", mail.present,
                     mail.deleted, mail.kept, mail.claims));
  Expect(promises, "mails sent by trades and days", mail.sent, all.receipts + day.begun);
  Expect(promises, "gold sent by trades and days", mail.gold_sent, all.gold_traded + day.gold);
  Expect(promises, "leaderboard", board, "as the players' records say");
  return promises.all_kept();
}

}  // namespace

int Verify(const std::string& config_file, const Acknowledged& acknowledged) {
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
  const auto right = Compare(game, acknowledged);
  if (auto stopped = application.value()->Stop(); !stopped.ok()) return Fail(stopped.error());
  if (!right.ok()) return Fail(right.error());
  return right.value() ? 0 : 1;
}

}  // namespace arena_example
