// More and larger commits than one flush takes, on every database: everything that was acknowledged
// as saved is there after SIGKILL, no commit is there in part, a commit too large for the storage
// is refused, and memory stays bounded.
//
// ZEZE_LARGE_COMMITS=60000x20000,1000000x2000 gives other numbers and sizes.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fault/large_tables.h"
#include "zeze/base/clock.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/engine.h"

namespace zeze::fault {
namespace {

// Where a database is, and what it needs to be there.
class Place {
 public:
  explicit Place(const std::string& kind) {
    if (kind == "RocksDb") {
      directory_ = std::make_unique<TempDirectory>();
      address_ = directory_->File("db");
      return;
    }
    server_ = kind == "Postgres"  ? &SharedPostgresServer()
              : kind == "MariaDb" ? &SharedMariaDbServer()
                                  : &SharedGaleraCluster();
    address_ = server_->NewDatabase();
  }
  ~Place() {
    if (server_ != nullptr) server_->DropDatabase(address_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const std::string& address() const { return address_; }

 private:
  std::unique_ptr<TempDirectory> directory_;
  DatabaseServer* server_ = nullptr;
  std::string address_;
};

struct Load {
  std::int64_t count = 0;
  std::size_t bytes = 0;
};

std::vector<Load> Loads() {
  const char* given = std::getenv("ZEZE_LARGE_COMMITS");  // NOLINT(concurrency-mt-unsafe)
  std::istringstream text(given != nullptr ? given : "3000x20000,30000x2000");
  std::vector<Load> loads;
  for (std::string one; std::getline(text, one, ',');) {
    const std::size_t x = one.find('x');
    loads.push_back({std::stol(one.substr(0, x)), std::stoul(one.substr(x + 1))});
  }
  return loads;
}

void Verify(const std::string& place, const Load& load) {
  Result<std::unique_ptr<Storage>> storage = OpenPlace(place);
  ASSERT_TRUE(storage.ok()) << storage.error().message();
  LargeTables tables;
  Engine engine({.storage = storage.value().get(), .checkpoint_period = std::chrono::seconds(0)});
  ASSERT_TRUE(tables.AddTo(engine, false).ok());
  ASSERT_TRUE(engine.Start().ok());
  std::vector<bool> documents;
  std::vector<bool> seals;
  const auto note = [](std::vector<bool>& rows, std::int64_t key) {
    EXPECT_GE(key, 0) << "what was refused is there";
    if (key < 0) return;
    if (rows.size() <= static_cast<std::size_t>(key))
      rows.resize(static_cast<std::size_t>(key) + 1);
    rows[static_cast<std::size_t>(key)] = true;
  };
  bool intact = true;
  EXPECT_TRUE(tables.documents
                  .WalkStorage([&](std::int64_t key, const BDocument& document) {
                    note(documents, key);
                    intact = intact && document.parts.size() == 1 &&
                             document.parts[0].bytes == DocumentText(key, load.bytes);
                    return true;
                  })
                  .ok());
  EXPECT_TRUE(tables.seals
                  .WalkStorage([&](std::int64_t key, const BSeal& seal) {
                    note(seals, key);
                    intact = intact && seal.bytes == static_cast<std::int64_t>(load.bytes);
                    return true;
                  })
                  .ok());
  EXPECT_TRUE(intact);
  EXPECT_TRUE(documents == seals) << "a commit is there in part";
  for (std::int64_t key = 0; key < load.count; ++key) {
    ASSERT_TRUE(static_cast<std::size_t>(key) < documents.size() &&
                documents[static_cast<std::size_t>(key)])
        << key << " was saved and is gone";
  }
  ASSERT_TRUE(engine.Stop().ok());
}

class LargeCommitsTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LargeCommitsTest, AllAreThereAfterAKillOnceTheyWereSaved) {
  for (const Load& load : Loads()) {
    SCOPED_TRACE(load.bytes);
    const Place place(GetParam().first);
    ServerProcess workload({.command = {ZEZE_LARGE_WORKLOAD, place.address(), GetParam().second,
                                        std::to_string(load.count), std::to_string(load.bytes)}});
    const bool durable = workload.AwaitLine("durable ", std::chrono::minutes(20));
    SystemClock().SleepFor(std::chrono::milliseconds(200));  // It goes on.
    workload.Kill();
    std::cout << GetParam().first << " " << GetParam().second << " " << load.count << " x "
              << load.bytes << ":\n"
              << workload.said();
    ASSERT_TRUE(durable);
    EXPECT_NE(workload.said().find("300 MB: -1"), std::string::npos);
    EXPECT_NE(workload.said().find("record -1 of table fault_documents would be 3145728"),
              std::string::npos);
    EXPECT_NE(workload.said().find(" 0 failed"), std::string::npos);
    Verify(place.address(), load);
  }
}

std::string Name(const ::testing::TestParamInfo<std::pair<const char*, const char*>>& place) {
  return std::string(place.param.first) + "_" + place.param.second;
}

INSTANTIATE_TEST_SUITE_P(Places, LargeCommitsTest,
                         ::testing::Values(std::pair("RocksDb", "whole"),
                                           std::pair("RocksDb", "groups"),
                                           std::pair("Postgres", "whole"),
                                           std::pair("MariaDb", "whole"),
                                           std::pair("Galera", "whole")),
                         Name);

}  // namespace
}  // namespace zeze::fault
