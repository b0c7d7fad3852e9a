#include "zeze/registry/service/registry_agent.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/task_one_by_one_by_key.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/service/internal/datagram_ids.h"
#include "zeze/registry/service/internal/id_source.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/registry/service/wire.h"

namespace zeze::registry {

namespace {

// How much of what is said again goes into one message.
constexpr std::size_t kPartSize = 500;
constexpr std::size_t kPartBytes = std::size_t{512} << 10;

// What the service manager could not save.
constexpr std::chrono::nanoseconds kSayAgain = std::chrono::seconds(1);

bool IsThisMachine(const std::string& host) {
  if (host == "localhost") return true;
  const Result<NetAddress> address = NetAddress::FromText(host, 0);
  return address.ok() && address.value().IsLoopback();
}

Error NotStarted() {
  return {ErrorCode::kUnavailable, "the agent of the service manager was not started"};
}

}  // namespace

ServiceOptions DefaultRegistryAgentServiceOptions() {
  return {.name = "Zeze.Services.ServiceManager.Agent",
          .handshake = HandshakeOptions{},
          .frame_bytes_max = std::size_t{64} << 20,
          .output_bytes_max = std::size_t{64} << 20};
}

class RegistryAgent::Impl {
 public:
  Impl(IoThreads& io, Executor& callbacks, RegistryAgentOptions options)
      : io_(io),
        callbacks_(callbacks),
        options_(std::move(options)),
        serial_(callbacks, {.lane_count = 1}),
        datagrams_(io),
        service_(io, options_.service) {
    service_.OnOpen([this](const ConnectionPtr& connection) { Opened(connection); });
    service_.OnClose([this](const ConnectionPtr& connection, const Error&) { Closed(connection); });
    HandleMessages();
  }

  Result<void> Start() {
    if (options_.connector.host.empty() || options_.connector.port == 0) {
      return Error(ErrorCode::kInvalidArgument,
                   "the agent of the service manager needs its host and its port");
    }
    ConnectorOptions connector = options_.connector;
    connector.reconnect = true;
    connector_ = service_.Connect(connector);
    return {};
  }

  void StopCallbacks() {
    {
      const MutexLock lock(mutex_);
      callbacks_stopped_ = true;
    }
    serial_.Shutdown(TaskOneByOneByKey::Pending::kDiscard);
    handlers_running_.Wait();
  }

  void Stop() {
    if (!stopped_ && connector_ != nullptr) SayGoodbye();
    Abandon();
  }

  void Abandon() {
    if (std::exchange(stopped_, true)) return;
    service_.Stop();
    WaitGroup ended(1);
    io_.Post([this, &ended] {
      *alive_ = false;
      ended.Done();
    });
    ended.Wait();
    serial_.Shutdown(TaskOneByOneByKey::Pending::kDiscard);
    handlers_running_.Wait();
  }

  ConnectionPtr Current() const {
    const MutexLock lock(mutex_);
    return connection_;
  }

  Result<void> AwaitSettled(std::chrono::nanoseconds patience);
  Result<void> Edit(const ServiceEdit& edit);
  void Subscribe(const Subscription& subscription, ServiceCallback callback);
  void Unsubscribe(const std::string& name);
  ServiceListPtr Services(std::string_view name) const;
  void RegisterOffline(const OfflineNotice& notice, OfflineHandler handler);
  void Announce(const Announcement& announcement);
  Result<IdBlock> AllocateIds(const std::string& name, std::uint32_t count);
  Result<IdBlock> AllocateIds128(const std::string& name, std::uint32_t count);
  IdSource& Source(IdKind kind, const std::string& name);
  std::uint32_t id_block() const { return std::max<std::uint32_t>(options_.id_block, 1); }

 private:
  struct Subscribed {
    SubscribedList list;
    ServiceCallback callback;
    ServiceListPtr told;  // What the callback has seen.
    bool telling = false;
  };
  using SubscribedPtr = std::shared_ptr<Subscribed>;

  void HandleMessages();
  void WarnOfLoopback(const ServiceInfo& info) ZEZE_REQUIRES(mutex_);
  void SayGoodbye();
  ConnectionPtr AwaitConnection(std::chrono::nanoseconds deadline);
  void Opened(const ConnectionPtr& connection);
  void Closed(const ConnectionPtr& connection);

