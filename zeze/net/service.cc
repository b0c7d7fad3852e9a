#include "zeze/net/service.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/check.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/acceptor_impl.h"
#include "zeze/net/internal/connection_impl.h"
#include "zeze/net/internal/connector_impl.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"

namespace zeze {

Service::Impl::Impl(Service& service_in, IoThreads& io_in, ServiceOptions options_in)
    : service(service_in), io(io_in), options(std::move(options_in)) {
  const auto require = [this](bool good, const char* what) {
    ZEZE_REQUIRE(good, fmt::format("service {}: {}", options.name, what));
  };
  require(options.dispatch == Dispatch::kInline || options.executor != nullptr,
          "handlers that do not run on io threads need ServiceOptions::executor");
  require(options.frame_bytes_max > 0, "frame_bytes_max is 0: set at least 1");
  require(options.handshake_timeout.count() > 0, "handshake_timeout must be greater than zero");
}

void Service::Impl::RequireSetUp(const char* what) const {
  ZEZE_REQUIRE(!frozen, fmt::format("service {}: {} must be set before the first Listen or Connect",
                                    options.name, what));
}

bool Service::Impl::Admit() {
  std::size_t full = 0;
  std::shared_ptr<internal::ConnectionImpl> slowest;
  {
    MutexLock lock(mutex);
    if (stopping) return false;
    if (accepted_count >= options.connections_max) {
      full = accepted_count;
    } else {
      if (handshaking_count >= options.handshakes_max && !handshaking.empty()) {
        slowest = connections[*handshaking.begin()].connection;
        handshaking.erase(handshaking.begin());
      }
      ++accepted_count;
      ++handshaking_count;
      ++accepted;
    }
  }
  if (slowest != nullptr) {
    ++handshakes_displaced;
    slowest->Close(fmt::format("the slowest of {} handshakes", options.handshakes_max));
  }
  if (full == 0) return true;
  ++refused;
  LogPeerError(options.name, fmt::format("a connection is refused: there are {} already "
                                         "(maxConnections)",
                                         full));
  return false;
}

void Service::Impl::GiveUp() {
  MutexLock lock(mutex);
  --accepted_count;
  --handshaking_count;
}

bool Service::Impl::Add(const std::shared_ptr<internal::ConnectionImpl>& connection) {
  MutexLock lock(mutex);
  if (stopping) return false;
  connections[connection->id()] = Entry{.connection = connection};
  if (connection->accepted()) handshaking.insert(connection->id());
  return true;
}

void Service::Impl::SetReady(const internal::ConnectionImpl& connection) {
  MutexLock lock(mutex);
  connections[connection.id()].ready = true;
  ++ready_count;
  handshaking.erase(connection.id());
  if (connection.accepted()) --handshaking_count;
}

void Service::Impl::Remove(const internal::ConnectionImpl& connection) {
  // Destroyed outside the lock.
  std::shared_ptr<internal::ConnectionImpl> removed;
  MutexLock lock(mutex);
  const auto found = connections.find(connection.id());
  ZEZE_CHECK(found != connections.end());
  handshaking.erase(connection.id());
  if (connection.accepted()) {
    --accepted_count;
    if (!found->second.ready) --handshaking_count;
  }
  if (found->second.ready) --ready_count;
  removed = std::move(found->second.connection);
  connections.erase(found);
  if (connections.empty()) changed.NotifyAll();
}

void Service::Impl::Forget(const internal::AcceptorImpl& acceptor) {
  MutexLock lock(mutex);
  std::erase_if(acceptors, [&acceptor](const auto& one) { return one.get() == &acceptor; });
}

void Service::Impl::Forget(const internal::ConnectorImpl& connector) {
  MutexLock lock(mutex);
  std::erase_if(connectors, [&connector](const auto& one) { return one.get() == &connector; });
}

void Service::Impl::LogPeerError(std::string_view who, std::string_view what) {
  constexpr std::uint64_t kLinesPerSecond = 20;
  {
    MutexLock lock(mutex);
    const std::chrono::nanoseconds now = io.clock().Now();
    if (now - log_window > std::chrono::seconds(1)) {
      if (logged_in_window > kLinesPerSecond) {
        ZEZE_LOG_WARNING("{}: {} more lines like the last ones were left out", options.name,
                         logged_in_window - kLinesPerSecond);
      }
      log_window = now;
      logged_in_window = 0;
    }
    if (++logged_in_window > kLinesPerSecond) return;
  }
  ZEZE_LOG_WARNING("{}: {}", who, what);
}

Service::Service(IoThreads& io, ServiceOptions options)
    : impl_(std::make_shared<Impl>(*this, io, std::move(options))) {}

Service::~Service() {
  Stop();
}

void Service::HandleRaw(const ProtocolDescriptor& protocol, RawHandler handler,
                        const HandlerOptions& options) {
  impl_->RequireSetUp("a handler");
  const auto require = [&](bool good, const char* what) {
    ZEZE_REQUIRE(good, fmt::format("service {}: the handler of protocol {} {}", impl_->options.name,
                                   protocol.full_name, what));
  };
  auto entry = std::make_unique<internal::HandlerEntry>();
  entry->protocol = &protocol;
  entry->handler = std::move(handler);
  entry->dispatch = options.dispatch.value_or(impl_->options.dispatch);
  entry->executor = options.executor != nullptr ? options.executor : impl_->options.executor;
  require(entry->dispatch != Dispatch::kOrdered || impl_->options.executor != nullptr,
          "needs ServiceOptions::executor to run in order");
  require(entry->dispatch != Dispatch::kParallel || entry->executor != nullptr,
          "needs an executor to run in parallel");
  const bool is_new = impl_->handlers.emplace(protocol.type_id(), std::move(entry)).second;
  require(is_new, "was added twice");
}

void Service::ForwardOthers(Forwarder forwarder) {
  impl_->RequireSetUp("the forwarder");
  impl_->forwarder = std::move(forwarder);
}

void Service::OnOpen(std::function<void(const ConnectionPtr& connection)> callback) {
  impl_->RequireSetUp("OnOpen");
  impl_->on_open = std::move(callback);
}

void Service::OnClose(
    std::function<void(const ConnectionPtr& connection, const Error& reason)> callback) {
  impl_->RequireSetUp("OnClose");
  impl_->on_close = std::move(callback);
}

Result<std::shared_ptr<Acceptor>> Service::Listen(const AcceptorOptions& options) {
  impl_->frozen = true;
  AcceptorOptions to_open = options;
  const bool inside = impl_->options.inside;
  if (inside && to_open.ip.empty()) to_open.ip = "127.0.0.1";
  Result<std::shared_ptr<internal::AcceptorImpl>> opened =
      internal::AcceptorImpl::Open(impl_, to_open, impl_->io.NextLoop());
  if (!opened.ok()) return opened.error();
  const NetAddress& address = opened.value()->address();
  if (inside && to_open.tls == nullptr && !address.IsLoopback()) {
    ZEZE_LOG_WARNING(
        "{}: other machines can reach {} without TLS, and whoever reaches it is believed: keep the "
        "port inside (127.0.0.1, a firewall), or use TLS with client certificates",
        name(), address.ToString());
  }
  {
    MutexLock lock(impl_->mutex);
    if (impl_->stopping) return Error(ErrorCode::kShuttingDown, name() + " has been stopped");
    impl_->acceptors.push_back(opened.value());
  }
  opened.value()->Start();
  return std::shared_ptr<Acceptor>(opened.value());
}

std::shared_ptr<Connector> Service::Connect(const ConnectorOptions& options) {
  impl_->frozen = true;
  auto connector = std::make_shared<internal::ConnectorImpl>(impl_, options, impl_->io.NextLoop());
  bool stopping = false;
  {
    MutexLock lock(impl_->mutex);
    stopping = impl_->stopping;
    if (!stopping) impl_->connectors.push_back(connector);
  }
  stopping ? connector->Stop() : connector->Start();
  return connector;
}

void Service::Stop() {
  ZEZE_CHECK(!IoThreads::IsIoThread());
  std::vector<std::shared_ptr<internal::AcceptorImpl>> acceptors;
  std::vector<std::shared_ptr<internal::ConnectorImpl>> connectors;
  std::vector<std::shared_ptr<internal::ConnectionImpl>> open;
  {
    MutexLock lock(impl_->mutex);
    impl_->stopping = true;
    acceptors.swap(impl_->acceptors);
    connectors.swap(impl_->connectors);
    for (const auto& [id, entry] : impl_->connections) open.push_back(entry.connection);
  }
  for (const auto& acceptor : acceptors) acceptor->Close();
  for (const auto& connector : connectors) connector->Stop();
  for (const auto& connection : open) connection->Close("the service was stopped");
  MutexLock lock(impl_->mutex);
  while (!impl_->connections.empty()) impl_->changed.Wait(impl_->mutex);
}

std::size_t Service::connection_count() const {
  MutexLock lock(impl_->mutex);
  return impl_->ready_count;
}

std::vector<ConnectionPtr> Service::connections() const {
  std::vector<ConnectionPtr> ready;
  MutexLock lock(impl_->mutex);
  for (const auto& [id, entry] : impl_->connections) {
    if (entry.ready) ready.push_back(entry.connection);
  }
  return ready;
}

ConnectionPtr Service::FindConnection(std::int64_t id) const {
  MutexLock lock(impl_->mutex);
  const auto found = impl_->connections.find(id);
  if (found == impl_->connections.end() || !found->second.ready) return nullptr;
  return found->second.connection;
}

Service::Statistics Service::GetStatistics() const {
  return {
      .accepted = impl_->accepted,
      .refused = impl_->refused,
      .not_admitted = impl_->not_admitted,
      .handshakes_failed = impl_->handshakes_failed,
      .handshake_timeouts = impl_->handshake_timeouts,
      .handshakes_displaced = impl_->handshakes_displaced,
      .upgrades_refused = impl_->upgrades_refused,
      .protocol_errors = impl_->protocol_errors,
      .oversize_frames = impl_->oversize_frames,
      .bad_compression = impl_->bad_compression,
      .compression_bombs = impl_->compression_bombs,
      .write_stalls = impl_->write_stalls,
      .sends_refused = impl_->sends_refused,
      .late_answers = impl_->late_answers,
      .peer_messages = impl_->peer_messages,
  };
}

const std::string& Service::name() const {
  return impl_->options.name;
}

const ServiceOptions& Service::options() const {
  return impl_->options;
}

IoThreads& Service::io() const {
  return impl_->io;
}

}  // namespace zeze
