#include "zeze/components/delay_remove/delay_remove.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/DelayRemove.h"
#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/collections/queue/any_queue.h"
#include "zeze/components/collections/queue/held_bean.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/config/config.h"
#include "zeze/config/section.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/patient_call.h"
#include "zeze/transaction/table_base.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;
using Zeze::Builtin::DelayRemove::BJob;
using Zeze::Builtin::DelayRemove::BRemoval;
using Zeze::Builtin::DelayRemove::BRemovalKey;

constexpr milliseconds kDelayMax = std::chrono::hours(24 * 36525);
constexpr milliseconds kUsualDelay = std::chrono::hours(24 * 7);
// Clocks of servers may differ so much.
constexpr milliseconds kClockErrorMax = std::chrono::hours(1);

milliseconds NowMs(const Engine& engine) {
  return std::chrono::duration_cast<milliseconds>(
      engine.options().clock->SystemNow().time_since_epoch());
}

bool IsDelay(milliseconds delay) {
  return delay > milliseconds(0) && delay <= kDelayMax;
}

// By less than an eighth.
milliseconds RoundUp(milliseconds delay) {
  const auto count = static_cast<std::uint64_t>(delay.count());
  const std::uint64_t unit = std::max<std::uint64_t>(std::bit_floor(count) / 8, 1);
  return milliseconds((count + unit - 1) / unit * unit);
}

// No two removals share one, however far apart; never 0.
std::int64_t NewSerial() {
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }()};
  return static_cast<std::int64_t>(random() >> 1 | 1);
}

Error Failed(const std::string& what, std::int64_t code) {
  return Error(ErrorCode::kUnavailable, fmt::format("{} failed with code {}", what, code));
}

}  // namespace

DelayRemove::DelayRemove(Queues& queues, DelayRemoveOptions options)
    : queues_(queues), options_(options), delay_(options_.delay.value_or(kUsualDelay)) {}

DelayRemove::~DelayRemove() = default;

void DelayRemove::Serve(TableBase& table, Rewrites rewrites) {
  table.SetLaterRemoval(*this, rewrites == Rewrites::kCancel);
}

void DelayRemove::OnJob(std::string name, JobHandler handler) {
  ZEZE_REQUIRE(application_ == nullptr,
               fmt::format("the handler of job '{}' comes after the start: call OnJob before "
                           "Application::Start",
                           name));
  ZEZE_REQUIRE(!name.empty(), "a job needs a name");
  ZEZE_REQUIRE(handler != nullptr, fmt::format("the handler of job '{}' is empty", name));
  const auto [at, added] = handlers_.emplace(std::move(name), std::move(handler));
  ZEZE_REQUIRE(added, fmt::format("job '{}' has a handler already", at->first));
}

Result<void> DelayRemove::CheckOptions() const {
  if (!IsDelay(delay_)) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("a delay of {} ms for removals: expected 1 ms to 100 years", delay_.count()));
  }
  const bool hours_good = !hours_ || (hours_->start >= 0 && hours_->start <= 24 &&
                                      hours_->end >= 0 && hours_->end <= 24);
  if (!hours_good) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("removals from hour {} to {}: expected 0 to 24", hours_->start, hours_->end));
  }
  if (options_.batch == 0 || options_.batches_in_step == 0 || options_.job_steps == 0) {
    return Error(ErrorCode::kInvalidArgument, "removals in batches of 0");
  }
  if (options_.step_period.count() <= 0) {
    return Error(ErrorCode::kInvalidArgument,
                 "DelayRemoveOptions::step_period must be greater than zero");
  }
  return {};
}

Result<void> DelayRemove::Open(Engine& engine, std::int32_t server_id) {
  if (Result<void> good = CheckOptions(); !good.ok()) return good;
  server_id_ = server_id;
  // Others find this server's queues by it.
  const std::int64_t code = PatientCall(engine, "DelayRemove.Open", [&](Transaction& tx) {
    if (!tJobs.Contains(tx, server_id)) tJobs.Put(tx, server_id, Jobs());
    return result_code::kSuccess;
  });
  if (code != result_code::kSuccess) return Failed("the start of delayed removal", code);
  return {};
}

