// RankRouter: which process owns a hash group of a leaderboard, and the way to it.
//
// Components do not know the network. An application of several servers gives Rank a router over
// its redirects (zeze/arch); without one every update runs in the process that asks for it, which
// is right as well, because records are coherent, but slower: the group's record then travels.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "zeze/app/application.h"
#include "zeze/base/result_code.h"

namespace zeze {

// Thread-safe.
class RankRouter {
 public:
  virtual ~RankRouter() = default;

  // Whether the group, one of `level`, belongs to this process now.
  virtual bool OwnsGroup(std::uint32_t group, std::uint32_t level) = 0;

  // Has Rank::UpdateEncoded run in a transaction at the owner, with the group for the hash; updates
  // of one group in order.
  // `done` is called exactly once, with its code or with why it could not be sent.
  virtual void Send(std::uint32_t group, std::uint32_t level, std::string parameters,
                    Completion done) = 0;

  // Has Rank::Deliver run in the same way. `done` is called exactly once, on any thread: with the
  // code 0 and what Deliver said, or with another code, and then it may have run or may run yet.
  using Delivered = std::function<void(std::int64_t code, std::string result)>;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overrides move the updates.
  virtual void Deliver(std::uint32_t /*group*/, std::uint32_t /*level*/, std::string /*updates*/,
                       const Delivered& done) {
    done(result_code::kNotImplement, {});
  }
};

}  // namespace zeze
