// Links: the gateways that this server is connected to, and the way through them to clients.
//
//   links.Send({.link_name = "10.0.0.1_7000", .link_sid = 5}, EncodeOneWayFrame<SHello>({}));

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/Provider.h"
#include "zeze/base/result.h"

namespace zeze::arch {

// A client's connection, as seen from servers. Sids of a gateway never repeat.
struct LinkAddress {
  std::string link_name = {};  // "host_port" of the gateway, the same on all servers.
  std::int64_t link_sid = 0;

  bool operator==(const LinkAddress&) const = default;
};

// What became of a Send. An rpc that timed out or whose connection broke says nothing about
// delivery.
struct SendOutcome {
  bool answered = false;                     // By the gateway.
  std::vector<std::int64_t> lost_sids = {};  // It has no such session, or could not write to it.
};
using SendCompletion = std::function<void(const SendOutcome& outcome)>;

// Thread-safe. Nothing here waits.
class Links {
 public:
  virtual ~Links() = default;

  // A whole frame to clients of one gateway. Fails with kUnavailable if the gateway is not
  // connected, with kOverloaded if too much waits already; the completion is then not called.
  // Without a completion nobody waits for the answer. It runs on a network thread, without waiting.
  virtual Result<void> Send(std::string_view link_name, std::span<const std::int64_t> link_sids,
                            std::string_view frame, SendCompletion done = nullptr) = 0;
  Result<void> Send(const LinkAddress& to, std::string_view frame, SendCompletion done = nullptr) {
    return Send(to.link_name, std::span(&to.link_sid, 1), frame, std::move(done));
  }

  // To all clients of all gateways that have logged in.
  virtual void Broadcast(std::string_view frame, bool only_same_version) = 0;

  virtual Result<void> Kick(const LinkAddress& to, std::int32_t code, std::string_view description,
                            std::int32_t control) = 0;

  // What later messages of the client carry as their context.
  virtual Result<void> SetUserState(const LinkAddress& to,
                                    const Zeze::Builtin::Provider::BUserState& state) = 0;

  // Dynamic modules: from now on messages of this client for these modules come to this server, or
  // to nobody. `done` with an error if the gateway did not agree.
  virtual Result<void> Bind(const LinkAddress& to, std::span<const std::int32_t> modules,
                            std::function<void(const Result<void>&)> done) = 0;
  virtual Result<void> Unbind(const LinkAddress& to, std::span<const std::int32_t> modules,
                              std::function<void(const Result<void>&)> done) = 0;

  // Whether the client's connection is there: an answered outcome without its sid in lost_sids.
  virtual Result<void> CheckSession(const LinkAddress& to, SendCompletion done) = 0;

  // Gateways that are connected now.
  virtual std::vector<std::string> names() const = 0;
};

}  // namespace zeze::arch
