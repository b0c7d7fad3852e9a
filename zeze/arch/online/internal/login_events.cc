#include "zeze/arch/online/internal/login_events.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/arch/online/login.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace {

thread_local std::string_view answering_account;

std::string_view NameOf(LoginChange change) {
  switch (change) {
    case LoginChange::kLogin:
      return "login";
    case LoginChange::kReLogin:
      return "re-login";
    case LoginChange::kLinkBroken:
      return "link broken";
    case LoginChange::kLogout:
      return "logout";
    case LoginChange::kLocalRemoved:
      return "local removed";
  }
  return "";
}

}  // namespace

AnswerScope::AnswerScope(std::string_view account) : outer_(answering_account) {
  answering_account = account;
}

AnswerScope::~AnswerScope() {
  answering_account = outer_;
}

std::string_view AnswerScope::account() {
  return answering_account;
}

template <typename Key>
std::int64_t LoginEvents<Key>::Raise(Transaction& tx, LoginChange change, const Login<Key>& login) {
  const auto handlers = handlers_.find(change);
  if (handlers == handlers_.end()) return result_code::kSuccess;
  const bool may_refuse = change == LoginChange::kLogin || change == LoginChange::kReLogin;
  bool follows = false;
  for (const LoginHandler<Key>& handler : handlers->second) {
    follows = follows || handler.in_procedure || handler.outside;
    if (!handler.in_transaction) continue;
    const std::int64_t code = tx.Call("login handler", [&](Transaction& nested) {
      return handler.in_transaction(nested, login);
    });
    if (code == result_code::kSuccess) continue;
    if (may_refuse) return code;
    ZEZE_LOG_WARNING("{} of {}: a handler failed with {}, and is ignored", NameOf(change),
                     environment_.kind.Describe(login.key), code);
  }
  if (follows) {
    tx.AfterCommit(Task("login changed", [this, change, login] { Follow(change, login); }));
  }
  return result_code::kSuccess;
}

template <typename Key>
void LoginEvents<Key>::Follow(LoginChange change, const Login<Key>& login) {
  std::uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = ++last_number_;
    follow_ups_.emplace(number, FollowUp{change, login});
  }
  environment_.PostBehind(login.account,
                          Task("login handler", [this, number] { RunFollowUp(number); }));
}

template <typename Key>
void LoginEvents<Key>::RunFollowUp(std::uint64_t number) {
  std::optional<FollowUp> next;
  {
    MutexLock lock(mutex_);
    auto node = follow_ups_.extract(number);
    if (node) next = std::move(node.mapped());
  }
  if (!next) return;
  for (const LoginHandler<Key>& handler : handlers_.at(next->change)) {
    if (handler.in_procedure) {
      environment_.application->Call(
          "login handler", [&](Transaction& tx) { return handler.in_procedure(tx, next->login); });
    }
    if (!handler.outside) continue;
    try {
      handler.outside(next->login);
    } catch (const std::exception& error) {
      ZEZE_LOG_ERROR("{} of {}: a handler threw: {}", NameOf(next->change),
                     environment_.kind.Describe(next->login.key), error.what());
    }
  }
}

template <typename Key>
void LoginEvents<Key>::Finish() {
  std::vector<std::uint64_t> numbers;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, follow_up] : follow_ups_) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) RunFollowUp(number);
}

template class LoginEvents<AccountKey>;
template class LoginEvents<RoleId>;

}  // namespace zeze::arch::internal
