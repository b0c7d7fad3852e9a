// A mixed cluster: servers of both implementations over one database, under either Global and with
// either service manager.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/interop/interop_fixture.h"
#include "tests/interop/interop_tables.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/loopback_proxy.h"
#include "zeze/storage/testing/server_process.h"

namespace zeze::interop {
namespace {

constexpr std::int64_t kTransactions = 20'000;
constexpr std::int32_t kThreads = 2;

// Ways to Global that are cut while servers work, one after the other.
constexpr int kCuts = 6;

enum class Engine : std::uint8_t { kPostgreSql, kMariaDb };

struct World {
  const char* name = "";
  Engine database = Engine::kPostgreSql;
  bool registry_of_peer = false;
};

class InteropTest : public InteropFixture, public ::testing::WithParamInterface<World> {
 protected:
  struct Member {
    std::int32_t id = 0;
    // A transaction of a Java server that loses its connection to Global while it waits for a right
    // waits for ever, and keeps its record locked (docs/interop.md).
    bool may_be_cut = true;
    std::unique_ptr<LoopbackProxy> way;  // To Global.
    std::unique_ptr<ServerProcess> process;
  };

  void SetUp() override {
    if (GetParam().registry_of_peer && JavaCommand() == nullptr) {
      GTEST_SKIP() << "only with the Java peer: ./dev interop";
    }
    url_ =
        (GetParam().database == Engine::kMariaDb ? SharedMariaDbServer() : SharedPostgresServer())
            .NewDatabase();
    Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = url_});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    storage_ = std::move(opened).value();
    StartRegistry(GetParam().registry_of_peer);
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
    member.process = Run(command);
  }

  // All work; meanwhile every way to Global is cut: all together as soon as there is work, then one
  // after the other while it lasts. Then all see the same.
  void WorkAndCompare() {
    for (const Member& one : members_) {
      ASSERT_TRUE(one.process->AwaitLine("ready", kPatience)) << one.process->said();
    }
    const auto begin = SystemClock().Now();
    int cuts = 0;
    for (const Member& one : members_) {
      if (!one.may_be_cut) continue;
      one.way->CutAll();
      ++cuts;
    }
    int turn = -1;
    for (const Member& one : members_) {
      while (cuts < kCuts && one.process->running() &&
             !one.process->AwaitLine("\nbatch ", std::chrono::seconds(2))) {
        const Member& next = members_[static_cast<std::size_t>(++turn) % members_.size()];
        if (!next.may_be_cut) continue;
        next.way->CutAll();
        ++cuts;
      }
      ASSERT_TRUE(one.process->AwaitLine("\nbatch ", kPatience))
          << one.process->said() << "Global:\n"
          << global_->said();
      added_ += Said(*one.process, "\nadded");
      failed_ += Said(*one.process, "\nbatch");
    }
    const std::chrono::duration<double> took = SystemClock().Now() - begin;
    Tell("check");
    std::int64_t appended = 0;
    for (const Member& one : members_) {
      for (std::int32_t t = 0; t < kThreads; ++t) {
        appended += Said(*one.process, fmt::format("\nappended {}", t));
      }
    }
    for (const Member& one : members_) {
      ASSERT_TRUE(one.process->AwaitLine("\nsaw ", kPatience)) << one.process->said();
      const std::string said = one.process->said();
      const std::string saw =
          said.substr(said.rfind("saw "), said.find('\n', said.rfind("saw ")) - said.rfind("saw "));
      // What killed servers did and saved comes on top.
      const std::string all = killed_.empty() ? fmt::format("saw {} 0 {}", added_, appended) : saw_;
      if (!all.empty()) {
        EXPECT_EQ(all, saw);
      }
      saw_ = saw;
    }
    std::cout << fmt::format(
        "{} transactions on {} servers in {:.1f} s, {} connections cut ({} tries failed and were "
        "repeated): {} counted, {} appended; all servers read the same\n",
        kTransactions * static_cast<std::int64_t>(members_.size()) /
            static_cast<std::int64_t>(members_.size() + killed_.size()),
        members_.size(), took.count(), cuts, failed_, added_, appended);
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
        ASSERT_TRUE(members_[j].process->AwaitLine("\nagain ", kPatience))
            << members_[j].process->said();
        added_ += Said(*members_[j].process, "\nagain");
      }
      const std::chrono::duration<double> took = SystemClock().Now() - begin;
      EXPECT_LT(took.count(), 30.0) << "nobody waits for a server that has closed normally";
      std::cout << fmt::format("after its orderly stop the others write all in {:.2f} s\n",
                               took.count());
    }
  }

  // True as soon as the database has some elements of this server.
  bool AwaitElementsOf(std::int32_t id) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (SystemClock().Now() < deadline) {
      int found = 0;
      StorageTable* lists =
          storage_->OpenTable("Zeze_Builtin_Collections_Queue_tQueueNodes").value();
      const auto count = [&](std::string_view key, std::string_view value) {
        if (DecodeBean<BQueueNodeKey>(key).value().name != "interop.list") return true;
        const BQueueNode node = DecodeBean<BQueueNode>(value).value();
        for (const BQueueNodeValue& one : node.values) {
          if (one.timestamp >> 48 == id) ++found;
        }
        return true;
      };
      EXPECT_TRUE(lists->Walk({}, count).ok());
      if (found > 50) return true;
      SystemClock().SleepFor(std::chrono::milliseconds(50));
    }
    return false;
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
    if (killed_.empty()) {
      EXPECT_EQ(added_, counted);
    }
    EXPECT_LE(added_, counted);
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
        const std::int64_t count = Said(*one.process, fmt::format("\nappended {}", t));
        const std::set<std::int64_t>& his = elements[Element(one.id, t, 0) >> 40];
        EXPECT_EQ(count, static_cast<std::int64_t>(his.size()));
        ASSERT_FALSE(his.empty());
        EXPECT_EQ(Element(one.id, t, count), *his.rbegin());
      }
    }
  }

  void StartPeer(std::int32_t id, std::int64_t servers) {
    if (JavaCommand() == nullptr) {
      return Start(id, {ZEZE_INTEROP_CPP_SERVER, "--as-old-peer", "--allow-unfenced-global"},
                   servers);
    }
    Start(id, Java("PeerServer"), servers);
    members_.back().may_be_cut = false;
  }
  void StartPeerGlobal() {
    global_ = Listen(JavaCommand() != nullptr ? Java("PeerGlobal")
                                              : std::vector<std::string>{ZEZE_INTEROP_OLD_GLOBAL},
                     global_port_);
  }

  std::string url_;
  std::unique_ptr<Storage> storage_;
  std::vector<Member> members_;
  std::set<std::int32_t> killed_;
  std::string saw_;
  std::int64_t added_ = 0;
  std::int64_t failed_ = 0;
};

