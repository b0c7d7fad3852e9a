#include "zeze/global/service/global_client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/trouble.h"
#include "zeze/global/lease.h"
#include "zeze/global/service/greeting.h"
#include "zeze/global/service/proof.h"
#include "zeze/global/service/shard_session.h"
#include "zeze/global/silence_watch.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"

namespace zeze::global {

namespace {

// What is announced at once is asked for in parts of this size, one after the other.
constexpr std::size_t kWishesAtOnce = 4096;
// While a Global is out of sight.
constexpr std::chrono::nanoseconds kLookPeriod = std::chrono::milliseconds(200);
constexpr std::chrono::nanoseconds kSavePeriod = std::chrono::seconds(1);

}  // namespace

class GlobalClient::Impl {
 public:
  Impl(IoThreads& io, Fence& fence, GlobalClientOptions options)
      : io_(io),
        fence_(fence),
        options_(std::move(options)),
        lease_(options_.lease),
        trouble_({.what = "the lease was not renewed",
                  .over = "the database is back and renews the lease",
                  .first_delay = options_.lease.renew_period() / 10,
                  .delay_max = options_.lease.renew_period()}) {}
  ~Impl() { Abandon(); }

  Result<void> Start(Engine& engine, const std::string& exclusive_for) {
    if (Result<void> checked = CheckLease(); !checked.ok()) return checked;
    // First: an epoch of another copy is none.
    Result<std::string> history = fence_.History();
    if (!history.ok()) return history.error();
    history_ = std::move(history).value();
    // Before anything is raised: who lists its Globals in another order fences nobody.
    if (!options_.log_in_as_old_peer) {
      if (Result<void> known = Greet(io_, options_, fence_); !known.ok()) return known;
    }
    const std::optional<LiveServer> namesake = FindNamesake();
    const FenceStartOptions start{.server_id = options_.server_id,
                                  .holder = options_.holder,
                                  .lease = options_.lease.said(),
                                  .secret = secret_,
                                  .shards = static_cast<std::int32_t>(options_.shards.size()),
                                  .makes_cluster = options_.allow_unfenced_global,
                                  .tables = engine.StoredTables(),
                                  .exclusive = !exclusive_for.empty(),
                                  .exclusive_for = exclusive_for,
                                  .incarnation = options_.incarnation,
                                  .ended = options_.ended};
    Result<FenceStart> started =
        WhenNobodyIsInTheWay<FenceStart>(fence_, start, options_.lease, *options_.clock,
                                         [this, &start] { return fence_.Start(start); });
    if (!started.ok()) return started.error();
    if (namesake.has_value()) WarnOf(*namesake);
    epoch_ = started.value().epoch;
    if (Result<void> renewed = Renew(); !renewed.ok()) return renewed.error();
    for (std::size_t shard = 0; shard < options_.shards.size(); ++shard) {
      const auto term = started.value().terms.find(static_cast<std::int32_t>(shard));
      shards_.push_back(std::make_unique<ShardSession>(
          io_, engine, options_, shard, epoch_,
          term == started.value().terms.end() ? 0 : term->second,
          ShardSession::Identity{.cluster = started.value().cluster,
                                 .secret = secret_,
                                 .look_up = [this] { LookUpTerms(); }},
          [this](const std::string& why) { FencedByGlobal(why); }));
    }
    lease_thread_ = std::thread([this] { KeepLease(); });
    if (!shards_.empty()) {
      shards_thread_ = std::thread([this, &engine] { WatchShards(engine); });
    }
    for (const auto& shard : shards_) shard->Connect();
    const auto deadline = options_.clock->Now() + options_.connect_timeout;
    for (const auto& shard : shards_) {
      Result<void> ready = shard->AwaitReady(deadline);
      if (ready.ok()) continue;
      // It has no rights yet: nobody need wait for the end of its lease.
      if (ready.error().code() == ErrorCode::kInvalidArgument) (void)Stop();
      return ready;
    }
    return {};
  }

  // A server without a Global stays alone.
  Result<void> Share() { return options_.shards.empty() ? Result<void>() : fence_.Share(); }

  Result<void> Stop() {
    if (stopped_) return {};
    StopLease();
    Result<void> finished = fenced_ ? Result<void>{} : fence_.Finish();
    if (finished.ok() && !fenced_) {
      for (const auto& shard : shards_) shard->NormalClose();
    }
    Abandon();
    return finished;
  }

