// Bodies of rank.h.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/usage_error.h"
#include "zeze/components/rank/rank.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

namespace internal {

template <typename... Beans>
inline constexpr bool kHasLong = (std::same_as<Beans, BValueLong> || ...);

}  // namespace internal

template <typename... Beans>
Rank<Beans...>::Rank(RankOptions options)
    : options_(options),
      outbox_(pending_,
              {.concurrent_level = options_.concurrent_level,
               .router = options_.router,
               .repair_period = options_.repair_period,
               .drain_timeout = options_.drain_timeout},
              [this](Transaction& tx, const RankKey& group,
                     std::span<const RankOutbox::Update> updates, bool fence) {
                if (fence) Fence(tx, group);
                return UpdateGroups(tx, group, updates, options_.concurrent_level);
              }),
      views_(options_.views) {
  ZEZE_REQUIRE(options_.concurrent_level >= 1 && options_.concurrent_level <= 1 << 20,
               fmt::format("RankOptions::concurrent_level is {}: set 1 to 1048576",
                           options_.concurrent_level));
}

template <typename... Beans>
typename Rank<Beans...>::Settings Rank<Beans...>::Checked(Definition definition) {
  ZEZE_REQUIRE(definition.computed_factor >= 2,
               fmt::format("the computed_factor of a rank is {}: set at least 2",
                           definition.computed_factor));
  ZEZE_REQUIRE(definition.shown_count >= 1,
               "the shown_count of a rank is 0, so nobody would be on it: set at least 1");
  const bool ordered = definition.better != nullptr || internal::kHasLong<Beans...>;
  const double computed =
      std::ceil(static_cast<double>(definition.shown_count) * definition.computed_factor);
  return {.shown_count = definition.shown_count,
          .computed_count = static_cast<std::size_t>(computed),
          .better = RankOrder<Value>(std::move(definition.better)),
          .ordered = ordered};
}

template <typename... Beans>
void Rank<Beans...>::Define(std::int32_t rank_type, Definition definition) {
  ZEZE_REQUIRE(engine_ == nullptr,
               fmt::format("rank type {} was defined after the start: call Define before "
                           "Application::Start",
                           rank_type));
  settings_.insert_or_assign(rank_type, Checked(std::move(definition)));
}

template <typename... Beans>
Result<void> Rank<Beans...>::Start(Application& application) {
  Result<void> agreed =
      AgreeOnRankLevel(application, levels_, options_.concurrent_level, options_.level_before);
  if (!agreed.ok()) return agreed;
  application_ = &application;
  has_outbox_ = true;
  Attach(application.engine());
  outbox_.Start(application);
  return {};
}

template <typename... Beans>
void Rank<Beans...>::Stop(Application& /*application*/) {
  outbox_.Stop();
  application_ = nullptr;
}

template <typename... Beans>
Result<RankChange> Rank<Beans...>::Update(Transaction& tx, const RankBoard& board,
                                          std::int64_t role, const Value& value,
                                          std::uint32_t hash) {
  const RankKey key = board.Key(GroupOf(hash));
  Result<RankChange> updated = UpdateGroup(tx, key, role, value, options_.concurrent_level);
  if (updated.ok() && has_outbox_ && outbox_.Withdraw(tx, board, role)) Fence(tx, key);
  return updated;
}

template <typename... Beans>
Result<RankChange> Rank<Beans...>::UpdateGroup(Transaction& tx, const RankKey& key,
                                               std::int64_t role, const Value& value,
                                               std::uint32_t level) {
  const Settings& settings = DefinedSettings(key.RankType);
  const RankRule<Value> rule = RuleOf(settings);
  Found<Group> group = table_.Find(tx, key);
  if (!group || group->level != static_cast<std::int32_t>(level)) {
    if (Result<void> claimed = Claim(tx, key, settings, level); !claimed.ok()) {
      return claimed.error();
    }
    group = table_.Find(tx, key);
  }
  const typename Group::Step step = group->Plan(role, value, rule);
  // Most updates of a large game end here, with the record only read.
  if (step.edits) group.Edit()->Apply(step, role, value, rule);
  return step.change();
}

