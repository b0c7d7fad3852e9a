// The suite that every storage driver with a fence must pass: the contract of zeze/storage/fence.h,
// and the holes that rules 31 to 33 and 36 to 48 close, as tests.
//
// In a driver's test, in one source file:
//
//   class MyHome final : public FencedHome { ... };
//   INSTANTIATE_TEST_SUITE_P(My, FenceConformanceTest,
//                            testing::Values(FencedDriver{"my", MakeMyHome}), FencedDriverName);

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/cluster_conformance.h"
#include "zeze/storage/testing/fence_lease_conformance.h"
#include "zeze/storage/testing/fenced_home.h"
#include "zeze/storage/testing/loopback_proxy.h"
#include "zeze/storage/testing/yield_conformance.h"

namespace zeze {

#define ZEZE_NEEDS_NETWORK() \
  if (home_->port() == 0) GTEST_SKIP() << "no network between this storage and its rows"

// ---- Epochs

TEST_P(FenceConformanceTest, FlushesWithoutAFenceBeforeStart) {
  EXPECT_EQ(Open()->FlushOutcome("k", "v"), "ok");
  EXPECT_EQ(Open()->fence().Read(7).value().epoch, 0);
}

TEST_P(FenceConformanceTest, RaisesTheEpochWithEveryStart) {
  auto process = Open();

  EXPECT_EQ(process->Start(7), 1);
  EXPECT_EQ(Open()->Start(7), 2);
  EXPECT_EQ(Open()->Start(8), 1);

  EXPECT_EQ(process->fence().Read(7).value().epoch, 2);
  EXPECT_TRUE(process->fence().Read(7).value().live);
  EXPECT_EQ(process->fence().Read(9).value().epoch, 0);
  EXPECT_FALSE(process->fence().Read(9).value().live);
}

TEST_P(FenceConformanceTest, FencesTheOlderOfTwoProcessesWithOneServerId) {
  auto older = Open();
  older->Start(7);
  ASSERT_EQ(older->FlushOutcome("k", "older"), "ok");
  ASSERT_TRUE(older->fence().Renew().ok());
  auto newer = Open();
  newer->Start(7);

  EXPECT_EQ(older->FlushOutcome("k", "zombie"), "fenced");
  const Result<void> renewed = older->fence().Renew();
  EXPECT_EQ(FencedProcess::Outcome(renewed), "fenced");
  EXPECT_NE(renewed.error().message().find("the same server id: holder 7."), std::string::npos)
      << renewed.error().message();
  EXPECT_EQ(FencedProcess::Outcome(older->fence().Finish()), "fenced");

  EXPECT_EQ(newer->Find("k"), "older");
  EXPECT_EQ(newer->FlushOutcome("k", "newer"), "ok");
  EXPECT_TRUE(newer->fence().Renew().ok());
  EXPECT_EQ(older->FlushOutcome("k", "zombie"), "fenced");
  EXPECT_EQ(newer->Find("k"), "newer");
}

TEST_P(FenceConformanceTest, GivesEachOfManyConcurrentStartsItsOwnEpoch) {
  constexpr int kProcesses = 6;
  std::vector<std::unique_ptr<FencedProcess>> processes;
  for (int i = 0; i < kProcesses; ++i) processes.push_back(Open());
  std::vector<std::int64_t> epochs(kProcesses);
  std::vector<std::thread> threads;
  for (int i = 0; i < kProcesses; ++i) {
    threads.emplace_back([&, i] {
      const auto index = static_cast<std::size_t>(i);
      epochs[index] = processes[index]->Start(7);
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<std::int64_t> sorted = epochs;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::set<std::int64_t>(sorted.begin(), sorted.end()).size(), sorted.size());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    EXPECT_EQ(processes[i]->FlushOutcome("k", "v"), epochs[i] == sorted.back() ? "ok" : "fenced");
  }
}

TEST_P(FenceConformanceTest, ChecksTheFenceOfEmptyFlushesToo) {
  auto process = Open();
  process->Start(7);
  EXPECT_TRUE(process->storage().Flush({}, true).ok());
  Open()->Start(7);

  EXPECT_EQ(FencedProcess::Outcome(process->storage().Flush({}, true)), "fenced");
}

// ---- Eviction

TEST_P(FenceConformanceTest, EvictsAServer) {
  auto server = Open();
  const std::int64_t epoch = server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "before"), "ok");
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);

  EXPECT_EQ(global->fence().Evict(7, epoch, 0, term, {}).value(), EvictOutcome::kEvicted);

  EXPECT_EQ(global->fence().Read(7).value().epoch, epoch + 1);
  EXPECT_FALSE(global->fence().Read(7).value().live);
  EXPECT_EQ(server->FlushOutcome("k", "zombie"), "fenced");
  EXPECT_EQ(FencedProcess::Outcome(server->fence().Renew()), "fenced");
  EXPECT_EQ(global->Find("k"), "before");
}

