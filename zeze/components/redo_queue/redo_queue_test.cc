// Both sides of redo queues: a client with its store on disk, an application with its own.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/app/application.h"
#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/bean/codec.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/peer_messages.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/run_task.h"
#include "zeze/redo/testing/redo_alarms.h"
#include "zeze/storage/testing/temp_directory.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::BAccount;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TableDescriptor kAccounts{.id = 1, .name = "test_Shop_tAccount"};
constexpr std::int32_t kRecharge = 1;
constexpr std::int32_t kRefund = 2;
constexpr std::int32_t kFickle = 3;

// The application: one account for each queue, to which tasks add the number in their parameter.
struct Shop {
  Shop(const std::string& database, std::uint16_t port, RedoHandlerOptions poison, bool trust,
       testing::RedoAlarms& alarms)
      : redo({.acceptors = {{.ip = "127.0.0.1", .port = port}},
              .trust_old_clients = trust,
              .on_alarm = alarms.callback()}) {
    for (const char* queue : {"recharge", "mail"}) {
      const std::int64_t account = queue[0] == 'r' ? 1 : 2;
      redo.Register(queue, kRecharge, [this, account](Transaction& tx, const Binary& param) {
        accounts.GetOrAdd(tx, account)->balance += std::stoll(param.bytes);
        return true;
      });
      redo.Register(queue, kRefund, [this, account](Transaction& tx, const Binary& param) {
        accounts.GetOrAdd(tx, account)->balance -= std::stoll(param.bytes);
        return true;
      });
      redo.Register(
          queue, kFickle,
          [this, account](Transaction& tx, const Binary& param) {
            accounts.GetOrAdd(tx, account)->balance += std::stoll(param.bytes);  // Undone.
            ++tries;
            if (fails.load() == 2) throw std::runtime_error("no");
            return fails.load() == 0;
          },
          poison);
    }
    ApplicationOptions options{.storage = {.url = database},
                               .worker_threads = 4,
                               .checkpoint_period = std::chrono::hours(1)};
    application = Application::Open("shop", options).value();
    application->AddTable(accounts);
    application->AddModule(redo);
    const Result<void> started = application->Start();
    ZEZE_CHECK(started.ok());
  }
  ~Shop() { application.reset(); }

  RedoServerAddress address() const { return {"127.0.0.1", redo.addresses().front().port()}; }
  std::int64_t Balance(std::int64_t account = 1) {
    const auto read = accounts.ReadCopy(account).value();
    return read.has_value() ? read->balance : 0;
  }

  std::atomic<int> fails = 0;  // kFickle says no (1), or throws (2).
  std::atomic<int> tries = 0;
  Table<std::int64_t, BAccount> accounts{kAccounts};
  RedoQueueServer redo;
  std::unique_ptr<Application> application;
};

class RedoQueueTest : public ::testing::Test {
 protected:
  RedoQueueTest() { StartShop(); }
  ~RedoQueueTest() override { client.reset(); }

  void StartShop() {
    shop =
        std::make_unique<Shop>("rocksdb:" + directory.File("db"), port, poison, trust, shop_alarms);
    port = shop->address().port;
  }
  // As after a crash: what was not saved is gone.
  void CrashShop() {
    shop->application->engine().Abandon();
    shop.reset();
    StartShop();
  }
  void CopyDatabase(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(directory.File(to));
    std::filesystem::copy(directory.File(from), directory.File(to),
                          std::filesystem::copy_options::recursive);
  }

  std::unique_ptr<RedoQueueClient> OpenClient(const std::string& queue, const std::string& where,
                                              RedoQueueClientOptions options = {}) {
    auto& store = stores[where];
    if (store == nullptr) {
      auto opened = RedoStore::Open({.directory = directory.File(where)});
      ZEZE_CHECK(opened.ok());
      store = opened.value();
    }
    options.name = queue;
    options.servers = {shop->address()};
    options.first_delay = milliseconds(5);
    options.delay_max = milliseconds(50);
    options.on_alarm = alarms.callback();
    return std::move(RedoQueueClient::Open(store, options)).value();
  }
  void Open(RedoQueueClientOptions options = {}) {
    client = OpenClient("recharge", "store", std::move(options));
  }
  void Close() {
    client.reset();
    stores.clear();
  }

