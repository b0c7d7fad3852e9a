// Logins and reliable notifies of clients, against gateways that do what the test says.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/client/client.h"
#include "zeze/client/login_as.h"
#include "zeze/messages/notify_hash.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/service_fixture.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

namespace role = Zeze::Builtin::Game::Online;
using std::chrono::milliseconds;
using testing::MustListen;
using testing::Text;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;
using Zeze::Builtin::Online::BReliableNotify;

constexpr std::chrono::seconds kPatience(60);
constexpr std::int64_t kModule = std::int64_t{11013} << 32;
constexpr std::int64_t kLogInAfresh = kModule | 6;
constexpr std::int64_t kNotLoggedIn = kModule | 7;

struct Mail {
  using Argument = Text;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 1, .protocol_id = 90, .full_name = "test.Mail"};
};

std::string FrameOf(const std::string& text) {
  ByteWriter payload;
  Text{text}.Encode(payload);
  ByteWriter out;
  EncodeFrame({.module_id = Mail::kDescriptor.module_id,
               .protocol_id = Mail::kDescriptor.protocol_id,
               .payload = payload.view()},
              out);
  return out.Release();
}

// A gateway and the servers after it, with one role.
class World {
 public:
  World()
      : io_({.name = "world"}), service_(io_, {.name = "gate", .handshake = HandshakeOptions{}}) {
    service_.Handle<role::Login>([this](Request<role::Login> request) {
      MutexLock lock(mutex_);
      const std::int64_t code = TakeAnswer();
      Note("login");
      if (code == 0) {
        frames_.clear();
        index_ = confirmed_ = 0;
        hash_ = kNotifyHashAtLogin;
        client_ = request.connection();
      }
      (void)request.AnswerCode(code);
    });
    service_.Handle<role::ReLogin>([this](Request<role::ReLogin> request) {
      MutexLock lock(mutex_);
      std::int64_t code = TakeAnswer();
      if (code == 0) code = Confirm(request.argument());
      Note("relogin " + std::to_string(request.argument().ReliableNotifyConfirmIndex));
      if (code == 0) client_ = request.connection();
      (void)request.AnswerCode(code);
      changed_.NotifyAll();
      if (code == 0) SendRest();
    });
    service_.Handle<role::ReliableNotifyConfirm>(
        [this](Request<role::ReliableNotifyConfirm> request) {
          MutexLock lock(mutex_);
          ++confirms_;
          std::int64_t code = TakeAnswer();
          if (code == 0) code = client_ == request.connection() ? 0 : kNotLoggedIn;
          if (code == 0) code = Confirm(request.argument());
          if (request.argument().Sync) Note("sync");
          (void)request.AnswerCode(code);
          changed_.NotifyAll();
          if (code == 0 && request.argument().Sync) SendRest();
        });
    address_ = MustListen(service_, {});
  }

  ClientOptions::Gateway gateway() const { return {address_.IpText(), address_.port()}; }

  // Keeps it, and sends it unless it is lost on the way.
  void Notify(const std::string& text, bool lost = false) {
    MutexLock lock(mutex_);
    frames_.push_back(FrameOf(text));
    const std::int64_t index = index_++;
    if (!lost) Send(index, {frames_.back()});
  }
  // Out of order, or once more.
  void SendAgain(std::int64_t index) {
    MutexLock lock(mutex_);
    if (index < confirmed_) return;
    Send(index, {frames_.at(static_cast<std::size_t>(index - confirmed_))});
  }
  void CutAll() {
    for (const ConnectionPtr& connection : service_.connections()) connection->Close("cut");
  }
  // The server with the login dies.
  void LoseServer() {
    MutexLock lock(mutex_);
    const ConnectionPtr client = std::exchange(client_, nullptr);
    if (client == nullptr) return;
    (void)client->Send<ReportError>(
        {.from = BReportError::FromLink, .code = BReportError::CodeProviderBroken});
  }
  // A crash: the last notifies never happened.
  void TakeBack(std::size_t count) {
    MutexLock lock(mutex_);
    for (; count > 0; --count) {
      frames_.pop_back();
      --index_;
    }
  }
  void AnswerNext(std::int64_t code) {
    MutexLock lock(mutex_);
    answers_.push_back(code);
  }

