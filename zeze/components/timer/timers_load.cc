// Beginning, and taking over what others have left.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/timer/alarm_clock.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/components/timer/timer_ring.h"
#include "zeze/components/timer/timers.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

constexpr const char* kNotifyId = "Zeze.Component.Timer.OfflineNotify";

// The service manager waits for an answer; after that it asks somebody else.
constexpr std::chrono::nanoseconds kTakeOverPatience = std::chrono::seconds(3);

// About a minute: the ring of a server that lives changes all the time.
constexpr int kFetchTries = 60;

}  // namespace

bool Timers::Join() {
  std::int64_t serial = 0;
  TimerRing::Part part;
  // Saved before others hear of the serial: they compare it with what they find.
  const bool joined = Run("join timers", [&](Transaction& tx) {
    part = ring_->Join(tx, serial);
    tx.RequireDurable();
    return result_code::kSuccess;
  });
  if (!joined) return false;
  ring_->Joined(serial);
  Load(part, PlannedBy::kThisServer);
  FetchHome();
  RegisterOffline();
  return true;
}

// This server has been taken over although it lives: what it had belongs to others now.
void Timers::JoinAgain() {
  if (joining_.exchange(true)) return;
  ZEZE_LOG_WARNING("server {} lives, but its timers have been taken over by another", server_id_);
  errands_->Add([this] {
    if (!Join()) return false;
    joining_ = false;
    return true;
  });
}

// The wall clock was set back: what it planned before may be far away now.
void Timers::LoadAll() {
  errands_->Add([this] {
    TimerRing::Part part;
    const bool done = Run("load all timers", [&](Transaction& tx) {
      part = ring_->Whole(tx);
      return result_code::kSuccess;
    });
    if (done) Load(part, PlannedBy::kThisServer);
    return done;
  });
  for (const std::function<bool()>& heal : on_set_back_) errands_->Add(heal);
}

void Timers::Load(TimerRing::Part part, PlannedBy by) {
  if (part.head == 0) return;
  errands_->Add([this, node_id = part.head, part, by]() mutable {
    while (node_id != 0) {
      if (errands_->stopped()) return true;
      if (!LoadNode(node_id, part, by)) return false;  // Not now: its rights may not be free yet.
    }
    return true;
  });
}

// Goes on to the next node; 0: that was the last.
bool Timers::LoadNode(std::int64_t& node_id, const TimerRing::Part& part, PlannedBy by) {
  std::vector<std::pair<Alarm, std::int64_t>> alarms;
  std::int64_t next = 0;
  bool ours = false;
  bool empty = false;
  const bool loaded = Run("load timers", [&](Transaction& tx) {
    alarms.clear();
    next = 0;
    empty = false;
    // A server that was paused meanwhile must not take back what another one has taken over.
    ours = ring_->IsStillOurs(tx, part.serial);
    if (ours) next = LoadNodeIn(tx, node_id, by, empty, alarms);
    return result_code::kSuccess;
  });
  if (!loaded) return false;
  if (ours) ring_->Loaded(node_id, part.serial, empty);
  alarms_->SetAll(std::move(alarms));
  node_id = node_id == part.tail ? 0 : next;
  return true;
}

std::int64_t Timers::LoadNodeIn(Transaction& tx, std::int64_t node_id, PlannedBy by, bool& empty,
                                std::vector<std::pair<Alarm, std::int64_t>>& alarms) {
  const auto* found = tNodes.Get(tx, node_id);
  if (found == nullptr) {
    ZEZE_LOG_ERROR("node {} of the timers of server {} is missing: what is behind it is not loaded",
                   node_id, server_id_);
    return 0;
  }
  const std::int64_t next = found->NextNodeId;
  if (found->OwnerServerId != server_id_) tNodes.Edit(tx, node_id)->OwnerServerId = server_id_;
  empty = found->Timers.empty();
  const auto timers = found->Timers;  // Shared, and as they were, whatever is edited.
  std::vector<std::string> ids;
  for (const auto& [id, timer] : timers) ids.push_back(id);
  tIndexs.Prefetch(tx, ids, Right::kModify);
  for (const auto& [id, timer] : timers) {
    if (!LoadTimer(tx, node_id, id, timer, by, alarms)) ring_->Remove(tx, node_id, id);
  }
  return next;
}