  void MustAdd(std::int32_t type, const std::string& param) {
    Result<std::int64_t> added = client->Add(type, std::string_view(param));
    ASSERT_TRUE(added.ok()) << added.error().message();
  }
  void MustFinish(std::int64_t id) {
    Result<void> done = client->WaitDone(id, seconds(30));
    ASSERT_TRUE(done.ok()) << done.error().message();
  }
  void RechargeAll(int from, int to) {
    for (int i = from; i <= to; ++i) MustAdd(kRecharge, std::to_string(i));
    MustFinish(to);
  }
  static std::int64_t Sum(std::int64_t to) { return to * (to + 1) / 2; }

  TempDirectory directory;
  RedoHandlerOptions poison = {.attempts_max = 3};
  bool trust = false;
  std::uint16_t port = 0;
  testing::RedoAlarms alarms;
  testing::RedoAlarms shop_alarms;
  std::unique_ptr<Shop> shop;
  std::map<std::string, std::shared_ptr<RedoStore>> stores;
  std::unique_ptr<RedoQueueClient> client;
};

// --- What seed 002 says, sentence by sentence ---

TEST_F(RedoQueueTest, MessagesOfThePeersOwnModulesAreIgnored) {
  testing::RawClient peer(shop->redo.addresses().front());
  ASSERT_TRUE(peer.EndHandshake());
  testing::ExpectPeerMessagesAreHarmless(peer);
}

TEST_F(RedoQueueTest, Seed002TheClientStoresTasksInItsOwnRocksDbAndSendsThemToTheApplication) {
  Open();
  MustAdd(kRecharge, "100");

  EXPECT_TRUE(std::filesystem::exists(directory.File("store/CURRENT")));
  MustFinish(1);
  EXPECT_EQ(shop->Balance(), 100);
}

TEST_F(RedoQueueTest, Seed002ATaskIsTriedAgainUntilTheApplicationSaysYes) {
  poison.attempts_max = 1'000'000;
  shop.reset();
  StartShop();
  shop->fails = 1;
  Open();
  MustAdd(kFickle, "7");
  while (shop->tries < 5) std::this_thread::yield();
  EXPECT_EQ(shop->Balance(), 0);

  shop->fails = 0;

  MustFinish(1);
  EXPECT_EQ(shop->Balance(), 7);
}

TEST_F(RedoQueueTest, Seed002TheApplicationRegistersWhatATaskDoes) {
  Open();
  MustAdd(kRecharge, "100");
  MustAdd(kRefund, "30");

  MustFinish(2);

  EXPECT_EQ(shop->Balance(), 70);
}

TEST_F(RedoQueueTest, Seed002TheServerRecordsTheLastTaskAndAfterARollbackTheQueueGoesOnFromThere) {
  Open();
  RechargeAll(1, 10);
  ASSERT_TRUE(shop->application->Stop().ok());
  shop.reset();
  CopyDatabase("db", "old");
  StartShop();
  RechargeAll(11, 30);
  EXPECT_EQ(shop->Balance(), Sum(30));
  EXPECT_EQ(shop->redo.GetStatus("recharge").value().last_id, 30);

  ASSERT_TRUE(shop->application->Stop().ok());
  shop.reset();
  CopyDatabase("old", "db");
  StartShop();
  alarms.Await(RedoAlarmKind::kRolledBack);
  MustAdd(kRecharge, "31");
  MustFinish(31);

  EXPECT_EQ(shop->Balance(), Sum(31));
}

