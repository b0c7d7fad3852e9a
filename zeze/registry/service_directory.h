// ServiceDirectory: who offers which service, who wants to know, and how busy they are.
//
//   directory.Edit(session, {.add = {{.name = "Shop", .identity = "7", ...}}});
//   directory.Subscribe(other, {{.name = "Shop"}});   // Answers with the list; edits follow.
//
// Without I/O, threads or clocks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

// A message beyond these is refused as a whole.
struct DirectoryLimits {
  std::size_t text_bytes_max = 512;       // Names, identities, addresses.
  std::size_t extra_bytes_max = 1 << 16;  // Extra information, parameters of loads.
  std::size_t services_max = 1'000'000;
  std::size_t services_per_session_max = 100'000;
  std::size_t subscriptions_per_session_max = 20'000;
};

// Guarantees:
//   - A service belongs to the session that registered it last. Only that one can remove it, and
//     only the end of that one removes it.
//   - A service has one version at a time.
//   - Every subscriber sees the edits in one order, and its list, edited so, is at each moment the
//     directory's at some moment, except that a service that changes its version is gone between
//     two edits.
//   - A subscriber hears the load of every service that it sees: the last one known when it begins
//     to see the service, and then each new one.
class ServiceDirectory {
 public:
  ServiceDirectory(DirectoryLimits limits, RegistryOutput& output)
      : limits_(limits), output_(output) {}

  // Fails with kOverloaded or kInvalidArgument; nothing has changed then.
  Result<void> Edit(SessionId session, const ServiceEdit& edit);

  // Replaces subscriptions of the same names. Send the answer, then what SendLoadsTo gives.
  Result<ServicesByName> Subscribe(SessionId session, const std::vector<Subscription>& wanted);
  void SendLoadsTo(SessionId session, const std::vector<Subscription>& wanted);
  void Unsubscribe(SessionId session, const std::vector<std::string>& names);

  void SetLoad(const ServerLoad& load);

  // What the session registered goes away, and its subscriptions.
  void Close(SessionId session);

  // A service of an earlier life; `owner` is a session that has ended but was not closed here.
  void Restore(const ServiceInfo& info, SessionId owner);

  // Who has registered it last; kNoSession: nobody.
  SessionId OwnerOf(const ServiceKey& key) const;

  // What a session has registered and nobody has registered again.
  std::vector<ServiceKey> ServicesOf(SessionId session) const;

  std::size_t service_count() const { return service_count_; }

 private:
  struct Entry {
    ServiceInfo info;
    SessionId owner = kNoSession;
  };
  struct Name {
    std::map<std::string, Entry, IdentityLess> entries;
    std::map<SessionId, std::int64_t> subscribers;  // With the version, 0: all.
  };
  struct Session {
    std::set<ServiceKey> services;
    std::set<std::string> subscriptions;
  };
  using Address = std::pair<std::string, std::int32_t>;
  struct Server {
    std::set<ServiceKey> services;  // Never empty.
    std::optional<ServerLoad> load;
  };
  // What an edit did to a service, from its beginning to its end.
  struct Change {
    std::optional<ServiceInfo> before;
    std::optional<ServiceInfo> after;
  };
  using Changes = std::map<ServiceKey, Change>;

  Result<void> Check(SessionId session, const ServiceEdit& edit) const;
  Result<void> CheckText(const ServiceInfo& info) const;
  const Entry* Find(const ServiceKey& key) const;
  void Put(const ServiceInfo& info, SessionId owner, Changes& changes);
  void Remove(const ServiceKey& key, Changes& changes);
  void Publish(const Changes& changes);
  void PublishLoads(const Changes& changes);
  void DetachFromSession(const Entry& entry);
  void DetachFromAddress(const ServiceInfo& info);
  void ForgetIfEmpty(const std::string& name);

  const DirectoryLimits limits_;
  RegistryOutput& output_;
  std::map<std::string, Name> names_;
  std::map<SessionId, Session> sessions_;
  std::map<Address, Server> servers_;
  std::size_t service_count_ = 0;
};

}  // namespace zeze::registry
