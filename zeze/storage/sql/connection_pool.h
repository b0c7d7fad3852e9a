// ConnectionPool: at most so many connections to one database, shared by the threads that read.
//
//   Result<ConnectionPool<PostgresConnection>::Lease> lease = pool.Take(table);
//   if (!lease.ok()) return lease.error();
//   lease.value()->Execute(...);           // Goes back at the end, unless it is not IsOpen().
//
// A table that has connections leaves a quarter of them, at least one, to tables that have none: a
// table that is locked in the database does not take the others' connections. The framework's own
// statements (no table) have kFrameworkConnections more, so that they never wait for tables.
//
// A connection has IsOpen(): false if it is known to be gone.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
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

  // Connections beyond connections_max that no table can take.
  static constexpr std::size_t kFrameworkConnections = 2;

  class Lease {
   public:
    Lease(ConnectionPool& pool, const void* table, std::unique_ptr<Connection> connection)
        : pool_(&pool), table_(table), connection_(std::move(connection)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) pool_->GiveBack(table_, std::move(connection_));
    }

    Connection* operator->() const { return connection_.get(); }
    Connection& operator*() const { return *connection_; }

   private:
    ConnectionPool* pool_;
    const void* table_;
    std::unique_ptr<Connection> connection_;
  };

  ConnectionPool(Connect connect, std::size_t connections_max, std::chrono::nanoseconds wait_max)
      : connect_(std::move(connect)),
        connections_max_(connections_max),
        reserved_(connections_max == 1 ? 0 : (connections_max + 3) / 4),
        wait_max_(wait_max) {}

  // `table` is only compared; nullptr for statements of the framework. Errors: kUnavailable (no
  // connection became free in time), and those of connecting.
  Result<Lease> Take(const void* table = nullptr) {
    std::unique_ptr<Connection> connection;
    {
      MutexLock lock(mutex_);
      if (!TryLend(table) && !WaitForTurn(table)) {
        return Error(ErrorCode::kUnavailable,
                     table != nullptr && lent_ < connections_max_
                         ? "all connections that one table may have are in use for too long. Find "
                           "out whether the table is locked in the database, or allow more "
                           "connections (MaxActive)."
                         : "all connections to the database are in use for too long. Allow more "
                           "connections (MaxActive), or find out what makes the database slow.");
      }
      if (!idle_.empty()) {
        connection = std::move(idle_.back());
        idle_.pop_back();
        if (connection->IsOpen()) return Lease(*this, table, std::move(connection));
        idle_.clear();  // What ended this one has most likely ended all of them.
      }
    }
    Result<std::unique_ptr<Connection>> connected = connect_();
    if (!connected.ok()) {
      GiveBack(table, nullptr);
      return connected.error();
    }
    return Lease(*this, table, std::move(connected).value());
  }

  // Ends those that nobody uses now.
  void Clear() {
    MutexLock lock(mutex_);
    idle_.clear();
  }

 private:
  struct Waiter {
    const void* table;
    CondVar turn;
    bool lent = false;
  };

  // Counts the connection as lent if there is one for the table.
  bool TryLend(const void* table) ZEZE_REQUIRES(mutex_) {
    const bool may = table == nullptr
                         ? lent_ < connections_max_ + kFrameworkConnections
                         : lent_ + (lent_to_.contains(table) ? reserved_ : 0) < connections_max_;
    if (!may) return false;
    ++lent_;
    ++lent_to_[table];
    return true;
  }

  bool WaitForTurn(const void* table) ZEZE_REQUIRES(mutex_) {
    const auto deadline = SystemClock().Now() + wait_max_;
    const auto waiter = waiters_.emplace(waiters_.end());
    waiter->table = table;
    while (!waiter->lent && SystemClock().WaitUntil(waiter->turn, mutex_, deadline)) {
    }
    const bool lent = waiter->lent;
    waiters_.erase(waiter);
    return lent;
  }

  void GiveBack(const void* table, std::unique_ptr<Connection> connection) {
    MutexLock lock(mutex_);
    --lent_;
    if (--lent_to_[table] == 0) lent_to_.erase(table);
    if (connection != nullptr && connection->IsOpen()) idle_.push_back(std::move(connection));
    for (Waiter& waiter : waiters_) {
      if (waiter.lent || !TryLend(waiter.table)) continue;
      waiter.lent = true;
      waiter.turn.NotifyOne();
      break;
    }
  }

  const Connect connect_;
  const std::size_t connections_max_;
  const std::size_t reserved_;
  const std::chrono::nanoseconds wait_max_;

  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ ZEZE_GUARDED_BY(mutex_);
  std::size_t lent_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::map<const void*, std::size_t> lent_to_ ZEZE_GUARDED_BY(mutex_);
  std::list<Waiter> waiters_ ZEZE_GUARDED_BY(mutex_);  // One for each thread; the longest first.
};

}  // namespace zeze
