// `zeze redo` as a user runs it, against a server that answers like Zeze 1.6.

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/net/testing/certificates.h"
#include "zeze/net/tls.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/testing/old_redo_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RedoCommandTest : public ::testing::Test {
 protected:
  ProgramResult Redo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {ZEZE_BINARY, "redo"});
    arguments.insert(arguments.end(), {"--store", directory.File("store")});
    return RunProgram({.command = arguments});
  }
  std::string Lines(const std::string& text) {
    const std::string file = directory.File("lines");
    std::ofstream(file) << text;
    return file;
  }
  std::string address() const {
    return server.address().host + ":" + std::to_string(server.address().port);
  }

  TempDirectory directory;
  testing::OldRedoServer server;
};

TEST_F(RedoCommandTest, AddsShowsSkipsAndSends) {
  const ProgramResult added = Redo({"add", "--queue", "q", Lines("1 first\n2 second\n1 third\n")});
  EXPECT_EQ(added.exit_code, 0) << added.said;
  EXPECT_THAT(added.said, HasSubstr("3 tasks added, the last one is 3"));
  EXPECT_THAT(Redo({"status"}).said, AllOf(HasSubstr("queue      q"), HasSubstr("backlog    3")));
  EXPECT_THAT(Redo({"show", "--queue", "q"}).said,
              AllOf(HasSubstr("1  type 1"), HasSubstr("second"), HasSubstr("3 tasks from 1 on")));
  EXPECT_EQ(Redo({"skip", "--queue", "q", "--task", "2", "--yes"}).exit_code, 0);

  const ProgramResult sent = Redo({"send", "--queue", "q", "--server", address(), "--until-empty"});

  EXPECT_EQ(sent.exit_code, 0) << sent.said;
  EXPECT_THAT(server.done(), ElementsAre("first", "third"));
  EXPECT_THAT(Redo({"compact", "--queue", "q", "--keep-for", "0"}).said,
              HasSubstr("tasks deleted"));
  EXPECT_THAT(Redo({"status", "--queue", "q"}).said, HasSubstr("backlog    0"));
}

// If that crashes it must be given them again.
TEST_F(RedoCommandTest, CompactKeepsWhatTheServerHasDoneButNotSaved) {
  {
    const auto store = RedoStore::Open({.directory = directory.File("store")}).value();
    RedoJournal* queue = store->OpenQueue("q").value();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue->Add(1, "paid").ok());
    ASSERT_TRUE(queue->Confirm(5, 0).ok());
  }

  EXPECT_EQ(Redo({"compact", "--queue", "q", "--keep-for", "0"}).exit_code, 0);

  const auto store = RedoStore::Open({.directory = directory.File("store")}).value();
  EXPECT_EQ(store->OpenQueue("q").value()->position().floor_id, 0);
}

TEST_F(RedoCommandTest, SendsWhatItReads) {
  const ProgramResult sent = Redo({"send", "--queue", "q", "--server", address(), "--type", "7",
                                   "--input", Lines("a b\nc\n"), "--until-empty"});

  EXPECT_EQ(sent.exit_code, 0) << sent.said;
  EXPECT_THAT(server.done(), ElementsAre("a b", "c"));
}

TEST_F(RedoCommandTest, AdoptsWhatAServerHasDone) {
  server.SetLast(5);
  ASSERT_EQ(Redo({"add", "--queue", "q", "--type", "1", Lines("six\n")}).exit_code, 0);

  const ProgramResult adopted = Redo({"adopt", "--queue", "q", "--server", address(), "--yes"});

  EXPECT_THAT(adopted.said, HasSubstr("up to 5 of another store"));
  EXPECT_EQ(Redo({"send", "--queue", "q", "--server", address(), "--until-empty"}).exit_code, 0);
  EXPECT_THAT(server.ids(), ElementsAre(6));
}

TEST_F(RedoCommandTest, SpeaksEncrypted) {
  const testing::Certificates& certificates = testing::Certificates::Get();
  testing::OldRedoServer encrypted(
      0, TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                                .private_key_file = certificates.server_key})
             .value());
  encrypted.SetLast(5);
  const std::string at = "127.0.0.1:" + std::to_string(encrypted.address().port);
  const std::vector<std::string> tls = {"--server", at, "--tls-authorities",
                                        certificates.authority};
  const auto with_tls = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), tls.begin(), tls.end());
    return Redo(arguments);
  };
  ASSERT_EQ(Redo({"add", "--queue", "q", "--type", "1", Lines("six\n")}).exit_code, 0);
  EXPECT_THAT(with_tls({"status"}).said,
              HasSubstr("has done 5, which are not those of this store"));
  EXPECT_EQ(with_tls({"adopt", "--queue", "q", "--yes"}).exit_code, 0);
  const ProgramResult sent = with_tls({"send", "--queue", "q", "--until-empty"});
  EXPECT_EQ(sent.exit_code, 0) << sent.said;
  EXPECT_THAT(encrypted.ids(), ElementsAre(6));
  EXPECT_THAT(with_tls({"status", "--tls-name", "nobody.test"}).said, HasSubstr("certificate"));
}

TEST_F(RedoCommandTest, LooksAtAStoreThatAProgramUses) {
  const auto store = RedoStore::Open({.directory = directory.File("store")}).value();
  RedoJournal* queue = store->OpenQueue("q").value();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue->Add(1, "paid").ok());
  ASSERT_TRUE(queue->Confirm(2, 0).ok());

  EXPECT_THAT(Redo({"status"}).said, AllOf(HasSubstr("added      5"), HasSubstr("backlog    3")));
  EXPECT_THAT(Redo({"show", "--queue", "q"}).said, HasSubstr("3 tasks from 3 on"));
  EXPECT_THAT(Redo({"send", "--queue", "q", "--server", address()}).said,
              HasSubstr("has it open. Stop that process"));

  ASSERT_TRUE(queue->Add(1, "paid").ok());  // Nothing was disturbed.
  EXPECT_THAT(Redo({"status"}).said, HasSubstr("added      6"));
}

// The program goes on adding and sending while it is looked at: the server may be ahead of a look
// that was taken before it was asked.
TEST_F(RedoCommandTest, DoesNotTakeALiveStoreForAnotherOne) {
  const auto store = RedoStore::Open({.directory = directory.File("store")}).value();
  RedoJournal* queue = store->OpenQueue("q").value();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue->Add(1, "paid").ok());
  server.SetOnAsked([&] {
    EXPECT_TRUE(queue->Add(1, "paid").ok());
    server.SetLast(6);
  });

  const std::string said = Redo({"status", "--server", address()}).said;

  EXPECT_THAT(said, AllOf(HasSubstr("added      6"), HasSubstr("has done 6\n")));
}

TEST_F(RedoCommandTest, SaysWhatIsWrong) {
  EXPECT_THAT(Redo({"add", "--queue", "q", Lines("one\n")}).said,
              HasSubstr("line 1: \"one\" does not begin with the type of a task"));
  EXPECT_THAT(Redo({"show", "--queue", "typo"}).said, HasSubstr("no queue \"typo\""));
  EXPECT_THAT(Redo({"send", "--queue", "q", "--server", "nowhere"}).said,
              HasSubstr("expected host:port"));
  EXPECT_EQ(Redo({"skip", "--queue", "q", "--task", "99", "--yes"}).exit_code, 2);
  EXPECT_THAT(RunProgram({.command = {ZEZE_BINARY, "redo", "--help"}}).said,
              HasSubstr("zeze redo send --queue recharge"));
}

}  // namespace
}  // namespace zeze
