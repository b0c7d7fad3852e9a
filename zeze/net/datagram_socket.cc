#include "zeze/net/datagram_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/ip/udp.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"

namespace zeze {

namespace {

using UdpEndpoint = boost::asio::ip::udp::endpoint;

// So that a flood of datagrams leaves the thread time for its connections.
constexpr int kDatagramsPerTurn = 64;

NetAddress FromEndpoint(const UdpEndpoint& endpoint) {
  if (endpoint.address().is_v4()) {
    const auto bytes = endpoint.address().to_v4().to_bytes();
    return NetAddress::FromBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                 endpoint.port());
  }
  const auto bytes = endpoint.address().to_v6().to_bytes();
  return NetAddress::FromBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                               endpoint.port());
}

// For a socket that takes both versions an IPv4 address is written as an IPv6 one.
UdpEndpoint ToEndpoint(const NetAddress& address, bool is_v6) {
  const std::string_view bytes = address.bytes();
  if (bytes.size() == 4) {
    boost::asio::ip::address_v4::bytes_type raw = {};
    std::memcpy(raw.data(), bytes.data(), raw.size());
    const boost::asio::ip::address_v4 v4(raw);
    if (!is_v6) return {v4, address.port()};
    return {boost::asio::ip::make_address_v6(boost::asio::ip::v4_mapped, v4), address.port()};
  }
  boost::asio::ip::address_v6::bytes_type raw = {};
  if (bytes.size() == raw.size()) std::memcpy(raw.data(), bytes.data(), raw.size());
  return {boost::asio::ip::address_v6(raw), address.port()};
}

struct Bound {
  int descriptor = -1;
  int error = 0;
};

Bound Bind(const UdpEndpoint& endpoint) {
  const int descriptor =
      ::socket(endpoint.data()->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  if (descriptor < 0) return {.error = errno};
  const int off = 0;
  if (endpoint.protocol() == boost::asio::ip::udp::v6()) {
    ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0) {
    return {.descriptor = descriptor};
  }
  const Bound failed{.error = errno};
  ::close(descriptor);
  return failed;
}

class DatagramSocketImpl final : public DatagramSocket,
                                 public std::enable_shared_from_this<DatagramSocketImpl> {
 public:
  DatagramSocketImpl(internal::IoLoop& loop, const DatagramOptions& options, Handler handler,
                     int descriptor, bool is_v6)
      : loop_(loop),
        handler_(std::move(handler)),
        is_v6_(is_v6),
        buffer_(options.bytes_max + 1),
        descriptor_(descriptor) {
    UdpEndpoint endpoint;
    auto length = static_cast<socklen_t>(endpoint.capacity());
    if (::getsockname(descriptor, endpoint.data(), &length) != 0) return;
    endpoint.resize(length);
    address_ = FromEndpoint(endpoint);
  }
  ~DatagramSocketImpl() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  void Start() {
    loop_.Post(Task("start datagrams", [self = shared_from_this()] {
      const MutexLock lock(self->mutex_);
      if (self->descriptor_ < 0) return;  // Closed meanwhile.
      self->socket_ = std::make_unique<boost::asio::ip::udp::socket>(self->loop_.context());
      boost::system::error_code error;
      std::ignore = self->socket_->assign(
          self->is_v6_ ? boost::asio::ip::udp::v6() : boost::asio::ip::udp::v4(), self->descriptor_,
          error);
      if (error) {
        ZEZE_LOG_ERROR("receiving datagrams on {} failed: {}", self->address_.ToString(),
                       error.message());
        self->socket_.reset();
        return;
      }
      self->Wait();
    }));
  }

  const NetAddress& address() const override { return address_; }

  void Send(std::string_view bytes, const NetAddress& to) override {
    const UdpEndpoint endpoint = ToEndpoint(to, is_v6_);
    const MutexLock lock(mutex_);
    if (descriptor_ < 0) return;
    // Without room in the socket's buffer it is lost, as it may be anywhere else.
    (void)::sendto(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                   endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  }

  void Close() override {
    const std::shared_ptr<DatagramSocketImpl> self = shared_from_this();
    if (loop_.IsCurrent()) return CloseOnLoop();
    if (IoThreads::IsIoThread()) {  // Of another loop: it must not wait for this one.
      loop_.Post(Task("close datagrams", [self] { self->CloseOnLoop(); }));
      return;
    }
    WaitGroup closed(1);
    loop_.Post(Task("close datagrams", [self, &closed] {
      self->CloseOnLoop();
      closed.Done();
    }));
    closed.Wait();
  }

 private:
  void CloseOnLoop() {
    const MutexLock lock(mutex_);
    if (socket_ != nullptr) {
      socket_.reset();  // It has the descriptor.
    } else if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
    descriptor_ = -1;
  }

  void Wait() ZEZE_REQUIRES(mutex_) {
    socket_->async_wait(boost::asio::ip::udp::socket::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (!error) self->ReceiveSome();
                        });
  }

  void ReceiveSome() {
    for (int i = 0; i < kDatagramsPerTurn; ++i) {
      UdpEndpoint from;
      ssize_t size = 0;
      {
        const MutexLock lock(mutex_);
        if (descriptor_ < 0) return;
        auto length = static_cast<socklen_t>(from.capacity());
        size = ::recvfrom(descriptor_, buffer_.data(), buffer_.size(), MSG_DONTWAIT, from.data(),
                          &length);
        // Anything but EAGAIN is about one datagram (an unreachable peer, say).
        if (size < 0 && errno == EAGAIN) break;
        if (size < 0) continue;
        from.resize(length);
      }
      // A byte more than allowed: it was longer, perhaps much.
      if (static_cast<std::size_t>(size) == buffer_.size()) continue;
      handler_(*this, {buffer_.data(), static_cast<std::size_t>(size)}, FromEndpoint(from));
    }
    const MutexLock lock(mutex_);
    if (socket_ != nullptr) Wait();
  }

  internal::IoLoop& loop_;
  const Handler handler_;
  const bool is_v6_;
  NetAddress address_;
  std::vector<char> buffer_;  // The loop's.

  Mutex mutex_;
  int descriptor_ ZEZE_GUARDED_BY(mutex_);
  std::unique_ptr<boost::asio::ip::udp::socket> socket_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::shared_ptr<DatagramSocket>> DatagramSocket::Open(IoThreads& io,
                                                             const DatagramOptions& options,
                                                             Handler handler) {
  Bound bound;
  bool is_v6 = options.ip.empty();
  if (is_v6) {
    bound = Bind({boost::asio::ip::udp::v6(), options.port});
    if (bound.error == EAFNOSUPPORT || bound.error == EADDRNOTAVAIL) {
      is_v6 = false;
      bound = Bind({boost::asio::ip::udp::v4(), options.port});
    }
  } else {
    Result<NetAddress> address = NetAddress::FromText(options.ip, options.port);
    if (!address.ok()) return address.error();
    is_v6 = address.value().bytes().size() == 16;
    bound = Bind(ToEndpoint(address.value(), is_v6));
  }
  if (bound.descriptor < 0) {
    return Error(bound.error == EADDRINUSE ? ErrorCode::kInUse : ErrorCode::kUnavailable,
                 fmt::format("cannot receive datagrams (UDP) on port {} of {}: {}", options.port,
                             options.ip.empty() ? "every address" : options.ip,
                             std::generic_category().message(bound.error)));
  }
  auto socket = std::make_shared<DatagramSocketImpl>(io.Loop(0), options, std::move(handler),
                                                     bound.descriptor, is_v6);
  socket->Start();
  return std::shared_ptr<DatagramSocket>(socket);
}

}  // namespace zeze
