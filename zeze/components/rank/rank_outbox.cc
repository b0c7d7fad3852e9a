#include "zeze/components/rank/rank_outbox.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/Game/Rank.h"
#include "Zeze/Builtin/Game/Rank.module.h"
#include "zeze/app/application.h"
#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/rank/rank_board.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::size_t kBatchMax = 256;            // Updates of one transaction or message.
constexpr std::size_t kBatchBytesMax = 1 << 20;   // Of their values; one may be larger.
constexpr std::size_t kActiveMax = 16;            // Groups with a transaction or message under way.
constexpr std::size_t kGenerationsMax = 1 << 16;  // Remembered; others are asked for again.
constexpr std::size_t kAdoptedMax = 10'000;       // Updates that one look at the table takes.
constexpr std::size_t kSeenMax = 100'000;  // Updates that are remembered until the next look.
constexpr int kOutOfDateMax = 8;           // In a row; then the group is done here.
constexpr nanoseconds kPauseMin = milliseconds(50);
constexpr nanoseconds kPauseMax = seconds(5);

using Generated = Zeze::Builtin::Game::Rank::ModuleRankBase;

bool IsRefusal(std::int64_t code) {
  return code > 0 && ModuleOfErrorCode(code) == Generated::kModuleId;
}

RankBoard BoardOf(const RankOutbox::Key& key) {
  return {.rank_type = key.RankType,
          .span = static_cast<RankSpan>(key.TimeType),
          .year = key.Year,
          .offset = key.Offset};
}

RankOutbox::Key KeyOf(const RankBoard& board, std::int64_t role) {
  return {.RankType = board.rank_type,
          .TimeType = static_cast<std::int32_t>(board.span),
          .Year = board.year,
          .Offset = board.offset,
          .RoleId = role};
}

}  // namespace

class RankOutbox::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Table<Key, Row>& rows, const RankOutboxOptions& options, Apply apply)
      : rows_(rows), options_(options), apply_(std::move(apply)), sender_(RandomStamp()) {}

  void Start(Application& application);
  void Stop();
  void Put(Transaction& tx, const Key& key, std::uint32_t hash, std::string value);
  bool Withdraw(Transaction& tx, const Key& key) { return rows_.Remove(tx, key); }
  std::int64_t NextStamp() { return sender_ + stamps_.fetch_add(1, std::memory_order_relaxed) + 1; }
  Statistics GetStatistics() const;

 private:
  // A group that has something to do. It is in `ready_` or `later_`, or under way, exactly once.
  struct Group {
    // True: it was not there.
    bool Add(const Key& key) {
      if (!keys.insert(key).second) return false;
      order.push_back(key);
      return true;
    }

    std::unordered_set<Key> keys = {};
    std::deque<Key> order = {};  // Of the same keys.
    std::vector<Key> under_way = {};
    bool here = false;        // The next batch is done here.
    bool fence = false;       // A delivery may still be on its way.
    bool one_by_one = false;  // An update that cannot be done must not keep the others.
    int failures = 0;
    int out_of_date = 0;
  };
  struct Sent {
    Key key = {};
    std::int64_t change = 0;
  };
  struct Batch {
    RankKey group = {};
    std::vector<Key> keys = {};
    bool here = false;
    bool fence = false;
    std::vector<Sent> sent = {};
  };

  static std::int64_t RandomStamp() {
    std::random_device random;
    // Positive, with room for all stamps of a process.
    return static_cast<std::int64_t>(((std::uint64_t{random()} << 32) ^ random()) >> 2);
  }

  RankKey GroupOf(const Key& key, std::int32_t hash) const {
    return BoardOf(key).Key(static_cast<std::uint32_t>(hash) % options_.concurrent_level);
  }
  bool IsOwner(const RankKey& group) const {
    return options_.router == nullptr ||
           options_.router->OwnsGroup(static_cast<std::uint32_t>(group.ConcurrentId),
                                      options_.concurrent_level);
  }

  void Note(const RankKey& group, const Key& key, bool here);
  void Run();
  std::vector<Batch> TakeBatches() ZEZE_REQUIRES(mutex_);
  void Work(std::vector<Batch> batches);
  void DoHere(const std::shared_ptr<Batch>& batch);
  std::int64_t MoveHere(Transaction& tx, const Batch& batch);
  void DoneHere(const Batch& batch, std::int64_t code);
  void DeliverAll(const std::vector<std::shared_ptr<Batch>>& batches);
  void Delivered(const std::shared_ptr<Batch>& batch, std::int64_t code, const std::string& result);
  void Acknowledge(const Batch& batch);

  // What becomes of a batch. All of it ends what was under way.
  void Finish(const Batch& batch, const std::vector<Key>& again) ZEZE_REQUIRES(mutex_);
  void Repeat(const Batch& batch, nanoseconds pause) ZEZE_REQUIRES(mutex_);
  nanoseconds PauseAfter(Group& group) ZEZE_REQUIRES(mutex_);

  void LookThrough();
  int LooksNeeded(const Row& row, const RankKey& group) const;

  Table<Key, Row>& rows_;
  const RankOutboxOptions options_;
  const Apply apply_;
  const std::int64_t sender_;  // This process.
  std::atomic<std::int64_t> stamps_ = 0;
  Application* application_ = nullptr;  // From Start on.
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  std::unordered_map<RankKey, Group> groups_ ZEZE_GUARDED_BY(mutex_);
  std::deque<RankKey> ready_ ZEZE_GUARDED_BY(mutex_);
  std::multimap<nanoseconds, RankKey> later_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Batch>> accepted_ ZEZE_GUARDED_BY(mutex_);
  std::size_t active_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t notes_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::unordered_map<RankKey, std::int64_t> generations_ ZEZE_GUARDED_BY(mutex_);
  Statistics statistics_ ZEZE_GUARDED_BY(mutex_);

  // Of the look before: the change that was seen, and how often.
  Mutex look_mutex_;
  std::map<Key, std::pair<std::int64_t, int>> seen_ ZEZE_GUARDED_BY(look_mutex_);
};

