#include "zeze/arch/online/internal/take_over.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "zeze/app/application.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/storage.h"

namespace zeze::arch::internal {

namespace {

using registry::OfflineNotice;
using registry::TakeOver;

TakeOver Answer(Application& application, const OfflineNotice& lost, const LogoutAll& logout_all) {
  LostServer judged = LostServer::kGone;
  const auto proceed = [&]() -> Result<bool> {
    const Result<Fence::ServerRow> row = application.storage().fence()->Read(lost.server_id);
    if (!row.ok()) return row.error();
    judged = JudgeLostServer(row.value(), lost.serial);
    return judged == LostServer::kGone;
  };
  const Result<std::size_t> ended = logout_all(lost.server_id, proceed);
  if (!ended.ok()) {
    ZEZE_LOG_WARNING("server {} is gone, but {}", lost.server_id, ended.error().message());
    return TakeOver::kRefused;
  }
  if (judged == LostServer::kStranger) return TakeOver::kRefused;
  ZEZE_LOG_INFO("server {} {}: {} logins of {} have ended", lost.server_id,
                judged == LostServer::kBack ? "is back" : "is gone", ended.value(), lost.notify_id);
  return TakeOver::kTaken;
}

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
      [&application, end = std::move(logout_all)](const OfflineNotice& lost) {
        return Answer(application, lost, end);
      });
  return {};
}

}  // namespace zeze::arch::internal