TEST_P(InteropTest, APeerAndTwoOfOursUnderOurGlobal) {
  ASSERT_NO_FATAL_FAILURE(StartGlobal(url_));
  StartPeer(1, 3);
  Start(2, {ZEZE_INTEROP_CPP_SERVER}, 3);
  Start(3, {ZEZE_INTEROP_CPP_SERVER}, 3);

  ASSERT_NO_FATAL_FAILURE(WorkAndCompare());
  ASSERT_NO_FATAL_FAILURE(StopOneByOne());
  CheckRows();
}

TEST_P(InteropTest, TwoOfOursUnderThePeersGlobal) {
  StartPeerGlobal();
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

TEST_P(InteropTest, APeerAndTwoOfOursUnderThePeersGlobal) {
  if (JavaCommand() == nullptr) GTEST_SKIP() << "only with the Java peer: ./dev interop";
  StartPeerGlobal();
  StartPeer(1, 3);
  Start(2, {ZEZE_INTEROP_CPP_SERVER}, 3, {"--allow-unfenced-global"});
  Start(3, {ZEZE_INTEROP_CPP_SERVER}, 3, {"--allow-unfenced-global"});

  ASSERT_NO_FATAL_FAILURE(WorkAndCompare());
  ASSERT_NO_FATAL_FAILURE(StopOneByOne());
  CheckRows();
}

// One of ours and then the peer are killed while they work; the others lose nothing.
TEST_P(InteropTest, OthersLoseNothingWhenServersAreKilled) {
  if (JavaCommand() == nullptr) GTEST_SKIP() << "only with the Java peer: ./dev interop";
  ASSERT_NO_FATAL_FAILURE(StartGlobal(url_));
  StartPeer(1, 4);
  Start(2, {ZEZE_INTEROP_CPP_SERVER}, 4);
  Start(3, {ZEZE_INTEROP_CPP_SERVER}, 4);
  StartPeer(4, 4);
  for (const Member& one : members_) {
    ASSERT_TRUE(one.process->AwaitLine("ready", kPatience)) << one.process->said();
  }
  for (const std::size_t victim : {2U, 0U}) {
    ASSERT_TRUE(AwaitElementsOf(members_[victim].id));
    members_[victim].process->Kill();
    killed_.insert(members_[victim].id);
    Tell(fmt::format("killed-{}", members_[victim].id));
  }
  std::erase_if(members_, [this](const Member& one) { return killed_.contains(one.id); });

  ASSERT_NO_FATAL_FAILURE(WorkAndCompare());
  ASSERT_NO_FATAL_FAILURE(StopOneByOne());
  CheckRows();
}

INSTANTIATE_TEST_SUITE_P(Worlds, InteropTest,
                         ::testing::Values(World{"PostgreSqlAndOurServiceManager"},
                                           World{"MariaDbAndThePeersServiceManager",
                                                 Engine::kMariaDb, true}),
                         [](const auto& world) { return std::string(world.param.name); });

}  // namespace
}  // namespace zeze::interop
