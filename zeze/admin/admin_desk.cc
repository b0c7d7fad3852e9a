#include "zeze/admin/admin_desk.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>

#include "zeze/admin/operator_key.h"
#include "zeze/admin/operator_list.h"
#include "zeze/base/check.h"
#include "zeze/base/result.h"

namespace zeze::admin {

namespace {

// Free text comes last and on one line, so that no text can be read as two requests.
bool IsOneLine(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; });
}

std::string Details(const AdminRequest& request, std::string_view rest) {
  return fmt::format("request {} server {} epoch {} session {} shard {} term {} proposed by {}{}{}",
                     request.id, request.server_id, request.epoch, request.session, request.shard,
                     request.term, request.proposer, rest.empty() ? "" : ": ", rest);
}

}  // namespace

std::string DescribeRequest(const AdminRequest& request) {
  return fmt::format(
      "request  {}\n"
      "global   shard {}, term {}\n"
      "server   {}\n"
      "epoch    {}\n"
      "session  {}\n"
      "proposer {}\n"
      "reason   {}\n",
      request.id, request.shard, request.term, request.server_id, request.epoch, request.session,
      request.proposer, request.reason);
}

std::string ApprovalText(const AdminRequest& request) {
  return "zeze: I approve this cleanup\n" + DescribeRequest(request);
}

std::string CancellationText(const AdminRequest& request) {
  return "zeze: I cancel this cleanup\n" + DescribeRequest(request);
}

std::string_view ToString(RequestState state) {
  switch (state) {
    case RequestState::kWaiting:
      return "waits for approvals";
    case RequestState::kScheduled:
      return "scheduled";
    case RequestState::kRunning:
      return "running";
    case RequestState::kDone:
      return "done";
    case RequestState::kRefused:
      return "refused";
    case RequestState::kCancelled:
      return "cancelled";
    case RequestState::kExpired:
      return "expired";
  }
  return "unknown";
}

AdminDesk::AdminDesk(AdminDeskOptions options) : options_(std::move(options)) {
  ZEZE_CHECK(options_.approvals >= 1 && options_.approvals <= options_.operators.size());
}

const Operator* AdminDesk::FindOperator(std::string_view name) const {
  for (const Operator& one : options_.operators) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const RequestView* AdminDesk::FindOpen(std::string_view id) const {
  for (const RequestView& view : open_) {
    if (view.request.id == id) return &view;
  }
  return nullptr;
}

Result<void> AdminDesk::CheckSignature(std::string_view name, const std::string& text,
                                       std::string_view signature) const {
  const Operator* one = FindOperator(name);
  if (one == nullptr) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not an operator here", name));
  }
  if (VerifySignature(one->public_key, text, signature)) return {};
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the signature is not {}'s for this request: is it the right key?", name));
}

Result<void> AdminDesk::CheckOpen(std::string_view id) const {
  if (FindOpen(id) != nullptr) return {};
  for (const RequestView& view : closed_) {
    if (view.request.id != id) continue;
    return Error(ErrorCode::kConflict,
                 fmt::format("request {} is {}: {}", id, ToString(view.state), view.outcome));
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("there is no request \"{}\" here (a restart of Global voids all)", id));
}

Result<AdminStep> AdminDesk::Propose(Time /*now*/, const AdminRequest& request,
                                     std::string_view signature) const {
  if (!IsOneLine(request.reason) || request.reason.size() > options_.reason_bytes_max) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("a reason is one line of at most {} bytes", options_.reason_bytes_max));
  }
  if (Result<void> checked = CheckSignature(request.proposer, ApprovalText(request), signature);
      !checked.ok()) {
    return checked.error();
  }
  for (const RequestView& view : open_) {
    if (view.request.server_id != request.server_id) continue;
    return Error(ErrorCode::kConflict,
                 fmt::format("request {} for server {} is open already ({}): approve or cancel it",
                             view.request.id, request.server_id, ToString(view.state)));
  }
  if (open_.size() >= options_.open_max) {
    return Error(ErrorCode::kOverloaded,
                 fmt::format("{} requests are open, which is the most: cancel some", open_.size()));
  }
  return AdminStep{.kind = AdminStep::Kind::kPropose,
                   .request = request,
                   .actor = request.proposer,
                   .action = "propose",
                   .details = fmt::format("{}: reason \"{}\" signature {}", Details(request, ""),
                                          request.reason, ToHex(signature))};
}

