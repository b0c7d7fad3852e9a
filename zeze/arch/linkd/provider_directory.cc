#include "zeze/arch/linkd/provider_directory.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::arch {

using Zeze::Builtin::Provider::BAnnounceProviderInfo;
using Zeze::Builtin::Provider::BLoad;
using Zeze::Builtin::Provider::BModule;

namespace {

// Before any report: not full, and no limit to newcomers.
const BLoad kNoLoad{};

// Loads of servers that never came, or have left: more than any cluster has.
constexpr std::size_t kLoadsMax = 10'000;

bool TakesNewcomers(const BLoad& load) {
  return load.MaxOnlineNew <= 0 || load.OnlineNew <= load.MaxOnlineNew;
}

bool IsFull(const BLoad& load) {
  return load.ProposeMaxOnline > 0 && load.Online >= load.ProposeMaxOnline;
}

std::string AddressKey(std::string_view ip, std::int32_t port) {
  return fmt::format("{}_{}", ip, port);
}

// A role's number; none: 0, so that all such clients meet at one server.
std::int64_t RoleOf(std::string_view context) {
  std::int64_t role = 0;
  const auto [end, error] = std::from_chars(context.data(), context.data() + context.size(), role);
  return error == std::errc() && end == context.data() + context.size() ? role : 0;
}

void InsertSorted(std::vector<std::int32_t>& sorted, std::int32_t value) {
  const auto at = std::ranges::lower_bound(sorted, value);
  if (at == sorted.end() || *at != value) sorted.insert(at, value);
}

}  // namespace

ProviderDirectory::ProviderDirectory(std::function<std::uint64_t()> random)
    : random_(std::move(random)) {}

std::optional<ProviderId> ProviderDirectory::Announce(ProviderId provider,
                                                      std::shared_ptr<ProviderGauge> gauge,
                                                      const BAnnounceProviderInfo& info) {
  std::optional<ProviderId> replaced;
  for (const auto& [id, other] : providers_) {
    if (id != provider && other.identity == info.ServiceIdentity &&
        other.prefix == info.ServiceNamePrefix) {
      replaced = id;
    }
  }
  if (replaced) Remove(*replaced);
  if (const auto known = providers_.find(provider);
      known != providers_.end() && (known->second.identity != info.ServiceIdentity ||
                                    known->second.prefix != info.ServiceNamePrefix)) {
    Remove(provider);
  }
  Provider& added = providers_[provider];
  added.prefix = info.ServiceNamePrefix;
  added.identity = info.ServiceIdentity;
  added.direct_address = AddressKey(info.ProviderDirectIp, info.ProviderDirectPort);
  added.main_version = MainVersion(info.AppVersion);
  added.disabled = info.DisableChoice;
  added.gauge = std::move(gauge);
  added.samples.fill(added.gauge->requests);
  if (const auto load = loads_.find(added.direct_address); load != loads_.end()) {
    added.gauge->overload = load->second.Overload;
  }
  return replaced;
}

Result<void> ProviderDirectory::CheckKind(ProviderId provider, const Modules& modules) const {
  const auto found = providers_.find(provider);
  if (found == providers_.end()) {
    return Error(ErrorCode::kNotFound, "the server has not announced itself");
  }
  const Provider& about = found->second;
  for (const auto& [id, module] : modules) {
    const auto known = modules_.find(id);
    if (known == modules_.end()) continue;
    const std::string& owner = known->second.service_name;
    if (owner == about.prefix + std::to_string(id)) continue;
    const auto offer = offers_.find(owner);
    if (offer == offers_.end()) continue;
    const bool registered = std::ranges::any_of(
        offer->second.identities, [](const auto& version) { return !version.second.empty(); });
    if (offer->second.notes.empty() && !registered) continue;
    return Error(ErrorCode::kConflict,
                 fmt::format("module {} belongs to the servers registered as {}; server {} offers "
                             "it as {}{}: give both the same name_prefix, or offer the module in "
                             "one kind of server only",
                             id, owner, about.identity, about.prefix, id));
  }
  return {};
}

