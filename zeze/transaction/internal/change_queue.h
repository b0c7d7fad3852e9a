// ChangeQueue: the changes of one table's records on their way to its listeners, in the order of
// their commits.

#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "zeze/base/function_ref.h"

namespace zeze::internal {

struct Record;
struct ValueHeader;

struct Change {
  Record* record;
  ValueHeader* before;
  ValueHeader* after;
};

// Thread-safe.
class ChangeQueue {
 public:
  // Whether anybody listens.
  bool wanted() const { return wanted_.load(std::memory_order_acquire); }
  void SetWanted(bool wanted) { wanted_ = wanted; }

  // While the record is locked. The values must live until the committing thread has delivered.
  void Push(const Change& change);

  // Whoever comes first delivers what is there, the others wait until their own changes have been
  // delivered.
  void Deliver(FunctionRef<void(const Change&)> notify);

 private:
  std::atomic<bool> wanted_ = false;
  std::mutex mutex_;
  std::deque<Change> changes_;
  std::mutex delivery_mutex_;
};

// Runs a listener; what it throws is logged with the table's name.
void CallListener(const std::string& table, FunctionRef<void()> call);

}  // namespace zeze::internal
