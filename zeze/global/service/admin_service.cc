#include "zeze/global/service/admin_service.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>

#include "zeze/admin/admin_desk.h"
#include "zeze/admin/audit_log.h"
#include "zeze/admin/operator_key.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/admin_wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

namespace {

using admin::AdminRequest;
using admin::AdminStep;
using admin::RequestState;

constexpr std::size_t kChangesMax = 64;
constexpr const char* kGone = "the server has restarted or ended since the request was made";

std::int64_t Milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

ConnectionId IdOf(const Connection& connection) {
  return static_cast<ConnectionId>(connection.id());
}

std::string NoOperators() {
  return "this Global has no operators: start it with --operators and --audit-log";
}

// Requests can be moved only, functions must be copied.
template <typename Rpc>
std::function<void(bool, const std::string&)> AnswerTo(Request<Rpc> request) {
  auto shared = std::make_shared<Request<Rpc>>(std::move(request));
  return [shared](bool ok, const std::string& text) {
    (void)shared->Answer(ok ? 0 : wire::kAdminRefused, {.text = text});
  };
}

}  // namespace

AdminService::AdminService(const AdminSurroundings& surroundings, admin::AdminDeskOptions options,
                           admin::AuditLog* log)
    : surroundings_(surroundings), log_(log) {
  if (log_ != nullptr) desk_.emplace(std::move(options));
}

void AdminService::AddHandlers(Service& service) {
  service.Handle<wire::AdminPreview>(
      [this](Request<wire::AdminPreview> request) { Preview(std::move(request)); });
  service.Handle<wire::AdminList>(
      [this](Request<wire::AdminList> request) { List(std::move(request)); });
  service.Handle<wire::AdminPropose>([this](Request<wire::AdminPropose> request) {
    const ConnectionId from = IdOf(*request.connection());
    const wire::AdminProposeArgument argument = request.argument();
    Enqueue({.check = [this, from, argument]() -> std::optional<Result<AdminStep>> {
               const auto draft = drafts_.find(from);
               if (draft == drafts_.end() || draft->second.id != argument.id) {
                 return Error(ErrorCode::kNotFound, "ask for a preview first");
               }
               AdminRequest proposal = draft->second;
               proposal.proposer = argument.name;
               proposal.reason = argument.reason;
               if (!StillThere(proposal)) {
                 return Error(ErrorCode::kConflict,
                              fmt::format("server {} is not the one of the preview any more",
                                          proposal.server_id));
               }
               return desk_->Propose(surroundings_.now(), proposal, argument.signature);
             },
             .answer = AnswerTo(std::move(request))});
  });  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
  service.Handle<wire::AdminApprove>([this](Request<wire::AdminApprove> request) {
    const wire::AdminSignArgument argument = request.argument();
    Enqueue({.check = [this, argument]() -> std::optional<Result<AdminStep>> {
               auto step = desk_->Approve(surroundings_.now(), argument.id, argument.name,
                                          argument.signature);
               if (step.ok() && !StillThere(step.value().request)) {
                 return Error(ErrorCode::kConflict, kGone);
               }
               return step;
             },
             .answer = AnswerTo(std::move(request))});
  });  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
  service.Handle<wire::AdminCancel>([this](Request<wire::AdminCancel> request) {
    const wire::AdminSignArgument argument = request.argument();
    Enqueue({.check = [this, argument]() -> std::optional<Result<AdminStep>> {
               return desk_->Cancel(surroundings_.now(), argument.id, argument.name,
                                    argument.signature);
             },
             .answer = AnswerTo(std::move(request))});
  });  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
}

// --- looking -------------------------------------------------------------------------------------

std::optional<ServerView> AdminService::FindServer(std::int32_t server_id) const {
  std::optional<ServerView> found;
  for (const ServerView& view : surroundings_.machine.Servers(surroundings_.now())) {
    if (view.server_id != server_id) continue;
    if (!found || view.live || !found->live) found = view;
  }
  return found;
}

bool AdminService::StillThere(const AdminRequest& request) const {
  const std::optional<ServerView> server = FindServer(request.server_id);
  return server && server->live && server->epoch == request.epoch &&
         server->session == request.session && surroundings_.machine.term() == request.term;
}

