#include "zeze/net/internal/connector_impl.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connector.h"
#include "zeze/net/internal/connection_impl.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/websocket_options.h"

namespace zeze::internal {

namespace {

std::shared_ptr<const WebSocketConnectOptions> WebSocketOf(const ConnectorOptions& options) {
  if (!options.websocket.has_value()) return nullptr;
  auto websocket = std::make_shared<WebSocketConnectOptions>(*options.websocket);
  if (websocket->host.empty()) {
    const bool is_v6 = options.host.find(':') != std::string::npos;
    websocket->host = is_v6 ? fmt::format("[{}]", options.host) : options.host;
    const std::uint16_t usual = options.tls == nullptr ? 80 : 443;
    if (options.port != usual) websocket->host += fmt::format(":{}", options.port);
  }
  return websocket;
}

}  // namespace

ConnectorImpl::ConnectorImpl(std::shared_ptr<Service::Impl> service, ConnectorOptions options,
                             IoLoop& loop)
    : service_(std::move(service)),
      options_(std::move(options)),
      name_(fmt::format("{}:{}", options_.host, options_.port)),
      websocket_(WebSocketOf(options_)),
      loop_(loop),
      policy_(options_.first_delay, options_.delay_max) {}

ConnectorImpl::~ConnectorImpl() = default;

void ConnectorImpl::Start() {
  loop_.Post(Task("connect", [self = shared_from_this()] { self->Attempt(); }));
}

ConnectionPtr ConnectorImpl::connection() const {
  MutexLock lock(mutex_);
  return connection_;
}

Result<ConnectionPtr> ConnectorImpl::WaitReady(std::chrono::nanoseconds patience) {
  ZEZE_CHECK(!IoThreads::IsIoThread());
  Clock& clock = loop_.clock();
  const std::chrono::nanoseconds deadline = clock.Now() + patience;
  MutexLock lock(mutex_);
  bool in_time = true;
  while (connection_ == nullptr && !ended_ && in_time) {
    in_time = clock.WaitUntil(changed_, mutex_, deadline);
  }
  if (connection_ != nullptr) return connection_;
  return Error(ErrorCode::kUnavailable,
               fmt::format("{}: no connection to {}: {}", service_->options.name, name_,
                           stopped_ ? "the connector was stopped" : last_failure_));
}

std::string ConnectorImpl::progress() const {
  MutexLock lock(mutex_);
  return progress_;
}

void ConnectorImpl::SetProgress(std::string progress) {
  MutexLock lock(mutex_);
  progress_ = std::move(progress);
}

void ConnectorImpl::Stop() {
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = ended_ = true;
    changed_.NotifyAll();
  }
  loop_.Post(Task("stop connector", [self = shared_from_this()] {
    self->loop_.SetDeadline(*self, std::chrono::nanoseconds(0));
    self->socket_.reset();
    self->resolver_.reset();
    if (self->current_ != nullptr) return self->current_->Close("the connector was stopped");
    self->service_->Forget(*self);
  }));
}

void ConnectorImpl::Attempt() {
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
  }
  failure_.clear();
  endpoints_.clear();
  next_endpoint_ = 0;
  // An address needs no looking up, and no thread for it.
  if (Result<NetAddress> address = NetAddress::FromText(options_.host, options_.port);
      address.ok()) {
    endpoints_.push_back(ToEndpoint(address.value()));
    return ConnectNext();
  }
  SetProgress(fmt::format("looking up the name {}", options_.host));
  resolver_.emplace(loop_.context());
  resolver_->async_resolve(
      options_.host, std::to_string(options_.port),
      [self = shared_from_this()](const boost::system::error_code& error,
                                  const Resolver::results_type& results) {
        if (!self->resolver_.has_value()) return;  // Stopped meanwhile.
        self->resolver_.reset();
        if (error) {
          return self->OnFailed(fmt::format("the name {} cannot be looked up: {}",
                                            self->options_.host, error.message()));
        }
        for (const auto& result : results) self->endpoints_.push_back(result.endpoint());
        self->ConnectNext();
      });
}

void ConnectorImpl::ConnectNext() {
  if (next_endpoint_ >= endpoints_.size()) {
    socket_.reset();  // The next deadline is that of a new attempt.
    return OnFailed(failure_);
  }
  const TcpEndpoint endpoint = endpoints_[next_endpoint_++];
  SetProgress(fmt::format("connecting to {}", ToNetAddress(endpoint).ToString()));
  socket_.emplace(loop_.context());
  loop_.SetDeadline(*this, loop_.Now() + service_->options.handshake_timeout);
  socket_->async_connect(endpoint, [self = shared_from_this(),
                                    endpoint](const boost::system::error_code& error) {
    if (!self->socket_.has_value()) return;  // Stopped meanwhile.
    self->loop_.SetDeadline(*self, std::chrono::nanoseconds(0));
    if (!error) return self->OnConnected();
    // OnDeadline closes the socket.
    const bool too_long = error == boost::asio::error::operation_aborted;
    self->failure_ = fmt::format("connecting to {} failed: {}", ToNetAddress(endpoint).ToString(),
                                 too_long ? "it took too long" : error.message());
    self->ConnectNext();
  });
}

void ConnectorImpl::OnConnected() {
  boost::system::error_code error;
  SocketDescriptor socket(socket_->release(error));
  socket_.reset();
  if (error) return OnFailed(error.message());
  current_ = std::make_shared<ConnectionImpl>(ConnectionImpl::Setup{
      .service = service_,
      .loop = loop_,
      .socket = std::move(socket),
      .connector = shared_from_this(),
      .tls = options_.tls,
      .tls_name = options_.tls_name.empty() ? options_.host : options_.tls_name,
      .websocket_connect = websocket_,
  });
  if (!service_->Add(current_)) {
    current_ = nullptr;  // The service stops.
    return;
  }
  current_->Start();
}

void ConnectorImpl::OnReady(ConnectionPtr connection) {
  MutexLock lock(mutex_);
  progress_ = "connected";
  connection_ = std::move(connection);
  changed_.NotifyAll();
}

void ConnectorImpl::OnClosed(std::string_view reason, bool heard) {
  current_ = nullptr;
  // A peer that lets everybody in and says nothing is as good as none.
  if (heard) policy_.Reset();
  OnFailed(reason);
}

void ConnectorImpl::OnFailed(std::string_view reason) {
  bool ended = false;
  bool tell = false;
  {
    MutexLock lock(mutex_);
    const bool was_ready = std::exchange(connection_, nullptr) != nullptr;
    last_failure_ = reason;
    progress_ = "waiting for the next attempt";
    tell = !was_ready && !stopped_ && options_.on_attempt_failed;
    ended = ended_ = stopped_ || !options_.reconnect;
    if (ended) changed_.NotifyAll();
  }
  if (tell) options_.on_attempt_failed(Error(ErrorCode::kUnavailable, std::string(reason)));
  if (ended) return service_->Forget(*this);
  const std::chrono::nanoseconds delay = policy_.NextDelay(service_->io.Random());
  ZEZE_LOG_INFO("{}: no connection to {}: {}; the next attempt comes in {} ms",
                service_->options.name, name_, reason,
                std::chrono::duration_cast<std::chrono::milliseconds>(delay).count());
  loop_.SetDeadline(*this, loop_.Now() + delay);
}

void ConnectorImpl::OnDeadline(std::chrono::nanoseconds /*now*/) {
  if (!socket_.has_value()) return Attempt();
  // Connecting takes too long: the operation ends with an error.
  boost::system::error_code ignored;
  std::ignore = socket_->close(ignored);
}

}  // namespace zeze::internal
