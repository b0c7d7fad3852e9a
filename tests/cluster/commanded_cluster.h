// CommandedCluster: Globals, servers that do what a test tells them, and a PostgreSQL; all of them
// real processes. A test can cut the ways between each server and the others: proxies, or the
// cables of a machine of its own (Machines::kHosts, after EnterTestNetwork).
//
//   CommandedCluster cluster;
//   CommandedServer& holder = cluster.AddServer(1);
//   holder.Do("add 0 1000");                          // 1,000 commits, and none of them is saved.
//   Cut(holder.global());
//   EXPECT_EQ(0, cluster.AddServer(2).Do("add 0 1000").refused);

#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/cluster/cluster_tables.h"
#include "tests/cluster/test_host.h"
#include "tests/cluster/way.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::cluster {

inline constexpr auto kPatience = std::chrono::minutes(1);

// Where servers run: beside the others, or each on a host of its own.
enum class Machines : std::uint8_t { kOne, kHosts };

struct CommandedOptions {
  int id = 0;
  std::chrono::milliseconds lease = std::chrono::seconds(6);
  // Nothing is saved by the clock unless a test asks for it.
  std::chrono::milliseconds checkpoint = std::chrono::hours(1);
  bool under_daemon = false;
};

// What a server answered to an order.
struct CommandedAnswer {
  std::int64_t done = -1;  // -1: there was no answer.
  std::int64_t refused = -1;
  std::int64_t sum = -1;

  bool operator==(const CommandedAnswer&) const = default;
};

// Not thread-safe.
class CommandedServer {
 public:
  CommandedServer(const CommandedOptions& options, Machines machines, const std::string& url,
                  const std::vector<int>& global_ports)
      : options_(options) {
    if (machines == Machines::kHosts) host_.emplace();
    database_ = LayWay("database", PortInUrl(url), Way::AtOurEnd::kProxy);
    url_ = UrlOver(*database_, url);
    for (std::size_t shard = 0; shard < global_ports.size(); ++shard) {
      globals_.push_back(
          LayWay(fmt::format("global{}", shard), global_ports[shard], Way::AtOurEnd::kServer));
    }
    ZEZE_CHECK(::mkfifo(OrderFile().c_str(), 0600) == 0);
    orders_.open(OrderFile(), std::ios::in | std::ios::out);
    Start();
  }
  CommandedServer(const CommandedServer&) = delete;
  CommandedServer& operator=(const CommandedServer&) = delete;
  ~CommandedServer() {
    // A paused process, or one that cannot save, would not end with SIGTERM; a killed daemon would
    // leave its child.
    if (!options_.under_daemon) process_->Signal(SIGKILL);
  }

  void Start() {
    std::vector<std::string> command;
    if (options_.under_daemon) {
      command = {ZEZE_BINARY, "daemon", "--first-delay", "10ms", "--stop-timeout", "10s", "--"};
    }
    std::string globals;
    for (const auto& global : globals_) globals += (globals.empty() ? "" : ",") + global->address();
    command.insert(command.end(), {ZEZE_COMMANDED_SERVER, "--id", std::to_string(options_.id),
                                   "--database", url_, "--global", globals, "--orders", OrderFile(),
                                   "--lease", std::to_string(options_.lease.count()),
                                   "--checkpoint", std::to_string(options_.checkpoint.count())});
    if (host_.has_value()) command = host_->Inside(command);
    process_ = std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
  }

  ServerProcess& process() { return *process_; }
  std::string said() const { return process_->said(); }
  Way& global(std::size_t shard = 0) { return *globals_.at(shard); }
  Way& database() { return *database_; }

  bool AwaitReady() { return process_->AwaitLine("ready\n", kPatience); }

  // The status with which it ended; 0 if it does not end.
  int AwaitFenced() { return process_->AwaitLine("fenced", kPatience) ? process_->AwaitEnd() : 0; }

  // The order's number; it is carried out while the test goes on.
  int Begin(const std::string& order) {
    orders_ << ++last_order_ << ' ' << order << '\n' << std::flush;
    return last_order_;
  }

  // Nothing (-1) if the process ended or the time is over.
  CommandedAnswer Await(int order, std::chrono::nanoseconds patience = kPatience) {
    CommandedAnswer answer;
    const std::string mark = fmt::format("order {}: ", order);
    if (!process_->AwaitLine(mark, patience)) return answer;
    const std::string said = process_->said();
    std::string word;
    std::istringstream(said.substr(said.find(mark) + mark.size())) >> answer.done >> word >>
        answer.refused >> word >> word >> answer.sum;
    return answer;
  }

  CommandedAnswer Do(const std::string& order, std::chrono::nanoseconds patience = kPatience) {
    return Await(Begin(order), patience);
  }

 private:
  std::string OrderFile() const { return directory_.File("orders"); }

  std::unique_ptr<Way> LayWay(const std::string& name, int port, Way::AtOurEnd at_our_end) {
    if (!host_.has_value()) return std::make_unique<Way>(port);
    return std::make_unique<Way>(*host_, name, port, at_our_end);
  }

  const CommandedOptions options_;
  TempDirectory directory_;
  std::fstream orders_;
  std::optional<TestHost> host_;
  std::vector<std::unique_ptr<Way>> globals_;
  std::unique_ptr<Way> database_;
  std::string url_;
  std::unique_ptr<ServerProcess> process_;
  int last_order_ = 0;
};

