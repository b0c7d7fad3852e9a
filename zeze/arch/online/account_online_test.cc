#include "zeze/arch/online/account_online.h"

#include <chrono>
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
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/config/config.h"
#include "zeze/transaction/transaction.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::arch {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Zeze::Builtin::LinkdBase::ReportError;

class AccountOnlineTest : public ::testing::Test {
 protected:
  AccountOnlineTest() : online_({.clients_max = 3}) {
    auto opened = Application::Open(
        "test", {.server_id = 3, .storage = {.url = "memory:"}, .worker_threads = 2});
    EXPECT_TRUE(opened.ok());
    application_ = std::move(opened).value();
    online_.logins().On(LoginChange::kLogin,
                        {.in_transaction = [this](Transaction& tx, const auto& login) {
                          online_.logins().Listen(tx, login.key, "mail");
                          return 0;
                        }});
    application_->AddModule(online_);
    online_.Connect(links_);
    const Result<void> started = application_->Start();
    EXPECT_TRUE(started.ok());
  }

  template <typename Handle>
  std::int64_t Run(const LinkAddress& link, const std::string& client, Handle handle) {
    const auto session = std::make_shared<ProviderSession>(
        links_, ProviderSession::State{.address = link, .account = "ann", .context = client});
    return application_->Call("request", [&](Transaction& tx) { return handle(tx, *session); });
  }
  std::int64_t LogIn(const std::string& client, const LinkAddress& link) {
    return Run(link, "", [&](Transaction& tx, Session& session) {
      return online_.ProcessLogin(tx, session, {.ClientId = client});
    });
  }
  std::int64_t LogOut(const std::string& client, const LinkAddress& link) {
    return Run(link, client, [&](Transaction& tx, Session& session) {
      return online_.ProcessLogout(tx, session);
    });
  }
  std::int64_t LogInAgain(const std::string& client, const LinkAddress& link, std::int64_t index) {
    return Run(link, "", [&](Transaction& tx, Session& session) {
      return online_.ProcessReLogin(tx, session,
                                    {.ClientId = client, .ReliableNotifyConfirmIndex = index});
    });
  }
  std::int64_t Confirm(const std::string& client, const LinkAddress& link, std::int64_t index) {
    return Run(link, client, [&](Transaction& tx, Session& session) {
      return online_.ProcessReliableNotifyConfirm(
          tx, session, {.ClientId = client, .ReliableNotifyConfirmIndex = index});
    });
  }
  std::optional<Login<AccountKey>> Find(const std::string& client) {
    std::optional<Login<AccountKey>> found;
    application_->Call("find", [&](Transaction& tx) {
      found = online_.logins().Find(tx, {.Account = "ann", .ClientId = client});
      return 0;
    });
    return found;
  }

  testing::FakeLinks links_;
  AccountOnline online_;
  std::unique_ptr<Application> application_;
};

TEST_F(AccountOnlineTest, ClientsOfAnAccountAreLoggedInSideBySide) {
  const LinkAddress phone = links_.Connect("g1");
  const LinkAddress desktop = links_.Connect("g2");

  EXPECT_EQ(LogIn("phone", phone), 0);
  EXPECT_EQ(LogIn("desktop", desktop), 0);

  EXPECT_EQ(Find("phone")->link, phone);
  EXPECT_EQ(Find("phone")->version, 1);
  EXPECT_EQ(Find("desktop")->version, 2);  // Versions are counted by account.
  EXPECT_THAT(links_.Story(phone), ElementsAre("state phone"));
  EXPECT_EQ(online_.logins().online(), 2);
}

TEST_F(AccountOnlineTest, AClientIsLoggedInOnce) {
  const LinkAddress first = links_.Connect("g1");
  const LinkAddress second = links_.Connect("g2");
  ASSERT_EQ(LogIn("phone", first), 0);

  EXPECT_EQ(LogIn("phone", second), 0);

  EXPECT_EQ(Find("phone")->link, second);
  EXPECT_THAT(links_.Story(first), ElementsAre("state phone", "kick 4"));
}

TEST_F(AccountOnlineTest, WhoIsLoggedInCanLogOut) {
  const LinkAddress phone = links_.Connect("g1");
  EXPECT_EQ(LogOut("phone", phone), ModuleErrorCode(11100, 7));
  ASSERT_EQ(LogIn("phone", phone), 0);

  EXPECT_EQ(LogOut("phone", phone), 0);

  EXPECT_FALSE(Find("phone"));
  EXPECT_THAT(links_.Story(phone), ElementsAre("state phone", "state "));
}

