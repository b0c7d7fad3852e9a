// MariaDbNodes: connects to the nodes that an address names, and leaves one that hangs.
//
//   MariaDbNodes nodes(options, copy);
//   Result<std::unique_ptr<MariaDbConnection>> connected = nodes.Connect(session);
//
// The node that answered last is tried first, one that was found hanging last. If the address names
// several nodes and a statement has no answer for two seconds, its node is asked to take another
// connection; if it does not within connect_timeout, all connections to it end, and statements that
// wait for it with SqlFailure::kLost. So a node that stands still, or has lost its cluster
// while a COMMIT waits for it, costs seconds and not the time a statement may take.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_copy.h"

namespace zeze {

class MariaDbConnection;
struct MariaDbSession;

// What one connection does now, for the thread that watches. Has a descriptor of its own for the
// socket, so that it never names another one.
class MariaDbActivity {
 public:
  MariaDbActivity(std::size_t node, int socket);
  MariaDbActivity(const MariaDbActivity&) = delete;
  MariaDbActivity& operator=(const MariaDbActivity&) = delete;
  ~MariaDbActivity();

  std::size_t node() const { return node_; }

  void Begin();
  void End() { busy_since_.store(0); }
  // When the statement under way was sent, by SystemClock; 0: there is none.
  std::chrono::nanoseconds busy_since() const { return std::chrono::nanoseconds(busy_since_); }

  // Whoever waits for an answer learns that the connection is gone.
  void GiveUp() const;

 private:
  const std::size_t node_;
  const int socket_;
  std::atomic<std::int64_t> busy_since_ = 0;
};

// Thread-safe. Outlives its connections.
class MariaDbNodes {
 public:
  MariaDbNodes(const MariaDbOptions& options, DatabaseCopy& copy);
  ~MariaDbNodes();

  // Errors: kInvalidArgument, kUnavailable (with what each node said), kFenced (there is only a
  // copy that may lack what was acknowledged).
  Result<std::unique_ptr<MariaDbConnection>> Connect(const MariaDbSession& session);

 private:
  std::vector<std::size_t> Order(std::size_t nodes);
  void Watch();
  // Those for which a statement waits for too long.
  std::set<std::size_t> StalledNodes();
  bool Answers(std::size_t node);
  void GiveUp(std::size_t node);

  const MariaDbOptions options_;
  DatabaseCopy& copy_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  std::size_t first_ ZEZE_GUARDED_BY(mutex_) = 0;  // The node to try first.
  std::vector<std::weak_ptr<MariaDbActivity>> activities_ ZEZE_GUARDED_BY(mutex_);
  std::thread watch_;  // Runs from the first connection on, if there are several nodes.
};

}  // namespace zeze
