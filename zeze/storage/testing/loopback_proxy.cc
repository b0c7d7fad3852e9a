#include "zeze/storage/testing/loopback_proxy.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"

namespace zeze {
namespace {

sockaddr_in LoopbackAddress(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// What came, empty at the end.
std::string Receive(int socket) {
  std::string bytes(65536, '\0');
  const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), 0);
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

void CloseSocket(int& socket) {
  if (socket >= 0) ::close(socket);
  socket = -1;
}

}  // namespace

LoopbackProxy::LoopbackProxy(int server_port, const std::string& address)
    : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in bound = LoopbackAddress(0);
  ZEZE_CHECK(::inet_pton(AF_INET, address.c_str(), &bound.sin_addr) == 1);
  socklen_t size = sizeof bound;
  ZEZE_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&bound), size) == 0);
  ZEZE_CHECK(::listen(listener_, 64) == 0);
  ZEZE_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size) == 0);
  port_ = ntohs(bound.sin_port);
  wake_up_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

LoopbackProxy::~LoopbackProxy() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  WakeUp();
  thread_.join();
  CutAll();
  ::close(listener_);
  ::close(wake_up_);
}

void LoopbackProxy::WakeUp() const {
  const std::uint64_t one = 1;
  ZEZE_CHECK(::write(wake_up_, &one, sizeof one) == sizeof one);
}

void LoopbackProxy::Run() {
  for (;;) {
    std::vector<pollfd> sockets = {{.fd = listener_, .events = POLLIN, .revents = 0},
                                   {.fd = wake_up_, .events = POLLIN, .revents = 0}};
    std::uint64_t generation = 0;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      generation = generation_;
      // A negative descriptor is ignored by poll.
      if (silent_) sockets[0].fd = -1;
      for (Connection& connection : connections_) {
        const bool reading = !silent_ && !connection.held && !connection.delivering;
        sockets.push_back({.fd = reading ? connection.client : -1, .events = POLLIN, .revents = 0});
        sockets.push_back({.fd = silent_ ? -1 : connection.server, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(sockets.data(), sockets.size(), -1);
    SystemClock().SleepFor(TakePause());
    MutexLock lock(mutex_);
    if (sockets[1].revents != 0) {
      std::uint64_t count = 0;
      ZEZE_CHECK(::read(wake_up_, &count, sizeof count) == sizeof count);
    }
    if (generation != generation_) continue;
    std::size_t i = 2;
    for (auto it = connections_.begin(); it != connections_.end(); i += 2) {
      bool open = true;
      if (sockets[i].revents != 0) open = FromClient(*it);
      if (open && sockets[i + 1].revents != 0) open = FromServer(*it);
      if (!open) Close(*it);
      it = open ? std::next(it) : connections_.erase(it);
    }
    if (sockets[0].revents != 0) Accept();
    changed_.NotifyAll();
  }
}

void LoopbackProxy::Accept() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = LoopbackAddress(server_port_);
  const bool connected =
      !refusing_ &&
      ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (!connected) {
    ::close(client);
    ::close(server);
    return;
  }
  const int on = 1;
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connections_.push_back({.client = client, .server = server, .waiting = {}, .tail = {}});
}

bool LoopbackProxy::FromClient(Connection& connection) {
  const std::string bytes = Receive(connection.client);
  passed_ += bytes.size();
  if (bytes.empty()) return false;
  if (action_ != Action::kNone) {
    const std::string seen = connection.tail + bytes;
    if (const std::size_t at = seen.find(text_); at != std::string::npos) {
      // The beginning may have gone through with the bytes before.
      const std::size_t before = at > connection.tail.size() ? at - connection.tail.size() : 0;
      return Trigger(connection, std::string_view(bytes).substr(0, before),
                     std::string_view(bytes).substr(before));
    }
    connection.tail = seen.substr(seen.size() - std::min(seen.size(), text_.size() - 1));
  }
  return SendAll(connection.server, bytes);
}

bool LoopbackProxy::Trigger(Connection& connection, std::string_view before,
                            std::string_view rest) {
  const Action action = action_;
  action_ = Action::kNone;
  if (!SendAll(connection.server, before)) return false;
  switch (action) {
    case Action::kNone:
    case Action::kCutBefore:
      break;
    case Action::kCutAfterAnswer:
      connection.cut_at_answer = true;
      return SendAll(connection.server, rest);
    case Action::kHold:
      connection.held = true;
      connection.waiting = rest;
      triggered_ = true;
      return true;
  }
  triggered_ = true;
  return false;
}

bool LoopbackProxy::FromServer(Connection& connection) {
  const std::string bytes = Receive(connection.server);
  passed_ += bytes.size();
  if (connection.delivering) {
    delivered_ = bytes.empty() ? 0 : 1;
    return false;
  }
  if (connection.cut_at_answer) {
    triggered_ = true;
    return false;
  }
  return !bytes.empty() && (connection.client < 0 || SendAll(connection.client, bytes));
}

void LoopbackProxy::Close(Connection& connection) {
  CloseSocket(connection.client);
  CloseSocket(connection.server);
}

void LoopbackProxy::WhenClientSends(std::string_view text, Action action) {
  MutexLock lock(mutex_);
  text_ = text;
  action_ = action;
  triggered_ = false;
  for (Connection& connection : connections_) connection.tail.clear();
}

void LoopbackProxy::AwaitTriggered() {
  MutexLock lock(mutex_);
  while (!triggered_) changed_.Wait(mutex_);
}

LoopbackProxy::Connection& LoopbackProxy::Held() {
  auto it = std::find_if(connections_.begin(), connections_.end(),
                         [](const Connection& connection) { return connection.held; });
  ZEZE_CHECK(it != connections_.end());
  return *it;
}

void LoopbackProxy::LetGo() {
  MutexLock lock(mutex_);
  auto it = std::find_if(connections_.begin(), connections_.end(),
                         [](const Connection& connection) { return connection.held; });
  if (it == connections_.end()) return;  // The server has closed it meanwhile.
  it->held = false;
  SendAll(it->server, it->waiting);
  WakeUp();
}

void LoopbackProxy::DropHeldClient() {
  MutexLock lock(mutex_);
  CloseSocket(Held().client);
}

bool LoopbackProxy::DeliverLate() {
  MutexLock lock(mutex_);
  Connection& connection = Held();
  connection.held = false;
  connection.delivering = true;
  delivered_ = -1;
  SendAll(connection.server, connection.waiting);
  WakeUp();
  while (delivered_ < 0) changed_.Wait(mutex_);
  return delivered_ == 1;
}

void LoopbackProxy::CutAll() {
  MutexLock lock(mutex_);
  for (Connection& connection : connections_) Close(connection);
  connections_.clear();
  ++generation_;
  if (!stopping_) WakeUp();
}

void LoopbackProxy::Refuse(bool refusing) {
  MutexLock lock(mutex_);
  refusing_ = refusing;
}

void LoopbackProxy::Silence(bool silent) {
  MutexLock lock(mutex_);
  silent_ = silent;
  ++generation_;  // What poll is looking at now counts no more.
  WakeUp();
}

void LoopbackProxy::LimitRate(std::size_t bytes_per_second) {
  MutexLock lock(mutex_);
  bytes_per_second_ = bytes_per_second;
}

std::chrono::nanoseconds LoopbackProxy::TakePause() {
  MutexLock lock(mutex_);
  const std::size_t passed = std::exchange(passed_, 0);
  if (bytes_per_second_ == 0) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds(std::chrono::seconds(passed)) / bytes_per_second_;
}

}  // namespace zeze
