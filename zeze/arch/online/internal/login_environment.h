// LoginEnvironment: what the parts of Logins have in common.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/app/application.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/procedure_name.h"

namespace zeze::arch::internal {

template <typename Key>
struct LoginEnvironment {
  LoginEnvironment(LoginKind<Key>& the_kind, OnlineOptions the_options)
      : kind(the_kind), options(the_options) {}

  LoginKind<Key>& kind;
  const OnlineOptions options;
  // From Start on.
  Application* application = nullptr;
  std::int32_t server_id = 0;
  // Null: not connected. They outlive the application.
  std::atomic<Links*> links = nullptr;
  std::atomic<DirectSender*> direct = nullptr;

  // Behind everything of the account that waits or runs on this server; so, behind the answer of
  // the request that runs now. If that lane is full or closed, at once.
  void PostBehind(std::string_view account, Task task) {
    auto shared = std::make_shared<Task>(std::move(task));
    const Result<void> posted =
        application->one_by_one().Post(account, Task(shared->name(), [shared] { (*shared)(); }));
    if (!posted.ok()) (*shared)();
  }

  // On a worker; again after a while, longer each time, until it has been done. For procedures that
  // find out themselves whether they still matter. Does not wait.
  void RunUntilDone(ProcedureName name, const OwnedProcedure& procedure) {
    RunUntilDone(name, procedure, options.suspect_period);
  }

 private:
  static constexpr std::chrono::nanoseconds kPauseMax = std::chrono::minutes(1);

  void RunUntilDone(ProcedureName name, const OwnedProcedure& procedure,
                    std::chrono::nanoseconds pause) {
    auto retry = [this, name, procedure, pause](std::int64_t code) {
      if (code == result_code::kSuccess || code == result_code::kClosed) return;
      // A server that is cut off has thousands of these.
      ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(5), "{} failed with {}: tried again in {} s",
                             name.view(), code, std::chrono::duration<double>(pause).count());
      const auto longer = std::max(pause, std::min(2 * pause, kPauseMax));
      application->scheduler().After(pause, Task(name.c_str(), [this, name, procedure, longer] {
                                       RunUntilDone(name, procedure, longer);
                                     }));
    };
    // A completion hears of a refusal, too, as kClosed.
    const Result<void> submitted = application->Submit(name, procedure, retry);
    if (!submitted.ok() && submitted.error().code() == ErrorCode::kOverloaded) {
      retry(result_code::kBusy);
    }
  }
};

}  // namespace zeze::arch::internal