TEST_P(FenceConformanceTest, EvictsRepeatedlyButNeverASuccessor) {
  auto server = Open();
  const std::int64_t epoch = server->Start(7);
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(global->fence().Evict(7, epoch, 0, term, {}).value(), EvictOutcome::kEvicted);
    EXPECT_EQ(global->fence().Read(7).value().epoch, epoch + 1);
  }
  auto successor = Open();
  ASSERT_GT(successor->Start(7), epoch + 1);

  EXPECT_EQ(global->fence().Evict(7, epoch, 0, term, {}).value(), EvictOutcome::kEvicted);

  EXPECT_EQ(successor->FlushOutcome("k", "v"), "ok");
  EXPECT_TRUE(global->fence().Read(7).value().live);
}

TEST_P(FenceConformanceTest, EvictsAServerThatTheDatabaseHasNotSeen) {
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);

  EXPECT_EQ(global->fence().Evict(7, 4, 0, term, {}).value(), EvictOutcome::kEvicted);

  EXPECT_EQ(global->fence().Read(7).value().epoch, 5);
  EXPECT_EQ(Open()->Start(7), 6);
}

// Hole 8.
TEST_P(FenceConformanceTest, RefusesAnEvictionUnderAnOldTerm) {
  auto server = Open();
  const std::int64_t epoch = server->Start(7);
  auto global = Open();
  const std::int64_t old_term = global->RaiseTerm(0);
  ASSERT_GT(global->RaiseTerm(0), old_term);

  EXPECT_EQ(global->fence().Evict(7, epoch, 0, old_term, {}).value(), EvictOutcome::kTermPassed);
  EXPECT_EQ(global->fence().Evict(7, epoch, 1, old_term, {}).value(), EvictOutcome::kTermPassed);

  EXPECT_EQ(server->FlushOutcome("k", "v"), "ok");
  EXPECT_TRUE(server->fence().Renew().ok());
}

// A server that flushes as fast as it can is evicted at some moment: every flush that it knows to
// be written is there when the eviction returns, and nothing comes after.
TEST_P(FenceConformanceTest, NothingChangesAfterAnEvictionHasReturned) {
  constexpr int kRounds = 5;
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  for (int round = 0; round < kRounds; ++round) {
    auto server = Open();
    const std::int64_t epoch = server->Start(7);
    std::atomic<int> written = 0;
    std::string last;
    std::atomic<bool> stop = false;
    std::thread flushing([&] {
      do {
        last = server->FlushOutcome("k", std::to_string(written + 1));
        if (last == "ok") ++written;
      } while (last == "ok" && !stop);
    });
    while (written < 10 + round) std::this_thread::yield();

    const Result<EvictOutcome> evicted = global->fence().Evict(7, epoch, 0, term, {});
    stop = !evicted.ok();
    const int written_before = written;
    const std::string read = global->Find("k");
    flushing.join();

    ASSERT_TRUE(evicted.ok()) << evicted.error().message();
    EXPECT_EQ(last, "fenced");
    EXPECT_GE(std::stoi(read), written_before);
    // The last one may have been written without the server being told.
    EXPECT_GE(std::stoi(read), written);
    EXPECT_LE(std::stoi(read), written + 1);
    EXPECT_EQ(global->Find("k"), read);
  }
}

