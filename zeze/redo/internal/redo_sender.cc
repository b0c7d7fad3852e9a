#include "zeze/redo/internal/redo_sender.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/activity.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/text.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/redo/internal/redo_trouble.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/run_task.h"

namespace zeze {

namespace {

using std::chrono::nanoseconds;

// How many rows are read from the store in one step.
constexpr std::size_t kPageTasks = 512;
// How often the store learns what the server has done, while it does much.
constexpr nanoseconds kConfirmPeriod = std::chrono::milliseconds(50);
constexpr nanoseconds kAgeCheckPeriod = std::chrono::seconds(1);
// The thread that waits for answers decides when a call has failed, not a time-out of the call.
constexpr nanoseconds kNoTimeout = std::chrono::hours(24);

}  // namespace

RedoQueueClient::Sender::Sender(std::shared_ptr<RedoStore> store, RedoJournal& journal,
                                RedoQueueClientOptions options)
    : store_(std::move(store)),
      journal_(journal),
      options_(std::move(options)),
      clock_(store_->clock()),
      own_io_(options_.io == nullptr ? std::make_unique<IoThreads>(
                                           IoThreads::Options{.name = "redo-io", .clock = &clock_})
                                     : nullptr),
      service_(options_.io == nullptr ? *own_io_ : *options_.io,
               {.name = "RedoQueue",
                .handshake = HandshakeOptions{},
                .output_bytes_max = 2 * options_.window_bytes_max + 4 * kRedoParamBytesMax,
                .calls_max = options_.window_max + 16}) {
  done_id_ = journal_.position().confirmed_id;
  service_.OnClose([this](const ConnectionPtr& connection, const Error& why) {
    MutexLock lock(mutex_);
    if (connection != connection_) return;
    closed_ = true;
    close_reason_ = why.message();
    changed_.NotifyAll();
  });
  journal_.OnAdded([this] {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  thread_ = std::thread([this] { Run(); });
}

RedoQueueClient::Sender::~Sender() {
  std::shared_ptr<Connector> connector;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    connector = connector_;
  }
  if (connector != nullptr) connector->Stop();
  thread_.join();
  journal_.OnAdded(nullptr);
  service_.Stop();
}

Result<void> RedoQueueClient::Sender::CheckRoom() const {
  const std::int64_t backlog = journal_.added_id() - done_id_.load(std::memory_order_relaxed);
  if (backlog < options_.backlog_max) return {};
  return Error(ErrorCode::kOverloaded,
               fmt::format("redo queue '{}' has {} tasks that wait, the most that it may have: {}",
                           journal_.name(), backlog, GetStatus().trouble));
}

Result<void> RedoQueueClient::Sender::WaitDone(std::int64_t id, nanoseconds patience) {
  const nanoseconds deadline = clock_.Now() + patience;
  MutexLock lock(mutex_);
  while (!asked_ || done_id_.load(std::memory_order_relaxed) < id) {
    if (!clock_.WaitUntil(done_changed_, mutex_, deadline)) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("redo queue '{}': task {} is not done yet, the last one that is "
                               "done is {}{}{}",
                               journal_.name(), id, done_id_.load(), trouble_.empty() ? "" : ": ",
                               trouble_));
    }
  }
  return {};
}

RedoStatus RedoQueueClient::Sender::GetStatus() const {
  RedoStatus status;
  {
    MutexLock lock(mutex_);
    status.state = state_;
    status.in_flight = in_flight_.size();
    status.one_at_a_time = connection_ != nullptr && !pipelined_;
    status.refusals = refusals_;
    status.server = connection_ != nullptr ? server_ : "";
    status.trouble = trouble_;
  }
  status.position = journal_.position();
  status.position.confirmed_id = done_id_.load();
  status.oldest_age = journal_.AgeBehind(status.position.confirmed_id);
  return status;
}

void RedoQueueClient::Sender::Retry() {
  MutexLock lock(mutex_);
  retry_ = true;
  changed_.NotifyAll();
}

void RedoQueueClient::Sender::Run() {
  SetThreadName("redo-sender");
  Next next = Next::kReconnect;
  while (!stopping()) {
    if (!connected()) {
      next = Connect() ? Next::kAsk : Next::kReconnect;
    } else if (next == Next::kAsk) {
      next = Ask();
    } else if (next == Next::kStream) {
      next = Stream();
    }
    if (next == Next::kReconnect) Disconnect();
    if (next == Next::kHalt) {
      Wait(options_.delay_max);
      next = Next::kAsk;
    } else if (next == Next::kBackOff || next == Next::kReconnect) {
      BackOff();
      next = Next::kAsk;
    }
  }
  Disconnect();
  LogIfFailed(journal_.Confirm(done_id_, saved_id_));
}

