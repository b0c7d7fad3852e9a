#include "zeze/arch/provider/internal/link_set.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/session.h"
#include "zeze/arch/provider/internal/link.h"
#include "zeze/arch/provider/internal/messages.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch::internal {

namespace {

namespace wire = Zeze::Builtin::Provider;

// Everything below is quick at the gateway: whoever does not answer so long is stuck.
constexpr std::chrono::seconds kAgreeTimeout{30};

std::string LinkName(const registry::ServiceInfo& gateway) {
  return fmt::format("{}_{}", gateway.passive_ip, gateway.passive_port);
}

Error NotConnected(std::string_view link_name) {
  return {ErrorCode::kUnavailable, fmt::format("gateway {} is not connected", link_name)};
}

SendOutcome OutcomeOf(const RawReply& reply, bool& decoded) {
  SendOutcome outcome;
  if (reply.outcome != RpcOutcome::kAnswered) return outcome;
  wire::BSendResult result;
  ByteReader in(reply.payload);
  result.Decode(in);
  decoded = in.ok();
  if (!decoded) return outcome;
  outcome.answered = reply.result_code == 0;
  outcome.lost_sids.assign(result.ErrorLinkSids.begin(), result.ErrorLinkSids.end());
  return outcome;
}

// An rpc that the gateway must agree to, or the connection is of no use.
template <typename P>
void MustAgree(const ConnectionPtr& connection, const typename P::Argument& argument) {
  const Result<void> sent = connection->Call<P>(
      argument, {.timeout = kAgreeTimeout},
      [weak = std::weak_ptr<Connection>(connection)](const RpcReply<P>& reply) {
        const ConnectionPtr still_open = weak.lock();
        if (reply.ok() || reply.outcome == RpcOutcome::kClosed || still_open == nullptr) return;
        if (reply.result_code == wire::Bind::OfOtherServers) {
          ZEZE_LOG_ERROR_EVERY(
              std::chrono::seconds(10),
              "gateway {} gives this server no clients: another kind of server (with another "
              "name_prefix) offers one of its modules; the gateway's log names both",
              still_open->peer_address().ToString());
        }
        still_open->Close(fmt::format("the gateway refused {}, code {}", P::kDescriptor.full_name,
                                      reply.result_code));
      });
  if (!sent.ok()) connection->Close(sent.error().message());
}

// An rpc at the end, whose answer proves that everything before it has been handled.
template <typename P>
void AskAndCount(const ConnectionPtr& connection, const typename P::Argument& argument,
                 const std::shared_ptr<WaitGroup>& answered) {
  answered->Add();
  const Result<void> sent = connection->Call<P>(
      argument, {.timeout = kAgreeTimeout}, [answered](const RpcReply<P>&) { answered->Done(); });
  if (!sent.ok()) answered->Done();
}

template <typename P>
Result<void> CallFor(const ConnectionPtr& connection, const typename P::Argument& argument,
                     std::function<void(const RpcReply<P>&)> done) {
  return connection->Call<P>(argument, {},
                             [done = std::move(done)](const RpcReply<P>& reply) { done(reply); });
}

Result<void> Agreed(std::string_view what, const LinkAddress& to, RpcOutcome outcome,
                    std::int64_t code) {
  if (code == 0) return {};
  const ErrorCode error =
      outcome == RpcOutcome::kAnswered ? ErrorCode::kUnavailable : ErrorCode::kUnknownOutcome;
  return Error(error, fmt::format("gateway {} did not {} client {}: code {}", to.link_name, what,
                                  to.link_sid, code));
}

// Gateways read always, too, so that neither waits for the other.
ServiceOptions ReadingAlways(ServiceOptions options) {
  options.read_always = true;
  options.socket.unconfirmed_max = kUnconfirmedInside;
  return options;
}

}  // namespace

