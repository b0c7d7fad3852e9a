// RedoQueueClient: hands tasks to a zeze server, each of them exactly once, whatever crashes. For
// programs that are no zeze application.
//
//   auto store = RedoStore::Open({.directory = "redo"});
//   auto queue = RedoQueueClient::Open(store.value(), {.name = "recharge",
//                                                      .servers = {{"10.0.0.7", 5020}}});
//   Result<std::int64_t> id = queue.value()->Add(kRecharge, BRecharge{.role = 7, .gold = 100});
//   // Returned: it is on this disk, and the server will do it; nobody need try again.
//
// One store may have several queues. docs/redo-queue.md says what is guaranteed against what.

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

#include "zeze/base/result.h"
#include "zeze/net/protocol.h"
#include "zeze/net/tls.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_store.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

class IoThreads;

struct RedoServerAddress {
  std::string host = {};
  std::uint16_t port = 0;
};

struct RedoQueueClientOptions {
  // The server knows the queue by it.
  std::string name = {};

  // Tried in turn: servers of one application.
  std::vector<RedoServerAddress> servers = {};
  // Null: not encrypted, or by the handshake only.
  TlsContextPtr tls = nullptr;
  // The certificates of the servers must be for this name; empty: for their hosts.
  std::string tls_name = {};
  // Null: threads of its own. Outlives the client.
  IoThreads* io = nullptr;

  // Tasks sent before the answer to the first of them. A server of Zeze 1.6 gets one at a time.
  std::size_t window_max = 1024;
  std::size_t window_bytes_max = std::size_t{1} << 20;

  // The connection is given up when answers are due and none comes for so long.
  std::chrono::nanoseconds answer_timeout = std::chrono::seconds(10);
  // After a failure: again after about first_delay, then twice as long each time.
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
  std::chrono::nanoseconds delay_max = std::chrono::seconds(30);
  // A server that has nothing to do is asked how far it is, so that one that was set back is
  // noticed.
  std::chrono::nanoseconds ask_period = std::chrono::seconds(30);

  RedoKeepOptions keep = {};

  // Add fails with kOverloaded when so many tasks wait.
  std::int64_t backlog_max = 100'000'000;

  // When an alarm is raised: a task was refused so often; the oldest task waits for so long.
  int refusals_before_alarm = 10;
  std::chrono::nanoseconds age_before_alarm = std::chrono::minutes(5);
  // On a thread of the client; it must not wait for the client. Alarms are in the log in any case.
  std::function<void(const RedoAlarm&)> on_alarm = nullptr;
};

enum class RedoState : std::uint8_t {
  kConnecting,
  kSending,   // Or nothing to send.
  kRetrying,  // The server refuses the next task, or does not answer.
  kHalted,    // Going on could lose or repeat tasks: an operator must decide. Asks now and then.
};

std::string_view ToString(RedoState state);

struct RedoStatus {
  RedoState state = RedoState::kConnecting;
  RedoPosition position = {};
  std::chrono::nanoseconds oldest_age{0};  // Of the first task that is not done.
  std::size_t in_flight = 0;
  bool one_at_a_time = false;  // The server is of Zeze 1.6.
  int refusals = 0;            // Of the next task, since the last success.
  std::string server = {};     // The one it is connected to.
  std::string trouble = {};    // What keeps it from sending; empty: nothing.
};

// Guarantees:
//   - A task whose Add succeeded takes effect at the server exactly once, in the order of ids, and
//     after a rollback of the server's database again, until it is in the database for good; unless
//     the store is lost. A task whose Add failed with kUnknownOutcome may, too.
//   - Trouble never makes it skip a task. It goes on by itself when the trouble is over.
//
// Thread-safe.
class RedoQueueClient {
 public:
  // Begins to send. At most one for each queue of a store at a time.
  static Result<std::unique_ptr<RedoQueueClient>> Open(std::shared_ptr<RedoStore> store,
                                                       RedoQueueClientOptions options);
  // Stops. What is not sent stays in the store.
  ~RedoQueueClient();
  RedoQueueClient(const RedoQueueClient&) = delete;
  RedoQueueClient& operator=(const RedoQueueClient&) = delete;

  // As RedoJournal::Add; and kOverloaded.
  Result<std::int64_t> Add(std::int32_t type, std::string_view param);
  Result<std::int64_t> AddMany(std::span<const NewRedoTask> tasks);
  template <Payload T>
  Result<std::int64_t> Add(std::int32_t type, const T& param) {
    ByteWriter out;
    param.Encode(out);
    return Add(type, out.view());
  }

  // Blocks until a server to which it is connected says that this task is done. Fails with
  // kUnavailable, saying why, when patience ends.
  Result<void> WaitDone(std::int64_t id, std::chrono::nanoseconds patience);

  RedoStatus GetStatus() const;
  RedoJournal& journal() const;

  // What waits is tried now, not after its delay.
  void Retry();

 private:
  class Sender;
  explicit RedoQueueClient(std::unique_ptr<Sender> sender);

  const std::unique_ptr<Sender> sender_;
};

}  // namespace zeze