// --- inside a transaction -------------------------------------------------------------------

// The queue of the usual delay has the name that Zeze 1.6 gives it.
AnyQueue DelayRemove::QueueOf(std::int32_t server_id, milliseconds delay) {
  std::string name = fmt::format("__GCTableQueue#{}", server_id);
  if (delay != milliseconds(0)) name += fmt::format("@{}", delay.count());
  return {queues_, std::move(name)};
}

// Returns the delay of the queue for removals after `delay`: the same while there are few, so that
// what is added last is due last. Otherwise a longer one, of which there are a few hundred.
milliseconds DelayRemove::NoteDelay(Transaction& tx, milliseconds delay) {
  const Jobs* known = tJobs.Get(tx, server_id_);
  if (known != nullptr && known->Delays.Contains(delay.count())) return delay;
  if (known != nullptr && known->Delays.size() >= options_.delays_max) {
    delay = RoundUp(delay);
    if (known->Delays.Contains(delay.count())) return delay;
  }
  tJobs.GetOrAdd(tx, server_id_)->Delays.Add(delay.count());
  return delay;
}

void DelayRemove::RemoveLater(Transaction& tx, TableBase& table, std::string encoded_key,
                              milliseconds delay) {
  if (delay == delay_) delay = milliseconds(0);
  milliseconds queue = delay;
  if (delay != milliseconds(0)) {
    if (!IsDelay(delay)) {
      throw std::invalid_argument(
          fmt::format("a removal after {} ms: expected 1 ms to 100 years", delay.count()));
    }
    queue = NoteDelay(tx, delay);
  }
  Entry entry{.TableName = table.name(),
              .EncodedKey = Binary{encoded_key},
              .EnqueueTime = NowMs(tx.engine()).count(),
              .Delay = (delay == milliseconds(0) ? delay_ : delay).count()};
  if (table.tells_writes()) {
    entry.Serial = NewSerial();
    tRemovals.Put(tx, BRemovalKey{.TableId = table.id(), .EncodedKey = Binary{encoded_key}},
                  BRemoval{.Serial = entry.Serial});
  }
  QueueOf(server_id_, queue).Add(tx, AnyBean::Of(entry));
}

void DelayRemove::Written(Transaction& tx, TableBase& table, std::string encoded_key) {
  const BRemovalKey key{.TableId = table.id(), .EncodedKey = Binary{std::move(encoded_key)}};
  if (tRemovals.Contains(tx, key)) tRemovals.Remove(tx, key);
}

void DelayRemove::StartJob(Transaction& tx, const std::string& handler, std::string state) {
  if (!handlers_.contains(handler)) {
    throw std::logic_error(fmt::format("job '{}' has no handler: call OnJob before", handler));
  }
  const auto jobs = tJobs.GetOrAdd(tx, server_id_);
  if (jobs->Jobs.size() >= options_.jobs_max) {
    throw std::runtime_error(fmt::format("job '{}': {} jobs are waiting, which is the most",
                                         handler, jobs->Jobs.size()));
  }
  jobs->Jobs.Put(fmt::format("@{}", ++jobs->LastJobId),
                 BJob{.JobHandleName = handler,
                      .JobState = Binary{std::move(state)},
                      .StepTime = NowMs(tx.engine()).count()});
  tx.AfterCommit([this] {
    Application* application = application_.load();
    if (application == nullptr) return;
    application->scheduler().After({}, Task("DelayRemove.Jobs", [this] { RunScheduled(); }));
  });
}

std::int64_t DelayRemove::Pending(Transaction& tx, std::int32_t server_id) {
  std::int64_t sum = QueueOf(server_id, milliseconds(0)).Size(tx);
  const Jobs* jobs = tJobs.Get(tx, server_id);
  if (jobs == nullptr) return sum;
  for (const std::int64_t delay : jobs->Delays) {
    sum += QueueOf(server_id, milliseconds(delay)).Size(tx);
  }
  return sum;
}