bool RedoQueueClient::Sender::stopping() const {
  MutexLock lock(mutex_);
  return stopping_;
}

bool RedoQueueClient::Sender::connected() const {
  MutexLock lock(mutex_);
  return connection_ != nullptr;
}

bool RedoQueueClient::Sender::Connect() {
  const RedoServerAddress& address = options_.servers[server_index_];
  SetState(RedoState::kConnecting);
  std::shared_ptr<Connector> connector = service_.Connect({.host = address.host,
                                                           .port = address.port,
                                                           .reconnect = false,
                                                           .tls = options_.tls,
                                                           .tls_name = options_.tls_name});
  {
    MutexLock lock(mutex_);
    connector_ = connector;
    if (stopping_) return false;
  }
  Result<ConnectionPtr> connection = connector->WaitReady(options_.answer_timeout);
  MutexLock lock(mutex_);
  if (!connection.ok()) {
    trouble_ =
        fmt::format("cannot connect to {}: {}", connector->name(), connection.error().message());
    ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(30), "redo queue '{}': {}", journal_.name(),
                           trouble_);
    return false;
  }
  connection_ = connection.value();
  server_ = connector->name();
  closed_ = !connection_->IsOpen();
  return true;
}

void RedoQueueClient::Sender::Disconnect() {
  std::shared_ptr<Connector> connector;
  {
    MutexLock lock(mutex_);
    connector = std::exchange(connector_, nullptr);
    connection_ = nullptr;
    closed_ = false;
    asked_ = false;
    Forget();
  }
  if (connector != nullptr) connector->Stop();
  server_index_ = (server_index_ + 1) % options_.servers.size();
}

void RedoQueueClient::Sender::Forget() {
  ++flight_;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  output_full_ = false;
  replies_.clear();
}

void RedoQueueClient::Sender::BackOff() {
  failures_ = std::min(failures_ + 1, 30);
  const double factor = 0.75 + static_cast<double>(service_.io().Random() % 512) / 1024;
  nanoseconds delay = options_.first_delay;
  for (int i = 1; i < failures_ && delay < options_.delay_max; ++i) delay *= 2;
  delay = std::min(delay, options_.delay_max);
  Wait(std::chrono::duration_cast<nanoseconds>(delay * factor));
}

void RedoQueueClient::Sender::Wait(nanoseconds delay) {
  CheckAge();
  const nanoseconds until = clock_.Now() + delay;
  MutexLock lock(mutex_);
  while (!stopping_ && !retry_ && clock_.WaitUntil(changed_, mutex_, until)) {
  }
  retry_ = false;
}

