// RegistryOutput: what the state machines of the service manager do to the world.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/registry/messages.h"

namespace zeze::registry {

// The two kinds of ids: of 64 bits over connections, of 128 bits over datagrams.
enum class IdKind : std::uint8_t { k64, k128 };

// Called from inside the machine: it must not be called back from here.
class RegistryOutput {
 public:
  virtual ~RegistryOutput() = default;

  // In the order of the calls. A session that cannot take an edit must be closed, so that it asks
  // for the whole list again; a load may be lost.
  virtual void SendEdit(SessionId to, const ServiceEdit& edit) = 0;
  virtual void SendLoad(SessionId to, const ServerLoad& load) = 0;

  // To be answered by OfflineBook::OnAnswer with the same ask, also if the session closes.
  virtual void SendOfflineNotify(SessionId to, std::uint64_t ask, const OfflineNotice& notice) = 0;

  virtual void GrantIds(std::uint64_t request, const IdBlock& block) = 0;
  virtual void RefuseIds(std::uint64_t request, const std::string& why) = 0;

  // What must survive a restart, in the order of the calls.
  virtual void SaveService(const ServiceInfo& info, SessionId owner) = 0;
  virtual void EraseService(const ServiceKey& key) = 0;
  virtual void SaveOffline(const OfflineNotice& notice, SessionId owner) = 0;
  virtual void EraseOffline(std::int32_t server_id, std::string_view notify_id) = 0;

  // To be answered by IdAllocator::OnSaved when it is safe, or failed.
  virtual void SaveIdLimit(IdKind kind, const std::string& name, const Id128& limit) = 0;

 protected:
  RegistryOutput() = default;
};

}  // namespace zeze::registry
