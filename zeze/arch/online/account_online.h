// AccountOnline: who is logged in, by account and client id: one account may be logged in on
// several clients at once, each of them once.
//
//   arch::AccountOnline online({});
//   online.logins().On(LoginChange::kLogin, {.outside = [](const Login<AccountKey>& login) {}});
//   application.AddModule(online);
//   provider.AddModule(online);
//   provider.OnLinkBroken([&](const auto& link, const auto&) { online.LinkBroken(link); });
//   ... application.Start(), provider.Start(false) ...
//   online.Connect(provider.links());
//   provider.SetReady(true);

#pragma once

#include <cstdint>
#include <string_view>

#include "Zeze/Builtin/Online.module.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/account_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/provider/links.h"

namespace zeze::arch {

// Outlives the application.
class AccountOnline final : public Zeze::Builtin::Online::ModuleOnlineBase {
 public:
  explicit AccountOnline(OnlineOptions options);

  Logins<AccountKey>& logins() { return logins_; }

  // How clients, and other servers, are reached. Both outlive the application. Before the first
  // request; without `direct` nothing is transmitted to other servers.
  void Connect(Links& links, DirectSender* direct = nullptr) { logins_.Connect(&links, direct); }

  // From the provider: a client's connection has gone.
  void LinkBroken(const LinkAddress& link) { logins_.LinkBroken(link); }
  // From other servers.
  void Transmitted(const Zeze::Builtin::ProviderDirect::BTransmitAccount& message);
  // All clients of the account; the parameters of "Zeze.Builtin.Online:redirectRemoveLocal".
  void RemoveLocal(const std::string& account);

  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;

  std::int64_t ProcessLogin(Transaction& tx, Session& session,
                            const Zeze::Builtin::Online::BLogin& argument) override;
  std::int64_t ProcessReLogin(Transaction& tx, Session& session,
                              const Zeze::Builtin::Online::BReLogin& argument) override;
  std::int64_t ProcessLogout(Transaction& tx, Session& session) override;
  std::int64_t ProcessReliableNotifyConfirm(
      Transaction& tx, Session& session,
      const Zeze::Builtin::Online::BReliableNotifyConfirm& argument) override;

 private:
  internal::AccountKind kind_;
  Logins<AccountKey> logins_;
};

}  // namespace zeze::arch