// --- Asking ---

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Ask() {
  ConnectionPtr connection;
  {
    MutexLock lock(mutex_);
    Forget();
    connection = connection_;
  }
  const redo::Task question{.queue = journal_.name(),
                            .prev_task_id = redo::kOnlyAsk,
                            .store_id = store_->id(),
                            .adopt = journal_.position().adopted_id >= 0};
  Result<RpcReply<redo::RunTask>> reply =
      connection->CallAndWait<redo::RunTask>(question, {.timeout = options_.answer_timeout});
  if (stopping()) return Next::kReconnect;
  if (!reply.ok()) return Trouble(Next::kReconnect, reply.error().message());
  if (reply.value().outcome != RpcOutcome::kAnswered) {
    return Trouble(Next::kReconnect,
                   fmt::format("{} does not say how far the queue is", server_name()));
  }
  const redo::Answer& answer = reply.value().result;
  if (redo::HaltsQueue(reply.value().result_code)) return Halt(reply.value().result_code, answer);
  if (reply.value().result_code != result_code::kErrorRequestId) {
    return Trouble(Next::kBackOff, fmt::format("{} answers the question how far the queue is "
                                               "with code {}",
                                               server_name(), reply.value().result_code));
  }
  return Judge(answer);
}

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Judge(const redo::Answer& answer) {
  const RedoPosition at = journal_.position();
  const std::int64_t last = answer.task_id;
  if (!at.bound && last > 0) return Halt(redo::code::kOtherStore, answer);
  if (last > at.added_id) {
    return Halt(
        answer.store_id == store_->id() ? redo::code::kOtherHistory : redo::code::kOtherStore,
        answer);
  }
  if (last < at.floor_id) {
    return Halt(RedoAlarmKind::kTooOld, redo::ExplainTooOld(server_name(), last, at.floor_id));
  }
  Result<std::optional<std::int64_t>> chain = journal_.ChainAt(last);
  if (!chain.ok()) return StoreTrouble(chain.error());
  const bool ours = answer.version > 0;
  if (answer.chain != 0 && last > 0 && answer.chain != chain.value().value_or(0)) {
    return Halt(redo::code::kOtherHistory, answer);
  }
  if (Result<void> bound = journal_.Bind(); !bound.ok()) return StoreTrouble(bound.error());
  const std::int64_t known = std::max(at.confirmed_id, done_id_.load());
  if (last < known) {
    Raise({.kind = RedoAlarmKind::kRolledBack,
           .queue = journal_.name(),
           .text = fmt::format("{} had done tasks up to {} and now says {}: its database is "
                               "older. Tasks from {} on are sent again",
                               server_name(), known, last, last + 1)});
  } else {
    Over(RedoAlarmKind::kRolledBack);
  }
  for (const RedoAlarmKind kind : {RedoAlarmKind::kTooOld, RedoAlarmKind::kOtherStore,
                                   RedoAlarmKind::kOtherHistory, RedoAlarmKind::kStoreFailed}) {
    Over(kind);
  }
  saved_id_ = ours ? std::optional(answer.saved_task_id) : std::nullopt;
  sent_id_ = last;
  server_last_ = last;
  sent_chain_ = chain.value().value_or(0);
  MutexLock lock(mutex_);
  pipelined_ = ours;
  asked_ = true;
  SetDone(last);
  return Next::kStream;
}

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Halt(std::int64_t code,
                                                            const redo::Answer& answer) {
  return Halt(
      code == redo::code::kOtherStore ? RedoAlarmKind::kOtherStore : RedoAlarmKind::kOtherHistory,
      redo::ExplainHalt(code, server_name(), answer.task_id));
}

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Halt(RedoAlarmKind kind,
                                                            const std::string& text) {
  {
    MutexLock lock(mutex_);
    state_ = RedoState::kHalted;
    asked_ = false;
    trouble_ = text;
  }
  Raise({.kind = kind, .queue = journal_.name(), .text = text});
  return Next::kHalt;
}

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Trouble(Next next, std::string text) {
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(30), "redo queue '{}': {}", journal_.name(), text);
  MutexLock lock(mutex_);
  state_ = RedoState::kRetrying;
  trouble_ = std::move(text);
  return next;
}

RedoQueueClient::Sender::Next RedoQueueClient::Sender::StoreTrouble(const Error& error) {
  Raise({.kind = RedoAlarmKind::kStoreFailed, .queue = journal_.name(), .text = error.message()});
  return Trouble(Next::kBackOff, error.message());
}

// --- Sending ---

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Stream() {
  SetState(RedoState::kSending);
  const nanoseconds begin = clock_.Now();
  answered_at_ = begin;
  confirmed_at_ = nanoseconds(0);
  while (true) {
    if (const std::optional<Next> next = TakeReplies(); next.has_value()) {
      // What is done stays done, whatever comes next.
      ConfirmNow();
      return *next;
    }
    Result<bool> sent = Fill();
    if (!sent.ok()) return StoreTrouble(sent.error());
    const bool idle = Idle();
    if (idle || clock_.Now() >= confirmed_at_ + kConfirmPeriod) ConfirmNow();
    CheckAge();
    if (idle && clock_.Now() >= begin + options_.ask_period) return Next::kAsk;
    if (const std::optional<Next> next = AwaitEvent(begin); next.has_value()) return *next;
  }
}

bool RedoQueueClient::Sender::Idle() const {
  MutexLock lock(mutex_);
  return in_flight_.empty() && sent_id_ >= journal_.added_id();
}

bool RedoQueueClient::Sender::MaySend() const {
  return !closed_ && in_flight_.size() < Window() && in_flight_bytes_ < options_.window_bytes_max &&
         sent_id_ < journal_.added_id() && !output_full_;
}

