// Dispatcher: runs what gateways dispatch, and sees to it that every request is answered once.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/unordered/unordered_flat_map.hpp>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/provider/internal/client_table.h"
#include "zeze/arch/provider/internal/link.h"
#include "zeze/arch/provider/internal/link_set.h"
#include "zeze/arch/provider/internal/load_level.h"
#include "zeze/arch/provider/internal/messages.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/frame.h"
#include "zeze/transaction/procedure_name.h"

namespace zeze::arch::internal {

// How a protocol is handled.
struct Handling {
  Module* module = nullptr;
  const ProtocolHandler* handler = nullptr;
  ProcedureName name = "a protocol";
};

class Dispatcher {
 public:
  struct Options {
    std::size_t client_requests_max = 0;
    std::size_t requests_max = 0;
  };
  using LinkBrokenHandler = std::function<void(const LinkAddress& address,
                                               const Zeze::Builtin::Provider::BLinkBroken& broken)>;

  // The application outlives the dispatcher.
  Dispatcher(Application& application, Options options);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Before anything is dispatched.
  Result<void> AddModule(Module& module);
  void OnLinkBroken(LinkBrokenHandler handler) { on_link_broken_ = std::move(handler); }
  using UnboundHandler = std::function<void(const LinkAddress& address,
                                            const Zeze::Builtin::Provider::BUnbound& taken)>;
  void OnUnbound(UnboundHandler handler) { on_unbound_ = std::move(handler); }

  // A message of a client, on the network thread of its connection. An error is the gateway's
  // fault: the connection to it is of no use any more.
  Result<void> Dispatch(LinkConnection& connection, const Frame& dispatch);
  void LinkBroken(LinkConnection& connection, const Zeze::Builtin::Provider::BLinkBroken& broken);
  void Unbound(LinkConnection& connection, const Zeze::Builtin::Provider::BUnbound& taken);

  void SetLoad(LoadLevel level) { load_ = level; }

  // From now on clients whose messages still come are told to connect again.
  void Leave() { left_ = true; }
  // What has not begun is not run any more, but answered with kBusy.
  void Abandon() { abandoned_ = true; }
  // Waits until everything that was accepted has been answered.
  bool AwaitIdle(Clock& clock, std::chrono::nanoseconds deadline) {
    return accepted_.WaitUntil(clock, deadline);
  }
  void AwaitAll() { accepted_.Wait(); }

  // One after the other; each counts what happened since the start.
  std::atomic<std::uint64_t> dispatched = 0;
  std::atomic<std::uint64_t> answered = 0;
  std::atomic<std::uint64_t> shed = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> unknown_types = 0;
  std::atomic<std::uint64_t> undecodable = 0;

 private:
  class Request;
  class Accepted;

  void DispatchTo(const Handling& handling, LinkConnection& connection,
                  const DispatchView& message);
  void Execute(const Handling& handling, std::unique_ptr<Request> request);
  // After what the client has sent before; never lost.
  void PostNews(const char* name, std::string_view account, std::int64_t sid,
                std::function<void()> call);
  bool HasRoom(const Client& client) const;
  void Refuse(const Handling& handling, const Link& link, std::int64_t sid, const Frame& frame);
  void Answer(const Handling& handling, const Link& link, std::int64_t sid, const Frame& request,
              std::int64_t code, const ProtocolCall* call);
  std::int64_t RunHandler(const Handling& handling, ProtocolCall& call, Session& session);
  static void Kick(const Link& link, std::int64_t sid, std::int32_t code,
                   const std::string& description);

  Application& application_;
  const Options options_;
  LinkBrokenHandler on_link_broken_;
  UnboundHandler on_unbound_;
  boost::unordered_flat_map<std::int64_t, Handling> handlings_;  // By type id; fixed after Start.
  TaskOneByOneByKey critical_;

  std::atomic<LoadLevel> load_ = LoadLevel::kFine;
  std::atomic<bool> left_ = false;
  std::atomic<bool> abandoned_ = false;

  WaitGroup accepted_;
};

}  // namespace zeze::arch::internal