void RankOutbox::Impl::Put(Transaction& tx, const Key& key, std::uint32_t hash, std::string value) {
  bool added = false;
  auto row = rows_.GetOrAdd(tx, key, &added);
  if (added) {
    row->ServerId = application_ == nullptr ? 0 : application_->options().server_id;
    row->Sender = sender_;
  }
  row->Hash = static_cast<std::int32_t>(hash);
  row->Change = NextStamp();
  row->Value.bytes = std::move(value);
  // If another process has begun, it finds that there is something newer.
  if (row->Sender != sender_) return;
  tx.AfterCommit(
      Task("rank update", [self = shared_from_this(), key, group = GroupOf(key, row->Hash)] {
        self->Note(group, key, false);
      }));
}

void RankOutbox::Impl::Note(const RankKey& group, const Key& key, bool here) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  if (notes_ >= options_.notes_max) return;
  const auto [at, is_new] = groups_.try_emplace(group);
  if (at->second.Add(key)) ++notes_;
  if (here) at->second.here = true;
  if (!is_new) return;
  ready_.push_back(group);
  changed_.NotifyAll();
}

void RankOutbox::Impl::Start(Application& application) {
  application_ = &application;
  thread_ = std::thread([this] { Run(); });
}

void RankOutbox::Impl::Run() {
  SetThreadName("rank-outbox");
  Clock& clock = *application_->options().clock;
  nanoseconds next_look = clock.Now();
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (next_look <= clock.Now()) {
      next_look = clock.Now() + options_.repair_period;
      // If it is refused, the next one finds the same.
      (void)application_->workers().TryPost(
          Task("rank repair", [self = shared_from_this()] { self->LookThrough(); }));
    }
    while (!later_.empty() && later_.begin()->first <= clock.Now()) {
      ready_.push_back(later_.begin()->second);
      later_.erase(later_.begin());
    }
    const bool may_begin = !ready_.empty() && active_ < kActiveMax;
    if (accepted_.empty() && !may_begin) {
      const nanoseconds next =
          later_.empty() ? next_look : std::min(next_look, later_.begin()->first);
      clock.WaitUntil(changed_, mutex_, next);
      continue;
    }
    const std::vector<std::shared_ptr<Batch>> accepted = std::exchange(accepted_, {});
    std::vector<Batch> batches = TakeBatches();
    mutex_.Unlock();
    for (const std::shared_ptr<Batch>& batch : accepted) Acknowledge(*batch);
    Work(std::move(batches));
    mutex_.Lock();
  }
}