Result<std::vector<std::string>> ProviderDirectory::Note(ProviderId provider,
                                                         const Modules& modules, bool subscribe) {
  if (Result<void> checked = CheckKind(provider, modules); !checked.ok()) return checked.error();
  Provider& about = providers_.at(provider);
  std::vector<std::string> names;
  for (const auto& [id, module] : modules) {
    std::string name = about.prefix + std::to_string(id);
    modules_[id] = {.service_name = name,
                    .choice_type = module.ChoiceType,
                    .dynamic = subscribe || module.Dynamic};
    offers_[name].notes[about.identity] = provider;
    if (!subscribe) InsertSorted(about.static_modules, id);
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::vector<std::string>> ProviderDirectory::Bind(ProviderId provider,
                                                         const Modules& modules) {
  return Note(provider, modules, false);
}

Result<std::vector<std::string>> ProviderDirectory::Subscribe(ProviderId provider,
                                                              const Modules& modules) {
  return Note(provider, modules, true);
}

bool ProviderDirectory::Unbind(ProviderId provider, const Modules& modules) {
  const auto found = providers_.find(provider);
  if (found == providers_.end()) return false;
  Provider& about = found->second;
  for (const auto& [id, module] : modules) {
    std::erase(about.static_modules, id);
    const auto offer = offers_.find(about.prefix + std::to_string(id));
    if (offer == offers_.end()) continue;
    const auto note = offer->second.notes.find(about.identity);
    if (note == offer->second.notes.end() || note->second != provider) continue;
    offer->second.notes.erase(note);
    if (!offer->second.listed) offer->second.rings.clear();
  }
  return true;
}

bool ProviderDirectory::SetDisableChoice(ProviderId provider, bool disabled) {
  const auto found = providers_.find(provider);
  if (found == providers_.end()) return false;
  found->second.disabled = disabled;
  return true;
}

void ProviderDirectory::Remove(ProviderId provider) {
  if (providers_.erase(provider) == 0) return;
  for (auto& [name, offer] : offers_) {
    std::erase_if(offer.notes, [provider](const auto& note) { return note.second == provider; });
  }
}

void ProviderDirectory::OnServiceList(const registry::ServiceList& list) {
  Offer& offer = offers_[list.name];
  offer.listed = true;
  offer.identities.clear();
  offer.rings.clear();
  for (const auto& [version, services] : list.versions) {
    for (const registry::ServiceInfo& info : services) {
      offer.identities[version].push_back(info.identity);
    }
  }
}

void ProviderDirectory::OnLoad(const std::string& ip, std::int32_t port, const BLoad& load) {
  const std::string address = AddressKey(ip, port);
  if (loads_.size() >= kLoadsMax && !loads_.contains(address)) loads_.clear();
  loads_[address] = load;
  for (auto& [id, provider] : providers_) {
    if (provider.direct_address == address) provider.gauge->overload = load.Overload;
  }
}

void ProviderDirectory::Tick(Time now) {
  if (now - sampled_at_ < std::chrono::seconds(1)) return;
  sampled_at_ = now;
  sample_ = (sample_ + 1) % std::tuple_size_v<decltype(Provider::samples)>;
  for (auto& [id, provider] : providers_) provider.samples[sample_] = provider.gauge->requests;
}

std::uint64_t ProviderDirectory::RecentRequests(const Provider& provider) {
  // They only grow: the least is the oldest.
  return provider.gauge->requests - *std::ranges::min_element(provider.samples);
}

bool ProviderDirectory::IsDynamic(std::int32_t module) const {
  const auto found = modules_.find(module);
  return found != modules_.end() && found->second.dynamic;
}

std::vector<std::int32_t> ProviderDirectory::StaticModules(ProviderId provider) const {
  const auto found = providers_.find(provider);
  return found == providers_.end() ? std::vector<std::int32_t>() : found->second.static_modules;
}

std::int64_t ProviderDirectory::main_version(ProviderId provider) const {
  const auto found = providers_.find(provider);
  return found == providers_.end() ? 0 : found->second.main_version;
}

bool ProviderDirectory::Usable(const Provider& provider, std::int64_t main_version,
                               bool even_overloaded) const {
  if (provider.disabled) return false;
  if (main_version != 0 && provider.main_version != main_version) return false;
  return even_overloaded || provider.gauge->overload != BLoad::eOverload;
}

// All processes that route by hash must make the same ring: of those who are registered, not of
// those who happen to be connected here.
std::vector<std::string> ProviderDirectory::Identities(const Offer& offer,
                                                       std::int64_t main_version) const {
  std::vector<std::string> identities;
  if (offer.listed) {
    for (const auto& [version, of_version] : offer.identities) {
      if (main_version != 0 && version != main_version) continue;
      identities.insert(identities.end(), of_version.begin(), of_version.end());
    }
  } else {
    for (const auto& [identity, id] : offer.notes) {
      const Provider& provider = providers_.at(id);
      if (main_version != 0 && provider.main_version != main_version) continue;
      identities.push_back(identity);
    }
  }
  std::ranges::sort(identities, registry::IdentityLess());
  const auto repeated = std::ranges::unique(identities);
  identities.erase(repeated.begin(), repeated.end());
  return identities;
}

const HashRing& ProviderDirectory::RingOf(const std::string& name, Offer& offer,
                                          std::int64_t main_version) {
  std::vector<std::string> identities = Identities(offer, main_version);
  HashRing& ring = offer.rings[main_version];
  if (ring.identities() != identities) ring = HashRing(name, std::move(identities));
  return ring;
}

ProviderDirectory::Candidates ProviderDirectory::UsableOf(const Offer& offer,
                                                          std::int64_t main_version) const {
  Candidates usable;
  for (const std::string& identity : Identities(offer, main_version)) {
    const auto note = offer.notes.find(identity);
    if (note == offer.notes.end()) continue;
    const Provider& provider = providers_.at(note->second);
    if (!Usable(provider, main_version, false)) continue;
    const auto load = loads_.find(provider.direct_address);
    usable.push_back({.id = note->second,
                      .provider = &provider,
                      .load = load == loads_.end() ? &kNoLoad : &load->second});
  }
  return usable;
}

ProviderId ProviderDirectory::ByRing(const Offer& offer, const std::string* identity) const {
  if (identity == nullptr) return 0;
  const auto note = offer.notes.find(*identity);
  return note == offer.notes.end() ? 0 : note->second;
}

ProviderId ProviderDirectory::FeedFull(Offer& offer, const Candidates& usable) const {
  for (std::size_t i = 0; i < usable.size(); ++i) {
    const Candidate& candidate = usable[offer.feed % usable.size()];
    const bool takes = TakesNewcomers(*candidate.load);
    if (!takes || IsFull(*candidate.load)) ++offer.feed;
    if (takes) return candidate.id;
  }
  return 0;
}

ProviderId ProviderDirectory::WeightedRandom(const Candidates& from,
                                             const std::vector<std::uint64_t>& weights) {
  std::uint64_t sum = 0;
  for (const std::uint64_t weight : weights) sum += weight;
  if (sum == 0) return 0;
  std::uint64_t ticket = random_() % sum;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (ticket < weights[i]) return from[i].id;
    ticket -= weights[i];
  }
  return 0;
}

ProviderId ProviderDirectory::ByLoad(const Candidates& usable) {
  std::vector<std::uint64_t> weights;
  for (const Candidate& candidate : usable) {
    const BLoad& load = *candidate.load;
    const std::int64_t room = std::int64_t{load.ProposeMaxOnline} - load.Online;
    weights.push_back(TakesNewcomers(load) && room > 0 ? static_cast<std::uint64_t>(room) : 0);
  }
  if (const ProviderId chosen = WeightedRandom(usable, weights); chosen != 0) return chosen;
  return usable.empty() ? 0 : usable[random_() % usable.size()].id;
}

ProviderId ProviderDirectory::ByRequests(const Candidates& usable) {
  // So much that who got nothing yet is not flooded.
  constexpr std::uint64_t kFloor = 10'000;
  std::uint64_t most = 0;
  for (const Candidate& one : usable) most = std::max(most, RecentRequests(*one.provider));
  std::vector<std::uint64_t> weights;
  for (const Candidate& one : usable) {
    weights.push_back(most + kFloor - std::min(most, RecentRequests(*one.provider)));
  }
  return WeightedRandom(usable, weights);
}

ProviderId ProviderDirectory::ByType(const Module& module, Offer& offer,
                                     const ChoiceSubject& subject) {
  switch (module.choice_type) {
    case BModule::ChoiceTypeHashAccount:
      return ByRing(
          offer,
          RingOf(module.service_name, offer, subject.main_version).LookupText(subject.account));
    case BModule::ChoiceTypeHashRoleId: {
      const auto hash = static_cast<std::int32_t>(RoutingHash(RoleOf(subject.context)));
      return ByRing(offer, RingOf(module.service_name, offer, subject.main_version).Lookup(hash));
    }
    case BModule::ChoiceTypeHashSourceAddress: {
      const auto hash = static_cast<std::int32_t>(RoutingHashOfBytes(subject.source_address));
      return ByRing(offer, RingOf(module.service_name, offer, subject.main_version).Lookup(hash));
    }
    default:
      break;
  }
  const Candidates usable = UsableOf(offer, subject.main_version);
  if (usable.empty()) return 0;
  switch (module.choice_type) {
    case BModule::ChoiceTypeFeedFullOneByOne:
      return FeedFull(offer, usable);
    case BModule::ChoiceTypeLoad:
      return ByLoad(usable);
    case BModule::ChoiceTypeRoundRobin:
      return usable[offer.round_robin++ % usable.size()].id;
    default:
      return ByRequests(usable);
  }
}

// Whoever is there, in turn; of those who are overloaded only that they exist.
Choice ProviderDirectory::Fallback(Offer& offer, std::int64_t main_version) const {
  bool busy = false;
  const std::size_t count = offer.notes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto note =
        std::next(offer.notes.begin(), static_cast<std::ptrdiff_t>(offer.fallback++ % count));
    const Provider& provider = providers_.at(note->second);
    if (Usable(provider, main_version, false)) return {.provider = note->second};
    busy = busy || Usable(provider, main_version, true);
  }
  return {.failure = kFailureNothingChosen, .busy = busy};
}

Choice ProviderDirectory::Choose(std::int32_t module, const ChoiceSubject& subject) {
  const auto found = modules_.find(module);
  if (found == modules_.end()) return {.failure = kFailureUnknownModule};
  Offer& offer = offers_[found->second.service_name];
  const ProviderId chosen = ByType(found->second, offer, subject);
  if (chosen != 0 && Usable(providers_.at(chosen), subject.main_version, false)) {
    return {.provider = chosen};
  }
  return Fallback(offer, subject.main_version);
}

}  // namespace zeze::arch