TEST_F(AccountOnlineTest, NotifiesAreKeptByClient) {
  const LinkAddress phone = links_.Connect("g1");
  const LinkAddress desktop = links_.Connect("g1");
  ASSERT_EQ(LogIn("phone", phone), 0);
  ASSERT_EQ(LogIn("desktop", desktop), 0);

  application_->Call("notify", [&](Transaction& tx) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(online_.logins().SendReliable<ReportError>(
                    tx, {.Account = "ann", .ClientId = "phone"}, "mail", {}),
                0);
    }
    return 0;
  });

  EXPECT_THAT(links_.Frames(phone), SizeIs(3));
  EXPECT_THAT(links_.Frames(desktop), SizeIs(0));
  EXPECT_EQ(Confirm("phone", phone, 2), 0);
  EXPECT_EQ(Confirm("desktop", desktop, 1), ModuleErrorCode(11100, 6));
  EXPECT_EQ(Confirm("desktop", phone, 1), ModuleErrorCode(11100, 7));
  EXPECT_EQ(LogInAgain("phone", links_.Connect("g1"), 3), 0);
  EXPECT_EQ(LogInAgain("tablet", links_.Connect("g1"), 0), ModuleErrorCode(11100, 5));
}

TEST_F(AccountOnlineTest, ClientsThatAreLongGoneAreForgotten) {
  std::vector<LinkAddress> links;
  for (const std::string client : {"a", "b", "c"}) {
    links.push_back(links_.Connect("g1"));
    ASSERT_EQ(LogIn(client, links.back()), 0);
  }
  EXPECT_EQ(LogIn("d", links_.Connect("g1")), result_code::kBusy);  // All are online.
  ASSERT_EQ(LogOut("b", links[1]), 0);

  EXPECT_EQ(LogIn("d", links_.Connect("g1")), 0);

  EXPECT_EQ(Find("d")->version, 4);
  EXPECT_EQ(LogInAgain("b", links_.Connect("g1"), 0), ModuleErrorCode(11100, 5));
}

TEST_F(AccountOnlineTest, AConnectionThatChangesItsClientNeedsNoMoreRoom) {
  const LinkAddress link = links_.Connect("g1");
  ASSERT_EQ(LogIn("a", link), 0);
  for (const std::string client : {"b", "c"}) {
    ASSERT_EQ(LogIn(client, links_.Connect("g1")), 0);
  }

  EXPECT_EQ(LogIn("d", link), 0);

  EXPECT_FALSE(Find("a"));
  EXPECT_TRUE(Find("d"));
}

TEST(OnlineOptions, ComeFromTheConfiguration) {
  xml::Diagnostics diagnostics;
  const std::optional<Config> config =
      Config::Parse("<zeze OnlineLogoutDelay='90s'/>", "zeze.xml", {}, diagnostics);
  ASSERT_TRUE(config) << diagnostics.Format();
  EXPECT_EQ(OnlineOptionsFromConfig(*config).logout_delay, std::chrono::seconds(90));
}

TEST_F(AccountOnlineTest, AClientWithoutANameIsRefused) {
  EXPECT_EQ(LogIn("", links_.Connect("g1")), result_code::kLogicError);
}

TEST_F(AccountOnlineTest, ALinkBreaksByItsAddress) {
  const LinkAddress phone = links_.Connect("g1");
  const LinkAddress desktop = links_.Connect("g1");
  ASSERT_EQ(LogIn("phone", phone), 0);
  ASSERT_EQ(LogIn("desktop", desktop), 0);

  online_.LinkBroken(phone);

  EXPECT_EQ(Find("phone")->state, LoginState::kLinkBroken);
  EXPECT_EQ(Find("desktop")->state, LoginState::kLoggedIn);
}

TEST_F(AccountOnlineTest, AnothersWordThatALoginHasEndedIsChecked) {
  ASSERT_EQ(LogIn("phone", links_.Connect("g1")), 0);

  online_.RemoveLocal(3, "ann");
  application_->Call("look", [&](Transaction& tx) {
    EXPECT_TRUE(online_.logins().SetLocal(tx, {.Account = "ann", .ClientId = "phone"}, "x",
                                          Zeze::Builtin::LinkdBase::BReportError{}));
    return 0;
  });

  EXPECT_EQ(online_.logins().online(), 1);
}

}  // namespace
}  // namespace zeze::arch
