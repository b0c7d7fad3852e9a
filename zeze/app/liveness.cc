#include "zeze/app/liveness.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/text.h"
#include "zeze/base/thread_pool.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/bean/format.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using std::chrono::nanoseconds;

constexpr const char* kVariable = "ZEZE_LIVENESS_FD";

struct BProbe {
  static constexpr std::string_view kFullName = "zeze.BProbe";
  std::int64_t count = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "count"}, &BProbe::count);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BProbe&) const = default;
  std::string ToString() const { return FormatFields(*this); }
};

constexpr TableDescriptor kTable{.id = HashName32("zeze_liveness"),
                                 .name = "zeze_liveness",
                                 .full_name = "zeze.liveness",
                                 .memory = true,
                                 .no_schema = true};

// Neither waits nor, if nobody reads any more, raises SIGPIPE: the daemon passes a socket.
void Beat(int descriptor) {
  if (send(descriptor, "b", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN) return;
  ZEZE_LOG_WARNING_EVERY(std::chrono::minutes(1),
                         "{}: the daemon that started this process is gone", kVariable);
}

}  // namespace

std::string_view ToString(Liveness liveness) {
  switch (liveness) {
    case Liveness::kAlive:
      return "alive";
    case Liveness::kWaiting:
      return "waiting";
    case Liveness::kHung:
      return "hung";
    case Liveness::kUnknown:
      break;
  }
  return "unknown";
}

struct LivenessProbe::Impl {
  Impl(Engine& the_engine, const LivenessOptions& the_options, Clock& the_clock)
      : engine(the_engine), options(the_options), clock(the_clock) {}

  void Post(ThreadPool& pool);
  void Ran(std::int64_t code);
  void Look();
  void Run();
  // Notes whether checkpoints fail.
  void LookAtStorage(const CheckpointStatistics& checkpoint) ZEZE_REQUIRES(mutex);
  // Why a procedure would wait or be refused: none is tried. Empty: for no reason.
  std::string Blocked() const ZEZE_REQUIRES(mutex);
  // Why one has failed although this process works. Empty: for no reason known.
  std::string Excuse() const ZEZE_REQUIRES(mutex);
  LivenessStatus Judge(nanoseconds now) ZEZE_REQUIRES(mutex);

  Engine& engine;
  const LivenessOptions options;
  Clock& clock;
  // In memory, so that it needs neither Global nor the storage.
  Table<std::int32_t, BProbe> table{kTable};
  ThreadPool* workers = nullptr;
  int descriptor = -1;

  mutable Mutex mutex;
  CondVar changed;
  bool stopping ZEZE_GUARDED_BY(mutex) = false;
  bool stopped ZEZE_GUARDED_BY(mutex) = false;
  bool under_way ZEZE_GUARDED_BY(mutex) = false;
  nanoseconds last_success ZEZE_GUARDED_BY(mutex){0};
  std::uint64_t probes ZEZE_GUARDED_BY(mutex) = 0;
  std::uint64_t successes ZEZE_GUARDED_BY(mutex) = 0;
  std::uint64_t beaten ZEZE_GUARDED_BY(mutex) = 0;  // Successes that were told.
  std::int64_t last_code ZEZE_GUARDED_BY(mutex) = 0;
  // Of checkpoints.
  std::uint64_t flushes ZEZE_GUARDED_BY(mutex) = 0;
  std::uint64_t failed_flushes ZEZE_GUARDED_BY(mutex) = 0;
  bool storage_fails ZEZE_GUARDED_BY(mutex) = false;
  LivenessStatus status ZEZE_GUARDED_BY(mutex);
  std::thread thread;
};

void LivenessProbe::Impl::Ran(std::int64_t code) {
  const MutexLock lock(mutex);
  under_way = false;
  ++probes;
  last_code = code;
  if (code != result_code::kSuccess) return;
  last_success = clock.Now();
  ++successes;
}

void LivenessProbe::Impl::Post(ThreadPool& pool) {
  const Result<void> posted = pool.TryPost(Task("liveness probe", [this] {
    Ran(engine.Call("liveness probe", [this](Transaction& tx) {
      ++table.GetOrAdd(tx, 0)->count;
      return result_code::kSuccess;
    }));
  }));
  if (posted.ok()) return;
  const MutexLock lock(mutex);
  under_way = false;
}

void LivenessProbe::Impl::LookAtStorage(const CheckpointStatistics& checkpoint) {
  if (checkpoint.flushes != flushes) storage_fails = false;
  if (checkpoint.failed_flushes != failed_flushes) storage_fails = true;
  flushes = checkpoint.flushes;
  failed_flushes = checkpoint.failed_flushes;
}