// False: it does not belong here.
bool Timers::LoadTimer(Transaction& tx, std::int64_t node_id, const std::string& id,
                       TimerBean timer, PlannedBy by,
                       std::vector<std::pair<Alarm, std::int64_t>>& alarms) {
  const Index* found = tIndexs.Get(tx, id);
  if (found == nullptr || found->NodeId != node_id) {
    ZEZE_LOG_ERROR("timer {} in node {} has no index: it is removed", id, node_id);
    return false;
  }
  if (found->Version > version_) return true;  // Of a newer program: not ours to run.
  Index index = *found;
  bool changed = false;
  if (index.ServerId != server_id_ || index.SerialId == 0) {
    if (timer.HomeServerId == 0 && index.ServerId != server_id_) {
      timer.HomeServerId = index.ServerId;
      changed = true;
    }
    index.ServerId = server_id_;
    if (index.SerialId == 0) index.SerialId = serial_ids_->NextId(tx);
    tIndexs.Put(tx, id, index);
  }
  if (timer.HomeServerId == server_id_) {
    timer.HomeServerId = 0;
    changed = true;
  }
  if (timer.HomeServerId != 0) ring_->NoteGuest(tx, timer.HomeServerId);
  if (timer.Parked) {
    if (changed) Store(tx, id, index, std::move(timer));
    return true;
  }
  const std::int64_t grace = options_.misfire_after.count();
  if (HealPlan(timer, UnixNow(), by)) {
    changed = true;
    ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                           "the wall clock was set back since timer {} was planned, and maybe "
                           "others: they are planned anew",
                           id);
  }
  const std::int64_t planned = PlannedTime(timer);
  // One that failed is being tried again: that goes on.
  if (timer.FailedTimes == 0 && !ApplyMisfire(timer, UnixNow(), grace)) {
    tIndexs.Remove(tx, id);
    ring_->Remove(tx, node_id, id);
    return true;
  }
  changed = changed || PlannedTime(timer) != planned;
  if (changed) index = Store(tx, id, index, timer);
  alarms.emplace_back(AlarmOf(id, index, timer), DueTime(timer));
  return true;
}

// --- other servers ---

void Timers::RegisterOffline() {
  registry::RegistryAgent* agent = application_->registry();
  if (agent == nullptr) return;
  agent->RegisterOffline(
      {.server_id = server_id_, .notify_id = kNotifyId, .serial = ring_->serial()},
      [this](const registry::OfflineNotice& notice) {
        if (notice.server_id == server_id_) return registry::TakeOver::kTaken;
        return TakeOver(notice.server_id, notice.serial, kTakeOverPatience);
      });
  errands_->Add([this] {
    AnnounceOthers();
    return true;
  });
}

// Servers that have timers and may be gone without anybody having been there to notice.
void Timers::AnnounceOthers() {
  registry::Announcement announcement{.notify_id = kNotifyId, .server_id = server_id_};
  const Result<std::size_t> walked =
      tNodeRoot.Walk([&](std::int32_t server, const TimerRoot& root) {
        if (server != server_id_ && root.HeadNodeId != 0) {
          announcement.watched.push_back({.server_id = server, .serial = root.LoadSerialNo});
        }
        return true;
      });
  if (!walked.ok()) {
    ZEZE_LOG_WARNING("servers with timers are not announced: {}", walked.error().message());
  }
  application_->registry()->Announce(announcement);
}