// ---- Terms, who is live, orderly ends

// Hole 7.
TEST_P(FenceConformanceTest, ShowsTheTermsAtStart) {
  auto global = Open();
  EXPECT_EQ(global->RaiseTerm(0), 1);
  EXPECT_EQ(global->RaiseTerm(0), 2);
  EXPECT_EQ(global->RaiseTerm(3), 1);
  auto server = Open();

  const FenceStart started = server->fence().Start({.server_id = 7, .holder = ""}).value();

  EXPECT_EQ(started.terms, (std::map<std::int32_t, std::int64_t>{{0, 2}, {3, 1}}));
  EXPECT_EQ(server->fence().Terms().value(), started.terms);
}

// Hole 27.
TEST_P(FenceConformanceTest, RaisesTheTermOnceForEachHolder) {
  auto global = Open();

  EXPECT_EQ(global->fence().RaiseTerm({.shard = 0, .holder = "first"}).value(), 1);
  EXPECT_EQ(global->fence().RaiseTerm({.shard = 0, .holder = "first"}).value(), 1);
  EXPECT_EQ(Open()->fence().RaiseTerm({.shard = 0, .holder = "second"}).value(), 2);
  EXPECT_EQ(global->fence().RaiseTerm({.shard = 0, .holder = "second"}).value(), 2);
  EXPECT_EQ(global->fence().RaiseTerm({.shard = 0, .holder = "first"}).value(), 3);
}

TEST_P(FenceConformanceTest, GivesEachOfManyGlobalsItsOwnTerm) {
  constexpr int kGlobals = 5;
  std::vector<std::unique_ptr<FencedProcess>> globals;
  for (int i = 0; i < kGlobals; ++i) globals.push_back(Open());
  std::vector<std::int64_t> terms(kGlobals);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < globals.size(); ++i) {
    threads.emplace_back([&, i] { terms[i] = globals[i]->RaiseTerm(0); });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(std::set<std::int64_t>(terms.begin(), terms.end()).size(), terms.size());
}

// Hole 7: a server either sees the new term, or is in the list made after raising it. Also for the
// very first term of a shard.
TEST_P(FenceConformanceTest, ListsEveryServerThatHasSeenAnOlderTerm) {
  constexpr int kRounds = 8;
  auto global = Open();
  for (int round = 0; round < kRounds; ++round) {
    auto server = Open();
    FenceStart started;
    std::thread starting([&] {
      Result<FenceStart> start = server->fence().Start({.server_id = round, .holder = ""});
      ASSERT_TRUE(start.ok()) << start.error().message();
      started = start.value();
    });
    const std::int32_t shard = round / 2;  // New in every second round.
    const std::int64_t term = global->RaiseTerm(shard);
    const std::vector<LiveServer> live = global->fence().ListLive().value();
    starting.join();
    const bool listed = std::any_of(live.begin(), live.end(), [&](const LiveServer& other) {
      return other.server_id == round;
    });
    const bool saw = started.terms.contains(shard) && started.terms.at(shard) == term;
    EXPECT_TRUE(listed || saw) << "round " << round;
  }
}

TEST_P(FenceConformanceTest, ListsServersUntilTheyFinishOrAreEvicted) {
  auto finishes = Open();
  auto stays = Open();
  auto evicted = Open();
  finishes->Start(9);
  stays->Start(7);
  evicted->Start(8);
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{
                {7, 1, "holder 7", false}, {8, 1, "holder 8", false}, {9, 1, "holder 9", false}}));

  EXPECT_TRUE(finishes->fence().Finish().ok());
  ASSERT_TRUE(global->fence().Evict(8, 1, 0, term, {}).ok());

  // Who was evicted may still read from memory, until its lease is over.
  EXPECT_EQ(global->fence().ListLive().value(),
            (std::vector<LiveServer>{{7, 1, "holder 7", false}, {8, 1, "", true}}));
  EXPECT_EQ(global->fence().Read(9).value().epoch, 1);
  EXPECT_FALSE(global->fence().Read(9).value().live);
}