LinkSet::LinkSet(IoThreads& io, ServiceOptions options, ConnectorOptions connector,
                 Introduction introduction, LinkHandlers handlers)
    : connector_(std::move(connector)),
      introduction_(std::move(introduction)),
      handlers_(std::move(handlers)),
      push_bytes_max_(options.output_bytes_max / 2),
      service_(io, ReadingAlways(std::move(options))) {
  service_.OnOpen([this](const ConnectionPtr& connection) { OnOpen(connection); });
  service_.OnClose([this](const ConnectionPtr& connection, const Error&) { OnClose(connection); });
  const HandlerOptions at_once{.dispatch = Dispatch::kInline};
  service_.HandleRaw(
      wire::Dispatch::kDescriptor,
      [this](Connection& connection, const Frame& frame) -> Result<void> {
        auto& state = *connection.state<LinkConnection>();
        state.output_full = connection.QueuedBytesApprox() > push_bytes_max_;
        return handlers_.on_dispatch(state, frame);
      },
      at_once);
  service_.Handle<wire::LinkBroken>(
      [this](const Message<wire::LinkBroken>& message) {
        auto& state = *message.connection->state<LinkConnection>();
        state.clients.Erase(message.argument.linkSid);
        state.link->NoteBroken(message.argument.linkSid);
        handlers_.on_broken(state, message.argument);
      },
      at_once);
  service_.Handle<wire::Unbound>(
      [this](const Message<wire::Unbound>& message) {
        auto& state = *message.connection->state<LinkConnection>();
        wire::BUnbound taken = message.argument;
        taken.modules.Clear();
        for (const std::int32_t module : message.argument.modules) {
          if (state.link->NoteTaken(taken.linkSid, module)) taken.modules.Add(module);
        }
        if (!taken.modules.empty()) handlers_.on_unbound(state, taken);
      },
      at_once);
  // Reserved: it says nothing yet.
  service_.Handle<wire::AnnounceLinkInfo>([](const Message<wire::AnnounceLinkInfo>&) {}, at_once);
}

void LinkSet::Update(const registry::ServiceList& gateways) {
  std::set<std::string> listed;
  std::vector<std::shared_ptr<Connector>> gone;
  {
    MutexLock lock(mutex_);
    if (leaving_) return;
    for (const auto& [version, infos] : gateways.versions) {
      for (const registry::ServiceInfo& info : infos) {
        const std::string name = LinkName(info);
        listed.insert(name);
        Entry& entry = entries_[name];
        entry.listed = true;
        if (entry.connector != nullptr) continue;
        entry.link = std::make_shared<Link>(name);
        ConnectorOptions to = connector_;
        to.host = info.passive_ip;
        to.port = static_cast<std::uint16_t>(info.passive_port);
        entry.connector = service_.Connect(to);
      }
    }
    for (auto at = entries_.begin(); at != entries_.end();) {
      Entry& entry = at->second;
      entry.listed = listed.contains(at->first);
      if (entry.listed || entry.link->connection() != nullptr) {
        ++at;
        continue;
      }
      gone.push_back(entry.connector);
      at = entries_.erase(at);
    }
  }
  for (const std::shared_ptr<Connector>& connector : gone) connector->Stop();
}

LinkSet::Entry* LinkSet::FindEntry(const Connector* connector) {
  for (auto& [name, entry] : entries_) {
    if (entry.connector.get() == connector) return &entry;
  }
  return nullptr;
}

void LinkSet::OnOpen(const ConnectionPtr& connection) {
  MutexLock lock(mutex_);
  Entry* entry = FindEntry(connection->connector().get());
  if (entry == nullptr || leaving_) return connection->Close("this server leaves the gateway");
  ZEZE_LOG_INFO("connected to gateway {}", entry->link->name());
  connection->set_state(std::make_shared<LinkConnection>(entry->link, *this));
  entry->link->Open(connection, SystemClock().Now());
  Introduce(connection);
}

