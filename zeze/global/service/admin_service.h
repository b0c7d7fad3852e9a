// AdminService: the operators' desk of one Global: answers `zeze admin`, writes the audit log, and
// has approved requests carried out.
//
// On the network thread of its GlobalService, like the machine; the log is written in the
// background. One change at a time: it is checked, written and only then made, and who asks next
// waits for that.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/admin/admin_desk.h"
#include "zeze/admin/audit_log.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/admin_wire.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

// What an AdminService needs of the Global it belongs to. All outlive it.
struct AdminSurroundings {
  std::int32_t shard = 0;
  GlobalServer& machine;
  Fence& fence;
  std::function<GlobalServer::Time()> now;
  // Runs work that may wait; what it returns runs on the network thread.
  std::function<void(std::function<Task()>)> in_background;
  // Where a connection comes from; empty: it is gone.
  std::function<std::string(ConnectionId)> peer;
  std::function<void(const std::string& text)> tell;  // All operators.
};

class AdminService {
 public:
  // Null log: there are no operators, everything is refused and says so.
  AdminService(const AdminSurroundings& surroundings, admin::AdminDeskOptions options,
               admin::AuditLog* log);

  // Before the service listens.
  void AddHandlers(Service& service);

  void OnClosed(ConnectionId connection) { drafts_.erase(connection); }
  // Whether somebody there looks at a preview and has not decided yet.
  bool Considers(ConnectionId connection) const { return drafts_.contains(connection); }
  void Tick();

 private:
  using Time = GlobalServer::Time;
  struct Change {
    // Empty: it has become pointless.
    std::function<std::optional<Result<admin::AdminStep>>()> check;
    std::function<void(bool ok, const std::string& text)> answer;
  };

  void Preview(Request<wire::AdminPreview> request);
  void AnswerPreview(Request<wire::AdminPreview> request, const std::string& holder,
                     const ServerView& server);
  void List(Request<wire::AdminList> request);
  // Of the live session of the server, or the last one.
  std::optional<ServerView> FindServer(std::int32_t server_id) const;
  bool StillThere(const admin::AdminRequest& request) const;

  // What needs no operator: requests that are due, expired, or void.
  std::optional<admin::AdminStep> NextByItself() const;
  void Enqueue(Change change);
  void Begin();
  void Written(const admin::AdminStep& step, const Result<void>& written, const Change& change);
  void CarryOut(const admin::AdminRequest& request);
  // The request is over whether the log can say so or not.
  void Finish(const admin::AdminRequest& request, bool carried_out, const std::string& outcome);
  std::string TextAfter(const admin::AdminStep& step) const;

  const AdminSurroundings surroundings_;
  admin::AuditLog* const log_;
  std::optional<admin::AdminDesk> desk_;
  std::map<ConnectionId, admin::AdminRequest> drafts_;
  std::deque<Change> changes_;
  bool writing_ = false;
};

}  // namespace zeze::global
