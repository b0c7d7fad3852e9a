#include "zeze/registry/registry_server.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/offline_book.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

SessionId RegistryState::LastSession() const {
  SessionId last = kNoSession;
  for (const Service& one : services) last = std::max(last, one.owner);
  for (const Offline& one : offline) last = std::max(last, one.owner);
  return last;
}

RegistryServer::RegistryServer(const RegistryOptions& options, RegistryOutput& output,
                               std::function<std::uint64_t()> random)
    : options_(options),
      directory_(options.directory, output),
      offline_(options.offline, output, std::move(random)),
      ids_({}, output),
      ids128_({.kind = IdKind::k128, .first = {}, .last = {.high = UINT64_MAX, .low = UINT64_MAX}},
              output) {}

void RegistryServer::Restore(Time now, const RegistryState& state) {
  for (const RegistryState::Service& one : state.services) {
    directory_.Restore(one.info, one.owner);
    restored_.insert(one.owner);
  }
  for (const RegistryState::Offline& one : state.offline) {
    offline_.Restore(one.notice, one.owner, now + options_.recovery);
    if (one.owner != kNoSession) restored_.insert(one.owner);
  }
  for (const auto& [name, limit] : state.id_limits) ids_.Restore(name, limit);
  for (const auto& [name, limit] : state.id128_limits) ids128_.Restore(name, limit);
  // Their servers cannot be blamed for the time without a service manager.
  recovered_at_ = now + options_.recovery;
  for (const SessionId session : restored_) {
    offline_.Close(recovered_at_, session, directory_.ServicesOf(session));
  }
}

Result<void> RegistryServer::OnEdit(SessionId session, const ServiceEdit& edit) {
  std::vector<SessionId> owners;
  owners.reserve(edit.add.size());
  for (const ServiceInfo& info : edit.add) owners.push_back(directory_.OwnerOf(info.key()));
  if (Result<void> edited = directory_.Edit(session, edit); !edited.ok()) return edited;
  for (std::size_t i = 0; i < edit.add.size(); ++i) {
    offline_.OnService(session, edit.add[i].key(), owners[i]);
  }
  return {};
}

Result<ServicesByName> RegistryServer::OnSubscribe(SessionId session,
                                                   const std::vector<Subscription>& wanted) {
  return directory_.Subscribe(session, wanted);
}

void RegistryServer::OnSubscribeAnswered(SessionId session,
                                         const std::vector<Subscription>& wanted) {
  directory_.SendLoadsTo(session, wanted);
}

void RegistryServer::OnUnsubscribe(SessionId session, const std::vector<std::string>& names) {
  directory_.Unsubscribe(session, names);
}

void RegistryServer::OnLoad(const ServerLoad& load) {
  directory_.SetLoad(load);
}

Result<void> RegistryServer::OnOfflineRegister(Time now, SessionId session,
                                               const OfflineNotice& notice) {
  return offline_.Register(now, session, notice);
}

Result<void> RegistryServer::OnAnnounce(Time now, SessionId session,
                                        const Announcement& announcement) {
  return offline_.Announce(now, session, announcement);
}

void RegistryServer::OnOfflineAnswer(Time now, std::uint64_t ask, OfflineAnswer answer) {
  offline_.OnAnswer(now, ask, answer);
}

void RegistryServer::OnNormalClose(SessionId session) {
  offline_.NormalClose(session);
}

void RegistryServer::OnClosed(Time now, SessionId session) {
  const std::vector<ServiceKey> services = directory_.ServicesOf(session);
  directory_.Close(session);
  offline_.Close(now, session, services);
}

void RegistryServer::Tick(Time now) {
  if (!restored_.empty() && now >= recovered_at_) {
    for (const SessionId session : std::exchange(restored_, {})) directory_.Close(session);
  }
  offline_.Tick(now);
}

}  // namespace zeze::registry
