#include "zeze/storage/postgres/postgres_storage.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "zeze/storage/sql/copies_for_test.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fence_conformance.h"
#include "zeze/storage/testing/locked_table.h"

namespace zeze {
namespace {

class PostgresHome final : public StorageHome {
 public:
  ~PostgresHome() override { SharedPostgresServer().DropDatabase(url_); }
  Result<std::unique_ptr<Storage>> Open() override {
    return OpenPostgresStorage(PatientOptions<PostgresOptions>(url_));
  }

 private:
  const std::string url_ = SharedPostgresServer().NewDatabase();
};

INSTANTIATE_TEST_SUITE_P(Postgres, StorageConformanceTest,
                         testing::Values(DriverUnderTest{
                             "postgres", [] { return std::make_unique<PostgresHome>(); }}),
                         DriverUnderTestName);

class FencedPostgresHome final : public FencedHome {
 public:
  ~FencedPostgresHome() override { SharedPostgresServer().DropDatabase(url_); }

  Result<std::unique_ptr<Storage>> Open(int proxy_port, Patience patience) override {
    std::string url = url_;
    if (proxy_port != 0) url.replace(PortAt(), port_text().size(), std::to_string(proxy_port));
    PostgresOptions options = PatientOptions<PostgresOptions>(url);
    if (patience == Patience::kShort) {
      options.lock_timeout = std::chrono::milliseconds(200);
      options.retry_for = std::chrono::milliseconds(800);
    }
    return OpenPostgresStorage(options);
  }

  int port() const override { return std::stoi(port_text()); }
  std::string flush_begin() const override { return "BEGIN"; }

  bool FlushIsOpen(std::int32_t server_id) override {
    return SharedPostgresServer()
        .RunSql(url_, fmt::format("SELECT lane FROM zeze_fence WHERE server_id = {} AND lane = 0"
                                  " FOR UPDATE SKIP LOCKED",
                                  server_id))
        .empty();
  }

  void LoseLastFlush(std::int32_t server_id) override {
    SharedPostgresServer().RunSql(
        url_, fmt::format("UPDATE zeze_fence SET flush_seq = flush_seq - 1 WHERE server_id = {}",
                          server_id));
  }

  bool BecomeOld() override {
    SharedPostgresServer().RunSql(
        url_,
        "DROP TABLE zeze_lease; DROP TABLE zeze_cluster; DROP TABLE zeze_table;"
        "ALTER TABLE zeze_fence DROP COLUMN secret; ALTER TABLE zeze_global DROP COLUMN secret;"
        "ALTER TABLE zeze_fence DROP COLUMN incarnation; DROP TABLE zeze_wanted, zeze_yield;"
        "ALTER TABLE zeze_fenced DROP COLUMN renew_seq");
    return true;
  }

  bool Restart() override {
    SharedPostgresServer().Restart();
    return true;
  }

 private:
  // "postgresql://zeze@127.0.0.1:5432/t1"
  std::size_t PortAt() const { return url_.find(':', url_.find('@')) + 1; }
  std::string port_text() const { return url_.substr(PortAt(), url_.rfind('/') - PortAt()); }

  const std::string url_ = SharedPostgresServer().NewDatabase();
};

INSTANTIATE_TEST_SUITE_P(Postgres, FenceConformanceTest,
                         testing::Values(FencedDriver{
                             "postgres", [] { return std::make_unique<FencedPostgresHome>(); }}),
                         FencedDriverName);

class PostgresStorageTest : public testing::Test {
 protected:
  ~PostgresStorageTest() override { SharedPostgresServer().DropDatabase(url_); }

  std::unique_ptr<Storage> Open() {
    Result<std::unique_ptr<Storage>> opened =
        OpenPostgresStorage(PatientOptions<PostgresOptions>(url_));
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }
  std::string Sql(const std::string& sql) { return SharedPostgresServer().RunSql(url_, sql); }