  std::vector<std::string> story() const {
    MutexLock lock(mutex_);
    return story_;
  }
  int confirms() const {
    MutexLock lock(mutex_);
    return confirms_;
  }
  bool AwaitConfirmed(std::int64_t index) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (confirmed_ < index) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  void Note(std::string line) ZEZE_REQUIRES(mutex_) { story_.push_back(std::move(line)); }
  std::int64_t TakeAnswer() ZEZE_REQUIRES(mutex_) {
    if (answers_.empty()) return 0;
    const std::int64_t code = answers_.front();
    answers_.pop_front();
    return code;
  }
  template <typename Argument>
  std::int64_t Confirm(const Argument& argument) ZEZE_REQUIRES(mutex_) {
    const std::int64_t index = argument.ReliableNotifyConfirmIndex;
    if (index < confirmed_ || index > index_) return kLogInAfresh;
    std::int64_t hash = hash_;
    for (std::int64_t i = confirmed_; i < index; ++i) {
      hash = ExtendNotifyHash(hash, frames_.at(static_cast<std::size_t>(i - confirmed_)));
    }
    if (hash != argument.ReliableNotifyHash) return kLogInAfresh;
    hash_ = hash;
    frames_.erase(frames_.begin(), frames_.begin() + (index - confirmed_));
    confirmed_ = index;
    return 0;
  }
  void SendRest() ZEZE_REQUIRES(mutex_) {
    if (!frames_.empty()) Send(confirmed_, {frames_.begin(), frames_.end()});
  }
  void Send(std::int64_t index, const std::vector<std::string>& frames) ZEZE_REQUIRES(mutex_) {
    BReliableNotify notify{.ReliableNotifyIndex = index};
    for (const std::string& frame : frames) notify.Notifies.PushBack(Binary{frame});
    if (client_ != nullptr) (void)client_->Send<role::SReliableNotify>(notify);
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> frames_ ZEZE_GUARDED_BY(mutex_);  // From confirmed_ on.
  std::int64_t index_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::int64_t confirmed_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::int64_t hash_ ZEZE_GUARDED_BY(mutex_) = kNotifyHashAtLogin;
  ConnectionPtr client_ ZEZE_GUARDED_BY(mutex_);  // That is logged in.
  std::deque<std::int64_t> answers_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::string> story_ ZEZE_GUARDED_BY(mutex_);
  int confirms_ ZEZE_GUARDED_BY(mutex_) = 0;
  IoThreads io_;
  Service service_;
  NetAddress address_;
};

// What the application sees, in order.
class Seen {
 public:
  void Add(std::string what) {
    MutexLock lock(mutex_);
    all_.push_back(std::move(what));
    changed_.NotifyAll();
  }
  std::vector<std::string> Await(std::size_t count) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (all_.size() < count) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) break;
    }
    return all_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> all_ ZEZE_GUARDED_BY(mutex_);
};

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReliableClientTest : public ::testing::Test {
 protected:
  ReliableClientTest() : io_({.name = "client-io"}) { MakeClient(std::chrono::hours(1)); }
  ~ReliableClientTest() override { client_.reset(); }

  void MakeClient(std::chrono::nanoseconds poll_period) {
    client_ = std::make_unique<Client>(io_, ClientOptions{.gateways = {world_.gateway()},
                                                          .login = RoleLogin{.role_id = 7},
                                                          .first_delay = milliseconds(10),
                                                          .delay_max = milliseconds(50),
                                                          .notify_poll_period = poll_period});
    client_->OnReliable<Mail>([this](const Text& text) { seen_.Add(text.text); });
    client_->OnLogin([this](LoginOutcome outcome) {
      seen_.Add(outcome == LoginOutcome::kFresh ? "fresh" : "resumed");
    });
  }
  void Start() {
    ASSERT_TRUE(client_->Start().ok());
    const Result<void> ready = client_->AwaitReady(kPatience);
    ASSERT_TRUE(ready.ok()) << ready.error().message();
    ASSERT_TRUE(client_->logged_in());
  }

  World world_;
  IoThreads io_;
  Seen seen_;
  std::unique_ptr<Client> client_;
};

