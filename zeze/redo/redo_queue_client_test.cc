#include "zeze/redo/redo_queue_client.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/redo/redo_alarm.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/run_task.h"
#include "zeze/redo/testing/old_redo_server.h"
#include "zeze/redo/testing/redo_alarms.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OldRedoServer;

class RedoQueueClientTest : public ::testing::Test {
 protected:
  void Open(RedoQueueClientOptions options = {}) {
    if (store == nullptr) store = RedoStore::Open({.directory = directory.File("store")}).value();
    if (options.name.empty()) options.name = "recharge";
    if (options.servers.empty()) options.servers = {server->address()};
    options.first_delay = milliseconds(5);
    options.delay_max = milliseconds(50);
    options.on_alarm = alarms.callback();
    auto opened = RedoQueueClient::Open(store, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    client = std::move(opened).value();
  }
  void Close() {
    client.reset();
    store.reset();
  }
  void LoseStore() {
    Close();
    std::filesystem::remove_all(directory.File("store"));
  }
  void MustAdd(const std::string& param) {
    Result<std::int64_t> added = client->Add(1, param);
    ASSERT_TRUE(added.ok()) << added.error().message();
  }
  void MustFinish(std::int64_t id) {
    Result<void> done = client->WaitDone(id, seconds(30));
    ASSERT_TRUE(done.ok()) << done.error().message();
  }

  TempDirectory directory;
  testing::RedoAlarms alarms;
  std::unique_ptr<OldRedoServer> server = std::make_unique<OldRedoServer>();
  std::shared_ptr<RedoStore> store;
  std::unique_ptr<RedoQueueClient> client;
};

TEST_F(RedoQueueClientTest, SendsToAServerOfZeze16OneTaskAtATimeInOrder) {
  Open();
  for (const char* param : {"a", "b", "c", "d"}) MustAdd(param);

  MustFinish(4);

  EXPECT_THAT(server->done(), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(server->ids(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(client->GetStatus().one_at_a_time);
  EXPECT_EQ(client->GetStatus().position.backlog(), 0);
}

TEST_F(RedoQueueClientTest, PeerDefect31TheParameterIsStoredAndSent) {
  const std::string param("\0\xff 100 gold", 11);
  const std::uint16_t port = server->address().port;
  server.reset();
  Open({.servers = {{"127.0.0.1", port}}});
  MustAdd(param);
  Close();
  server = std::make_unique<OldRedoServer>(port);

  Open();
  MustFinish(1);

  EXPECT_THAT(server->done(), ElementsAre(param));
}

TEST_F(RedoQueueClientTest, PeerDefect31ATimeOutDoesNotStallTheQueue) {
  server->SwallowAnswers(1, /*done=*/false);
  Open({.answer_timeout = milliseconds(50)});
  MustAdd("a");
  MustAdd("b");

  MustFinish(2);

  EXPECT_THAT(server->done(), ElementsAre("a", "b"));
}

TEST_F(RedoQueueClientTest, ATaskWhoseAnswerIsLostIsNotDoneAgain) {
  server->SwallowAnswers(1, /*done=*/true);
  Open({.answer_timeout = milliseconds(50)});
  MustAdd("a");
  MustAdd("b");

  MustFinish(2);

  EXPECT_THAT(server->done(), ElementsAre("a", "b"));
}

TEST_F(RedoQueueClientTest, PeerDefect31ARefusalDoesNotStallTheQueue) {
  server->Refuse(12, result_code::kLogicError);
  Open();
  MustAdd("a");

  MustFinish(1);

  EXPECT_THAT(server->done(), ElementsAre("a"));
  const RedoAlarm alarm = alarms.Await(RedoAlarmKind::kTaskRefused);
  EXPECT_EQ(alarm.task_id, 1);
  EXPECT_THAT(alarm.text, HasSubstr("handler says no"));
}

TEST_F(RedoQueueClientTest, PeerDefect31ALostStoreIsNoticedAndNothingIsTakenForDone) {
  Open();
  for (const char* param : {"a", "b", "c"}) MustAdd(param);
  MustFinish(3);
  LoseStore();

  Open();
  MustAdd("new");

  EXPECT_THAT(alarms.Await(RedoAlarmKind::kOtherStore).text, HasSubstr("another store"));
  EXPECT_EQ(client->GetStatus().state, RedoState::kHalted);
  EXPECT_EQ(client->GetStatus().position.backlog(), 1);
  EXPECT_THAT(server->done(), ElementsAre("a", "b", "c"));
}

TEST_F(RedoQueueClientTest, PeerDefect31TheStoreDoesNotGrowWithoutBound) {
  store = RedoStore::Open({.directory = directory.File("store")}).value();
  Open({.keep = {.keep_for = seconds(0)}});
  for (int i = 0; i < 50; ++i) MustAdd(std::to_string(i));
  MustFinish(50);
  client.reset();

  // Marks are made once a minute; the first one is made with the first task.
  EXPECT_GT(store->OpenQueue("recharge").value()->position().floor_id, 0);
}

TEST_F(RedoQueueClientTest, ARolledBackServerIsNoticedAtConnectWithoutANewTask) {
  Open();
  for (const char* param : {"a", "b", "c", "d"}) MustAdd(param);
  MustFinish(4);

  server->RollBack(3);
  server->CloseConnections();
  server->AwaitDone(4);

  EXPECT_THAT(server->done(), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(alarms.Await(RedoAlarmKind::kRolledBack).text, HasSubstr("from 2 on"));
}

TEST_F(RedoQueueClientTest, ARolledBackServerIsNoticedWhileTheConnectionStays) {
  Open({.ask_period = milliseconds(20)});
  for (const char* param : {"a", "b", "c", "d"}) MustAdd(param);
  MustFinish(4);

  server->RollBack(3);
  server->AwaitDone(4);

  EXPECT_THAT(server->done(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(RedoQueueClientTest, AServerThatIsOlderThanWhatIsKeptHaltsTheQueue) {
  Open({.keep = {.keep_for = seconds(0)}});
  MustAdd("a");
  MustFinish(1);
  MustAdd("b");
  MustFinish(2);
  Close();
  server->RollBack(2);

  Open();

  EXPECT_THAT(alarms.Await(RedoAlarmKind::kTooOld).text, HasSubstr("no longer kept"));
  EXPECT_THAT(server->done(), ElementsAre());
}

TEST_F(RedoQueueClientTest, AServerThatIsAheadHaltsTheQueue) {
  Open();
  MustAdd("a");
  MustFinish(1);
  server->SetLast(7);
  server->CloseConnections();

  alarms.Await(RedoAlarmKind::kOtherStore);

  EXPECT_EQ(client->GetStatus().state, RedoState::kHalted);
}

TEST_F(RedoQueueClientTest, ResumesAfterARestartOfEitherSide) {
  Open();
  MustAdd("a");
  MustFinish(1);
  const std::uint16_t port = server->address().port;
  std::vector<std::string> done = server->done();
  server.reset();
  MustAdd("b");
  Close();
  server = std::make_unique<OldRedoServer>(port);
  server->SetLast(1);

  Open();
  MustAdd("c");
  MustFinish(3);

  EXPECT_THAT(server->done(), ElementsAre("b", "c"));
}

TEST_F(RedoQueueClientTest, GoesToAnotherServerWhenOneIsGone) {
  const RedoServerAddress gone = server->address();
  server.reset();
  server = std::make_unique<OldRedoServer>();

  Open({.servers = {gone, server->address()}});
  MustAdd("a");
  MustFinish(1);

  EXPECT_THAT(server->done(), ElementsAre("a"));
}

TEST_F(RedoQueueClientTest, ASkippedTaskIsLeftOut) {
  store = RedoStore::Open({.directory = directory.File("store")}).value();
  RedoJournal* journal = store->OpenQueue("recharge").value();
  for (const char* param : {"a", "poison", "c"}) ASSERT_TRUE(journal->Add(1, param).ok());
  ASSERT_TRUE(journal->Skip(2).ok());

  Open();
  MustFinish(3);

  EXPECT_THAT(server->done(), ElementsAre("a", "c"));
}

TEST_F(RedoQueueClientTest, SaysWhenTheBacklogGrowsOld) {
  server->Refuse(1'000'000, result_code::kNotImplement);
  Open({.age_before_alarm = milliseconds(1)});
  MustAdd("a");

  const RedoAlarm alarm = alarms.Await(RedoAlarmKind::kBacklogOld);

  EXPECT_EQ(alarm.task_id, 1);
  EXPECT_THAT(alarm.text, HasSubstr("task 1 waits for"));
  EXPECT_GE(client->GetStatus().oldest_age, milliseconds(1));
}

TEST_F(RedoQueueClientTest, RefusesMoreThanItsBacklogMayBe) {
  server->Refuse(1'000'000, result_code::kNotImplement);
  Open({.backlog_max = 2});
  MustAdd("a");
  MustAdd("b");

  Result<std::int64_t> added = client->Add(1, "c");

  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code(), ErrorCode::kOverloaded);
}

TEST_F(RedoQueueClientTest, SaysWhatIsWrongWithItsOptions) {
  store = RedoStore::Open({.directory = directory.File("store")}).value();

  EXPECT_THAT(RedoQueueClient::Open(store, {.name = "q"}).error().message(),
              HasSubstr("no server"));
  EXPECT_THAT(
      RedoQueueClient::Open(store, {.name = "", .servers = {{"localhost", 1}}}).error().message(),
      HasSubstr("name of a redo queue"));
}

}  // namespace
}  // namespace zeze
