// RoleOnline: who is logged in, by role. A role may also be logged in to further, named online
// sets: each is like another RoleOnline, with tables of its own, behind the same messages.
//
//   arch::RoleOnline online({}, {"battle"});
//   online.logins().On(LoginChange::kLogin, {.in_transaction = RefuseStrangers});
//   online.logins("battle").On(LoginChange::kLogout, {.in_procedure = LeaveBattle});
//   application.AddModule(online);
//   provider.AddModule(online);
//   provider.OnLinkBroken([&](const auto& link, const auto&) { online.LinkBroken(link); });
//   ... application.Start(), provider.Start(false) ...
//   online.Connect(provider.links());
//   provider.SetReady(true);

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/Game/Online.module.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "Zeze/Builtin/Timer.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/base/result.h"
#include "zeze/transaction/table.h"

namespace zeze::arch {

// The first login of a role binds it to the account of that connection; others are refused from
// then on. Whether an account may have a role at all is for the application to say: in a handler
// of kLogin, in_transaction.
//
// A connection is logged in once: a role that logs in on the connection of another one, or to
// another set, logs that out.
//
// Outlives the application.
class RoleOnline final : public Zeze::Builtin::Game::Online::ModuleOnlineBase {
 public:
  explicit RoleOnline(OnlineOptions options, const std::vector<std::string>& set_names = {});
  ~RoleOnline() override;

  // Of a set that was named to the constructor; the empty name is that of the first one.
  Logins<RoleId>& logins(std::string_view set_name = {});
  // With the empty one.
  std::vector<std::string> set_names() const;

  // Where the timers of roles of a set are: for RoleTimers.
  struct TimerTables {
    Table<std::string, Zeze::Builtin::Timer::BGameOnlineTimer>& timers;
    Table<RoleId, Zeze::Builtin::Timer::BLoginTimers>& logins;
    Table<RoleId, Zeze::Builtin::Timer::BOfflineTimers>& offline;
  };
  TimerTables timer_tables(std::string_view set_name = {});

  // How clients, and other servers, are reached. Both outlive the application. Before the first
  // request; without `direct` nothing is transmitted to other servers.
  void Connect(Links& links, DirectSender* direct = nullptr);

  // From the provider: a client's connection has gone.
  void LinkBroken(const LinkAddress& link);
  // From other servers.
  void Transmitted(const Zeze::Builtin::ProviderDirect::BTransmit& message);
  // The role may have local data here whose login has ended elsewhere.
  void RemoveLocal(std::int32_t server_id, RoleId role, const std::string& set_name);
  using Redirects = RedirectMethods<
      RedirectMethod<&RoleOnline::RemoveLocal, "Zeze.Game.Online:redirectRemoveLocal">>;

  // Of all sets.
  Logins<RoleId>::Count TakeCount();
  Result<std::size_t> LogoutAllOf(std::int32_t server_id,
                                  const Logins<RoleId>::Proceed& proceed = nullptr);

  std::vector<TableBase*> Tables() override;
  Result<void> Start(Application& application) override;
  void Stop(Application& application) override;

  std::int64_t ProcessLogin(Transaction& tx, Session& session,
                            const Zeze::Builtin::Game::Online::BLogin& argument) override;
  std::int64_t ProcessReLogin(Transaction& tx, Session& session,
                              const Zeze::Builtin::Game::Online::BReLogin& argument) override;
  std::int64_t ProcessLogout(Transaction& tx, Session& session) override;
  std::int64_t ProcessReliableNotifyConfirm(
      Transaction& tx, Session& session,
      const Zeze::Builtin::Game::Online::BReliableNotifyConfirm& argument) override;

 private:
  struct Set;

  Set* FindSet(std::string_view name);
  // Where the sender of a message is logged in; null: nowhere.
  Set* SetOf(Transaction& tx, Session& session);
  // The set to log in to, whose connection has left all others. Null: there is no such set, and the
  // client is kicked.
  Set* EnterSet(Transaction& tx, Session& session, std::string_view name);

  const OnlineOptions options_;
  std::map<std::string, std::unique_ptr<Set>, std::less<>> sets_;
};

}  // namespace zeze::arch
