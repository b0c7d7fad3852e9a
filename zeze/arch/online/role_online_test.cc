#include "zeze/arch/online/role_online.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/fake_links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/result_code.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Zeze::Builtin::LinkdBase::ReportError;

constexpr RoleId kRole = 7;

// One life of a server process over a directory.
class Process {
 public:
  Process(const std::string& directory, testing::FakeLinks& links, std::int32_t main_version = 0)
      : online({}, {"battle.north"}), links_(links) {
    auto opened = Application::Open("test", {.server_id = 3,
                                             .app_main_version = main_version,
                                             .storage = {.url = "rocksdb:" + directory},
                                             .worker_threads = 2});
    EXPECT_TRUE(opened.ok());
    application_ = std::move(opened).value();
    for (const std::string_view set : {"", "battle.north"}) {
      online.logins(set).On(LoginChange::kLogout,
                            {.in_transaction = [this](Transaction&, const auto& login) {
                              reasons.push_back(login.reason);
                              return 0;
                            }});
    }
    application_->AddModule(online);
    online.Connect(links);
    const Result<void> started = application_->Start();
    EXPECT_TRUE(started.ok());
  }

  std::int64_t LogIn(RoleId role, const LinkAddress& link, const std::string& set = "") {
    return Run(link, "", "", [&](Transaction& tx, Session& session) {
      return online.ProcessLogin(tx, session, {.RoleId = role, .OnlineSetName = set});
    });
  }
  std::int64_t LogOut(RoleId role, const LinkAddress& link, const std::string& set = "") {
    return Run(link, std::to_string(role), set, [&](Transaction& tx, Session& session) {
      return online.ProcessLogout(tx, session);
    });
  }
  bool IsLoggedIn(RoleId role, std::string_view set = "") {
    bool found = false;
    application_->Call("find", [&](Transaction& tx) {
      found = online.logins(set).Find(tx, role).has_value();
      return 0;
    });
    return found;
  }
  void Stop() { EXPECT_TRUE(application_->Stop().ok()); }
  // Everything is saved, nothing is ended in order.
  void Crash() {
    EXPECT_TRUE(application_->engine().CheckpointNow().ok());
    application_->engine().Abandon();
    application_.reset();
  }

  template <typename Handle>
  std::int64_t Run(const LinkAddress& link, std::string context, std::string set, Handle handle) {
    const auto session = std::make_shared<ProviderSession>(
        links_, ProviderSession::State{.address = link,
                                       .account = "ann",
                                       .context = std::move(context),
                                       .online_set_name = std::move(set)});
    return application_->Call("request", [&](Transaction& tx) { return handle(tx, *session); });
  }

  std::vector<LogoutReason> reasons;
  RoleOnline online;

 private:
  testing::FakeLinks& links_;
  std::unique_ptr<Application> application_;
};

class RoleOnlineTest : public ::testing::Test {
 protected:
  TempDirectory directory_;
  testing::FakeLinks links_;
};

TEST_F(RoleOnlineTest, SetsAreApart) {
  Process server(directory_.path(), links_);
  const LinkAddress world = links_.Connect("g1");
  const LinkAddress battle = links_.Connect("g1");

  EXPECT_EQ(server.LogIn(kRole, world), 0);
  EXPECT_EQ(server.LogIn(kRole, battle, "battle.north"), 0);

  EXPECT_TRUE(server.IsLoggedIn(kRole));
  EXPECT_TRUE(server.IsLoggedIn(kRole, "battle.north"));
  EXPECT_THAT(links_.Story(battle), ElementsAre("state 7 in battle.north"));
  EXPECT_EQ(server.online.TakeCount().online, 2);
  EXPECT_EQ(server.LogOut(kRole, battle, "battle.north"), 0);
  EXPECT_TRUE(server.IsLoggedIn(kRole));
  EXPECT_FALSE(server.IsLoggedIn(kRole, "battle.north"));
}

// The peer has one queue of reliable notifies for all sets of a role.
TEST_F(RoleOnlineTest, Defect26EachSetOfARoleHasAQueueOfItsOwn) {
  Process server(directory_.path(), links_);
  const LinkAddress world = links_.Connect("g1");
  const LinkAddress battle = links_.Connect("g1");
  ASSERT_EQ(server.LogIn(kRole, world), 0);
  ASSERT_EQ(server.LogIn(kRole, battle, "battle.north"), 0);
  const auto notify = [&](const LinkAddress& link, const std::string& set, int count) {
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(server.Run(link, std::to_string(kRole), set,
                           [&](Transaction& tx, Session&) {
                             server.online.logins(set).Listen(tx, kRole, "mail");
                             return server.online.logins(set).SendReliable<ReportError>(
                                 tx, kRole, "mail", {.code = i});
                           }),
                0);
    }
  };
  const auto confirm = [&](const LinkAddress& link, const std::string& set, std::int64_t index) {
    return server.Run(link, std::to_string(kRole), set, [&](Transaction& tx, Session& session) {
      return server.online.logins(set).ConfirmNotifies(tx, session, {.index = index}, false);
    });
  };

  notify(world, "", 2);
  notify(battle, "battle.north", 300);  // More than it may have.

  EXPECT_EQ(confirm(battle, "battle.north", 300), ModuleErrorCode(11013, 6));
  EXPECT_EQ(confirm(world, "", 2), 0);
  EXPECT_NE(confirm(world, "", 3), 0);  // There were no more.
}

