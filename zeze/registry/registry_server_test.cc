#include "zeze/registry/registry_server.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/registry/messages.h"
#include "zeze/registry/testing/recording_output.h"

namespace zeze::registry {
namespace {

using std::chrono::seconds;

ServiceInfo Info(const std::string& name, const std::string& identity, std::int64_t version = 1) {
  return {.name = name, .identity = identity, .version = version};
}

struct Life {
  RecordingOutput output;
  RegistryServer server{{}, output, [] { return 0; }};
};

// --- The peer's defects ---

TEST(RegistryDefectOfRestart, AfterARestartSubscribersSeeTheWholeListAtOnce) {
  Life before;
  ASSERT_TRUE(before.server.OnEdit(1, {.add = {Info("Shop", "1")}}).ok());
  ASSERT_TRUE(before.server.OnEdit(2, {.add = {Info("Shop", "2")}}).ok());

  Life after;
  after.server.Restore(seconds(0), before.output.Saved());
  const ServicesByName list = after.server.OnSubscribe(100, {{.name = "Shop"}}).value();
  EXPECT_EQ(2U, list.at("Shop").at(1).size()) << "nobody has registered again yet";

  ASSERT_TRUE(after.server.OnEdit(101, {.add = {Info("Shop", "1")}}).ok());
  after.server.Tick(seconds(29));
  EXPECT_TRUE(after.output.edits.empty()) << "no news for subscribers";
}

TEST(RegistryDefectOfRestart, WhoeverDiedDuringARestartIsRemovedAndSubscribersAreTold) {
  Life before;
  ASSERT_TRUE(before.server.OnEdit(1, {.add = {Info("Shop", "1")}}).ok());
  ASSERT_TRUE(before.server.OnEdit(2, {.add = {Info("Shop", "2")}}).ok());

  Life after;
  after.server.Restore(seconds(0), before.output.Saved());
  ASSERT_TRUE(after.server.OnSubscribe(100, {{.name = "Shop"}}).ok());
  ASSERT_TRUE(after.server.OnEdit(101, {.add = {Info("Shop", "1")}}).ok());
  after.server.Tick(seconds(30));

  ASSERT_EQ(1U, after.output.edits.size());
  EXPECT_EQ((ServiceEdit{.remove = {Info("Shop", "2")}}), after.output.edits[0].second);
  EXPECT_EQ(1U, after.output.services.size()) << "and the next restart does not find it";
}

TEST(RegistryServerTest, NoticesSurviveARestart) {
  Life before;
  ASSERT_TRUE(
      before.server.OnOfflineRegister(seconds(0), 1, {.server_id = 7, .notify_id = "Timer"}).ok());
  ASSERT_TRUE(
      before.server.OnOfflineRegister(seconds(0), 2, {.server_id = 8, .notify_id = "Timer"}).ok());

  Life after;
  after.server.Restore(seconds(0), before.output.Saved());
  ASSERT_TRUE(
      after.server.OnOfflineRegister(seconds(1), 101, {.server_id = 8, .notify_id = "Timer"}).ok());
  after.server.Tick(seconds(629));
  EXPECT_TRUE(after.output.asks.empty());
  after.server.Tick(seconds(630));
  ASSERT_EQ(1U, after.output.asks.size());
  EXPECT_EQ(7, after.output.asks[0].notice.server_id);
  EXPECT_EQ(101, after.output.asks[0].to);
}

// An agent of Zeze 1.6 registers its services again, but not its notices.
TEST(RegistryServerTest, AfterARestartALiveOldServerIsNotTakenOver) {
  Life before;
  ASSERT_TRUE(before.server.OnEdit(1, {.add = {Info("Shop", "7")}}).ok());
  for (const std::int32_t id : {7, 8}) {
    ASSERT_TRUE(
        before.server.OnOfflineRegister(seconds(0), id - 6, {.server_id = id, .notify_id = "Timer"})
            .ok());
  }

  Life after;
  after.server.Restore(seconds(0), before.output.Saved());
  ASSERT_TRUE(after.server.OnEdit(107, {.add = {Info("Shop", "7")}}).ok());
  ASSERT_TRUE(
      after.server.OnOfflineRegister(seconds(1), 108, {.server_id = 8, .notify_id = "Timer"}).ok());
  after.server.Tick(seconds(10'000));
  EXPECT_TRUE(after.output.asks.empty());

  after.server.OnClosed(seconds(10'000), 107);
  after.server.Tick(seconds(10'600));
  EXPECT_EQ(1U, after.output.asks.size()) << "but it is when it is lost";
}

// Random edits, subscriptions, closes and restarts: what a subscriber has made of its messages is
// at every moment the list.
class RandomHistory {
 public:
  void Step() {
    if (servers_.size() < 4) servers_.push_back(++last_session_);
    const std::size_t who = random_() % servers_.size();
    const ServiceInfo info =
        Info("Shop", std::to_string(random_() % 8), static_cast<std::int64_t>(1 + random_() % 3));
    const std::uint64_t what = random_() % 16;
    if (what == 0) {
      life_->server.OnClosed(now_, servers_[who]);
      servers_.erase(servers_.begin() + static_cast<std::ptrdiff_t>(who));
    } else if (what == 1) {
      Subscribe(static_cast<std::int64_t>(random_() % 4));
    } else if (what == 2) {
      now_ += seconds(random_() % 20);
      life_->server.Tick(now_);
    } else if (what < 6) {
      EXPECT_TRUE(life_->server.OnEdit(servers_[who], {.remove = {info}}).ok());
    } else {
      EXPECT_TRUE(life_->server.OnEdit(servers_[who], {.remove = {info}, .add = {info}}).ok());
    }
    if (random_() % 500 == 0) Restart();
  }

  void Check() {
    for (const auto& [reader, version] : readers_) {
      std::map<std::pair<std::int64_t, ServiceKey>, ServiceInfo> expected;
      for (const auto& [key, one] : life_->output.services) {
        if (version == 0 || version == one.first.version) {
          expected[{one.first.version, key}] = one.first;
        }
      }
      ASSERT_EQ(expected, life_->output.seen[reader]);
    }
  }

 private:
  void Subscribe(std::int64_t version) {
    const SessionId reader = ++last_session_;
    readers_.emplace_back(reader, version);
    const ServicesByName list =
        life_->server.OnSubscribe(reader, {{.name = "Shop", .version = version}}).value();
    for (const auto& [at, services] : list.at("Shop")) {
      life_->output.Apply(reader, {.add = services});
    }
    if (readers_.size() <= 3) return;
    life_->server.OnClosed(now_, readers_.front().first);
    readers_.erase(readers_.begin());
  }
  void Restart() {
    auto next = std::make_unique<Life>();
    next->server.Restore(now_, life_->output.Saved());
    next->output.services = life_->output.services;
    life_ = std::move(next);
    servers_.clear();
    readers_.clear();
  }

  std::mt19937_64 random_{11};
  std::unique_ptr<Life> life_ = std::make_unique<Life>();
  SessionId last_session_ = 10;
  std::vector<SessionId> servers_;
  std::vector<std::pair<SessionId, std::int64_t>> readers_;
  std::chrono::nanoseconds now_{0};
};

TEST(RegistryServerTest, SubscribersFollowTheList) {
  RandomHistory history;
  for (int step = 0; step < 20'000; ++step) {
    history.Step();
    history.Check();
    if (::testing::Test::HasFatalFailure()) FAIL() << "at step " << step;
  }
}

}  // namespace
}  // namespace zeze::registry
