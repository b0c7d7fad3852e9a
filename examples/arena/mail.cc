#include "mail.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "arena/Mail.h"
#include "arena/Player.h"
#include "players.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

using arena::Mail::BBox;
using arena::Mail::BClaimResult;
using arena::Mail::BList;
using arena::Mail::BListResult;
using arena::Mail::BMail;
using arena::Mail::BMailId;
using arena::Mail::BShownMail;

namespace {

constexpr std::size_t kShownMax = 50;

}  // namespace

Mails::Mails(Players& players, zeze::AutoKeys& auto_keys, zeze::LinkedMaps& maps)
    : players_(players), auto_keys_(auto_keys), maps_(maps) {
  // An id is never used again.
  maps.delay_remove().Serve(tDeleted, zeze::Rewrites::kNever);
}

zeze::Result<void> Mails::Start(zeze::Application& application) {
  application_ = &application;
  ids_ = &auto_keys_.GetOrAdd("mail");
  return {};
}

zeze::LinkedMap<BMail> Mails::BoxOf(std::int64_t role) {
  return maps_.Open<BMail>(fmt::format("mail of {}", role)).value();
}

void Mails::Send(zeze::Transaction& tx, std::int64_t role, std::string text, std::int64_t gold) {
  const auto now = application_->options().clock->SystemNow().time_since_epoch();
  const BShownMail shown{
      .id = ids_->NextId(tx),
      .mail = {.text = std::move(text),
               .sent = std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
               .gold = gold}};
  BoxOf(role).Put(tx, std::to_string(shown.id), shown.mail);
  const auto box = tBox.GetOrAdd(tx, role);
  ++box->sent;
  box->goldSent += gold;
  if (logins_ != nullptr) logins_->SendAfterCommit<arena::Mail::SNewMail>(tx, role, shown);
}

std::int64_t Mails::MarkRead(zeze::Transaction& tx, std::int64_t role, std::int64_t id) {
  const bool found =
      BoxOf(role).Update(tx, std::to_string(id), [](BMail& mail) { mail.read = true; });
  return found ? zeze::result_code::kSuccess : ErrorCode(arena::Mail::NoSuchMail);
}

std::int64_t Mails::Claim(zeze::Transaction& tx, std::int64_t role, std::int64_t id) {
  auto box = BoxOf(role);
  auto mail = box.Get(tx, std::to_string(id));
  if (!mail) return ErrorCode(arena::Mail::NoSuchMail);
  if (mail->gold == 0 || mail->claimed) return ErrorCode(arena::Mail::NothingToClaim);
  const auto player = players_.tPlayer.Edit(tx, role);
  if (!player) return Players::ErrorCode(arena::Player::NoSuchPlayer);

  player->gold += mail->gold;
  const auto counts = tBox.Edit(tx, role);
  ++counts->claims;
  counts->goldClaimed += mail->gold;
  mail->claimed = true;
  mail->read = true;
  box.Put(tx, std::to_string(id), *mail);
  return zeze::result_code::kSuccess;
}

std::int64_t Mails::Delete(zeze::Transaction& tx, std::int64_t role, std::int64_t id) {
  auto box = BoxOf(role);
  const auto mail = box.Get(tx, std::to_string(id));
  if (!mail) return ErrorCode(arena::Mail::NoSuchMail);
  if (mail->gold != 0 && !mail->claimed) return ErrorCode(arena::Mail::NotClaimed);

  box.Remove(tx, std::to_string(id));
  ++tBox.Edit(tx, role)->deleted;
  tDeleted.Insert(tx, id, *mail);
  tDeleted.DelayRemove(tx, id);
  return zeze::result_code::kSuccess;
}

zeze::Result<BListResult> Mails::List(std::int64_t role, std::size_t count) {
  BListResult result;
  const auto walked = BoxOf(role).Walk([&](const std::string& id, const BMail& mail) {
    if (result.mails.size() >= count) return false;
    result.mails.PushBack({.id = std::stoll(id), .mail = mail});
    return true;
  });
  if (!walked.ok()) return walked.error();
  return result;
}

std::int64_t Mails::ProcessList(zeze::Session& session, const BList& argument,
                                BListResult& result) {
  const auto count = static_cast<std::size_t>(std::max(argument.count, 0));
  auto mails = List(RoleOf(session.account()), std::min(count, kShownMax));
  if (!mails.ok()) return ErrorCode(arena::Mail::NotReadable);
  result = std::move(mails).value();
  return zeze::result_code::kSuccess;
}

std::int64_t Mails::ProcessRead(zeze::Transaction& tx, zeze::Session& session,
                                const BMailId& argument) {
  return MarkRead(tx, RoleOf(session.account()), argument.id);
}

std::int64_t Mails::ProcessClaim(zeze::Transaction& tx, zeze::Session& session,
                                 const BMailId& argument, BClaimResult& result) {
  const std::int64_t role = RoleOf(session.account());
  const std::int64_t code = Claim(tx, role, argument.id);
  if (code == zeze::result_code::kSuccess) result.gold = players_.tPlayer.Get(tx, role)->gold;
  return code;
}

std::int64_t Mails::ProcessDelete(zeze::Transaction& tx, zeze::Session& session,
                                  const BMailId& argument) {
  return Delete(tx, RoleOf(session.account()), argument.id);
}

zeze::Result<MailTotals> Mails::Check() {
  MailTotals all;
  std::set<std::int64_t> ids;
  zeze::Result<void> good;
  const auto wrong = [&good](std::string what) {
    good = zeze::Error(zeze::ErrorCode::kCorrupt, std::move(what));
    return false;
  };
  const auto boxes = tBox.Walk([&](std::int64_t role, const BBox& box) {
    BBox found{.deleted = box.deleted};
    std::int64_t gold_waiting = 0;
    std::int64_t claimed = 0;
    bool repeated = false;
    const auto walked = BoxOf(role).Walk([&](const std::string& id, const BMail& mail) {
      repeated = repeated || !ids.insert(std::stoll(id)).second;
      ++found.sent;
      if (mail.claimed) ++claimed;
      if (!mail.claimed) gold_waiting += mail.gold;
      return true;
    });
    if (!walked.ok()) return wrong(walked.error().message());
    if (repeated) return wrong(fmt::format("a mail of {} is there twice", role));
    if (found.sent + box.deleted != box.sent) {
      return wrong(fmt::format("{} was sent {} mails, deleted {} and has {}", role, box.sent,
                               box.deleted, found.sent));
    }
    if (claimed > box.claims || gold_waiting + box.goldClaimed != box.goldSent) {
      return wrong(
          fmt::format("{} was sent {} gold and has claimed {} in {} claims, but {} wait and {} "
                      "mails are claimed",
                      role, box.goldSent, box.goldClaimed, box.claims, gold_waiting, claimed));
    }
    all.sent += box.sent;
    all.gold_sent += box.goldSent;
    all.present += found.sent;
    all.gold_waiting += gold_waiting;
    all.claims += box.claims;
    all.gold_claimed += box.goldClaimed;
    all.deleted += box.deleted;
    return true;
  });
  if (!boxes.ok()) return boxes.error();
  const auto kept = tDeleted.Walk([&](std::int64_t id, const BMail&) {
    ++all.kept;
    return !ids.contains(id) || wrong(fmt::format("mail {} is deleted and still in a box", id));
  });
  if (!kept.ok()) return kept.error();
  if (!good.ok()) return good.error();
  return all;
}

}  // namespace arena_example
