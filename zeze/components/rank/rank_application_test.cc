// Boards in an application: its values and orders, updates that wait or are sent to other servers.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/bean/codec.h"
#include "zeze/components/rank/rank.h"
#include "zeze/components/rank/testing/shown_entries.h"

namespace zeze {
namespace {

using std::chrono::seconds;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::RolesOf;
using testing::ScoresOf;

struct BWins {
  static constexpr std::int64_t kTypeId = 77;
  static constexpr std::string_view kFullName = "test.BWins";
  std::int32_t wins = 0;
  std::string title = {};

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "wins"}, &BWins::wins);
    visit(Field{2, "title"}, &BWins::title);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
  bool operator==(const BWins& other) const { return EqualFields(*this, other); }
  std::string ToString() const { return FormatFields(*this); }
  bool HasNegative() const { return HasNegativeFields(*this); }
};

using WinsRank = Rank<BValueLong, BWins>;
constexpr std::int32_t kArena = 9;

class RecordingRouter final : public RankRouter {
 public:
  bool OwnsGroup(std::uint32_t group, std::uint32_t /*level*/) override { return group % 2 == 0; }
  void Send(std::uint32_t group, std::uint32_t level, std::string parameters,
            Completion done) override {
    EXPECT_LT(group, level);
    sent.emplace_back(group, std::move(parameters));
    done(result_code::kSuccess);
  }
  void Deliver(std::uint32_t group, std::uint32_t level, std::string updates,
               const Delivered& /*done*/) override {
    EXPECT_LT(group, level);
    delivered.set_value(std::move(updates));
  }
  std::vector<std::pair<std::uint32_t, std::string>> sent;
  std::promise<std::string> delivered;  // Once.
};

class RankApplicationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rank.Define(kArena, {.shown_count = 3, .better = [](const auto& a, const auto& b) {
                           return a.template As<BWins>()->wins > b.template As<BWins>()->wins;
                         }});
    auto opened = Application::Open(
        "rank",
        {.storage = {.url = "memory:"}, .worker_threads = 4, .checkpoint_period = seconds(0)});
    ASSERT_TRUE(opened.ok());
    application = std::move(opened).value();
    application->AddModule(rank);
    const auto started = application->Start();
    ASSERT_TRUE(started.ok()) << started.error().message();
  }
  void TearDown() override { ASSERT_TRUE(application->Stop().ok()); }

  std::int64_t UpdateAndWait(const RankBoard& board, std::int64_t role,
                             const WinsRank::Value& value) {
    std::promise<std::int64_t> code;
    rank.UpdateAsync(board, role, value, [&](std::int64_t result) { code.set_value(result); });
    return code.get_future().get();
  }

  RecordingRouter router;
  WinsRank rank{{.concurrent_level = 4, .router = &router}};
  std::unique_ptr<Application> application;
};

std::int64_t RoleOfGroup(const WinsRank& rank, std::uint32_t group) {
  std::int64_t role = 1;
  while (rank.GroupOf(RoutingHash(role)) != group) ++role;
  return role;
}

TEST_F(RankApplicationTest, ValuesAndOrdersAreTheApplications) {
  const RankBoard board = RankBoard::Total(kArena);
  application->Call("update", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(rank.Update(tx, board, 1, BWins{.wins = 5, .title = "five"}).ok());
    EXPECT_TRUE(rank.Update(tx, board, 2, BWins{.wins = 9, .title = "nine"}).ok());
    EXPECT_TRUE(rank.Update(tx, board, 1, BWins{.wins = 5, .title = "still five"}).ok());
    return 0;
  });
  const auto view = rank.Top(board).value();
  EXPECT_THAT(RolesOf(view), ElementsAre(2, 1));
  EXPECT_EQ(view->Shown()[1].value.As<BWins>()->title, "still five");
}

// 不需要等待排行榜数据的更新。特殊情况下，可以等待。
TEST_F(RankApplicationTest, SeedAnUpdateMayBeWaitedFor) {
  const std::int64_t role = RoleOfGroup(rank, 0);
  EXPECT_EQ(UpdateAndWait(RankBoard::Total(1), role, RankLong(5)), 0);
  EXPECT_THAT(RolesOf(rank.Top(RankBoard::Total(1)).value()), ElementsAre(role));
  EXPECT_TRUE(router.sent.empty());
}

// 决定是否转发请求给相应的服务器或者本地NewProcedure.
TEST_F(RankApplicationTest, SeedAnUpdateOfAnotherServersGroupIsSentThere) {
  const std::int64_t role = RoleOfGroup(rank, 3);
  EXPECT_EQ(UpdateAndWait(RankBoard::Total(1), role, RankLong(5)), 0);
  EXPECT_THAT(RolesOf(rank.Read(RankBoard::Total(1)).value()), IsEmpty());
  ASSERT_EQ(router.sent.size(), 1U);
  EXPECT_EQ(router.sent[0].first, 3U);

  // What the owner does with it.
  application->Call("redirected", [&](Transaction& tx) {
    return rank.UpdateEncoded(tx, router.sent[0].first, router.sent[0].second);
  });
  EXPECT_THAT(RolesOf(rank.Read(RankBoard::Total(1)).value()), ElementsAre(role));
}

