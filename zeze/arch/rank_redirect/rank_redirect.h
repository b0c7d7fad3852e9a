// RankRedirect: updates of leaderboards go to the server that owns the group.
//
//   arch::RankRedirect router;                        // Outlives the rank.
//   LongRank rank({.router = &router});
//   application.AddModule(rank);
//   ...
//   arch::Redirect redirect(application, io, agent, options);
//   router.Connect(redirect, rank);                   // Before redirect.Start().

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "zeze/app/application.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/components/rank/rank.h"
#include "zeze/components/rank/rank_router.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// Thread-safe after Connect. Until then, and while nobody is known to own a group, updates run in
// the process that asks for them: right, because records are coherent, only slower.
class RankRedirect final : public RankRouter {
 public:
  // As Zeze 1.6 calls it: servers of both kinds send each other updates.
  static constexpr std::string_view kUpdate = "Zeze.Game.Rank:updateRank";
  // Ours. Zeze 1.6 does not have it; a group that it owns is updated by the server that asks.
  static constexpr std::string_view kDeliver = "Zeze.Game.Rank:deliver";

  // Both outlive this.
  template <typename... Beans>
  void Connect(Redirect& redirect, Rank<Beans...>& rank) {
    Connect(
        redirect, rank.id(),
        [&rank](Transaction& tx, std::int32_t hash, std::string_view parameters, std::string&) {
          return rank.UpdateEncoded(tx, static_cast<std::uint32_t>(hash), parameters);
        },
        [&rank](Transaction& tx, std::int32_t, std::string_view parameters, std::string& result) {
          return rank.Deliver(tx, parameters, result);
        });
  }

  bool OwnsGroup(std::uint32_t group, std::uint32_t level) override;
  void Send(std::uint32_t group, std::uint32_t level, std::string parameters,
            Completion done) override;
  void Deliver(std::uint32_t group, std::uint32_t level, std::string updates,
               const Delivered& done) override;

 private:
  using Run = decltype(EncodedRedirectMethod::run);

  void Connect(Redirect& redirect, std::int32_t module_id, Run update, Run deliver);

  std::int32_t module_id_ = 0;
  std::atomic<Redirect*> redirect_ = nullptr;  // Publishes module_id_.
};

}  // namespace zeze::arch