// In this order on the wire; gateways choose this server only when all of it has been said.
void LinkSet::Introduce(const ConnectionPtr& connection) {
  if (Result<void> sent = connection->Send<wire::AnnounceProviderInfo>(introduction_.announcement);
      !sent.ok()) {
    return connection->Close(sent.error().message());
  }
  MustAgree<wire::Bind>(connection, introduction_.static_modules);
  MustAgree<wire::Subscribe>(connection, introduction_.dynamic_modules);
  if (ready_) MustAgree<wire::SetDisableChoice>(connection, {.DisableChoice = false});
}

void LinkSet::OnClose(const ConnectionPtr& connection) {
  auto* state = connection->state<LinkConnection>();
  if (state == nullptr || !state->link->Close(*connection, SystemClock().Now())) return;
  ZEZE_LOG_INFO("lost the connection to gateway {}", state->link->name());
  // Once, and again when it goes on: connections are made about once a second.
  constexpr int kSuspicious = 3;
  constexpr int kSayAgain = 30;
  const int short_lives = state->link->short_lives();
  if (short_lives % kSayAgain == kSuspicious) {
    ZEZE_LOG_ERROR(
        "gateway {} has closed {} connections shortly after they were made: another server with "
        "the same server id ({}) and name_prefix takes their place, or it refuses this one; its "
        "log says which",
        state->link->name(), short_lives, introduction_.announcement.ServiceIdentity);
  }
  std::shared_ptr<Connector> gone;
  {
    MutexLock lock(mutex_);
    Entry* entry = FindEntry(connection->connector().get());
    if (entry == nullptr || entry->listed) return;
    gone = entry->connector;
    entries_.erase(entries_.find(state->link->name()));
  }
  gone->Stop();
}

void LinkSet::SetReady(bool ready) {
  MutexLock lock(mutex_);
  if (leaving_ || ready_ == ready) return;
  ready_ = ready;
  // Under the lock, so that a connection that opens now hears the same.
  for (const auto& [name, entry] : entries_) {
    const ConnectionPtr connection = entry.link->connection();
    if (connection != nullptr) {
      MustAgree<wire::SetDisableChoice>(connection, {.DisableChoice = !ready});
    }
  }
}

bool LinkSet::Leave(Clock& clock, std::chrono::nanoseconds deadline) {
  {
    MutexLock lock(mutex_);
    leaving_ = true;
    ready_ = false;
  }
  auto agreed = std::make_shared<WaitGroup>();
  for (const auto& [link, connection] : OpenLinks()) TakeLeaveOf(*link, connection, agreed);
  return agreed->WaitUntil(clock, deadline);
}

void LinkSet::TakeLeaveOf(Link& link, const ConnectionPtr& connection,
                          const std::shared_ptr<WaitGroup>& agreed) {
  AskAndCount<wire::SetDisableChoice>(connection, {.DisableChoice = true}, agreed);
  AskAndCount<wire::UnBind>(connection, introduction_.static_modules, agreed);
  std::set<std::int64_t> told;
  for (const auto& [module, sids] : link.TakeBound()) {
    wire::BBind unbind;
    unbind.modules.Put(module, {.Dynamic = true});
    for (const std::int64_t sid : sids) unbind.linkSids.Add(sid);
    if (!sids.empty()) AskAndCount<wire::UnBind>(connection, unbind, agreed);
    told.insert(sids.begin(), sids.end());
  }
  for (const std::int64_t sid : told) {
    static_cast<void>(connection->Send<wire::Kick>({.linksid = sid,
                                                    .code = wire::BKick::ErrorReconnectServer,
                                                    .desc = "this server stops",
                                                    .control = wire::BKick::eControlReportClient}));
  }
}

bool LinkSet::Settle(Clock& clock, std::chrono::nanoseconds deadline) {
  auto answered = std::make_shared<WaitGroup>();
  for (const auto& [link, connection] : OpenLinks()) {
    AskAndCount<wire::SetDisableChoice>(connection, {.DisableChoice = true}, answered);
  }
  return answered->WaitUntil(clock, deadline);
}