std::optional<RedoQueueClient::Sender::Next> RedoQueueClient::Sender::AwaitEvent(
    nanoseconds begin) {
  MutexLock lock(mutex_);
  while (true) {
    if (stopping_) return Next::kReconnect;
    if (!replies_.empty()) return std::nullopt;
    if (closed_) {
      trouble_ = fmt::format("{} closed the connection: {}", server_, close_reason_);
      return Next::kReconnect;
    }
    if (MaySend()) return std::nullopt;
    const nanoseconds now = clock_.Now();
    nanoseconds deadline = begin + options_.ask_period;
    if (!in_flight_.empty()) {
      deadline = answered_at_ + options_.answer_timeout;
      if (now >= deadline) {
        state_ = RedoState::kRetrying;
        window_ = 1;
        trouble_ = fmt::format("{} has not answered for {}, task {} waits", server_,
                               FormatDuration(options_.answer_timeout), in_flight_.front().id);
        ZEZE_LOG_WARNING("redo queue '{}': {}", journal_.name(), trouble_);
        return Next::kReconnect;
      }
    } else if (now >= deadline) {
      return std::nullopt;
    }
    deadline = std::min(deadline, now + kAgeCheckPeriod);
    if (!clock_.WaitUntil(changed_, mutex_, deadline)) return std::nullopt;
  }
}

Result<bool> RedoQueueClient::Sender::Fill() {
  bool any = false;
  while (true) {
    std::size_t room = 0;
    ConnectionPtr connection;
    {
      MutexLock lock(mutex_);
      if (!MaySend() || connection_ == nullptr) return any;
      room = std::min(Window() - in_flight_.size(), kPageTasks);
      connection = connection_;
    }
    Result<std::vector<RedoTask>> page = journal_.Read(sent_id_, room, options_.window_bytes_max);
    if (!page.ok()) return page.error();
    for (RedoTask& task : page.value()) {
      if (task.record.skip && !pipelined_) {
        // A server of Zeze 1.6 takes any id after its last one.
        sent_id_ = task.id;
        sent_chain_ = task.record.chain;
        continue;
      }
      if (!Send(*connection, task)) return any;
      any = true;
      MutexLock lock(mutex_);
      if (!MaySend()) break;
    }
  }
}

bool RedoQueueClient::Sender::Send(Connection& connection, RedoTask& task) {
  const std::size_t bytes = task.record.param.bytes.size();
  const std::int64_t id = task.id;
  redo::Task message{.queue = journal_.name(),
                     .type = task.record.type,
                     .task_id = id,
                     .param = std::move(task.record.param),
                     .prev_task_id = pipelined_ ? sent_id_.load() : server_last_,
                     .store_id = store_->id(),
                     .prev_chain = sent_chain_,
                     .park = task.record.skip,
                     .adopt = journal_.position().adopted_id == id - 1,
                     .added_ms = task.record.added_ms,
                     .backlog = journal_.added_id() - id};
  std::uint64_t flight = 0;
  {
    MutexLock lock(mutex_);
    if (in_flight_.empty()) answered_at_ = clock_.Now();
    in_flight_.push_back({id, bytes});
    in_flight_bytes_ += bytes;
    flight = flight_;
  }
  Result<void> sent = connection.Call<redo::RunTask>(
      message, {.timeout = kNoTimeout, .dispatch = Dispatch::kInline},
      [this, id, flight](const RpcReply<redo::RunTask>& reply) {
        MutexLock lock(mutex_);
        if (flight != flight_) return;
        replies_.push_back({id, reply});
        output_full_ = false;
        if (replies_.size() == 1) changed_.NotifyAll();
      });
  if (!sent.ok()) {
    // Closed, which OnClose says as well; or full, until an answer has come.
    MutexLock lock(mutex_);
    in_flight_.pop_back();
    in_flight_bytes_ -= bytes;
    output_full_ = sent.error().code() == ErrorCode::kOverloaded && !in_flight_.empty();
    if (!output_full_) closed_ = true;
    return false;
  }
  sent_id_ = id;
  sent_chain_ = task.record.chain;
  return true;
}

std::optional<RedoQueueClient::Sender::Next> RedoQueueClient::Sender::TakeReplies() {
  std::vector<Reply> replies;
  {
    MutexLock lock(mutex_);
    replies.swap(replies_);
  }
  if (replies.empty()) return std::nullopt;
  answered_at_ = clock_.Now();
  std::int64_t done = 0;
  std::optional<Next> next;
  for (const Reply& reply : replies) {
    next = Take(reply);
    if (next.has_value()) break;
    done = reply.id;
  }
  if (done > 0) {
    failures_ = 0;
    asked_in_vain_ = 0;
    Over(RedoAlarmKind::kTaskRefused);
  }
  MutexLock lock(mutex_);
  if (done > 0) {
    refusals_ = 0;
    trouble_.clear();
    state_ = RedoState::kSending;
    SetDone(done);
  }
  return next;
}

