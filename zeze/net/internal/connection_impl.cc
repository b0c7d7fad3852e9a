#include "zeze/net/internal/connection_impl.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>  // NOLINT(misc-include-cleaner): IPPROTO_TCP.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/handshake.h"
#include "zeze/net/internal/arrival_queue.h"
// NOLINTNEXTLINE(misc-include-cleaner): the class behind connector_impl_.
#include "zeze/base/result_code.h"
#include "zeze/net/internal/connector_impl.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/internal/keep_alive.h"
#include "zeze/net/internal/rpc_table.h"
#include "zeze/net/internal/socket_poller.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/internal/tls_stream.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

namespace {

std::int64_t NextConnectionId() {
  static std::atomic<std::int64_t> next = 1;
  return next.fetch_add(1);
}

void SetOption(int descriptor, int level, int name, int value) {
  // What the system does not grant is not worth a connection.
  if (::setsockopt(descriptor, level, name, &value, sizeof value) != 0) {
    ZEZE_LOG_DEBUG("a socket option was not set: {}", std::generic_category().message(errno));
  }
}

// Open and close come in order with messages that are handled elsewhere.
Dispatch EventDispatch(Dispatch dispatch) {
  return dispatch == Dispatch::kInline ? Dispatch::kInline : Dispatch::kOrdered;
}

}  // namespace

ConnectionImpl::ConnectionImpl(Setup setup)
    : Connection(setup.service->service, NextConnectionId(), setup.connector),
      service_(std::move(setup.service)),
      loop_(setup.loop),
      connector_impl_(std::move(setup.connector)),
      may_flush_from_caller_(service_->options.send_from_caller && setup.tls == nullptr),
      socket_(std::move(setup.socket)),
      proxy_protocol_(setup.proxy_protocol),
      websocket_(MakeWebSocket(setup, service_->options.frame_bytes_max)),
      dispatched_(service_->options.dispatched_messages_max,
                  service_->options.dispatched_bytes_max),
      output_(service_->options.output_bytes_max, !service_->options.read_always),
      calls_(service_->options.calls_max),
      frame_bytes_max_(service_->options.frame_bytes_max) {
  if (setup.tls != nullptr) {
    tls_ = accepted() ? TlsStream::ForServer(std::move(setup.tls))
                      : TlsStream::ForClient(std::move(setup.tls), setup.tls_name);
  }
  local_address_ = LocalAddressOf(socket_.get());
  peer_address_ = PeerAddressOf(socket_.get());
}

ConnectionImpl::~ConnectionImpl() = default;

std::shared_ptr<ConnectionImpl> ConnectionImpl::Self() {
  return std::static_pointer_cast<ConnectionImpl>(shared_from_this());
}

// NOLINTBEGIN(misc-include-cleaner): SOL_SOCKET and its options are of <sys/socket.h>.
void ConnectionImpl::SetSocketOptions() {
  const int descriptor = socket_.get();
  // Processes that this one starts have no business with the peer.
  static_cast<void>(::fcntl(descriptor, F_SETFD, FD_CLOEXEC));
  static_cast<void>(::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK));
  const SocketOptions& socket = options().socket;
  SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, socket.no_delay ? 1 : 0);
  SetOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, socket.tcp_keep_alive ? 1 : 0);
  if (socket.tcp_keep_alive) {
    SetOption(descriptor, IPPROTO_TCP, TCP_KEEPIDLE,
              static_cast<int>(socket.keep_alive_idle.count()));
    SetOption(descriptor, IPPROTO_TCP, TCP_KEEPINTVL,
              static_cast<int>(socket.keep_alive_interval.count()));
    SetOption(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  }
  if (socket.send_buffer_bytes > 0) {
    SetOption(descriptor, SOL_SOCKET, SO_SNDBUF, socket.send_buffer_bytes);
  }
  if (socket.receive_buffer_bytes > 0) {
    SetOption(descriptor, SOL_SOCKET, SO_RCVBUF, socket.receive_buffer_bytes);
  }
  if (socket.unconfirmed_max.count() > 0) {
    SetOption(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT,
              static_cast<int>(socket.unconfirmed_max.count()));
  }
}
// NOLINTEND(misc-include-cleaner)