std::vector<RankOutbox::Impl::Batch> RankOutbox::Impl::TakeBatches() {
  std::vector<Batch> batches;
  while (!ready_.empty() && active_ < kActiveMax) {
    const RankKey key = ready_.front();
    ready_.pop_front();
    Group& group = groups_.at(key);
    ++active_;
    // Perhaps none: only the fence is left to do.
    const std::size_t count = std::min(group.one_by_one ? 1 : kBatchMax, group.keys.size());
    for (std::size_t i = 0; i < count; ++i) {
      group.keys.erase(group.order.front());
      group.under_way.push_back(group.order.front());
      group.order.pop_front();
    }
    batches.push_back({.group = key,
                       .keys = group.under_way,
                       .here = group.here || group.fence,
                       .fence = group.fence});
  }
  return batches;
}

void RankOutbox::Impl::Work(std::vector<Batch> batches) {
  std::vector<std::shared_ptr<Batch>> deliveries;
  for (Batch& each : batches) {
    auto batch = std::make_shared<Batch>(std::move(each));
    if (batch->here || IsOwner(batch->group)) {
      DoHere(batch);
    } else {
      deliveries.push_back(std::move(batch));
    }
  }
  if (!deliveries.empty()) DeliverAll(deliveries);
}

// --- here ---

void RankOutbox::Impl::DoHere(const std::shared_ptr<Batch>& batch) {
  const Result<void> posted = application_->Submit(
      "rank outbox",
      [self = shared_from_this(), batch](Transaction& tx) { return self->MoveHere(tx, *batch); },
      [self = shared_from_this(), batch](std::int64_t code) { self->DoneHere(*batch, code); });
  (void)posted;  // If it was refused, the completion has been told.
}

std::int64_t RankOutbox::Impl::MoveHere(Transaction& tx, const Batch& batch) {
  std::vector<Update> updates;
  bool fence = batch.fence;
  rows_.Prefetch(tx, batch.keys, Right::kModify);
  for (const Key& key : batch.keys) {
    const Row* row = rows_.Get(tx, key);
    if (row == nullptr || GroupOf(key, row->Hash) != batch.group) continue;
    // Its process may have sent it.
    if (row->Sender != sender_) fence = true;
    updates.push_back({key.RoleId, row->Value.bytes});
    rows_.Remove(tx, key);
  }
  if (updates.empty() && !fence) return result_code::kSuccess;
  return apply_(tx, batch.group, updates, fence);
}

void RankOutbox::Impl::DoneHere(const Batch& batch, std::int64_t code) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  if (code == result_code::kSuccess) {
    statistics_.done_here += batch.keys.size();
    return Finish(batch, {});
  }
  ++statistics_.failed;
  Group& group = groups_.at(batch.group);
  if (!IsRefusal(code) || batch.keys.empty()) return Repeat(batch, PauseAfter(group));
  if (batch.keys.size() > 1) {
    group.one_by_one = true;
    return Repeat(batch, nanoseconds(0));
  }
  // Stays in the table, and is tried again when that is looked through.
  ZEZE_LOG_ERROR("an update of role {} on the {} cannot be done: code {}",
                 batch.keys.front().RoleId, BoardOf(batch.keys.front()).ToString(), code);
  group.one_by_one = false;
  Finish({.group = batch.group, .here = batch.here, .fence = false}, {});  // It rolled back.
}

// --- delivery ---

