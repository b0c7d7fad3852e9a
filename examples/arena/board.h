// Board: the leaderboard of fights. It changes in the transactions of the fights themselves, and
// scores fall as well as rise.

#pragma once

#include <cstdint>
#include <vector>

#include "arena/Board.module.h"
#include "zeze/app/session.h"
#include "zeze/base/result.h"
#include "zeze/components/rank/rank.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Players;

class Board final : public arena::Board::ModuleBoardBase {
 public:
  explicit Board(Players& players);

  // The module that keeps the boards: the application has to know it too.
  zeze::LongRank& rank() { return rank_; }

  // Fails the transaction if the board cannot be written.
  std::int64_t Update(zeze::Transaction& tx, std::int64_t role, std::int64_t score);

  std::int64_t ProcessTop(zeze::Session& session, const arena::Board::BTop& argument,
                          arena::Board::BTopResult& result) override;

  // Whether the board says what the players' records say; an error tells where it does not.
  zeze::Result<void> Check();

 private:
  Players& players_;
  zeze::LongRank rank_;
};

}  // namespace arena_example
