#include "zeze/storage/mariadb/mariadb_nodes.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zeze/base/activity.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/storage/mariadb/mariadb_connection.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/sql/database_copy.h"
#include "zeze/storage/sql/database_url.h"

namespace zeze {
namespace {

constexpr std::chrono::milliseconds kAnswerPatience = std::chrono::seconds(2);
constexpr std::chrono::milliseconds kWatchPeriod = std::chrono::milliseconds(500);

}  // namespace

MariaDbActivity::MariaDbActivity(std::size_t node, int socket)
    : node_(node), socket_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)) {}

MariaDbActivity::~MariaDbActivity() {
  if (socket_ >= 0) ::close(socket_);
}

void MariaDbActivity::Begin() {
  busy_since_.store(SystemClock().Now().count());
}

void MariaDbActivity::GiveUp() const {
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

MariaDbNodes::MariaDbNodes(const MariaDbOptions& options, DatabaseCopy& copy)
    : options_(options), copy_(copy) {}

MariaDbNodes::~MariaDbNodes() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (watch_.joinable()) watch_.join();
}

// From the one that answered last, in the order of the address.
std::vector<std::size_t> MariaDbNodes::Order(std::size_t nodes) {
  MutexLock lock(mutex_);
  std::vector<std::size_t> order(nodes);
  for (std::size_t i = 0; i < nodes; ++i) order[i] = (first_ + i) % nodes;
  return order;
}

Result<std::unique_ptr<MariaDbConnection>> MariaDbNodes::Connect(const MariaDbSession& session) {
  const Result<DatabaseUrl> url = ParseMariaDbUrl(options_);
  if (!url.ok()) return url.error();
  const std::size_t nodes = url.value().hosts.size();
  std::optional<Error> foreign;
  std::string problems;
  for (const std::size_t node : Order(nodes)) {
    Result<std::unique_ptr<MariaDbConnection>> connected =
        MariaDbConnection::Connect(options_, session, node, &copy_);
    if (connected.ok()) {
      MutexLock lock(mutex_);
      first_ = node;
      std::erase_if(activities_, [](const auto& activity) { return activity.expired(); });
      activities_.push_back(connected.value()->activity());
      if (nodes > 1 && !watch_.joinable()) watch_ = std::thread([this] { Watch(); });
      return connected;
    }
    if (connected.error().code() == ErrorCode::kInvalidArgument) return connected;
    // Another node may have the copy that counts.
    if (connected.error().code() == ErrorCode::kFenced) foreign = connected.error();
    problems += (problems.empty() ? "" : "; ") + connected.error().message();
  }
  if (foreign) return *foreign;
  return Error(ErrorCode::kUnavailable,
               fmt::format("cannot connect to the database: {}. Check its address, that it runs, "
                           "and the user's password.",
                           problems));
}

void MariaDbNodes::Watch() {
  SetThreadName("mariadb-nodes");
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto deadline = SystemClock().Now() + kWatchPeriod;
      while (!stopping_ && SystemClock().WaitUntil(changed_, mutex_, deadline)) {
      }
      if (stopping_) return;
    }
    for (const std::size_t node : StalledNodes()) {
      if (!Answers(node)) GiveUp(node);
    }
  }
}

std::set<std::size_t> MariaDbNodes::StalledNodes() {
  const auto before = SystemClock().Now() - kAnswerPatience;
  std::set<std::size_t> nodes;
  MutexLock lock(mutex_);
  for (const std::weak_ptr<MariaDbActivity>& known : activities_) {
    const std::shared_ptr<MariaDbActivity> activity = known.lock();
    if (activity == nullptr || activity->busy_since().count() == 0) continue;
    if (activity->busy_since() <= before) nodes.insert(activity->node());
  }
  return nodes;
}

// Whether it takes connections and works for them: a slow statement alone is no reason to leave.
bool MariaDbNodes::Answers(std::size_t node) {
  const Result<std::unique_ptr<MariaDbConnection>> asked = MariaDbConnection::Connect(
      options_, {.statement_timeout = std::chrono::seconds(1)}, node, nullptr);
  if (asked.ok()) return true;
  ZEZE_LOG_WARNING("statements wait for a node of the database that takes no connection: {}",
                   asked.error().message());
  return false;
}

// Idle connections too: the next statement would wait as long.
void MariaDbNodes::GiveUp(std::size_t node) {
  MutexLock lock(mutex_);
  for (const std::weak_ptr<MariaDbActivity>& known : activities_) {
    const std::shared_ptr<MariaDbActivity> activity = known.lock();
    if (activity != nullptr && activity->node() == node) activity->GiveUp();
  }
  if (first_ == node) ++first_;
}

}  // namespace zeze