TEST_F(RoleOnlineTest, AConnectionIsInOneSet) {
  Process server(directory_.path(), links_);
  const LinkAddress link = links_.Connect("g1");
  ASSERT_EQ(server.LogIn(kRole, link), 0);

  EXPECT_EQ(server.LogIn(8, link, "battle.north"), 0);

  EXPECT_FALSE(server.IsLoggedIn(kRole));
  EXPECT_TRUE(server.IsLoggedIn(8, "battle.north"));
}

// The gateway stamps messages with what it knew when it sent them on.
TEST_F(RoleOnlineTest, MessagesSentRightBehindALoginAreThoseOfItsRole) {
  Process server(directory_.path(), links_);
  const LinkAddress link = links_.Connect("g1");
  ASSERT_EQ(server.LogIn(kRole, link, "battle.north"), 0);

  EXPECT_EQ(server.Run(link, "", "",
                       [&](Transaction& tx, Session& session) {
                         EXPECT_EQ(server.online.logins("battle.north").LoginOf(tx, session)->key,
                                   kRole);
                         return server.online.ProcessLogout(tx, session);
                       }),
            0);

  EXPECT_FALSE(server.IsLoggedIn(kRole, "battle.north"));
}

TEST_F(RoleOnlineTest, AnUnknownSetIsKicked) {
  Process server(directory_.path(), links_);
  const LinkAddress link = links_.Connect("g1");

  EXPECT_EQ(server.LogIn(kRole, link, "nowhere"), result_code::kLogicError);

  EXPECT_THAT(links_.Story(link), Contains("kick 6"));
}

TEST_F(RoleOnlineTest, AStopLogsOut) {
  Process server(directory_.path(), links_);
  ASSERT_EQ(server.LogIn(kRole, links_.Connect("g1")), 0);
  ASSERT_EQ(server.LogIn(kRole, links_.Connect("g1"), "battle.north"), 0);

  server.Stop();

  EXPECT_THAT(server.reasons, ElementsAre(LogoutReason::kServerGone, LogoutReason::kServerGone));
}

TEST_F(RoleOnlineTest, AStartEndsWhatACrashLeftBehind) {
  {
    Process server(directory_.path(), links_);
    ASSERT_EQ(server.LogIn(kRole, links_.Connect("g1")), 0);
    ASSERT_EQ(server.LogIn(8, links_.Connect("g1"), "battle.north"), 0);
    server.Crash();
  }

  Process server(directory_.path(), links_);

  EXPECT_THAT(server.reasons, ElementsAre(LogoutReason::kServerGone, LogoutReason::kServerGone));
  EXPECT_FALSE(server.IsLoggedIn(kRole));
  EXPECT_FALSE(server.IsLoggedIn(8, "battle.north"));
  EXPECT_EQ(server.LogIn(kRole, links_.Connect("g1")), 0);
}

TEST_F(RoleOnlineTest, AnotherMainVersionSharesOnlyWhoIsLoggedIn) {
  {
    Process server(directory_.path(), links_);
    ASSERT_EQ(server.LogIn(kRole, links_.Connect("g1")), 0);
    server.Stop();
  }
  Process server(directory_.path(), links_, 2);

  EXPECT_EQ(server.online.tOnline.name(), "Zeze_Builtin_Game_Online_tOnline__2");
  EXPECT_EQ(server.online.tOnlineShared.name(), "Zeze_Builtin_Game_Online_tOnlineShared");
  ASSERT_EQ(server.LogIn(kRole, links_.Connect("g1")), 0);
  server.Run({}, "", "", [&](Transaction& tx, Session&) {
    EXPECT_EQ(server.online.logins().Find(tx, kRole)->version, 2);
    return 0;
  });
}

TEST_F(RoleOnlineTest, TablesOfASetAreCalledAsThePeerCallsThem) {
  RoleOnline online({}, {"battle.north"});
  std::vector<std::string_view> names;
  for (const TableBase* table : online.Tables()) names.push_back(table->descriptor().name);

  EXPECT_THAT(names, Contains("Zeze_Builtin_Game_Online_tOnlineShared__battle_north"));
  EXPECT_THAT(names, Contains("Zeze_Builtin_Game_Online_tlocal__battle_north"));
}

}  // namespace
}  // namespace zeze::arch
