#include "zeze/storage/storage_driver.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

using ::testing::HasSubstr;

// Nothing in this file names the driver: the linker takes it because the target is linked.
TEST(StorageDriverTest, ALinkedDriverIsThere) {
  const Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = "memory:"});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(FindStorageDriverByName("Memory").value().schemes.front(), "memory");
  EXPECT_FALSE(FindStorageDriverByName("memory").value().durable);
}

TEST(StorageDriverTest, AnAddressWithoutADriverNamesThoseThatAreThere) {
  const Result<std::unique_ptr<Storage>> opened =
      OpenStorage({.url = "jdbc:oracle://scott:tiger@h/g"});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(opened.error().message(), HasSubstr("this program, which has Memory."));
  EXPECT_THAT(opened.error().message(), HasSubstr("oracle://"));
  EXPECT_THAT(opened.error().message(), Not(HasSubstr("tiger")));
  EXPECT_FALSE(OpenStorage({.url = ""}).ok());
}

TEST(StorageDriverTest, WhatStandsBehindTheSchemeIsForTheDriver) {
  EXPECT_EQ(StoragePlace("rocksdb:/srv/game/data"), "/srv/game/data");
  EXPECT_EQ(StoragePlace("jdbc:mysql://h/g"), "//h/g");
  EXPECT_EQ(StoragePlace("rocksdb:"), "");
  EXPECT_EQ(StoragePlace("rocksdb"), "");
}

TEST(StorageDriverTest, ConfigurationFilesNameThePlaceBesideTheDriver) {
  const StorageDriver embedded = {.name = "Embedded", .schemes = {"embedded"}};
  const StorageDriver server = {.name = "Server", .schemes = {"server"}, .shared = true};
  EXPECT_EQ(embedded.UrlOf("data"), "embedded:data");
  EXPECT_EQ(embedded.UrlOf("embedded:data"), "embedded:data");
  EXPECT_EQ(server.UrlOf("server://h/g"), "server://h/g");
}

}  // namespace
}  // namespace zeze
