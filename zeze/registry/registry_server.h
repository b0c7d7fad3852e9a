// RegistryServer: the service manager without I/O, threads and clocks: services and subscriptions,
// loads, offline notices and ids.
//
//   RegistryServer server(options, output, random);
//   server.Restore(now, saved);            // What an earlier life left.
//   server.OnEdit(session, edit);          // ... OnClosed(now, session), Tick(now).

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/registry/id_allocator.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/offline_book.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/service_directory.h"

namespace zeze::registry {

struct RegistryOptions {
  // After a restart the services of before stay listed for so long, until their servers have
  // registered them again: longer than agents need to connect.
  std::chrono::nanoseconds recovery = std::chrono::seconds(30);

  DirectoryLimits directory;
  OfflineOptions offline;
};

// What must survive a restart.
struct RegistryState {
  struct Service {
    ServiceInfo info;
    SessionId owner = kNoSession;
  };
  struct Offline {
    OfflineNotice notice;
    SessionId owner = kNoSession;
  };

  std::vector<Service> services = {};
  std::vector<Offline> offline = {};
  std::vector<std::pair<std::string, Id128>> id_limits = {};
  std::vector<std::pair<std::string, Id128>> id128_limits = {};

  // Of all owners. Sessions of this life are above.
  SessionId LastSession() const;
};

class RegistryServer {
 public:
  using Time = std::chrono::nanoseconds;

  RegistryServer(const RegistryOptions& options, RegistryOutput& output,
                 std::function<std::uint64_t()> random);

  // Before everything else. To a subscriber a restart looks like nothing at all, if all servers
  // come back in time.
  void Restore(Time now, const RegistryState& state);

  // Errors are for the sender of the message.
  Result<void> OnEdit(SessionId session, const ServiceEdit& edit);
  Result<ServicesByName> OnSubscribe(SessionId session, const std::vector<Subscription>& wanted);
  void OnSubscribeAnswered(SessionId session, const std::vector<Subscription>& wanted);
  void OnUnsubscribe(SessionId session, const std::vector<std::string>& names);
  void OnLoad(const ServerLoad& load);
  Result<void> OnOfflineRegister(Time now, SessionId session, const OfflineNotice& notice);
  Result<void> OnAnnounce(Time now, SessionId session, const Announcement& announcement);
  void OnOfflineAnswer(Time now, std::uint64_t ask, OfflineAnswer answer);
  void OnNormalClose(SessionId session);
  void OnClosed(Time now, SessionId session);

  void Tick(Time now);

  IdAllocator& ids(IdKind kind) { return kind == IdKind::k64 ? ids_ : ids128_; }
  std::size_t service_count() const { return directory_.service_count(); }
  std::size_t offline_count() const { return offline_.notice_count(); }

 private:
  const RegistryOptions options_;
  ServiceDirectory directory_;
  OfflineBook offline_;
  IdAllocator ids_;
  IdAllocator ids128_;
  std::set<SessionId> restored_;  // Until their services are dropped.
  Time recovered_at_{};
};

}  // namespace zeze::registry
