// Updates after the commit reach their board, whatever happens on the way.

#include "zeze/components/rank/rank_outbox.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/rank/rank.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/transaction.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience(60);
const RankBoard kBoard = RankBoard::Total(1);

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = SystemClock().Now() + kPatience;
  while (!condition()) {
    if (SystemClock().Now() > deadline) return false;
    SystemClock().SleepFor(milliseconds(1));
  }
  return true;
}

// Owns nothing, and keeps deliveries until the test says what becomes of them.
class HeldRouter final : public RankRouter {
 public:
  struct Held {
    std::string updates;
    Delivered done;
  };

  bool OwnsGroup(std::uint32_t /*group*/, std::uint32_t /*level*/) override { return false; }
  void Send(std::uint32_t /*group*/, std::uint32_t /*level*/, std::string /*parameters*/,
            Completion done) override {
    done(result_code::kNotImplement);
  }
  void Deliver(std::uint32_t /*group*/, std::uint32_t /*level*/, std::string updates,
               const Delivered& done) override {
    MutexLock lock(mutex_);
    held_.push_back({std::move(updates), done});
    changed_.NotifyAll();
  }

  std::optional<Held> Take() {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (held_.empty()) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return std::nullopt;
    }
    Held first = std::move(held_.front());
    held_.pop_front();
    return first;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<Held> held_ ZEZE_GUARDED_BY(mutex_);
};

struct Server {
  explicit Server(const std::string& directory,
                  const RankOptions& options = {.concurrent_level = 4})
      : rank(options),
        application(std::move(Application::Open("rank", {.storage = {.url = "rocksdb:" + directory},
                                                         .worker_threads = 4,
                                                         .liveness = {.period = {}}}))
                        .value()) {
    application->AddModule(rank);
    started = application->Start();
  }

  void Update(std::int64_t role, std::int64_t score) {
    EXPECT_EQ(application->Call("update",
                                [&](Transaction& tx) -> std::int64_t {
                                  rank.UpdateAfterCommit(tx, kBoard, role, RankLong(score));
                                  return 0;
                                }),
              0);
  }
  // What the board has, or -1.
  std::int64_t ScoreOf(std::int64_t role) {
    const auto view = rank.Read(kBoard).value();
    for (const auto& entry : view->Certain()) {
      if (entry.role == role) return entry.value.As<BValueLong>()->Value;
    }
    return -1;
  }
  bool AwaitIdle() const {
    return Eventually([&] { return rank.GetStatistics().waiting == 0; });
  }
  // As the owner of the group does it.
  RankOutbox::Receipt Run(const HeldRouter::Held& held) {
    RankOutbox::Receipt receipt;
    EXPECT_EQ(application->Call("deliver",
                                [&](Transaction& tx) -> std::int64_t {
                                  std::string result;
                                  const std::int64_t code = rank.Deliver(tx, held.updates, result);
                                  EXPECT_TRUE(RankOutbox::DecodeReceipt(result, receipt));
                                  return code;
                                }),
              0);
    return receipt;
  }
  void RunAndAnswer(const HeldRouter::Held& held) {
    held.done(0, RankOutbox::EncodeReceipt(Run(held)));
  }

  LongRank rank;
  std::unique_ptr<Application> application;
  Result<void> started;
};

TEST(RankOutboxTest, TheBoardHasWhatWasCommittedLast) {
  const TempDirectory directory;
  Server server(directory.path() + "/db");
  std::promise<void> committed;
  std::promise<void> other_committed;
  std::thread slow([&] {
    server.application->Call("slow", [&](Transaction& tx) -> std::int64_t {
      // After its commit it stands still, and another one comes in between.
      tx.AfterCommit([&] {
        committed.set_value();
        other_committed.get_future().wait();
      });
      server.rank.UpdateAfterCommit(tx, kBoard, 7, RankLong(10));
      return 0;
    });
  });
  committed.get_future().wait();
  server.Update(7, 20);
  ASSERT_TRUE(Eventually([&] { return server.ScoreOf(7) == 20; }));
  other_committed.set_value();
  slow.join();
  ASSERT_TRUE(server.AwaitIdle());
  EXPECT_EQ(server.ScoreOf(7), 20);
}

TEST(RankOutboxTest, AnOrderlyStopBringsWhatWaitsToTheBoard) {
  const TempDirectory directory;
  HeldRouter router;
  {
    Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
    for (std::int64_t role = 1; role <= 50; ++role) server.Update(role, role);
    ASSERT_TRUE(router.Take());  // Some are on their way, nobody answers.
    EXPECT_TRUE(server.application->Stop().ok());
    EXPECT_EQ(server.rank.GetStatistics().waiting, 0U);
  }
  Server server(directory.path() + "/db");
  for (std::int64_t role = 1; role <= 50; ++role) EXPECT_EQ(server.ScoreOf(role), role);
}