void RankOutbox::Impl::DeliverAll(const std::vector<std::shared_ptr<Batch>>& batches) {
  std::vector<Delivery> deliveries;
  // A board must not show what a crash of this server takes back.
  const std::int64_t code = application_->Call("rank outbox", [&](Transaction& tx) {
    deliveries.clear();
    for (const std::shared_ptr<Batch>& batch : batches) {
      Delivery& delivery = deliveries.emplace_back();
      delivery.group = batch->group;
      delivery.sender = sender_;
      delivery.number = NextStamp();
      delivery.level = options_.concurrent_level;
      batch->sent.clear();
      std::size_t bytes = 0;
      for (const Key& key : batch->keys) {
        const Row* row = rows_.Get(tx, key);
        if (row == nullptr || row->Sender != sender_) continue;
        if (GroupOf(key, row->Hash) != batch->group) continue;
        if (bytes > kBatchBytesMax) {
          batch->sent.push_back({key, 0});  // Not this time.
          continue;
        }
        bytes += row->Value.bytes.size();
        batch->sent.push_back({key, row->Change});
        delivery.updates.push_back({key.RoleId, row->Value.bytes});
      }
    }
    tx.RequireDurable();
    return result_code::kSuccess;
  });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::shared_ptr<Batch>& batch = batches[i];
    {
      MutexLock lock(mutex_);
      if (code != result_code::kSuccess) {
        ++statistics_.failed;
        Repeat(*batch, PauseAfter(groups_.at(batch->group)));
        continue;
      }
      if (deliveries[i].updates.empty()) {
        Finish(*batch, {});
        continue;
      }
      const auto known = generations_.find(batch->group);
      deliveries[i].generation = known == generations_.end() ? 0 : known->second;
    }
    options_.router->Deliver(
        static_cast<std::uint32_t>(batch->group.ConcurrentId), options_.concurrent_level,
        EncodeDelivery(deliveries[i]),
        [self = weak_from_this(), batch](std::int64_t result_code, const std::string& result) {
          const auto impl = self.lock();
          if (impl != nullptr) impl->Delivered(batch, result_code, result);
        });
  }
}

void RankOutbox::Impl::Delivered(const std::shared_ptr<Batch>& batch, std::int64_t code,
                                 const std::string& result) {
  Receipt receipt;
  const bool answered = code == result_code::kSuccess && DecodeReceipt(result, receipt);
  MutexLock lock(mutex_);
  if (stopping_) return;
  Group& group = groups_.at(batch->group);
  if (!answered) {
    ++statistics_.failed;
    ZEZE_LOG_WARNING_EVERY(seconds(1),
                           "updates of group {} of the {} could not be delivered: code {}",
                           batch->group.ConcurrentId, RankBoard::Of(batch->group).ToString(), code);
    group.fence = true;
    return Repeat(*batch, PauseAfter(group));
  }
  if (generations_.size() >= kGenerationsMax) generations_.clear();
  generations_[batch->group] = receipt.generation;
  if (receipt.accepted) {
    accepted_.push_back(batch);
    changed_.NotifyAll();
    return;
  }
  ++statistics_.out_of_date;
  if (++group.out_of_date > kOutOfDateMax) group.here = true;
  Repeat(*batch, nanoseconds(0));
}

void RankOutbox::Impl::Acknowledge(const Batch& batch) {
  std::vector<Key> again;
  std::size_t done = 0;
  const std::int64_t code = application_->Call("rank outbox", [&](Transaction& tx) {
    again.clear();
    done = 0;
    for (const Sent& sent : batch.sent) {
      const Row* row = rows_.Get(tx, sent.key);
      if (row == nullptr || row->Sender != sender_) continue;
      if (row->Change == sent.change) {
        rows_.Remove(tx, sent.key);
        ++done;
      } else {
        again.push_back(sent.key);
      }
    }
    return result_code::kSuccess;
  });
  MutexLock lock(mutex_);
  if (stopping_) return;
  if (code != result_code::kSuccess) {
    ++statistics_.failed;
    return Repeat(batch, PauseAfter(groups_.at(batch.group)));
  }
  statistics_.delivered += done;
  Finish(batch, again);
}

