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
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/components/rank/rank_board.h"
#include "zeze/components/rank/rank_group.h"
#include "zeze/components/rank/rank_outbox.h"
#include "zeze/components/rank/rank_router.h"
#include "zeze/components/rank/rank_view.h"
#include "zeze/components/rank/view_cache.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

inline BValueLong RankLong(std::int64_t value) {
  return {.Value = value};
}

struct RankOptions {
  // Into how many groups each board is cut: how many processes and cores can write it at a time.
  // The same for all servers: one that is set to another level than the first does not start. Fixed
  // for the life of a board; a board that was made with another level is refused.
  std::uint32_t concurrent_level = 128;
  // To change the level: what it was. All servers must have been stopped; see docs/rank.md.
  std::uint32_t level_before = 0;
  // Roles of each group that are sampled for estimated positions; 0: none are.
  std::size_t sample_count = 64;
  ViewCacheOptions views = {};
  // Null: updates run in this process. Must outlive the rank.
  RankRouter* router = nullptr;
  // How often a server looks for updates that another one has left behind, by a crash for example.
  // They reach their board within two to four of these periods.
  std::chrono::nanoseconds repair_period = std::chrono::seconds(10);
  // How long a stop brings updates to their boards that wait. Others do the rest.
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(10);
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
// Updates with UpdateAfterCommit reach the board: in the order of the commits for each role, across
// crashes, stops and failures of servers and connections. Once they have, the board says what the
// committed transactions said last.
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
  // together with something else. An UpdateAfterCommit of the role that has not reached the board
  // is void then. Errors: kIncompatible, the board has another level; nothing is changed then.
  Result<RankChange> Update(Transaction& tx, const RankBoard& board, std::int64_t role,
                            const Value& value) {
    return Update(tx, board, role, value, RoutingHash(role));
  }
  Result<RankChange> Update(Transaction& tx, const RankBoard& board, std::int64_t role,
                            const Value& value, std::uint32_t hash);

  // In a transaction of its own, at the owner of the group, one by one for each group. `done` is
  // called once with the result code, on some thread; an update that fails is logged. Tried once:
  // without an answer it may run later. Not for roles that others update at the same time.
  void UpdateAsync(const RankBoard& board, std::int64_t role, const Value& value,
                   Completion done = nullptr) {
    UpdateAsync(board, role, value, RoutingHash(role), std::move(done));
  }
  void UpdateAsync(const RankBoard& board, std::int64_t role, const Value& value,
                   std::uint32_t hash, Completion done);

  // After the commit of the caller's transaction, and then certainly: see above. Not at all if it
  // rolls back. Of several that wait for a role the last one is done.
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

  // Runs a delivery of an outbox and says what became of it; see RankRouter::Deliver.
  std::int64_t Deliver(Transaction& tx, std::string_view delivery, std::string& receipt);

  std::uint32_t GroupOf(std::uint32_t hash) const { return hash % options_.concurrent_level; }

  // --- Module ---

  std::int32_t id() const override { return Generated::kModuleId; }
  std::string_view name() const override { return Generated::kFullName; }
  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;
  std::vector<TableBase*> Tables() override { return {&table_, &pending_, &levels_}; }
  std::span<const ProtocolHandler> Handlers() const override { return {}; }

  // Without an application: the table is added to the engine by the caller; no UpdateAsync and no
  // UpdateAfterCommit.
  void Attach(Engine& engine) { engine_ = &engine; }
  Table<RankKey, Group>& table() { return table_; }

  // Updates on their way to the board. For tests and tools; the table is the outbox's.
  Table<RankOutbox::Key, RankOutbox::Row>& pending() { return pending_; }
  RankOutbox::Statistics GetStatistics() const { return outbox_.GetStatistics(); }

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

  // `level`: that of the server that asks for it.
  Result<RankChange> UpdateGroup(Transaction& tx, const RankKey& key, std::int64_t role,
                                 const Value& value, std::uint32_t level);
  // A code for the server that asks for it.
  std::int64_t UpdateGroups(Transaction& tx, const RankKey& key,
                            std::span<const RankOutbox::Update> updates, std::uint32_t level);
  // Refuses deliveries that are on their way.
  void Fence(Transaction& tx, const RankKey& key) {
    table_.GetOrAdd(tx, key)->BeginGeneration(outbox_.NextStamp());
  }
  bool ReadValue(ByteReader& in, std::int64_t role, Value& value) const;
  static void WriteValue(ByteWriter& out, const Value& value);
  // Makes the group's record that of the level, if there is none or Zeze 1.6 wrote it.
  Result<void> Claim(Transaction& tx, const RankKey& key, const Settings& settings,
                     std::uint32_t level);
  static Result<void> CheckLevel(const RankKey& key, std::int32_t stored, std::uint32_t level);
  // Runs the body for each group, the first last: that one is where the level is looked up.
  template <typename Body>
  Result<void> ForEachGroup(ProcedureName name, std::uint32_t count, const Body& body);
  Result<void> MergeGroup(Transaction& tx, const RankKey& from, const RankKey& to);

  const RankOptions options_;
  const Settings defaults_ = Checked({});
  std::unordered_map<std::int32_t, Settings> settings_;
  Table<RankKey, Group> table_{Zeze::Builtin::Game::Rank::ktrank};
  Table<RankOutbox::Key, RankOutbox::Row> pending_{Zeze::Builtin::Game::Rank::ktpending};
  Table<std::int32_t, Zeze::Builtin::Game::Rank::BLevel> levels_{
      Zeze::Builtin::Game::Rank::ktlevel};
  RankOutbox outbox_;
  ViewCache<View> views_;
  Engine* engine_ = nullptr;
  Application* application_ = nullptr;
  bool has_outbox_ = false;  // In an application.
};

using LongRank = Rank<BValueLong>;

}  // namespace zeze

#include "zeze/components/rank/rank_inl.h"
