// SocketPoller: tells the owners of sockets when there is something to read or room to write.
//
//   const Result<SocketPoller::Ticket> ticket = poller.Watch(descriptor, owner);
//   while (poller.Poll()) FlushOutput();    // Calls OnSocket of those with news.
//
// Asio asks the system for news again after each piece of it: a system call for each read. Here all
// news of a socket is asked for once and told once (edge-triggered). So whoever is told reads until
// nothing is left, or remembers that something is; and a write that did not take everything is
// followed by news of room.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/epoll.h>

#include "zeze/base/result.h"
#include "zeze/net/internal/tcp_socket.h"

namespace zeze::internal {

class SocketOwner {
 public:
  SocketOwner() = default;
  SocketOwner(const SocketOwner&) = delete;
  SocketOwner& operator=(const SocketOwner&) = delete;

  // A set of EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR.
  virtual void OnSocket(std::uint32_t news) = 0;

 protected:
  ~SocketOwner() = default;
};

// Of one thread.
class SocketPoller {
 public:
  using Ticket = std::uint64_t;  // Never 0.

  SocketPoller();

  SocketPoller(const SocketPoller&) = delete;
  SocketPoller& operator=(const SocketPoller&) = delete;

  // The owner is kept alive until Unwatch, after which it is not called any more.
  Result<Ticket> Watch(int descriptor, std::shared_ptr<SocketOwner> owner);
  // Before the descriptor is closed.
  void Unwatch(Ticket ticket, int descriptor);

  // Tells the news that there is, without waiting. False if there was none.
  bool Poll();

  // Readable while there is news.
  int descriptor() const { return poll_.get(); }

 private:
  static constexpr std::size_t kNewsAtOnce = 256;

  struct Slot {
    std::shared_ptr<SocketOwner> owner;
    std::uint32_t generation = 1;  // News of an owner before is not for this one.
  };

  SocketDescriptor poll_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::array<epoll_event, kNewsAtOnce> news_ = {};
};

}  // namespace zeze::internal
