// `zeze service-manager` and servers as processes that are killed without a warning.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::registry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience(60);

using Identities = std::set<std::string>;

class RegistryProcessTest : public ::testing::Test {
 protected:
  RegistryProcessTest() : pool_({.name = "pool", .thread_count = 2}), io_({.name = "io"}) {
    StartManager(0);
  }

  std::vector<std::string> Command(int port) const {
    return {ZEZE_BINARY,
            "service-manager",
            "--ip",
            "127.0.0.1",
            "--port",
            std::to_string(port),
            "--data",
            directory_.File("data"),
            "--recovery",
            "3000",
            "--offline-delay",
            "500",
            "--config",
            config_};
  }
  void StartManager(int port) {
    config_ = directory_.File("zeze.xml");
    std::ofstream(config_) << "<zeze/>";
    manager_ = std::make_unique<ServerProcess>(ServerProcessOptions{.command = Command(port)});
    ASSERT_TRUE(manager_->AwaitLine("listening on port", kPatience)) << manager_->said();
    const std::string said = manager_->said();
    const std::string mark = "listening on port ";
    port_ = std::stoi(said.substr(said.find(mark) + mark.size()));
  }
  void KillManager() { manager_->Kill(); }

  void StartMember(int id) {
    Start(id, {ZEZE_REGISTRY_MEMBER, "--port", std::to_string(port_), "--id", std::to_string(id)});
  }
  // A member with all that an application has.
  void StartApplication(int id) {
    const std::string file = directory_.File(fmt::format("zeze{}.xml", id));
    std::ofstream(file) << fmt::format(
        R"(<zeze ServerId="{}" WorkerThreads="1">
             <DatabaseConf DatabaseType="RocksDB" DatabaseUrl="{}"/>
             <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
               <Connector HostNameOrAddress="127.0.0.1" Port="{}"/>
             </ServiceConf>
           </zeze>)",
        id, directory_.File(fmt::format("db{}", id)), port_);
    Start(id, {ZEZE_REGISTRY_APPLICATION, file});
  }
  void Start(int id, std::vector<std::string> command) {
    auto member =
        std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
    ASSERT_TRUE(member->AwaitLine("ready", kPatience)) << member->said();
    members_[id] = std::move(member);
  }

  std::unique_ptr<RegistryAgent> StartAgent() {
    RegistryAgentOptions options;
    options.connector = {.host = "127.0.0.1",
                         .port = static_cast<std::uint16_t>(port_),
                         .first_delay = milliseconds(50),
                         .delay_max = milliseconds(200)};
    options.hold = seconds(1);
    options.id_block = 10;
    auto agent = std::make_unique<RegistryAgent>(io_, pool_, options);
    EXPECT_TRUE(agent->Start().ok());
    return agent;
  }
  // Remembers every list that it is told.
  void Watch(RegistryAgent& agent) {
    agent.Subscribe({.name = "Shop"}, [this](const ServiceListPtr& list, const ServiceChange&) {
      Identities all;
      for (const auto& [version, services] : list->versions) {
        for (const ServiceInfo& info : services) all.insert(info.identity);
      }
      const MutexLock lock(mutex_);
      lists_.push_back(all);
      changed_.NotifyAll();
    });
  }
  bool Sees(const Identities& expected) {
    const MutexLock lock(mutex_);
    while (lists_.empty() || lists_.back() != expected) {
      if (!changed_.WaitFor(mutex_, kPatience)) return false;
    }
    return true;
  }
  std::vector<Identities> lists() {
    const MutexLock lock(mutex_);
    return lists_;
  }
  // How often anybody said that it took over this server.
  std::size_t TimesTaken(int id) {
    std::size_t count = 0;
    const std::string line = "taken " + std::to_string(id) + "\n";
    for (const auto& [member, process] : members_) {
      const std::string said = process->said();
      for (std::size_t at = said.find(line); at != std::string::npos;
           at = said.find(line, at + 1)) {
        ++count;
      }
    }
    return count;
  }
  void AwaitTaken(int id) {
    while (TimesTaken(id) == 0) std::this_thread::yield();
  }

  const TempDirectory directory_;
  std::string config_;
  ThreadPool pool_;
  IoThreads io_;
  int port_ = 0;
  std::unique_ptr<ServerProcess> manager_;
  std::map<int, std::unique_ptr<ServerProcess>> members_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Identities> lists_ ZEZE_GUARDED_BY(mutex_);
};

TEST_F(RegistryProcessTest, AKilledServerIsRemovedAndTakenOverOnce) {
  const auto reader = StartAgent();
  Watch(*reader);
  for (const int id : {1, 2, 3}) StartMember(id);
  EXPECT_TRUE(Sees({"1", "2", "3"}));

  members_[3]->Kill();
  EXPECT_TRUE(Sees({"1", "2"}));
  AwaitTaken(3);
  // Not the one that took over: killed before it could say so, it would be followed by the next.
  const int other = members_[1]->said().find("taken 3") == std::string::npos ? 1 : 2;
  members_[other]->Kill();
  AwaitTaken(other);  // Later than a second "taken 3" would come.
  EXPECT_EQ(1U, TimesTaken(3));
  EXPECT_EQ(1U, TimesTaken(other));
}