std::string LivenessProbe::Impl::Blocked() const {
  if (stopping) return "it is stopping";
  if (!engine.LeaseValid()) return "its lease has expired: the database cannot be reached";
  if (engine.checkpoint().overloaded()) return "too much is unsaved";
  return {};
}

std::string LivenessProbe::Impl::Excuse() const {
  return storage_fails && !under_way ? "the storage fails" : "";
}

LivenessStatus LivenessProbe::Impl::Judge(nanoseconds now) {
  LivenessStatus judged;
  judged.since_success = now - last_success;
  const CheckpointStatistics checkpoint = engine.checkpoint().statistics();
  LookAtStorage(checkpoint);
  const std::string blocked = Blocked();
  const bool failed = last_code != 0 || judged.since_success > options.limit;
  const std::string excuse = blocked.empty() && failed ? Excuse() : blocked;
  if (checkpoint.running_for > options.checkpoint_limit) {
    judged.state = Liveness::kHung;
    judged.why = fmt::format(
        "a checkpoint has been running for {}",
        FormatDuration(std::chrono::duration_cast<std::chrono::seconds>(checkpoint.running_for)));
  } else if (!excuse.empty()) {
    judged.state = Liveness::kWaiting;
    judged.why = excuse;
  } else if (judged.since_success > options.limit) {
    judged.state = Liveness::kHung;
    judged.why = fmt::format(
        "no transaction has succeeded for {}{}",
        FormatDuration(std::chrono::duration_cast<std::chrono::seconds>(judged.since_success)),
        under_way ? ": all workers are busy, or one hangs" : "");
  }
  return judged;
}

void LivenessProbe::Impl::Look() {
  bool post = false;
  bool beat = false;
  {
    const MutexLock lock(mutex);
    status = Judge(clock.Now());
    beat = status.state == Liveness::kWaiting ||
           (status.state == Liveness::kAlive && successes != beaten);
    beaten = successes;
    post = !under_way && Blocked().empty();
    if (post) under_way = true;
  }
  if (beat && descriptor >= 0) Beat(descriptor);
  if (post) Post(*workers);
}

void LivenessProbe::Impl::Run() {
  SetThreadName("liveness");
  while (true) {
    Look();
    const MutexLock lock(mutex);
    const nanoseconds next = clock.Now() + options.period;
    while (!stopped && clock.WaitUntil(changed, mutex, next)) {
    }
    if (stopped) return;
  }
}

LivenessProbe::LivenessProbe(Engine& engine, const LivenessOptions& options, Clock& clock)
    : impl_(std::make_unique<Impl>(engine, options, clock)) {
  ZEZE_CHECK(engine.AddTable(impl_->table).ok());
}

LivenessProbe::~LivenessProbe() {
  Stop();
}

bool LivenessProbe::IsExpected() {
  return std::getenv(kVariable) != nullptr;  // NOLINT(concurrency-mt-unsafe): nobody sets it.
}

Result<void> LivenessProbe::Start(ThreadPool& workers) {
  impl_->workers = &workers;
  impl_->descriptor = impl_->options.descriptor;
  const char* text = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): nobody sets it.
  if (impl_->descriptor < 0 && text != nullptr) {
    const Result<std::int64_t> number = ParseInteger(text, 0, INT32_MAX);
    // What this process starts shall not speak for it.
    if (!number.ok() || fcntl(static_cast<int>(number.value()), F_SETFD, FD_CLOEXEC) != 0) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}={} is not an open descriptor", kVariable, text));
    }
    impl_->descriptor = static_cast<int>(number.value());
  }
  {
    const MutexLock lock(impl_->mutex);
    impl_->last_success = impl_->clock.Now();
  }
  if (impl_->options.start_thread) impl_->thread = std::thread([this] { impl_->Run(); });
  return {};
}

void LivenessProbe::BeginStop() {
  const MutexLock lock(impl_->mutex);
  impl_->stopping = true;
}

void LivenessProbe::Stop() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->stopped = true;
    impl_->changed.NotifyAll();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
}

LivenessStatus LivenessProbe::status() const {
  const MutexLock lock(impl_->mutex);
  LivenessStatus status = impl_->status;
  status.since_success = impl_->clock.Now() - impl_->last_success;
  status.probes = impl_->probes;
  status.successes = impl_->successes;
  return status;
}

void LivenessProbe::Look() {
  impl_->Look();
}

}  // namespace zeze
