#include "zeze/arch/provider/internal/dispatcher.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/internal/client_table.h"
#include "zeze/arch/provider/internal/link.h"
#include "zeze/arch/provider/internal/link_set.h"
#include "zeze/arch/provider/internal/load_level.h"
#include "zeze/arch/provider/internal/messages.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace {

namespace wire = Zeze::Builtin::Provider;

TransactionLevel LevelOf(const ProtocolDescriptor& protocol) {
  return protocol.level == HandlerLevel::kAllowDirtyWhenAllRead
             ? TransactionLevel::kAllowDirtyWhenAllRead
             : TransactionLevel::kSerializable;
}

}  // namespace

// Something that Stop waits for.
class Dispatcher::Accepted {
 public:
  explicit Accepted(Dispatcher& dispatcher) : group_(&dispatcher.accepted_) { group_->Add(); }
  Accepted(Accepted&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
  Accepted& operator=(Accepted&&) = delete;
  ~Accepted() {
    if (group_ != nullptr) group_->Done();
  }

 private:
  WaitGroup* group_;
};

// An accepted message. Answered by running it, or by being dropped.
class Dispatcher::Request {
 public:
  Request(Dispatcher& dispatcher, const Handling& handling, LinkPtr link, ClientPtr client,
          const Frame& frame, std::unique_ptr<ProtocolCall> call)
      : accepted_(dispatcher),
        dispatcher_(dispatcher),
        handling_(handling),
        link_(std::move(link)),
        client_(std::move(client)),
        session_(client_->session),
        envelope_{.module_id = frame.module_id,
                  .protocol_id = frame.protocol_id,
                  .family = frame.family,
                  .session_id = frame.session_id},
        call_(std::move(call)) {
    ++client_->requests;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    if (!done_) Finish(result_code::kBusy, nullptr);
    --client_->requests;
  }

  const std::string& account() const { return session_->account(); }
  std::int64_t sid() const { return session_->address().link_sid; }

  void Run() {
    if (dispatcher_.abandoned_) return;
    const std::int64_t code = dispatcher_.RunHandler(handling_, *call_, *session_);
    Finish(code, call_.get());
  }

 private:
  void Finish(std::int64_t code, const ProtocolCall* call) {
    done_ = true;
    if (!handling_.handler->protocol->is_rpc) return;
    dispatcher_.Answer(handling_, *link_, sid(), envelope_, code, call);
  }

  const Accepted accepted_;  // Ends last: after the answer.
  Dispatcher& dispatcher_;
  const Handling& handling_;
  const LinkPtr link_;
  const ClientPtr client_;
  const std::shared_ptr<ProviderSession> session_;
  const Frame envelope_;
  const std::unique_ptr<ProtocolCall> call_;
  bool done_ = false;
};

Dispatcher::Dispatcher(Application& application, Options options)
    : application_(application), options_(options), critical_(application.critical(), {}) {}

Dispatcher::~Dispatcher() = default;

Result<void> Dispatcher::AddModule(Module& module) {
  for (const ProtocolHandler& handler : module.Handlers()) {
    const ProtocolDescriptor& protocol = *handler.protocol;
    const Handling handling{
        .module = &module, .handler = &handler, .name = ProcedureName::Intern(protocol.full_name)};
    const auto [at, added] = handlings_.emplace(protocol.type_id(), handling);
    if (!added) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("module {} and module {} both handle protocol {} ({})",
                               at->second.module->name(), module.name(), protocol.full_name,
                               protocol.type_id()));
    }
    if (protocol.dispatch_mode == DispatchMode::kDirect && protocol.level != HandlerLevel::kNone) {
      ZEZE_LOG_WARNING(
          "{} is to run on the network thread, but in a transaction, which may wait: it runs on a "
          "worker; give it TransactionLevel=\"None\" or another DispatchMode",
          protocol.full_name);
    }
  }
  return {};
}

