#include "zeze/redo/internal/redo_trouble.h"

#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "zeze/base/result_code.h"
#include "zeze/redo/run_task.h"

namespace zeze::redo {

bool HaltsQueue(std::int64_t code) {
  return code == redo::code::kOtherStore || code == redo::code::kOtherHistory;
}

std::string ExplainRefusal(std::int64_t code, const std::string& server, std::int64_t task_id) {
  std::string why = fmt::format("with code {}", code);
  if (code == result_code::kNotImplement) why = "because it has no handler for its type";
  if (code == result_code::kLogicError) why = "because its handler says no";
  if (code == result_code::kException) why = "because its handler throws";
  if (code == redo::code::kStopped) why = "because it has failed too often: the queue is stopped";
  return fmt::format("{} refuses task {} {}", server, task_id, why);
}

std::string ExplainHalt(std::int64_t code, const std::string& server, std::int64_t last_id) {
  if (code == redo::code::kOtherStore) {
    return fmt::format(
        "{} has done tasks up to {} of another store: was the directory of this queue lost, or is "
        "its name used twice? Nothing is sent. Bring the old directory back; if it is lost, "
        "compare "
        "what the server has done, then let this store take its place (zeze redo adopt)",
        server, last_id);
  }
  return fmt::format(
      "{} has done tasks up to {} that are not those of this store, although they came from it: "
      "was "
      "its directory restored from a copy, or does a copy of it run elsewhere? Nothing is sent. "
      "Bring the right directory back; if it is lost, let the tasks that were added since the copy "
      "was "
      "made follow those of the server (zeze redo adopt --first-new)",
      server, last_id);
}

std::string ExplainTooOld(const std::string& server, std::int64_t last_id, std::int64_t floor_id) {
  return fmt::format(
      "{} has done tasks up to {} only, but what it would need, from {} on, is no longer kept; "
      "tasks "
      "behind {} are. Nothing is sent. Restore a newer copy of its database",
      server, last_id, last_id + 1, floor_id);
}

}  // namespace zeze::redo