// False: not now.
bool Timers::LookAtRing(std::int32_t server_id, std::int64_t serial, TakeOverChoice& choice,
                        Able& able) {
  TimerRing::Part part;
  const bool known = Run("look at timers", [&](Transaction& tx) {
    choice = ChooseTakeOver(tNodeRoot.Get(tx, server_id), serial, version_);
    part = ring_->Of(tx, server_id);
    return result_code::kSuccess;
  });
  if (!known || choice != TakeOverChoice::kTake) return known;
  bool can = false;
  bool cannot = false;
  std::unordered_set<std::int64_t> seen;  // It may change meanwhile.
  for (std::int64_t node_id = part.head;
       node_id != 0 && !(can && cannot) && seen.insert(node_id).second;) {
    if (errands_->stopped()) return false;
    std::int64_t next = 0;
    const bool looked = Run("look at timers", [&](Transaction& tx) {
      next = 0;
      const auto* node = tNodes.Get(tx, node_id);
      if (node == nullptr) return result_code::kSuccess;
      next = node->NextNodeId;
      for (const auto& [id, timer] : node->Timers) {
        (handlers_.contains(timer.HandleName) ? can : cannot) = true;
      }
      return result_code::kSuccess;
    });
    if (!looked) return false;
    node_id = node_id == part.tail ? 0 : next;
  }
  able = !cannot ? Able::kAll : can ? Able::kSome : Able::kNone;
  return true;
}

// All of it, in one transaction. False: not now.
bool Timers::TakeOverRing(std::int32_t server_id, std::int64_t serial, TakeOverChoice& choice) {
  TimerRing::Part part;
  // Its rights may not be free before its lease is over.
  const bool done = Run("take over timers", [&](Transaction& tx) {
    choice = ring_->TakeOver(tx, server_id, serial, part);
    if (choice == TakeOverChoice::kTake) tx.RequireDurable();
    return result_code::kSuccess;
  });
  if (done && choice == TakeOverChoice::kTake) Load(part, PlannedBy::kAnotherServer);
  return done;
}

// What this server can run. The rest stays for another one. False: not now.
bool Timers::TakeOverSome(std::int32_t server_id, std::int64_t serial, TakeOverChoice& choice) {
  TimerRing::Part part;
  const bool begun = Run("begin to take over timers", [&](Transaction& tx) {
    choice = ring_->BeginTakeOver(tx, server_id, serial, part);
    if (choice == TakeOverChoice::kTake) tx.RequireDurable();
    return result_code::kSuccess;
  });
  if (!begun || choice != TakeOverChoice::kTake) return begun;
  std::size_t left = 0;
  const auto any = [](const TimerBean&, const Index&) { return true; };
  if (!MoveRing(server_id, part, true, any, left)) return false;
  // Saved before anybody is told that nothing is left.
  const bool saved = Run("end to take over timers", [&](Transaction& tx) {
    ring_->NoteGuest(tx, server_id);
    tx.RequireDurable();
    return result_code::kSuccess;
  });
  if (!saved) return false;
  if (left == 0) return true;
  choice = TakeOverChoice::kUnable;
  ZEZE_LOG_WARNING("server {} leaves {} timers of server {}: it has no handlers for them",
                   server_id_, left, server_id);
  return true;
}

bool Timers::MoveRing(std::int32_t server_id, TimerRing::Part part, bool left_only, Wanted wanted,
                      std::size_t& left) {
  left = 0;
  std::unordered_set<std::int64_t> seen;
  for (std::int64_t node_id = part.head; node_id != 0;) {
    if (errands_->stopped()) return true;
    if (!seen.insert(node_id).second) return false;  // The ring was changed meanwhile.
    std::vector<std::pair<Alarm, std::int64_t>> alarms;
    std::int64_t next = 0;
    std::size_t stay = 0;
    const bool moved = Run("move timers", [&](Transaction& tx) {
      alarms.clear();
      next = 0;
      stay = 0;
      const auto* node = tNodes.Get(tx, node_id);
      if (node == nullptr || (left_only && !ring_->HasLeft(tx, server_id))) {
        return result_code::kSuccess;
      }
      next = node->NextNodeId;
      const auto timers = node->Timers;
      for (const auto& [id, timer] : timers) {
        const Index* index = tIndexs.Get(tx, id);
        if (index == nullptr || index->NodeId != node_id || !wanted(timer, *index)) continue;
        if (index->Version > version_ || !handlers_.contains(timer.HandleName)) {
          ++stay;
          continue;
        }
        const std::int64_t fresh = ring_->Move(tx, node_id, id, timer);
        tIndexs.Edit(tx, id)->NodeId = fresh;
        LoadTimer(tx, fresh, id, timer, PlannedBy::kAnotherServer, alarms);
      }
      if (left_only) ring_->UnlinkFrom(tx, server_id, node_id);
      return result_code::kSuccess;
    });
    if (!moved) return false;
    left += stay;
    alarms_->SetAll(std::move(alarms));
    if (node_id == part.tail) return true;
    if (next == 0) return left_only;  // It has come back; or its node has gone: look again.
    node_id = next;
  }
  return true;
}