TEST_F(RegistryProcessTest, AKilledServiceManagerComesBackAsItWas) {
  const auto reader = StartAgent();
  Watch(*reader);
  for (const int id : {1, 2, 3}) StartMember(id);
  EXPECT_TRUE(Sees({"1", "2", "3"}));
  const std::size_t before = lists().size();

  for (int i = 0; i < 3; ++i) {
    KillManager();
    StartManager(port_);
    ASSERT_TRUE(reader->AwaitSettled(kPatience).ok());
  }
  StartMember(4);
  EXPECT_TRUE(Sees({"1", "2", "3", "4"}));
  EXPECT_EQ(before + 1, lists().size()) << "the restarts were no news";
  EXPECT_EQ(0U, TimesTaken(1) + TimesTaken(2) + TimesTaken(3));
}

TEST_F(RegistryProcessTest, WhoDiesWithTheServiceManagerIsRemovedAndTakenOver) {
  const auto reader = StartAgent();
  Watch(*reader);
  for (const int id : {1, 2, 3}) StartMember(id);
  EXPECT_TRUE(Sees({"1", "2", "3"}));

  KillManager();
  members_[3]->Kill();
  StartManager(port_);
  EXPECT_TRUE(Sees({"1", "2"}));
  AwaitTaken(3);
  for (const Identities& one : lists()) {
    EXPECT_TRUE(one.size() < 3 || one.contains("2")) << "only the dead one went";
  }
  EXPECT_TRUE(lists().back().contains("1"));
  EXPECT_EQ(1U, TimesTaken(3));
}

TEST_F(RegistryProcessTest, NoIdComesTwiceWhenTheServiceManagerIsKilled) {
  const auto first = StartAgent();
  const auto second = StartAgent();
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> count = 0;
  std::vector<std::vector<std::int64_t>> ids(2);
  std::vector<std::vector<Id128>> wide(2);
  std::vector<std::thread> threads;
  const std::vector<RegistryAgent*> agents = {first.get(), second.get()};
  for (std::size_t i = 0; i < agents.size(); ++i) {
    threads.emplace_back([&, i] {
      while (!stop) {
        const Result<std::int64_t> id = agents[i]->NextId("order");
        if (id.ok()) ids[i].push_back(id.value());
        const Result<Id128> id128 = agents[i]->NextId128("order");
        if (id128.ok()) wide[i].push_back(id128.value());
        ++count;
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    const std::size_t reached = count + 200;
    while (count < reached) std::this_thread::yield();
    KillManager();
    StartManager(port_);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  std::set<std::int64_t> all;
  std::set<Id128> all_wide;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    for (const std::int64_t id : ids[i]) EXPECT_TRUE(all.insert(id).second) << id;
    for (const Id128& id : wide[i]) EXPECT_TRUE(all_wide.insert(id).second) << id.low;
  }
  EXPECT_GT(all.size(), 500U);
  EXPECT_GT(all_wide.size(), 500U);
}

TEST_F(RegistryProcessTest, AnOrderlyStopKeepsTheList) {
  const auto reader = StartAgent();
  Watch(*reader);
  StartMember(1);
  EXPECT_TRUE(Sees({"1"}));
  manager_->Signal(SIGTERM);
  EXPECT_EQ(0, manager_->AwaitEnd());
  StartManager(port_);
  StartMember(2);
  EXPECT_TRUE(Sees({"1", "2"}));
  for (const Identities& one : lists()) EXPECT_TRUE(one.empty() || one.contains("1"));

  members_[1]->Signal(SIGTERM);
  EXPECT_EQ(0, members_[1]->AwaitEnd());
  EXPECT_TRUE(Sees({"2"}));
  members_[2]->Kill();
  StartMember(3);
  AwaitTaken(2);
  EXPECT_EQ(0U, TimesTaken(1)) << "it said goodbye";
}

TEST_F(RegistryProcessTest, AnApplicationIsListedWhileItRunsAndTakenOverOnlyIfItIsKilled) {
  const auto reader = StartAgent();
  Watch(*reader);
  for (const int id : {1, 2, 3}) StartApplication(id);
  EXPECT_TRUE(Sees({"1", "2", "3"}));

  members_[1]->Signal(SIGTERM);
  EXPECT_EQ(0, members_[1]->AwaitEnd()) << members_[1]->said();
  EXPECT_TRUE(Sees({"2", "3"}));
  members_[2]->Kill();
  EXPECT_TRUE(Sees({"3"}));
  AwaitTaken(2);
  EXPECT_EQ(0U, TimesTaken(1)) << "it said goodbye";
}

TEST_F(RegistryProcessTest, TheSecondOneIsToldWhyItCannotStart) {
  const ProgramResult same_data = RunProgram({.command = Command(0)});
  EXPECT_EQ(1, same_data.exit_code);
  EXPECT_NE(std::string::npos, same_data.said.find(directory_.File("data"))) << same_data.said;

  std::vector<std::string> command = Command(port_);
  for (std::string& word : command) {
    if (word == directory_.File("data")) word = directory_.File("other");
  }
  const ProgramResult same_port = RunProgram({.command = command});
  EXPECT_EQ(1, same_port.exit_code);
  EXPECT_NE(std::string::npos, same_port.said.find("another process listens there"))
      << same_port.said;
}

}  // namespace
}  // namespace zeze::registry