void ConnectionImpl::Start() {
  SetSocketOptions();
  last_received_ = loop_.Now();
  last_sent_.store(last_received_.count());
  handshake_deadline_ = last_received_ + options().handshake_timeout;
  Result<void> entered = EnterPhase(proxy_protocol_ ? Phase::kProxy : Phase::kTls);
  if (!entered.ok()) return FailPeer(entered.error());
  Flush();
  UpdateDeadline();
  if (closing_) return;
  Result<SocketPoller::Ticket> watch = loop_.sockets().Watch(socket_.get(), Self());
  if (!watch.ok()) return Close(watch.error().message());
  watch_ = watch.value();
  StartReading();
}

// For whoever waits for a connection: a wrong port and a missing or unexpected TLS look alike.
std::string ConnectionImpl::DescribePhase() const {
  switch (phase_) {
    case Phase::kTls:
      return "during the TLS handshake";
    case Phase::kUpgrade:
      return "during the upgrade to a WebSocket";
    default:
      return tls_ != nullptr ? "before the greeting: it may not be a zeze service"
                             : "before the greeting: it may expect TLS, or not be a zeze service";
  }
}

Result<void> ConnectionImpl::EnterPhase(Phase phase) {
  phase_ = phase;
  if (phase_ == Phase::kTls) {
    if (accepted() && options().admit) {
      std::shared_ptr<ConnectionState> state = options().admit(peer_address_);
      if (state == nullptr) {
        ++service_->not_admitted;
        Close("it was not admitted");
        return {};
      }
      set_state(std::move(state));
    }
    if (tls_ != nullptr) {
      if (accepted()) return {};
      TellProgress();
      Result<void> started = tls_->Start();
      tls_->TakeOutput(wire_);
      return started;
    }
    phase_ = Phase::kUpgrade;
  }
  if (phase_ == Phase::kUpgrade) {
    if (websocket_ != nullptr) {
      TellProgress();
      return StartUpgrade();
    }
    phase_ = Phase::kHandshake;
  }
  if (phase_ == Phase::kHandshake) {
    if (options().handshake.has_value()) {
      const HandshakeOptions& handshake = *options().handshake;
      if (!accepted()) {
        client_handshake_.emplace(handshake, peer_address_);
        TellProgress();
        return {};
      }
      server_handshake_.emplace(handshake, local_address_);
      return SendDuringHandshake(server_handshake_->Start());
    }
    phase_ = Phase::kReady;
  }
  if (phase_ == Phase::kReady) BecomeReady();
  return {};
}

void ConnectionImpl::TellProgress() {
  if (connector_impl_ == nullptr) return;
  connector_impl_->SetProgress("connected, waiting " + DescribePhase());
}

void ConnectionImpl::BecomeReady() {
  phase_ = Phase::kReady;
  handshake_deadline_ = std::chrono::nanoseconds(0);
  server_handshake_.reset();
  client_handshake_.reset();
  const std::chrono::nanoseconds now = loop_.Now();
  // Nobody but us can keep a browser's connection alive: pages cannot send pings.
  const bool sends = !accepted() || websocket_ != nullptr;
  const KeepAliveOptions& keep_alive = options().keep_alive;
  if (keep_alive.check_period.count() > 0 && (sends || keep_alive.receive_timeout.count() > 0)) {
    keep_alive_.emplace(keep_alive, sends, now, service_->io.Random());
  }
  {
    MutexLock lock(mutex_);
    if (closing_) return;
    open_ = true;
  }
  was_ready_ = true;
  UpdateDeadline();
  service_->SetReady(*this);
  if (connector_impl_ != nullptr) connector_impl_->OnReady(shared_from_this());
  if (!service_->on_open) return;
  Deliver(
      EventDispatch(options().dispatch),
      Arrival{.task = Task("connection open", [self = Self()] { self->service_->on_open(self); })},
      nullptr);
}

