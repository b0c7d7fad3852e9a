#include "zeze/net/internal/acceptor_impl.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/internal/connection_impl.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/internal/websocket_upgrade.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/service.h"
#include "zeze/net/websocket_options.h"

namespace zeze::internal {

namespace {

// So many, then other connections of the loop get their turn.
constexpr int kAcceptsPerTurn = 64;

// The system has no descriptors left: some may be closed soon.
constexpr std::chrono::milliseconds kAcceptPause{100};

bool IsPrivate(std::string_view ip) {
  const auto byte = [&ip](std::size_t i) { return static_cast<unsigned char>(ip[i]); };
  return byte(0) == 10 || (byte(0) == 172 && byte(1) >= 16 && byte(1) < 32) ||
         (byte(0) == 192 && byte(1) == 168) || (byte(0) == 100 && byte(1) >= 64 && byte(1) < 128);
}

// The first IPv4 address of the machine that is private, or public. Loopback is neither.
Result<NetAddress> AddressOfMachine(bool want_private, std::uint16_t port) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) {
    return Error(ErrorCode::kUnavailable, "the addresses of this machine cannot be listed");
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(raw, &::freeifaddrs);
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    const std::string_view bytes(reinterpret_cast<const char*>(&address->sin_addr), 4);
    if (bytes[0] == 127 || IsPrivate(bytes) != want_private) continue;
    return NetAddress::FromBytes(bytes, port);
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("this machine has no {} address", want_private ? "private" : "public"));
}

Result<NetAddress> AddressToBind(const AcceptorOptions& options) {
  if (options.ip == "@internal") return AddressOfMachine(true, options.port);
  if (options.ip == "@external") return AddressOfMachine(false, options.port);
  return NetAddress::FromText(options.ip, options.port);
}

struct BindResult {
  int descriptor = -1;
  int error = 0;
};

BindResult BindAndListen(const TcpEndpoint& endpoint, int backlog) {
  BindResult result;
  const int descriptor =
      ::socket(endpoint.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (descriptor < 0) {
    result.error = errno;
    return result;
  }
  const int on = 1;
  const int off = 0;
  // NOLINTNEXTLINE(misc-include-cleaner): of <sys/socket.h>.
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (endpoint.protocol() == boost::asio::ip::tcp::v6()) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 &&
      ::listen(descriptor, backlog) == 0) {
    result.descriptor = descriptor;
    return result;
  }
  result.error = errno;
  ::close(descriptor);
  return result;
}

Error ListenError(const std::string& service, const std::string& address, std::uint16_t port,
                  int error) {
  std::string advice;
  ErrorCode code = ErrorCode::kUnavailable;
  if (error == EADDRINUSE) {
    code = ErrorCode::kInUse;
    advice = fmt::format(
        "another process listens there ('ss -ltnp sport = :{}' shows which): stop "
        "it, or choose another port",
        port);
  } else if (error == EACCES) {
    advice = "ports below 1024 need privileges: choose a higher one";
  } else if (error == EADDRNOTAVAIL) {
    code = ErrorCode::kInvalidArgument;
    advice = "no interface of this machine has this address: write \"::\" to use all of them";
  } else {
    advice = "see 'ulimit -n' and the system's log";
  }
  return {code, fmt::format("{} cannot listen on {}: {}; {}", service, address,
                            std::generic_category().message(error), advice)};
}

}  // namespace

Result<std::shared_ptr<AcceptorImpl>> AcceptorImpl::Open(std::shared_ptr<Service::Impl> service,
                                                         const AcceptorOptions& options,
                                                         IoLoop& loop) {
  const std::string& name = service->options.name;
  if (options.websocket.has_value()) {
    Result<void> checked = CheckWebSocketPath(options.websocket->path);
    if (!checked.ok()) {
      return Error(checked.error().code(),
                   fmt::format("{} cannot listen: {}", name, checked.error().message()));
    }
  }
  BindResult bound;
  std::string shown;
  if (options.ip.empty()) {
    shown = fmt::format("port {} of every address", options.port);
    bound = BindAndListen({boost::asio::ip::tcp::v6(), options.port}, options.backlog);
    if (bound.error == EAFNOSUPPORT || bound.error == EADDRNOTAVAIL) {
      bound = BindAndListen({boost::asio::ip::tcp::v4(), options.port}, options.backlog);
    }
  } else {
    Result<NetAddress> address = AddressToBind(options);
    if (!address.ok()) {
      return Error(address.error().code(),
                   fmt::format("{} cannot listen: {}", name, address.error().message()));
    }
    shown = address.value().ToString();
    bound = BindAndListen(ToEndpoint(address.value()), options.backlog);
  }
  if (bound.descriptor < 0) return ListenError(name, shown, options.port, bound.error);
  const NetAddress address = LocalAddressOf(bound.descriptor);
  auto acceptor =
      std::make_shared<AcceptorImpl>(std::move(service), options, loop, bound.descriptor, address);
  return acceptor;
}

