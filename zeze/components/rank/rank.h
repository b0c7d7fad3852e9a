// Rank: leaderboards that stay right when scores fall, cut into hash groups so that they scale.
//
//   zeze::LongRank rank;                                   // Ranked by a number; larger is better.
//   application.AddModule(rank);
//   ...
//   const auto board = zeze::RankBoard::Week(kPower, today);
//   rank.UpdateAfterCommit(tx, board, role, zeze::RankLong(power));   // In a procedure.
//   rank.Update(tx, board, role, zeze::RankLong(power));              // Or as a part of it.
//   auto view = rank.Top(board);                                      // Cached, for five minutes.
//   for (const auto& entry : view.value()->Shown()) Show(entry.role, entry.value);
//
// Other values, other orders:
//
//   zeze::Rank<BValueLong, BArenaScore> rank;
//   rank.Define(kArena, {.shown_count = 50, .better = [](const auto& a, const auto& b) {
//     return a.template As<BArenaScore>()->wins > b.template As<BArenaScore>()->wins;
//   }});

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "Zeze/Builtin/Game/Rank.h"
#include "Zeze/Builtin/Game/Rank.module.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/components/rank/rank_board.h"
#include "zeze/components/rank/rank_group.h"
#include "zeze/components/rank/rank_router.h"
#include "zeze/components/rank/rank_view.h"
#include "zeze/components/rank/view_cache.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

inline BValueLong RankLong(std::int64_t value) {
  return {.Value = value};
}

struct RankOptions {
  // Into how many groups each board is cut: how many processes and cores can write it at a time.
  // Fixed for the life of a board; a board that was made with another level is refused.
  std::uint32_t concurrent_level = 128;
  // Roles of each group that are sampled for estimated positions; 0: none are.
  std::size_t sample_count = 64;
  ViewCacheOptions views = {};
  // Null: updates run in this process. Must outlive the rank.
  RankRouter* router = nullptr;
};

// What is ranked under one rank type.
template <typename Value>
struct RankDefinition {
  // How many are shown.
  std::size_t shown_count = 100;
  // How many more a group computes, so that scores may fall: at least 2.
  double computed_factor = 2.5;
  // Strictly better. Null: the larger BValueLong.
  typename RankOrder<Value>::Function better = nullptr;
};

// Results of procedures that update a board elsewhere.
inline constexpr std::int32_t kRankWrongLevel = 1;
inline constexpr std::int32_t kRankBadParameters = 2;

// Guarantees: see RankGroup and RankView. What is shown is the true beginning of the board, or less
// of it, whatever rises and falls.
//
// A role belongs to the group of its hash: all updates of a role must give the same. By default it
// is that of its id.
//
// Thread-safe after Start.
template <typename... Beans>
class Rank final : public Module {
 public:
  using Group = RankGroup<Beans...>;
  using Value = typename Group::Value;
  using Entry = typename Group::Entry;
  using View = RankView<Beans...>;
  using ViewPointer = std::shared_ptr<const View>;
  using Definition = RankDefinition<Value>;

  explicit Rank(RankOptions options = {});

  // Before Start. Types that are not defined have the defaults.
  void Define(std::int32_t rank_type, Definition definition);

  // --- writing ---

  // In the caller's transaction, in this process: for the few cases in which the board must change
  // together with something else. Errors: kIncompatible, the board has another level; nothing is
  // changed then.
  Result<RankChange> Update(Transaction& tx, const RankBoard& board, std::int64_t role,
                            const Value& value) {
    return Update(tx, board, role, value, RoutingHash(role));
  }
  Result<RankChange> Update(Transaction& tx, const RankBoard& board, std::int64_t role,
                            const Value& value, std::uint32_t hash);

  // In a transaction of its own, at the owner of the group, one by one for each group. `done` is
  // called once with the result code, on some thread; an update that fails is logged.
  void UpdateAsync(const RankBoard& board, std::int64_t role, const Value& value,
                   Completion done = nullptr) {
    UpdateAsync(board, role, value, RoutingHash(role), std::move(done));
  }
  void UpdateAsync(const RankBoard& board, std::int64_t role, const Value& value,
                   std::uint32_t hash, Completion done);

  // The same once the caller's transaction has committed; not at all if it rolls back.
  void UpdateAfterCommit(Transaction& tx, const RankBoard& board, std::int64_t role,
                         const Value& value) {
    UpdateAfterCommit(tx, board, role, value, RoutingHash(role));
  }
  void UpdateAfterCommit(Transaction& tx, const RankBoard& board, std::int64_t role,
                         const Value& value, std::uint32_t hash);

