// RunTask: the one rpc between a RedoQueueClient and a server, and what both compute alike.
//
//   connection->CallAndWait<redo::RunTask>({.queue = "recharge", .prev_task_id = redo::kOnlyAsk});
//   // result_code::kErrorRequestId with the last task that the server has done.
//
// The same bytes as the generated Zeze.Builtin.RedoQueue.RunTask, without what that needs: a client
// is no application.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/result_code.h"
#include "zeze/bean/field.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::redo {

inline constexpr std::int32_t kModuleId = 11010;

// As prev_task_id it fits no queue: the server answers with its last task and does nothing.
inline constexpr std::int64_t kOnlyAsk = -1;

// What a server answers besides the common result codes. Of those it uses kSuccess;
// kErrorRequestId: the task does not follow the last one, which the answer names; kNotImplement:
// there is no handler for its type; kLogicError: the handler says no; kException: it throws.
namespace code {
// The tasks that the server has done were of another store: this client has lost its own.
inline constexpr std::int64_t kOtherStore = ModuleErrorCode(kModuleId, 1);
// They were of this store, but others: it was restored from a copy, or runs twice.
inline constexpr std::int64_t kOtherHistory = ModuleErrorCode(kModuleId, 2);
// The task has failed too often; the queue stands still until an operator of the server resumes it.
inline constexpr std::int64_t kStopped = ModuleErrorCode(kModuleId, 3);
}  // namespace code

// From 101 on: only between a client and a server of zeze; others ignore it.
struct Task {
  static constexpr std::string_view kFullName = "Zeze.Builtin.RedoQueue.BQueueTask";

  std::string queue = {};
  std::int32_t type = 0;
  std::int64_t task_id = 0;
  Binary param = {};
  std::int64_t prev_task_id = 0;
  std::int64_t store_id = 0;
  std::int64_t prev_chain = 0;
  bool park = false;
  bool adopt = false;
  std::int64_t added_ms = 0;
  std::int64_t backlog = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "QueueName"}, &Task::queue);
    visit(Field{2, "TaskType"}, &Task::type);
    visit(Field{3, "TaskId"}, &Task::task_id);
    visit(Field{4, "TaskParam"}, &Task::param);
    visit(Field{5, "PrevTaskId"}, &Task::prev_task_id);
    visit(Field{101, "StoreId"}, &Task::store_id);
    visit(Field{102, "PrevChain"}, &Task::prev_chain);
    visit(Field{103, "Park"}, &Task::park);
    visit(Field{104, "Adopt"}, &Task::adopt);
    visit(Field{105, "AddedTime"}, &Task::added_ms);
    visit(Field{106, "Backlog"}, &Task::backlog);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct Answer {
  static constexpr std::string_view kFullName = "Zeze.Builtin.RedoQueue.BRunTaskResult";

  std::int64_t task_id = 0;
  std::int64_t store_id = 0;
  std::int64_t chain = 0;
  std::int64_t saved_task_id = 0;
  std::int32_t version = 0;  // 0: a server of Zeze 1.6, which takes one task at a time.

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "TaskId"}, &Answer::task_id);
    visit(Field{101, "StoreId"}, &Answer::store_id);
    visit(Field{102, "Chain"}, &Answer::chain);
    visit(Field{103, "SavedTaskId"}, &Answer::saved_task_id);
    visit(Field{104, "Version"}, &Answer::version);
  }
  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct RunTask {
  using Argument = Task;
  using Result = Answer;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = kModuleId,
      .protocol_id = 1530872255,
      .full_name = "Zeze.Builtin.RedoQueue.RunTask",
      .is_rpc = true,
  };
};

// The chain tells histories apart: two stores whose chains are equal at a task have had the same
// tasks up to it, added at the same times; a task that only looks like another is not it. Stored
// and sent: never change how it is computed.
std::int64_t FirstChain(std::int64_t store_id, std::string_view queue);
std::int64_t NextChain(std::int64_t chain, std::int64_t task_id, std::int32_t type,
                       std::int64_t added_ms, std::string_view param);

}  // namespace zeze::redo
