#include "zeze/global/service/global_service.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/global/service/global_service_impl.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/service.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

namespace {

// A frame: a part of a login is the largest.
constexpr std::size_t kFrameBytesMax = std::size_t{2} << 20;

// Connections that have not logged in. Of more the oldest is closed: a login takes milliseconds.
constexpr std::size_t kStrangersMax = 256;

// What the machine does by itself is a matter of seconds.
constexpr std::chrono::nanoseconds kTickPeriod = std::chrono::milliseconds(50);

}  // namespace

GlobalService::Impl::Impl(IoThreads& io, Fence& fence, Executor& blocking,
                          GlobalServiceOptions options)
    : io_(io),
      fence_(fence),
      blocking_(blocking),
      options_(std::move(options)),
      machine_(MachineOptions(options_), *this),
      admin_({.shard = options_.shard,
              .machine = machine_,
              .fence = fence,
              .now = [this] { return Now(); },
              .in_background =
                  [this](std::function<Task()> work) { InBackground(hooks(), std::move(work)); },
              .peer = [this](ConnectionId id) { return PeerOf(id); },
              .tell = [this](const std::string& text) { Tell("admin", {.text = text}); }},
             options_.operators, options_.audit_log),
      service_(io, {.name = "Global",
                    .socket = {.unconfirmed_max = wire::kUnconfirmedMax},
                    .frame_bytes_max = kFrameBytesMax,
                    .output_bytes_max = std::size_t{64} << 20,
                    .inside = true,
                    .connections_max = kSessionsMax}) {
  service_.OnOpen([this](const ConnectionPtr& connection) { OnOpen(connection); });
  service_.OnClose([this](const ConnectionPtr& connection, const Error&) { OnClose(*connection); });
  HandleLogins();
  HandleRequests();
  admin_.AddHandlers(service_);
}

Result<void> GlobalService::Impl::Start() {
  Result<std::shared_ptr<Acceptor>> listening = service_.Listen(options_.acceptor);
  if (!listening.ok()) return listening.error();
  acceptor_ = listening.value();
  io_.Post([this] {
    machine_.Start(Now());
    Tick();
  });
  return {};
}

void GlobalService::Impl::Stop() {
  if (std::exchange(stopped_, true)) return;
  service_.Stop();
  background_.Wait();
  // The last answers of the database and the last tick are behind this,
  OnLoop<bool>([this] { return *alive_ = false; });
  background_.Wait();  // and behind this what they have started.
}

void GlobalService::Impl::OnOpen(const ConnectionPtr& connection) {
  connection->set_state(std::make_shared<Session>());
  strangers_[IdOf(*connection)] = {.connection = connection, .since = Now()};
  if (strangers_.size() <= kStrangersMax) return;
  const ConnectionPtr oldest = strangers_.begin()->second.connection;
  oldest->Close("too many connections have not logged in");
}

void GlobalService::Impl::OnClose(const Connection& connection) {
  const ConnectionId id = IdOf(connection);
  announced_ -= connection.state<Session>()->bytes;
  announcing_.erase(id);
  strangers_.erase(id);
  connections_.erase(id);
  logins_.erase(id);
  admin_.OnClosed(id);
  machine_.OnClosed(Now(), id);
}

void GlobalService::Impl::Close(ConnectionId connection) {
  if (Connection* open = Find(connection)) open->CloseWhenSent("its session has ended");
}

void GlobalService::Impl::Tick() {
  const GlobalServer::Time now = Now();
  // A server says nothing between its login and the answer, which takes longer the more rights it
  // announces. Its silence begins here: otherwise a login that takes longer than silence_max would
  // be closed as soon as it is answered, and so would the next one.
  for (const ConnectionId connection : std::exchange(logged_in_, {})) {
    machine_.OnKeepAlive(now, connection);
  }
  machine_.Tick(now);
  CloseStrangers();
  admin_.Tick();
  if (machine_.serving() && !std::exchange(serving_, true)) {
    ZEZE_LOG_INFO("Global {} serves, term {}, {} keys are held", options_.shard, machine_.term(),
                  machine_.directory().key_count());
  }
  if (machine_.deposed() && !std::exchange(deposed_, true) && options_.deposed) {
    blocking_.Post([deposed = options_.deposed] { deposed(); });
  }
  io_.PostAfter(kTickPeriod, [this, alive = alive_] {
    if (*alive) Tick();
  });
}

void GlobalService::Impl::Refuse(const Error& why) {
  ZEZE_LOG_ERROR("Global {} does not fit its database: {}", options_.shard, why.message());
  if (options_.refused) blocking_.Post([refused = options_.refused, why] { refused(why); });
}

void GlobalService::Impl::Tell(std::string_view kind, const GlobalAlert& alert) {
  ZEZE_LOG_WARNING("Global {}: {}", options_.shard, alert.text);
  if (options_.alert) options_.alert(kind, alert);
}

GlobalOptions GlobalService::Impl::MachineOptions(const GlobalServiceOptions& options) {
  GlobalOptions machine = options.machine;
  machine.can_stop_servers = options.stop_server != nullptr;
  return machine;
}

std::string GlobalService::Impl::PeerOf(ConnectionId id) {
  const Connection* connection = Find(id);
  return connection == nullptr ? "" : connection->peer_address().ToString();
}

// --- the database -------------------------------------------------------------------------------