TEST_P(FenceConformanceTest, TakesNoFlushAfterFinish) {
  auto server = Open();
  server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "last"), "ok");
  ASSERT_TRUE(server->fence().Finish().ok());
  ASSERT_TRUE(server->fence().Finish().ok());

  EXPECT_EQ(server->FlushOutcome("k", "too late"), "fenced");
  EXPECT_EQ(FencedProcess::Outcome(server->fence().Renew()), "fenced");
  EXPECT_EQ(server->Find("k"), "last");
}

TEST_P(FenceConformanceTest, TellsTheSameHistoryToEverybody) {
  auto process = Open();
  const std::string history = process->fence().History().value();
  process->Start(7);
  ASSERT_EQ(process->FlushOutcome("k", "v"), "ok");

  EXPECT_FALSE(history.empty());
  EXPECT_EQ(Open()->fence().History().value(), history);
}

// ---- Zombies

// The interleavings of the fencing table: the zombie has passed the fence, is paused before its
// COMMIT, is evicted, and another server reads and writes what it had.
TEST_P(FenceConformanceTest, EvictsAZombieThatIsPausedBeforeItsCommit) {
  ZEZE_NEEDS_NETWORK();
  auto zombie = OpenBehindProxy();
  const std::int64_t epoch = zombie->Start(7);
  ASSERT_EQ(zombie->FlushOutcome("k", "old"), "ok");
  auto owner = Open();
  owner->Start(8);
  const std::int64_t term = owner->RaiseTerm(0);
  std::future<std::string> outcome = FlushUpToCommit(*zombie, 7, "k", "zombie");

  Result<EvictOutcome> evicted = owner->fence().Evict(7, epoch, 0, term, {});
  ASSERT_TRUE(evicted.ok()) << evicted.error().message();
  const std::string read = owner->Find("k");
  const std::string written = owner->FlushOutcome("k", "new");
  proxy_->LetGo();

  EXPECT_EQ(read, "old");
  EXPECT_EQ(written, "ok");
  EXPECT_EQ(outcome.get(), "fenced");
  EXPECT_EQ(owner->Find("k"), "new");
}

// The same between the fence and the rows: they must not be written without it.
TEST_P(FenceConformanceTest, EvictsAZombieThatIsPausedBeforeItsRows) {
  ZEZE_NEEDS_NETWORK();
  auto zombie = OpenBehindProxy();
  const std::int64_t epoch = zombie->Start(7);
  ASSERT_EQ(zombie->FlushOutcome("k", "old"), "ok");
  auto owner = Open();
  owner->Start(8);
  const std::int64_t term = owner->RaiseTerm(0);
  std::future<std::string> outcome = FlushUpTo("zombie", *zombie, 7, "k", "zombie");

  ASSERT_TRUE(owner->fence().Evict(7, epoch, 0, term, {}).ok());
  proxy_->LetGo();

  EXPECT_EQ(outcome.get(), "fenced");
  EXPECT_EQ(owner->Find("k"), "old");
  EXPECT_EQ(owner->FlushOutcome("k", "new"), "ok");
}

// A new owner that only caches what it read must not be wrong either.
TEST_P(FenceConformanceTest, AZombieDoesNotChangeWhatTheNewOwnerHasRead) {
  ZEZE_NEEDS_NETWORK();
  auto zombie = OpenBehindProxy();
  const std::int64_t epoch = zombie->Start(7);
  ASSERT_EQ(zombie->FlushOutcome("k", "old"), "ok");
  auto owner = Open();
  const std::int64_t term = owner->RaiseTerm(0);
  std::future<std::string> outcome = FlushUpToCommit(*zombie, 7, "k", "zombie");

  ASSERT_TRUE(owner->fence().Evict(7, epoch, 0, term, {}).ok());
  const std::string read = owner->Find("k");
  proxy_->LetGo();

  EXPECT_EQ(outcome.get(), "fenced");
  EXPECT_EQ(owner->Find("k"), read);
}