  template <RpcProtocol P, typename Done>
  void Send(const typename P::Argument& argument, Done done) ZEZE_REQUIRES(mutex_);
  template <RpcProtocol P>
  void Send(const typename P::Argument& argument) ZEZE_REQUIRES(mutex_) {
    Send<P>(argument, [](const typename P::Result&) {});
  }
  template <RpcProtocol P, typename Done>
  void Completed(const ConnectionPtr& connection, const typename P::Argument& argument,
                 const RpcReply<P>& reply, const Done& done);

  void SendEverything() ZEZE_REQUIRES(mutex_);
  void SendSubscriptions(const std::vector<Subscription>& wanted) ZEZE_REQUIRES(mutex_);
  void Tell(const SubscribedPtr& subscribed) ZEZE_REQUIRES(mutex_);
  void RunCallback(const SubscribedPtr& subscribed);
  void WatchDoubtful() ZEZE_REQUIRES(mutex_);
  void TakeOver(Request<wire::OfflineNotify> request);

  IoThreads& io_;
  Executor& callbacks_;
  const RegistryAgentOptions options_;
  std::shared_ptr<Connector> connector_;
  bool stopped_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Network thread only.
  WaitGroup handlers_running_;

  mutable Mutex mutex_;
  CondVar changed_;
  ConnectionPtr connection_ ZEZE_GUARDED_BY(mutex_);
  std::size_t unconfirmed_ ZEZE_GUARDED_BY(mutex_) = 0;  // Calls on connection_.
  std::optional<Error> refusal_ ZEZE_GUARDED_BY(mutex_);
  bool callbacks_stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  bool warned_of_loopback_ ZEZE_GUARDED_BY(mutex_) = false;
  std::map<ServiceKey, ServiceInfo> registered_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::string, SubscribedPtr, std::less<>> subscribed_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::pair<std::int32_t, std::string>, OfflineNotice> notices_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::string, OfflineHandler> offline_handlers_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::string, Announcement> announced_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::pair<IdKind, std::string>, std::unique_ptr<IdSource>> sources_
      ZEZE_GUARDED_BY(mutex_);

