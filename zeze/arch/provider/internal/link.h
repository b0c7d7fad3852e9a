// Link: one gateway. Connections to it come and go; its name and what it is owed stay.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "zeze/base/mutex.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"

namespace zeze::arch::internal {

// Thread-safe.
class Link {
 public:
  explicit Link(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // The open connection, or null.
  ConnectionPtr connection() const {
    MutexLock lock(mutex_);
    return connection_;
  }
  void Open(ConnectionPtr connection, std::chrono::nanoseconds now) {
    MutexLock lock(mutex_);
    opened_at_ = now;
    connection_ = std::move(connection);
    ForgetBound();  // The gateway has forgotten, too.
  }
  // False if another one is open by now.
  bool Close(const Connection& connection, std::chrono::nanoseconds now) {
    MutexLock lock(mutex_);
    if (connection_.get() != &connection) return false;
    connection_ = nullptr;
    short_lives_ = now - opened_at_ < kShortLife ? short_lives_ + 1 : 0;
    ForgetBound();
    return true;
  }

  // Connections in a row that ended soon after they were made.
  int short_lives() const {
    MutexLock lock(mutex_);
    return short_lives_;
  }

  // Dynamic modules that clients were bound for, so that they can be unbound at the end.
  using ClientsByModule = std::map<std::int32_t, std::set<std::int64_t>>;
  // When the gateway is asked to bind it, and when it has answered.
  void NoteBinding(std::int64_t sid, std::int32_t module) {
    MutexLock lock(mutex_);
    bound_[module].insert(sid);
    ++asked_[{sid, module}];
  }
  void NoteBindAnswer(std::int64_t sid, std::int32_t module) {
    MutexLock lock(mutex_);
    const auto asked = asked_.find({sid, module});
    if (asked != asked_.end() && --asked->second == 0) asked_.erase(asked);
  }
  // The gateway says that another server has taken the client over. False: this server has unbound
  // it before, or has asked for it again since.
  bool NoteTaken(std::int64_t sid, std::int32_t module) {
    MutexLock lock(mutex_);
    return !asked_.contains({sid, module}) && bound_[module].erase(sid) != 0;
  }
  bool IsBound(std::int64_t sid, std::int32_t module) const {
    MutexLock lock(mutex_);
    const auto sids = bound_.find(module);
    return sids != bound_.end() && sids->second.contains(sid);
  }
  void NoteUnbound(std::int64_t sid, std::int32_t module) {
    MutexLock lock(mutex_);
    bound_[module].erase(sid);
  }
  void NoteBroken(std::int64_t sid) {
    MutexLock lock(mutex_);
    for (auto& [module, sids] : bound_) sids.erase(sid);
  }
  ClientsByModule TakeBound() {
    MutexLock lock(mutex_);
    return std::exchange(bound_, {});
  }

 private:
  static constexpr std::chrono::seconds kShortLife{5};

  void ForgetBound() ZEZE_REQUIRES(mutex_) {
    bound_.clear();
    asked_.clear();
  }

  const std::string name_;
  mutable Mutex mutex_;
  ConnectionPtr connection_ ZEZE_GUARDED_BY(mutex_);
  std::chrono::nanoseconds opened_at_ ZEZE_GUARDED_BY(mutex_){0};
  int short_lives_ ZEZE_GUARDED_BY(mutex_) = 0;
  ClientsByModule bound_ ZEZE_GUARDED_BY(mutex_);
  // Binds without an answer yet.
  std::map<std::pair<std::int64_t, std::int32_t>, int> asked_ ZEZE_GUARDED_BY(mutex_);
};

using LinkPtr = std::shared_ptr<Link>;

}  // namespace zeze::arch::internal
