// GlobalService: one shard of Global on the network (what `zeze global` runs).
//
//   GlobalService global(io, *storage->fence(), pool, {.shard = 0, .acceptor = {.port = 5002}});
//   Result<void> started = global.Start();
//   ...
//   global.Stop();
//
// The machine (global_server.h) lives on the network thread, which must be the only one of its
// IoThreads; the calls to the database run on the executor.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/admin/admin_desk.h"
#include "zeze/admin/audit_log.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/global/global_server.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

struct GlobalServiceOptions {
  std::int32_t shard = 0;
  // How many shards the cluster has. 0: as many as the database says; 1 if it says nothing.
  std::int32_t shards = 0;
  AcceptorOptions acceptor = {.port = 5002};  // Without an address: 127.0.0.1.
  GlobalOptions machine;
  // A connection that has not logged in by then is closed.
  std::chrono::nanoseconds login_timeout = std::chrono::seconds(10);
  // What all logins under way may name together, in memory: nobody can fill it before it is known
  // who it is. Enough for some 20,000,000 rights with short keys.
  std::size_t announced_bytes_max = 1'280'000'000;
  // Who it is, in the database: unique among all processes and starts.
  std::string holder = {};
  // For the operators: loss, eviction, take-over, and what they ask for themselves (kind "admin").
  // Runs on the network thread and must not wait (AlertSender::Send does not).
  std::function<void(std::string_view kind, const GlobalAlert& alert)> alert = nullptr;

  // Requests of operators (`zeze admin`). Without a log there are none.
  admin::AdminDeskOptions operators = {};
  admin::AuditLog* audit_log = nullptr;

  // Stops a server that the database cannot fence (an old peer), by whatever means; may wait. True:
  // it does not run any more, and nothing of it is on its way to the database. Null: no means.
  std::function<bool(std::int32_t server_id)> stop_server = nullptr;
  // Where stop_server and the audit log wait, so that calls to the database need not queue behind
  // them. Null: the same as those.
  Executor* hooks = nullptr;
  // The shard was taken over by another process, or the database cannot be asked any more.
  std::function<void()> deposed = nullptr;
  // The cluster in the database has another number of shards, or is of another build: this Global
  // will never serve. The message names both sides and how to change each.
  std::function<void(const Error& why)> refused = nullptr;
};

class GlobalService {
 public:
  // All outlive the service. `fence` is that of a storage for which Start was not called.
  GlobalService(IoThreads& io, Fence& fence, Executor& blocking, GlobalServiceOptions options);
  ~GlobalService();
  GlobalService(const GlobalService&) = delete;
  GlobalService& operator=(const GlobalService&) = delete;

  // Listens at once; grants when the recovery is done.
  Result<void> Start();
  void Stop();

  // Where it listens.
  NetAddress address() const;

  struct Status {
    std::int64_t term = 0;
    bool accepting = false;  // Servers may log in.
    bool serving = false;
    bool unfenced = false;  // Old peers take part.
    std::size_t keys = 0;
  };
  // Waits for the network thread.
  Status GetStatus() const;

  // Takes the rights of a server away, alive or not. False: it has no session. Waits likewise.
  bool CleanUp(std::int32_t server_id);

 private:
  class Impl;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final.
  std::unique_ptr<Impl> impl_;
};

}  // namespace zeze::global
