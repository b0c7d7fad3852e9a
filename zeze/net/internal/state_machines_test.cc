// Tests of the parts of a connection that need no socket: calls, reconnection, keep-alive, output.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/net/internal/arrival_queue.h"
#include "zeze/net/internal/keep_alive.h"
#include "zeze/net/internal/output_queue.h"
#include "zeze/net/internal/reconnect_policy.h"
#include "zeze/net/internal/rpc_table.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

RpcTable::Call CallOfType(std::int64_t type_id) {
  return {.type_id = type_id, .completion = [](const RawReply&) { return true; }};
}

std::vector<std::int64_t> TypesOf(const std::vector<RpcTable::Call>& calls) {
  std::vector<std::int64_t> types;
  types.reserve(calls.size());
  for (const RpcTable::Call& call : calls) types.push_back(call.type_id);
  return types;
}

TEST(RpcTable, GivesEachCallToItsOwnAnswerOnce) {
  RpcTable table(10);
  const std::int64_t one = *table.Add(CallOfType(1), seconds(0), seconds(5));
  const std::int64_t two = *table.Add(CallOfType(2), seconds(0), seconds(5));
  EXPECT_EQ(one, 1);  // The first id of every implementation.

  EXPECT_EQ(table.Find(two)->type_id, 2);
  EXPECT_EQ(table.Take(two)->type_id, 2);
  EXPECT_FALSE(table.Take(two).has_value());
  EXPECT_EQ(table.Find(two), nullptr);
  EXPECT_EQ(table.Take(one)->type_id, 1);
  EXPECT_EQ(table.size(), 0U);
}

TEST(RpcTable, NeverGivesALateAnswerToALaterCall) {
  RpcTable table(10);
  const std::int64_t first = *table.Add(CallOfType(1), seconds(0), seconds(5));
  EXPECT_THAT(TypesOf(table.TakeExpired(seconds(5))), ElementsAre(1));
  const std::int64_t second = *table.Add(CallOfType(2), seconds(5), seconds(5));

  EXPECT_NE(first, second);
  EXPECT_FALSE(table.Take(first).has_value());
  for (const std::int64_t nonsense :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{9}, INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE(table.Take(nonsense).has_value());
  }
  EXPECT_TRUE(table.Take(second).has_value());
}

TEST(RpcTable, ExpiresCallsOfDifferentTimeOuts) {
  RpcTable table(1000);
  ASSERT_TRUE(table.Add(CallOfType(1), seconds(0), seconds(9)).has_value());
  ASSERT_TRUE(table.Add(CallOfType(2), seconds(1), seconds(2)).has_value());
  ASSERT_TRUE(table.Add(CallOfType(3), seconds(1), seconds(9)).has_value());
  EXPECT_EQ(table.NextDeadline(), seconds(3));

  EXPECT_TRUE(table.TakeExpired(seconds(3) - nanoseconds(1)).empty());
  EXPECT_THAT(TypesOf(table.TakeExpired(seconds(3))), ElementsAre(2));
  EXPECT_EQ(table.NextDeadline(), seconds(9));
  EXPECT_THAT(TypesOf(table.TakeExpired(seconds(20))), ElementsAre(1, 3));
  EXPECT_EQ(table.NextDeadline(), std::nullopt);
}

TEST(RpcTable, RefusesMoreThanItsLimit) {
  RpcTable table(2);
  ASSERT_TRUE(table.Add(CallOfType(1), seconds(0), seconds(5)).has_value());
  const std::int64_t second = *table.Add(CallOfType(2), seconds(0), seconds(5));
  RpcTable::Call third = CallOfType(3);
  EXPECT_FALSE(table.Add(std::move(third), seconds(0), seconds(5)).has_value());
  // NOLINTNEXTLINE(bugprone-use-after-move): it is still the caller's.
  EXPECT_TRUE(third.completion);
  table.Take(second);
  EXPECT_TRUE(table.Add(std::move(third), seconds(0), seconds(5)).has_value());
}