template <typename... Beans>
std::int64_t Rank<Beans...>::UpdateGroups(Transaction& tx, const RankKey& key,
                                          std::span<const RankOutbox::Update> updates,
                                          std::uint32_t level) {
  for (const RankOutbox::Update& update : updates) {
    if (!SettingsOf(key.RankType).ordered) return Generated::ErrorCode(kRankBadParameters);
    ByteReader in(update.value);
    Value value;
    if (!ReadValue(in, update.role, value)) return Generated::ErrorCode(kRankBadParameters);
    const Result<RankChange> updated = UpdateGroup(tx, key, update.role, value, level);
    if (updated.ok()) continue;
    ZEZE_LOG_ERROR("{}", updated.error().message());
    return Generated::ErrorCode(kRankWrongLevel);
  }
  return result_code::kSuccess;
}

template <typename... Beans>
Result<void> Rank<Beans...>::CheckLevel(const RankKey& key, std::int32_t stored,
                                        std::uint32_t level) {
  if (stored == 0 || stored == static_cast<std::int32_t>(level)) return {};
  return Error(ErrorCode::kIncompatible,
               fmt::format("group {} of the {} was made with ConcurrentLevel {}, the server that "
                           "uses it has {}: its roles would be looked for in wrong groups. Set the "
                           "level back, or delete the board and let it fill again",
                           key.ConcurrentId, RankBoard::Of(key).ToString(), stored, level));
}

// Every board with any group has group 0, and that knows the level: otherwise a board of more
// groups than before would be cut anew unseen, in groups that are not there yet.
template <typename... Beans>
Result<void> Rank<Beans...>::Claim(Transaction& tx, const RankKey& key, const Settings& settings,
                                   std::uint32_t level) {
  RankKey first = key;
  first.ConcurrentId = 0;
  for (const RankKey& record : {first, key}) {
    const Group* group = table_.Get(tx, record);
    const std::int32_t stored = group == nullptr ? 0 : group->level;
    if (stored == static_cast<std::int32_t>(level)) continue;
    if (Result<void> checked = CheckLevel(record, stored, level); !checked.ok()) return checked;
    table_.GetOrAdd(tx, record)->Adopt(static_cast<std::int32_t>(level), settings.shown_count);
  }
  return {};
}

template <typename... Beans>
void Rank<Beans...>::UpdateAsync(const RankBoard& board, std::int64_t role, const Value& value,
                                 std::uint32_t hash, Completion done) {
  ZEZE_REQUIRE(application_ != nullptr, "the ranks of an application that runs can be updated");
  const std::uint32_t group = GroupOf(hash);
  const RankKey key = board.Key(group);
  auto finish = [done = std::move(done), board, role](std::int64_t code) {
    if (code != result_code::kSuccess) {
      ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "role {} was not updated on the {}: code {}",
                             role, board.ToString(), code);
    }
    if (done) done(code);
  };
  RankRouter* router = options_.router;
  if (router != nullptr && !router->OwnsGroup(group, options_.concurrent_level)) {
    // Our level in addition: Zeze 1.6 does not read on.
    ByteWriter out;
    out.WriteRaw(EncodeUpdate(key, role, value));
    out.WriteUint(options_.concurrent_level);
    router->Send(group, options_.concurrent_level, out.Release(), std::move(finish));
    return;
  }
  const Result<void> posted = application_->SubmitOneByOne(
      key, "rank update",
      [this, key, role, value](Transaction& tx) -> std::int64_t {
        const Result<RankChange> updated =
            UpdateGroup(tx, key, role, value, options_.concurrent_level);
        if (updated.ok()) return result_code::kSuccess;
        ZEZE_LOG_ERROR("{}", updated.error().message());
        return Generated::ErrorCode(kRankWrongLevel);
      },
      std::move(finish));
  (void)posted;  // If it was refused, `finish` has been told.
}

template <typename... Beans>
void Rank<Beans...>::UpdateAfterCommit(Transaction& tx, const RankBoard& board, std::int64_t role,
                                       const Value& value, std::uint32_t hash) {
  ZEZE_REQUIRE(has_outbox_, "UpdateAfterCommit needs a rank that is a module of an application");
  (void)DefinedSettings(board.rank_type);
  ByteWriter out;
  WriteValue(out, value);
  outbox_.Put(tx, board, role, hash, out.Release());
}