TEST_F(ReliableClientTest, NotifiesComeInOrderAndAreConfirmed) {
  Start();
  for (const char* text : {"a", "b", "c"}) world_.Notify(text);

  EXPECT_THAT(seen_.Await(4), ElementsAre("fresh", "a", "b", "c"));
  EXPECT_TRUE(world_.AwaitConfirmed(3));
  EXPECT_LE(world_.confirms(), 3);
}

TEST_F(ReliableClientTest, ALostConnectionIsResumed) {
  Start();
  world_.Notify("a");
  seen_.Await(2);
  world_.CutAll();
  world_.Notify("b");
  world_.Notify("c");

  EXPECT_THAT(seen_.Await(5), ElementsAre("fresh", "a", "resumed", "b", "c"));
  EXPECT_TRUE(world_.AwaitConfirmed(3));
}

TEST_F(ReliableClientTest, AGapIsAskedFor) {
  Start();
  world_.Notify("a", /*lost=*/true);
  world_.Notify("b");

  EXPECT_THAT(seen_.Await(3), ElementsAre("fresh", "a", "b"));
  EXPECT_THAT(world_.story(), ElementsAre("login", "sync"));
}

// Nothing comes after it that would show the gap.
TEST_F(ReliableClientTest, TheLastOneThatWasLostIsFoundByAskingNowAndThen) {
  MakeClient(milliseconds(50));
  Start();
  world_.Notify("a", /*lost=*/true);

  EXPECT_THAT(seen_.Await(2), ElementsAre("fresh", "a"));
}

TEST_F(ReliableClientTest, DuplicatesAndSwappedOnesAreSeenOnce) {
  Start();
  world_.Notify("a", true);
  world_.Notify("b", true);
  world_.Notify("c", true);
  for (const std::int64_t index : {2, 0, 0, 2, 1, 0, 1, 2}) world_.SendAgain(index);
  world_.Notify("d");

  EXPECT_THAT(seen_.Await(5), ElementsAre("fresh", "a", "b", "c", "d"));
  EXPECT_TRUE(world_.AwaitConfirmed(4));
  EXPECT_THAT(seen_.Await(0), ElementsAre("fresh", "a", "b", "c", "d"));
}

TEST_F(ReliableClientTest, ALostServerIsReplacedOnTheSameConnection) {
  Start();
  world_.Notify("a");
  seen_.Await(2);
  const ConnectionPtr before = client_->connection();
  for (const std::int64_t code : {-9, -10}) world_.AnswerNext(code);  // It takes its time.
  world_.LoseServer();
  world_.Notify("b");

  EXPECT_THAT(seen_.Await(4), ElementsAre("fresh", "a", "resumed", "b"));
  EXPECT_EQ(client_->connection(), before);
}

// What a crash takes back was seen; its numbers go to others, which the client must not miss.
TEST_F(ReliableClientTest, APastThatHasChangedBeginsAfresh) {
  Start();
  world_.Notify("a");
  ASSERT_TRUE(world_.AwaitConfirmed(1));
  world_.Notify("taken back");
  seen_.Await(3);
  world_.CutAll();
  world_.TakeBack(1);
  world_.Notify("another");
  world_.Notify("b");
  seen_.Await(4);
  world_.Notify("c");

  EXPECT_THAT(seen_.Await(5), ElementsAre("fresh", "a", "taken back", "fresh", "c"));
}