// --- collection -----------------------------------------------------------------------------

// Nothing leaves the queue without its record: what cannot be dealt with goes behind the last, as
// if it were removed now.
void DelayRemove::Park(Transaction& tx, AnyQueue& queue, Entry entry, std::string why,
                       Batch& batch) {
  entry.EnqueueTime = NowMs(tx.engine()).count();
  queue.Add(tx, AnyBean::Of(entry));
  ++batch.parked;
  batch.parked_why = std::move(why);
}

void DelayRemove::DealWith(Transaction& tx, AnyQueue& queue, Entry entry, Batch& batch) {
  TableBase* table = tx.engine().FindTable(entry.TableName);
  if (table == nullptr) {
    std::string why = "this process has no table " + entry.TableName;
    Park(tx, queue, std::move(entry), std::move(why), batch);
    return;
  }
  if (entry.Serial != 0) {
    const BRemovalKey key{.TableId = table->id(), .EncodedKey = entry.EncodedKey};
    const BRemoval* removal = tRemovals.Get(tx, key);
    if (removal == nullptr || removal->Serial != entry.Serial) {
      ++batch.cancelled;
      return;
    }
    tRemovals.Remove(tx, key);
  }
  const Result<bool> removed = table->RemoveEncoded(tx, entry.EncodedKey.bytes);
  if (!removed.ok()) {
    Park(tx, queue, std::move(entry), removed.error().message(), batch);
    return;
  }
  if (removed.value()) ++batch.removed;
}

DelayRemove::Batch DelayRemove::CollectIn(Transaction& tx, AnyQueue& queue, const Wait& wait,
                                          std::size_t entries_max) {
  Batch batch;
  const milliseconds now = NowMs(tx.engine());
  for (; batch.dealt < entries_max; ++batch.dealt) {
    const std::optional<AnyQueueEntry> first = queue.Peek(tx);
    if (!first) break;
    Entry entry = HeldBean<Entry>(first->value, queue.name());
    const milliseconds enqueued(entry.EnqueueTime);
    // By a clock that was wrong; it would hold up all behind it.
    const bool from_the_future = enqueued > now + kClockErrorMax;
    // What was promised counts: others may have other options.
    const milliseconds delay = entry.Delay > 0 ? milliseconds(entry.Delay) : wait.delay;
    if (!from_the_future && enqueued > now - delay - wait.grace) break;
    queue.Poll(tx);
    if (from_the_future) {
      Park(tx, queue, std::move(entry), "it was removed in the future", batch);
    } else {
      DealWith(tx, queue, std::move(entry), batch);
    }
  }
  return batch;
}

bool DelayRemove::CollectBatch(Engine& engine, AnyQueue& queue, const Wait& wait,
                               std::size_t entries_max, Batch& batch) {
  const std::int64_t code = engine.Call("DelayRemove.Collect", [&](Transaction& tx) {
    batch = CollectIn(tx, queue, wait, entries_max);
    return result_code::kSuccess;
  });
  if (code != result_code::kSuccess) return false;
  removed_ += batch.removed;
  cancelled_ += batch.cancelled;
  parked_ += batch.parked;
  if (batch.parked > 0) {
    ZEZE_LOG_WARNING("{} delayed removals in {} are put off: {}", batch.parked, queue.name(),
                     batch.parked_why);
  }
  return true;
}

