// RegistryStore: what of the service manager survives a restart, as rows of a database.
//
//   Result<std::unique_ptr<RegistryStore>> store = RegistryStore::Open(*storage);
//   Result<RegistryState> state = store.value()->Load();
//   RegistryStore::Rows rows;
//   rows[RegistryStore::IdRow(IdKind::k64, "order")] = RegistryStore::IdValue(limit);
//   store.value()->Write(rows, true);

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/registry_server.h"
#include "zeze/storage/storage.h"

namespace zeze::registry {

// Thread-safe. Blocks on the disk.
class RegistryStore {
 public:
  // A stored format: append, never renumber or rename.
  enum class Table : std::uint8_t { kServices, kOffline, kIds, kIds128 };
  static constexpr std::size_t kTableCount = 4;

  using RowKey = std::pair<Table, std::string>;
  // No value: remove the row.
  using Rows = std::map<RowKey, std::optional<std::string>>;

  // The storage outlives the store. Fails with kInvalidArgument if the database is somebody else's:
  // ids would begin anew there.
  static Result<std::unique_ptr<RegistryStore>> Open(Storage& storage);

  Result<RegistryState> Load() const;

  // All or none; see Storage::Flush.
  Result<void> Write(const Rows& rows, bool sync);

  static RowKey ServiceRow(const ServiceKey& key);
  static std::string ServiceValue(const ServiceInfo& info, SessionId owner);
  static RowKey OfflineRow(std::int32_t server_id, std::string_view notify_id);
  static std::string OfflineValue(const OfflineNotice& notice, SessionId owner);
  static RowKey IdRow(IdKind kind, std::string_view name);
  static std::string IdValue(IdKind kind, const Id128& limit);

 private:
  explicit RegistryStore(Storage& storage) : storage_(storage) {}

  Storage& storage_;
  std::array<StorageTable*, kTableCount> tables_ = {};
};

}  // namespace zeze::registry