std::string ConnectionImpl::TlsBinding() const {
  return tls_ == nullptr ? std::string() : tls_->Binding();
}

bool ConnectionImpl::IsOpen() const {
  MutexLock lock(mutex_);
  return open_;
}

void ConnectionImpl::Close(std::string_view reason) {
  {
    MutexLock lock(mutex_);
    if (closing_.exchange(true)) return;
    open_ = false;
    if (close_reason_.empty()) close_reason_ = reason;
  }
  loop_.Post(Task("close connection", [self = Self()] { self->FinishClose(); }));
}

void ConnectionImpl::CloseWhenSent(std::string_view reason) {
  EndOutput(reason, WebSocketClose::kNormal, {});
}

// The last words of a WebSocket are a close with this code and text.
void ConnectionImpl::EndOutput(std::string_view reason, WebSocketClose code,
                               std::string_view text) {
  FlushBy by = FlushBy::kNobody;
  {
    MutexLock lock(mutex_);
    if (closing_ || close_when_sent_) return;
    const bool was_open = std::exchange(open_, false);
    close_when_sent_ = true;
    close_reason_ = reason;
    if (was_open && websocket_ != nullptr) {
      // If the output is full the peer sees the end of the connection only.
      output_.Append([&](ByteWriter& out) { websocket_->encoder.WriteClose(code, text, out); });
    }
    by = PrepareFlush();
  }
  RunFlush(by);
}

void ConnectionImpl::FinishClose() {
  if (finished_) return;
  std::vector<RpcTable::Call> calls;
  std::string reason;
  {
    MutexLock lock(mutex_);
    if (flushing_) {  // By another thread, which calls this again when it has let go of the socket.
      close_when_flushed_ = true;
      return;
    }
    calls = calls_.TakeAll();
    reason = close_reason_;
  }
  finished_ = true;
  if (!was_ready_) ++service_->handshakes_failed;
  SayGoodbye();
  handshake_deadline_ = stall_deadline_ = std::chrono::nanoseconds(0);
  keep_alive_.reset();
  loop_.SetDeadline(*this, std::chrono::nanoseconds(0));
  if (watch_ != 0) loop_.sockets().Unwatch(watch_, socket_.get());
  socket_.Close();
  ZEZE_LOG_DEBUG("{}: closed: {}", Describe(), reason);
  for (RpcTable::Call& call : calls) {
    const RawReply reply{.outcome = RpcOutcome::kClosed, .result_code = result_code::kClosed};
    static_cast<void>(EndCall(std::move(call), reply, 0));
  }
  if (connector_impl_ != nullptr) {
    if (!was_ready_ && !explained_) reason += " " + DescribePhase();
    connector_impl_->OnClosed(reason, heard_);
  }
  if (!was_ready_) {
    service_->Remove(*this);
    return;
  }
  const Dispatch dispatch = EventDispatch(options().dispatch);
  if (service_->on_close) {
    const ErrorCode code = peer_failed_ ? ErrorCode::kCorrupt : ErrorCode::kUnavailable;
    Deliver(dispatch,
            Arrival{.task = Task("connection close",
                                 [self = Self(), error = Error(code, reason)] {
                                   self->service_->on_close(self, error);
                                 })},
            nullptr);
  }
  // On its own: it must happen even if the callback throws.
  Deliver(dispatch,
          Arrival{.task = Task("forget connection", [self = Self()] { self->LeaveService(); })},
          nullptr);
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): a task frees what it holds.
  LeaveService();
}

// Service::Stop waits until every connection has left, and the executor may be destroyed as soon as
// it returns. So a connection leaves when its last event has run and when this loop, which may be
// inside Post while that event runs, has let go of the executor.
void ConnectionImpl::LeaveService() {
  if (holds_service_.fetch_sub(1) == 1) service_->Remove(*this);
}