  TaskOneByOneByKey serial_;
  DatagramIds datagrams_;
  Service service_;  // Last: its callbacks use the rest.
};

// --- the connection ---

void RegistryAgent::Impl::HandleMessages() {
  service_.Handle<wire::EditService>([this](Request<wire::EditService> request) {
    (void)request.Answer({});
    const ServiceEdit& edit = request.argument().edit;
    const MutexLock lock(mutex_);
    if (request.connection() != connection_) return;
    std::set<std::string_view> names;
    for (const ServiceInfo& info : edit.remove) names.insert(info.name);
    for (const ServiceInfo& info : edit.add) names.insert(info.name);
    for (const std::string_view name : names) {
      const auto at = subscribed_.find(name);
      if (at == subscribed_.end()) continue;
      at->second->list.OnEdit(edit);
      Tell(at->second);
    }
  });
  service_.Handle<wire::SetServerLoad>([this](Message<wire::SetServerLoad> message) {
    if (!options_.on_load) return;
    // One that does not fit is followed by the next one.
    (void)serial_.Post(0, Task("server load", [this, load = std::move(message.argument.load)] {
                         options_.on_load(load);
                       }));
  });
  service_.Handle<wire::KeepAlive>(
      [](Request<wire::KeepAlive> request) { (void)request.Answer({}); });
  service_.Handle<wire::OfflineNotify>(
      [this](Request<wire::OfflineNotify> request) { TakeOver(std::move(request)); });
}

void RegistryAgent::Impl::SayGoodbye() {
  Clock& clock = io_.clock();
  const std::chrono::nanoseconds deadline = clock.Now() + options_.goodbye_timeout;
  // Perhaps the service manager is just being restarted: what it does not hear, it takes for a
  // crash, and lets another server take over.
  while (const ConnectionPtr connection = AwaitConnection(deadline)) {
    const Result<RpcReply<wire::NormalClose>> reply = connection->CallAndWait<wire::NormalClose>(
        {}, {.timeout = std::max(deadline - clock.Now(), std::chrono::nanoseconds(1))});
    if (reply.ok() && reply.value().outcome == RpcOutcome::kAnswered) return;
    const MutexLock lock(mutex_);
    if (connection_ == connection) connection_ = nullptr;
  }
}

// Everything has been said on the connection that it returns; null if there is nothing to lose
// without one, or none in time.
ConnectionPtr RegistryAgent::Impl::AwaitConnection(std::chrono::nanoseconds deadline) {
  const MutexLock lock(mutex_);
  const bool others_would_take_over = !notices_.empty() || !announced_.empty();
  while (connection_ == nullptr && others_would_take_over) {
    if (!io_.clock().WaitUntil(changed_, mutex_, deadline)) break;
  }
  return connection_;
}

void RegistryAgent::Impl::Opened(const ConnectionPtr& connection) {
  const MutexLock lock(mutex_);
  connection_ = connection;
  unconfirmed_ = 0;
  SendEverything();
  changed_.NotifyAll();
}

void RegistryAgent::Impl::Closed(const ConnectionPtr& connection) {
  const MutexLock lock(mutex_);
  if (connection != connection_) return;
  connection_ = nullptr;
  unconfirmed_ = 0;
  changed_.NotifyAll();
}

template <RpcProtocol P, typename Done>
void RegistryAgent::Impl::Send(const typename P::Argument& argument, Done done) {
  if (connection_ == nullptr) return;  // Opened says it.
  ++unconfirmed_;
  const Result<void> sent = connection_->Call<P>(
      argument, {.timeout = options_.call_timeout},
      [this, connection = connection_, argument, done = std::move(done)](const RpcReply<P>& reply) {
        Completed<P>(connection, argument, reply, done);
      });
  if (sent.ok()) return;
  io_.Post([connection = connection_, why = sent.error().message()] { connection->Close(why); });
}

template <RpcProtocol P, typename Done>
void RegistryAgent::Impl::Completed(const ConnectionPtr& connection,
                                    const typename P::Argument& argument, const RpcReply<P>& reply,
                                    const Done& done) {
  if (reply.outcome == RpcOutcome::kClosed) return;  // All is said again.
  if (reply.outcome != RpcOutcome::kAnswered) {
    connection->Close(
        fmt::format("{} failed with code {}", P::kDescriptor.full_name, reply.result_code));
    return;
  }
  if (reply.result_code == wire::kNotPossible) {
    // Its disk is full, say. The connection is left alone, for the sake of the services on it.
    io_.PostAfter(kSayAgain, [this, alive = alive_, connection, argument, done] {
      if (!*alive) return;
      const MutexLock lock(mutex_);
      if (connection != connection_) return;
      --unconfirmed_;
      Send<P>(argument, done);
    });
    return;
  }
  const MutexLock lock(mutex_);
  if (connection != connection_) return;
  --unconfirmed_;
  if (reply.ok()) {
    done(reply.result);
  } else {
    refusal_ = Error(ErrorCode::kInvalidArgument,
                     fmt::format("the service manager refused {} (code {})",
                                 P::kDescriptor.full_name, reply.result_code));
    ZEZE_LOG_ERROR("{}", refusal_->message());
  }
  changed_.NotifyAll();
}

void RegistryAgent::Impl::SendEverything() {
  ServiceEdit part;
  std::size_t bytes = 0;
  for (const auto& [key, info] : registered_) {
    part.add.push_back(info);
    bytes += info.name.size() + info.extra_info.size();
    if (part.add.size() < kPartSize && bytes < kPartBytes) continue;
    Send<wire::EditService>({.edit = std::exchange(part, {})});
    bytes = 0;
  }
  if (!part.empty()) Send<wire::EditService>({.edit = part});
  std::vector<Subscription> wanted;
  for (const auto& [name, subscribed] : subscribed_) {
    wanted.push_back(subscribed->list.subscription());
    if (wanted.size() == kPartSize) SendSubscriptions(std::exchange(wanted, {}));
  }
  if (!wanted.empty()) SendSubscriptions(wanted);
  for (const auto& [key, notice] : notices_) Send<wire::OfflineRegister>({.notice = notice});
  for (const auto& [notify_id, announcement] : announced_) {
    // Whom it watches has been said, and may have changed since.
    Send<wire::AnnounceServers>(
        {.announcement = {.notify_id = notify_id, .server_id = announcement.server_id}});
  }
}

Result<void> RegistryAgent::Impl::AwaitSettled(std::chrono::nanoseconds patience) {
  Clock& clock = io_.clock();
  const std::chrono::nanoseconds deadline = clock.Now() + patience;
  const MutexLock lock(mutex_);
  while (connection_ == nullptr || unconfirmed_ > 0) {
    if (clock.WaitUntil(changed_, mutex_, deadline)) continue;
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the service manager at {}:{} has not confirmed everything",
                             options_.connector.host, options_.connector.port));
  }
  if (!refusal_.has_value()) return {};
  return *std::exchange(refusal_, std::nullopt);
}

