#include "maps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arena/Map.h"
#include "board.h"
#include "buffs.h"
#include "players.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Map::BAttack;
using arena::Map::BAttackResult;
using arena::Map::BMove;
using arena::Map::BSeen;
using arena::Map::BStruck;
using arena::Map::BView;

namespace {

constexpr int kSight = 20;
constexpr std::size_t kSeenMax = 50;

}  // namespace

void Maps::Enter(int map, const Visitor& visitor) {
  const std::lock_guard lock(mutex_);
  Place& place = places_[visitor.role];
  place = Place{.visitor = visitor,
                .map = map,
                .x = static_cast<int>(random_() % kMapSize),
                .y = static_cast<int>(random_() % kMapSize)};
}

void Maps::Leave(std::int64_t role, const zeze::arch::LinkAddress& address) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(role);
  if (found != places_.end() && found->second.visitor.address == address) places_.erase(found);
}

std::int64_t Maps::Take(std::int32_t map, std::int64_t role, const std::string& account,
                        const std::string& link_name, std::int64_t link_sid) {
  const zeze::arch::LinkAddress address{.link_name = link_name, .link_sid = link_sid};
  Enter(map, {.role = role, .account = account, .address = address});
  const std::int32_t module = kModuleId;
  std::promise<bool> bound;
  const auto asked = links_->Bind(address, std::span(&module, 1),
                                  [&bound](const auto& result) { bound.set_value(result.ok()); });
  if (asked.ok() && bound.get_future().get()) return zeze::result_code::kSuccess;
  Leave(role, address);
  return ErrorCode(arena::Map::NotHere);
}

std::int64_t Maps::Release(std::int32_t, std::int64_t role, const std::string& link_name,
                           std::int64_t link_sid) {
  const zeze::arch::LinkAddress address{.link_name = link_name, .link_sid = link_sid};
  Leave(role, address);
  const std::int32_t module = kModuleId;
  // If the gateway is gone, so is the binding.
  std::ignore = links_->Unbind(address, std::span(&module, 1), [](const auto&) {});
  return zeze::result_code::kSuccess;
}

std::int64_t Maps::ProcessMove(zeze::Session& session, const BMove& move) {
  const auto& client = zeze::arch::ProviderSession::Of(session);
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(RoleOf(session.account()));
  if (found == places_.end()) return ErrorCode(arena::Map::NotHere);
  Place& place = found->second;
  if (!(place.visitor.address == client.address())) return ErrorCode(arena::Map::NotHere);
  if (move.sequence <= place.last_sequence) {
    ++disorder_count_;
    return ErrorCode(arena::Map::OutOfOrder);
  }
  place.last_sequence = move.sequence;
  place.x = std::clamp(move.x, 0, kMapSize - 1);
  place.y = std::clamp(move.y, 0, kMapSize - 1);
  return zeze::result_code::kSuccess;
}

std::int64_t Maps::ProcessAttack(zeze::Transaction& tx, zeze::Session& session,
                                 const BAttack& attack, BAttackResult& result) {
  const std::int64_t role = RoleOf(session.account());
  std::int64_t target = attack.target;
  zeze::arch::LinkAddress target_address;
  int luck = 0;  // Per cent.
  {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(role);
    if (place == places_.end()) return ErrorCode(arena::Map::NotHere);
    if (target == 0) {
      const std::vector<BSeen> near = NearLocked(place->second);
      if (!near.empty()) target = near[random_() % near.size()].role;
    }
    luck = static_cast<int>(random_() % 100);
    if (const auto found = places_.find(target); found != places_.end()) {
      target_address = found->second.visitor.address;
    }
  }
  if (target == 0 || target == role) return ErrorCode(arena::Map::NobodyNear);

  const std::int64_t code = players_.Once(tx, role, attack.request, [&] {
    auto attacker = players_.tPlayer.Edit(tx, role);
    auto defender = players_.tPlayer.Edit(tx, target);
    if (!defender) return ErrorCode(arena::Map::NobodyNear);
    const bool won = luck < 50 + buffs_.PowerOf(tx, role) - buffs_.PowerOf(tx, target);
    auto& winner = won ? attacker : defender;
    auto& loser = won ? defender : attacker;
    const std::int64_t booty = std::min(kBooty, loser->gold);
    loser->gold -= booty;
    winner->gold += booty;
    winner->score += 1;
    ++winner->wonToday;
    loser->score = std::max<std::int64_t>(0, loser->score - 1);
    ++attacker->fights;
    ++defender->fights;
    attacker->lastTarget = target;
    attacker->lastWon = won;
    // In this transaction: the board is never behind the players.
    for (const auto& [who, player] : {std::pair(role, attacker), std::pair(target, defender)}) {
      const std::int64_t written = board_.Update(tx, who, player->score);
      if (written != zeze::result_code::kSuccess) return written;
    }
    if (!target_address.link_name.empty()) {
      const BStruck struck{
          .by = role, .lost = won, .gold = defender->gold, .score = defender->score};
      tx.AfterCommit(zeze::Task(
          "tell the defender", [links = links_, target_address,
                                frame = zeze::EncodeOneWayFrame<arena::Map::SStruck>(struck)] {
            std::ignore = links->Send(target_address, frame);  // He may be gone.
          }));
    }
    return zeze::result_code::kSuccess;
  });
  if (code != zeze::result_code::kSuccess) return code;
  // Also when it was carried out before.
  const auto* attacker = players_.tPlayer.Get(tx, role);
  result = BAttackResult{.target = attacker->lastTarget,
                         .won = attacker->lastWon,
                         .gold = attacker->gold,
                         .score = attacker->score};
  return zeze::result_code::kSuccess;
}

std::vector<BSeen> Maps::NearLocked(const Place& place) const {
  std::vector<BSeen> near;
  for (const auto& [role, other] : places_) {
    if (role == place.visitor.role || other.map != place.map) continue;
    if (std::abs(other.x - place.x) > kSight || std::abs(other.y - place.y) > kSight) continue;
    near.push_back({.role = role, .account = other.visitor.account, .x = other.x, .y = other.y});
    if (near.size() == kSeenMax) break;
  }
  return near;
}

void Maps::SendViews() {
  std::vector<std::pair<zeze::arch::LinkAddress, BView>> views;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [role, place] : places_) {
      BView view{.map = place.map};
      view.players.PushBack(
          {.role = role, .account = place.visitor.account, .x = place.x, .y = place.y});
      for (const BSeen& seen : NearLocked(place)) view.players.PushBack(seen);
      views.emplace_back(place.visitor.address, std::move(view));
    }
  }
  for (const auto& [address, view] : views) {
    std::ignore = links_->Send(address, zeze::EncodeOneWayFrame<arena::Map::SView>(view));
  }
}

}  // namespace arena_example