// Not thread-safe.
class CommandedCluster {
 public:
  // With more options for `zeze global`.
  explicit CommandedCluster(std::vector<std::string> global_options = {}, std::size_t shards = 1,
                            Machines machines = Machines::kOne)
      : global_options_(std::move(global_options)),
        machines_(machines),
        url_(SharedPostgresServer().NewDatabase()),
        global_database_(PortInUrl(url_)),
        globals_(shards),
        global_ports_(shards) {
    Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = url_});
    ZEZE_CHECK(opened.ok());
    storage_ = std::move(opened).value();
    for (std::size_t shard = 0; shard < shards; ++shard) StartGlobal(shard);
  }

  // The first time on any port, then on the same one.
  void StartGlobal(std::size_t shard = 0) {
    std::unique_ptr<ServerProcess>& global = globals_.at(shard);
    std::vector<std::string> command = {ZEZE_BINARY,
                                        "global",
                                        "--database",
                                        UrlOver(global_database_, url_),
                                        "--shard",
                                        std::to_string(shard),
                                        "--shards",
                                        std::to_string(globals_.size()),
                                        "--ip",
                                        machines_ == Machines::kHosts ? "0.0.0.0" : "127.0.0.1",
                                        "--port",
                                        std::to_string(global_ports_[shard]),
                                        "--alert-command",
                                        "echo \"ALERT $ZEZE_ALERT_KIND $ZEZE_ALERT_SERVER_ID.\""};
    command.insert(command.end(), global_options_.begin(), global_options_.end());
    global = std::make_unique<ServerProcess>(ServerProcessOptions{.command = std::move(command)});
    const std::string mark = "listening on port ";
    ASSERT_TRUE(global->AwaitLine(mark, kPatience)) << global->said();
    const std::string said = global->said();
    global_ports_[shard] = std::stoi(said.substr(said.find(mark) + mark.size()));
  }

  // Returns when it serves.
  CommandedServer& AddServer(const CommandedOptions& options) {
    servers_.push_back(std::make_unique<CommandedServer>(options, machines_, url_, global_ports_));
    EXPECT_TRUE(servers_.back()->AwaitReady()) << servers_.back()->said() << global().said();
    return *servers_.back();
  }
  CommandedServer& AddServer(int id) { return AddServer(CommandedOptions{.id = id}); }

  ServerProcess& global(std::size_t shard = 0) { return *globals_.at(shard); }
  Way& global_database() { return global_database_; }
  const std::vector<std::unique_ptr<CommandedServer>>& servers() const { return servers_; }
  CommandedServer& server(std::size_t place) { return *servers_.at(place); }

  std::string RunSql(const std::string& sql) { return SharedPostgresServer().RunSql(url_, sql); }

  // The sum of all values that are saved.
  std::int64_t SavedSum() {
    std::int64_t sum = 0;
    const Result<std::size_t> walked =
        storage_->OpenTable("cluster_counters")
            .value()
            ->Walk({}, [&](std::string_view, std::string_view value) {
              BNumber number;
              ByteReader in(value);
              number.Decode(in);
              sum += number.value;
              return true;
            });
    EXPECT_TRUE(walked.ok()) << walked.error().message();
    return sum;
  }
  bool AwaitSavedSum(std::int64_t sum) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (SavedSum() < sum) {
      if (SystemClock().Now() > deadline) return false;
    }
    return true;
  }

  // Returns right after a renewal of the server's lease was written.
  void AwaitRenewal(std::int32_t server_id) {
    const std::int64_t before = Renewals(server_id);
    const auto deadline = SystemClock().Now() + kPatience;
    while (Renewals(server_id) == before) ASSERT_LT(SystemClock().Now(), deadline);
  }

  // Whether the first Global has told its operators "ALERT kind server."
  bool Told(const std::string& kind, int server_id) {
    return global().said().find(Alert(kind, server_id)) != std::string::npos;
  }
  bool AwaitTold(const std::string& kind, int server_id) {
    return global().AwaitLine(Alert(kind, server_id), kPatience);
  }
  // Since their last start, whichever Global.
  bool ToldOfEvictions() const {
    for (const auto& global : globals_) {
      // Its log says it earlier than the alert does.
      if (global->said().find(") is evicted: ") != std::string::npos) return true;
    }
    return false;
  }

 private:
  static std::string Alert(const std::string& kind, int server_id) {
    return fmt::format("ALERT {} {}.", kind, server_id);
  }
  std::int64_t Renewals(std::int32_t server_id) {
    const Result<std::vector<LiveServer>> live = storage_->fence()->ListLive();
    if (!live.ok()) return 0;
    for (const LiveServer& server : live.value()) {
      if (server.server_id == server_id && !server.fenced) return server.renew_seq;
    }
    return 0;
  }

  const std::vector<std::string> global_options_;
  const Machines machines_;
  const std::string url_;
  Way global_database_;
  std::unique_ptr<Storage> storage_;
  std::vector<std::unique_ptr<ServerProcess>> globals_;
  std::vector<int> global_ports_;  // By shard; 0: it has not started yet.
  std::vector<std::unique_ptr<CommandedServer>> servers_;
};

// How long something took.
class Stopwatch {
 public:
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(SystemClock().Now() - begin_);
  }

 private:
  const std::chrono::nanoseconds begin_ = SystemClock().Now();
};

}  // namespace zeze::cluster
