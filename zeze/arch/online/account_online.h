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
#include <memory>
#include <string>

#include "Zeze/Builtin/Online.module.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/base/result.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

// Outlives the application.
class AccountOnline final : public Zeze::Builtin::Online::ModuleOnlineBase {
 public:
  explicit AccountOnline(OnlineOptions options);
  ~AccountOnline() override;

  Logins<AccountKey>& logins();

  // How clients, and other servers, are reached. Both outlive the application. Before the first
  // request; without `direct` nothing is transmitted to other servers.
  void Connect(Links& links, DirectSender* direct = nullptr);

  // From the provider: a client's connection has gone.
  void LinkBroken(const LinkAddress& link);
  // From other servers.
  void Transmitted(const Zeze::Builtin::ProviderDirect::BTransmitAccount& message);
  // Clients of the account may have local data here whose login has ended elsewhere.
  void RemoveLocal(std::int32_t server_id, const std::string& account);
  using Redirects = RedirectMethods<
      RedirectMethod<&AccountOnline::RemoveLocal, "Zeze.Arch.Online:redirectRemoveLocal">>;

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
  struct Parts;

  const std::unique_ptr<Parts> parts_;
};

}  // namespace zeze::arch