  void Abandon() {
    stopped_ = true;
    StopLease();
    for (const auto& shard : shards_) shard->Stop();
  }

  // Null: this process is alone.
  ShardSession* ShardOf(std::string_view key) {
    return shards_.empty() ? nullptr : shards_[ShardIndexOf(key)].get();
  }
  std::size_t ShardIndexOf(std::string_view key) const {
    return RoutingHashOfBytes(key) % shards_.size();
  }
  ShardSession& shard(std::size_t index) { return *shards_[index]; }
  std::size_t shard_count() const { return shards_.size(); }
  bool LeaseValid() const {
    const std::chrono::nanoseconds now = options_.clock->Now();
    if (now.count() >= lease_until_.load(std::memory_order_acquire)) return false;
    return std::all_of(shards_.begin(), shards_.end(),
                       [now](const auto& shard) { return shard->Usable(now); });
  }
  bool unfenced() const {
    return std::any_of(shards_.begin(), shards_.end(),
                       [](const auto& shard) { return shard->unfenced(); });
  }
  std::int64_t epoch() const { return epoch_; }

 private:
  // No Global waits longer than for the longest that is allowed.
  Result<void> CheckLease() const {
    if (options_.lease.duration >= kLeaseMin && options_.lease.duration <= kLeaseMax) return {};
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the lease of server {} is {} ms: give one from {} to {} ms",
                             options_.server_id, options_.lease.said().count(), kLeaseMin.count(),
                             kLeaseMax.count()));
  }

  // Only in the copy of the database in which this server started: another one may lack flushes and
  // epochs that were acknowledged (rule 48).
  Result<void> Renew() {
    const auto sent = options_.clock->Now();
    Result<void> renewed = fence_.Renew();
    if (!renewed.ok() && renewed.error().code() == ErrorCode::kFenced) return renewed;
    const Result<std::string> history = fence_.History();
    if (history.ok() && history.value() != history_) {
      return Error(ErrorCode::kFenced,
                   "the database is another copy than before: what it acknowledged may be gone");
    }
    if (!renewed.ok()) return renewed;
    if (!history.ok()) return history.error();
    lease_.Renewed(sent);
    lease_until_.store(lease_.until().count(), std::memory_order_release);
    if (fenced_) lease_until_ = 0;  // By Global, meanwhile.
    return {};
  }

  void KeepLease() {
    SetThreadName("lease");
    auto due = options_.clock->Now() + options_.lease.renew_period();
    while (true) {
      bool look = false;
      {
        const MutexLock lock(mutex_);
        while (!stop_lease_ && !terms_wanted_ && options_.clock->WaitUntil(wake_, mutex_, due)) {
        }
        if (stop_lease_) return;
        look = std::exchange(terms_wanted_, false);
      }
      if (look) ReadTerms();
      if (options_.clock->Now() < due) continue;
      // The period counts from here: a database that answers slowly must not cost the lease.
      const auto sent = options_.clock->Now();
      const Result<void> renewed = Renew();
      if (!renewed.ok() && renewed.error().code() == ErrorCode::kFenced) {
        Fenced(renewed.error().message());
        return;
      }
      const auto now = options_.clock->Now();
      EndLeasesOfPredecessors(now);
      due = sent + options_.lease.renew_period();
      if (renewed.ok()) {
        trouble_.Over(now);
      } else {
        due = now + trouble_.Failed(renewed.error().message(), now, sent);
      }
      if (Result<std::map<std::int32_t, std::int64_t>> terms = fence_.Terms(); terms.ok()) {
        for (const auto& [shard, term] : terms.value()) {
          const auto index = static_cast<std::size_t>(shard);
          if (index < shards_.size()) shards_[index]->OnTerm(term);
        }
      }
    }
  }

  // A session has met a Global and wants to know whether it is that of the database.
  void LookUpTerms() {
    const MutexLock lock(mutex_);
    terms_wanted_ = true;
    wake_.NotifyAll();
  }

  void ReadTerms() {
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      shards_[shard]->OnTermRow(fence_.ReadTerm(static_cast<std::int32_t>(shard)));
    }
  }

  // A Global does it where there is one. Nobody else could use this database anew otherwise.
  void EndLeasesOfPredecessors(std::chrono::nanoseconds now) {
    if (!options_.shards.empty() || predecessors_over_) return;
    const Result<std::vector<LiveServer>> live = fence_.ListLive();
    if (!live.ok()) return;
    std::vector<LiveServer> fenced;
    for (const LiveServer& one : live.value()) {
      if (one.fenced && one.server_id == options_.server_id) fenced.push_back(one);
    }
    for (const LiveServer& one : predecessors_.Look(now, fenced).over) {
      (void)fence_.LeaseOver(one.server_id, one.epoch);
    }
    predecessors_over_ = fenced.empty();
  }

  void StopLease() {
    {
      const MutexLock lock(mutex_);
      stop_lease_ = true;
      wake_.NotifyAll();
    }
    for (std::thread* thread : {&lease_thread_, &shards_thread_}) {
      if (thread->joinable() && thread->get_id() != std::this_thread::get_id()) thread->join();
    }
  }

  // False: not stopped meanwhile.
  bool StoppedWithin(std::chrono::nanoseconds time) {
    const auto until = options_.clock->Now() + time;
    const MutexLock lock(mutex_);
    while (!stop_lease_ && options_.clock->WaitUntil(wake_, mutex_, until)) {
    }
    return stop_lease_;
  }

  // Rule 63: as long as a Global is out of sight, everything is saved again and again, and its
  // rights are given up when it says that others need them.
  void WatchShards(Engine& engine) {
    SetThreadName("passive");
    std::chrono::nanoseconds save_due{0};
    while (!StoppedWithin(kLookPeriod)) {
      const bool lost = std::any_of(shards_.begin(), shards_.end(),
                                    [](const auto& shard) { return shard->out_of_sight(); });
      if (!lost || fenced_) {
        save_due = std::chrono::nanoseconds(0);
        continue;
      }
      if (options_.clock->Now() >= save_due) {
        if (const Result<void> saved = engine.CheckpointNow(); !saved.ok()) {
          ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                                 "a Global is out of sight, and what was done is not saved: {}",
                                 saved.error().message());
        }
        save_due = options_.clock->Now() + kSavePeriod;
      }
      if (const Result<std::map<std::int32_t, std::int64_t>> wanted = fence_.Wanted();
          wanted.ok()) {
        for (const auto& [shard, term] : wanted.value()) {
          const auto index = static_cast<std::size_t>(shard);
          if (index < shards_.size()) shards_[index]->OnWanted(term);
        }
      }
      for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
        if (const std::optional<YieldMark> mark = shards_[shard]->DueYield()) Yield(shard, *mark);
      }
    }
  }

  // Rule 65.
  void Yield(std::size_t shard, const YieldMark& mark) {
    ZEZE_LOG_WARNING(
        "Global {} is out of sight, and other servers need records that this server has from it: "
        "they are saved and given up",
        shard);
    const auto stopping = [this] { return StoppedWithin(std::chrono::nanoseconds(0)); };
    if (!shards_[shard]->GiveUpRights(stopping)) return;
    while (true) {
      const Result<void> written = fence_.Yield(static_cast<std::int32_t>(shard), mark);
      if (written.ok()) break;
      if (written.error().code() == ErrorCode::kFenced) {
        Fenced(written.error().message());
        return;
      }
      if (StoppedWithin(kLookPeriod)) return;
    }
    ZEZE_LOG_WARNING(
        "everything of Global {} is saved and given up; this server goes on when it "
        "reaches it again",
        shard);
    shards_[shard]->Yielded();
  }

  // A process that has not ended in order has this server id: starting fences it.
  std::optional<LiveServer> FindNamesake() {
    const Result<std::vector<LiveServer>> live = fence_.ListLive();
    if (!live.ok()) return std::nullopt;  // Start says what is wrong.
    for (const LiveServer& one : live.value()) {
      if (one.server_id == options_.server_id && !one.fenced) return one;
    }
    return std::nullopt;
  }

  static void WarnOf(const LiveServer& namesake) {
    ZEZE_LOG_WARNING(
        "server id {} is in use: {} (epoch {}) has it and did not end in order. If that process "
        "is dead, this server takes its place; if it lives, it is fenced now and ends: give one "
        "of the two another serverId",
        namesake.server_id, namesake.holder.empty() ? "a process" : namesake.holder,
        namesake.epoch);
  }

  void Fenced(const std::string& why) {
    if (fenced_.exchange(true)) return;
    lease_until_ = 0;
    TellFenced(why);
  }

  // Global does not know which process has the place of this one; the database does. Nothing is
  // done with the lease any more while it is asked.
  void FencedByGlobal(const std::string& why) {
    if (fenced_.exchange(true)) return;
    lease_until_ = 0;
    const Result<void> renewed = fence_.Renew();
    const bool told = !renewed.ok() && renewed.error().code() == ErrorCode::kFenced;
    TellFenced(told ? fmt::format("{}: {}", why, renewed.error().message()) : why);
  }

  void TellFenced(const std::string& why) {
    ZEZE_LOG_ERROR("this server (id {}, epoch {}) is fenced: {}", options_.server_id, epoch_, why);
    if (options_.on_fenced) options_.on_fenced(why);
  }

  IoThreads& io_;
  Fence& fence_;
  const GlobalClientOptions options_;
  Lease lease_;  // The lease thread's, once it runs.
  Trouble trouble_;
  SilenceWatch predecessors_{options_.lease};  // The lease thread's, as the next.
  bool predecessors_over_ = false;
  std::atomic<std::int64_t> lease_until_ = 0;
  std::atomic<bool> fenced_ = false;
  std::int64_t epoch_ = 0;
  std::string history_;  // Of the database, at the start.
  const std::string secret_ = NewSecret();
  bool stopped_ = false;
  std::vector<std::unique_ptr<ShardSession>> shards_;
  Mutex mutex_;
  CondVar wake_;
  bool stop_lease_ ZEZE_GUARDED_BY(mutex_) = false;
  bool terms_wanted_ ZEZE_GUARDED_BY(mutex_) = false;
  std::thread lease_thread_;
  std::thread shards_thread_;
};

