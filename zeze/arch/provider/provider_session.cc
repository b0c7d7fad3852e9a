#include "zeze/arch/provider/provider_session.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/session.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"

namespace zeze::arch {

ProviderSession& ProviderSession::Of(Session& session) {
  auto* provider_session = dynamic_cast<ProviderSession*>(&session);
  ZEZE_REQUIRE(provider_session != nullptr, "this session is not one of a provider");
  return *provider_session;
}

void ProviderSession::Kick(std::int32_t code, std::string_view description) {
  const Result<void> kicked =
      links_.Kick(address(), code, description, Zeze::Builtin::Provider::BKick::eControlClose);
  if (!kicked.ok()) {
    ZEZE_LOG_INFO("{}: not kicked: {}", Describe(), kicked.error().message());
  }
}

std::string ProviderSession::Describe() const {
  return fmt::format("client {} of gateway {}, account \"{}\"", address().link_sid,
                     address().link_name, account());
}

}  // namespace zeze::arch
