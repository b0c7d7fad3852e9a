// ClientSession: what a gateway knows about one client's connection.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/bindings.h"
#include "zeze/arch/linkd/outstanding_requests.h"
#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/base/mutex.h"
#include "zeze/net/connection.h"

namespace zeze::arch {

// All sessions of an account.
struct AccountEntry {
  TokenBucket messages;
  std::size_t sessions = 0;  // Guarded by the gateway's lock of accounts.
};

class ClientSession final : public ConnectionState {
 public:
  enum class Phase : std::uint8_t {
    kNew,             // May authenticate, and nothing else.
    kAuthenticating,  // Somebody decides.
    kAuthenticated,
    kClosing,  // Its messages are passed over.
  };

  ClientSession(std::shared_ptr<AddressBook> book, AddressBook::EntryPtr address_in,
                std::chrono::nanoseconds accepted_at_in)
      : address(std::move(address_in)), accepted_at(accepted_at_in), book_(std::move(book)) {}
  ~ClientSession() override { book_->Leave(*address); }

  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  // True if it was in `from`.
  bool Advance(Phase from, Phase to) { return phase_.compare_exchange_strong(from, to); }
  // For good.
  void SetClosing() { phase_.store(Phase::kClosing); }

  void NoteFormer(std::int64_t provider) ZEZE_REQUIRES(mutex) {
    if (!WasBoundTo(provider)) former_providers.push_back(provider);
  }
  bool WasBoundTo(std::int64_t provider) const ZEZE_REQUIRES(mutex) {
    return std::ranges::find(former_providers, provider) != former_providers.end();
  }

  const AddressBook::EntryPtr address;
  const std::chrono::nanoseconds accepted_at;

  // Set before it is in the table.
  std::int64_t sid = 0;
  std::chrono::milliseconds retry_after{0};  // Not 0: it is told so, and closed.

  // Set before the phase becomes kAuthenticated.
  std::string account;
  std::int64_t main_version = 0;
  std::shared_ptr<AccountEntry> account_entry;

  // Of its network thread.
  TokenBucket messages;
  TokenBucket bytes;
  TokenBucket refusals;  // What it sent in spite of a limit: beyond it there is no patience.
  std::vector<TokenBucket> protocols;  // By the index of a protocol's rule; made when needed.
  std::size_t unauthenticated_bytes = 0;
  std::chrono::nanoseconds unbound_reported_at{0};
  std::chrono::nanoseconds limit_reported_at{0};

  // Since when more than a half of its output bound waits; 0: it does not.
  std::atomic<std::chrono::nanoseconds::rep> slow_since = 0;

  Mutex mutex;
  bool closed ZEZE_GUARDED_BY(mutex) = false;
  Bindings bindings ZEZE_GUARDED_BY(mutex);
  OutstandingRequests outstanding ZEZE_GUARDED_BY(mutex);
  // Since when it has all the outstanding requests it may have, and no answer; 0: it has not.
  std::chrono::nanoseconds stuck_since ZEZE_GUARDED_BY(mutex){0};
  // Servers that it was bound to and that are still connected: they may still answer what they were
  // asked before.
  std::vector<std::int64_t> former_providers ZEZE_GUARDED_BY(mutex);
  // Not null: a server has kicked the client, for this reason. The connection is closed when no
  // request is outstanding any more, or a while later.
  std::unique_ptr<const std::string> kicked ZEZE_GUARDED_BY(mutex);
  // Null: empty, as most are before somebody logs in.
  std::unique_ptr<Zeze::Builtin::Provider::BUserState> user_state ZEZE_GUARDED_BY(mutex);

 private:
  const std::shared_ptr<AddressBook> book_;
  std::atomic<Phase> phase_ = Phase::kNew;
};

// Finds the connection of a client by its sid. Thread-safe.
class SessionTable {
 public:
  void Add(std::int64_t sid, ConnectionPtr connection) {
    Shard& shard = ShardOf(sid);
    const MutexLock lock(shard.mutex);
    shard.connections.emplace(sid, std::move(connection));
  }

  void Remove(std::int64_t sid) {
    ConnectionPtr removed;  // Destroyed outside the lock.
    Shard& shard = ShardOf(sid);
    const MutexLock lock(shard.mutex);
    const auto found = shard.connections.find(sid);
    if (found == shard.connections.end()) return;
    removed = std::move(found->second);
    shard.connections.erase(found);
  }

  // Null if there is none.
  ConnectionPtr Find(std::int64_t sid) const {
    const Shard& shard = ShardOf(sid);
    const MutexLock lock(shard.mutex);
    const auto found = shard.connections.find(sid);
    return found == shard.connections.end() ? nullptr : found->second;
  }

  // Those that are there now; the callback runs without locks.
  void ForEach(const std::function<void(const ConnectionPtr& connection)>& visit) const {
    std::vector<ConnectionPtr> some;
    for (const Shard& shard : shards_) {
      {
        const MutexLock lock(shard.mutex);
        for (const auto& [sid, connection] : shard.connections) some.push_back(connection);
      }
      for (const ConnectionPtr& connection : some) visit(connection);
      some.clear();
    }
  }

  std::size_t size() const {
    std::size_t size = 0;
    for (const Shard& shard : shards_) {
      const MutexLock lock(shard.mutex);
      size += shard.connections.size();
    }
    return size;
  }

 private:
  static constexpr std::size_t kShards = 64;

  struct Shard {
    mutable Mutex mutex;
    boost::unordered_flat_map<std::int64_t, ConnectionPtr> connections ZEZE_GUARDED_BY(mutex);
  };

  Shard& ShardOf(std::int64_t sid) { return shards_[static_cast<std::uint64_t>(sid) % kShards]; }
  const Shard& ShardOf(std::int64_t sid) const {
    return shards_[static_cast<std::uint64_t>(sid) % kShards];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace zeze::arch