std::optional<RedoQueueClient::Sender::Next> RedoQueueClient::Sender::Take(const Reply& reply) {
  const RpcReply<redo::RunTask>& answer = reply.reply;
  if (answer.outcome != RpcOutcome::kAnswered) {
    return Trouble(Next::kReconnect,
                   fmt::format("{} did not answer task {}", server_name(), reply.id));
  }
  if (answer.result_code == 0 && answer.result.task_id == reply.id) {
    MutexLock lock(mutex_);
    if (!in_flight_.empty() && in_flight_.front().id == reply.id) {
      in_flight_bytes_ -= in_flight_.front().bytes;
      in_flight_.pop_front();
      window_ = std::min(window_ * 2, options_.window_max);
      server_last_ = reply.id;
      if (pipelined_) saved_id_ = answer.result.saved_task_id;
      return std::nullopt;
    }
  }
  if (redo::HaltsQueue(answer.result_code)) return Halt(answer.result_code, answer.result);
  if (answer.result_code == 0 || answer.result_code == result_code::kErrorRequestId) {
    // The server has moved meanwhile: through an earlier connection, or an operator set it back.
    return asked_in_vain_++ == 0 ? Next::kAsk : Next::kBackOff;
  }
  return Refused(reply.id, answer.result_code);
}

RedoQueueClient::Sender::Next RedoQueueClient::Sender::Refused(std::int64_t id, std::int64_t code) {
  const std::string text = redo::ExplainRefusal(code, server_name(), id);
  int refusals = 0;
  {
    MutexLock lock(mutex_);
    refusals = ++refusals_;
    window_ = 1;
  }
  if (refusals >= options_.refusals_before_alarm || code == redo::code::kStopped) {
    Raise({.kind = RedoAlarmKind::kTaskRefused,
           .queue = journal_.name(),
           .task_id = id,
           .text = text + ". It is tried again; the tasks after it wait"});
  }
  return Trouble(Next::kBackOff, text);
}

void RedoQueueClient::Sender::SetDone(std::int64_t id) {
  done_id_ = id;
  done_changed_.NotifyAll();
}

void RedoQueueClient::Sender::ConfirmNow() {
  confirmed_at_ = clock_.Now();
  Result<void> confirmed = journal_.Confirm(done_id_, saved_id_);
  if (!confirmed.ok()) {
    LogIfFailed(confirmed);
    return;
  }
  Result<bool> compacted = journal_.Compact(options_.keep);
  if (!compacted.ok()) LogIfFailed(compacted.error());
}

void RedoQueueClient::Sender::LogIfFailed(const Result<void>& result) const {
  if (result.ok()) return;
  ZEZE_LOG_ERROR_EVERY(std::chrono::seconds(10), "redo queue '{}': {}", journal_.name(),
                       result.error().message());
}

// --- Alarms ---

void RedoQueueClient::Sender::CheckAge() {
  const nanoseconds now = clock_.Now();
  if (now < age_checked_at_ + kAgeCheckPeriod) return;
  age_checked_at_ = now;
  const std::int64_t done = done_id_;
  const nanoseconds age = journal_.AgeBehind(done);
  if (age < options_.age_before_alarm) {
    Over(RedoAlarmKind::kBacklogOld);
    return;
  }
  std::string trouble;
  {
    MutexLock lock(mutex_);
    trouble = trouble_;
  }
  Raise(
      {.kind = RedoAlarmKind::kBacklogOld,
       .queue = journal_.name(),
       .task_id = done + 1,
       .text = fmt::format("task {} waits for {}, and {} after it{}{}", done + 1,
                           FormatDuration(std::chrono::duration_cast<std::chrono::seconds>(age)),
                           journal_.added_id() - done - 1, trouble.empty() ? "" : ": ", trouble)});
}

void RedoQueueClient::Sender::Raise(const RedoAlarm& alarm) {
  if (!raised_.insert(alarm.kind).second) return;
  LogRedoAlarm(alarm);
  if (options_.on_alarm) options_.on_alarm(alarm);
}

void RedoQueueClient::Sender::SetState(RedoState state) {
  MutexLock lock(mutex_);
  state_ = state;
  if (state == RedoState::kSending && refusals_ == 0) trouble_.clear();
}

std::string RedoQueueClient::Sender::server_name() const {
  MutexLock lock(mutex_);
  return server_;
}

}  // namespace zeze
