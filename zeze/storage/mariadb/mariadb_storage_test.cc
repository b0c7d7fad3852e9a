#include "zeze/storage/mariadb/mariadb_storage.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/mariadb/mariadb_home_for_test.h"
#include "zeze/storage/sql/copies_for_test.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fence_conformance.h"
#include "zeze/storage/testing/locked_table.h"

namespace zeze {
namespace {

INSTANTIATE_TEST_SUITE_P(MariaDb, StorageConformanceTest,
                         testing::Values(DriverUnderTest{
                             "mariadb",
                             [] { return std::make_unique<MariaDbHome>(SharedMariaDbServer()); }}),
                         DriverUnderTestName);

INSTANTIATE_TEST_SUITE_P(
    MariaDb, FenceConformanceTest,
    testing::Values(FencedDriver{
        "mariadb", [] { return std::make_unique<FencedMariaDbHome>(SharedMariaDbServer()); }}),
    FencedDriverName);

class MariaDbStorageTest : public testing::Test {
 protected:
  ~MariaDbStorageTest() override { SharedMariaDbServer().DropDatabase(url_); }

  std::unique_ptr<Storage> Open() {
    Result<std::unique_ptr<Storage>> opened =
        OpenMariaDbStorage(PatientOptions<MariaDbOptions>(url_));
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }
  std::string Sql(const std::string& sql) { return SharedMariaDbServer().RunSql(url_, sql); }