Result<AdminStep> AdminDesk::Approve(Time now, std::string_view id, std::string_view name,
                                     std::string_view signature) const {
  if (Result<void> open = CheckOpen(id); !open.ok()) return open.error();
  const RequestView& view = *FindOpen(id);
  if (Result<void> checked = CheckSignature(name, ApprovalText(view.request), signature);
      !checked.ok()) {
    return checked.error();
  }
  if (std::find(view.approved_by.begin(), view.approved_by.end(), name) != view.approved_by.end()) {
    return Error(ErrorCode::kConflict,
                 fmt::format("{} has approved request {} already; it takes {} different operators",
                             name, id, options_.approvals));
  }
  if (view.state != RequestState::kWaiting || now >= view.until) {
    return Error(ErrorCode::kConflict,
                 fmt::format("request {} {}", id,
                             view.state == RequestState::kWaiting ? "has expired"
                                                                  : "needs no more approvals"));
  }
  return AdminStep{
      .kind = AdminStep::Kind::kApprove,
      .request = view.request,
      .actor = std::string(name),
      .action = "approve",
      .details =
          Details(view.request, fmt::format("{} of {} signature {}", view.approved_by.size() + 1,
                                            options_.approvals, ToHex(signature)))};
}

Result<AdminStep> AdminDesk::Cancel(Time /*now*/, std::string_view id, std::string_view name,
                                    std::string_view signature) const {
  if (Result<void> open = CheckOpen(id); !open.ok()) return open.error();
  const RequestView& view = *FindOpen(id);
  if (Result<void> checked = CheckSignature(name, CancellationText(view.request), signature);
      !checked.ok()) {
    return checked.error();
  }
  if (view.state == RequestState::kRunning) {
    return Error(ErrorCode::kConflict, fmt::format("request {} is being carried out", id));
  }
  return AdminStep{.kind = AdminStep::Kind::kCancel,
                   .request = view.request,
                   .actor = std::string(name),
                   .action = "cancel",
                   .details = Details(view.request, fmt::format("signature {}", ToHex(signature))),
                   .outcome = fmt::format("by {}", name)};
}

std::optional<AdminStep> AdminDesk::Due(Time now) const {
  for (const RequestView& view : open_) {
    if (now < view.until) continue;
    if (view.state == RequestState::kWaiting) {
      const std::string outcome = fmt::format("{} of {} approvals came in time",
                                              view.approved_by.size(), options_.approvals);
      return AdminStep{.kind = AdminStep::Kind::kExpire,
                       .request = view.request,
                       .actor = "-",
                       .action = "expire",
                       .details = Details(view.request, outcome),
                       .outcome = outcome};
    }
    if (view.state == RequestState::kScheduled) {
      return AdminStep{
          .kind = AdminStep::Kind::kRun,
          .request = view.request,
          .actor = "-",
          .action = "run",
          .details = Details(view.request,
                             fmt::format("approved by {}", fmt::join(view.approved_by, ", ")))};
    }
  }
  return std::nullopt;
}

AdminStep AdminDesk::Finish(std::string_view id, bool carried_out, std::string_view outcome) const {
  const RequestView* view = FindOpen(id);
  ZEZE_CHECK(view != nullptr);
  return AdminStep{.kind = AdminStep::Kind::kFinish,
                   .request = view->request,
                   .actor = "-",
                   .action = carried_out ? "done" : "refuse",
                   .details = Details(view->request, outcome),
                   .outcome = std::string(outcome),
                   .carried_out = carried_out};
}

void AdminDesk::Approved(Time now, RequestView& view, const std::string& name) const {
  view.approved_by.push_back(name);
  if (view.approved_by.size() < options_.approvals) return;
  view.state = RequestState::kScheduled;
  view.until = now + options_.delay;
}

void AdminDesk::Close(std::string_view id, RequestState state, const std::string& outcome) {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [id](const RequestView& view) { return view.request.id == id; });
  ZEZE_CHECK(at != open_.end());
  at->state = state;
  at->outcome = outcome;
  at->until = Time{0};
  closed_.push_back(std::move(*at));
  open_.erase(at);
  while (closed_.size() > options_.closed_max) closed_.pop_front();
}

void AdminDesk::Take(Time now, const AdminStep& step) {
  const auto at = std::find_if(open_.begin(), open_.end(), [&step](const RequestView& view) {
    return view.request.id == step.request.id;
  });
  ZEZE_CHECK((at == open_.end()) == (step.kind == AdminStep::Kind::kPropose));
  switch (step.kind) {
    case AdminStep::Kind::kPropose:
      open_.push_back({.request = step.request, .until = now + options_.patience});
      Approved(now, open_.back(), step.actor);
      return;
    case AdminStep::Kind::kApprove:
      Approved(now, *at, step.actor);
      return;
    case AdminStep::Kind::kRun:
      at->state = RequestState::kRunning;
      return;
    case AdminStep::Kind::kCancel:
      Close(step.request.id, RequestState::kCancelled, step.outcome);
      return;
    case AdminStep::Kind::kExpire:
      Close(step.request.id, RequestState::kExpired, step.outcome);
      return;
    case AdminStep::Kind::kFinish:
      Close(step.request.id, step.carried_out ? RequestState::kDone : RequestState::kRefused,
            step.outcome);
      return;
  }
}

std::vector<RequestView> AdminDesk::List() const {
  std::vector<RequestView> all(closed_.begin(), closed_.end());
  all.insert(all.end(), open_.begin(), open_.end());
  return all;
}

}  // namespace zeze::admin
