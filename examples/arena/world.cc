#include "world.h"

#include <cstdint>

#include "arena/Player.h"
#include "arena/World.h"
#include "maps.h"
#include "players.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::World::BEnterMap;
using arena::World::BEnterMapResult;

std::int64_t World::ProcessEnterMap(zeze::Session& session, const BEnterMap& argument,
                                    BEnterMapResult& result) {
  if (argument.map < 1 || argument.map > kMapCount) return ErrorCode(arena::World::NoSuchMap);
  const auto& client = zeze::arch::ProviderSession::Of(session);
  const std::int64_t role = RoleOf(session.account());
  const auto taken =
      redirect_
          ->ToHash<&Maps::Take>(argument.map, role, session.account(), client.address().link_name,
                                client.address().link_sid)
          .Wait();
  if (!taken.ok()) return ErrorCode(arena::World::NoMapServer);
  result.server = taken.server_id;
  return application_->Call("note map", [&](zeze::Transaction& tx) {
    auto player = players_.tPlayer.Edit(tx, role);
    if (!player) return players_.ErrorCode(arena::Player::NoSuchPlayer);
    player->map = argument.map;
    return zeze::result_code::kSuccess;
  });
}

std::int64_t World::ProcessLeaveMap(zeze::Session& session) {
  const auto& client = zeze::arch::ProviderSession::Of(session);
  const std::int64_t role = RoleOf(session.account());
  std::int32_t map = 0;
  const std::int64_t code = application_->Call("leave map", [&](zeze::Transaction& tx) {
    auto player = players_.tPlayer.Edit(tx, role);
    if (!player) return players_.ErrorCode(arena::Player::NoSuchPlayer);
    map = player->map;
    player->map = 0;
    return zeze::result_code::kSuccess;
  });
  if (code != zeze::result_code::kSuccess || map == 0) return code;
  const auto released =
      redirect_
          ->ToHash<&Maps::Release>(map, role, client.address().link_name, client.address().link_sid)
          .Wait();
  return released.ok() ? zeze::result_code::kSuccess : ErrorCode(arena::World::NoMapServer);
}

}  // namespace arena_example
