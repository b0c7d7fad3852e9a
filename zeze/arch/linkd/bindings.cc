#include "zeze/arch/linkd/bindings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zeze::arch {

ProviderLink* Bindings::Find(std::int32_t module) const {
  const auto at = std::ranges::lower_bound(entries_, module, {}, &Entry::module);
  return at == entries_.end() || at->module != module ? nullptr : links_[at->link].get();
}

void Bindings::Bind(std::int32_t module, const ProviderLinkPtr& link) {
  auto owner = std::ranges::find(links_, link);
  if (owner == links_.end()) owner = links_.insert(links_.end(), link);
  const auto index = static_cast<std::uint32_t>(owner - links_.begin());
  const auto at = std::ranges::lower_bound(entries_, module, {}, &Entry::module);
  if (at != entries_.end() && at->module == module) {
    at->link = index;
    return DropUnused();
  }
  entries_.insert(at, {.module = module, .link = index});
}

bool Bindings::Unbind(std::int32_t module, const ProviderLink& link) {
  const auto at = std::ranges::lower_bound(entries_, module, {}, &Entry::module);
  if (at == entries_.end() || at->module != module || links_[at->link].get() != &link) return false;
  entries_.erase(at);
  DropUnused();
  return true;
}

std::vector<std::int32_t> Bindings::UnbindAll(const ProviderLink& link) {
  std::vector<std::int32_t> modules;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (links_[entry.link].get() != &link) return false;
    modules.push_back(entry.module);
    return true;
  });
  if (!modules.empty()) DropUnused();
  return modules;
}

bool Bindings::Has(const ProviderLink& link) const {
  return std::ranges::any_of(links_, [&link](const auto& one) { return one.get() == &link; });
}

void Bindings::DropUnused() {
  for (std::uint32_t i = static_cast<std::uint32_t>(links_.size()); i-- > 0;) {
    if (std::ranges::any_of(entries_, [i](const Entry& entry) { return entry.link == i; })) {
      continue;
    }
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(i));
    for (Entry& entry : entries_) {
      if (entry.link > i) --entry.link;
    }
  }
}

}  // namespace zeze::arch
