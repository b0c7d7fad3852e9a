// What to tell an operator about a server that does not do a task.
//
//   alarm.text = redo::ExplainRefusal(code, "10.0.0.7:5020", 4711);

#pragma once

#include <cstdint>
#include <string>

namespace zeze::redo {

// Nothing may be sent after such an answer until an operator has decided.
bool HaltsQueue(std::int64_t code);

// Of a task, with this code.
std::string ExplainRefusal(std::int64_t code, const std::string& server, std::int64_t task_id);

// Of the whole store, with kOtherStore or kOtherHistory; the server has done tasks up to last_id.
std::string ExplainHalt(std::int64_t code, const std::string& server, std::int64_t last_id);

// The server is so old that it needs tasks which were deleted, up to floor_id.
std::string ExplainTooOld(const std::string& server, std::int64_t last_id, std::int64_t floor_id);

}  // namespace zeze::redo