// --- what is to be done ---

void RankOutbox::Impl::Finish(const Batch& batch, const std::vector<Key>& again) {
  Group& group = groups_.at(batch.group);
  --active_;
  notes_ -= group.under_way.size();
  group.under_way.clear();
  for (const Key& key : again) notes_ += group.Add(key) ? 1 : 0;
  group.failures = 0;
  group.out_of_date = 0;
  if (batch.fence) group.fence = false;
  if (batch.here) group.here = false;
  changed_.NotifyAll();
  if (group.keys.empty() && !group.fence) {
    groups_.erase(batch.group);
  } else {
    ready_.push_back(batch.group);
  }
}

nanoseconds RankOutbox::Impl::PauseAfter(Group& group) {
  const nanoseconds pause = kPauseMin * (1 << std::min(group.failures, 10));
  ++group.failures;
  return std::min(pause, kPauseMax);
}

void RankOutbox::Impl::Repeat(const Batch& batch, nanoseconds pause) {
  Group& group = groups_.at(batch.group);
  --active_;
  for (const Key& key : group.under_way) notes_ -= group.Add(key) ? 0 : 1;
  group.under_way.clear();
  changed_.NotifyAll();
  if (pause.count() == 0) {
    ready_.push_back(batch.group);
  } else {
    later_.emplace(application_->options().clock->Now() + pause, batch.group);
  }
}

void RankOutbox::Impl::Stop() {
  if (application_ == nullptr) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  std::vector<Batch> left;
  {
    MutexLock lock(mutex_);
    for (auto& [key, group] : groups_) {
      const bool sent = options_.router != nullptr && !group.under_way.empty();
      const bool fence = group.fence || sent;
      for (const Key& each : group.under_way) group.Add(each);
      if (group.order.empty() && fence) left.push_back({.group = key, .fence = true});
      for (const Key& each : group.order) {
        if (left.empty() || left.back().group != key || left.back().keys.size() >= kBatchMax) {
          left.push_back({.group = key, .fence = fence});
        }
        left.back().keys.push_back(each);
      }
    }
    groups_.clear();
    notes_ = 0;
  }
  Clock& clock = *application_->options().clock;
  const nanoseconds deadline = clock.Now() + options_.drain_timeout;
  std::size_t undone = 0;
  for (const Batch& batch : left) {
    std::int64_t code = result_code::kTimeout;
    for (nanoseconds pause = kPauseMin; clock.Now() < deadline;
         pause = std::min(2 * pause, kPauseMax)) {
      code =
          application_->Call("rank outbox", [&](Transaction& tx) { return MoveHere(tx, batch); });
      if (code == result_code::kSuccess || IsRefusal(code)) break;
      clock.SleepFor(std::clamp(deadline - clock.Now(), nanoseconds(0), pause));
    }
    if (code != result_code::kSuccess) undone += batch.keys.size();
  }
  if (undone > 0) {
    ZEZE_LOG_WARNING("{} updates of boards are left for other servers, or for the next start",
                     undone);
  }
}

// --- what other processes have left ---

int RankOutbox::Impl::LooksNeeded(const Row& row, const RankKey& group) const {
  const bool earlier_life =
      row.Sender != sender_ && row.ServerId == application_->options().server_id;
  const bool alone = application_->options().globals.empty();
  if (earlier_life || (alone && row.Sender != sender_)) return 1;
  // The owner may be a server that does not look.
  return IsOwner(group) ? 2 : 4;
}