void LinkSet::Stop() {
  {
    MutexLock lock(mutex_);
    leaving_ = true;
  }
  service_.Stop();
}

std::vector<std::pair<LinkPtr, ConnectionPtr>> LinkSet::OpenLinks() const {
  std::vector<std::pair<LinkPtr, ConnectionPtr>> open;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (ConnectionPtr connection = entry.link->connection()) {
      open.emplace_back(entry.link, std::move(connection));
    }
  }
  return open;
}

std::vector<std::string> LinkSet::names() const {
  std::vector<std::string> names;
  for (const auto& [link, connection] : OpenLinks()) names.push_back(link->name());
  return names;
}

bool LinkSet::IsLeaving() const {
  MutexLock lock(mutex_);
  return leaving_;
}

Result<LinkPtr> LinkSet::FindLink(std::string_view link_name) const {
  MutexLock lock(mutex_);
  const auto at = entries_.find(link_name);
  if (at == entries_.end()) return NotConnected(link_name);
  return at->second.link;
}

Result<ConnectionPtr> LinkSet::ConnectionTo(std::string_view link_name) const {
  const Result<LinkPtr> link = FindLink(link_name);
  if (!link.ok()) return link.error();
  ConnectionPtr connection = link.value()->connection();
  if (connection == nullptr) return NotConnected(link_name);
  return connection;
}

// What nobody asked for leaves room for answers.
Result<void> LinkSet::CheckRoom(std::string_view link_name, const Connection& connection) const {
  const std::size_t waiting = connection.QueuedBytesApprox();
  if (waiting <= push_bytes_max_) return {};
  return Error(ErrorCode::kOverloaded,
               fmt::format("gateway {} does not read as fast as this server writes: {} bytes wait, "
                           "beyond {} nothing is pushed",
                           link_name, waiting, push_bytes_max_));
}

Result<void> LinkSet::SendTo(const Link& link, std::int64_t sid, std::int64_t type_id,
                             std::string_view frame) {
  const ConnectionPtr connection = link.connection();
  if (connection == nullptr) return NotConnected(link.name());
  // A client that is gone needs no answer, so nobody looks at the outcome: what the gateway says to
  // it is dropped, without a place in the table of calls and without a time-out.
  thread_local ByteWriter request;
  request.Clear();
  EncodeUnheardSend(sid, type_id, frame, request);
  return connection->SendFrames(request.view());
}

Result<void> LinkSet::Send(std::string_view link_name, std::span<const std::int64_t> link_sids,
                           std::string_view frame, SendCompletion done) {
  const Result<std::int64_t> type = TypeOfFrame(frame);
  if (!type.ok()) return type.error();
  const Result<ConnectionPtr> connection = ConnectionTo(link_name);
  if (!connection.ok()) return connection.error();
  if (Result<void> room = CheckRoom(link_name, *connection.value()); !room.ok()) return room;
  return connection.value()->SendRequest(
      wire::Send::kDescriptor, {.dispatch = Dispatch::kInline},
      [&](ByteWriter& out) { EncodeSend(link_sids, type.value(), frame, out); },
      [done = std::move(done)](const RawReply& reply) {
        if (!done) return true;
        bool decoded = true;
        done(OutcomeOf(reply, decoded));
        return decoded;
      });
}

void LinkSet::Broadcast(std::string_view frame, bool only_same_version) {
  const Result<std::int64_t> type = TypeOfFrame(frame);
  if (!type.ok()) {
    ZEZE_LOG_ERROR("nothing was broadcast: {}", type.error().message());
    return;
  }
  const wire::BBroadcast broadcast{.protocolType = type.value(),
                                   .protocolWholeData = Binary{std::string(frame)},
                                   .onlySameVersion = only_same_version};
  for (const auto& [link, connection] : OpenLinks()) {
    Result<void> sent = CheckRoom(link->name(), *connection);
    if (sent.ok()) sent = connection->Send<wire::Broadcast>(broadcast);
    if (!sent.ok()) {
      ZEZE_LOG_WARNING("not broadcast through gateway {}: {}", link->name(),
                       sent.error().message());
    }
  }
}

