#include "zeze/storage/sql/connection_pool.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"

namespace zeze {
namespace {

struct FakeConnection {
  explicit FakeConnection(int connection_number) : number(connection_number) {}
  bool IsOpen() const { return open; }

  const int number;
  bool open = true;
};

class ConnectionPoolTest : public testing::Test {
 protected:
  using Pool = ConnectionPool<FakeConnection>;

  Pool Make(std::size_t connections_max, std::chrono::nanoseconds wait_max) {
    return Pool(
        [this]() -> Result<std::unique_ptr<FakeConnection>> {
          if (refusing_) return Error(ErrorCode::kUnavailable, "refused");
          return std::make_unique<FakeConnection>(++connected_);
        },
        connections_max, wait_max);
  }

  int connected_ = 0;
  bool refusing_ = false;
};

TEST_F(ConnectionPoolTest, UsesAConnectionAgain) {
  Pool pool = Make(2, std::chrono::seconds(1));

  EXPECT_EQ(pool.Take().value()->number, 1);
  EXPECT_EQ(pool.Take().value()->number, 1);
}

TEST_F(ConnectionPoolTest, ThrowsAllIdleOnesAwayWhenOneIsGone) {
  Pool pool = Make(2, std::chrono::seconds(1));
  FakeConnection* given_back_last = nullptr;
  {
    auto first = pool.Take().value();
    auto second = pool.Take().value();
    given_back_last = &*first;  // In the reverse order of taking.
  }
  given_back_last->open = false;

  EXPECT_EQ(pool.Take().value()->number, 3);
  EXPECT_EQ(pool.Take().value()->number, 3);
}

TEST_F(ConnectionPoolTest, DoesNotTakeBackOneThatIsGone) {
  Pool pool = Make(2, std::chrono::seconds(1));
  pool.Take().value()->open = false;

  EXPECT_EQ(pool.Take().value()->number, 2);
}

TEST_F(ConnectionPoolTest, LendsNoMoreThanAllowed) {
  Pool pool = Make(1, std::chrono::milliseconds(1));
  const int tables[2] = {};
  auto lease = pool.Take(&tables[0]).value();

  EXPECT_EQ(pool.Take(&tables[0]).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(pool.Take(&tables[1]).error().code(), ErrorCode::kUnavailable);
  auto framework = pool.Take().value();
  auto more = pool.Take().value();
  EXPECT_EQ(pool.Take().error().code(), ErrorCode::kUnavailable);
}

TEST_F(ConnectionPoolTest, WaitsForOneThatIsGivenBack) {
  Pool pool = Make(1, std::chrono::minutes(1));
  const int table = 0;
  auto lease = std::make_optional(pool.Take(&table).value());
  std::thread other([&] { EXPECT_EQ(pool.Take(&table).value()->number, 1); });

  lease.reset();

  other.join();
}

TEST_F(ConnectionPoolTest, OneTableLeavesConnectionsToOthers) {
  Pool pool = Make(8, std::chrono::milliseconds(1));
  const int locked = 0;
  const int other = 0;
  std::vector<Pool::Lease> leases;
  for (int i = 0; i < 6; ++i) leases.push_back(pool.Take(&locked).value());

  EXPECT_NE(pool.Take(&locked).error().message().find("one table"), std::string::npos);
  leases.push_back(pool.Take(&other).value());
  EXPECT_FALSE(pool.Take(&other).ok());  // It has one: the last is for a table that has none.
  const int third = 0;
  EXPECT_TRUE(pool.Take(&third).ok());
}

TEST_F(ConnectionPoolTest, TablesCannotTakeTheConnectionsOfTheFramework) {
  Pool pool = Make(2, std::chrono::milliseconds(1));
  const int tables[3] = {};
  auto first = pool.Take(&tables[0]).value();
  auto second = pool.Take(&tables[1]).value();
  EXPECT_FALSE(pool.Take(&tables[2]).ok());

  auto framework = pool.Take().value();
  EXPECT_TRUE(pool.Take().ok());
}

TEST_F(ConnectionPoolTest, AConnectionGoesToTheFirstWaiterWhoMayHaveIt) {
  Pool pool = Make(2, std::chrono::minutes(1));
  const int locked = 0;
  const int other = 0;
  auto stuck = std::make_optional(pool.Take(&locked).value());
  auto second = std::make_optional(pool.Take(&other).value());
  std::thread waiting_for_the_locked_table([&] { EXPECT_TRUE(pool.Take(&locked).ok()); });
  std::thread waiting_for_the_other([&] { EXPECT_TRUE(pool.Take(&other).ok()); });

  second.reset();
  waiting_for_the_other.join();

  stuck.reset();
  waiting_for_the_locked_table.join();
}

TEST_F(ConnectionPoolTest, AFailureToConnectTakesNoPlace) {
  Pool pool = Make(1, std::chrono::milliseconds(1));
  refusing_ = true;
  EXPECT_EQ(pool.Take().error().message(), "refused");
  refusing_ = false;

  EXPECT_TRUE(pool.Take().ok());
}

}  // namespace
}  // namespace zeze