void AdminService::Preview(Request<wire::AdminPreview> request) {
  if (!desk_) {
    (void)request.Answer(wire::kAdminRefused, {.text = NoOperators()});
    return;
  }
  const std::int32_t server_id = request.argument().server_id;
  const std::optional<ServerView> server = FindServer(server_id);
  if (!server) {
    std::vector<std::int32_t> others;
    for (const ServerView& view : surroundings_.machine.Servers(surroundings_.now())) {
      others.push_back(view.server_id);
    }
    (void)request.Answer(
        wire::kAdminRefused,
        {.text =
             fmt::format("server {} has no rights at this Global (shard {}); "
                         "servers here: {}",
                         server_id, surroundings_.shard,
                         others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", ")))});
    return;
  }
  auto shared = std::make_shared<Request<wire::AdminPreview>>(std::move(request));
  surroundings_.in_background([this, shared, view = *server]() -> Task {
    std::string holder;
    if (const auto live = surroundings_.fence.ListLive(); live.ok()) {
      for (const LiveServer& one : live.value()) {
        if (one.server_id == view.server_id && one.epoch == view.epoch) holder = one.holder;
      }
    } else {
      holder = "unknown: " + live.error().message();
    }
    return [this, shared, holder, view] { AnswerPreview(std::move(*shared), holder, view); };
  });
}

void AdminService::AnswerPreview(Request<wire::AdminPreview> request, const std::string& holder,
                                 const ServerView& server) {
  if (!request.connection()->IsOpen()) return;  // Its draft would stay for ever.
  AdminRequest& draft = drafts_[IdOf(*request.connection())];
  draft = {.id = admin::NewRequestId(),
           .shard = surroundings_.shard,
           .term = surroundings_.machine.term(),
           .server_id = server.server_id,
           .epoch = server.epoch,
           .session = server.session};
  wire::AdminPreviewResult result;
  result.request = draft;
  result.holder = holder;
  result.peer = surroundings_.peer(server.connection);
  result.unfenced = server.unfenced;
  result.live = server.live;
  result.announced = server.announced;
  result.silent_ms = Milliseconds(server.silent_for);
  result.share = server.rights.share;
  result.modify = server.rights.modify;
  result.approvals = static_cast<std::uint32_t>(desk_->options().approvals);
  result.delay_ms = Milliseconds(desk_->options().delay);
  (void)request.Answer(result);
}

void AdminService::List(Request<wire::AdminList> request) {
  wire::AdminListResult result;
  if (!desk_) {
    result.text = NoOperators();
    (void)request.Answer(wire::kAdminRefused, result);
    return;
  }
  const Time now = surroundings_.now();
  result.approvals = static_cast<std::uint32_t>(desk_->options().approvals);
  for (const admin::RequestView& view : desk_->List()) {
    result.items.push_back({.request = view.request,
                            .state = view.state,
                            .approved_by = fmt::format("{}", fmt::join(view.approved_by, ", ")),
                            .remaining_ms = Milliseconds(std::max(view.until - now, Time{0})),
                            .outcome = view.outcome});
  }
  (void)request.Answer(result);
}

// --- changing ------------------------------------------------------------------------------------

void AdminService::Enqueue(Change change) {
  if (!desk_ || changes_.size() >= kChangesMax) {
    change.answer(false, desk_ ? "too many ask at once: try again" : NoOperators());
    return;
  }
  changes_.push_back(std::move(change));
  Begin();
}

void AdminService::Tick() {
  if (!desk_ || writing_ || !changes_.empty() || !NextByItself()) return;
  Enqueue({.check = [this]() -> std::optional<Result<AdminStep>> {
             std::optional<AdminStep> step = NextByItself();
             if (!step) return std::nullopt;
             return Result<AdminStep>(std::move(*step));
           },
           .answer = [](bool, const std::string&) {}});
}

std::optional<AdminStep> AdminService::NextByItself() const {
  for (const admin::RequestView& view : desk_->List()) {
    if (desk_->FindOpen(view.request.id) != nullptr && !StillThere(view.request)) {
      return desk_->Finish(view.request.id, false, kGone);
    }
  }
  return desk_->Due(surroundings_.now());
}

