// TimerRing: where the timers of a server are stored: in nodes, each a record, linked to a ring.
//
//   TimerRing ring(tables, node_ids, {.server_id = 1});
//   std::int64_t node = ring.Add(tx, "@AQE=", timer);
//   ring.Remove(tx, node, "@AQE=");
//
// The layout is that of Zeze 1.6: the root of a server names head and tail, new nodes become the
// head. Threads fill different nodes, so that they do not meet; nodes that have become empty are
// filled again, and when there are many, taken out of the ring.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "Zeze/Builtin/Timer.h"
#include "Zeze/Builtin/Timer.module.h"
#include "zeze/base/mutex.h"
#include "zeze/components/auto_key/auto_key.h"
#include "zeze/components/timer/timer_plan.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

using TimerTables = Zeze::Builtin::Timer::ModuleTimerBase;
using TimerRoot = Zeze::Builtin::Timer::BNodeRoot;
using TimerNode = Zeze::Builtin::Timer::BNode;

// Whether a server may take over the timers that a lost server has left. The serial is that of the
// lost server's last start; once a server has taken over a part, the serial does not matter until
// the lost server is back.
enum class TakeOverChoice : std::uint8_t {
  kTake,
  kNothing,  // It has left nothing, or has come back, or another server was faster.
  kNewer,    // A newer program left it: this one might not understand it.
  kUnable,   // It has timers for which this server has no handlers.
};
TakeOverChoice ChooseTakeOver(const TimerRoot* source, std::int64_t serial, std::int64_t version);

// The methods with a transaction belong to it; all others are thread-safe.
class TimerRing {
 public:
  struct Options {
    std::int32_t server_id = 0;
    std::int64_t version = 0;  // Of the program.
    std::size_t timers_per_node = 50;
    std::size_t node_bytes_max = 64 * 1024;  // One timer may be longer: it is alone then.
    std::size_t empty_nodes_max = 64;        // Kept for later.
    // Called when this server has been taken over although it lives.
    std::function<void()> on_taken_over = nullptr;
    // A node is to be unlinked, in a transaction of its own.
    std::function<void(std::int64_t node_id)> on_empty = nullptr;
  };
  // Both ends of a part of this server's ring; 0 and 0: nothing. It may be loaded as long as the
  // root has the serial: after that it belongs to whoever has taken over.
  struct Part {
    std::int64_t head = 0;
    std::int64_t tail = 0;
    std::int64_t serial = 0;
  };

  TimerRing(TimerTables& tables, AutoKey& node_ids, Options options);

  // This server begins (again): what belongs to it now. Save it before anybody is told the serial.
  Part Join(Transaction& tx, std::int64_t& serial);
  void Joined(std::int64_t serial);
  // Everything that is in the ring of this server.
  Part Whole(Transaction& tx);
  std::int64_t serial() const { return serial_.load(std::memory_order_acquire); }

  // Whether what was this server's with that serial still is.
  bool IsStillOurs(Transaction& tx, std::int64_t serial);
  // A node of such a part was loaded, in a transaction that has seen that it is ours.
  void Loaded(std::int64_t node_id, std::int64_t serial, bool empty);

  // Returns the node. Fails the procedure if this server has been taken over.
  std::int64_t Add(Transaction& tx, const std::string& timer_id, TimerBean timer);
  // Replaces a timer of a node of this server. Returns the node in which it is now: another one if
  // it has become too long.
  std::int64_t Put(Transaction& tx, std::int64_t node_id, const std::string& timer_id,
                   TimerBean timer);
  // Whether the node does not become too long by the timer, which may be in it already.
  bool HasRoom(const TimerNode& node, const std::string& timer_id, const TimerBean& timer) const;
  // False: it is not there.
  bool Remove(Transaction& tx, std::int64_t node_id, const std::string& timer_id);

  // A node that is empty, and still ours, leaves the ring.
  void Unlink(Transaction& tx, std::int64_t node_id);

  // Puts the ring of another server into this one. The part is to be loaded.
  TakeOverChoice TakeOver(Transaction& tx, std::int32_t source, std::int64_t serial, Part& part);
  // The same for some of its timers: from now on the other server changes nothing any more without
  // having begun anew, and Move may be called. The part is that of the other one.
  TakeOverChoice BeginTakeOver(Transaction& tx, std::int32_t source, std::int64_t serial,
                               Part& part);
  // Whether the other server has not come back since.
  bool HasLeft(Transaction& tx, std::int32_t source);
  // The ring of any server, without a serial.
  Part Of(Transaction& tx, std::int32_t server_id);
  // Moves a timer of another server into the ring of this one. Returns its node.
  std::int64_t Move(Transaction& tx, std::int64_t node_id, const std::string& timer_id,
                    TimerBean timer);
  // An empty node leaves the ring of another server that has left.
  void UnlinkFrom(Transaction& tx, std::int32_t source, std::int64_t node_id);
  // That server will look here for its timers when it is back.
  void NoteGuest(Transaction& tx, std::int32_t home);

 private:
  static constexpr std::size_t kShards = 16;

  void CheckOwner(Transaction& tx);
  std::int64_t NewNode(Transaction& tx, std::int32_t server_id);
  void LinkBefore(Transaction& tx, std::int32_t server_id, const Part& part);
  void Detach(Transaction& tx, std::int32_t server_id, std::int64_t node_id);
  std::int64_t TakeRoom();
  void NoteRoom(std::int64_t node_id, bool empty);
  void NoteOurs(std::int64_t node_id, std::int64_t serial);
  bool IsOurs(std::int64_t node_id, std::int64_t serial);

  TimerTables& tables_;
  AutoKey& node_ids_;
  const Options options_;
  std::atomic<std::int64_t> serial_ = 0;
  // Nodes to fill. Only hints: what is true is in the records.
  std::array<std::atomic<std::int64_t>, kShards> filling_ = {};
  Mutex mutex_;
  std::unordered_set<std::int64_t> rooms_ ZEZE_GUARDED_BY(mutex_);
  // Made or loaded since this server joined: as long as the root has our serial they are in our
  // ring. The owner that a node names does not tell: who takes over writes it only when loading.
  std::unordered_set<std::int64_t> ours_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze
