#include "zeze/arch/online/role_online.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/Game/Online.module.h"
#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "Zeze/Builtin/Timer.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/direct_sender.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/internal/role_kind.h"
#include "zeze/arch/online/internal/take_over.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

namespace {

namespace wire = Zeze::Builtin::Game::Online;

// The table of a named set, as the peer calls it: its name goes before the version.
class SetTableName {
 public:
  SetTableName(const TableDescriptor& base, const std::string& set_name)
      : name_(std::string(base.name) + "__" + Underscored(set_name)), descriptor_(base) {
    descriptor_.name = name_;
    descriptor_.id = HashName32(name_);
  }
  SetTableName(const SetTableName&) = delete;
  SetTableName& operator=(const SetTableName&) = delete;

  const TableDescriptor& descriptor() const { return descriptor_; }

 private:
  static std::string Underscored(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }

  const std::string name_;
  TableDescriptor descriptor_;
};

template <typename K, typename V>
struct SetTable {
  SetTable(const TableDescriptor& base, const std::string& set_name)
      : name(base, set_name), table(name.descriptor()) {}

  const SetTableName name;
  Table<K, V> table;
};

struct SetTables {
  explicit SetTables(const std::string& set_name)
      : shared(wire::ktOnlineShared, set_name),
        online(wire::ktOnline, set_name),
        notifies(wire::ktReliableNotify, set_name),
        server_logins(wire::ktServerLogins, set_name),
        local(wire::ktlocal, set_name),
        links(wire::ktLinkLogins, set_name),
        timers(wire::ktRoleTimers, set_name),
        login_timers(wire::ktRoleLoginTimers, set_name),
        offline_timers(wire::ktRoleOfflineTimers, set_name) {}

  SetTable<RoleId, wire::BOnlineShared> shared;
  SetTable<RoleId, wire::BOnline> online;
  SetTable<RoleId, internal::NotifyQueue> notifies;
  SetTable<wire::BServerLoginKey, Zeze::Builtin::Online::BServerLogin> server_logins;
  SetTable<RoleId, internal::LocalRecord> local;
  SetTable<internal::WireLink, wire::BLinkLogin> links;
  SetTable<std::string, Zeze::Builtin::Timer::BGameOnlineTimer> timers;
  SetTable<RoleId, Zeze::Builtin::Timer::BLoginTimers> login_timers;
  SetTable<RoleId, Zeze::Builtin::Timer::BOfflineTimers> offline_timers;
};

}  // namespace

struct RoleOnline::Set {
  Set(const std::string& name, const internal::RoleTables& module_tables, OnlineOptions options)
      : kind(name, module_tables), logins(kind, options) {}
  Set(const std::string& name, std::unique_ptr<SetTables> own, OnlineOptions options)
      : tables(std::move(own)),
        kind(name, {.shared = tables->shared.table,
                    .online = tables->online.table,
                    .notifies = tables->notifies.table,
                    .server_logins = tables->server_logins.table,
                    .local = tables->local.table,
                    .links = tables->links.table}),
        logins(kind, options) {}

  const std::unique_ptr<SetTables> tables;  // Null: those of the module.
  internal::RoleKind kind;
  Logins<RoleId> logins;
};

RoleOnline::RoleOnline(OnlineOptions options, const std::vector<std::string>& set_names)
    : options_(options) {
  const internal::RoleTables tables{.shared = tOnlineShared,
                                    .online = tOnline,
                                    .notifies = tReliableNotify,
                                    .server_logins = tServerLogins,
                                    .local = tlocal,
                                    .links = tLinkLogins};
  sets_.emplace("", std::make_unique<Set>("", tables, options));
  for (const std::string& name : set_names) {
    ZEZE_REQUIRE(!name.empty(), "a set of online roles needs a name: the unnamed one is there");
    const bool added =
        sets_.emplace(name, std::make_unique<Set>(name, std::make_unique<SetTables>(name), options))
            .second;
    ZEZE_REQUIRE(added, "two sets of online roles are called \"" + name + "\"");
  }
}

RoleOnline::~RoleOnline() = default;

std::vector<TableBase*> RoleOnline::Tables() {
  std::vector<TableBase*> tables = ModuleOnlineBase::Tables();
  for (const auto& [name, set] : sets_) {
    if (set->tables == nullptr) continue;
    SetTables& own = *set->tables;
    tables.insert(tables.end(),
                  {&own.shared.table, &own.online.table, &own.notifies.table,
                   &own.server_logins.table, &own.local.table, &own.links.table, &own.timers.table,
                   &own.login_timers.table, &own.offline_timers.table});
  }
  return tables;
}

RoleOnline::Set* RoleOnline::FindSet(std::string_view name) {
  const auto at = sets_.find(name);
  return at == sets_.end() ? nullptr : at->second.get();
}

Logins<RoleId>& RoleOnline::logins(std::string_view set_name) {
  Set* set = FindSet(set_name);
  ZEZE_REQUIRE(set != nullptr, "there is no online set \"" + std::string(set_name) +
                                   "\": name it to the constructor");
  return set->logins;
}

std::vector<std::string> RoleOnline::set_names() const {
  std::vector<std::string> names;
  names.reserve(sets_.size());
  for (const auto& [name, set] : sets_) names.push_back(name);
  return names;
}