TEST_P(FenceConformanceTest, StartsAlthoughAnOlderProcessHangsInItsFlush) {
  ZEZE_NEEDS_NETWORK();
  auto zombie = OpenBehindProxy();
  zombie->Start(7);
  std::future<std::string> outcome = FlushUpToCommit(*zombie, 7, "k", "zombie");

  auto successor = Open();
  EXPECT_EQ(successor->Start(7), 2);
  // Its session was ended; before the epoch was raised it may have repeated the flush on a new one.
  const bool written = successor->Find("k") == "zombie";
  EXPECT_EQ(successor->FlushOutcome("k", "new"), "ok");
  proxy_->LetGo();

  EXPECT_EQ(outcome.get(), written ? "ok" : "fenced");
  EXPECT_NE(zombie->FlushOutcome("k", "again"), "ok");
  EXPECT_EQ(successor->Find("k"), "new");
}

TEST_P(FenceConformanceTest, RenewsWhileAFlushRuns) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  server->Start(7);
  ASSERT_TRUE(server->fence().Renew().ok());
  std::future<std::string> outcome = FlushUpToCommit(*server, 7, "k", "v");

  EXPECT_TRUE(server->fence().Renew().ok());
  EXPECT_TRUE(server->fence().Renew().ok());
  proxy_->LetGo();

  EXPECT_EQ(outcome.get(), "ok");
}

// ---- Commits with an unknown end

TEST_P(FenceConformanceTest, FindsOutThatALostFlushWasWritten) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "1"), "ok");

  proxy_->WhenClientSends("COMMIT", LoopbackProxy::Action::kCutAfterAnswer);
  EXPECT_EQ(server->FlushOutcome("k", "2"), "ok");
  proxy_->AwaitTriggered();

  EXPECT_EQ(server->Find("k"), "2");
  EXPECT_EQ(server->FlushOutcome("k", "3"), "ok");
  EXPECT_EQ(server->Find("k"), "3");
}

TEST_P(FenceConformanceTest, RepeatsALostFlushThatWasNotWritten) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "1"), "ok");

  proxy_->WhenClientSends("COMMIT", LoopbackProxy::Action::kCutBefore);
  EXPECT_EQ(server->FlushOutcome("k", "2"), "ok");
  proxy_->AwaitTriggered();

  EXPECT_EQ(server->Find("k"), "2");
  EXPECT_EQ(server->FlushOutcome("k", "3"), "ok");
}

TEST_P(FenceConformanceTest, RenewsAfterALostRenewal) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  server->Start(7);
  for (LoopbackProxy::Action action :
       {LoopbackProxy::Action::kCutAfterAnswer, LoopbackProxy::Action::kCutBefore}) {
    proxy_->WhenClientSends("COMMIT", action);
    EXPECT_TRUE(server->fence().Renew().ok());
    proxy_->AwaitTriggered();
    EXPECT_TRUE(server->fence().Renew().ok());
  }
}

// Hole 32: a renewal that was in doubt when the call began does not count.
TEST_P(FenceConformanceTest, ARenewalIsNotTheOneThatWasInDoubt) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy(Patience::kShort);
  auto observer = Open();
  server->Start(7);
  ASSERT_TRUE(server->fence().Renew().ok());
  proxy_->WhenClientSends("COMMIT", LoopbackProxy::Action::kCutAfterAnswer);
  proxy_->Refuse(true);
  EXPECT_EQ(FencedProcess::Outcome(server->fence().Renew()), "unknown outcome");
  EXPECT_EQ(observer->fence().ListLive().value().at(0).renew_seq, 2);

  proxy_->Refuse(false);
  EXPECT_TRUE(server->fence().Renew().ok());
  EXPECT_EQ(observer->fence().ListLive().value().at(0).renew_seq, 3);
}