// A batch that fails is done one by one, and the one that fails is put off.
Result<std::size_t> DelayRemove::Collect(Engine& engine, AnyQueue queue, const Wait& wait) {
  std::size_t sum = 0;
  for (std::size_t n = 0; n < options_.batches_in_step; ++n) {
    Batch batch;
    if (CollectBatch(engine, queue, wait, options_.batch, batch)) {
      sum += batch.dealt;
      if (batch.dealt < options_.batch) return sum;
      continue;
    }
    for (std::size_t i = 0; i < options_.batch; ++i) {
      if (CollectBatch(engine, queue, wait, 1, batch)) {
        sum += batch.dealt;
        if (batch.dealt == 0) return sum;
        continue;
      }
      const std::int64_t code = engine.Call("DelayRemove.Park", [&](Transaction& tx) {
        const std::optional<AnyQueueEntry> first = queue.Poll(tx);
        if (!first) return result_code::kSuccess;
        Park(tx, queue, HeldBean<Entry>(first->value, queue.name()), "", batch);
        return result_code::kSuccess;
      });
      if (code != result_code::kSuccess) return Failed("collecting " + queue.name(), code);
      ++parked_;
      ZEZE_LOG_WARNING("a delayed removal in {} fails and is put off", queue.name());
    }
  }
  return sum;
}

Result<std::size_t> DelayRemove::StepOf(Engine& engine, std::int32_t server_id,
                                        milliseconds grace) {
  const Result<std::optional<Jobs>> jobs = tJobs.ReadCopy(server_id);
  if (!jobs.ok()) return jobs.error();
  std::size_t sum = jobs.value() ? RunJobs(engine, server_id, *jobs.value(), grace) : 0;
  if (!IsTime(engine)) return sum;
  std::vector<std::pair<milliseconds, milliseconds>> queues = {{milliseconds(0), delay_}};
  if (jobs.value()) {
    for (const std::int64_t delay : jobs.value()->Delays) queues.emplace_back(delay, delay);
  }
  for (const auto& [name, delay] : queues) {
    const Result<std::size_t> dealt =
        Collect(engine, QueueOf(server_id, name), {.delay = delay, .grace = grace});
    if (!dealt.ok()) return dealt;
    sum += dealt.value();
  }
  return sum;
}

Result<std::size_t> DelayRemove::Step(Engine& engine) {
  return StepOf(engine, server_id_, milliseconds(0));
}

// Safe whether the other server lives or not: every batch and every step of a job is a transaction.
// The grace only keeps two servers from doing the same work.
Result<std::size_t> DelayRemove::StepForOthers(Engine& engine) {
  std::vector<std::int32_t> others;
  const Result<std::size_t> walked = tJobs.WalkKeys([&](std::int32_t server_id) {
    if (server_id != server_id_) others.push_back(server_id);
    return true;
  });
  if (!walked.ok()) return walked.error();
  std::size_t sum = 0;
  for (const std::int32_t server_id : others) {
    const Result<std::size_t> done = StepOf(engine, server_id, options_.take_over_after);
    if (!done.ok()) return done;
    sum += done.value();
  }
  return sum;
}

// --- jobs -----------------------------------------------------------------------------------

// True: there is more to do.
bool DelayRemove::RunJobStep(Engine& engine, std::int32_t server_id, const std::string& id,
                             const JobHandler& handler, milliseconds grace) {
  bool more = false;
  bool done = false;
  const std::int64_t code = engine.Call("DelayRemove.Job", [&](Transaction& tx) {
    more = false;
    done = false;
    const milliseconds now = NowMs(engine);
    const Jobs* jobs = tJobs.Get(tx, server_id);
    const BJob* job = jobs == nullptr ? nullptr : jobs->Jobs.Find(id);
    if (job == nullptr) return result_code::kSuccess;
    const milliseconds stepped(job->StepTime);
    const bool waits = grace > milliseconds(0) && stepped > now - grace;
    if (waits && stepped <= now + kClockErrorMax) return result_code::kSuccess;
    BJob next = *job;
    more = handler(tx, next.JobState.bytes);
    done = true;
    next.StepTime = now.count();
    // Not before: the handler may have started jobs.
    const auto edited = tJobs.Edit(tx, server_id);
    if (more) {
      edited->Jobs.Put(id, std::move(next));
    } else {
      edited->Jobs.Erase(id);
    }
    return result_code::kSuccess;
  });
  if (code != result_code::kSuccess) {
    ZEZE_LOG_WARNING("a step of job {} of server {} failed with code {}: it is tried again", id,
                     server_id, code);
    return false;
  }
  if (done) ++job_steps_;
  return more;
}