TEST(RankOutboxTest, AnUpdateThatComesMeanwhileIsSentAfterwards) {
  const TempDirectory directory;
  HeldRouter router;
  Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
  server.Update(7, 10);
  const auto first = router.Take();
  ASSERT_TRUE(first);
  server.Update(7, 5);
  server.RunAndAnswer(*first);
  const auto second = router.Take();
  ASSERT_TRUE(second);
  EXPECT_EQ(server.ScoreOf(7), 10);
  server.RunAndAnswer(*second);
  ASSERT_TRUE(server.AwaitIdle());
  EXPECT_EQ(server.ScoreOf(7), 5);
}

TEST(RankOutboxTest, ADeliveryWithoutAnAnswerIsDoneHereAndRefusedLater) {
  const TempDirectory directory;
  HeldRouter router;
  Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
  server.Update(7, 10);
  const auto lost = router.Take();
  ASSERT_TRUE(lost);
  lost->done(result_code::kTimeout, {});
  ASSERT_TRUE(server.AwaitIdle());
  EXPECT_EQ(server.ScoreOf(7), 10);

  server.Update(7, 5);
  const auto outdated = router.Take();
  ASSERT_TRUE(outdated);
  server.RunAndAnswer(*outdated);  // Says which generation it is now.
  const auto next = router.Take();
  ASSERT_TRUE(next);
  server.RunAndAnswer(*next);
  ASSERT_TRUE(server.AwaitIdle());
  EXPECT_EQ(server.ScoreOf(7), 5);

  EXPECT_FALSE(server.Run(*lost).accepted);
  EXPECT_EQ(server.ScoreOf(7), 5);
  EXPECT_FALSE(server.Run(*next).accepted);
  EXPECT_EQ(server.ScoreOf(7), 5);
}

TEST(RankOutboxTest, NoDeliveryIsAcceptedTwice) {
  const TempDirectory directory;
  HeldRouter router;
  Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
  for (std::int64_t score = 10; score >= 8; --score) {  // The first one makes the group.
    server.Update(7, score);
    const auto delivery = router.Take();
    ASSERT_TRUE(delivery);
    const RankOutbox::Receipt receipt = server.Run(*delivery);
    EXPECT_TRUE(receipt.accepted);
    EXPECT_FALSE(server.Run(*delivery).accepted);
    delivery->done(0, RankOutbox::EncodeReceipt(receipt));
    ASSERT_TRUE(server.AwaitIdle());
    EXPECT_FALSE(server.Run(*delivery).accepted);
    EXPECT_EQ(server.ScoreOf(7), score);
  }
}

// The group keeps a number for each process that sends; it must not keep all there ever were.
TEST(RankOutboxTest, ManyProcessesMayDeliver) {
  const TempDirectory directory;
  Server server(directory.path() + "/db");
  ByteWriter value;
  value.WriteLong(BValueLong::kTypeId);
  RankLong(5).Encode(value);
  RankOutbox::Receipt receipt;
  std::vector<std::string> accepted;
  for (std::int64_t sender = 1; sender <= 200; ++sender) {
    const HeldRouter::Held held{
        RankOutbox::EncodeDelivery({.group = kBoard.Key(1),
                                    .generation = receipt.generation,
                                    .sender = sender,
                                    .number = 1,
                                    .level = 4,
                                    .updates = {{7, std::string(value.view())}}}),
        nullptr};
    receipt = server.Run(held);
    ASSERT_TRUE(receipt.accepted);
    accepted.push_back(held.updates);
  }
  for (const std::string& again : accepted) EXPECT_FALSE(server.Run({again, nullptr}).accepted);
  EXPECT_LE(server.rank.table().ReadCopy(kBoard.Key(1)).value()->senders.size(), 64U);
}

TEST(RankOutboxTest, WhatIsWrittenInATransactionOverrulesWhatWaits) {
  const TempDirectory directory;
  HeldRouter router;
  Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
  for (const bool removes : {false, true}) {
    server.Update(7, 10);
    const auto late = router.Take();
    ASSERT_TRUE(late);
    server.application->Call("overrules", [&](Transaction& tx) -> std::int64_t {
      if (removes) return server.rank.Remove(tx, kBoard, 7).ok() ? 0 : 1;
      return server.rank.Update(tx, kBoard, 7, RankLong(20)).ok() ? 0 : 1;
    });
    server.RunAndAnswer(*late);
    ASSERT_TRUE(server.AwaitIdle());
    EXPECT_EQ(server.ScoreOf(7), removes ? -1 : 20);
  }
}