// The server cannot ask: it must not go on to another flush, and may repeat this one.
TEST_P(FenceConformanceTest, TakesOnlyTheSameFlushAfterAnUnknownOutcome) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy(Patience::kShort);
  auto watcher = Open();
  server->Start(7);
  ASSERT_EQ(server->FlushUntilKnown("k", "0"), "ok");
  int number = 0;
  for (LoopbackProxy::Action action :
       {LoopbackProxy::Action::kCutAfterAnswer, LoopbackProxy::Action::kCutBefore}) {
    const std::string value = std::to_string(++number);
    proxy_->WhenClientSends("COMMIT", action);
    proxy_->Refuse(true);
    // The connections that are open go on; only new ones are refused.
    EXPECT_EQ(server->FlushOutcome("k", value), "unknown outcome");
    EXPECT_EQ(server->FlushOutcome("k", "another"), "invalid argument");
    EXPECT_EQ(server->FlushOutcome("other", value), "invalid argument");
    EXPECT_EQ(server->FlushOutcome("k", value), "unknown outcome");
    proxy_->Refuse(false);
    EXPECT_EQ(server->FlushUntilKnown("k", value), "ok");
    EXPECT_EQ(watcher->Find("k"), value);
    EXPECT_EQ(server->FlushUntilKnown("other", "next"), "ok");
  }
}

TEST_P(FenceConformanceTest, SaysFencedIfEvictedWhileAFlushWasUnknown) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy(Patience::kShort);
  const std::int64_t epoch = server->Start(7);
  ASSERT_EQ(server->FlushUntilKnown("k", "1"), "ok");
  auto global = Open();
  const std::int64_t term = global->RaiseTerm(0);
  proxy_->WhenClientSends("COMMIT", LoopbackProxy::Action::kCutBefore);
  proxy_->Refuse(true);
  ASSERT_EQ(server->FlushOutcome("k", "2"), "unknown outcome");

  ASSERT_TRUE(global->fence().Evict(7, epoch, 0, term, {}).ok());
  proxy_->Refuse(false);

  EXPECT_EQ(server->FlushUntilKnown("k", "2"), "fenced");
  EXPECT_EQ(global->Find("k"), "1");
}

// Hole 1: flush 2 is stuck on its way, the client repeats it and goes on to flush 3; then the stuck
// copy arrives.
TEST_P(FenceConformanceTest, ADelayedFlushThatArrivesLateChangesNothing) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "1"), "ok");
  proxy_->WhenClientSends(home_->flush_begin(), LoopbackProxy::Action::kHold);
  std::future<std::string> second =
      std::async(std::launch::async, [&] { return server->FlushOutcome("k", "2"); });
  proxy_->AwaitTriggered();

  proxy_->DropHeldClient();
  EXPECT_EQ(second.get(), "ok");
  EXPECT_EQ(server->FlushOutcome("k", "3"), "ok");
  EXPECT_TRUE(proxy_->DeliverLate());

  EXPECT_EQ(server->Find("k"), "3");
  EXPECT_EQ(server->FlushOutcome("k", "4"), "ok");
  EXPECT_EQ(server->Find("k"), "4");
}

// The database still holds the locks of a flush whose client is gone.
TEST_P(FenceConformanceTest, EndsItsOwnLostSession) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  server->Start(7);
  std::future<std::string> outcome = FlushUpToCommit(*server, 7, "k", "v");

  proxy_->DropHeldClient();

  EXPECT_EQ(outcome.get(), "ok");
  EXPECT_EQ(server->Find("k"), "v");
}