RoleOnline::TimerTables RoleOnline::timer_tables(std::string_view set_name) {
  Set* set = FindSet(set_name);
  ZEZE_REQUIRE(set != nullptr, "there is no online set \"" + std::string(set_name) +
                                   "\": name it to the constructor");
  if (set->tables == nullptr) {
    return {.timers = tRoleTimers, .logins = tRoleLoginTimers, .offline = tRoleOfflineTimers};
  }
  return {.timers = set->tables->timers.table,
          .logins = set->tables->login_timers.table,
          .offline = set->tables->offline_timers.table};
}

void RoleOnline::Connect(Links& links, DirectSender* direct) {
  for (const auto& [name, set] : sets_) set->logins.Connect(&links, direct);
}

Result<void> RoleOnline::Start(Application& application) {
  for (const auto& [name, set] : sets_) {
    Result<void> started = set->logins.Start(application, application.options().server_id);
    if (!started.ok()) return started;
  }
  if (!options_.take_over) return {};
  return internal::RegisterTakeOver(application, "Zeze.Game.Online",
                                    [this](std::int32_t server_id, const auto& proceed) {
                                      return LogoutAllOf(server_id, proceed);
                                    });
}

void RoleOnline::Stop(Application&) {
  for (const auto& [name, set] : sets_) set->logins.Stop();
}

void RoleOnline::LinkBroken(const LinkAddress& link) {
  for (const auto& [name, set] : sets_) set->logins.LinkBroken(link);
}

RoleOnline::Set* RoleOnline::EnterSet(Transaction& tx, Session& session, std::string_view name) {
  Set* entered = FindSet(name);
  if (entered == nullptr) {
    session.Kick(Zeze::Builtin::Provider::BKick::ErrorOnlineSetName, "no such online set");
    return nullptr;
  }
  for (const auto& [other_name, other] : sets_) {
    if (other.get() != entered) other->logins.LeaveLink(tx, session);
  }
  return entered;
}

RoleOnline::Set* RoleOnline::SetOf(Transaction& tx, Session& session) {
  for (const auto& [name, set] : sets_) {
    if (set->logins.LoginOf(tx, session)) return set.get();
  }
  return nullptr;
}

std::int64_t RoleOnline::ProcessLogin(Transaction& tx, Session& session,
                                      const wire::BLogin& argument) {
  Set* set = EnterSet(tx, session, argument.OnlineSetName);
  if (set == nullptr) return result_code::kLogicError;
  return set->logins.LogIn(tx, session, argument.RoleId);
}

std::int64_t RoleOnline::ProcessReLogin(Transaction& tx, Session& session,
                                        const wire::BReLogin& argument) {
  Set* set = EnterSet(tx, session, argument.OnlineSetName);
  if (set == nullptr) return result_code::kLogicError;
  return set->logins.LogInAgain(
      tx, session, argument.RoleId,
      {.index = argument.ReliableNotifyConfirmIndex, .hash = argument.ReliableNotifyHash});
}

std::int64_t RoleOnline::ProcessLogout(Transaction& tx, Session& session) {
  Set* set = SetOf(tx, session);
  if (set == nullptr) return ErrorCode(Zeze::Builtin::Online::ResultCodeNotLogin);
  return set->logins.LogOut(tx, session);
}

std::int64_t RoleOnline::ProcessReliableNotifyConfirm(
    Transaction& tx, Session& session, const wire::BReliableNotifyConfirm& argument) {
  Set* set = SetOf(tx, session);
  if (set == nullptr) return ErrorCode(Zeze::Builtin::Online::ResultCodeNotLogin);
  return set->logins.ConfirmNotifies(
      tx, session,
      {.index = argument.ReliableNotifyConfirmIndex, .hash = argument.ReliableNotifyHash},
      argument.Sync);
}

void RoleOnline::Transmitted(const Zeze::Builtin::ProviderDirect::BTransmit& message) {
  Set* set = FindSet(message.OnlineSetName);
  if (set == nullptr) return;
  const std::vector<RoleId> targets(message.Roles.begin(), message.Roles.end());
  set->logins.Transmitted(message.ActionName, targets, message.Sender, message.Parameter.bytes);
}

void RoleOnline::RemoveLocal(std::int32_t, RoleId role, const std::string& set_name) {
  if (Set* set = FindSet(set_name)) set->logins.RemoveStaleLocal(role);
}

Logins<RoleId>::Count RoleOnline::TakeCount() {
  Logins<RoleId>::Count sum;
  for (const auto& [name, set] : sets_) {
    const Logins<RoleId>::Count count = set->logins.TakeCount();
    sum.online += count.online;
    sum.online_new += count.online_new;
  }
  return sum;
}

Result<std::size_t> RoleOnline::LogoutAllOf(std::int32_t server_id,
                                            const Logins<RoleId>::Proceed& proceed) {
  std::size_t sum = 0;
  for (const auto& [name, set] : sets_) {
    const Result<std::size_t> ended = set->logins.LogoutAllOf(server_id, proceed);
    if (!ended.ok()) return ended.error();
    sum += ended.value();
  }
  return sum;
}

}  // namespace zeze::arch
