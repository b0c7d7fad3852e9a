// Reliable notifies: once, in order, without a gap; or the client is told to log in afresh.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/testing/role_servers.h"
#include "zeze/base/result_code.h"
#include "zeze/messages/notify_hash.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;
using Zeze::Builtin::Online::BReliableNotify;

constexpr RoleId kRole = 7;
constexpr std::int64_t kLogInAfresh = ModuleErrorCode(11013, 6);

template <typename Bean>
Bean Decode(std::string_view frame) {
  Bean bean;
  const Result<std::optional<RawFrame>> raw = TakeFrame(frame, 1 << 20);
  ByteReader in(ParseFrame(*raw.value()).value().payload);
  bean.Decode(in);
  EXPECT_TRUE(in.ok());
  return bean;
}

// A client that keeps count, as clients must.
class Client {
 public:
  // Takes what has come on a connection since the last call; the numbers that were sent, in order.
  std::vector<int> Take(RoleServers& servers, const LinkAddress& link) {
    std::vector<int> numbers;
    const std::vector<std::string> frames = servers.links.Frames(link);
    for (std::size_t& at = taken_[link.link_sid]; at < frames.size(); ++at) {
      const auto notify = Decode<BReliableNotify>(frames[at]);
      EXPECT_EQ(notify.ReliableNotifyIndex, index_);
      for (const Binary& one : notify.Notifies) {
        numbers.push_back(Decode<BReportError>(one.bytes).code);
        hash_ = ExtendNotifyHash(hash_, one.bytes);
      }
      index_ = notify.ReliableNotifyIndex + static_cast<std::int64_t>(notify.Notifies.size());
    }
    return numbers;
  }

  std::int64_t index() const { return index_; }
  std::int64_t hash() const { return hash_; }

 private:
  std::map<std::int64_t, std::size_t> taken_;
  std::int64_t index_ = 0;
  std::int64_t hash_ = kNotifyHashAtLogin;
};

class ReliableNotifyTest : public ::testing::Test {
 protected:
  explicit ReliableNotifyTest(OnlineOptions options = {})
      : servers_(2, options, [](RoleServer& server) {
          server.logins.On(LoginChange::kLogin,
                           {.in_transaction = [&](Transaction& tx, const auto& login) {
                             server.logins.Listen(tx, login.key, "mail");
                             return 0;
                           }});
        }) {}

  std::int64_t Notify(int number, std::size_t server = 0, std::string_view mark = "mail") {
    return servers_.application->Call("notify", [&](Transaction& tx) {
      return servers_[server].logins.SendReliable<ReportError>(
          tx, kRole, mark, {.code = number, .desc = std::string(20, 'x')});
    });
  }

  LinkAddress LogIn() {
    const LinkAddress link = servers_.links.Connect("g1");
    EXPECT_EQ(servers_[0].LogIn(kRole, link), 0);
    servers_.Settle();
    return link;
  }
  LinkAddress BreakAndConnect(const LinkAddress& link) {
    servers_.links.Disconnect(link);
    servers_[0].logins.LinkBroken(link);
    return servers_.links.Connect("g2");
  }

  RoleServers servers_;
};

TEST_F(ReliableNotifyTest, ArrivesAtOnceAndIsConfirmed) {
  Client client;
  const LinkAddress link = LogIn();

  EXPECT_EQ(Notify(1), 0);
  EXPECT_EQ(Notify(2, 1), 0);  // From another server.
  EXPECT_EQ(Notify(3), 0);

  EXPECT_THAT(client.Take(servers_, link), ElementsAre(1, 2, 3));
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 2, false), 0);
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 3, true), 0);
  servers_.Settle();
  EXPECT_THAT(client.Take(servers_, link), IsEmpty());
}

TEST_F(ReliableNotifyTest, ASyncSendsWhatIsNotConfirmed) {
  const LinkAddress link = LogIn();
  for (const int number : {1, 2, 3}) EXPECT_EQ(Notify(number), 0);
  servers_.links.Forget();

  EXPECT_EQ(servers_[0].Confirm(kRole, link, 1, true), 0);
  servers_.Settle();

  const std::vector<std::string> frames = servers_.links.Frames(link);
  ASSERT_EQ(frames.size(), 1);
  const auto notify = Decode<BReliableNotify>(frames[0]);
  EXPECT_EQ(notify.ReliableNotifyIndex, 1);
  EXPECT_EQ(notify.Notifies.size(), 2);
}

TEST_F(ReliableNotifyTest, AReLoginGetsWhatWasSentMeanwhile) {
  Client client;
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(1));
  const LinkAddress again = BreakAndConnect(link);
  EXPECT_EQ(Notify(2), 0);
  EXPECT_EQ(Notify(3), 0);

  EXPECT_EQ(servers_[1].LogInAgain(kRole, again, client.index()), 0);
  servers_.Settle();

  EXPECT_THAT(client.Take(servers_, again), ElementsAre(2, 3));
  EXPECT_EQ(Notify(4), 0);
  EXPECT_THAT(client.Take(servers_, again), ElementsAre(4));
}