// --- services ---

void RegistryAgent::Impl::WarnOfLoopback(const ServiceInfo& info) {
  if (warned_of_loopback_ || !IsThisMachine(info.passive_ip) ||
      IsThisMachine(options_.connector.host)) {
    return;
  }
  warned_of_loopback_ = true;
  ZEZE_LOG_WARNING(
      "{} is registered with the address {}:{}, which other machines cannot reach, but the service "
      "manager is at {}: name an address of this machine to listen on (Ip of the acceptor; "
      "\"@internal\" finds one), or the one to advertise",
      info.name, info.passive_ip, info.passive_port, options_.connector.host);
}

Result<void> RegistryAgent::Impl::Edit(const ServiceEdit& edit) {
  for (const ServiceInfo& info : edit.add) {
    if (IsValidIdentity(info.identity)) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no identity of a service: use a number, or a text that "
                             "begins with '@' or '#'",
                             info.identity));
  }
  const MutexLock lock(mutex_);
  for (const ServiceInfo& info : edit.add) WarnOfLoopback(info);
  for (const ServiceInfo& info : edit.remove) registered_.erase(info.key());
  for (const ServiceInfo& info : edit.add) registered_[info.key()] = info;
  Send<wire::EditService>({.edit = edit});
  return {};
}

void RegistryAgent::Impl::Subscribe(const Subscription& subscription, ServiceCallback callback) {
  const MutexLock lock(mutex_);
  SubscribedPtr& subscribed = subscribed_[subscription.name];
  subscribed =
      std::make_shared<Subscribed>(Subscribed{.list = SubscribedList(subscription, options_.hold),
                                              .callback = std::move(callback),
                                              .told = nullptr});
  SendSubscriptions({subscription});
}

void RegistryAgent::Impl::Unsubscribe(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto at = subscribed_.find(name);
  if (at == subscribed_.end()) return;
  at->second->callback = nullptr;
  subscribed_.erase(at);
  Send<wire::Unsubscribe>({.names = {name}});
}

void RegistryAgent::Impl::SendSubscriptions(const std::vector<Subscription>& wanted) {
  std::vector<SubscribedPtr> asked;
  asked.reserve(wanted.size());
  for (const Subscription& one : wanted) asked.push_back(subscribed_.find(one.name)->second);
  Send<wire::Subscribe>(
      {.subscriptions = wanted},
      // Under the lock, by Completed.
      [this, asked](const wire::SubscribeResult& result) ZEZE_NO_THREAD_SAFETY_ANALYSIS {
        for (const SubscribedPtr& subscribed : asked) {
          const auto at = result.services.find(subscribed->list.subscription().name);
          subscribed->list.OnAnswer(io_.clock().Now(),
                                    at == result.services.end() ? ServicesByVersion() : at->second);
          Tell(subscribed);
        }
        WatchDoubtful();
      });
}

void RegistryAgent::Impl::WatchDoubtful() {
  const std::chrono::nanoseconds now = io_.clock().Now();
  std::optional<std::chrono::nanoseconds> next;
  for (const auto& [name, subscribed] : subscribed_) {
    const std::optional<std::chrono::nanoseconds> due = subscribed->list.NextTick();
    if (due.has_value()) next = next.has_value() ? std::min(*next, *due) : *due;
  }
  if (!next.has_value()) return;
  io_.PostAfter(std::max(*next - now, std::chrono::nanoseconds(0)), [this, alive = alive_] {
    if (!*alive) return;
    const MutexLock lock(mutex_);
    // Without a connection nobody can say that a service is still there.
    if (connection_ == nullptr) return;
    for (const auto& [name, subscribed] : subscribed_) {
      subscribed->list.Tick(io_.clock().Now());
      Tell(subscribed);
    }
    WatchDoubtful();
  });
}