TEST_F(RedoQueueTest, Seed002TypeAndParameterAreTheApplicationsOwn) {
  const BAccount bean{.balance = 5};
  std::vector<std::int64_t> seen;
  RedoQueueServer redo({.acceptors = {{}}});
  redo.Register<BAccount>("beans", -7, [&](Transaction&, const BAccount& param) {
    seen = {param.balance};
    return true;
  });
  auto other = Application::Open("other", {.storage = {.url = "memory:"}}).value();
  other->AddModule(redo);
  ASSERT_TRUE(other->Start().ok());
  auto store = RedoStore::Open({.directory = directory.File("beans")}).value();
  auto queue = RedoQueueClient::Open(
      store, {.name = "beans",
              .servers = {{redo.addresses().front().IpText(), redo.addresses().front().port()}}});
  EXPECT_EQ("127.0.0.1", redo.addresses().front().IpText()) << "unless an address is named";

  ASSERT_TRUE(queue.value()->Add(-7, bean).ok());

  ASSERT_TRUE(queue.value()->WaitDone(1, seconds(30)).ok());
  EXPECT_THAT(seen, ElementsAre(5));
  queue.value().reset();
  other.reset();
}

TEST_F(RedoQueueTest, Seed002OneServerServesSeveralQueuesAndClients) {
  auto recharge = OpenClient("recharge", "store");
  auto mail = OpenClient("mail", "store");  // In the same store.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(recharge->Add(kRecharge, std::string_view("1")).ok());
    ASSERT_TRUE(mail->Add(kRecharge, std::string_view("2")).ok());
  }

  ASSERT_TRUE(recharge->WaitDone(20, seconds(30)).ok());
  ASSERT_TRUE(mail->WaitDone(20, seconds(30)).ok());

  EXPECT_EQ(shop->Balance(1), 20);
  EXPECT_EQ(shop->Balance(2), 40);
}

TEST_F(RedoQueueTest, Seed002TheServerIsMadeAndStartedWithItsApplication) {
  RedoQueueServer nowhere;
  auto other = Application::Open("other", {.storage = {.url = "memory:"}}).value();
  other->AddModule(nowhere);

  const Result<void> started = other->Start();

  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), HasSubstr("ServiceConf Name=\"RedoQueueServer\""));
  other.reset();
}

// --- Crashes and rollbacks ---

TEST(RedoQueueServerSetUp, SlipsAreRefusedWithASentence) {
  const RedoHandler yes = [](Transaction&, const Binary&) { return true; };
  RedoQueueServer server({.acceptors = {{.port = 0}}, .batch_max = 0});
  EXPECT_THROW(server.Register("", 1, yes), UsageError);
  EXPECT_THROW(server.Register("q", 1, {}), UsageError);
  EXPECT_THROW(server.Register("q", 1, yes, {.attempts_max = 0}), UsageError);
  server.Register("q", 1, yes);
  EXPECT_THROW(server.Register("q", 1, yes), UsageError);
  {
    auto application = Application::Open("redo", {.storage = {.url = "memory:"}}).value();
    application->AddModule(server);
    const Result<void> started = application->Start();
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message(), ::testing::HasSubstr("batch_max is 0"));
  }
  RedoQueueServer good({.acceptors = {{.port = 0}}});
  auto application = Application::Open("redo", {.storage = {.url = "memory:"}}).value();
  application->AddModule(good);
  ASSERT_TRUE(application->Start().ok());
  EXPECT_THROW(good.Register("late", 1, yes), UsageError);
  ASSERT_TRUE(application->Stop().ok());
  EXPECT_EQ(ErrorCode::kShuttingDown, good.Parked("q").error().code());
}

TEST_F(RedoQueueTest, WhatACrashOfTheServerTakesAwayIsSentAgain) {
  Open();
  RechargeAll(1, 50);
  ASSERT_TRUE(shop->application->engine().CheckpointNow().ok());
  RechargeAll(51, 200);

  CrashShop();
  MustAdd(kRecharge, "201");
  MustFinish(201);

  EXPECT_EQ(shop->Balance(), Sum(201));
}

