// Bindings: which server gets a client's messages, by module.
//
//   bindings.Bind(11013, link);
//   if (ProviderLink* link = bindings.Find(11013)) ...

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zeze/arch/linkd/provider_directory.h"
#include "zeze/net/connection.h"

namespace zeze::arch {

// A connection of a server, for whoever sends on it.
struct ProviderLink {
  ProviderLink(ProviderId id_in, ConnectionPtr connection_in)
      : id(id_in), connection(std::move(connection_in)) {}

  const ProviderId id;
  const ConnectionPtr connection;
  ProviderGauge gauge;

  // Set before clients are unbound from it: who binds looks at it under the client's lock, so that
  // nobody is bound to it afterwards.
  std::atomic<bool> closed = false;

  // Grows whenever the server offers other static modules than before. Who has chosen it looks
  // whether it is still the same, under the client's lock, so that nobody is bound to modules that
  // it has taken back.
  std::atomic<std::uint64_t> offer = 0;

  // It has announced that it understands Unbound.
  std::atomic<bool> hears_unbound = false;

  bool overloaded() const {
    return gauge.overload.load(std::memory_order_relaxed) ==
           Zeze::Builtin::Provider::BLoad::eOverload;
  }
};
using ProviderLinkPtr = std::shared_ptr<ProviderLink>;

// Small: a gateway has one for each of its clients. Not thread-safe.
class Bindings {
 public:
  // Null if the module is not bound.
  ProviderLink* Find(std::int32_t module) const;

  // Replaces what was bound.
  void Bind(std::int32_t module, const ProviderLinkPtr& link);

  // Of this server only: false, and nothing happens, if another one has it.
  bool Unbind(std::int32_t module, const ProviderLink& link);

  // All of a server's; returns its modules.
  std::vector<std::int32_t> UnbindAll(const ProviderLink& link);

  bool Has(const ProviderLink& link) const;

  // Each once.
  const std::vector<ProviderLinkPtr>& links() const { return links_; }

 private:
  struct Entry {
    std::int32_t module;
    std::uint32_t link;  // In links_.
  };

  void DropUnused();

  std::vector<Entry> entries_;          // By module.
  std::vector<ProviderLinkPtr> links_;  // Each used by an entry.
};

}  // namespace zeze::arch