// For example with a bean that only a newer program ranks.
TEST(RankOutboxTest, AnUpdateThatCannotBeDoneDoesNotKeepOthers) {
  const TempDirectory directory;
  Server server(directory.path() + "/db");
  const auto poison = [&](Transaction& tx) -> std::int64_t {
    for (std::int64_t role = 1; role <= 20; ++role) {
      server.rank.UpdateAfterCommit(tx, kBoard, role, RankLong(role));
    }
    server.rank.pending().Edit(tx, {.RankType = 1, .RoleId = 5})->Value.bytes = "nonsense";
    return 0;
  };
  EXPECT_EQ(server.application->Call("updates", poison), 0);
  ASSERT_TRUE(server.AwaitIdle());
  for (std::int64_t role = 1; role <= 20; ++role) {
    EXPECT_EQ(server.ScoreOf(role), role == 5 ? -1 : role);
  }
  EXPECT_TRUE(server.rank.pending().ReadCopy({.RankType = 1, .RoleId = 5}).value().has_value());
}

TEST(RankOutboxTest, WhatAnEarlierLifeHasLeftIsDoneAtTheStart) {
  const TempDirectory directory;
  HeldRouter router;
  std::uint64_t adopted = 0;
  {
    Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
    ByteWriter value;
    value.WriteLong(BValueLong::kTypeId);
    RankLong(77).Encode(value);
    const Binary bytes{value.Release()};
    const auto leave = [&](Transaction& tx) -> std::int64_t {
      // As a process that is gone has written it.
      server.rank.pending().Put(tx, {.RankType = 1, .RoleId = 9},
                                {.Hash = 1, .Sender = 1, .Change = 1, .Value = bytes});
      return 0;
    };
    EXPECT_EQ(server.application->Call("leave", leave), 0);
    EXPECT_TRUE(server.application->Stop().ok());
    adopted = server.rank.GetStatistics().adopted;  // Perhaps by its own first look.
  }
  Server server(directory.path() + "/db", {.concurrent_level = 4, .router = &router});
  EXPECT_TRUE(Eventually([&] { return server.ScoreOf(9) == 77; }));
  EXPECT_EQ(adopted + server.rank.GetStatistics().adopted, 1U);
}

TEST(RankOutboxTest, DeliveriesThatCannotBeReadAreRefused) {
  const std::string good = RankOutbox::EncodeDelivery({.group = kBoard.Key(1),
                                                       .generation = 5,
                                                       .sender = 3,
                                                       .number = 8,
                                                       .level = 4,
                                                       .updates = {{7, "value"}}});
  for (std::size_t length = 0; length < good.size(); ++length) {
    RankOutbox::Delivery delivery;
    EXPECT_FALSE(RankOutbox::DecodeDelivery(std::string_view(good).substr(0, length), delivery));
  }
  RankOutbox::Delivery delivery;
  EXPECT_TRUE(RankOutbox::DecodeDelivery(good, delivery));
  EXPECT_EQ(delivery.updates.size(), 1U);
}

TEST(RankLevelTest, AServerWithAnotherLevelDoesNotStart) {
  const TempDirectory directory;
  {
    Server server(directory.path() + "/db", {.concurrent_level = 4});
    ASSERT_TRUE(server.started.ok());
    server.Update(7, 10);
    EXPECT_TRUE(server.application->Stop().ok());
  }
  {
    Server server(directory.path() + "/db", {.concurrent_level = 8});
    ASSERT_FALSE(server.started.ok());
    EXPECT_EQ(server.started.error().code(), ErrorCode::kIncompatible);
    EXPECT_THAT(server.started.error().message(), HasSubstr("into 4 groups"));
    EXPECT_THAT(server.started.error().message(), HasSubstr("set to 8"));
  }
  {
    Server server(directory.path() + "/db", {.concurrent_level = 4});
    ASSERT_TRUE(server.started.ok());
    EXPECT_EQ(server.ScoreOf(7), 10);
    EXPECT_TRUE(server.application->Stop().ok());
  }
  Server changes(directory.path() + "/db", {.concurrent_level = 8, .level_before = 4});
  EXPECT_TRUE(changes.started.ok());
}

}  // namespace
}  // namespace zeze