ServiceListPtr RegistryAgent::Impl::Services(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto at = subscribed_.find(name);
  return at == subscribed_.end() ? nullptr : at->second->list.list();
}

void RegistryAgent::Impl::Tell(const SubscribedPtr& subscribed) {
  if (subscribed->telling || subscribed->told == subscribed->list.list()) return;
  // Full: the next change posts it, and it tells the difference from what was told last.
  subscribed->telling =
      serial_.Post(0, Task("services changed", [this, subscribed] { RunCallback(subscribed); }))
          .ok();
}

void RegistryAgent::Impl::RunCallback(const SubscribedPtr& subscribed) {
  static const ServiceList nothing;
  ServiceListPtr before;
  ServiceListPtr now;
  ServiceCallback callback;
  {
    const MutexLock lock(mutex_);
    subscribed->telling = false;
    now = subscribed->list.list();
    before = std::exchange(subscribed->told, now);
    callback = subscribed->callback;
  }
  if (!callback || now == before) return;
  callback(now, Difference(before == nullptr ? nothing : *before, *now));
}

// --- offline notices ---

void RegistryAgent::Impl::RegisterOffline(const OfflineNotice& notice, OfflineHandler handler) {
  const MutexLock lock(mutex_);
  notices_[{notice.server_id, notice.notify_id}] = notice;
  offline_handlers_[notice.notify_id] = std::move(handler);
  Send<wire::OfflineRegister>({.notice = notice});
}

void RegistryAgent::Impl::Announce(const Announcement& announcement) {
  const MutexLock lock(mutex_);
  announced_[announcement.notify_id] = announcement;
  Send<wire::AnnounceServers>({.announcement = announcement});
}

void RegistryAgent::Impl::TakeOver(Request<wire::OfflineNotify> request) {
  OfflineHandler handler;
  {
    const MutexLock lock(mutex_);
    if (callbacks_stopped_) {
      (void)request.AnswerCode(wire::kRefused);
      return;
    }
    const auto at = offline_handlers_.find(request.argument().notice.notify_id);
    if (at != offline_handlers_.end()) handler = at->second;
    if (handler) handlers_running_.Add();
  }
  if (!handler) {
    (void)request.AnswerCode(wire::kNoHandler);
    return;
  }
  callbacks_.Post(Task("take over a server", [this, handler = std::move(handler),
                                              request = std::move(request)]() mutable {
    std::int64_t code = wire::kHandlerFailed;
    try {
      code = handler(request.argument().notice) == registry::TakeOver::kTaken ? wire::kTaken
                                                                              : wire::kRefused;
    } catch (const std::exception& error) {
      ZEZE_LOG_ERROR("taking over server {} failed: {}", request.argument().notice.server_id,
                     error.what());
    } catch (...) {
      ZEZE_LOG_ERROR("taking over server {} failed", request.argument().notice.server_id);
    }
    (void)request.AnswerCode(code);
    handlers_running_.Done();
  }));
}

// --- ids ---

Result<IdBlock> RegistryAgent::Impl::AllocateIds(const std::string& name, std::uint32_t count) {
  if (connector_ == nullptr) return NotStarted();
  Clock& clock = io_.clock();
  const std::chrono::nanoseconds deadline = clock.Now() + options_.call_timeout;
  while (true) {
    const std::chrono::nanoseconds left = deadline - clock.Now();
    Result<ConnectionPtr> connection = connector_->WaitReady(left);
    if (!connection.ok()) return connection.error();
    Result<RpcReply<wire::AllocateId>> reply = connection.value()->CallAndWait<wire::AllocateId>(
        {.name = name, .count = count}, {.timeout = left});
    const bool answered = reply.ok() && reply.value().outcome == RpcOutcome::kAnswered;
    if (answered && reply.value().ok()) {
      const wire::AllocateIdResult& result = reply.value().result;
      if (result.count >= 0 && result.count <= UINT32_MAX) {
        return IdBlock{.start = {.high = 0, .low = static_cast<std::uint64_t>(result.start)},
                       .count = static_cast<std::uint32_t>(result.count)};
      }
    }
    // A lost answer burns ids; asking again is safe.
    if (!answered && clock.Now() < deadline) continue;
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("the service manager at {} gave no ids of \"{}\"", connector_->name(), name));
  }
}

