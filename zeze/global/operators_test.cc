// GlobalServer alone: what it tells operators, what they can have it do, and old peers that are
// stopped by other means than the database.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class OperatorsTest : public ::testing::Test, public GlobalOutput {
 protected:
  using Time = GlobalServer::Time;

  void Begin(GlobalOptions options, std::vector<LiveServer> live = {}) {
    machine_.emplace(options, *this);
    machine_->Start(now_);
    machine_->OnTermRaised(now_, std::int64_t{5});
    machine_->OnLiveServers(now_, std::move(live));
  }
  // Old peers are allowed, can be stopped, and the time after a start for them is over.
  void BeginWithOldPeers() {
    Begin({.lease = {}, .unfenced_wait = seconds(75), .can_stop_servers = true});
    Pass(seconds(75));
    ASSERT_TRUE(machine_->serving());
    alerts_.clear();
  }
  void Pass(Time duration) {
    now_ += duration;
    machine_->Tick(now_);
  }
  void LogIn(ConnectionId connection, std::int32_t server_id, std::int64_t epoch) {
    machine_->OnLogin(now_, connection,
                      {.server_id = server_id, .epoch = epoch, .start_term = 5, .rights = {}});
    machine_->OnServerRow(now_, server_id, Fence::ServerRow{.epoch = epoch, .live = true});
  }
  // Others are alive and say so: the silent one is the exception.
  void LogInOthers() {
    for (std::int32_t id = 101; id <= 103; ++id) {
      LogIn(static_cast<ConnectionId>(id), id, 1);
    }
  }
  void KeepOthersAlive() {
    for (ConnectionId id = 101; id <= 103; ++id) machine_->OnKeepAlive(now_, id);
  }
  // The time in which only the others speak.
  void PassWithOthers(Time duration) {
    for (Time passed{0}; passed < duration; passed += milliseconds(500)) {
      KeepOthersAlive();
      Pass(milliseconds(500));
    }
  }
  ServerView Server(std::int32_t server_id) {
    for (const ServerView& view : machine_->Servers(now_)) {
      if (view.server_id == server_id) return view;
    }
    ADD_FAILURE() << "no server " << server_id;
    return {};
  }
  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const GlobalAlert& alert : alerts_) kinds.emplace_back(ToString(alert.kind));
    return kinds;
  }

  // GlobalOutput.
  void SendLoginReply(ConnectionId, const LoginReply&) override {}
  void SendGrant(ConnectionId to, std::uint64_t, std::string_view key, Right) override {
    grants_.emplace_back(to, key);
  }
  void SendRefusal(ConnectionId, std::uint64_t, std::string_view, Right, Refusal) override {}
  void SendReleased(ConnectionId, std::uint64_t, std::string_view) override {}
  void SendReduce(ConnectionId, std::uint64_t, std::string_view, Right) override {}
  void Close(ConnectionId) override {}
  void RaiseTerm() override {}
  void ReadTerm() override {}
  void ListLive() override {}
  void Evict(std::int32_t server_id, std::int64_t epoch, std::int64_t,
             const EvictUnless&) override {
    evictions_.emplace_back(server_id, epoch);
  }
  void ReadServer(std::int32_t) override {}
  void Want(std::int32_t, std::int64_t, std::int64_t) override {}
  void Unwant(std::int32_t, std::int64_t, std::int64_t) override {}
  void ReadYields() override {}
  void LeaseOver(std::int32_t, std::int64_t) override {}
  void StopServer(std::int32_t server_id, std::uint64_t ticket) override {
    stops_.emplace_back(server_id, ticket);
  }
  void Alert(const GlobalAlert& alert) override { alerts_.push_back(alert); }

  Time now_ = seconds(1000);
  std::optional<GlobalServer> machine_;
  std::vector<GlobalAlert> alerts_;
  std::vector<std::pair<ConnectionId, std::string>> grants_;
  std::vector<std::pair<std::int32_t, std::int64_t>> evictions_;
  std::vector<std::pair<std::int32_t, std::uint64_t>> stops_;
};

TEST_F(OperatorsTest, TellsOfItsRecovery) {
  Begin({}, {{.server_id = 1, .epoch = 1, .holder = "a"}});
  EXPECT_THAT(Kinds(), ElementsAre("recovering"));
  LogIn(11, 1, 1);
  EXPECT_THAT(Kinds(), ElementsAre("recovering", "serving"));
}