  const std::string url_ = SharedMariaDbServer().NewDatabase();
};

// ---- The Java peer's tables

TEST_F(MariaDbStorageTest, SharesItsTablesWithTheJavaPeer) {
  Sql("CREATE TABLE demo_Game_tRole (id VARBINARY(2712) NOT NULL PRIMARY KEY, "
      "value LONGBLOB NOT NULL)");
  Sql("INSERT INTO demo_Game_tRole VALUES (x'00ff', x'01')");
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("demo_Game_tRole").value();

  std::string value;
  EXPECT_TRUE(table->Find(std::string_view("\0\xff", 2), value).value());
  EXPECT_EQ(value, "\x01");
  const StorageWrite write = {.table = table, .key = "k", .value = "v"};
  ASSERT_TRUE(storage->Flush({&write, 1}, true).ok());

  EXPECT_EQ(Sql("SELECT value FROM demo_Game_tRole WHERE id = 'k'"), "v\n");
  EXPECT_EQ(storage->ListTables().value(), std::vector<std::string>{"demo_Game_tRole"});
}

TEST_F(MariaDbStorageTest, SharesVersionedDataWithTheJavaPeer) {
  Sql("CREATE TABLE _ZezeDataWithVersion_ (id VARBINARY(2712) NOT NULL PRIMARY KEY, "
      "data LONGBLOB NOT NULL, version BIGINT NOT NULL)");
  Sql("INSERT INTO _ZezeDataWithVersion_ VALUES ('a', 'old', 4)");
  const std::unique_ptr<Storage> storage = Open();

  EXPECT_EQ(storage->LoadVersioned("a").value(), (VersionedData{"old", 4}));
  EXPECT_EQ(storage->SaveVersioned("a", "new", 4).value(), 5);

  EXPECT_EQ(Sql("SELECT data, version FROM _ZezeDataWithVersion_"), "new\t5\n");
}

TEST_F(MariaDbStorageTest, ChangesWhatTheJavaPeerHasSavedOnce) {
  const std::unique_ptr<Storage> storage = Open();
  Sql("INSERT INTO _ZezeDataWithVersion_ VALUES ('a', 'old', 0)");

  EXPECT_EQ(storage->LoadVersioned("a").value(), (VersionedData{"old", 0}));
  EXPECT_EQ(storage->SaveVersioned("a", "new", 0).value(), 1);
  EXPECT_EQ(storage->SaveVersioned("a", "newer", 0).error().code(), ErrorCode::kConflict);
  EXPECT_EQ(Sql("SELECT data, version FROM _ZezeDataWithVersion_"), "new\t1\n");
}

// It compares nothing at its start. Its rows lack what must be there.
TEST_F(MariaDbStorageTest, AProcessOfAnEarlierBuildCannotStartBeside) {
  const std::unique_ptr<Storage> storage = Open();

  EXPECT_EQ(Sql("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"
                " AND COLUMN_NAME = 'secret' AND IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL"
                " AND TABLE_NAME IN ('zeze_fence', 'zeze_global')"),
            "2\n");
  EXPECT_NE(Sql("SELECT @@sql_mode").find("STRICT_TRANS_TABLES"), std::string::npos);
}

TEST_F(MariaDbStorageTest, LeavesOtherTablesAlone) {
  Sql("CREATE TABLE accounts (name TEXT)");
  Sql("CREATE TABLE unsafe (id VARBINARY(100) NOT NULL PRIMARY KEY, value LONGBLOB NOT NULL) "
      "ENGINE=Aria");
  const std::unique_ptr<Storage> storage = Open();

  EXPECT_EQ(storage->OpenTable("accounts").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(storage->OpenTable("unsafe").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(storage->OpenTable("zeze_fence").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(storage->DropTable("accounts").error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(storage->OpenTable("t").ok());
  EXPECT_EQ(storage->RenameTable("t", "accounts").error().code(), ErrorCode::kConflict);
}

// ---- Rows as MySQL understands them

TEST_F(MariaDbStorageTest, SendsRowsAsTextToo) {
  const std::unique_ptr<Storage> storage =
      std::move(OpenMariaDbStorage({.url = url_, .bulk = false})).value();
  StorageTable* a = storage->OpenTable("a").value();
  StorageTable* b = storage->OpenTable("b").value();
  const std::string large(std::size_t{6} << 20, '\'');
  const std::string odd("\0'\\\xff", 4);
  const StorageWrite first[] = {{.table = a, .key = "", .value = "empty key"},
                                {.table = a, .key = odd, .value = ""},
                                {.table = a, .key = "gone", .value = "soon"},
                                {.table = b, .key = "k", .value = large}};
  const StorageWrite second[] = {{.table = a, .key = "", .value = "other"},
                                 StorageWrite::Remove(a, "gone"),
                                 StorageWrite::Remove(a, "never there"),
                                 {.table = a, .key = "new", .value = "v"}};

  ASSERT_TRUE(storage->Flush(first, true).ok());
  ASSERT_TRUE(storage->Flush(second, true).ok());

  using Rows = std::vector<std::pair<std::string, std::string>>;
  Rows rows;
  const Result<std::size_t> walked = a->Walk({}, [&](std::string_view key, std::string_view value) {
    rows.emplace_back(key, value);
    return true;
  });
  ASSERT_TRUE(walked.ok()) << walked.error().message();
  EXPECT_EQ(rows, (Rows{{"", "other"}, {odd, ""}, {"new", "v"}}));
  std::string value;
  EXPECT_TRUE(b->Find("k", value).value());
  EXPECT_TRUE(value == large);
  EXPECT_LT(storage->limits().value_bytes_max, std::size_t{33} << 20);
}

// ---- Sizes

// A server of an older version, or one that was set so: 4 MB of rows in one statement were refused,
// and with them every flush from then on.
TEST_F(MariaDbStorageTest, SendsNoStatementThatTheDatabaseFindsTooLong) {
  Sql("SET GLOBAL max_allowed_packet = 1048576");
  for (const bool bulk : {true, false}) {
    MariaDbOptions options = PatientOptions<MariaDbOptions>(url_);
    options.bulk = bulk;
    const std::unique_ptr<Storage> storage = std::move(OpenMariaDbStorage(options)).value();
    StorageTable* table = storage->OpenTable("t").value();
    const std::string value(50'000, bulk ? 'b' : 't');
    const std::string longest(storage->limits().value_bytes_max, 'l');
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back(std::to_string(100 + i));
    std::vector<StorageWrite> writes;
    for (const std::string& key : keys) {
      writes.push_back({.table = table, .key = key, .value = key == "150" ? longest : value});
    }

    const Result<void> flushed = storage->Flush(writes, true);

    EXPECT_TRUE(flushed.ok()) << flushed.error().message();
    EXPECT_EQ(Sql("SELECT COUNT(*), SUM(LENGTH(value)) FROM t"),
              "100\t" + std::to_string(99 * value.size() + longest.size()) + "\n");
  }
  Sql("SET GLOBAL max_allowed_packet = 67108864");
}

// While a server runs: nothing is lost, and the message says what to do.
TEST_F(MariaDbStorageTest, SaysSoWhenItTakesShorterRowsThanBefore) {
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("t").value();
  const std::string value(std::size_t{2} << 20, 'v');
  const StorageWrite write = {.table = table, .key = "k", .value = value};
  Sql("SET GLOBAL max_allowed_packet = 1048576");

  const Result<void> refused = storage->Flush({&write, 1}, true);
  Sql("SET GLOBAL max_allowed_packet = 67108864");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message().find("max_allowed_packet"), std::string::npos);
  EXPECT_TRUE(Open()->Flush({}, true).ok());
}

TEST_F(MariaDbStorageTest, SplitsALargeFlushAndStillWritesItAtOnce) {
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("t").value();
  const std::string value(std::size_t{1} << 20, 'v');
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(std::to_string(100 + i));
  std::vector<StorageWrite> writes;
  for (const std::string& key : keys) {
    writes.push_back({.table = table, .key = key, .value = value});
  }
  Sql("ALTER TABLE t ADD CHECK (id <> '119')");

  Result<void> refused = storage->Flush(writes, true);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(Sql("SELECT COUNT(*) FROM t"), "0\n");
  writes.pop_back();
  Result<void> flushed = storage->Flush(writes, true);

  ASSERT_TRUE(flushed.ok()) << flushed.error().message();
  EXPECT_EQ(Sql("SELECT COUNT(*), SUM(LENGTH(value)) FROM t"), "19\t19922944\n");
}

TEST_F(MariaDbStorageTest, GuessesTheSizeOfALargeTable) {
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("t").value();
  Sql("INSERT INTO t SELECT LPAD(seq, 8, '0'), seq FROM seq_1_to_50000");
  Sql("ANALYZE TABLE t");

  EXPECT_GE(table->SizeApprox().value(), 25000U);
  EXPECT_LE(table->SizeApprox().value(), 100000U);
}

// ---- What goes wrong

TEST_F(MariaDbStorageTest, SaysWhyItCannotConnect) {
  auto fail = [](const std::string& url) {
    Result<std::unique_ptr<Storage>> opened = OpenMariaDbStorage({.url = url});
    EXPECT_FALSE(opened.ok());
    return opened.error();
  };
  std::string nowhere = url_;
  nowhere.replace(nowhere.rfind('/') + 1, std::string::npos, "nowhere");

  EXPECT_EQ(fail(nowhere).code(), ErrorCode::kUnavailable);
  EXPECT_NE(fail(nowhere).message().find("nowhere"), std::string::npos);
  EXPECT_EQ(fail("mysql://u:secret@127.0.0.1:1/d").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fail("mysql://u:secret@127.0.0.1:1/d").message().find("secret"), std::string::npos);
  EXPECT_EQ(fail("mysql://u@127.0.0.1/d?sslMode=maybe").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(fail("postgresql://u@h/d").code(), ErrorCode::kInvalidArgument);
}

TEST_F(MariaDbStorageTest, TakesTheNextHostIfTheFirstDoesNotAnswer) {
  std::string url = url_;
  url.insert(url.find('@') + 1, "127.0.0.1:1,");

  Result<std::unique_ptr<Storage>> opened = OpenMariaDbStorage({.url = url});

  ASSERT_TRUE(opened.ok()) << opened.error().message();
}

TEST_F(MariaDbStorageTest, CancelsAStatementThatTakesTooLong) {
  Result<std::unique_ptr<Storage>> opened =
      OpenMariaDbStorage({.url = url_, .statement_timeout = std::chrono::milliseconds(300)});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  StorageTable* table = opened.value()->OpenTable("t").value();
  Sql("CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW SET @slept = SLEEP(60)");
  const StorageWrite write = {.table = table, .key = "k", .value = "v"};

  Result<void> flushed = opened.value()->Flush({&write, 1}, true);

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), ErrorCode::kUnavailable) << flushed.error().message();
}

// ---- A table that somebody has locked

TEST_F(MariaDbStorageTest, ALockedTableLeavesConnectionsToOthers) {
  const std::unique_ptr<Storage> storage = Open();
  ExpectOtherTablesToGoOn(
      *storage, [&] { Sql("LOCK TABLES locked WRITE; SELECT SLEEP(8)"); },
      [&] {
        return std::stoi(
            Sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST"
                " WHERE STATE = 'Waiting for table metadata lock'"));
      });
}

// ---- Copies of the database

class MariaDbCopiesTest : public MariaDbStorageTest {
 protected:
  // It is not patient with a database that is frozen.
  Result<std::unique_ptr<Storage>> OpenBriefly() {
    MariaDbOptions options = PatientOptions<MariaDbOptions>(url_);
    options.retry_for = std::chrono::seconds(1);
    options.renew_timeout = std::chrono::seconds(1);
    return OpenMariaDbStorage(options);
  }
  std::unique_ptr<DatabaseHome> Home() {
    Result<std::unique_ptr<DatabaseHome>> home =
        OpenMariaDbHome(PatientOptions<MariaDbOptions>(url_));
    EXPECT_TRUE(home.ok()) << home.error().message();
    return std::move(home).value();
  }
};

TEST_F(MariaDbCopiesTest, AFrozenCopyIsAPause) {
  ExpectAFrozenCopyToPause([this] { return OpenBriefly(); }, *Home());
}

TEST_F(MariaDbCopiesTest, AnotherCopyIsNeitherReadNorWritten) {
  ExpectAnotherCopyToBeRefused(
      [this] { return OpenBriefly(); }, *Home(),
      [this] {
        Sql("UPDATE zeze_fence SET frozen = 0");
        Sql("UPDATE zeze_home SET home = 'another copy', frozen = 0, marker = ''");
      });
}

}  // namespace
}  // namespace zeze