// The peer's parameters: the key's bytes, the role, the value as type id and bytes.
TEST_F(RankApplicationTest, TheParametersOfAnUpdateAreThePeers) {
  const RankKey key{.RankType = 1, .ConcurrentId = 3, .TimeType = 0};
  ByteWriter expected;
  key.Encode(expected);
  expected.WriteLong(7);
  expected.WriteLong(4031590576404079301);
  RankLong(30).Encode(expected);
  EXPECT_EQ(WinsRank::EncodeUpdate(key, 7, RankLong(30)), expected.view());
}

TEST_F(RankApplicationTest, ParametersThatCannotBeReadAreRefused) {
  const std::string good = WinsRank::EncodeUpdate(RankBoard::Total(1).Key(0), 7, RankLong(30));
  const auto code = [&](std::string_view bytes) {
    return application->Call("redirected",
                             [&](Transaction& tx) { return rank.UpdateEncoded(tx, 0, bytes); });
  };
  EXPECT_EQ(code(good), 0);
  const std::int64_t bad = ModuleErrorCode(11015, kRankBadParameters);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(code(std::string_view(good).substr(0, length)), bad);
  }
  ByteWriter unknown;
  RankBoard::Total(1).Key(0).Encode(unknown);
  unknown.WriteLong(7);
  unknown.WriteLong(12345);
  unknown.WriteEnd();
  EXPECT_EQ(code(unknown.view()), bad);
}

// 排行版的数据修改一般在新的事务中执行。特殊情况下，并且少量的话，可以嵌套到原来事务中。
TEST_F(RankApplicationTest, SeedANestedUpdateIsPartOfTheTransaction) {
  application->Call("rolls back", [&](Transaction& tx) -> std::int64_t {
    EXPECT_TRUE(rank.Update(tx, RankBoard::Total(1), 1, RankLong(5)).ok());
    EXPECT_EQ(tx.Call("inner",
                      [&](Transaction& inner) -> std::int64_t {
                        EXPECT_TRUE(rank.Update(inner, RankBoard::Total(1), 2, RankLong(5)).ok());
                        return 0;
                      }),
              0);
    return 1;
  });
  EXPECT_THAT(RolesOf(rank.Read(RankBoard::Total(1)).value()), IsEmpty());
}

TEST_F(RankApplicationTest, AnUpdateAfterCommitNeedsTheCommit) {
  const std::int64_t role = RoleOfGroup(rank, 3);
  for (const std::int64_t code : {1, 0}) {
    application->Call("maybe", [&](Transaction& tx) -> std::int64_t {
      rank.UpdateAfterCommit(tx, RankBoard::Total(1), role, RankLong(code == 0 ? 5 : 6));
      return code;
    });
  }
  RankOutbox::Delivery delivery;
  ASSERT_TRUE(RankOutbox::DecodeDelivery(router.delivered.get_future().get(), delivery));
  ASSERT_EQ(delivery.updates.size(), 1U);
  EXPECT_EQ(delivery.updates[0].role, role);
  ByteWriter five;
  five.WriteLong(BValueLong::kTypeId);
  RankLong(5).Encode(five);
  EXPECT_EQ(delivery.updates[0].value, five.view());
  EXPECT_TRUE(router.sent.empty());
}

// The level of the server that asks counts, and that of the board: an owner that is set to another
// one harms nobody.
TEST_F(RankApplicationTest, AnOwnerWithAnotherLevelDoesTheUpdatesOfOthers) {
  const RankBoard board = RankBoard::Total(1);
  const auto update = [&](std::uint32_t group, std::uint32_t level) {
    ByteWriter out;
    out.WriteRaw(WinsRank::EncodeUpdate(board.Key(group), 7, RankLong(30)));
    out.WriteUint(level);
    return application->Call(
        "redirected", [&](Transaction& tx) { return rank.UpdateEncoded(tx, group, out.view()); });
  };
  EXPECT_EQ(update(13, 16), 0);  // This server is set to 4.
  EXPECT_TRUE(rank.table().ReadCopy(board.Key(13)).value().has_value());
  EXPECT_EQ(update(5, 8), ModuleErrorCode(11015, kRankWrongLevel));
  EXPECT_FALSE(rank.table().ReadCopy(board.Key(5)).value().has_value());
}

// 对于每一个分组，是不需要并发的: updates of one group run one by one, in order.
TEST_F(RankApplicationTest, SeedUpdatesOfOneGroupRunInOrder) {
  const std::int64_t role = RoleOfGroup(rank, 2);
  std::promise<void> all;
  std::atomic<int> left = 500;
  for (int i = 1; i <= 500; ++i) {
    rank.UpdateAsync(RankBoard::Total(1), role, RankLong(i), [&](std::int64_t code) {
      EXPECT_EQ(code, 0);
      if (--left == 0) all.set_value();
    });
  }
  all.get_future().wait();
  EXPECT_THAT(ScoresOf(rank.Read(RankBoard::Total(1)).value()), ElementsAre(500));
}

}  // namespace
}  // namespace zeze