TEST_F(OperatorsTest, TellsOnceOfALostServerAndOfItsReturn) {
  Begin({});
  LogInOthers();
  LogIn(11, 1, 1);
  machine_->OnAcquire(now_, 11, 1, "key", Right::kModify);
  alerts_.clear();

  machine_->OnClosed(now_, 11);
  PassWithOthers(milliseconds(500));
  EXPECT_THAT(Kinds(), IsEmpty()) << "a moment is no loss";
  PassWithOthers(seconds(5));
  ASSERT_THAT(Kinds(), ElementsAre("lost"));
  EXPECT_EQ(1, alerts_[0].server_id);
  EXPECT_THAT(alerts_[0].text, HasSubstr("1 rights to write and 0 to read"));

  LogIn(12, 1, 1);
  EXPECT_THAT(Kinds(), ElementsAre("lost", "returned"));
}

TEST_F(OperatorsTest, AnOrderlyEndIsNoLoss) {
  Begin({});
  LogInOthers();
  LogIn(11, 1, 1);
  alerts_.clear();
  machine_->OnNormalClose(now_, 11);
  PassWithOthers(seconds(5));
  EXPECT_THAT(Kinds(), IsEmpty());
}

TEST_F(OperatorsTest, TellsOfEvictionAndOfRightsThatAreFree) {
  Begin({});
  LogInOthers();
  LogIn(11, 1, 3);
  machine_->OnAcquire(now_, 11, 1, "key", Right::kModify);
  alerts_.clear();
  const ServerView view = Server(1);

  EXPECT_TRUE(machine_->Cleanup(now_, 1, 3, view.session));
  machine_->OnEvicted(now_, 1, 3, EvictOutcome::kEvicted);
  Pass(Time{0});  // It looks at the database now.
  machine_->OnLiveServers(
      now_, std::vector<LiveServer>{{.server_id = 1, .epoch = 3, .holder = {}, .fenced = true}});
  PassWithOthers(seconds(10));

  EXPECT_THAT(Kinds(), ElementsAre("evicted", "freed"));
  EXPECT_EQ(0U, machine_->directory().key_count());
}

TEST_F(OperatorsTest, ATakeOverIsTold) {
  Begin({});
  machine_->OnTerm(now_, std::int64_t{6});
  EXPECT_THAT(Kinds(), Contains("deposed"));
}

TEST_F(OperatorsTest, ShowsWhatItKnowsOfAServer) {
  Begin({});
  LogInOthers();
  LogIn(11, 1, 3);
  machine_->OnAcquire(now_, 11, 1, "a", Right::kModify);
  machine_->OnAcquire(now_, 11, 2, "b", Right::kShare);
  machine_->OnAcquire(now_, 11, 3, "c", Right::kShare);
  machine_->OnAcquire(now_, 101, 1, "c", Right::kShare);
  machine_->OnRelease(now_, 11, 4, "b");

  EXPECT_EQ(3, Server(1).epoch);
  EXPECT_EQ(11U, Server(1).connection);
  EXPECT_EQ(1U, Server(1).rights.modify);
  EXPECT_EQ(1U, Server(1).rights.share);
  EXPECT_EQ(1U, Server(101).rights.share);
  machine_->OnClosed(now_, 11);
  PassWithOthers(seconds(2));
  EXPECT_EQ(0U, Server(1).connection);
  EXPECT_EQ(seconds(2), Server(1).silent_for);
}

TEST_F(OperatorsTest, CleansUpNoOtherProcessThanTheOneThatWasSeen) {
  Begin({});
  LogIn(11, 1, 3);
  const std::uint64_t session = Server(1).session;
  EXPECT_FALSE(machine_->Cleanup(now_, 1, 2, session));
  EXPECT_FALSE(machine_->Cleanup(now_, 1, 4, session));
  EXPECT_FALSE(machine_->Cleanup(now_, 1, 3, session + 1));
  EXPECT_FALSE(machine_->Cleanup(now_, 2, 3, session));
  EXPECT_THAT(evictions_, IsEmpty());
  EXPECT_TRUE(machine_->Cleanup(now_, 1, 3, session));
  EXPECT_THAT(evictions_, ElementsAre(std::pair(1, 3)));
  EXPECT_FALSE(machine_->Cleanup(now_, 1, 3, session)) << "it is under way";
}

TEST_F(OperatorsTest, EachLoginOfAnOldPeerIsAnotherSession) {
  BeginWithOldPeers();
  ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 11, 1, false));
  const std::uint64_t first = Server(1).session;
  machine_->OnClosed(now_, 11);
  ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 12, 1, true));
  EXPECT_EQ(first, Server(1).session) << "the same process has come back";
  machine_->OnClosed(now_, 12);
  ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 13, 1, false));
  EXPECT_NE(first, Server(1).session);
  EXPECT_FALSE(machine_->Cleanup(now_, 1, 0, first));
}

// --- old peers that can be stopped ---------------------------------------------------------------

