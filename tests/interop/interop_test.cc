// A mixed cluster: servers of both implementations over one database, under either Global.
//
// ZEZE_INTEROP_SERVER and ZEZE_INTEROP_GLOBAL are the commands of the Java server and the Java
// Global, words separated by spaces (./dev interop sets them). Without them C++ programs that speak
// as Zeze 1.6 does stand in, which shows nothing about the Java peer itself.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/interop/interop_tables.h"
#include "tools/cli/open_database.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/loopback_proxy.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::interop {
namespace {

constexpr auto kPatience = std::chrono::minutes(2);
constexpr std::int64_t kTransactions = 20'000;
constexpr std::int32_t kThreads = 2;

std::vector<std::string> CommandFrom(const char* variable, std::vector<std::string> otherwise) {
  const char* set = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  if (set == nullptr) return otherwise;
  std::istringstream words(set);
  std::vector<std::string> command;
  for (std::string word; words >> word;) command.push_back(word);
  return command;
}

// The number behind a text at the end of what a process said.
std::int64_t Said(const ServerProcess& process, const std::string& text) {
  const std::string said = process.said();
  const std::size_t at = said.rfind(text + " ");
  EXPECT_NE(std::string::npos, at) << text << " is not in " << said;
  return at == std::string::npos ? -1 : std::stoll(said.substr(at + text.size() + 1));
}

class InteropTest : public ::testing::Test {
 protected:
  struct Member {
    std::int32_t id = 0;
    std::unique_ptr<LoopbackProxy> way;  // To Global.
    std::unique_ptr<ServerProcess> process;
  };

  InteropTest() : url_(SharedPostgresServer().NewDatabase()) {
    Result<std::unique_ptr<Storage>> opened = cli::OpenDatabase(url_);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    storage_ = std::move(opened).value();
    registry_ = Listen({ZEZE_BINARY, "service-manager", "--data", directory_.File("registry"),
                        "--ip", "127.0.0.1", "--port", "0"},
                       registry_port_);
  }

  static std::unique_ptr<ServerProcess> Listen(const std::vector<std::string>& command, int& port) {
    auto process = std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
    EXPECT_TRUE(process->AwaitLine("listening on port", kPatience)) << process->said();
    port = static_cast<int>(Said(*process, "listening on port"));
    return process;
  }

  void Start(std::int32_t id, std::vector<std::string> command, std::int64_t servers,
             const std::vector<std::string>& more = {}) {
    Member& member = members_.emplace_back();
    member.id = id;
    member.way = std::make_unique<LoopbackProxy>(global_port_);
    for (const std::string& word :
         {std::string("--id"), std::to_string(id), std::string("--database"), url_,
          std::string("--global"), std::to_string(member.way->port()), std::string("--registry"),
          std::to_string(registry_port_), std::string("--directory"), directory_.path(),
          std::string("--servers"), std::to_string(servers), std::string("--transactions"),
          std::to_string((kTransactions + servers - 1) / servers), std::string("--threads"),
          std::to_string(kThreads)}) {
      command.push_back(word);
    }
    command.insert(command.end(), more.begin(), more.end());
    member.process = std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
  }

  void Tell(const std::string& what) { std::ofstream(directory_.File(what)) << what; }

  // All work; meanwhile every way to Global is cut, one after the other. Then all see the same.
  void WorkAndCompare() {
    for (const Member& one : members_) {
      ASSERT_TRUE(one.process->AwaitLine("ready", kPatience)) << one.process->said();
    }
    const auto begin = SystemClock().Now();
    for (const Member& one : members_) one.way->CutAll();
    for (const Member& one : members_) {
      ASSERT_TRUE(one.process->AwaitLine("batch", kPatience)) << one.process->said();
      added_ += Said(*one.process, "added");
      failed_ += Said(*one.process, "batch");
    }
    const std::chrono::duration<double> took = SystemClock().Now() - begin;
    Tell("check");
    std::int64_t appended = 0;
    for (const Member& one : members_) {
      for (std::int32_t t = 0; t < kThreads; ++t) {
        appended += Said(*one.process, fmt::format("appended {}", t));
      }
    }
    for (const Member& one : members_) {
      ASSERT_TRUE(one.process->AwaitLine("saw", kPatience)) << one.process->said();
      EXPECT_NE(std::string::npos,
                one.process->said().find(fmt::format("saw {} 0 {}", added_, appended)))
          << "expected " << added_ << " and " << appended << ": " << one.process->said();
    }
    std::cout << fmt::format(
        "{} transactions on {} servers in {:.1f} s ({} tries failed and were repeated): {} "
        "counted, {} appended; all servers read the same\n",
        kTransactions, members_.size(), took.count(), failed_, added_, appended);
  }

