#include "zeze/storage/sql/connection_pool.h"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

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
  auto lease = pool.Take().value();

  EXPECT_EQ(pool.Take().error().code(), ErrorCode::kUnavailable);
}

TEST_F(ConnectionPoolTest, WaitsForOneThatIsGivenBack) {
  Pool pool = Make(1, std::chrono::minutes(1));
  auto lease = std::make_optional(pool.Take().value());
  std::thread other([&] { EXPECT_EQ(pool.Take().value()->number, 1); });

  lease.reset();

  other.join();
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