template <typename... Beans>
Result<bool> Rank<Beans...>::Remove(Transaction& tx, const RankBoard& board, std::int64_t role,
                                    std::uint32_t hash) {
  const RankKey key = board.Key(GroupOf(hash));
  const bool waited = has_outbox_ && outbox_.Withdraw(tx, board, role);
  if (waited) Fence(tx, key);
  const Group* group = table_.Get(tx, key);
  if (group == nullptr) return false;
  if (Result<void> checked = CheckLevel(key, group->level, options_.concurrent_level);
      !checked.ok()) {
    return checked.error();
  }
  Group edited = *group;
  const bool known = edited.Remove(role);
  if (known) table_.Put(tx, key, std::move(edited));
  return known || waited;
}

template <typename... Beans>
Result<typename Rank<Beans...>::ViewPointer> Rank<Beans...>::Read(const RankBoard& board) {
  ZEZE_REQUIRE(engine_ != nullptr, "the ranks were used before their start");
  const Settings& settings = DefinedSettings(board.rank_type);
  const std::chrono::nanoseconds now = options_.views.clock->Now();
  std::vector<RankKey> keys;
  keys.reserve(options_.concurrent_level);
  for (std::uint32_t i = 0; i < options_.concurrent_level; ++i) keys.push_back(board.Key(i));
  std::vector<Group> groups;
  std::optional<Error> problem;
  const auto read = [&](Transaction& tx) -> std::int64_t {
    groups.clear();
    problem.reset();
    table_.Prefetch(tx, keys);
    for (const RankKey& key : keys) {
      const Group* group = table_.Get(tx, key);
      if (group == nullptr) continue;
      if (Result<void> checked = CheckLevel(key, group->level, options_.concurrent_level);
          !checked.ok()) {
        problem = checked.error();
        return Generated::ErrorCode(kRankWrongLevel);
      }
      groups.push_back(*group);
    }
    return result_code::kSuccess;
  };
  // Checking all reads together would make a reader of a busy board run again and again.
  const std::int64_t code =
      engine_->CallApart("rank read", read, TransactionLevel::kAllowDirtyWhenAllRead);
  if (problem) return *problem;
  if (code != result_code::kSuccess) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the {} cannot be read: code {}", board.ToString(), code));
  }
  return std::make_shared<const View>(groups, settings.better, settings.shown_count, now);
}

template <typename... Beans>
template <typename Body>
Result<void> Rank<Beans...>::ForEachGroup(ProcedureName name, std::uint32_t count,
                                          const Body& body) {
  ZEZE_REQUIRE(engine_ != nullptr, "the ranks were used before their start");
  for (std::uint32_t group = count; group-- > 0;) {
    std::optional<Error> problem;
    const std::int64_t code = engine_->CallApart(name, [&](Transaction& tx) -> std::int64_t {
      problem.reset();
      if (Result<void> done = body(tx, group); !done.ok()) problem = done.error();
      return problem ? Generated::ErrorCode(kRankWrongLevel) : result_code::kSuccess;
    });
    if (problem) return *problem;
    if (code != result_code::kSuccess) {
      return Error(ErrorCode::kUnavailable, fmt::format("{} stopped at group {} of {}: code {}",
                                                        name.c_str(), group, count, code));
    }
  }
  return {};
}

template <typename... Beans>
Result<void> Rank<Beans...>::Delete(const RankBoard& board) {
  std::uint32_t count = options_.concurrent_level;
  const Result<std::optional<Group>> first = table_.ReadCopy(board.Key(0));
  if (!first.ok()) return first.error();
  if (first.value() && first.value()->level > 0) {
    count = static_cast<std::uint32_t>(first.value()->level);
  }
  Result<void> deleted = ForEachGroup("rank delete", count, [&](Transaction& tx, std::uint32_t g) {
    if (table_.Contains(tx, board.Key(g))) table_.Remove(tx, board.Key(g));
    return Result<void>();
  });
  views_.Forget(board);
  return deleted;
}

template <typename... Beans>
Result<void> Rank<Beans...>::Merge(const RankBoard& from, const RankBoard& to) {
  if (from == to) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the {} cannot be merged into itself", to.ToString()));
  }
  Result<void> merged = ForEachGroup("rank merge", options_.concurrent_level,
                                     [&](Transaction& tx, std::uint32_t group) {
                                       return MergeGroup(tx, from.Key(group), to.Key(group));
                                     });
  views_.Forget(from);
  views_.Forget(to);
  return merged;
}