GlobalClient::GlobalClient(IoThreads& io, Fence& fence, GlobalClientOptions options)
    : impl_(std::make_unique<Impl>(io, fence, std::move(options))) {}

GlobalClient::~GlobalClient() = default;

Result<void> GlobalClient::Start(Engine& engine, const std::string& exclusive_for) {
  return impl_->Start(engine, exclusive_for);
}

Result<void> GlobalClient::Share() {
  return impl_->Share();
}

Result<void> GlobalClient::Stop() {
  return impl_->Stop();
}

void GlobalClient::Abandon() {
  impl_->Abandon();
}

std::int64_t GlobalClient::epoch() const {
  return impl_->epoch();
}

bool GlobalClient::unfenced() const {
  return impl_->unfenced();
}

Result<void> GlobalClient::Acquire(std::string_view key, Right wanted, FreshRights& fresh,
                                   FunctionRef<void(Right granted)> install) {
  ShardSession* shard = impl_->ShardOf(key);
  if (shard != nullptr) return shard->Acquire(key, wanted, fresh, install);
  install(Right::kModify);
  return {};
}

void GlobalClient::AcquireAll(std::span<const Wish> wishes, FreshRights& fresh,
                              FunctionRef<void(std::size_t index, Right granted)> install) {
  const std::size_t shards = impl_->shard_count();
  if (shards == 0) {
    for (std::size_t i = 0; i < wishes.size(); ++i) install(i, Right::kModify);
    return;
  }
  const std::string& first =
      std::min_element(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
        return a.key < b.key;
      })->key;
  for (const std::string& held : fresh.keys) {  // As in Acquire (rule 21).
    if (held > first) impl_->ShardOf(held)->Used(held);
  }
  for (std::size_t begin = 0; begin < wishes.size(); begin += kWishesAtOnce) {
    const std::size_t end = std::min(begin + kWishesAtOnce, wishes.size());
    std::vector<std::vector<std::size_t>> which(shards);
    for (std::size_t i = begin; i < end; ++i) {
      which[impl_->ShardIndexOf(wishes[i].key)].push_back(i);
    }
    std::vector<std::size_t> open(shards);
    for (std::size_t shard = 0; shard < shards; ++shard) {
      if (which[shard].empty()) continue;
      impl_->shard(shard).AskForAll(wishes, which[shard], install, open[shard]);
    }
    for (std::size_t shard = 0; shard < shards; ++shard) impl_->shard(shard).AwaitAll(open[shard]);
  }
}

void GlobalClient::Used(FreshRights& fresh) {
  for (const std::string& key : fresh.keys) impl_->ShardOf(key)->Used(key);
}

void GlobalClient::Release(std::string_view key) {
  if (ShardSession* shard = impl_->ShardOf(key)) shard->Release(key);
}

bool GlobalClient::LeaseValid() {
  return impl_->LeaseValid();
}

}  // namespace zeze::global
