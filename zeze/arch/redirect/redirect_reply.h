// RedirectReply: what became of a call of a redirected method.
//
//   RedirectReply<BTop> reply = redirect.ToHash<&ModuleRank::Top>(hash, 100).Wait();
//   if (reply.ok()) Show(reply.result);
//   else if (reply.outcome == RedirectOutcome::kUnknown) AskBeforeRepeating();

#pragma once

#include <cstdint>
#include <vector>

#include "zeze/arch/redirect/redirect_codec.h"

namespace zeze::arch {

// Codes of the rpc between servers, besides those of result_code; they travel: never renumber. A
// method's own codes are negative ones or those of ModuleErrorCode, so that they cannot be mistaken
// for these.
namespace redirect_code {

inline constexpr std::int64_t kMethodNotFound = 1;  // The server does not have it.
inline constexpr std::int64_t kException = 2;       // A method outside a transaction threw.
inline constexpr std::int64_t kError = 3;           // Parameters or result cannot be understood.
inline constexpr std::int64_t kVersion = 4;         // The server has another version of the method.
inline constexpr std::int64_t kLinkTimeout = 10;    // The server did not appear in time.
inline constexpr std::int64_t kNoProvider = 11;     // Nobody offers the module.
inline constexpr std::int64_t kRequestTimeout = 12;

}  // namespace redirect_code

enum class RedirectOutcome : std::uint8_t {
  kDone,     // It ran, and its transaction has committed.
  kNotDone,  // It did not run, or its transaction was rolled back.
  kUnknown,  // No answer: it may have run, or may yet run.
};

template <typename R>
struct RedirectReply {
  RedirectOutcome outcome = RedirectOutcome::kNotDone;
  // What the method returned, a code of redirect_code, or one of result_code: kClosed if the
  // connection broke or one of the two servers stops, kBusy if too much waits,
  // kErrorSendFail.
  std::int64_t code = 0;
  std::int32_t server_id = -1;  // Where it ran or should have run; -1: nowhere.
  R result = {};                // Only if ok().

  bool ok() const { return code == 0; }
};

// One group's part of a call to all.
template <typename R>
struct RedirectGroupReply : RedirectReply<R> {
  std::uint32_t group = 0;
  // Of the message that brought it, a redirect_code: 11 with `code` -9 (nobody there) or -14 (could
  // not be sent) if the group could not be reached.
  std::int64_t message_code = 0;
};

template <typename R>
struct RedirectAllReply {
  // Not 0: it did not begin. result_code::kBusy: too many calls to all at a time; kClosed: this
  // server stops; redirect_code::kError: a level of 0 or above RedirectOptions::level_max.
  std::int64_t code = 0;
  std::vector<RedirectGroupReply<R>> groups =
      {};  // By group, all of them; none if it did not begin.

  bool ok() const {
    if (code != 0) return false;
    for (const auto& group : groups) {
      if (!group.ok()) return false;
    }
    return true;
  }
};

}  // namespace zeze::arch