TEST_F(RedoQueueTest, TheClientKeepsWhatTheServerHasNotSaved) {
  Open({.ask_period = milliseconds(10), .keep = {.keep_max = 0}});
  RechargeAll(1, 50);
  EXPECT_EQ(client->GetStatus().position.floor_id, 0);

  ASSERT_TRUE(shop->application->engine().CheckpointNow().ok());
  while (client->GetStatus().position.floor_id < 50) std::this_thread::yield();
  RechargeAll(51, 60);
  CrashShop();
  MustAdd(kRecharge, "61");
  MustFinish(61);

  EXPECT_EQ(shop->Balance(), Sum(61));
}

TEST_F(RedoQueueTest, AServerOlderThanWhatIsKeptIsNeverSkippedForward) {
  shop->application->engine();
  ASSERT_TRUE(shop->application->Stop().ok());
  shop.reset();
  CopyDatabase("db", "old");
  StartShop();
  Open({.ask_period = milliseconds(10), .keep = {.keep_max = 0}});
  RechargeAll(1, 20);
  ASSERT_TRUE(shop->application->engine().CheckpointNow().ok());
  while (client->GetStatus().position.floor_id < 20) std::this_thread::yield();

  shop.reset();
  CopyDatabase("old", "db");
  StartShop();
  MustAdd(kRecharge, "21");

  alarms.Await(RedoAlarmKind::kTooOld);
  EXPECT_EQ(client->GetStatus().state, RedoState::kHalted);
  EXPECT_EQ(shop->Balance(), 0);
}

TEST_F(RedoQueueTest, ManyProducersWithCrashesOfTheServerBetween) {
  Open();
  constexpr int kEach = 200;
  std::vector<std::thread> producers;
  for (int t = 0; t < 8; ++t) {
    producers.emplace_back([&] {
      for (int i = 0; i < kEach; ++i)
        ASSERT_TRUE(client->Add(kRecharge, std::string_view("1")).ok());
    });
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client->WaitDone((i + 1) * 100, seconds(30)).ok());
    ASSERT_TRUE(shop->application->engine().CheckpointNow().ok());
    ASSERT_TRUE(client->WaitDone((i + 1) * 100 + 50, seconds(30)).ok());
    CrashShop();
  }
  for (std::thread& producer : producers) producer.join();
  MustFinish(8 * kEach);
  // The last crash may have taken away what was done: wait until it is asked again.
  while (shop->redo.GetStatus("recharge").value().last_id < 8 * kEach) std::this_thread::yield();

  EXPECT_EQ(shop->Balance(), 8 * kEach);
}

// --- Stores that are lost or set back ---

TEST_F(RedoQueueTest, PeerDefect31AClientThatLostItsStoreIsRefusedByBothSides) {
  Open();
  RechargeAll(1, 5);
  Close();
  std::filesystem::remove_all(directory.File("store"));

  Open();
  for (int i = 0; i < 9; ++i) MustAdd(kRecharge, "1000");  // More than the server has done.

  alarms.Await(RedoAlarmKind::kOtherStore);
  shop_alarms.Await(RedoAlarmKind::kOtherStore);
  EXPECT_EQ(client->GetStatus().state, RedoState::kHalted);
  EXPECT_EQ(shop->Balance(), Sum(5));
}

TEST_F(RedoQueueTest, AnOperatorCanLetANewStoreTakeThePlaceOfALostOne) {
  Open();
  RechargeAll(1, 5);
  Close();
  std::filesystem::remove_all(directory.File("store"));
  Open();
  MustAdd(kRecharge, "1000");
  alarms.Await(RedoAlarmKind::kOtherStore);
  client.reset();
  const auto last = shop->redo.tQueueLastTaskId.ReadCopy("recharge").value();

  ASSERT_TRUE(
      stores["store"]->OpenQueue("recharge").value()->Adopt(last->TaskId, last->Chain).ok());
  Open();
  MustAdd(kRecharge, "2000");
  MustFinish(7);

  EXPECT_EQ(shop->Balance(), Sum(5) + 3000);
}