void GlobalService::Impl::InBackground(Executor& executor, std::function<Task()> work) {
  background_.Add();
  executor.Post([this, alive = alive_, work = std::move(work)] {
    Task then = work();
    io_.Post([alive, then = std::move(then)]() mutable {
      if (*alive) then();
    });
    background_.Done();
  });
}

template <typename T>
void GlobalService::Impl::NoteDatabase(const Result<T>& result) {
  if (result.ok()) {
    trouble_.Over(Now());
  } else if (result.error().code() == ErrorCode::kUnavailable) {
    trouble_.Failed(result.error().message(), Now());
  }
}

template <typename Call, typename Told>
void GlobalService::Impl::Ask(Call call, Told told) {
  InBackground(blocking_, [this, call = std::move(call), told = std::move(told)]() -> Task {
    auto result = call();
    return [this, result, told] {
      NoteDatabase(result);
      told(result);
    };
  });
}

void GlobalService::Impl::RaiseTerm() {
  InBackground(blocking_, [this]() -> Task {
    // First: a term that was raised in another copy is no term.
    auto history = fence_.History();
    Result<std::int64_t> result = history.ok() ? fence_.RaiseTerm({.shard = options_.shard,
                                                                   .holder = options_.holder,
                                                                   .shards = options_.shards,
                                                                   .secret = secret_})
                                               : Result<std::int64_t>(history.error());
    auto cluster = fence_.Cluster();
    if (result.ok() && !cluster.ok()) result = cluster.error();
    return [this, result, history, cluster] {
      if (history.ok() && history_.empty()) history_ = history.value();
      if (result.ok() && cluster.value().has_value()) cluster_ = cluster.value()->cluster;
      NoteDatabase(result);
      if (!result.ok() && result.error().code() == ErrorCode::kIncompatible) {
        Refuse(result.error());
        return;
      }
      machine_.OnTermRaised(Now(), result);
    };
  });
}

void GlobalService::Impl::ReadTerm() {
  InBackground(blocking_, [this]() -> Task {
    auto terms = fence_.Terms();
    Result<std::int64_t> result =
        terms.ok() ? Result<std::int64_t>(terms.value()[options_.shard]) : terms.error();
    auto history = fence_.History();
    return [this, result, history] {
      NoteDatabase(result);
      machine_.OnTerm(Now(), result);
      if (history.ok() && history_ != history.value()) machine_.OnHistoryLost(Now());
    };
  });
}

void GlobalService::Impl::ListLive() {
  Ask([this] { return fence_.ListLive(); },
      [this](const auto& servers) { machine_.OnLiveServers(Now(), servers); });
}

void GlobalService::Impl::Want(std::int32_t server_id, std::int64_t epoch, std::int64_t term) {
  Ask([=, this] { return fence_.Want(server_id, epoch, options_.shard, term); },
      [=, this](const auto& written) { machine_.OnWanted(Now(), server_id, epoch, written); });
}

void GlobalService::Impl::Unwant(std::int32_t server_id, std::int64_t epoch, std::int64_t term) {
  Ask([=, this] { return fence_.Unwant(server_id, epoch, options_.shard, term); },
      [](const auto&) {});
}

void GlobalService::Impl::ReadYields() {
  Ask([this] { return fence_.Yields(options_.shard); },
      [this](const auto& yields) { machine_.OnYields(Now(), yields); });
}

void GlobalService::Impl::Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t term,
                                const EvictUnless& unless) {
  Ask([=, this] { return fence_.Evict(server_id, epoch, options_.shard, term, unless); },
      [=, this](const auto& outcome) { machine_.OnEvicted(Now(), server_id, epoch, outcome); });
}

void GlobalService::Impl::ReadServer(std::int32_t server_id) {
  Ask([=, this] { return fence_.Read(server_id); },
      [=, this](const auto& row) { machine_.OnServerRow(Now(), server_id, row); });
}

void GlobalService::Impl::LeaseOver(std::int32_t server_id, std::int64_t epoch) {
  Ask([=, this] { return fence_.LeaseOver(server_id, epoch); }, [](const auto&) {});
}

void GlobalService::Impl::StopServer(std::int32_t server_id, std::uint64_t ticket) {
  InBackground(hooks(), [this, server_id, ticket]() -> Task {
    const bool stopped = options_.stop_server(server_id);
    return [this, server_id, ticket, stopped] {
      machine_.OnStopped(Now(), server_id, ticket, stopped);
    };
  });
}

// --- the service --------------------------------------------------------------------------------

GlobalService::GlobalService(IoThreads& io, Fence& fence, Executor& blocking,
                             GlobalServiceOptions options)
    : impl_(std::make_unique<Impl>(io, fence, blocking, std::move(options))) {}

GlobalService::~GlobalService() {
  Stop();
}

Result<void> GlobalService::Start() {
  return impl_->Start();
}

void GlobalService::Stop() {
  impl_->Stop();
}

NetAddress GlobalService::address() const {
  return impl_->address();
}

GlobalService::Status GlobalService::GetStatus() const {
  return impl_->OnLoop<Status>([this] {
    const GlobalServer& machine = impl_->machine();
    return Status{.term = machine.term(),
                  .accepting = machine.accepting(),
                  .serving = machine.serving(),
                  .unfenced = machine.unfenced(),
                  .keys = machine.directory().key_count()};
  });
}

bool GlobalService::CleanUp(std::int32_t server_id) {
  return impl_->OnLoop<bool>(
      [this, server_id] { return impl_->machine().Cleanup(impl_->Now(), server_id); });
}

}  // namespace zeze::global