void AdminService::Begin() {
  while (!writing_ && !changes_.empty()) {
    auto change = std::make_shared<Change>(std::move(changes_.front()));
    changes_.pop_front();
    const std::optional<Result<AdminStep>> step = change->check();
    if (!step) continue;
    if (!step->ok()) {
      ZEZE_LOG_WARNING("Global {}: a request of operators is refused: {}", surroundings_.shard,
                       step->error().message());
      change->answer(false, step->error().message());
      continue;
    }
    writing_ = true;
    surroundings_.in_background([this, change, taken = step->value()]() -> Task {
      Result<void> written = log_->Append(taken.actor, taken.action, taken.details);
      return [this, change, taken, written] {
        writing_ = false;
        Written(taken, written, *change);
        Begin();
      };
    });
  }
}

void AdminService::Written(const AdminStep& step, const Result<void>& written,
                           const Change& change) {
  if (!written.ok()) {
    const std::string text =
        "refused, because the audit log cannot be written: " + written.error().message();
    ZEZE_LOG_ERROR("Global {}: {} of request {} is {}", surroundings_.shard, step.action,
                   step.request.id, text);
    surroundings_.tell(fmt::format("{} of request {} is {}", step.action, step.request.id, text));
    // What was due is over all the same: it must not happen unseen at some later time.
    if (step.kind == AdminStep::Kind::kRun || step.kind == AdminStep::Kind::kExpire ||
        step.kind == AdminStep::Kind::kFinish) {
      desk_->Take(surroundings_.now(), desk_->Finish(step.request.id, false, text));
    }
    change.answer(false, text);
    return;
  }
  desk_->Take(surroundings_.now(), step);
  const std::string text = TextAfter(step);
  surroundings_.tell(fmt::format("{} by {} for server {} (epoch {}): {}; audit log line {} hash {}",
                                 step.action, step.actor, step.request.server_id,
                                 step.request.epoch, text, log_->summary().lines,
                                 log_->summary().hash));
  change.answer(true, text);
  if (step.kind == AdminStep::Kind::kRun) CarryOut(step.request);
}

std::string AdminService::TextAfter(const AdminStep& step) const {
  const std::string& id = step.request.id;
  const admin::RequestView* view = desk_->FindOpen(id);
  if (view == nullptr) return fmt::format("request {} is over", id);
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(
      view->until - surroundings_.now() + std::chrono::milliseconds(500));
  switch (view->state) {
    case RequestState::kWaiting:
      return fmt::format("request {} has {} of {} approvals; it expires in {}", id,
                         view->approved_by.size(), desk_->options().approvals,
                         FormatDuration(left));
    case RequestState::kScheduled:
      return fmt::format("request {} is approved by {} and is carried out in {} unless cancelled",
                         id, fmt::join(view->approved_by, ", "), FormatDuration(left));
    default:
      return fmt::format("request {} is {}", id, ToString(view->state));
  }
}

void AdminService::CarryOut(const AdminRequest& request) {
  const std::optional<ServerView> before = FindServer(request.server_id);
  const bool found = surroundings_.machine.term() == request.term &&
                     surroundings_.machine.Cleanup(surroundings_.now(), request.server_id,
                                                   request.epoch, request.session);
  if (!found) {
    Finish(request, false, kGone);
    return;
  }
  Finish(request, true,
         fmt::format("server {} is evicted; it had {} rights to write and {} to read",
                     request.server_id, before->rights.modify, before->rights.share));
}

void AdminService::Finish(const AdminRequest& request, bool carried_out,
                          const std::string& outcome) {
  const AdminStep step = desk_->Finish(request.id, carried_out, outcome);
  desk_->Take(surroundings_.now(), step);
  surroundings_.tell(fmt::format("request {}: {}", request.id, outcome));
  surroundings_.in_background([this, step]() -> Task {
    if (const Result<void> written = log_->Append(step.actor, step.action, step.details);
        !written.ok()) {
      ZEZE_LOG_ERROR("the audit log misses the outcome of request {} ({}): {}", step.request.id,
                     step.outcome, written.error().message());
    }
    return [] {};
  });
}

}  // namespace zeze::global
