// ConnectionPool: at most so many connections to one database, shared by the threads that read.
//
//   Result<ConnectionPool<PostgresConnection>::Lease> lease = pool.Take();
//   if (!lease.ok()) return lease.error();
//   lease.value()->Execute(...);           // Goes back at the end, unless it is not IsOpen().
//
// A connection has IsOpen(): false if it is known to be gone.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze {

// Thread-safe. Outlives its leases.
template <typename Connection>
class ConnectionPool {
 public:
  using Connect = std::function<Result<std::unique_ptr<Connection>>()>;

  class Lease {
   public:
    Lease(ConnectionPool& pool, std::unique_ptr<Connection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) pool_->GiveBack(std::move(connection_));
    }

    Connection* operator->() const { return connection_.get(); }
    Connection& operator*() const { return *connection_; }

   private:
    ConnectionPool* pool_;
    std::unique_ptr<Connection> connection_;
  };

  ConnectionPool(Connect connect, std::size_t connections_max, std::chrono::nanoseconds wait_max)
      : connect_(std::move(connect)), connections_max_(connections_max), wait_max_(wait_max) {}

  // Errors: kUnavailable (no connection became free in time), and those of connecting.
  Result<Lease> Take() {
    {
      MutexLock lock(mutex_);
      const auto deadline = SystemClock().Now() + wait_max_;
      while (idle_.empty() && lent_ >= connections_max_) {
        if (!SystemClock().WaitUntil(given_back_, mutex_, deadline)) {
          return Error(ErrorCode::kUnavailable,
                       "all connections to the database are in use for too long. Allow more "
                       "connections, or find out what makes the database slow.");
        }
      }
      ++lent_;
      if (!idle_.empty()) {
        std::unique_ptr<Connection> connection = std::move(idle_.back());
        idle_.pop_back();
        if (connection->IsOpen()) return Lease(*this, std::move(connection));
        idle_.clear();  // What ended this one has most likely ended all of them.
      }
    }
    Result<std::unique_ptr<Connection>> connected = connect_();
    if (!connected.ok()) {
      GiveBack(nullptr);
      return connected.error();
    }
    return Lease(*this, std::move(connected).value());
  }

  // Ends those that nobody uses now.
  void Clear() {
    MutexLock lock(mutex_);
    idle_.clear();
  }

 private:
  void GiveBack(std::unique_ptr<Connection> connection) {
    MutexLock lock(mutex_);
    --lent_;
    if (connection != nullptr && connection->IsOpen()) idle_.push_back(std::move(connection));
    given_back_.NotifyOne();
  }

  const Connect connect_;
  const std::size_t connections_max_;
  const std::chrono::nanoseconds wait_max_;

  Mutex mutex_;
  CondVar given_back_;
  std::vector<std::unique_ptr<Connection>> idle_ ZEZE_GUARDED_BY(mutex_);
  std::size_t lent_ ZEZE_GUARDED_BY(mutex_) = 0;
};

}  // namespace zeze
