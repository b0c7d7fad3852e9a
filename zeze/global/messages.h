// What a server and a Global say to each other, apart from how it is encoded.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/global/directory.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

// Names a connection in a process; never used twice.
using ConnectionId = std::uint64_t;

// Whether a login was made with this secret, which the database has for the epoch (rule 57). Null:
// it proves nothing, as those of servers of earlier builds.
using LoginProof = std::function<bool(std::string_view secret)>;

// The first message of every connection. It names all rights that the server has: a right that is
// being given back counts until its records are saved.
struct LoginRequest {
  std::int32_t server_id = 0;
  std::int64_t epoch = 0;
  std::int64_t start_term = 0;  // Of this Global's shard, as the server's start saw it (rule 42).
  std::vector<HeldRight> rights;
  // How long it may use its rights after a renewal; 0: it does not say.
  std::chrono::milliseconds lease{0};
  // Rises with every login of this epoch to the shard. One that was stuck on a connection that the
  // server has given up changes nothing (hole 33). 0: it does not say.
  std::int64_t serial = 0;
  // How often it has yielded the shard (rule 65).
  std::int64_t yields = 0;
  LoginProof proves = nullptr;
};

enum class LoginOutcome : std::uint8_t {
  kAccepted,
  kBusy,     // Not now: try again after a while.
  kFenced,   // This epoch has lost its rights for ever: end the process.
  kOldTerm,  // This Global is of an older term than the server has seen: look for the new one.
  kRefused,  // Another shard or cluster, or no proof: the text says which. Nothing changed.
  kLater,    // There is no room for this part of a login: send the same part again after a while.
};

struct LoginReply {
  LoginOutcome outcome = LoginOutcome::kBusy;
  std::int64_t term = 0;
  std::string text = {};  // Of kRefused, for people.
};

}  // namespace zeze::global
