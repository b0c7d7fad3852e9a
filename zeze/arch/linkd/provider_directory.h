// ProviderDirectory: which servers a gateway can send a client's messages to, and the choice among
// them. Without I/O, threads and clocks.
//
//   ProviderDirectory directory(random);
//   directory.Announce(7, announced);                    // The server on connection 7 ...
//   directory.Bind(7, modules);                          // ... offers these modules,
//   directory.SetDisableChoice(7, false);                // ... and is ready.
//   Choice choice = directory.Choose(11013, {.account = "alice"});

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::arch {

// A connection of a server. Never used again, so that the end of an old connection cannot hit the
// new one of the same server.
using ProviderId = std::int64_t;

// What is measured while messages flow. Any thread.
struct ProviderGauge {
  std::atomic<std::uint64_t> requests = 0;  // Messages that were sent to it.
  std::atomic<std::int32_t> overload = 0;   // BLoad::Overload.
};

// The client for whom a server is chosen.
struct ChoiceSubject {
  std::string_view account = {};
  std::string_view context = {};         // Its user state: the role id, as digits.
  std::string_view source_address = {};  // Address and port, in bytes.
  std::int64_t main_version = 0;         // 0: any server will do.
};

// Numbers of failures are in texts that people of mixed clusters compare: those of Zeze 1.6.
inline constexpr int kFailureUnknownModule = 2;
inline constexpr int kFailureNothingChosen = 71;

struct Choice {
  ProviderId provider = 0;  // 0: none, and then why:
  int failure = 0;
  bool busy = false;  // There are some, but all are overloaded.
};

// The main part of a version a.b.c.d of 16 bits each: the only one that is compared.
constexpr std::int64_t MainVersion(std::int64_t app_version) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(app_version) >> 48);
}

// Not thread-safe, except gauges.
class ProviderDirectory {
 public:
  using Time = std::chrono::nanoseconds;
  using Modules = zeze::Map<std::int32_t, Zeze::Builtin::Provider::BModule>;

  // `random`: uniform over 64 bits.
  explicit ProviderDirectory(std::function<std::uint64_t()> random);

  // A server says who it is. If it was connected before under the same prefix and identity, the new
  // connection takes its place at once, however long the end of the old one takes to be noticed;
  // returns that old one, which has been removed.
  std::optional<ProviderId> Announce(ProviderId provider, std::shared_ptr<ProviderGauge> gauge,
                                     const Zeze::Builtin::Provider::BAnnounceProviderInfo& info);

  // From now on the server offers these modules to all clients (Bind), or only to clients that it
  // binds one by one (Subscribe). Returns the names under which they are registered. Changes
  // nothing and fails with kNotFound if the server has not announced itself, and as CheckKind does.
  Result<std::vector<std::string>> Bind(ProviderId provider, const Modules& modules);
  Result<std::vector<std::string>> Subscribe(ProviderId provider, const Modules& modules);
  bool Unbind(ProviderId provider, const Modules& modules);

  // A module belongs to one kind of server: that of the prefix under which it was offered first, as
  // long as a server of that kind offers it here or is registered for it. Fails with kConflict,
  // naming both kinds, if one of the modules belongs to another kind than this server's.
  Result<void> CheckKind(ProviderId provider, const Modules& modules) const;

  // Disabled: gets no new clients; those it has stay.
  bool SetDisableChoice(ProviderId provider, bool disabled);

  void Remove(ProviderId provider);

  // What the service manager says. Before its first list of a name, those who are connected are
  // the list.
  void OnServiceList(const registry::ServiceList& list);
  void OnLoad(const std::string& ip, std::int32_t port, const Zeze::Builtin::Provider::BLoad& load);

  // About once a second: requests are counted over the last five.
  void Tick(Time now);

  Choice Choose(std::int32_t module, const ChoiceSubject& subject);

  // Messages of a dynamic module go to whoever has bound the client, or to nobody.
  bool IsDynamic(std::int32_t module) const;
  bool IsKnown(std::int32_t module) const { return modules_.contains(module); }

  // Modules that are bound to a client together with the one for which the server was chosen.
  std::vector<std::int32_t> StaticModules(ProviderId provider) const;

  std::int64_t main_version(ProviderId provider) const;
  std::size_t provider_count() const { return providers_.size(); }

 private:
  struct Provider {
    std::string prefix;
    std::string identity;
    std::string direct_address;  // "ip_port", of load reports.
    std::int64_t main_version = 0;
    bool disabled = true;
    std::vector<std::int32_t> static_modules;  // Ascending.
    std::shared_ptr<ProviderGauge> gauge;
    std::array<std::uint64_t, 5> samples = {};  // Of gauge->requests, one for each second.
  };

  // What is known about a module's service name.
  struct Offer {
    // In the order of identities. Each is that of a provider.
    std::map<std::string, ProviderId, registry::IdentityLess> notes;
    bool listed = false;  // The service manager has given a list.
    std::map<std::int64_t, std::vector<std::string>> identities = {};  // Of it, by main version.
    std::map<std::int64_t, HashRing> rings = {};  // Made when needed; 0: of all versions.
    std::size_t feed = 0;
    std::size_t round_robin = 0;
    std::size_t fallback = 0;
  };

  struct Module {
    std::string service_name;
    std::int32_t choice_type = 0;
    bool dynamic = false;
  };

  struct Candidate {
    ProviderId id = 0;
    const Provider* provider = nullptr;
    const Zeze::Builtin::Provider::BLoad* load = nullptr;
  };
  using Candidates = std::vector<Candidate>;

  Result<std::vector<std::string>> Note(ProviderId provider, const Modules& modules,
                                        bool subscribe);
  std::vector<std::string> Identities(const Offer& offer, std::int64_t main_version) const;
  const HashRing& RingOf(const std::string& name, Offer& offer, std::int64_t main_version);
  // Connected, enabled and of this version; not overloaded, unless told otherwise.
  bool Usable(const Provider& provider, std::int64_t main_version, bool even_overloaded) const;
  Candidates UsableOf(const Offer& offer, std::int64_t main_version) const;
  ProviderId ByRing(const Offer& offer, const std::string* identity) const;
  ProviderId ByType(const Module& module, Offer& offer, const ChoiceSubject& subject);
  ProviderId FeedFull(Offer& offer, const Candidates& usable) const;
  ProviderId ByLoad(const Candidates& usable);
  ProviderId ByRequests(const Candidates& usable);
  ProviderId WeightedRandom(const Candidates& from, const std::vector<std::uint64_t>& weights);
  Choice Fallback(Offer& offer, std::int64_t main_version) const;
  static std::uint64_t RecentRequests(const Provider& provider);

  const std::function<std::uint64_t()> random_;
  std::map<ProviderId, Provider> providers_;
  std::map<std::int32_t, Module> modules_;
  std::map<std::string, Offer, std::less<>> offers_;                          // By service name.
  std::map<std::string, Zeze::Builtin::Provider::BLoad, std::less<>> loads_;  // By "ip_port".
  Time sampled_at_{};
  std::size_t sample_ = 0;
};

}  // namespace zeze::arch
