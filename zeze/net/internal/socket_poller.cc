#include "zeze/net/internal/socket_poller.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include <sys/epoll.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/internal/tcp_socket.h"

namespace zeze::internal {

SocketPoller::SocketPoller() : poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  ZEZE_CHECK(poll_.get() >= 0);
}

Result<SocketPoller::Ticket> SocketPoller::Watch(int descriptor,
                                                 std::shared_ptr<SocketOwner> owner) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  Slot& slot = slots_[index];
  const Ticket ticket = std::uint64_t{slot.generation} << 32 | index;
  epoll_event wanted{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = ticket}};
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &wanted) != 0) {
    return Error(ErrorCode::kUnavailable,
                 "the socket cannot be watched: " + std::generic_category().message(errno));
  }
  free_.pop_back();
  slot.owner = std::move(owner);
  return ticket;
}

void SocketPoller::Unwatch(Ticket ticket, int descriptor) {
  const auto index = static_cast<std::uint32_t>(ticket);
  Slot& slot = slots_[index];
  ZEZE_CHECK(slot.generation == ticket >> 32);
  ZEZE_CHECK(::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, descriptor, nullptr) == 0);
  if (++slot.generation == 0) slot.generation = 1;
  slot.owner = nullptr;
  free_.push_back(index);
}

bool SocketPoller::Poll() {
  const int count =
      ::epoll_wait(poll_.get(), news_.data(), static_cast<int>(news_.size()), /*timeout=*/0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = news_[static_cast<std::size_t>(i)];
    const Ticket ticket = event.data.u64;
    const Slot& slot = slots_[static_cast<std::uint32_t>(ticket)];
    // Unwatched by one that was told before.
    if (slot.generation != ticket >> 32 || slot.owner == nullptr) continue;
    const std::shared_ptr<SocketOwner> owner = slot.owner;
    owner->OnSocket(event.events);
  }
  return count > 0;
}

}  // namespace zeze::internal