TEST_F(ReliableClientTest, ARefusedConfirmationBeginsAfreshOnANewConnection) {
  Start();
  world_.AnswerNext(kLogInAfresh);
  world_.Notify("a");

  EXPECT_THAT(seen_.Await(3), ElementsAre("fresh", "a", "fresh"));
  EXPECT_THAT(world_.story(), ElementsAre("login", "login"));
  world_.Notify("b");
  EXPECT_THAT(seen_.Await(4).back(), "b");
}

TEST_F(ReliableClientTest, AServerThatHasForgottenTheLoginIsToldAgain) {
  Start();
  world_.AnswerNext(kNotLoggedIn);
  world_.Notify("a");

  EXPECT_THAT(seen_.Await(3), ElementsAre("fresh", "a", "resumed"));
  EXPECT_TRUE(world_.AwaitConfirmed(1));
}

TEST_F(ReliableClientTest, ManyAreConfirmedTogether) {
  Start();
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i) world_.Notify(std::to_string(i));

  EXPECT_EQ(seen_.Await(kMany + 1).size(), kMany + 1);
  EXPECT_TRUE(world_.AwaitConfirmed(kMany));
  EXPECT_LE(world_.confirms(), kMany / 20);
}

TEST_F(ReliableClientTest, WithoutALoginThereIsNoneAndOneCanComeLater) {
  Client client(io_, {.gateways = {world_.gateway()}, .first_delay = milliseconds(10)});
  Seen seen;
  client.OnReliable<Mail>([&](const Text& text) { seen.Add(text.text); });
  ASSERT_TRUE(client.Start().ok());
  ASSERT_TRUE(client.AwaitReady(kPatience).ok());
  EXPECT_FALSE(client.logged_in());
  constexpr std::int64_t kNotYours = (std::int64_t{200} << 32) | 3;
  world_.AnswerNext(kNotYours);
  client.LogIn(RoleLogin{.role_id = 8}, [&](const Result<LoginOutcome>& outcome) {
    seen.Add(outcome.ok() ? "?" : outcome.error().message());
  });
  EXPECT_THAT(seen.Await(1), ElementsAre(HasSubstr("refused with code")));
  EXPECT_FALSE(client.logged_in());

  client.LogIn(RoleLogin{.role_id = 7}, [&](const Result<LoginOutcome>& outcome) {
    seen.Add(outcome.ok() ? "in" : outcome.error().message());
  });
  EXPECT_EQ(seen.Await(2).back(), "in");
  world_.Notify("a");
  EXPECT_EQ(seen.Await(3).back(), "a");
  client.Stop();
}

// Everything that can go wrong, at random: each notify once, in order, or a fresh login.
TEST_F(ReliableClientTest, NothingIsMissedOrSeenTwiceWhateverBreaks) {
  constexpr std::uint32_t kSeed = 20261116;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  MakeClient(milliseconds(200));
  Start();
  constexpr int kMany = 2000;
  for (int i = 0; i < kMany; ++i) {
    world_.Notify(std::to_string(i), random() % 20 == 0);
    switch (random() % 100) {
      case 0:
        world_.CutAll();
        break;
      case 1:
        world_.LoseServer();
        break;
      case 2:
        world_.SendAgain(i - static_cast<int>(random() % 3));
        break;
      case 3:
        world_.AnswerNext(-10);
        break;
      case 4:
        world_.AnswerNext(kNotLoggedIn);
        break;
      case 5:
        SystemClock().SleepFor(milliseconds(random() % 20));
        break;
      default:
        break;
    }
  }
  world_.Notify("last");
  ASSERT_TRUE(world_.AwaitConfirmed(kMany + 1));

  int next = 0;
  for (const std::string& what : seen_.Await(0)) {
    if (what == "resumed" || what == "last") continue;
    if (what == "fresh") {
      ASSERT_EQ(next, 0);  // Only the first: nothing was ever void.
      continue;
    }
    ASSERT_EQ(what, std::to_string(next));
    ++next;
  }
  EXPECT_EQ(next, kMany);
}

}  // namespace
}  // namespace zeze