std::size_t DelayRemove::RunJobs(Engine& engine, std::int32_t server_id, const Jobs& jobs,
                                 milliseconds grace) {
  std::size_t steps = 0;
  for (const auto& [id, job] : jobs.Jobs) {
    const auto handler = handlers_.find(job.JobHandleName);
    if (handler == handlers_.end()) {
      ZEZE_LOG_WARNING("job {} of server {} waits: nobody here handles '{}'", id, server_id,
                       job.JobHandleName);
      continue;
    }
    // Whoever has begun with another's job goes on without waiting again.
    milliseconds wait = grace;
    for (std::size_t n = 0; n < options_.job_steps; ++n) {
      const std::uint64_t before = job_steps_.load();
      const bool more = RunJobStep(engine, server_id, id, handler->second, wait);
      steps += job_steps_.load() != before ? 1 : 0;
      if (!more) break;
      wait = milliseconds(0);
    }
  }
  return steps;
}

// --- module ---------------------------------------------------------------------------------

DelayRemoveStatistics DelayRemove::statistics() const {
  return {.removed = removed_.load(),
          .cancelled = cancelled_.load(),
          .parked = parked_.load(),
          .job_steps = job_steps_.load()};
}

bool DelayRemove::IsTime(const Engine& engine) const {
  if (!hours_ || hours_->start == hours_->end) return true;
  const std::time_t now = std::chrono::system_clock::to_time_t(engine.options().clock->SystemNow());
  std::tm local{};
  localtime_r(&now, &local);
  const bool after_start = local.tm_hour >= hours_->start;
  const bool before_end = local.tm_hour < hours_->end;
  return hours_->start < hours_->end ? after_start && before_end : after_start || before_end;
}

// Many may want a step at a time; one thread makes it, and another one if it was wanted meanwhile.
void DelayRemove::RunScheduled() {
  if (steps_wanted_.fetch_add(1) > 0) return;
  int seen = 0;
  do {
    seen = steps_wanted_.load();
    StepOnce();
  } while (steps_wanted_.fetch_sub(seen) > seen);
}

void DelayRemove::StepOnce() {
  const MutexLock lock(step_mutex_);
  Application* application = application_.load();
  if (application == nullptr) return;
  Engine& engine = application->engine();
  Result<std::size_t> done = Step(engine);
  const std::chrono::nanoseconds now = engine.options().clock->Now();
  if (done.ok() && now >= others_due_) {
    others_due_ = now + options_.take_over_period;
    done = StepForOthers(engine);
  }
  if (!done.ok() && engine.running()) ZEZE_LOG_WARNING("{}", done.error().message());
}

Result<void> DelayRemove::Start(Application& application) {
  if (!queues_.started()) {
    return Error(ErrorCode::kInvalidArgument,
                 "delayed removal needs the module Queues: add it to the application before it");
  }
  hours_ = options_.hours;
  if (const Config* config = application.options().config.get()) {
    const ConfigSection& section = config->section;
    const std::int64_t days = section.Integer("DelayRemoveDays");
    if (!options_.delay && days > 0) delay_ = std::chrono::hours(24) * days;
    if (!hours_ && section.IsSet("DelayRemoveHourStart") && section.IsSet("DelayRemoveHourEnd")) {
      hours_ = {.start = static_cast<int>(section.Integer("DelayRemoveHourStart")),
                .end = static_cast<int>(section.Integer("DelayRemoveHourEnd"))};
    }
  }
  Result<void> opened = Open(application.engine(), application.options().server_id);
  if (!opened.ok()) return opened;
  application_ = &application;
  stepping_ = application.scheduler().Every(options_.step_period,
                                            Task("DelayRemove.Step", [this] { RunScheduled(); }));
  return {};
}

void DelayRemove::Stop(Application& /*application*/) {
  stepping_.Cancel();
  application_ = nullptr;
  const MutexLock lock(step_mutex_);  // A step that runs ends first.
}

}  // namespace zeze