Result<IdBlock> RegistryAgent::Impl::AllocateIds128(const std::string& name, std::uint32_t count) {
  if (connector_ == nullptr) return NotStarted();
  Result<ConnectionPtr> connection = connector_->WaitReady(options_.call_timeout);
  if (!connection.ok()) return connection.error();
  Result<IdBlock> block =
      datagrams_.Allocate(connection.value()->peer_address(), name, count, options_.call_timeout);
  if (!block.ok()) return block;
  // As all peers have it: what is handed out begins behind the start.
  return IdBlock{.start = block.value().start + 1, .count = block.value().count};
}

IdSource& RegistryAgent::Impl::Source(IdKind kind, const std::string& name) {
  const MutexLock lock(mutex_);
  std::unique_ptr<IdSource>& source = sources_[{kind, name}];
  if (source == nullptr) source = std::make_unique<IdSource>();
  return *source;
}

// --- the agent ---

RegistryAgent::RegistryAgent(IoThreads& io, Executor& callbacks, RegistryAgentOptions options)
    : impl_(std::make_unique<Impl>(io, callbacks, std::move(options))) {}

RegistryAgent::~RegistryAgent() {
  Abandon();
}

Result<void> RegistryAgent::Start() {
  return impl_->Start();
}

void RegistryAgent::StopCallbacks() {
  impl_->StopCallbacks();
}

void RegistryAgent::Stop() {
  impl_->Stop();
}

void RegistryAgent::Abandon() {
  impl_->Abandon();
}

bool RegistryAgent::connected() const {
  return impl_->Current() != nullptr;
}

Result<void> RegistryAgent::AwaitSettled(std::chrono::nanoseconds patience) {
  return impl_->AwaitSettled(patience);
}

Result<void> RegistryAgent::Register(const ServiceInfo& info) {
  return impl_->Edit({.add = {info}});
}

Result<void> RegistryAgent::Edit(const ServiceEdit& edit) {
  return impl_->Edit(edit);
}

void RegistryAgent::Unregister(const ServiceKey& key) {
  // Removals are not checked: this cannot fail.
  (void)impl_->Edit({.remove = {{.name = key.name, .identity = key.identity}}});
}

void RegistryAgent::Subscribe(const Subscription& subscription, ServiceCallback callback) {
  impl_->Subscribe(subscription, std::move(callback));
}

void RegistryAgent::Unsubscribe(const std::string& name) {
  impl_->Unsubscribe(name);
}

ServiceListPtr RegistryAgent::Services(std::string_view name) const {
  return impl_->Services(name);
}

void RegistryAgent::SetLoad(const ServerLoad& load) {
  const ConnectionPtr connection = impl_->Current();
  if (connection != nullptr) (void)connection->Send<wire::SetServerLoad>({.load = load});
}

void RegistryAgent::RegisterOffline(const OfflineNotice& notice, OfflineHandler handler) {
  impl_->RegisterOffline(notice, std::move(handler));
}

void RegistryAgent::Announce(const Announcement& announcement) {
  impl_->Announce(announcement);
}

Result<IdBlock> RegistryAgent::AllocateIds(const std::string& name, std::uint32_t count) {
  return impl_->AllocateIds(name, count);
}

Result<std::int64_t> RegistryAgent::NextId(const std::string& name) {
  const Result<Id128> id = impl_->Source(IdKind::k64, name).Next([this, &name] {
    return impl_->AllocateIds(name, impl_->id_block());
  });
  if (!id.ok()) return id.error();
  return static_cast<std::int64_t>(id.value().low);
}

Result<Id128> RegistryAgent::NextId128(const std::string& name) {
  return impl_->Source(IdKind::k128, name).Next([this, &name] {
    return impl_->AllocateIds128(name, impl_->id_block());
  });
}

}  // namespace zeze::registry