TEST_F(RedoQueueTest, AStoreRestoredFromACopyIsRefused) {
  Open();
  RechargeAll(1, 3);
  Close();
  CopyDatabase("store", "copy");
  Open();
  RechargeAll(4, 6);
  Close();
  CopyDatabase("copy", "store");

  client = OpenClient("recharge", "store");
  for (int i = 0; i < 9; ++i) MustAdd(kRecharge, "1000");  // 4 to 12, others than before.

  alarms.Await(RedoAlarmKind::kOtherHistory);
  EXPECT_EQ(client->GetStatus().state, RedoState::kHalted);
  EXPECT_EQ(shop->Balance(), Sum(6));
}

// An operator says which tasks are new: those are done after what the server has, and no other.
TEST_F(RedoQueueTest, NewTasksOfARestoredStoreAreDoneAfterThoseOfTheLostOne) {
  Open();
  RechargeAll(1, 3);
  Close();
  {
    auto store = RedoStore::Open({.directory = directory.File("store")}).value();
    ASSERT_TRUE(store->OpenQueue("recharge").value()->Add(kRecharge, "4").ok());  // In the copy.
  }
  CopyDatabase("store", "copy");
  Open();
  RechargeAll(5, 6);
  Close();
  CopyDatabase("copy", "store");
  {
    auto store = RedoStore::Open({.directory = directory.File("store")}).value();
    RedoJournal& queue = *store->OpenQueue("recharge").value();
    ASSERT_TRUE(queue.Add(kRecharge, "1000").ok());  // 5, another one than before.
    ASSERT_TRUE(queue.Add(kRecharge, "2000").ok());
    const auto last = shop->redo.tQueueLastTaskId.ReadCopy("recharge").value();
    EXPECT_FALSE(queue.Adopt(last->TaskId, last->Chain).ok());
    EXPECT_FALSE(queue.Adopt(last->TaskId, last->Chain, queue.position().confirmed_id).ok());
    EXPECT_FALSE(queue.Adopt(last->TaskId, last->Chain, 8).ok());
    EXPECT_FALSE(queue.Adopt(3, last->Chain, 5).ok());  // Then 4 would be lost.
    ASSERT_TRUE(queue.Adopt(last->TaskId, last->Chain, 5).ok());
  }
  Open();
  MustAdd(kRecharge, "4000");
  MustFinish(9);

  EXPECT_EQ(shop->Balance(), Sum(6) + 7000);
}

// Nothing but their time tells them from those that were done.
TEST_F(RedoQueueTest, TasksOfARestoredStoreThatLookLikeThoseThatWereDoneAreNotTakenForThem) {
  Open();
  RechargeAll(1, 3);
  Close();
  CopyDatabase("store", "copy");
  Open();
  RechargeAll(4, 6);
  Close();
  CopyDatabase("copy", "store");
  {
    auto store = RedoStore::Open({.directory = directory.File("store")}).value();
    for (const char* param : {"4", "5", "6"}) {
      ASSERT_TRUE(store->OpenQueue("recharge").value()->Add(kRecharge, param).ok());
    }
  }

  Open();

  EXPECT_FALSE(client->WaitDone(6, seconds(1)).ok());
  alarms.Await(RedoAlarmKind::kOtherHistory);
  EXPECT_EQ(shop->Balance(), Sum(6));
}

// --- Poison ---

