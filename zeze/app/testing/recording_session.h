// RecordingSession: a client that is not there; keeps what would have been sent to it.
//
//   auto session = std::make_shared<zeze::testing::RecordingSession>("ann");
//   module.ProcessMove(tx, *session, {.x = 1});
//   EXPECT_EQ(session->frames().size(), 1);

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/app/session.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze::testing {

// Thread-safe.
class RecordingSession final : public Session {
 public:
  explicit RecordingSession(std::string account, std::string context = {})
      : account_(std::move(account)), context_(std::move(context)) {}

  const std::string& account() const override { return account_; }
  const std::string& context() const override { return context_; }

  Result<void> SendFrame(std::string_view frame) override {
    MutexLock lock(mutex_);
    frames_.emplace_back(frame);
    return {};
  }
  void Kick(std::int32_t code, std::string_view) override {
    MutexLock lock(mutex_);
    kicks_.push_back(code);
  }
  std::string Describe() const override { return "a recorded session of " + account_; }

  std::vector<std::string> frames() const {
    MutexLock lock(mutex_);
    return frames_;
  }
  std::vector<std::int32_t> kicks() const {
    MutexLock lock(mutex_);
    return kicks_;
  }

 private:
  const std::string account_;
  const std::string context_;
  mutable Mutex mutex_;
  std::vector<std::string> frames_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::int32_t> kicks_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::testing