  const std::string url_ = SharedPostgresServer().NewDatabase();
};

// ---- The Java peer's tables

TEST_F(PostgresStorageTest, SharesItsTablesWithTheJavaPeer) {
  Sql("CREATE TABLE demo_Game_tRole (id bytea NOT NULL PRIMARY KEY, value bytea NOT NULL)");
  Sql("INSERT INTO demo_Game_tRole VALUES ('\\x00ff', '\\x01')");
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("demo_Game_tRole").value();

  std::string value;
  EXPECT_TRUE(table->Find(std::string_view("\0\xff", 2), value).value());
  EXPECT_EQ(value, "\x01");
  const StorageWrite write = {.table = table, .key = "k", .value = "v"};
  ASSERT_TRUE(storage->Flush({&write, 1}, true).ok());

  EXPECT_EQ(Sql("SELECT encode(value, 'escape') FROM demo_Game_tRole WHERE id = 'k'"), "v\n");
  EXPECT_EQ(storage->ListTables().value(), std::vector<std::string>{"demo_Game_tRole"});
}

TEST_F(PostgresStorageTest, SharesVersionedDataWithTheJavaPeer) {
  Sql("CREATE TABLE _ZezeDataWithVersion_ (id bytea NOT NULL PRIMARY KEY, data bytea NOT NULL, "
      "version bigint NOT NULL)");
  Sql("INSERT INTO _ZezeDataWithVersion_ VALUES ('a', 'old', 4)");
  const std::unique_ptr<Storage> storage = Open();

  EXPECT_EQ(storage->LoadVersioned("a").value(), (VersionedData{"old", 4}));
  EXPECT_EQ(storage->SaveVersioned("a", "new", 4).value(), 5);

  EXPECT_EQ(Sql("SELECT encode(data, 'escape'), version FROM _ZezeDataWithVersion_"), "new|5\n");
}

TEST_F(PostgresStorageTest, ChangesWhatTheJavaPeerHasSavedOnce) {
  const std::unique_ptr<Storage> storage = Open();
  Sql("INSERT INTO _ZezeDataWithVersion_ VALUES ('a', 'old', 0)");

  EXPECT_EQ(storage->LoadVersioned("a").value(), (VersionedData{"old", 0}));
  EXPECT_EQ(storage->SaveVersioned("a", "new", 0).value(), 1);
  EXPECT_EQ(storage->SaveVersioned("a", "newer", 0).error().code(), ErrorCode::kConflict);
  EXPECT_EQ(Sql("SELECT encode(data, 'escape'), version FROM _ZezeDataWithVersion_"), "new|1\n");
}

// It compares nothing at its start. Its rows lack what must be there.
TEST_F(PostgresStorageTest, AProcessOfAnEarlierBuildCannotStartBeside) {
  const std::unique_ptr<Storage> storage = Open();

  EXPECT_EQ(Sql("SELECT count(*) FROM information_schema.columns WHERE column_name = 'secret'"
                " AND is_nullable = 'NO' AND column_default IS NULL"
                " AND table_name IN ('zeze_fence', 'zeze_global')"),
            "2\n");
}

TEST_F(PostgresStorageTest, RefusesASecondNameThatFoldsToTheSame) {
  const std::unique_ptr<Storage> storage = Open();
  ASSERT_TRUE(storage->OpenTable("tRole").ok());

  Result<StorageTable*> second = storage->OpenTable("trole");

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(second.error().message().find("'tRole'"), std::string::npos);
  EXPECT_EQ(storage->DropTable("trole").error().code(), ErrorCode::kNotFound);
}

TEST_F(PostgresStorageTest, LeavesOtherTablesAlone) {
  Sql("CREATE TABLE accounts (name text)");
  const std::unique_ptr<Storage> storage = Open();

  EXPECT_EQ(storage->OpenTable("accounts").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(storage->OpenTable("zeze_fence").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(storage->DropTable("accounts").error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(storage->OpenTable("t").ok());
  EXPECT_EQ(storage->RenameTable("t", "accounts").error().code(), ErrorCode::kConflict);
  EXPECT_EQ(storage->ListTables().value(), std::vector<std::string>{"t"});
}

// ---- Sizes

TEST_F(PostgresStorageTest, SplitsALargeFlushAndStillWritesItAtOnce) {
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("t").value();
  const std::string value(std::size_t{1} << 20, 'v');
  std::vector<std::string> keys;
  for (int i = 0; i < 80; ++i) keys.push_back(std::to_string(100 + i));
  std::vector<StorageWrite> writes;
  for (const std::string& key : keys) {
    writes.push_back({.table = table, .key = key, .value = value});
  }

  Result<void> flushed = storage->Flush(writes, true);

  ASSERT_TRUE(flushed.ok()) << flushed.error().message();
  EXPECT_EQ(Sql("SELECT count(*), sum(length(value)), count(DISTINCT xmin::text) FROM t"),
            "80|83886080|1\n");
  EXPECT_EQ(table->Walk({}, [](std::string_view, std::string_view) { return true; }).value(), 80U);
}

TEST_F(PostgresStorageTest, GuessesTheSizeOfALargeTable) {
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* table = storage->OpenTable("t").value();
  Sql("INSERT INTO t SELECT int8send(n), int8send(n) FROM generate_series(1, 50000) n");
  Sql("ANALYZE t");

  EXPECT_GE(table->SizeApprox().value(), 25000U);
  EXPECT_LE(table->SizeApprox().value(), 100000U);
}

// ---- What goes wrong

TEST_F(PostgresStorageTest, SaysWhyItCannotConnect) {
  auto fail = [](const std::string& url) {
    Result<std::unique_ptr<Storage>> opened = OpenPostgresStorage({.url = url});
    EXPECT_FALSE(opened.ok());
    return opened.error();
  };
  std::string nowhere = url_;
  nowhere.replace(nowhere.rfind('/') + 1, std::string::npos, "nowhere?sslmode=disable");

  EXPECT_EQ(fail(nowhere).code(), ErrorCode::kUnavailable);
  EXPECT_NE(fail(nowhere).message().find("nowhere"), std::string::npos);
  EXPECT_EQ(fail("postgresql://u:secret@127.0.0.1:1/d").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fail("postgresql://u:secret@127.0.0.1:1/d").message().find("secret"),
            std::string::npos);
  EXPECT_EQ(fail("mysql://u@h/d").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(fail("nonsense").code(), ErrorCode::kInvalidArgument);
}

TEST_F(PostgresStorageTest, AFlushThatTheDatabaseRefusesWritesNothing) {
  const std::unique_ptr<Storage> storage = Open();
  StorageTable* a = storage->OpenTable("a").value();
  StorageTable* b = storage->OpenTable("b").value();
  Sql("ALTER TABLE b ADD CHECK (length(value) < 3)");
  const StorageWrite writes[] = {{.table = a, .key = "k", .value = "v"},
                                 {.table = b, .key = "k", .value = "long"}};

  Result<void> flushed = storage->Flush(writes, true);

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(Sql("SELECT count(*) FROM a"), "0\n");
  const StorageWrite well[] = {writes[0]};
  EXPECT_TRUE(storage->Flush(well, true).ok());
}

TEST_F(PostgresStorageTest, CancelsAStatementThatTakesTooLong) {
  Result<std::unique_ptr<Storage>> opened =
      OpenPostgresStorage({.url = url_, .statement_timeout = std::chrono::milliseconds(200)});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  StorageTable* table = opened.value()->OpenTable("t").value();
  Sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'");
  Sql("CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION slow()");
  const StorageWrite write = {.table = table, .key = "k", .value = "v"};

  Result<void> flushed = opened.value()->Flush({&write, 1}, true);

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(flushed.error().message().find("timeout"), std::string::npos)
      << flushed.error().message();
}

// ---- A table that somebody has locked

TEST_F(PostgresStorageTest, ALockedTableLeavesConnectionsToOthers) {
  const std::unique_ptr<Storage> storage = Open();
  ExpectOtherTablesToGoOn(
      *storage, [&] { Sql("LOCK TABLE locked; SELECT pg_sleep(8)"); },
      [&] {
        return std::stoi(
            Sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"));
      });
}

// ---- Copies of the database

class PostgresCopiesTest : public PostgresStorageTest {
 protected:
  // It is not patient with a database that is frozen.
  Result<std::unique_ptr<Storage>> OpenBriefly() {
    PostgresOptions options = PatientOptions<PostgresOptions>(url_);
    options.retry_for = std::chrono::seconds(1);
    options.renew_timeout = std::chrono::seconds(1);
    return OpenPostgresStorage(options);
  }
  std::unique_ptr<DatabaseHome> Home() {
    Result<std::unique_ptr<DatabaseHome>> home =
        OpenPostgresHome(PatientOptions<PostgresOptions>(url_));
    EXPECT_TRUE(home.ok()) << home.error().message();
    return std::move(home).value();
  }
};

TEST_F(PostgresCopiesTest, AFrozenCopyIsAPause) {
  ExpectAFrozenCopyToPause([this] { return OpenBriefly(); }, *Home());
}

TEST_F(PostgresCopiesTest, AnotherCopyIsNeitherReadNorWritten) {
  ExpectAnotherCopyToBeRefused(
      [this] { return OpenBriefly(); }, *Home(),
      [this] {
        Sql("UPDATE zeze_fence SET frozen = 0");
        Sql("UPDATE zeze_home SET home = 'another copy', frozen = 0, marker = ''");
      });
}

}  // namespace
}  // namespace zeze
