// AdminDesk: requests of operators that need the consent of several of them, and time to think.
//
//   AdminDesk desk({.operators = operators, .approvals = 2});
//   AdminStep step = desk.Propose(now, request, signature).value();
//   if (log.Append(step.actor, step.action, step.details).ok()) desk.Take(now, step);
//   ...
//   while (auto due = desk.Due(now)) ...            // Expired, or to be carried out: the same way.
//
// A request waits until enough operators have signed it, then for a while in which any of them may
// cancel it, and is then carried out. The signatures are of personal keys over the exact text of
// the request, whose id comes from the process that carries it out: none fits another request, and
// none fits the same one twice.
//
// A state machine without I/O, threads or clocks. Every change has two halves: a call that checks
// and says what the audit log must say, and Take, after the log has it. Between them nothing may be
// called: who asks next waits.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/admin/operator_list.h"
#include "zeze/base/result.h"

namespace zeze::admin {

// What is asked for: that a server loses its rights.
struct AdminRequest {
  std::string id = {};  // Of the Global that previewed it.
  // Which Global, and since when it is that.
  std::int32_t shard = 0;
  std::int64_t term = 0;
  // Which process of the server: after a restart the request is void. Old peers have no epoch, but
  // each of their logins is another session.
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
  std::uint64_t session = 0;
  std::string proposer = {};
  std::string reason = {};

  bool operator==(const AdminRequest&) const = default;
};

// What people see, line by line.
std::string DescribeRequest(const AdminRequest& request);

// What operators sign. An approval is no cancellation, nor the other way round.
std::string ApprovalText(const AdminRequest& request);
std::string CancellationText(const AdminRequest& request);

enum class RequestState : std::uint8_t {  // Sent: append, never renumber.
  kWaiting,                               // For approvals.
  kScheduled,                             // Approved; carried out when it is due.
  kRunning,
  kDone,
  kRefused,  // When it was due the process was not there any more.
  kCancelled,
  kExpired,
};
std::string_view ToString(RequestState state);

struct RequestView {
  using Time = std::chrono::nanoseconds;

  AdminRequest request;
  RequestState state = RequestState::kWaiting;
  std::vector<std::string> approved_by = {};
  Time until{0};             // kWaiting: when it expires; kScheduled: when it is carried out.
  std::string outcome = {};  // Who cancelled it, why it was refused.
};

struct AdminDeskOptions {
  std::vector<Operator> operators;
  std::size_t approvals = 2;  // Distinct operators, the proposer among them.
  std::chrono::nanoseconds delay = std::chrono::minutes(1);
  std::chrono::nanoseconds patience = std::chrono::minutes(15);  // For approvals.
  std::size_t open_max = 16;
  std::size_t closed_max = 64;  // Kept to be listed.
  std::size_t reason_bytes_max = 500;
};

// A change that is about to happen, and what the audit log says of it.
struct AdminStep {
  enum class Kind : std::uint8_t { kPropose, kApprove, kCancel, kExpire, kRun, kFinish };

  Kind kind = Kind::kPropose;
  AdminRequest request = {};
  std::string actor = {};
  std::string action = {};
  std::string details = {};
  std::string outcome = {};
  bool carried_out = false;  // kFinish.
};

class AdminDesk {
 public:
  using Time = std::chrono::nanoseconds;

  // approvals is at least 1 and at most the number of operators.
  explicit AdminDesk(AdminDeskOptions options);

  // The proposer's signature of ApprovalText is the first approval.
  Result<AdminStep> Propose(Time now, const AdminRequest& request,
                            std::string_view signature) const;
  Result<AdminStep> Approve(Time now, std::string_view id, std::string_view name,
                            std::string_view signature) const;
  Result<AdminStep> Cancel(Time now, std::string_view id, std::string_view name,
                           std::string_view signature) const;
  // What time brings: an expiry, or a request to be carried out now.
  std::optional<AdminStep> Due(Time now) const;
  // The end of a request that was carried out, or void. For a step of Kind::kRun that was taken,
  // and for any open request whose process is gone.
  AdminStep Finish(std::string_view id, bool carried_out, std::string_view outcome) const;

  // The log has it: the step takes effect.
  void Take(Time now, const AdminStep& step);

  // The open ones, and the last closed ones.
  std::vector<RequestView> List() const;
  // Null: no such open request.
  const RequestView* FindOpen(std::string_view id) const;
  const AdminDeskOptions& options() const { return options_; }

 private:
  const Operator* FindOperator(std::string_view name) const;
  Result<void> CheckSignature(std::string_view name, const std::string& text,
                              std::string_view signature) const;
  Result<void> CheckOpen(std::string_view id) const;
  void Approved(Time now, RequestView& view, const std::string& name) const;
  void Close(std::string_view id, RequestState state, const std::string& outcome);

  const AdminDeskOptions options_;
  std::vector<RequestView> open_;
  std::deque<RequestView> closed_;
};

}  // namespace zeze::admin