class OldPeerTest : public OperatorsTest {
 protected:
  // An old peer with a right that others want.
  void LoseAnOldPeer() {
    BeginWithOldPeers();
    LogInOthers();
    ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 11, 1, false));
    machine_->OnAcquire(now_, 11, 1, "key", Right::kModify);
    grants_.clear();
    machine_->OnClosed(now_, 11);
    machine_->OnAcquire(now_, 101, 1, "key", Right::kModify);
    alerts_.clear();
  }
  bool Granted() {
    machine_->OnAcquire(now_, 102, 2, "key", Right::kModify);
    return !grants_.empty();
  }
};

TEST_F(OldPeerTest, IsStoppedWhenItIsSilentAndInTheWay) {
  LoseAnOldPeer();
  PassWithOthers(seconds(7));
  EXPECT_THAT(stops_, IsEmpty());
  PassWithOthers(seconds(2));
  ASSERT_EQ(1U, stops_.size());
  EXPECT_EQ(1, stops_[0].first);
  EXPECT_FALSE(Granted()) << "not before it is certain";

  machine_->OnStopped(now_, 1, stops_[0].second, true);
  EXPECT_TRUE(Granted());
  EXPECT_THAT(Kinds(), ElementsAre("lost", "evicted", "freed"));
}

TEST_F(OldPeerTest, KeepsItsRightsIfItCannotBeStopped) {
  LoseAnOldPeer();
  PassWithOthers(seconds(9));
  ASSERT_EQ(1U, stops_.size());
  machine_->OnStopped(now_, 1, stops_[0].second, false);
  EXPECT_THAT(Kinds(), Contains("stop_failed"));
  PassWithOthers(seconds(29));
  EXPECT_FALSE(Granted());
  EXPECT_EQ(1U, stops_.size());
  PassWithOthers(seconds(2));
  EXPECT_EQ(2U, stops_.size()) << "tried again";
  PassWithOthers(seconds(200));
  EXPECT_FALSE(Granted()) << "time alone frees nothing";
}

TEST_F(OldPeerTest, MayComeBackIfItCouldNotBeStopped) {
  LoseAnOldPeer();
  PassWithOthers(seconds(9));
  EXPECT_FALSE(machine_->OnUnfencedLogin(now_, 12, 1, true)) << "it is being stopped";
  machine_->OnStopped(now_, 1, stops_[0].second, false);
  EXPECT_TRUE(machine_->OnUnfencedLogin(now_, 13, 1, true));
  EXPECT_EQ(1U, Server(1).rights.modify);
}

TEST_F(OldPeerTest, ThatIsConnectedOrInNobodysWayIsLeftAlone) {
  BeginWithOldPeers();
  LogInOthers();
  ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 11, 1, false));
  ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 12, 2, false));
  machine_->OnAcquire(now_, 12, 1, "key", Right::kModify);
  machine_->OnClosed(now_, 12);
  PassWithOthers(seconds(100));
  EXPECT_THAT(stops_, IsEmpty());
}

TEST_F(OldPeerTest, IsFreeAtOnceWhenOperatorsAskAndItIsStopped) {
  LoseAnOldPeer();
  EXPECT_TRUE(machine_->Cleanup(now_, 1, 0, Server(1).session));
  ASSERT_EQ(1U, stops_.size());
  EXPECT_FALSE(Granted());
  machine_->OnStopped(now_, 1, stops_[0].second, true);
  EXPECT_TRUE(Granted());
}

TEST_F(OldPeerTest, IsWaitedForWhenOperatorsAskAndItCannotBeStopped) {
  LoseAnOldPeer();
  EXPECT_TRUE(machine_->Cleanup(now_, 1, 0, Server(1).session));
  machine_->OnStopped(now_, 1, stops_[0].second, false);
  PassWithOthers(seconds(74));
  EXPECT_FALSE(Granted());
  PassWithOthers(seconds(2));
  EXPECT_TRUE(Granted());
}

TEST_F(OldPeerTest, IsNotFreedByTheAnswerToAnOlderQuestion) {
  LoseAnOldPeer();
  EXPECT_TRUE(machine_->Cleanup(now_, 1, 0, Server(1).session));
  const std::uint64_t late = stops_[0].second;
  PassWithOthers(seconds(76));  // Waited out; it is started again, and lost again.
  ASSERT_TRUE(machine_->OnUnfencedLogin(now_, 21, 1, false));
  grants_.clear();
  machine_->OnAcquire(now_, 21, 1, "other", Right::kModify);
  grants_.clear();
  EXPECT_TRUE(machine_->Cleanup(now_, 1, 0, Server(1).session));

  machine_->OnStopped(now_, 1, late, true);

  machine_->OnAcquire(now_, 101, 5, "other", Right::kModify);
  EXPECT_THAT(grants_, Not(Contains(std::pair<ConnectionId, std::string>(101, "other"))));
}

}  // namespace
}  // namespace zeze::global
