// LoginEvents: the application's handlers of changes, and their three stages.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "zeze/arch/online/internal/login_environment.h"
#include "zeze/arch/online/login.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

// While one lives, what this thread's transaction sends waits for the answer to an account's
// request: the client learns that it is logged in before anything else.
class AnswerScope {
 public:
  explicit AnswerScope(std::string_view account);
  ~AnswerScope();
  AnswerScope(const AnswerScope&) = delete;
  AnswerScope& operator=(const AnswerScope&) = delete;

  // Empty: no such scope.
  static std::string_view account();

 private:
  const std::string_view outer_;
};

template <typename Key>
class LoginEvents {
 public:
  explicit LoginEvents(LoginEnvironment<Key>& environment) : environment_(environment) {}

  // Before Start.
  void Add(LoginChange change, LoginHandler<Key> handler) {
    handlers_[change].push_back(std::move(handler));
  }

  // Runs the first stage now, and the others once the transaction has committed. A code other than
  // 0: a handler refuses the login.
  std::int64_t Raise(Transaction& tx, LoginChange change, const Login<Key>& login);

  // Runs what is left of the later stages, for a stop.
  void Finish();

 private:
  struct FollowUp {
    LoginChange change;
    Login<Key> login;
  };

  void Follow(LoginChange change, const Login<Key>& login);
  void RunFollowUp(std::uint64_t number);

  LoginEnvironment<Key>& environment_;
  std::map<LoginChange, std::vector<LoginHandler<Key>>> handlers_;  // Fixed after Start.

  Mutex mutex_;
  std::uint64_t last_number_ ZEZE_GUARDED_BY(mutex_) = 0;
  // In order; kept here, because a stop drops tasks.
  std::map<std::uint64_t, FollowUp> follow_ups_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch::internal