TEST_F(RedoQueueTest, ATaskThatFailsTooOftenStopsTheQueueWithAnAlarm) {
  shop->fails = 1;
  Open();
  MustAdd(kFickle, "1");
  MustAdd(kRecharge, "10");

  EXPECT_EQ(shop_alarms.Await(RedoAlarmKind::kQueueStopped).task_id, 1);
  alarms.Await(RedoAlarmKind::kTaskRefused);
  EXPECT_EQ(shop->tries, 3);
  EXPECT_TRUE(shop->redo.GetStatus("recharge").value().stopped);
  EXPECT_EQ(shop->Balance(), 0);

  shop->fails = 0;
  shop->redo.Resume("recharge");
  MustFinish(2);
  EXPECT_EQ(shop->Balance(), 11);
}

TEST_F(RedoQueueTest, ATaskThatFailsTooOftenIsParkedIfTheApplicationSaysSo) {
  poison = {.attempts_max = 3, .poison = RedoPoison::kPark};
  shop.reset();
  StartShop();
  shop->fails = 2;
  Open();
  MustAdd(kFickle, "1");
  MustAdd(kRecharge, "10");

  MustFinish(2);

  EXPECT_EQ(shop->Balance(), 10);
  shop_alarms.Await(RedoAlarmKind::kTaskParked);
  const auto parked = shop->redo.Parked("recharge").value();
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked[0].id, 1);
  EXPECT_EQ(parked[0].param.bytes, "1");
  EXPECT_FALSE(shop->redo.RunParked("recharge", 1).ok());
  shop->fails = 0;
  EXPECT_TRUE(shop->redo.RunParked("recharge", 1).ok());
  EXPECT_EQ(shop->Balance(), 11);
  EXPECT_THAT(shop->redo.Parked("recharge").value(), IsEmpty());
  EXPECT_EQ(shop->redo.DropParked("recharge", 1).error().code(), ErrorCode::kNotFound);
}

TEST_F(RedoQueueTest, ATaskThatTheClientSkipsIsParkedAtTheServer) {
  shop->fails = 1;
  Open();
  MustAdd(kFickle, "1");
  MustAdd(kRecharge, "10");
  shop_alarms.Await(RedoAlarmKind::kQueueStopped);

  ASSERT_TRUE(client->journal().Skip(1).ok());
  MustFinish(2);

  EXPECT_EQ(shop->Balance(), 10);
  EXPECT_EQ(shop->redo.Parked("recharge").value().size(), 1U);
}

TEST_F(RedoQueueTest, ATaskWithoutAHandlerWaitsForAProgramThatHasOne) {
  Open();
  MustAdd(99, "1");

  EXPECT_THAT(shop_alarms.Await(RedoAlarmKind::kTaskRefused).text, HasSubstr("type 99"));
  EXPECT_EQ(client->GetStatus().position.backlog(), 1);
}

// --- Clients of Zeze 1.6 ---

class OldClient {
 public:
  explicit OldClient(const RedoServerAddress& to)
      : io_({.name = "old-client"}),
        service_(io_, {.name = "RedoQueue", .handshake = HandshakeOptions{}}),
        connection_(
            service_.Connect({.host = to.host, .port = to.port})->WaitReady(seconds(10)).value()) {}
  ~OldClient() { service_.Stop(); }

  // The code, and the task id of the answer.
  std::pair<std::int64_t, std::int64_t> Run(std::int64_t id, std::int64_t previous,
                                            std::int32_t type = kRecharge) {
    auto reply = connection_->CallAndWait<redo::RunTask>({.queue = "recharge",
                                                          .type = type,
                                                          .task_id = id,
                                                          .param = Binary{"1"},
                                                          .prev_task_id = previous});
    return {reply.value().result_code, reply.value().result.task_id};
  }

 private:
  IoThreads io_;
  Service service_;
  ConnectionPtr connection_;
};

