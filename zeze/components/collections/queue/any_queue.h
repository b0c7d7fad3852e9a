// AnyQueue: a queue of any length over many small records, of beans of any type. Applications use
// Queue (queue.h), which knows the type.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "Zeze/Builtin/Collections/Queue.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

class Queues;

struct QueueOptions {
  // Values in one record.
  std::size_t node_size = 30;
  // A record that is longer takes no more values (one value is always taken, however long).
  std::size_t node_bytes_max = 64 * 1024;
};

struct AnyQueueEntry {
  std::chrono::system_clock::time_point added;
  AnyBean value;
};

// A name and how to reach its records: cheap to copy, without state of its own. All queues of one
// name are the same queue, on all servers.
//
// Stored as Zeze 1.6 stores it: a root, and nodes that know the next one. Node ids are counted up
// and never come back, so a node that has gone never seems to be there again. Nodes are named by
// {queue, id}: the nodes of one queue can be hung behind those of another (Append).
//
// Errors inside transactions are thrown: std::runtime_error if the stored queue is damaged.
class AnyQueue {
 public:
  using Root = Zeze::Builtin::Collections::Queue::BQueue;
  using Node = Zeze::Builtin::Collections::Queue::BQueueNode;
  using NodeKey = Zeze::Builtin::Collections::Queue::BQueueNodeKey;

  // The name is not checked; Queues::Open does.
  AnyQueue(Queues& queues, std::string name, QueueOptions options = {});

  const std::string& name() const { return name_; }

  // --- inside a transaction ---

  void Add(Transaction& tx, AnyBean value);   // Behind the last.
  void Push(Transaction& tx, AnyBean value);  // Before the first.
  std::optional<AnyQueueEntry> Poll(Transaction& tx);
  std::optional<AnyQueueEntry> Peek(Transaction& tx) const;
  std::int64_t Size(Transaction& tx) const;

  // Takes everything away, in no time, whatever the length. The records are removed afterwards.
  void Clear(Transaction& tx);

  // Hangs all that `other` has behind the last of this queue and leaves `other` empty: in no time,
  // whatever their lengths. Not itself.
  void Append(Transaction& tx, const AnyQueue& other);

  // Removes at most so many of the first nodes with all that is in them. Returns how many.
  std::size_t DropNodes(Transaction& tx, std::size_t nodes_max);

  // --- outside transactions ---

  // From the first to the last, record by record, while others change the queue: gives every value
  // exactly once that is there from the beginning of the walk to its end. The visitor returns false
  // to stop; it may run procedures. Returns how many values were given.
  Result<std::size_t> Walk(FunctionRef<bool(const AnyQueueEntry&)> visit) const;

 private:
  NodeKey HeadOf(const Root& root) const;
  NodeKey TailOf(const Root& root) const;
  static NodeKey NextOf(const NodeKey& key, const Node& node);
  void SetHead(Root& root, NodeKey key) const;
  void SetTail(Root& root, NodeKey key) const;
  void Detach(Root& root) const;
  bool HasRoom(const Node& node, const AnyBean& value) const;
  void DropHead(Transaction& tx, Root& root, const NodeKey& head, const Node& node) const;
  [[noreturn]] void ThrowMissing(const NodeKey& key) const;

  Queues* queues_;
  std::string name_;
  QueueOptions options_;
};

}  // namespace zeze
