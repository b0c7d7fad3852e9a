// IoLoop: one network thread: its sockets, its timers, its work of this turn. The only header of
// this layer, with tcp_socket.h, that shows Asio.

#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/net/internal/socket_poller.h"

namespace zeze::internal {

// Something that is to be called at a moment of the clock.
class DeadlineOwner {
 public:
  DeadlineOwner() = default;
  virtual ~DeadlineOwner() = default;
  DeadlineOwner(const DeadlineOwner&) = delete;
  DeadlineOwner& operator=(const DeadlineOwner&) = delete;

  // On the loop's thread, at or after the deadline, which is forgotten before.
  virtual void OnDeadline(std::chrono::nanoseconds now) = 0;

 private:
  friend class IoLoop;
  std::chrono::nanoseconds deadline_{0};  // 0: none.
};

// Something with output to write at the end of a turn.
class FlushTarget {
 public:
  FlushTarget() = default;
  FlushTarget(const FlushTarget&) = delete;
  FlushTarget& operator=(const FlushTarget&) = delete;

  virtual void OnFlush() = 0;
  virtual void OnLateFlush() = 0;

 protected:
  ~FlushTarget() = default;
};

// Everything but Post, RequestFlush and IsCurrent is for the loop's own thread.
class IoLoop {
 public:
  IoLoop(std::string name, Clock& clock, std::size_t read_buffer_bytes);
  ~IoLoop();

  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  void Start();
  void Stop();

  void Post(Task task);

  // Calls OnFlush after everything else of this turn: what sockets with news had to say is heard
  // before anything is written. However many threads ask, the loop is woken once.
  void RequestFlush(std::shared_ptr<FlushTarget> target);

  // Calls OnLateFlush within about a millisecond. Of the system's time, whatever the clock says: it
  // is no event that anybody waits for.
  void FlushLater(std::shared_ptr<FlushTarget> target);

  bool IsCurrent() const;
  static bool IsAnyCurrent();

  // Runs a task at a moment of the clock.
  void At(std::chrono::nanoseconds deadline, Task task);

  // 0: none. Replaces the one before.
  void SetDeadline(DeadlineOwner& owner, std::chrono::nanoseconds deadline);

  std::chrono::nanoseconds Now() const { return clock_.Now(); }
  Clock& clock() const { return clock_; }

  boost::asio::io_context& context() { return context_; }
  SocketPoller& sockets() { return sockets_; }

  // Contents are valid until the next socket is read.
  std::vector<char>& read_buffer() { return read_buffer_; }
  std::string& plain_buffer() { return plain_buffer_; }
  std::string& decoded_buffer() { return decoded_buffer_; }

 private:
  using Descriptor =
      boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  // The tasks of At, as one owner of a deadline.
  class DelayedTasks final : public DeadlineOwner {
   public:
    explicit DelayedTasks(IoLoop& loop) : loop_(loop) {}
    void Add(std::chrono::nanoseconds deadline, Task task);
    void OnDeadline(std::chrono::nanoseconds now) override;

   private:
    IoLoop& loop_;
    std::multimap<std::chrono::nanoseconds, Task> tasks_;
  };

  void Run();
  void WaitForSockets();
  void RunSockets();
  void FlushAll();
  void FlushTurn();
  void FlushLate();
  void ArmTimer();
  void RunDeadlines();

  const std::string name_;
  Clock& clock_;
  // Sockets are used by the loop's own thread only, which spares their locks.
  boost::asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  SocketPoller sockets_;
  Descriptor sockets_with_news_;
  bool in_turn_ = false;                                  // RunSockets calls owners of sockets.
  std::vector<std::shared_ptr<FlushTarget>> turn_flush_;  // Of these.
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer late_timer_;
  std::vector<std::shared_ptr<FlushTarget>> late_flush_;
  std::chrono::nanoseconds armed_for_{0};  // 0: the timer is not armed.
  std::set<std::pair<std::chrono::nanoseconds, DeadlineOwner*>> deadlines_;
  std::vector<char> read_buffer_;
  std::string plain_buffer_;
  std::string decoded_buffer_;
  DelayedTasks delayed_tasks_{*this};
  std::vector<std::shared_ptr<FlushTarget>> flushing_;

  Mutex flush_mutex_;
  std::vector<std::shared_ptr<FlushTarget>> flush_ ZEZE_GUARDED_BY(flush_mutex_);

  std::thread thread_;
};

}  // namespace zeze::internal