// What others have taken over while this server was away comes back.
void Timers::FetchHome() {
  errands_->Add([this, tries = 0]() mutable {
    if (++tries > kFetchTries) {
      ZEZE_LOG_WARNING(
          "server {} did not get all of its timers back; it tries again when it starts",
          server_id_);
      return true;
    }
    std::vector<std::int32_t> takers;
    const bool read = Run("look for timers", [&](Transaction& tx) {
      takers.clear();
      const TimerRoot* root = tNodeRoot.Get(tx, server_id_);
      if (root == nullptr) return result_code::kSuccess;
      for (const std::int32_t taker : root->TakenBy) takers.push_back(taker);
      return result_code::kSuccess;
    });
    if (!read) return false;
    bool all = true;
    for (const std::int32_t taker : takers) {
      TimerRing::Part part;
      std::size_t left = 0;
      const auto ours = [this](const TimerBean& timer, const Index& index) {
        return timer.HomeServerId == server_id_ || index.ServerId == server_id_;
      };
      const bool fetched = Run("look for timers",
                               [&](Transaction& tx) {
                                 part = ring_->Of(tx, taker);
                                 return result_code::kSuccess;
                               }) &&
                           MoveRing(taker, part, false, ours, left);
      all = all && fetched;
      if (!fetched || left > 0 || errands_->stopped()) continue;
      all = Run("found timers",
                [&](Transaction& tx) {
                  tNodeRoot.Edit(tx, server_id_)->TakenBy.Erase(taker);
                  return result_code::kSuccess;
                }) &&
            all;
    }
    return all;
  });
}

registry::TakeOver Timers::TakeOver(std::int32_t server_id, std::int64_t serial,
                                    std::chrono::nanoseconds patience) {
  struct Answer {
    bool known = false;
    TakeOverChoice choice = TakeOverChoice::kNothing;
  };
  auto answer = std::make_shared<Answer>();  // Of the errand, too, which may outlast this.
  errands_->Add([this, server_id, serial, answer] {
    TakeOverChoice choice = TakeOverChoice::kNothing;
    Able able = Able::kNone;
    if (server_id != server_id_ && !LookAtRing(server_id, serial, choice, able)) return false;
    if (choice == TakeOverChoice::kTake) {
      switch (able) {
        case Able::kNone:
          choice = TakeOverChoice::kUnable;
          break;
        case Able::kSome:
          if (!TakeOverSome(server_id, serial, choice)) return false;
          break;
        case Able::kAll:
          if (!TakeOverRing(server_id, serial, choice)) return false;
      }
    }
    if (choice == TakeOverChoice::kTake) {
      ++taken_over_;
      ZEZE_LOG_INFO("server {} takes over the timers of server {}", server_id_, server_id);
    }
    const MutexLock lock(mutex_);
    *answer = {.known = true, .choice = choice};
    changed_.NotifyAll();
    return true;
  });
  Clock& clock = *application_->options().clock;
  const auto until = clock.Now() + patience;
  const MutexLock lock(mutex_);
  while (!answer->known && !stopping_) {
    if (!clock.WaitUntil(changed_, mutex_, until)) break;
  }
  const bool taken = answer->known && (answer->choice == TakeOverChoice::kTake ||
                                       answer->choice == TakeOverChoice::kNothing);
  return taken ? registry::TakeOver::kTaken : registry::TakeOver::kRefused;
}

}  // namespace zeze