TEST(RpcTable, BehavesAsAMapUnderRandomUse) {
  constexpr std::uint32_t kSeed = 20261116;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  RpcTable table(200);
  struct Expected {
    std::int64_t id;
    std::int64_t type_id;
    nanoseconds deadline;
  };
  std::vector<Expected> model;
  nanoseconds now{0};
  for (int i = 0; i < 20000; ++i) {
    const auto choice = random() % 10;
    if (choice < 5) {
      const nanoseconds timeout = milliseconds(1 + random() % 50);
      const auto id = table.Add(CallOfType(i), now, timeout);
      ASSERT_EQ(id.has_value(), model.size() < 200);
      if (id) model.push_back({*id, i, now + timeout});
    } else if (choice < 9 && !model.empty()) {
      const std::size_t at = random() % model.size();
      const auto call = table.Take(model[at].id);
      ASSERT_TRUE(call.has_value());
      EXPECT_EQ(call->type_id, model[at].type_id);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      now += milliseconds(random() % 10);
      std::size_t expired = table.TakeExpired(now).size();
      expired -= static_cast<std::size_t>(
          std::erase_if(model, [&](const Expected& call) { return call.deadline <= now; }));
      ASSERT_EQ(expired, 0U);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  std::vector<std::int64_t> types;
  for (const Expected& call : model) types.push_back(call.type_id);
  EXPECT_EQ(TypesOf(table.TakeAll()), types);
}

TEST(ReconnectPolicy, DoublesUpToItsMaximumAndStartsAgain) {
  ReconnectPolicy policy(seconds(1), seconds(8));
  std::vector<nanoseconds> delays;
  for (int i = 0; i < 6; ++i) delays.push_back(policy.NextDelay(0));
  EXPECT_THAT(delays,
              ElementsAre(seconds(1), seconds(2), seconds(4), seconds(8), seconds(8), seconds(8)));
  policy.Reset();
  EXPECT_EQ(policy.NextDelay(0), seconds(1));
}

TEST(ReconnectPolicy, LeavesTheLastFifthToChance) {
  ReconnectPolicy policy(seconds(1), seconds(1));
  std::mt19937_64 random(7);
  nanoseconds least = seconds(1);
  for (int i = 0; i < 1000; ++i) {
    const nanoseconds delay = policy.NextDelay(random());
    EXPECT_GE(delay, milliseconds(800));
    EXPECT_LE(delay, seconds(1));
    least = std::min(least, delay);
  }
  EXPECT_LT(least, milliseconds(810));
}

TEST(KeepAlive, SendsFromTheSideThatConnected) {
  const KeepAliveOptions options{.check_period = seconds(5), .send_timeout = seconds(25)};
  KeepAlive opened(options, true, seconds(100), 0);
  KeepAlive accepted(options, false, seconds(100), 0);
  const nanoseconds now = seconds(130);
  // Nothing sent, or nothing received, for longer.
  EXPECT_EQ(opened.Check(now, seconds(129), seconds(104)), KeepAlive::Action::kSend);
  EXPECT_EQ(opened.Check(now + seconds(5), seconds(104), seconds(129)), KeepAlive::Action::kSend);
  EXPECT_EQ(opened.Check(now + seconds(10), seconds(130), seconds(130)),
            KeepAlive::Action::kNothing);
  EXPECT_EQ(accepted.Check(now, seconds(1), seconds(1)), KeepAlive::Action::kNothing);
}

TEST(KeepAlive, ClosesWhenNothingWasReceived) {
  KeepAlive keep_alive({.check_period = seconds(5), .receive_timeout = seconds(60)}, false,
                       seconds(0), 0);
  EXPECT_EQ(keep_alive.Check(seconds(60), seconds(0), seconds(60)), KeepAlive::Action::kNothing);
  EXPECT_EQ(keep_alive.Check(seconds(65), seconds(0), seconds(65)), KeepAlive::Action::kClose);
}

TEST(KeepAlive, ClosesAPeerThatWasAskedAndDoesNotAnswer) {
  const KeepAliveOptions options{
      .check_period = seconds(5), .send_timeout = seconds(30), .answer_timeout = seconds(60)};
  KeepAlive asked(options, true, seconds(0), 0);
  KeepAlive not_asked(options, false, seconds(0), 0);
  EXPECT_EQ(asked.Check(seconds(60), seconds(0), seconds(60)), KeepAlive::Action::kSend);
  EXPECT_EQ(asked.Check(seconds(65), seconds(0), seconds(65)), KeepAlive::Action::kClose);
  EXPECT_EQ(not_asked.Check(seconds(65), seconds(0), seconds(65)), KeepAlive::Action::kNothing);
}

TEST(KeepAlive, ChecksOncePerPeriodFromARandomStart) {
  const KeepAliveOptions options{.check_period = seconds(5), .receive_timeout = seconds(1)};
  KeepAlive early(options, true, seconds(0), 0);
  KeepAlive late(options, true, seconds(0), 4'999'999'998);
  EXPECT_EQ(early.next_check(), nanoseconds(1));
  EXPECT_EQ(late.next_check(), nanoseconds(4'999'999'999));
  EXPECT_EQ(late.Check(seconds(4), nanoseconds(0), nanoseconds(0)), KeepAlive::Action::kNothing);
  KeepAlive off({}, true, seconds(0), 0);
  EXPECT_FALSE(off.enabled());
}

TEST(OutputQueue, RefusesWhatDoesNotFitAndKeepsTheRest) {
  OutputQueue queue(100);
  const auto append = [&queue](std::size_t bytes) {
    return queue.Append([bytes](ByteWriter& out) { out.WriteRaw(std::string(bytes, 'x')); });
  };
  EXPECT_TRUE(append(60));
  EXPECT_FALSE(append(41));
  EXPECT_EQ(queue.bytes(), 60U);
  EXPECT_TRUE(queue.AboveHighWater());
  EXPECT_TRUE(append(40));

  // What is taken counts until it is written.
  std::unique_ptr<ByteWriter> batch = queue.Take();
  EXPECT_EQ(batch->size(), 100U);
  EXPECT_FALSE(append(1));
  queue.GiveBack(std::move(batch), 30);
  EXPECT_TRUE(append(70));
  EXPECT_FALSE(append(1));
  batch = queue.Take();
  queue.GiveBack(std::move(batch), 0);
  EXPECT_TRUE(queue.BelowLowWater());
  EXPECT_FALSE(queue.HasPending());

  // A message larger than the bound can be sent, alone.
  EXPECT_TRUE(append(150));
  EXPECT_FALSE(append(1));
}

TEST(ArrivalQueue, HasOneDrainAtATime) {
  ArrivalQueue queue;
  std::vector<Arrival> batch;
  EXPECT_TRUE(queue.Push(Arrival{.cost = 1}));
  EXPECT_FALSE(queue.Push(Arrival{.cost = 2}));
  ASSERT_TRUE(queue.TakeBatch(batch));
  EXPECT_EQ(batch.size(), 2U);
  EXPECT_FALSE(queue.Push(Arrival{.cost = 3}));  // The drain has not ended yet.
  ASSERT_TRUE(queue.TakeBatch(batch));
  ASSERT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch[0].cost, 3U);
  EXPECT_FALSE(queue.TakeBatch(batch));
  EXPECT_TRUE(queue.Push(Arrival{}));
}

TEST(DispatchedCount, StopsAtEitherLimitAndResumesAtHalf) {
  DispatchedCount count(4, 1000);
  count.Add(999);
  EXPECT_FALSE(count.Full());
  count.Add(1);
  EXPECT_TRUE(count.Full());
  count.Remove(999);
  EXPECT_TRUE(count.Drained());
  for (int i = 0; i < 3; ++i) count.Add(1);
  EXPECT_TRUE(count.Full());
  count.Remove(1);
  EXPECT_FALSE(count.Full());
  EXPECT_FALSE(count.Drained());
  count.Remove(1);
  EXPECT_TRUE(count.Drained());
}

}  // namespace
}  // namespace zeze::internal
