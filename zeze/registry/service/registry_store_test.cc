#include "zeze/registry/service/registry_store.h"

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/registry_server.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::registry {
namespace {

TEST(RegistryStoreTest, WhatWasWrittenIsLoaded) {
  const TempDirectory directory;
  const ServiceInfo shop{.name = "Shop", .identity = "7", .version = 3, .extra_info = "x"};
  const OfflineNotice notice{.server_id = 7, .notify_id = "Timer", .serial = 2, .context = "c"};
  const Id128 limit{.high = 0, .low = 51};
  const Id128 wide{.high = 3, .low = 7};
  {
    const auto storage = OpenRocksDbStorage({.directory = directory.File("registry")}).value();
    const auto store = RegistryStore::Open(*storage).value();
    RegistryStore::Rows rows;
    rows[RegistryStore::ServiceRow(shop.key())] = RegistryStore::ServiceValue(shop, 41);
    rows[RegistryStore::ServiceRow({"Bank", "1"})] = RegistryStore::ServiceValue({}, 1);
    rows[RegistryStore::OfflineRow(7, "Timer")] = RegistryStore::OfflineValue(notice, 42);
    rows[RegistryStore::IdRow(IdKind::k64, "order")] = RegistryStore::IdValue(IdKind::k64, limit);
    rows[RegistryStore::IdRow(IdKind::k128, "order")] = RegistryStore::IdValue(IdKind::k128, wide);
    ASSERT_TRUE(store->Write(rows, true).ok());
    ASSERT_TRUE(
        store->Write({{RegistryStore::ServiceRow({"Bank", "1"}), std::nullopt}}, false).ok());
  }
  const auto storage = OpenRocksDbStorage({.directory = directory.File("registry")}).value();
  const RegistryState state = RegistryStore::Open(*storage).value()->Load().value();

  ASSERT_EQ(1U, state.services.size());
  EXPECT_EQ(shop, state.services[0].info);
  EXPECT_EQ(41, state.services[0].owner);
  ASSERT_EQ(1U, state.offline.size());
  EXPECT_EQ(notice, state.offline[0].notice);
  EXPECT_EQ(42, state.LastSession());
  EXPECT_EQ((std::vector<std::pair<std::string, Id128>>{{"order", limit}}), state.id_limits);
  EXPECT_EQ((std::vector<std::pair<std::string, Id128>>{{"order", wide}}), state.id128_limits);
}

TEST(RegistryStoreTest, AForeignDatabaseIsRefused) {
  const auto storage = OpenMemoryStorage();
  ASSERT_TRUE(storage->OpenTable("demo_Game_tRole").ok());
  const auto store = RegistryStore::Open(*storage);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(ErrorCode::kInvalidArgument, store.error().code());
  EXPECT_THAT(store.error().message(), ::testing::HasSubstr("demo_Game_tRole"));
}

TEST(RegistryStoreTest, DamagedRowsAreReported) {
  const auto storage = OpenMemoryStorage();
  const auto store = RegistryStore::Open(*storage).value();
  ASSERT_TRUE(store->Write({{RegistryStore::IdRow(IdKind::k64, "order"), ""}}, true).ok());
  const auto loaded = store->Load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(ErrorCode::kCorrupt, loaded.error().code());
}

}  // namespace
}  // namespace zeze::registry
