// GlobalClient: a server's rights, from all shards of Global: the Coherence behind an Engine. It
// owns the epoch, the lease and a ShardSession for each shard; whatever is about a key goes to the
// session of its shard.
//
//   GlobalClient client(io, *storage, pool, {.server_id = 7, .shards = {{"10.0.0.1", 5002}}});
//   Engine engine({.storage = storage, .coherence = &client});
//   client.Start(engine);             // Epoch, lease, sessions. Then engine.Start().
//   ...
//   engine.Stop();                    // Saves everything,
//   client.Stop();                    // tells the database and Global, and ends.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/global/lease.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/tls.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"
#include "zeze/transaction/engine.h"

namespace zeze::global {

struct GlobalClientOptions {
  struct Shard {
    std::string host;
    std::uint16_t port = 5002;
  };

  std::int32_t server_id = 0;
  // Null: not encrypted. The certificate must be for tls_name; empty: for the host.
  TlsContextPtr tls = nullptr;
  std::string tls_name = {};
  std::vector<Shard> shards = {};  // None: this process has the database to itself, fenced.
  std::string holder;              // For people who look at the database: host, process.
  LeaseOptions lease;
  Clock* clock = &SystemClock();
  // See FenceStartOptions: proof that the process before this one has ended.
  std::string incarnation = {};
  std::vector<std::string> ended = {};
  // How long a right that has just come is kept from others, so that its procedure can commit.
  std::chrono::nanoseconds hold = std::chrono::milliseconds(50);
  // A part of what Global takes for silence (GlobalOptions::silence_max).
  std::chrono::nanoseconds keep_alive = std::chrono::milliseconds(200);
  std::chrono::nanoseconds acquire_timeout = std::chrono::seconds(20);
  // Start waits for so long until all shards have accepted the server.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(30);
  // Work also under a Global of Zeze 1.6, which fences nobody: then not all faults are safe. While
  // it is out of sight this server does nothing (unfenced_trust.h).
  bool allow_unfenced_global = false;
  // Such a Global is out of sight when it has not answered for so long. As old servers have it.
  std::chrono::nanoseconds unfenced_silence_max = std::chrono::seconds(8);
  // For tests: log in as a server of Zeze 1.6 does, whatever the Global is, and hold the lock of a
  // record while its right is asked for, as such a server does: Reduces of the record wait.
  bool log_in_as_old_peer = false;
  // This process has lost its rights for ever: end it, nothing may be saved. Called once.
  std::function<void(const std::string& why)> on_fenced = nullptr;
};

class GlobalClient final : public Coherence {
 public:
  // All outlive the client.
  GlobalClient(IoThreads& io, Fence& fence, GlobalClientOptions options);
  ~GlobalClient() override;
  GlobalClient(const GlobalClient&) = delete;
  GlobalClient& operator=(const GlobalClient&) = delete;

  // Before Engine::Start, with all tables added. Fences older processes of the same id, takes a
  // lease, logs in everywhere. Before that it compares its configuration with the cluster in the
  // database: errors then name both sides and how to change each, and nobody was fenced.
  // If `exclusive_for` is not empty it starts only while no other server lives, and keeps others
  // from starting until Share: what for, as the beginning of a sentence.
  Result<void> Start(Engine& engine, const std::string& exclusive_for = {});
  // After an exclusive start.
  Result<void> Share();

  // After Engine::Stop, whose last flush was the last. Without it (a crash) Global waits for the
  // lease to end.
  Result<void> Stop();

  // Nothing is told to anybody: for a fenced process, and for tests of a crash.
  void Abandon();

  std::int64_t epoch() const;
  // Whether a Global that fences nobody grants rights here: then not all faults are safe.
  bool unfenced() const;

  Result<void> Acquire(std::string_view key, Right wanted, FreshRights& fresh,
                       FunctionRef<void(Right granted)> install) override;
  void AcquireAll(std::span<const Wish> wishes, FreshRights& fresh,
                  FunctionRef<void(std::size_t index, Right granted)> install) override;
  void Used(FreshRights& fresh) override;
  void Release(std::string_view key) override;
  bool LeaseValid() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zeze::global