  // The role is gone for good: banned, deleted. False: the board knew nothing of it.
  Result<bool> Remove(Transaction& tx, const RankBoard& board, std::int64_t role) {
    return Remove(tx, board, role, RoutingHash(role));
  }
  Result<bool> Remove(Transaction& tx, const RankBoard& board, std::int64_t role,
                      std::uint32_t hash);

  // --- reading: outside transactions ---

  // The board as it was at most the lifetime of a view ago (ViewCacheOptions). Errors: a record
  // cannot be had; the board has another level.
  Result<ViewPointer> Top(const RankBoard& board) {
    return views_.Get(board, [&] { return Read(board); });
  }

  // The board as it is now. Each group is of one moment, all of them together need not be.
  Result<ViewPointer> Read(const RankBoard& board);

  // --- maintenance: outside transactions, group by group; after an error call it again ---

  // Everything of a board, whatever its level. Views of other processes live on for a while.
  Result<void> Delete(const RankBoard& board);

  // Adds a board to another and deletes it. Of a role on both the better value counts. Both must
  // have the order of `to`.
  Result<void> Merge(const RankBoard& from, const RankBoard& to);

  // --- for routers ---

  // Runs what EncodeUpdate made, for the group of the hash. The bytes are those of Zeze 1.6, in
  // which the group of the key is only a hint.
  std::int64_t UpdateEncoded(Transaction& tx, std::uint32_t hash, std::string_view parameters);
  static std::string EncodeUpdate(const RankKey& key, std::int64_t role, const Value& value);

  std::uint32_t GroupOf(std::uint32_t hash) const { return hash % options_.concurrent_level; }

  // --- Module ---

  std::int32_t id() const override { return Generated::kModuleId; }
  std::string_view name() const override { return Generated::kFullName; }
  Result<void> Start(Application& application) override;
  void Stop(Application& /*application*/) override { application_ = nullptr; }
  std::vector<TableBase*> Tables() override { return {&table_}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

  // Without an application: the table is added to the engine by the caller; no UpdateAsync.
  void Attach(Engine& engine) { engine_ = &engine; }
  Table<RankKey, Group>& table() { return table_; }

 private:
  using Generated = Zeze::Builtin::Game::Rank::ModuleRankBase;

  struct Settings {
    std::size_t shown_count;
    std::size_t computed_count;
    RankOrder<Value> better;
    bool ordered;  // There is an order.
  };

  static Settings Checked(Definition definition);
  // Throws UsageError if this rank type has no order: it was not defined.
  const Settings& DefinedSettings(std::int32_t rank_type) const {
    const Settings& settings = SettingsOf(rank_type);
    ZEZE_REQUIRE(settings.ordered, "rank type " + std::to_string(rank_type) +
                                       " is not defined: call Define before the start");
    return settings;
  }
  const Settings& SettingsOf(std::int32_t rank_type) const {
    if (settings_.empty()) return defaults_;
    const auto found = settings_.find(rank_type);
    return found == settings_.end() ? defaults_ : found->second;
  }
  RankRule<Value> RuleOf(const Settings& settings) const {
    return {.better = settings.better,
            .computed_count = settings.computed_count,
            .sample_count = options_.sample_count};
  }

  Result<RankChange> UpdateGroup(Transaction& tx, const RankKey& key, std::int64_t role,
                                 const Value& value);
  // Makes the group's record ours: there, and of our level.
  Result<void> Claim(Transaction& tx, const RankKey& key, const Settings& settings);
  Result<void> CheckLevel(const RankKey& key, std::int32_t level) const;
  // Runs the body for each group, the first last: that one is where the level is looked up.
  template <typename Body>
  Result<void> ForEachGroup(ProcedureName name, std::uint32_t count, const Body& body);
  Result<void> MergeGroup(Transaction& tx, const RankKey& from, const RankKey& to);

  const RankOptions options_;
  const Settings defaults_ = Checked({});
  std::unordered_map<std::int32_t, Settings> settings_;
  Table<RankKey, Group> table_{Zeze::Builtin::Game::Rank::ktrank};
  ViewCache<View> views_;
  Engine* engine_ = nullptr;
  Application* application_ = nullptr;
};

using LongRank = Rank<BValueLong>;

}  // namespace zeze

#include "zeze/components/rank/rank_inl.h"
