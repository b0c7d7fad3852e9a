// Queue: a queue, or a stack, of any length over many small records.
//
//   zeze::Queues queues;                                // A module: application.AddModule(queues).
//   auto mails = queues.Open<BMail>("mails").value();
//   mails.Add(tx, {.text = "hello"});                   // In a procedure.
//   while (auto mail = mails.Poll(tx)) Deliver(*mail);
//   mails.Walk([](const BMail& mail) { return true; });  // Outside transactions.
//
// docs/collections.md has a whole example.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "Zeze/Builtin/Collections/Queue.module.h"
#include "zeze/app/application.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/components/collections/queue/any_queue.h"
#include "zeze/components/collections/queue/held_bean.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// Of beans of one type; Queue<AnyBean> takes all. What AnyQueue says holds here too. A value of
// another type that is met throws WrongBeanError.
template <typename Bean>
class Queue {
 public:
  explicit Queue(AnyQueue any) : any_(std::move(any)) {}

  const std::string& name() const { return any_.name(); }
  AnyQueue& any() { return any_; }

  // --- inside a transaction ---

  // As a queue: Add and Poll. As a stack: Push and Poll.
  void Add(Transaction& tx, const Bean& value) { any_.Add(tx, HoldBean(value)); }
  void Push(Transaction& tx, const Bean& value) { any_.Push(tx, HoldBean(value)); }
  // The first, which is taken away; none if the queue is empty.
  std::optional<Bean> Poll(Transaction& tx) { return Held(any_.Poll(tx)); }
  std::optional<Bean> Peek(Transaction& tx) const { return Held(any_.Peek(tx)); }

  std::int64_t Size(Transaction& tx) const { return any_.Size(tx); }
  bool IsEmpty(Transaction& tx) const { return Size(tx) == 0; }
  void Clear(Transaction& tx) { any_.Clear(tx); }
  void Append(Transaction& tx, const Queue& other) { any_.Append(tx, other.any_); }

  // --- outside transactions ---

  Result<std::size_t> Walk(FunctionRef<bool(const Bean&)> visit) const {
    return any_.Walk(
        [&](const AnyQueueEntry& entry) { return visit(HeldBean<Bean>(entry.value, name())); });
  }

 private:
  std::optional<Bean> Held(std::optional<AnyQueueEntry> entry) const {
    if (!entry) return std::nullopt;
    return HeldBean<Bean>(entry->value, name());
  }

  AnyQueue any_;
};

// Has the tables of all queues. Outlives the application, or the engine that its tables were added
// to. Thread-safe after Start.
class Queues final : public Zeze::Builtin::Collections::Queue::ModuleQueueBase {
 public:
  Queues();
  ~Queues() override;

  // Errors: the name is empty or reserved ('@' anywhere, or the beginning of a name of ours).
  template <typename Bean>
  Result<Queue<Bean>> Open(std::string name, QueueOptions options = {}) {
    if (Result<void> good = CheckName(name); !good.ok()) return good.error();
    return Queue<Bean>(AnyQueue(*this, std::move(name), options));
  }

  // A queue of this server: "name@<server id>". When a server is gone, what it left is hung behind
  // the queue of one other server that has opened the same name, exactly once: found through the
  // service manager, if the application has one, else by whoever calls TakeOver. Once in the life
  // of a process, in or after the application's Start. Errors: the name; the transaction.
  template <typename Bean>
  Result<Queue<Bean>> OpenForServer(Application& application, const std::string& name,
                                    QueueOptions options = {}) {
    Result<AnyQueue> queue = OpenOfServer(application, name, options);
    if (!queue.ok()) return queue.error();
    return Queue<Bean>(std::move(queue).value());
  }

  static std::string NameForServer(std::string_view name, std::int32_t server_id);
  // How often that server has opened its queue: whoever takes over says which life it means.
  std::int64_t LoadSerial(Transaction& tx, std::string_view name, std::int32_t server_id);
  // Moves what `from` left in the life that has this serial to the queue of `to`. False, and
  // nothing happens, if it has come back since, or had nothing.
  bool TakeOver(Transaction& tx, const std::string& name, std::int32_t from, std::int64_t serial,
                std::int32_t to);

  // --- for AnyQueue and tests ---

  static Result<void> CheckName(std::string_view name);
  // What was cleared and is still stored.
  AnyQueue Cleared() { return {*this, "@cleared"}; }
  // Removes the records of cleared queues, some in each transaction. Returns how many. Errors: a
  // transaction failed; what is left is removed by the next call, on any server.
  Result<std::size_t> CollectCleared(Engine& engine);
  void CollectSoon();

  bool started() const { return application_ != nullptr; }
  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;

 private:
  Result<AnyQueue> OpenOfServer(Application& application, const std::string& name,
                                QueueOptions options);

  std::atomic<Application*> application_ = nullptr;
  std::atomic<bool> collecting_ = false;
};

}  // namespace zeze