template <typename... Beans>
Result<void> Rank<Beans...>::MergeGroup(Transaction& tx, const RankKey& from, const RankKey& to) {
  const Settings& settings = DefinedSettings(to.RankType);
  const Group* source = table_.Get(tx, from);
  if (source == nullptr) return {};
  const std::uint32_t level = options_.concurrent_level;
  if (Result<void> checked = CheckLevel(from, source->level, level); !checked.ok()) return checked;
  if (Result<void> claimed = Claim(tx, to, settings, level); !claimed.ok()) return claimed;
  table_.Edit(tx, to)->Merge(*source, RuleOf(settings), settings.shown_count);
  table_.Remove(tx, from);
  return {};
}

template <typename... Beans>
void Rank<Beans...>::WriteValue(ByteWriter& out, const Value& value) {
  out.WriteLong(value.type_id());
  if (!value.Visit([&out](const auto& bean) { bean.Encode(out); })) out.WriteEnd();
}

template <typename... Beans>
bool Rank<Beans...>::ReadValue(ByteReader& in, std::int64_t role, Value& value) const {
  const std::int64_t type_id = in.ReadLong();
  const bool known = value.SetById(type_id, [&in](auto& bean) { bean.Decode(in); });
  if (in.ok() && known) return true;
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                         "an update of role {} with a value of type {} is refused: {}", role,
                         type_id, in.ok() ? "no such bean is ranked here" : in.error_message());
  return false;
}

template <typename... Beans>
std::string Rank<Beans...>::EncodeUpdate(const RankKey& key, std::int64_t role,
                                         const Value& value) {
  ByteWriter out;
  key.Encode(out);
  out.WriteLong(role);
  WriteValue(out, value);
  return out.Release();
}

template <typename... Beans>
std::int64_t Rank<Beans...>::UpdateEncoded(Transaction& tx, std::uint32_t hash,
                                           std::string_view parameters) {
  ByteReader in(parameters);
  RankKey key;
  key.Decode(in);
  const std::int64_t role = in.ReadLong();
  Value value;
  if (!ReadValue(in, role, value)) return Generated::ErrorCode(kRankBadParameters);
  // The level of the caller counts, not that of this server. Zeze 1.6 does not tell it.
  const std::uint32_t level = in.remaining() > 0 ? in.ReadUint() : options_.concurrent_level;
  if (!in.ok() || level == 0) return Generated::ErrorCode(kRankBadParameters);
  key.ConcurrentId = static_cast<std::int32_t>(hash % level);
  const Result<RankChange> updated = UpdateGroup(tx, key, role, value, level);
  if (updated.ok()) return result_code::kSuccess;
  ZEZE_LOG_ERROR("{}", updated.error().message());
  return Generated::ErrorCode(kRankWrongLevel);
}

template <typename... Beans>
std::int64_t Rank<Beans...>::Deliver(Transaction& tx, std::string_view delivery,
                                     std::string& receipt) {
  RankOutbox::Delivery given;
  const bool valid = RankOutbox::DecodeDelivery(delivery, given) &&
                     static_cast<std::uint32_t>(given.group.ConcurrentId) < given.level;
  if (!valid) return Generated::ErrorCode(kRankBadParameters);
  const Group* found = table_.Get(tx, given.group);
  const std::int64_t generation = found == nullptr ? 0 : found->generation;
  const std::int64_t* last = found == nullptr ? nullptr : found->senders.Find(given.sender);
  if (generation != given.generation || (last != nullptr && *last >= given.number)) {
    receipt = RankOutbox::EncodeReceipt({.accepted = false, .generation = generation});
    return result_code::kSuccess;
  }
  const std::int64_t code = UpdateGroups(tx, given.group, given.updates, given.level);
  if (code != result_code::kSuccess) return code;
  const auto group = table_.Edit(tx, given.group);
  // What does not know the new generation is not accepted: nothing that is older than the board.
  constexpr std::size_t kSendersMax = 64;
  if (generation == 0 || group->senders.size() >= kSendersMax) {
    group->BeginGeneration(outbox_.NextStamp());
  }
  group->senders.Put(given.sender, given.number);
  receipt = RankOutbox::EncodeReceipt({.accepted = true, .generation = group->generation});
  tx.RequireDurable();  // The sender forgets it.
  return result_code::kSuccess;
}

}  // namespace zeze
