// LoopbackProxy: stands between a client and a server on 127.0.0.1 and makes trouble on demand.
//
//   LoopbackProxy proxy(database_port);
//   proxy.WhenClientSends("COMMIT", LoopbackProxy::Action::kCutAfterAnswer);
//   ... a flush through proxy.port(): it is written, but its client never hears of it ...
//   proxy.AwaitTriggered();

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include "zeze/base/mutex.h"

namespace zeze {

// Thread-safe.
class LoopbackProxy {
 public:
  enum class Action : std::uint8_t {
    kNone,
    kCutBefore,       // Everything before the text goes through; then both ends are closed.
    kCutAfterAnswer,  // The text too; both ends are closed when the server has answered it.
    kHold,            // What stands before the text goes through; the rest waits, see below.
  };

  // Clients find it at this address.
  explicit LoopbackProxy(int server_port, const std::string& address = "127.0.0.1");
  LoopbackProxy(const LoopbackProxy&) = delete;
  LoopbackProxy& operator=(const LoopbackProxy&) = delete;
  ~LoopbackProxy();

  int port() const { return port_; }

  // Once, at the next time that any client sends this text.
  void WhenClientSends(std::string_view text, Action action);
  void AwaitTriggered();

  // --- for the connection that is held ---

  void LetGo();           // As if nothing had been.
  void DropHeldClient();  // The client sees its connection closed; the server does not.
  // After DropHeldClient: what was held arrives at the server; returns when it has answered or
  // closed. False: it closed without an answer.
  bool DeliverLate();

  // --- for all ---

  void CutAll();               // Closes all connections.
  void Refuse(bool refusing);  // New connections are closed at once.
  // While it is silent no connection is closed and nothing gets through, as in a network that drops
  // every packet. Everything sent meanwhile arrives afterwards.
  void Silence(bool silent);
  // Lets no more than this through, in both directions together; 0: as much as comes.
  void LimitRate(std::size_t bytes_per_second);

 private:
  struct Connection {
    int client = -1;
    int server = -1;
    bool held = false;
    bool cut_at_answer = false;
    bool delivering = false;
    std::string waiting;  // Held back.
    std::string tail;     // The end of what the client sent, in case the text is cut in two.
  };

  void Run();
  void Accept() ZEZE_REQUIRES(mutex_);
  // False: the connection is to be closed.
  bool FromClient(Connection& connection) ZEZE_REQUIRES(mutex_);
  bool FromServer(Connection& connection) ZEZE_REQUIRES(mutex_);
  bool Trigger(Connection& connection, std::string_view before, std::string_view rest)
      ZEZE_REQUIRES(mutex_);
  static void Close(Connection& connection);
  Connection& Held() ZEZE_REQUIRES(mutex_);
  void WakeUp() const;
  // How long what has passed must take.
  std::chrono::nanoseconds TakePause();

  const int server_port_;
  int port_ = 0;
  int listener_ = -1;
  int wake_up_ = -1;

  Mutex mutex_;
  CondVar changed_;
  std::list<Connection> connections_ ZEZE_GUARDED_BY(mutex_);
  std::uint64_t generation_ ZEZE_GUARDED_BY(mutex_) = 0;  // Of the list, see CutAll.
  std::string text_ ZEZE_GUARDED_BY(mutex_);
  Action action_ ZEZE_GUARDED_BY(mutex_) = Action::kNone;
  bool triggered_ ZEZE_GUARDED_BY(mutex_) = false;
  bool refusing_ ZEZE_GUARDED_BY(mutex_) = false;
  bool silent_ ZEZE_GUARDED_BY(mutex_) = false;
  std::size_t bytes_per_second_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t passed_ ZEZE_GUARDED_BY(mutex_) = 0;  // Bytes, since Run paused for them.
  bool stopping_ ZEZE_GUARDED_BY(mutex_) = false;
  int delivered_ ZEZE_GUARDED_BY(mutex_) = -1;  // 1: answered, 0: closed, -1: neither yet.
  std::thread thread_;
};

}  // namespace zeze
