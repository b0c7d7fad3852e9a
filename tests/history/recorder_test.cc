#include "tests/history/recorder.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = ::testing::TempDir() + "history_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ListState, TellsListsApart) {
  EXPECT_EQ(ListState::Of({}), ListState());
  const std::vector<Element> list = {1, 2, 3};
  EXPECT_EQ(ListState::Of(list), ListState().Extended(1).Extended(2).Extended(3));
  EXPECT_NE(ListState::Of(list).hash, ListState().Extended(2).Extended(1).Extended(3).hash);
  EXPECT_NE(ListState().Extended(0).hash, ListState().hash);
}

TEST(Recorder, KeepsWhatAnAttemptDid) {
  Recorder recorder({.thread_count = 2});
  Attempt attempt = recorder.Begin(1, "transfer");
  const Element element = attempt.NewElement();
  attempt.Read(7, ListState{3, 44, 5});
  attempt.Append(7, element);
  attempt.Read(8, std::vector<Element>{1, 2, 3, 4});
  attempt.Read(9, std::vector<Element>{});
  attempt.Commit();

  const History history = recorder.Finish();

  ASSERT_THAT(history.transactions(), SizeIs(1));
  const Transaction& transaction = history.transactions()[0];
  EXPECT_EQ(transaction.id, attempt.id());
  EXPECT_EQ(transaction.thread, 1u);
  EXPECT_EQ(transaction.outcome, Outcome::kCommitted);
  EXPECT_LT(transaction.begin, transaction.end);
  EXPECT_EQ(history.name(transaction), "transfer");
  EXPECT_EQ(history.Find(attempt.id()), &transaction);
  EXPECT_EQ(history.Find(77), nullptr);
  const auto operations = history.operations(transaction);
  ASSERT_THAT(operations, SizeIs(4));
  EXPECT_EQ(operations[0].kind, OperationKind::kReadState);
  EXPECT_EQ(operations[0].length, 3u);
  EXPECT_EQ(operations[0].element, 44u);
  EXPECT_EQ(operations[0].detail, 5u);
  EXPECT_EQ(operations[1].kind, OperationKind::kAppend);
  EXPECT_EQ(operations[1].key, 7u);
  EXPECT_EQ(operations[1].element, element);
  EXPECT_THAT(history.elements(operations[2]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(operations[3].length, 0u);
}

TEST(Recorder, KeepsOutcomes) {
  Recorder recorder({.thread_count = 1});
  recorder.Begin(0, "a").Commit();
  recorder.Begin(0, "b").Fail();
  recorder.Begin(0, "c").Abort();
  {
    const Attempt left = recorder.Begin(0, "d");
  }

  const History history = recorder.Finish();

  std::vector<std::string> seen;
  for (const Transaction& transaction : history.transactions()) {
    seen.push_back(std::string(history.name(transaction)) + " " +
                   std::string(ToString(transaction.outcome)));
  }
  EXPECT_THAT(seen, ElementsAre("a committed", "b failed", "c aborted", "d unknown"));
}

TEST(Recorder, EachTryIsAnAttemptOfItsOwn) {
  Recorder recorder({.thread_count = 3, .id_base = 100});
  Attempt attempt = recorder.Begin(2, "transfer");
  const Element first = attempt.NewElement();
  attempt.Append(7, first);
  attempt.Restart();
  const Element second = attempt.NewElement();
  attempt.Append(7, second);
  attempt.Commit();
  Attempt other = recorder.Begin(2, "audit");
  other.Commit();

  const History history = recorder.Finish();

  EXPECT_NE(first, second);
  ASSERT_THAT(history.transactions(), SizeIs(3));
  EXPECT_EQ(history.transactions()[0].id, 103u);
  EXPECT_EQ(history.transactions()[0].outcome, Outcome::kAborted);
  EXPECT_EQ(history.transactions()[1].id, 106u);
  EXPECT_EQ(history.transactions()[1].outcome, Outcome::kCommitted);
  EXPECT_EQ(history.name(history.transactions()[1]), "transfer");
  EXPECT_EQ(history.transactions()[2].id, 109u);
}

TEST(Recorder, SavepointsUndoAppends) {
  Recorder recorder({.thread_count = 1});
  Attempt attempt = recorder.Begin(0, "outer");
  attempt.Append(7, 1);
  const auto savepoint = attempt.CreateSavepoint();
  attempt.Append(7, 2);
  attempt.Read(8, ListState());
  attempt.RollbackTo(savepoint);
  attempt.Append(7, 3);
  attempt.Commit();

  const History history = recorder.Finish();

  const auto operations = history.operations(history.transactions()[0]);
  ASSERT_THAT(operations, SizeIs(4));
  EXPECT_EQ(operations[0].detail, 0u);
  EXPECT_EQ(operations[1].detail, 4u);
  EXPECT_EQ(operations[3].detail, 0u);
}

TEST(Recorder, TakesStampsFromTheGivenClock) {
  std::uint64_t now = 50;
  Recorder recorder({.thread_count = 1, .now = [&now] { return now; }});
  Attempt attempt = recorder.Begin(0, "a");
  now = 60;
  attempt.Commit();

  const History history = recorder.Finish();

  EXPECT_EQ(history.transactions()[0].begin, 50u);
  EXPECT_EQ(history.transactions()[0].end, 60u);
}

TEST(Recorder, LogsGrow) {
  Recorder recorder({.thread_count = 1});
  const std::vector<Element> long_list(1000, 7);
  for (int i = 0; i < 1000; ++i) {
    Attempt attempt = recorder.Begin(0, "procedure " + std::to_string(i % 50));
    attempt.Read(1, long_list);
    attempt.Commit();
  }

  const History history = recorder.Finish();

  ASSERT_THAT(history.transactions(), SizeIs(1000));
  EXPECT_EQ(history.name(history.transactions()[999]), "procedure 49");
  EXPECT_THAT(history.elements(history.operations()[999]), SizeIs(1000));
}

// Many threads over lists behind one lock: the history must pass, and the recorder must be free of
// races (tsan; the steady clock adds no synchronisation of its own).
TEST(Recorder, ThreadsRecordWithoutDisturbingEachOther) {
  constexpr std::size_t kThreads = 4;
  Recorder recorder({.thread_count = kThreads, .now = SteadyClockStamp});
  Mutex mutex;
  std::vector<ListState> lists(5);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < 2000; ++i) {
        Attempt attempt = recorder.Begin(thread, "transfer");
        MutexLock lock(mutex);
        for (const std::size_t key : {i % lists.size(), (i + thread + 1) % lists.size()}) {
          attempt.Read(key, lists[key]);
          const Element element = attempt.NewElement();
          lists[key] = lists[key].Extended(element);
          attempt.Append(key, element);
        }
        attempt.Commit();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const Report report = Check(recorder.Finish(), {.readers = Options::Readers::kAll});

  EXPECT_TRUE(report.ok()) << report.ToString();
  EXPECT_EQ(report.committed_count, kThreads * 2000);
  EXPECT_EQ(report.ordered_append_count, report.append_count);
}

TEST(RecorderFile, SurvivesAKill) {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto recorder = Recorder::Open(directory.path() + "/run", {.thread_count = 2});
    if (!recorder.ok()) ::_exit(1);
    Attempt done = recorder.value()->Begin(0, "a procedure with a name of more than 24 bytes");
    done.Append(7, 1);
    done.Commit();
    for (int i = 0; i < 1000; ++i) recorder.value()->Begin(0, "many").Commit();
    Attempt open = recorder.value()->Begin(1, "open");
    open.Read(7, std::vector<Element>{1});
    open.Append(8, 2);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  const auto loaded = LoadRecording(directory.path() + "/run");

  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const History& history = loaded.value();
  ASSERT_THAT(history.transactions(), SizeIs(1002));
  EXPECT_EQ(history.name(history.transactions()[0]),
            "a procedure with a name of more than 24 bytes");
  EXPECT_EQ(history.transactions()[0].outcome, Outcome::kCommitted);
  const Transaction& open = history.transactions()[1001];
  EXPECT_EQ(open.outcome, Outcome::kUnknown);
  EXPECT_EQ(open.thread, 1u);
  EXPECT_THAT(history.operations(open), SizeIs(2));
  EXPECT_TRUE(Check(history, {}).ok());
}

TEST(RecorderFile, IsTheSameAsInMemory) {
  const TemporaryDirectory directory;
  auto recorder = Recorder::Open(directory.path(), {.thread_count = 1});
  ASSERT_TRUE(recorder.ok()) << recorder.error().message();
  Attempt attempt = recorder.value()->Begin(0, "transfer");
  attempt.Append(7, 1);
  attempt.RollbackTo(0);
  attempt.Commit();

  const auto loaded = LoadRecording(directory.path());
  const History finished = recorder.value()->Finish();

  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  for (const History* history : {&loaded.value(), &finished}) {
    ASSERT_THAT(history->transactions(), SizeIs(1));
    EXPECT_EQ(history->transactions()[0].outcome, Outcome::kCommitted);
    EXPECT_EQ(history->operations()[0].detail, 2u);
  }
}

TEST(RecorderFile, RefusesToOverwriteARecording) {
  const TemporaryDirectory directory;
  const auto first = Recorder::Open(directory.path(), {.thread_count = 1});
  ASSERT_TRUE(first.ok()) << first.error().message();

  const auto second = Recorder::Open(directory.path(), {.thread_count = 1});

  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message(), HasSubstr("cannot create the recording"));
}

TEST(RecorderFile, SaysWhatIsWrongWithARecording) {
  const TemporaryDirectory directory;
  const auto missing = LoadRecording(directory.path());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);

  std::ofstream(directory.path() + "/0.history") << std::string(320, 'x');
  const auto damaged = LoadRecording(directory.path());
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(damaged.error().message(), HasSubstr("is damaged at record 0"));
}

TEST(RecorderDeathTest, OneOpenAttemptPerLog) {
  Recorder recorder({.thread_count = 1});
  const Attempt open = recorder.Begin(0, "a");
  EXPECT_DEATH(recorder.Begin(0, "b").Commit(), "!log.open");
}

TEST(RecorderDeathTest, AnOutcomeIsFinal) {
  Recorder recorder({.thread_count = 1});
  Attempt attempt = recorder.Begin(0, "a");
  attempt.Commit();
  EXPECT_DEATH(attempt.Abort(), "log_ != nullptr");
}

}  // namespace
}  // namespace zeze::history