TEST_F(RedoQueueTest, AnswersAClientOfZeze16AsItExpects) {
  OldClient old(shop->address());
  using Answer = std::pair<std::int64_t, std::int64_t>;

  EXPECT_EQ(old.Run(1, 0), Answer(0, 1));
  EXPECT_EQ(old.Run(1, 0), Answer(result_code::kErrorRequestId, 1));
  EXPECT_EQ(old.Run(5, 4), Answer(result_code::kErrorRequestId, 1));
  EXPECT_EQ(old.Run(2, 1, 99).first, result_code::kNotImplement);
  shop->fails = 1;
  EXPECT_EQ(old.Run(2, 1, kFickle).first, result_code::kLogicError);
  EXPECT_EQ(old.Run(2, 1), Answer(0, 2));
  EXPECT_EQ(shop->Balance(), 2);
}

// It names no task: nothing is wrong with any.
TEST_F(RedoQueueTest, AQuestionThatAServerInTroubleCannotAnswerRaisesNoAlarm) {
  OldClient old(shop->address());
  shop->application->engine().Abandon();

  EXPECT_NE(old.Run(0, -1, 0).first, result_code::kSuccess);

  EXPECT_EQ(shop_alarms.count(), 0U);
}

TEST_F(RedoQueueTest, PeerDefect31AClientOfZeze16ThatLostItsStoreIsRefused) {
  {
    OldClient old(shop->address());
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(old.Run(i, i - 1).first, 0);
    EXPECT_EQ(old.Run(1, 0).first, redo::code::kOtherStore);
    EXPECT_EQ(old.Run(2, 1).first, redo::code::kOtherStore);
    shop_alarms.Await(RedoAlarmKind::kOtherStore);
  }
  trust = true;
  ASSERT_TRUE(shop->application->Stop().ok());
  shop.reset();
  StartShop();
  OldClient old(shop->address());
  EXPECT_EQ(old.Run(1, 0).first, result_code::kErrorRequestId);
}

TEST_F(RedoQueueTest, AClientOfZeze16DoesNotTakeOverTheQueueOfAnother) {
  Open();
  RechargeAll(1, 3);
  OldClient old(shop->address());

  EXPECT_EQ(old.Run(4, 3).first, redo::code::kOtherStore);

  RechargeAll(4, 4);
  EXPECT_EQ(shop->Balance(), Sum(4));
}

// --- What is sent ---

TEST_F(RedoQueueTest, TheClientSendsTheBytesOfTheGeneratedBeans) {
  const redo::Task task{.queue = "q",
                        .type = -3,
                        .task_id = 5,
                        .param = Binary{"p"},
                        .prev_task_id = 4,
                        .store_id = 77,
                        .prev_chain = -88,
                        .park = true,
                        .adopt = true,
                        .added_ms = 1234567,
                        .backlog = 9};
  const auto generated = DecodeBean<Zeze::Builtin::RedoQueue::BQueueTask>(EncodeBean(task)).value();
  const Zeze::Builtin::RedoQueue::BRunTaskResult result{
      .TaskId = 1, .StoreId = 2, .Chain = 3, .SavedTaskId = 4, .Version = 5};

  EXPECT_EQ(EncodeBean(generated), EncodeBean(task));
  EXPECT_EQ(generated.Backlog, 9);
  EXPECT_EQ(EncodeBean(DecodeBean<redo::Answer>(EncodeBean(result)).value()), EncodeBean(result));
  EXPECT_EQ(Zeze::Builtin::RedoQueue::RunTask::kDescriptor.type_id(),
            redo::RunTask::kDescriptor.type_id());
}

TEST_F(RedoQueueTest, TheServerKnowsTheBacklogAndItsAge) {
  Open();
  RechargeAll(1, 3);

  const RedoServerStatus status = shop->redo.GetStatus("recharge").value();

  EXPECT_EQ(status.done, 3U);
  EXPECT_EQ(status.backlog, 0);
  EXPECT_LT(status.age, seconds(30));
  EXPECT_EQ(shop->redo.GetStatus("unknown").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace zeze