// Everything was sent: says so to the peer and waits for its own end, passing over what it still
// sends. Closing with unread input would reset the connection, and the peer could lose our last
// words.
void ConnectionImpl::HangUp() {
  if (finished_ || closing_ || hung_up_) return;
  hung_up_ = true;
  ::shutdown(socket_.get(), SHUT_WR);
  handshake_deadline_ = loop_.Now() + options().handshake_timeout;
  UpdateDeadline();
  StartReading();
}

// A WebSocket hears the code, and the text if there is one: the error may be not for strangers.
void ConnectionImpl::FailPeer(const Error& error, WebSocketClose code, std::string_view text) {
  ++service_->protocol_errors;
  peer_failed_ = true;
  explained_ = phase_ == Phase::kTls || error.code() == ErrorCode::kIncompatible ||
               error.code() == ErrorCode::kInvalidArgument;
  service_->LogPeerError(Describe(), error.message());
  if (websocket_ == nullptr || !IsOpen()) return Close(error.message());
  PassOverInput();
  EndOutput(error.message(), code, text);
}

// For a peer that is done with: what it still sends is lost, and it has little time to read our
// last words.
void ConnectionImpl::PassOverInput() {
  deaf_ = true;
  loop_.Post(Task("limit the end of a connection", [self = Self()] {
    if (self->finished_) return;
    self->handshake_deadline_ = self->loop_.Now() + self->options().handshake_timeout;
    self->UpdateDeadline();
  }));
}

void ConnectionImpl::OnDeadline(std::chrono::nanoseconds now) {
  if (finished_) return;
  if (handshake_deadline_.count() != 0 && now >= handshake_deadline_) {
    if (hung_up_) return Close("the peer does not close");
    ++service_->handshake_timeouts;
    return Close("the handshake took too long");
  }
  if (stall_deadline_.count() != 0 && now >= stall_deadline_) {
    ++service_->write_stalls;
    service_->LogPeerError(Describe(), "the peer does not read: nothing could be written for long");
    return Close("the peer does not read");
  }
  std::vector<RpcTable::Call> expired;
  {
    MutexLock lock(mutex_);
    expired = calls_.TakeExpired(now);
  }
  BeginTurn();
  for (RpcTable::Call& call : expired) {
    const RawReply reply{.outcome = RpcOutcome::kTimedOut, .result_code = result_code::kTimeout};
    static_cast<void>(EndCall(std::move(call), reply, 0));
  }
  CheckKeepAlive(now);
  Flush();
  UpdateDeadline();
}

void ConnectionImpl::CheckKeepAlive(std::chrono::nanoseconds now) {
  static constexpr ProtocolDescriptor kKeepAlive{.protocol_id = kKeepAliveId,
                                                 .full_name = "Zeze.Services.Handshake.KeepAlive",
                                                 .is_rpc = true};
  if (!keep_alive_.has_value()) return;
  const std::chrono::nanoseconds last_sent(last_sent_.load());
  switch (keep_alive_->Check(now, last_received_, last_sent)) {
    case KeepAlive::Action::kNothing:
      return;
    case KeepAlive::Action::kClose:
      return Close("nothing was received for too long");
    case KeepAlive::Action::kSend: {
      if (accepted()) return SendPing();
      const auto ignore = [](const RawReply&) { return true; };
      // If the output is full the peer hears from us anyway.
      static_cast<void>(SendRequest(
          kKeepAlive, {.dispatch = Dispatch::kInline}, [](ByteWriter& out) { out.WriteEnd(); },
          ignore));
      return;
    }
  }
}

void ConnectionImpl::UpdateDeadline() {
  if (finished_) return;
  std::chrono::nanoseconds next{0};
  const auto consider = [&next](std::chrono::nanoseconds deadline) {
    if (deadline.count() != 0 && (next.count() == 0 || deadline < next)) next = deadline;
  };
  consider(handshake_deadline_);
  consider(stall_deadline_);
  if (keep_alive_.has_value()) consider(keep_alive_->next_check());
  {
    MutexLock lock(mutex_);
    call_deadline_ = calls_.NextDeadline().value_or(std::chrono::nanoseconds(0));
    consider(call_deadline_);
  }
  loop_.SetDeadline(*this, next);
}

}  // namespace zeze::internal
