// ProviderSession: the session of a message that came through a gateway.
//
//   auto& client = zeze::arch::ProviderSession::Of(session);
//   client.links().Bind(client.address(), {ModuleMap::kModuleId}, [](const auto& bound) { ... });

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/app/session.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/result.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch {

// Immutable: as it was when the gateway dispatched the message. Thread-safe.
class ProviderSession final : public Session {
 public:
  struct State {
    LinkAddress address = {};
    std::string account = {};
    std::string context = {};
    Binary context_bytes = {};
    std::string online_set_name = {};
  };

  // `links` outlives all sessions.
  ProviderSession(Links& links, State state) : links_(links), state_(std::move(state)) {}

  // Of a handler that only gets messages from gateways: anything else is a wrong program.
  static ProviderSession& Of(Session& session);

  const std::string& account() const override { return state_.account; }
  const std::string& context() const override { return state_.context; }
  const Binary& context_bytes() const { return state_.context_bytes; }
  const std::string& online_set_name() const { return state_.online_set_name; }

  const LinkAddress& address() const { return state_.address; }
  Links& links() const { return links_; }

  Result<void> SendFrame(std::string_view frame) override { return links_.Send(address(), frame); }
  void Kick(std::int32_t code, std::string_view description) override;
  std::string Describe() const override;

 private:
  Links& links_;
  const State state_;
};

}  // namespace zeze::arch