TEST_P(FenceConformanceTest, SaysUnknownOutcomeWithoutAFence) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy();
  for (LoopbackProxy::Action action :
       {LoopbackProxy::Action::kCutAfterAnswer, LoopbackProxy::Action::kCutBefore}) {
    ASSERT_EQ(server->FlushOutcome("k", "1"), "ok");
    proxy_->WhenClientSends("COMMIT", action);

    EXPECT_EQ(server->FlushOutcome("k", "2"), "unknown outcome");
    EXPECT_EQ(server->FlushOutcome("k", "3"), "invalid argument");

    EXPECT_EQ(server->FlushOutcome("k", "2"), "ok");
    EXPECT_EQ(server->Find("k"), "2");
  }
}

// Rule 48.
TEST_P(FenceConformanceTest, EndsWhenTheDatabaseHasLostAFlush) {
  ZEZE_NEEDS_NETWORK();
  auto server = Open();
  server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "1"), "ok");
  ASSERT_EQ(server->FlushOutcome("k", "2"), "ok");

  home_->LoseLastFlush(7);

  Result<void> flushed = server->Flush("k", "3");
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), ErrorCode::kFenced);
  EXPECT_NE(flushed.error().message().find("lost"), std::string::npos);
}

// ---- Time-outs and restarts

TEST_P(FenceConformanceTest, GivesUpAFlushThatWaitsTooLong) {
  ZEZE_NEEDS_NETWORK();
  if (!home_->writers_wait()) GTEST_SKIP() << "no writer waits for another one here";
  auto holder = OpenBehindProxy();
  holder->Start(7);
  auto waiter = Open(0, Patience::kShort);
  waiter->Start(8);
  ASSERT_EQ(waiter->FlushUntilKnown("k", "0"), "ok");
  std::future<std::string> outcome = FlushUpToCommit(*holder, 7, "k", "1");

  const std::string waited = waiter->FlushOutcome("k", "2");
  const std::string other = waiter->FlushOutcome("other", "3");
  proxy_->LetGo();

  EXPECT_EQ(waited, "unavailable");
  EXPECT_EQ(other, "ok");
  EXPECT_EQ(outcome.get(), "ok");
  EXPECT_EQ(waiter->Find("k"), "1");
  EXPECT_EQ(waiter->FlushOutcome("k", "2"), "ok");
}

TEST_P(FenceConformanceTest, GoesOnAfterARestartOfTheDatabase) {
  ZEZE_NEEDS_NETWORK();
  auto server = Open();
  server->Start(7);
  ASSERT_EQ(server->FlushOutcome("k", "1"), "ok");
  ASSERT_TRUE(server->fence().Renew().ok());
  ASSERT_EQ(server->Find("k"), "1");

  if (!home_->Restart()) GTEST_SKIP() << "this database cannot be restarted by the test";

  EXPECT_EQ(server->Find("k"), "1");
  EXPECT_EQ(server->FlushOutcome("k", "2"), "ok");
  EXPECT_TRUE(server->fence().Renew().ok());
  EXPECT_EQ(server->Find("k"), "2");
  EXPECT_EQ(server->fence().ListLive().value().size(), 1U);
}

TEST_P(FenceConformanceTest, SaysUnavailableWhileTheDatabaseIsGone) {
  ZEZE_NEEDS_NETWORK();
  auto server = OpenBehindProxy(Patience::kShort);
  server->Start(7);
  ASSERT_EQ(server->FlushUntilKnown("k", "1"), "ok");
  proxy_->Refuse(true);
  proxy_->CutAll();

  std::string value;
  EXPECT_EQ(server->storage().OpenTable("t").value()->Find("k", value).error().code(),
            ErrorCode::kUnavailable);
  EXPECT_EQ(server->fence().ListLive().error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(server->fence().RaiseTerm({.shard = 0, .holder = "somebody"}).error().code(),
            ErrorCode::kUnavailable);

  proxy_->Refuse(false);
  EXPECT_EQ(server->FlushUntilKnown("k", "2"), "ok");
  EXPECT_EQ(server->Find("k"), "2");
}

#undef ZEZE_NEEDS_NETWORK

}  // namespace zeze