TEST_F(ReliableNotifyTest, AFreshLoginBeginsAnew) {
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);
  const LinkAddress again = BreakAndConnect(link);

  EXPECT_EQ(servers_[0].LogIn(kRole, again), 0);
  EXPECT_EQ(Notify(2), 0);

  Client client;
  EXPECT_THAT(client.Take(servers_, again), ElementsAre(2));
}

// The send comes after the commit, and that after a fresh login: what it counts is of the old one.
TEST_F(ReliableNotifyTest, WhatWasForAnEarlierLoginDoesNotComeToALaterOne) {
  const LinkAddress link = LogIn();
  ASSERT_EQ(servers_.application->Call(
                "notify",
                [&](Transaction& tx) {
                  tx.AfterCommit([&] { EXPECT_EQ(servers_[1].LogIn(kRole, link), 0); });
                  return servers_[0].logins.SendReliable<ReportError>(tx, kRole, "mail", {});
                }),
            0);
  servers_.Settle();
  ASSERT_EQ(Notify(5), 0);

  Client client;
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(5));
}

TEST_F(ReliableNotifyTest, WhatAReLoginIsOwedDoesNotComeToALaterOne) {
  const LinkAddress link = LogIn();
  ASSERT_EQ(Notify(1), 0);
  servers_.links.Forget();
  ASSERT_EQ(
      servers_[0].Request(servers_[0].SessionOf(link),
                          [&](Transaction& tx, Session& session) {
                            tx.AfterCommit([&] { EXPECT_EQ(servers_[1].LogIn(kRole, link), 0); });
                            return servers_[0].logins.LogInAgain(tx, session, kRole, {.index = 0});
                          }),
      0);
  servers_.Settle();
  ASSERT_EQ(Notify(5), 0);

  Client client;
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(5));
}

TEST_F(ReliableNotifyTest, NobodyListens) {
  const LinkAddress link = LogIn();

  EXPECT_EQ(Notify(1, 0, "other"), 0);
  servers_.application->Call("stop listening", [&](Transaction& tx) {
    servers_[0].logins.StopListening(tx, kRole, "mail");
    return 0;
  });
  EXPECT_EQ(Notify(2), 0);

  EXPECT_THAT(servers_.links.Frames(link), IsEmpty());
}

TEST_F(ReliableNotifyTest, WhatCannotBeConfirmedIsRefused) {
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);
  EXPECT_EQ(Notify(2), 0);
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 1, false), 0);

  EXPECT_EQ(servers_[0].Confirm(kRole, link, 0, false), kLogInAfresh);
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 3, false), kLogInAfresh);
  EXPECT_EQ(servers_[0].Confirm(kRole, servers_.links.Connect("g1"), 1, false),
            ModuleErrorCode(11013, 7));
  EXPECT_EQ(servers_[0].LogInAgain(kRole, servers_.links.Connect("g1"), 3), kLogInAfresh);

  EXPECT_EQ(servers_[0].Find(kRole)->link, link);  // Refused as a whole.
}

TEST_F(ReliableNotifyTest, AReLoginOfNobodyIsRefused) {
  EXPECT_EQ(servers_[0].LogInAgain(kRole, servers_.links.Connect("g1"), 0),
            ModuleErrorCode(11013, 5));
}

TEST_F(ReliableNotifyTest, AReLoginAfterTheLogoutIsFineAsLongAsNothingWasMissed) {
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);
  ASSERT_EQ(servers_[0].LogOut(kRole, link), 0);
  const LinkAddress again = servers_.links.Connect("g1");

  EXPECT_EQ(servers_[0].LogInAgain(kRole, again, 1), 0);

  ASSERT_EQ(servers_[0].LogOut(kRole, again), 0);
  EXPECT_EQ(Notify(2), 0);  // Nobody keeps it.
  EXPECT_EQ(servers_[0].LogInAgain(kRole, servers_.links.Connect("g1"), 1), kLogInAfresh);
  EXPECT_EQ(servers_[0].LogIn(kRole, servers_.links.Connect("g1")), 0);
}

// What a dead server had sent and not saved, nobody knows.
TEST_F(ReliableNotifyTest, AfterACrashOfItsServerAListenerLogsInAfresh) {
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);

  ASSERT_TRUE(servers_[1].logins.LogoutAllOf(1).ok());

  EXPECT_EQ(servers_[1].LogInAgain(kRole, servers_.links.Connect("g1"), 1), kLogInAfresh);
}