Result<void> Dispatcher::Dispatch(LinkConnection& connection, const Frame& dispatch) {
  const Result<DispatchView> decoded = DecodeDispatch(dispatch.payload);
  if (!decoded.ok()) return decoded.error();
  const DispatchView& message = decoded.value();
  dispatched.fetch_add(1, std::memory_order_relaxed);
  const Link& link = *connection.link;
  if (left_) {
    Kick(link, message.link_sid, wire::BKick::ErrorReconnectServer, "this server has stopped");
    return {};
  }
  const auto handling = handlings_.find(message.type_id);
  if (handling == handlings_.end()) {
    ++unknown_types;
    Kick(link, message.link_sid, wire::BKick::ErrorProtocolUnknown,
         fmt::format("nobody handles protocol {} of module {}",
                     static_cast<std::int32_t>(message.type_id), message.type_id >> 32));
    return {};
  }
  try {
    DispatchTo(handling->second, connection, message);
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("{}: not handled: {}", handling->second.name.view(), error.what());
    Kick(link, message.link_sid, wire::BKick::ErrorProtocolException, "internal error");
  }
  return {};
}

void Dispatcher::DispatchTo(const Handling& handling, LinkConnection& connection,
                            const DispatchView& message) {
  const ProtocolDescriptor& protocol = *handling.handler->protocol;
  const Result<Frame> frame = ParseFrame(
      {.module_id = protocol.module_id, .protocol_id = protocol.protocol_id, .body = message.body});
  const FrameFamily expected = protocol.is_rpc ? FrameFamily::kRequest : FrameFamily::kOneWay;
  if (!frame.ok() || frame.value().family != expected) {
    ++undecodable;
    return Kick(*connection.link, message.link_sid, wire::BKick::ErrorDecode,
                fmt::format("the envelope of {} is broken", protocol.full_name));
  }
  // While the gateway does not take what was answered before, there is no use in working for more.
  const LoadLevel load =
      connection.output_full ? LoadLevel::kOverload : load_.load(std::memory_order_relaxed);
  if (IsShed(protocol.critical_level, load)) {
    ++shed;
    return Refuse(handling, *connection.link, message.link_sid, frame.value());
  }
  const ClientPtr& client = connection.clients.Find(message);
  if (!HasRoom(*client)) {
    ++refused;
    return Refuse(handling, *connection.link, message.link_sid, frame.value());
  }
  ByteReader argument(frame.value().payload);
  std::unique_ptr<ProtocolCall> call = handling.handler->decode(argument);
  if (!argument.ok()) {
    ++undecodable;
    return Kick(*connection.link, message.link_sid, wire::BKick::ErrorDecode,
                argument.ToError(protocol.full_name).message());
  }
  Execute(handling, std::make_unique<Request>(*this, handling, connection.link, client,
                                              frame.value(), std::move(call)));
}

bool Dispatcher::HasRoom(const Client& client) const {
  return client.requests.load(std::memory_order_relaxed) < options_.client_requests_max &&
         accepted_.CountApprox() < options_.requests_max;
}

// A request that cannot be posted is dropped, and so answered.
void Dispatcher::Execute(const Handling& handling, std::unique_ptr<Request> request) {
  const ProtocolDescriptor& protocol = *handling.handler->protocol;
  if (protocol.dispatch_mode == DispatchMode::kDirect && protocol.level == HandlerLevel::kNone) {
    return request->Run();
  }
  const bool critical = protocol.dispatch_mode == DispatchMode::kCritical;
  TaskOneByOneByKey& lanes = critical ? critical_ : application_.one_by_one();
  const std::string_view account = request->account();
  const std::int64_t sid = request->sid();
  Task task(handling.name.c_str(), [request = std::move(request)] { request->Run(); });
  // A client without an account is in order with itself.
  const Result<void> posted =
      account.empty() ? lanes.Post(sid, std::move(task)) : lanes.Post(account, std::move(task));
  if (!posted.ok()) ++refused;
}

std::int64_t Dispatcher::RunHandler(const Handling& handling, ProtocolCall& call,
                                    Session& session) {
  const ProtocolDescriptor& protocol = *handling.handler->protocol;
  if (protocol.level != HandlerLevel::kNone) {
    return application_.engine().Call(
        handling.name, [&](Transaction& tx) { return call.Run(*handling.module, &tx, session); },
        LevelOf(protocol));
  }
  try {
    return call.Run(*handling.module, nullptr, session);
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("the handler of {} threw: {}", protocol.full_name, error.what());
  } catch (...) {
    ZEZE_LOG_ERROR("the handler of {} threw", protocol.full_name);
  }
  return result_code::kException;
}