AcceptorImpl::AcceptorImpl(std::shared_ptr<Service::Impl> service, const AcceptorOptions& options,
                           IoLoop& loop, int descriptor, const NetAddress& address)
    : service_(std::move(service)),
      options_(options),
      websocket_(options.websocket.has_value()
                     ? std::make_shared<const WebSocketAcceptOptions>(*options.websocket)
                     : nullptr),
      loop_(loop),
      address_(address),
      descriptor_(descriptor) {}

AcceptorImpl::~AcceptorImpl() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AcceptorImpl::Start() {
  loop_.Post(Task("start acceptor", [self = shared_from_this()] {
    if (self->descriptor_ < 0) return;  // Closed meanwhile.
    const bool is_v6 = self->address_.bytes().size() == 16 || self->options_.ip.empty();
    self->acceptor_ = std::make_unique<TcpAcceptor>(self->loop_.context());
    boost::system::error_code error;
    std::ignore =
        self->acceptor_->assign(is_v6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4(),
                                std::exchange(self->descriptor_, -1), error);
    if (error) {
      ZEZE_LOG_ERROR("{}: accepting on {} failed: {}", self->service_->options.name,
                     self->address_.ToString(), error.message());
      return;
    }
    self->Wait();
  }));
}

void AcceptorImpl::Close() {
  // Here first: the service may have held the last reference.
  const std::shared_ptr<AcceptorImpl> self = shared_from_this();
  service_->Forget(*this);
  const auto close = [](AcceptorImpl& acceptor) {
    acceptor.acceptor_.reset();
    if (acceptor.descriptor_ >= 0) ::close(std::exchange(acceptor.descriptor_, -1));
  };
  if (loop_.IsCurrent()) return close(*self);
  if (IoThreads::IsIoThread()) {  // Of another loop: it must not wait for this one.
    loop_.Post(Task("close acceptor", [self, close] { close(*self); }));
    return;
  }
  WaitGroup closed(1);
  loop_.Post(Task("close acceptor", [self, close, &closed] {
    close(*self);
    closed.Done();
  }));
  closed.Wait();
}

void AcceptorImpl::Wait() {
  acceptor_->async_wait(TcpAcceptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (error || self->acceptor_ == nullptr) return;
                          self->AcceptSome();
                        });
}

void AcceptorImpl::AcceptSome() {
  // A handler of a new connection may close the acceptor.
  for (int i = 0; i < kAcceptsPerTurn && acceptor_ != nullptr; ++i) {
    const int descriptor =
        ::accept4(acceptor_->native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      if (errno == EAGAIN) break;
      // A connection that has ended before it was accepted is none of our business.
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      return OnAcceptError(errno);
    }
    Admit(descriptor);
  }
  if (acceptor_ != nullptr) Wait();
}

void AcceptorImpl::OnAcceptError(int error) {
  ZEZE_LOG_ERROR_EVERY(std::chrono::seconds(1), "{}: accepting on {} failed: {}; see 'ulimit -n'",
                       service_->options.name, address_.ToString(),
                       std::generic_category().message(error));
  loop_.At(loop_.Now() + kAcceptPause, Task("accept again", [self = shared_from_this()] {
             if (self->acceptor_ != nullptr) self->Wait();
           }));
}

void AcceptorImpl::Admit(int descriptor) {
  if (!service_->Admit()) {
    ::close(descriptor);
    return;
  }
  IoLoop& loop = service_->io.NextLoop();
  const auto start = [self = shared_from_this(), &loop, descriptor] {
    auto connection = std::make_shared<ConnectionImpl>(ConnectionImpl::Setup{
        .service = self->service_,
        .loop = loop,
        .socket = SocketDescriptor(descriptor),
        .tls = self->options_.tls,
        .proxy_protocol = self->options_.proxy_protocol,
        .websocket_accept = self->websocket_,
    });
    if (!self->service_->Add(connection)) return self->service_->GiveUp();
    connection->Start();
  };
  if (loop.IsCurrent()) return start();
  loop.Post(Task("start connection", start));
}

}  // namespace zeze::internal
