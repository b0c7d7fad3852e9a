// Maps: where players walk and fight. A map runs on one server, in its memory; what players own is
// in the database, and so safe when the server dies.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "arena/Map.module.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

class Board;
class Buffs;
class Players;

inline constexpr int kMapCount = 8;
inline constexpr int kMapSize = 100;  // Places are 0 to kMapSize - 1.
inline constexpr std::int64_t kBooty = 3;

class Maps final : public arena::Map::ModuleMapBase {
 public:
  // All outlive the maps.
  Maps(Players& players, Board& board, Buffs& buffs)
      : players_(players), board_(board), buffs_(buffs) {}

  std::int64_t ProcessMove(zeze::Session& session, const arena::Map::BMove& move) override;
  std::int64_t ProcessAttack(zeze::Transaction& tx, zeze::Session& session,
                             const arena::Map::BAttack& attack,
                             arena::Map::BAttackResult& result) override;

  // Called by the server to which the player said where he wants to go. It returns when the gateway
  // sends his messages here, and says to which server that is.
  std::int64_t Take(std::int32_t map, std::int64_t role, const std::string& account,
                    const std::string& link_name, std::int64_t link_sid);
  std::int64_t Release(std::int32_t map, std::int64_t role, const std::string& link_name,
                       std::int64_t link_sid);
  using Redirects =
      zeze::arch::RedirectMethods<zeze::arch::RedirectMethod<&Maps::Take, "take">,
                                  zeze::arch::RedirectMethod<&Maps::Release, "release">>;

  // Before the first message.
  void Connect(zeze::arch::Links& links) { links_ = &links; }

  struct Visitor {
    std::int64_t role = 0;
    std::string account = {};
    zeze::arch::LinkAddress address = {};
  };
  void Enter(int map, const Visitor& visitor);
  // Only if he came through this connection: he may have come again through another one.
  void Leave(std::int64_t role, const zeze::arch::LinkAddress& address);

  // Shows everybody who is near.
  void SendViews();

  // Moves that came out of order, or twice. None, if the system keeps its word.
  std::int64_t disorder_count() const { return disorder_count_; }

 private:
  struct Place {
    Visitor visitor = {};
    int map = 0;
    int x = 0;
    int y = 0;
    std::int64_t last_sequence = 0;
  };

  std::vector<arena::Map::BSeen> NearLocked(const Place& place) const;

  Players& players_;
  Board& board_;
  Buffs& buffs_;
  zeze::arch::Links* links_ = nullptr;

  std::mutex mutex_;
  std::map<std::int64_t, Place> places_;            // By role. Guarded by mutex_.
  std::mt19937_64 random_{std::random_device{}()};  // Guarded by mutex_.

  std::atomic<std::int64_t> disorder_count_ = 0;
};

}  // namespace arena_example
