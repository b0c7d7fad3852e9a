#include "zeze/registry/service/registry_store.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/registry_server.h"
#include "zeze/registry/service/wire.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"

namespace zeze::registry {

namespace {

constexpr std::array<std::string_view, RegistryStore::kTableCount> kNames = {
    "registry_services", "registry_offline", "registry_ids", "registry_ids128"};

Result<void> ReadTable(StorageTable& table, FunctionRef<void(ByteReader&, ByteReader&)> row) {
  Error wrong(ErrorCode::kCorrupt, "");
  bool failed = false;
  Result<std::size_t> walked =
      table.Walk({}, [&](std::string_view key_bytes, std::string_view value_bytes) {
        ByteReader key(key_bytes);
        ByteReader value(value_bytes);
        row(key, value);
        if (key.ok() && value.ok()) return true;
        failed = true;
        wrong = (key.ok() ? value : key).ToError(table.name());
        return false;
      });
  if (!walked.ok()) return walked.error();
  if (failed) return wrong;
  return {};
}

}  // namespace

Result<std::unique_ptr<RegistryStore>> RegistryStore::Open(Storage& storage) {
  Result<std::vector<std::string>> existing = storage.ListTables();
  if (!existing.ok()) return existing.error();
  const auto is_ours = [](const std::string& name) {
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
  };
  const auto foreign = std::find_if_not(existing.value().begin(), existing.value().end(), is_ours);
  if (foreign != existing.value().end()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} holds the table {}, so it is not a service manager's: give it a "
                             "directory of its own",
                             storage.Description(), *foreign));
  }
  std::unique_ptr<RegistryStore> store(new RegistryStore(storage));
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    Result<StorageTable*> table = storage.OpenTable(kNames[i]);
    if (!table.ok()) return table.error();
    store->tables_[i] = table.value();
  }
  return store;
}

Result<RegistryState> RegistryStore::Load() const {
  RegistryState state;
  const auto table = [this](Table which) -> StorageTable& {
    return *tables_[static_cast<std::size_t>(which)];
  };
  Result<void> read = ReadTable(table(Table::kServices), [&state](ByteReader&, ByteReader& value) {
    RegistryState::Service one;
    one.info = wire::DecodeService(value);
    one.owner = value.ReadLong();
    state.services.push_back(std::move(one));
  });
  if (!read.ok()) return read.error();
  read = ReadTable(table(Table::kOffline), [&state](ByteReader&, ByteReader& value) {
    wire::OfflineArgument argument;
    argument.Decode(value);
    state.offline.push_back({.notice = argument.notice, .owner = value.ReadLong()});
  });
  if (!read.ok()) return read.error();
  read = ReadTable(table(Table::kIds), [&state](ByteReader& key, ByteReader& value) {
    const std::string name(key.ReadBytes());
    const std::int64_t limit = value.ReadLong();
    if (limit < 0) value.Fail("a limit of ids is below 0");
    state.id_limits.push_back({name, {.high = 0, .low = static_cast<std::uint64_t>(limit)}});
  });
  if (!read.ok()) return read.error();
  read = ReadTable(table(Table::kIds128), [&state](ByteReader& key, ByteReader& value) {
    const std::string name(key.ReadBytes());
    const std::uint64_t high = value.ReadUlong();
    state.id128_limits.push_back({name, {.high = high, .low = value.ReadUlong()}});
  });
  if (!read.ok()) return read.error();
  return state;
}

Result<void> RegistryStore::Write(const Rows& rows, bool sync) {
  std::vector<StorageWrite> writes;
  writes.reserve(rows.size());
  for (const auto& [key, value] : rows) {
    StorageTable* table = tables_[static_cast<std::size_t>(key.first)];
    if (value.has_value()) {
      writes.push_back({.table = table, .key = key.second, .value = *value});
    } else {
      writes.push_back(StorageWrite::Remove(table, key.second));
    }
  }
  return storage_.Flush(writes, sync);
}

RegistryStore::RowKey RegistryStore::ServiceRow(const ServiceKey& key) {
  ByteWriter out;
  out.WriteBytes(key.name);
  out.WriteBytes(key.identity);
  return {Table::kServices, out.Release()};
}

std::string RegistryStore::ServiceValue(const ServiceInfo& info, SessionId owner) {
  ByteWriter out;
  wire::EncodeService(info, out);
  out.WriteLong(owner);
  return out.Release();
}

RegistryStore::RowKey RegistryStore::OfflineRow(std::int32_t server_id,
                                                std::string_view notify_id) {
  ByteWriter out;
  out.WriteLong(server_id);
  out.WriteBytes(notify_id);
  return {Table::kOffline, out.Release()};
}

std::string RegistryStore::OfflineValue(const OfflineNotice& notice, SessionId owner) {
  ByteWriter out;
  wire::OfflineArgument{.notice = notice}.Encode(out);
  out.WriteLong(owner);
  return out.Release();
}

RegistryStore::RowKey RegistryStore::IdRow(IdKind kind, std::string_view name) {
  ByteWriter out;
  out.WriteBytes(name);
  return {kind == IdKind::k64 ? Table::kIds : Table::kIds128, out.Release()};
}

std::string RegistryStore::IdValue(IdKind kind, const Id128& limit) {
  ByteWriter out;
  if (kind == IdKind::k64) {
    out.WriteLong(static_cast<std::int64_t>(limit.low));
  } else {
    out.WriteUlong(limit.high);
    out.WriteUlong(limit.low);
  }
  return out.Release();
}

}  // namespace zeze::registry