// Unless it can prove that it has what is left of them.
TEST_F(ReliableNotifyTest, AfterACrashOfItsServerAListenerThatProvesWhatItHasGoesOn) {
  Client client;
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);
  EXPECT_EQ(Notify(2), 0);
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(1, 2));

  ASSERT_TRUE(servers_[1].logins.LogoutAllOf(1).ok());

  const LinkAddress wrong = servers_.links.Connect("g1");
  EXPECT_EQ(servers_[1].LogInAgain(kRole, wrong, 1, client.hash()), kLogInAfresh);
  EXPECT_EQ(servers_[1].LogInAgain(kRole, wrong, 2, kNotifyHashAtLogin), kLogInAfresh);
  const LinkAddress again = servers_.links.Connect("g1");
  EXPECT_EQ(servers_[1].LogInAgain(kRole, again, 2, client.hash()), 0);
  EXPECT_EQ(Notify(3), 0);
  EXPECT_THAT(client.Take(servers_, again), ElementsAre(3));
  EXPECT_EQ(servers_[1].Confirm(kRole, again, 3, false, client.hash()), 0);
  EXPECT_EQ(servers_[1].Confirm(kRole, again, 3, false), 0);  // Proven once and for all.
}

// A crash takes back what a client has seen already, and its number goes to another one.
TEST_F(ReliableNotifyTest, AClientWithAnotherPastIsSentToAFreshLogin) {
  Client client;
  const LinkAddress link = LogIn();
  EXPECT_EQ(Notify(1), 0);
  EXPECT_EQ(Notify(2), 0);
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(1, 2));
  const std::int64_t other_past = ExtendNotifyHash(client.hash(), "never sent");

  EXPECT_EQ(servers_[0].Confirm(kRole, link, 2, false, other_past), kLogInAfresh);
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 0, true, kNotifyHashAtLogin), 0);
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 2, false, client.hash()), 0);
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 2, false, other_past), kLogInAfresh);
  EXPECT_EQ(servers_[0].LogInAgain(kRole, BreakAndConnect(link), 2, other_past), kLogInAfresh);
}

class BoundedNotifyTest : public ReliableNotifyTest {
 protected:
  explicit BoundedNotifyTest(NotifyOverflow overflow = NotifyOverflow::kRequireLogin)
      : ReliableNotifyTest({.notify_frames_max = 3, .notify_overflow = overflow}) {}
};

TEST_F(BoundedNotifyTest, Defect26AFullQueueSendsTheClientToAFreshLogin) {
  Client client;
  const LinkAddress link = LogIn();
  for (const int number : {1, 2, 3, 4, 5}) EXPECT_EQ(Notify(number), 0);

  // Whoever is connected misses nothing; but that is the end of it.
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(servers_[0].Confirm(kRole, link, 5, false), kLogInAfresh);
  const LinkAddress again = BreakAndConnect(link);
  EXPECT_EQ(servers_[0].LogInAgain(kRole, again, 5), kLogInAfresh);

  EXPECT_EQ(servers_[0].LogIn(kRole, again), 0);
  EXPECT_EQ(Notify(6), 0);
  EXPECT_EQ(servers_[0].Confirm(kRole, again, 1, false), 0);
}

TEST_F(BoundedNotifyTest, Defect26ConfirmingMakesRoom) {
  const LinkAddress link = LogIn();
  for (int number = 1; number <= 30; ++number) {
    EXPECT_EQ(Notify(number), 0);
    if (number % 3 == 0) {
      EXPECT_EQ(servers_[0].Confirm(kRole, link, number, false), 0);
    }
  }
}

class RefusingNotifyTest : public BoundedNotifyTest {
 protected:
  RefusingNotifyTest() : BoundedNotifyTest(NotifyOverflow::kRefuse) {}
};

TEST_F(RefusingNotifyTest, AFullQueueIsTheSendersProblem) {
  Client client;
  const LinkAddress link = LogIn();
  for (const int number : {1, 2, 3}) EXPECT_EQ(Notify(number), 0);

  EXPECT_EQ(Notify(4), result_code::kBusy);

  EXPECT_EQ(servers_[0].Confirm(kRole, link, 2, false), 0);
  EXPECT_EQ(Notify(5), 0);
  EXPECT_THAT(client.Take(servers_, link), ElementsAre(1, 2, 3, 5));
}

class NotifyBytesTest : public ReliableNotifyTest {
 protected:
  NotifyBytesTest() : ReliableNotifyTest({.notify_bytes_max = 100}) {}
};

TEST_F(NotifyBytesTest, BytesAreBoundedToo) {
  const LinkAddress link = LogIn();
  for (int number = 1; number <= 3; ++number) EXPECT_EQ(Notify(number), 0);

  EXPECT_EQ(servers_[0].Confirm(kRole, link, 3, false), kLogInAfresh);
}

}  // namespace
}  // namespace zeze::arch