  // The first one gives everything back when it stops: the others write all of it at once.
  void StopOneByOne() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Tell(fmt::format("stop-{}", members_[i].id));
      EXPECT_EQ(0, members_[i].process->AwaitEnd()) << members_[i].process->said();
      if (i != 0) continue;
      const auto begin = SystemClock().Now();
      Tell("again");
      for (std::size_t j = 1; j < members_.size(); ++j) {
        ASSERT_TRUE(members_[j].process->AwaitLine("again", kPatience))
            << members_[j].process->said();
        added_ += Said(*members_[j].process, "again");
      }
      const std::chrono::duration<double> took = SystemClock().Now() - begin;
      EXPECT_LT(took.count(), 30.0) << "nobody waits for a server that has closed normally";
      std::cout << fmt::format("after its orderly stop the others write all in {:.2f} s\n",
                               took.count());
    }
  }

  // What the database has: each element once, those of a thread in its order.
  void CheckRows() {
    std::int64_t counted = 0;
    std::int64_t accounts = 0;
    StorageTable* numbers = storage_->OpenTable("Zeze_Builtin_AutoKey_tAutoKeys").value();
    EXPECT_TRUE(numbers
                    ->Walk({},
                           [&](std::string_view key, std::string_view value) {
                             const BSeedKey seed = DecodeBean<BSeedKey>(key).value();
                             const BAutoKey number = DecodeBean<BAutoKey>(value).value();
                             if (seed.key_name == "interop.counter") counted += number.next_id;
                             if (seed.key_name == "interop.account") accounts += number.next_id;
                             return true;
                           })
                    .ok());
    EXPECT_EQ(added_, counted);
    EXPECT_EQ(0, accounts);

    std::map<std::int64_t, std::set<std::int64_t>> elements;  // By server and thread.
    std::size_t handed_on = 0;
    StorageTable* lists = storage_->OpenTable("Zeze_Builtin_Collections_Queue_tQueueNodes").value();
    const auto look = [&](std::string_view key, std::string_view value) {
      // Java servers have queues of their own in this table.
      if (DecodeBean<BQueueNodeKey>(key).value().name != "interop.list") return true;
      std::map<std::int64_t, std::int64_t> last;
      std::int64_t server = -1;
      const BQueueNode node = DecodeBean<BQueueNode>(value).value();
      for (const BQueueNodeValue& one : node.values) {
        const std::int64_t who = one.timestamp >> 40;
        EXPECT_LT(last[who], one.timestamp) << "not in order";
        last[who] = one.timestamp;
        EXPECT_TRUE(elements[who].insert(one.timestamp).second) << "twice";
        if (std::exchange(server, one.timestamp >> 48) != one.timestamp >> 48) ++handed_on;
      }
      return true;
    };
    EXPECT_TRUE(lists->Walk({}, look).ok());
    EXPECT_GT(handed_on, 10U) << "they did not work on the same records at the same time";
    std::cout << fmt::format("lists changed hands {} times between two appends\n", handed_on);
    for (const Member& one : members_) {
      for (std::int32_t t = 0; t < kThreads; ++t) {
        const std::int64_t count = Said(*one.process, fmt::format("appended {}", t));
        const std::set<std::int64_t>& his = elements[Element(one.id, t, 0) >> 40];
        EXPECT_EQ(count, static_cast<std::int64_t>(his.size()));
        ASSERT_FALSE(his.empty());
        EXPECT_EQ(Element(one.id, t, count), *his.rbegin());
      }
    }
  }

  static std::vector<std::string> PeerServer() {
    return CommandFrom("ZEZE_INTEROP_SERVER",
                       {ZEZE_INTEROP_CPP_SERVER, "--as-old-peer", "--allow-unfenced-global"});
  }
  static std::vector<std::string> PeerGlobal() {
    return CommandFrom("ZEZE_INTEROP_GLOBAL", {ZEZE_INTEROP_OLD_GLOBAL});
  }

  TempDirectory directory_;
  const std::string url_;
  std::unique_ptr<Storage> storage_;
  int registry_port_ = 0;
  std::unique_ptr<ServerProcess> registry_;
  int global_port_ = 0;
  std::unique_ptr<ServerProcess> global_;
  std::vector<Member> members_;
  std::int64_t added_ = 0;
  std::int64_t failed_ = 0;
};

TEST_F(InteropTest, APeerAndTwoOfOursUnderOurGlobal) {
  global_ = Listen({ZEZE_BINARY, "global", "--database", url_, "--ip", "127.0.0.1", "--port", "0",
                    "--unfenced-wait", "1000"},
                   global_port_);
  // The stand-in has a fence of its own, and would be looked for by a Global that recovers.
  ASSERT_TRUE(global_->AwaitLine("serves", kPatience)) << global_->said();
  Start(1, PeerServer(), 3);
  Start(2, {ZEZE_INTEROP_CPP_SERVER}, 3);
  Start(3, {ZEZE_INTEROP_CPP_SERVER}, 3);

  ASSERT_NO_FATAL_FAILURE(WorkAndCompare());
  ASSERT_NO_FATAL_FAILURE(StopOneByOne());
  CheckRows();
}

TEST_F(InteropTest, TwoOfOursUnderThePeersGlobal) {
  global_ = Listen(PeerGlobal(), global_port_);
  Start(1, {ZEZE_INTEROP_CPP_SERVER}, 2, {"--allow-unfenced-global"});
  Start(2, {ZEZE_INTEROP_CPP_SERVER}, 2, {"--allow-unfenced-global"});
  for (const Member& one : members_) {
    EXPECT_TRUE(one.process->AwaitLine("UNFENCED", kPatience)) << one.process->said();
    EXPECT_TRUE(one.process->AwaitLine("unfenced", kPatience)) << one.process->said();
  }

  ASSERT_NO_FATAL_FAILURE(WorkAndCompare());
  for (const Member& one : members_) {
    EXPECT_NE(std::string::npos, one.process->said().find("goes on with its session"))
        << one.process->said();
  }
  ASSERT_NO_FATAL_FAILURE(StopOneByOne());
  CheckRows();
}

}  // namespace
}  // namespace zeze::interop