Result<void> LinkSet::Kick(const LinkAddress& to, std::int32_t code, std::string_view description,
                           std::int32_t control) {
  const Result<ConnectionPtr> connection = ConnectionTo(to.link_name);
  if (!connection.ok()) return connection.error();
  return connection.value()->Send<wire::Kick>(
      {.linksid = to.link_sid, .code = code, .desc = std::string(description), .control = control});
}

Result<void> LinkSet::SetUserState(const LinkAddress& to, const wire::BUserState& state) {
  const Result<ConnectionPtr> connection = ConnectionTo(to.link_name);
  if (!connection.ok()) return connection.error();
  return connection.value()->Send<wire::SetUserState>({.linkSid = to.link_sid, .userState = state});
}

wire::BBind LinkSet::BindOf(std::int64_t sid, std::span<const std::int32_t> modules) const {
  wire::BBind bind;
  for (const std::int32_t module : modules) {
    const wire::BModule* offered = introduction_.dynamic_modules.modules.Find(module);
    bind.modules.Put(module, offered != nullptr ? *offered : wire::BModule{.Dynamic = true});
  }
  bind.linkSids.Add(sid);
  return bind;
}

Result<void> LinkSet::Bind(const LinkAddress& to, std::span<const std::int32_t> modules,
                           std::function<void(const Result<void>&)> done) {
  if (IsLeaving()) {
    return Error(ErrorCode::kShuttingDown, "this server leaves and binds no more clients");
  }
  const Result<LinkPtr> link = FindLink(to.link_name);
  if (!link.ok()) return link.error();
  const ConnectionPtr connection = link.value()->connection();
  if (connection == nullptr) return NotConnected(to.link_name);
  // Noted before: a client that leaves meanwhile takes the note away.
  for (const std::int32_t module : modules) link.value()->NoteBinding(to.link_sid, module);
  Result<void> sent = CallFor<wire::Bind>(
      connection, BindOf(to.link_sid, modules),
      [to, link = link.value(), ids = std::vector(modules.begin(), modules.end()),
       done = std::move(done)](const RpcReply<wire::Bind>& reply) {
        for (const std::int32_t module : ids) link->NoteBindAnswer(to.link_sid, module);
        if (reply.outcome == RpcOutcome::kAnswered && !reply.ok()) {
          for (const std::int32_t module : ids) link->NoteUnbound(to.link_sid, module);
        }
        if (done) done(Agreed("bind", to, reply.outcome, reply.result_code));
      });
  if (sent.ok() && IsLeaving()) {
    // Leave may have asked for its end before it was asked for.
    static_cast<void>(CallFor<wire::UnBind>(connection, BindOf(to.link_sid, modules),
                                            [](const RpcReply<wire::UnBind>&) {}));
  }
  return sent;
}

Result<void> LinkSet::Unbind(const LinkAddress& to, std::span<const std::int32_t> modules,
                             std::function<void(const Result<void>&)> done) {
  const Result<LinkPtr> link = FindLink(to.link_name);
  if (!link.ok()) return link.error();
  const ConnectionPtr connection = link.value()->connection();
  if (connection == nullptr) return NotConnected(to.link_name);
  for (const std::int32_t module : modules) link.value()->NoteUnbound(to.link_sid, module);
  return CallFor<wire::UnBind>(connection, BindOf(to.link_sid, modules),
                               [to, done = std::move(done)](const RpcReply<wire::UnBind>& reply) {
                                 if (done)
                                   done(Agreed("unbind", to, reply.outcome, reply.result_code));
                               });
}

Result<void> LinkSet::CheckSession(const LinkAddress& to, SendCompletion done) {
  return Send(to, EncodeOneWayFrame<wire::CheckLinkSession>({}), std::move(done));
}

}  // namespace zeze::arch::internal