void Dispatcher::Refuse(const Handling& handling, const Link& link, std::int64_t sid,
                        const Frame& frame) {
  if (!handling.handler->protocol->is_rpc) return;
  Answer(handling, link, sid, frame, result_code::kBusy, nullptr);
}

void Dispatcher::Answer(const Handling& handling, const Link& link, std::int64_t sid,
                        const Frame& request, std::int64_t code, const ProtocolCall* call) {
  // Kept by each thread: answers are as many as requests.
  thread_local ByteWriter payload;
  thread_local ByteWriter frame;
  payload.Clear();
  frame.Clear();
  // What a handler has left behind that was rolled back by the framework is nobody's business.
  if (call != nullptr && code >= 0) {
    try {
      call->EncodeResult(payload);
    } catch (const EncodeError& error) {
      ZEZE_LOG_ERROR("the result of {} cannot be sent: {}", handling.name.view(), error.what());
      return Answer(handling, link, sid, request, result_code::kException, nullptr);
    }
  } else {
    payload.WriteEnd();
  }
  EncodeFrame({.module_id = request.module_id,
               .protocol_id = request.protocol_id,
               .family = FrameFamily::kResponse,
               .result_code = code,
               .session_id = request.session_id,
               .payload = payload.view()},
              frame);
  answered.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t type_id = handling.handler->protocol->type_id();
  const Result<void> sent = LinkSet::SendTo(link, sid, type_id, frame.view());
  if (sent.ok()) return;
  ZEZE_LOG_WARNING("an answer of {} to client {} of gateway {} is lost: {}", handling.name.view(),
                   sid, link.name(), sent.error().message());
  // Its client would wait for nothing, and so would all that come after it.
  if (sent.error().code() == ErrorCode::kOverloaded) {
    if (const ConnectionPtr connection = link.connection()) {
      connection->Close("the gateway does not take answers any more");
    }
  }
}

void Dispatcher::Kick(const Link& link, std::int64_t sid, std::int32_t code,
                      const std::string& description) {
  ZEZE_LOG_INFO("client {} of gateway {} is kicked, code {}: {}", sid, link.name(), code,
                description);
  const ConnectionPtr connection = link.connection();
  if (connection == nullptr) return;
  static_cast<void>(connection->Send<wire::Kick>(
      {.linksid = sid, .code = code, .desc = description, .control = wire::BKick::eControlClose}));
}

void Dispatcher::LinkBroken(LinkConnection& connection, const wire::BLinkBroken& broken) {
  if (!on_link_broken_) return;
  PostNews("link broken", broken.account, broken.linkSid,
           [this, broken, address = LinkAddress{connection.link->name(), broken.linkSid}] {
             on_link_broken_(address, broken);
           });
}

void Dispatcher::Unbound(LinkConnection& connection, const wire::BUnbound& taken) {
  if (!on_unbound_) return;
  PostNews("unbound", taken.account, taken.linkSid, [this, link = connection.link, taken] {
    // A handler before may have asked for the client again.
    wire::BUnbound still = taken;
    still.modules.Clear();
    for (const std::int32_t module : taken.modules) {
      if (!link->IsBound(taken.linkSid, module)) still.modules.Add(module);
    }
    if (!still.modules.empty()) on_unbound_({link->name(), taken.linkSid}, still);
  });
}

void Dispatcher::PostNews(const char* name, std::string_view account, std::int64_t sid,
                          std::function<void()> call) {
  auto news = [accepted = Accepted(*this), call = std::move(call)] { call(); };
  TaskOneByOneByKey& lanes = application_.one_by_one();
  auto shared = std::make_shared<decltype(news)>(std::move(news));
  Task task(name, [shared] { (*shared)(); });
  const Result<void> posted =
      account.empty() ? lanes.Post(sid, std::move(task)) : lanes.Post(account, std::move(task));
  if (posted.ok() || posted.error().code() != ErrorCode::kOverloaded) return;
  // It must not be lost; there are few for each client.
  application_.workers().Post(Task(name, [shared] { (*shared)(); }));
}

}  // namespace zeze::arch::internal
