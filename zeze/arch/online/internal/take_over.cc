#include "zeze/arch/online/internal/take_over.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "zeze/app/application.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/storage.h"

namespace zeze::arch::internal {

namespace {

using registry::OfflineNotice;
using registry::TakeOver;

// The first pause before another try, and the longest: they double in between.
constexpr std::chrono::nanoseconds kPauseMin = std::chrono::milliseconds(250);
constexpr std::chrono::nanoseconds kPauseMax = std::chrono::seconds(5);

// Ends the logins of lost servers: when asked, and again by itself as long as some cannot be had,
// because the lease of the lost server still lasts. The service manager asks all others meanwhile,
// and this server again, but only after a long while.
class Successor : public std::enable_shared_from_this<Successor> {
 public:
  Successor(Application& application, LogoutAll logout_all)
      : application_(application), logout_all_(std::move(logout_all)) {}

  TakeOver Answer(const OfflineNotice& lost) {
    const std::optional<TakeOver> answer = Try(lost);
    if (answer) return *answer;
    bool first = false;
    {
      MutexLock lock(mutex_);
      first = unfinished_.insert({lost.server_id, lost.serial}).second;
    }
    if (first) TryLater(lost, kPauseMin);
    return TakeOver::kRefused;
  }

 private:
  // None: some logins could not be ended yet.
  std::optional<TakeOver> Try(const OfflineNotice& lost) {
    LostServer judged = LostServer::kGone;
    const auto proceed = [&]() -> Result<bool> {
      const Result<Fence::ServerRow> row = application_.storage().fence()->Read(lost.server_id);
      if (!row.ok()) return row.error();
      judged = JudgeLostServer(row.value(), lost.serial);
      return judged == LostServer::kGone;
    };
    const Result<std::size_t> ended = logout_all_(lost.server_id, proceed);
    if (!ended.ok()) {
      ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(5), "server {} is gone, but {}", lost.server_id,
                             ended.error().message());
      return std::nullopt;
    }
    if (judged == LostServer::kStranger) return TakeOver::kRefused;
    ZEZE_LOG_INFO("server {} {}: {} logins of {} have ended", lost.server_id,
                  judged == LostServer::kBack ? "is back" : "is gone", ended.value(),
                  lost.notify_id);
    return TakeOver::kTaken;
  }

  // Ends with the application.
  void TryLater(const OfflineNotice& lost, std::chrono::nanoseconds pause) {
    application_.scheduler().After(
        pause, Task("end logins of a lost server", [self = shared_from_this(), lost, pause] {
          if (!self->Try(lost)) return self->TryLater(lost, std::min(2 * pause, kPauseMax));
          MutexLock lock(self->mutex_);
          self->unfinished_.erase({lost.server_id, lost.serial});
        }));
  }

  Application& application_;
  const LogoutAll logout_all_;
  Mutex mutex_;
  // One entry for each lost server at most, and its process.
  std::set<std::pair<std::int32_t, std::int64_t>> unfinished_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace

LostServer JudgeLostServer(const Fence::ServerRow& row, std::int64_t lost_epoch) {
  if (row.epoch == 0) return LostServer::kStranger;
  // An evicted server has a higher epoch, too, but is not live.
  return row.live && row.epoch != lost_epoch ? LostServer::kBack : LostServer::kGone;
}

Result<void> RegisterTakeOver(Application& application, std::string notify_id,
                              LogoutAll logout_all) {
  registry::RegistryAgent* agent = application.registry();
  if (agent == nullptr || application.options().globals.empty()) return {};
  const std::int32_t server_id = application.options().server_id;
  const Result<Fence::ServerRow> self = application.storage().fence()->Read(server_id);
  if (!self.ok()) return self.error();
  agent->RegisterOffline(
      {.server_id = server_id, .notify_id = std::move(notify_id), .serial = self.value().epoch},
      [successor = std::make_shared<Successor>(application, std::move(logout_all))](
          const OfflineNotice& lost) { return successor->Answer(lost); });
  return {};
}

}  // namespace zeze::arch::internal
