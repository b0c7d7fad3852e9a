#include "zeze/net/internal/io_loop.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <unistd.h>

#include "zeze/base/activity.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"

namespace zeze::internal {

namespace {

constinit thread_local const IoLoop* current_loop = nullptr;

}  // namespace

IoLoop::IoLoop(std::string name, Clock& clock, std::size_t read_buffer_bytes)
    : name_(std::move(name)),
      clock_(clock),
      work_(boost::asio::make_work_guard(context_)),
      // A copy: Asio closes its own.
      sockets_with_news_(context_, ::dup(sockets_.descriptor())),
      timer_(context_),
      late_timer_(context_),
      read_buffer_(read_buffer_bytes) {}

IoLoop::~IoLoop() {
  ZEZE_CHECK(!thread_.joinable());
}

void IoLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void IoLoop::Run() {
  SetThreadName(name_);
  current_loop = this;
  WaitForSockets();
  context_.run();
  current_loop = nullptr;
}

void IoLoop::Stop() {
  if (!thread_.joinable()) return;
  ZEZE_CHECK(!IsCurrent());
  context_.stop();
  thread_.join();
}

void IoLoop::Post(Task task) {
  boost::asio::post(context_, std::move(task));
}

bool IoLoop::IsCurrent() const {
  return current_loop == this;
}

bool IoLoop::IsAnyCurrent() {
  return current_loop != nullptr;
}

void IoLoop::WaitForSockets() {
  sockets_with_news_.async_wait(Descriptor::wait_read,
                                [this](const boost::system::error_code& error) {
                                  if (!error) RunSockets();
                                });
}

void IoLoop::RunSockets() {
  // Not for ever: tasks and timers wait too.
  constexpr int kTurns = 8;
  in_turn_ = true;
  for (int turn = 0; turn < kTurns && sockets_.Poll(); ++turn) FlushTurn();
  in_turn_ = false;
  WaitForSockets();
}

void IoLoop::FlushTurn() {
  while (!turn_flush_.empty()) {
    flushing_.swap(turn_flush_);
    for (const std::shared_ptr<FlushTarget>& target : flushing_) target->OnFlush();
    flushing_.clear();
  }
}

void IoLoop::RequestFlush(std::shared_ptr<FlushTarget> target) {
  if (IsCurrent() && in_turn_) return turn_flush_.push_back(std::move(target));
  bool first = false;
  {
    MutexLock lock(flush_mutex_);
    first = flush_.empty();
    flush_.push_back(std::move(target));
  }
  if (first) {
    boost::asio::post(context_, [this] { FlushAll(); });
  }
}

void IoLoop::FlushLater(std::shared_ptr<FlushTarget> target) {
  constexpr std::chrono::milliseconds kLate{1};
  late_flush_.push_back(std::move(target));
  if (late_flush_.size() > 1) return;
  late_timer_.expires_after(kLate);
  late_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) FlushLate();
  });
}

void IoLoop::FlushLate() {
  flushing_.swap(late_flush_);
  for (const std::shared_ptr<FlushTarget>& target : flushing_) target->OnLateFlush();
  flushing_.clear();
}

void IoLoop::FlushAll() {
  {
    MutexLock lock(flush_mutex_);
    flushing_.swap(flush_);
  }
  for (const std::shared_ptr<FlushTarget>& target : flushing_) target->OnFlush();
  flushing_.clear();
}

void IoLoop::SetDeadline(DeadlineOwner& owner, std::chrono::nanoseconds deadline) {
  if (owner.deadline_ == deadline) return;
  if (owner.deadline_.count() != 0) deadlines_.erase({owner.deadline_, &owner});
  owner.deadline_ = deadline;
  if (deadline.count() == 0) return;
  deadlines_.insert({deadline, &owner});
  if (deadlines_.begin()->second == &owner) ArmTimer();
}

void IoLoop::At(std::chrono::nanoseconds deadline, Task task) {
  delayed_tasks_.Add(deadline, std::move(task));
}

void IoLoop::DelayedTasks::Add(std::chrono::nanoseconds deadline, Task task) {
  tasks_.emplace(deadline, std::move(task));
  loop_.SetDeadline(*this, tasks_.begin()->first);
}

void IoLoop::DelayedTasks::OnDeadline(std::chrono::nanoseconds now) {
  while (!tasks_.empty() && tasks_.begin()->first <= now) {
    Task task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    task();
  }
  if (!tasks_.empty()) loop_.SetDeadline(*this, tasks_.begin()->first);
}

void IoLoop::ArmTimer() {
  if (deadlines_.empty()) return;
  const std::chrono::nanoseconds deadline = deadlines_.begin()->first;
  // A timer that fires too early is armed again then: cheaper than moving it each time.
  if (armed_for_.count() != 0 && armed_for_ <= deadline) return;
  armed_for_ = deadline;
  std::chrono::nanoseconds wait = std::max(deadline - Now(), std::chrono::nanoseconds(0));
  if (&clock_ != &SystemClock())
    wait = std::min<std::chrono::nanoseconds>(wait, std::chrono::milliseconds(1));
  timer_.expires_after(wait);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // Armed anew meanwhile.
    armed_for_ = std::chrono::nanoseconds(0);
    RunDeadlines();
  });
}

void IoLoop::RunDeadlines() {
  const std::chrono::nanoseconds now = Now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    DeadlineOwner& owner = *deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    owner.deadline_ = std::chrono::nanoseconds(0);
    owner.OnDeadline(now);
  }
  ArmTimer();
}

}  // namespace zeze::internal