void RankOutbox::Impl::LookThrough() {
  MutexLock look(look_mutex_);
  std::map<Key, std::pair<std::int64_t, int>> seen;
  std::size_t adopted = 0;
  const Result<std::size_t> walked = rows_.Walk([&](const Key& key, const Row& row) {
    look_mutex_.AssertHeld();
    const RankKey group = GroupOf(key, row.Hash);
    {
      MutexLock lock(mutex_);
      if (stopping_) return false;
      const auto noted = groups_.find(group);
      const bool cared_for =
          noted != groups_.end() &&
          (noted->second.keys.contains(key) ||
           std::ranges::find(noted->second.under_way, key) != noted->second.under_way.end());
      if (cared_for) return true;
    }
    const auto before = seen_.find(key);
    const bool same = before != seen_.end() && before->second.first == row.Change;
    const int looks = same ? before->second.second + 1 : 1;
    if (looks < LooksNeeded(row, group)) {
      if (seen.size() < kSeenMax) seen[key] = {row.Change, looks};
      return true;
    }
    Note(group, key, true);
    return ++adopted < kAdoptedMax;
  });
  seen_ = std::move(seen);
  if (!walked.ok()) {
    ZEZE_LOG_WARNING("updates of boards could not be looked through: {}", walked.error().message());
  }
  if (adopted == 0) return;
  ZEZE_LOG_INFO("{} updates of boards that another process has left are done now", adopted);
  MutexLock lock(mutex_);
  statistics_.adopted += adopted;
}

RankOutbox::Statistics RankOutbox::Impl::GetStatistics() const {
  MutexLock lock(mutex_);
  Statistics statistics = statistics_;
  statistics.waiting = notes_;
  return statistics;
}

RankOutbox::RankOutbox(Table<Key, Row>& rows, const RankOutboxOptions& options, Apply apply)
    : impl_(std::make_shared<Impl>(rows, options, std::move(apply))) {}

RankOutbox::~RankOutbox() = default;

void RankOutbox::Start(Application& application) {
  impl_->Start(application);
}

void RankOutbox::Stop() {
  impl_->Stop();
}

void RankOutbox::Put(Transaction& tx, const RankBoard& board, std::int64_t role, std::uint32_t hash,
                     std::string value) {
  impl_->Put(tx, KeyOf(board, role), hash, std::move(value));
}

bool RankOutbox::Withdraw(Transaction& tx, const RankBoard& board, std::int64_t role) {
  return impl_->Withdraw(tx, KeyOf(board, role));
}

std::int64_t RankOutbox::NextStamp() {
  return impl_->NextStamp();
}

RankOutbox::Statistics RankOutbox::GetStatistics() const {
  return impl_->GetStatistics();
}

Result<void> AgreeOnRankLevel(Application& application,
                              Table<std::int32_t, Zeze::Builtin::Game::Rank::BLevel>& levels,
                              std::uint32_t level, std::uint32_t level_before) {
  constexpr std::int32_t kOnly = 0;
  // On a machine that is too busy the lease may run out before it is first renewed.
  constexpr int kAttempts = 10;
  constexpr milliseconds kPause{500};
  const auto wanted = static_cast<std::int32_t>(level);
  std::int32_t stored = 0;
  std::int64_t code = result_code::kSuccess;
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    if (attempt > 1) application.options().clock->SleepFor(kPause);
    code = application.Call("rank level", [&](Transaction& tx) {
      const auto* found = levels.Get(tx, kOnly);
      stored = found == nullptr ? 0 : found->ConcurrentLevel;
      const bool ours =
          stored == 0 || (level_before != 0 && stored == static_cast<std::int32_t>(level_before));
      if (ours && stored != wanted) levels.Put(tx, kOnly, {.ConcurrentLevel = wanted});
      if (ours) stored = wanted;
      return result_code::kSuccess;
    });
    if (code == result_code::kSuccess) break;
  }
  if (code != result_code::kSuccess) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot read into how many groups this cluster cuts its boards: "
                             "code {}. Is Global reachable?",
                             code));
  }
  if (stored == wanted) return {};
  return Error(
      ErrorCode::kIncompatible,
      fmt::format("this cluster cuts its boards into {0} groups, this server is set to {1}: it "
                  "would look for roles in wrong groups, so it does not start. Set "
                  "RankOptions::concurrent_level to {0}. To change the level, stop all servers, "
                  "start them with concurrent_level {1} and level_before {0}, and delete the old "
                  "boards",
                  stored, wanted));
}

}  // namespace zeze
