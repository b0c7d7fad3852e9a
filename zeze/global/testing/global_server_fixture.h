// A GlobalServer of term 2 whose servers are there from before, with the fence rows that it reads.
// Writes down what it grants, refuses, wants and evicts.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/global/directory.h"
#include "zeze/global/global_server.h"
#include "zeze/global/lease.h"
#include "zeze/global/messages.h"
#include "zeze/storage/fence.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

inline constexpr std::int64_t kTerm = 2;
inline constexpr std::int64_t kEpoch = 1;
inline constexpr std::chrono::milliseconds kUnsaid(0);
inline constexpr std::chrono::milliseconds kStep(250);

class GlobalServerTest : public ::testing::Test, private GlobalOutput {
 protected:
  void SendLoginReply(ConnectionId to, const LoginReply& reply) override {
    if (reply.outcome == LoginOutcome::kAccepted) return;
    said.push_back(fmt::format("reply {} {} {}", to, static_cast<int>(reply.outcome), reply.text));
  }
  void SendGrant(ConnectionId to, std::uint64_t /*request*/, std::string_view key,
                 Right right) override {
    said.push_back(fmt::format("grant {} {} {}", to, key, static_cast<int>(right)));
  }
  void SendRefusal(ConnectionId to, std::uint64_t /*request*/, std::string_view key,
                   Right /*wanted*/, Refusal /*refusal*/) override {
    said.push_back(fmt::format("refuse {} {}", to, key));
  }
  void SendReleased(ConnectionId /*to*/, std::uint64_t /*request*/,
                    std::string_view /*key*/) override {}
  void SendReduce(ConnectionId to, std::uint64_t serial, std::string_view /*key*/,
                  Right /*right*/) override {
    asked.push_back(to);
    last_serial = serial;
  }
  void Close(ConnectionId /*connection*/) override {}
  void RaiseTerm() override {}
  void ReadTerm() override {}
  void ListLive() override { list_asked = true; }
  void Evict(std::int32_t server_id, std::int64_t /*epoch*/, std::int64_t /*term*/,
             const EvictUnless& unless) override {
    said.push_back(fmt::format("evict {}", server_id));
    last_unless = unless;
  }
  void ReadServer(std::int32_t /*server_id*/) override {}
  void LeaseOver(std::int32_t server_id, std::int64_t /*epoch*/) override { rows.erase(server_id); }
  void Want(std::int32_t server_id, std::int64_t /*epoch*/, std::int64_t /*term*/) override {
    if (wanted.insert(server_id).second) said.push_back(fmt::format("want {}", server_id));
    want_asked.push_back(server_id);
  }
  void Unwant(std::int32_t server_id, std::int64_t /*epoch*/, std::int64_t /*term*/) override {
    wanted.erase(server_id);
  }
  void ReadYields() override { yields_asked = true; }
  void StopServer(std::int32_t /*server_id*/, std::uint64_t /*ticket*/) override {}
  void Alert(const GlobalAlert& alert) override { alerts.emplace_back(ToString(alert.kind)); }

  // Servers 1 to 3 are listed; what the first said of its lease.
  void Start(std::chrono::milliseconds first_lease = kUnsaid) {
    for (const std::int32_t id : {1, 2, 3}) {
      rows[id] = {
          .server_id = id, .epoch = kEpoch, .holder = {}, .lease = id == 1 ? first_lease : kUnsaid};
    }
    StartWithRows();
  }
  void StartWithRows() {
    global.Start(now);
    global.OnTermRaised(now, kTerm);
    global.OnLiveServers(now, Listed());
    list_asked = false;
  }
  std::vector<LiveServer> Listed() const {
    std::vector<LiveServer> live;
    for (const auto& [id, row] : rows) live.push_back(row);
    return live;
  }

  // Over a connection with the server's number.
  void Login(std::int32_t server_id, std::vector<HeldRight> rights,
             std::chrono::milliseconds lease = kUnsaid) {
    global.OnLogin(now, static_cast<ConnectionId>(server_id),
                   {.server_id = server_id,
                    .epoch = kEpoch,
                    .start_term = kTerm - 1,
                    .rights = std::move(rights),
                    .lease = lease});
    global.OnServerRow(now, server_id, Fence::ServerRow{.epoch = kEpoch, .live = true});
  }
  // As whoever it is, with a proof that is good for one secret.
  void LoginAs(ConnectionId connection, std::int64_t epoch, const std::string& secret) {
    global.OnLogin(now, connection,
                   {.server_id = 1,
                    .epoch = epoch,
                    .start_term = kTerm,
                    .rights = {},
                    .proves = [secret](std::string_view other) { return secret == other; }});
  }
  void AnswerRow(const std::string& secret) {
    global.OnServerRow(now, 1, Fence::ServerRow{.epoch = kEpoch, .live = true, .secret = secret});
  }

  // Everything that is due, and what the database answers.
  void Look() {
    do {
      global.Tick(now);
      for (const std::int32_t id : std::exchange(want_asked, {})) {
        global.OnWanted(now, id, kEpoch, true);
      }
      if (std::exchange(yields_asked, false)) global.OnYields(now, yields);
      if (std::exchange(list_asked, false)) global.OnLiveServers(now, Listed());
    } while (list_asked || yields_asked);
    global.Tick(now);
  }
  // As long as a lease can have lasted. Whoever is connected is heard meanwhile.
  void WaitOut(std::int32_t heard) { Wait(options.lease.free_after(), heard); }
  void Wait(std::chrono::nanoseconds time, std::int32_t heard) {
    const auto until = now + time;
    while (now < until) {
      now = std::min(now + kStep, until);
      for (const std::int32_t id : renewing) ++rows[id].renew_seq;
      global.OnKeepAlive(now, static_cast<ConnectionId>(heard));
      for (const ConnectionId id : speaking) global.OnKeepAlive(now, id);
      Look();
    }
  }
  // The database has fenced it.
  void Evicted(std::int32_t server_id) {
    rows[server_id].fenced = true;
    global.OnEvicted(now, server_id, kEpoch, EvictOutcome::kEvicted);
    Look();
  }

  // The first server has "a" and is evicted; the third wants it. When does it get it?
  std::chrono::nanoseconds TimeUntilFreed() {
    Login(3, {});
    Login(2, {});
    EXPECT_TRUE(global.Cleanup(now, 1));
    Evicted(1);
    Take();
    const auto begin = now;
    while (true) {
      global.OnAcquire(now, 3, 1, "a", Right::kModify);
      std::vector<std::string> answer = Take();
      while (answer.empty()) {  // It waits.
        Wait(kStep, 3);
        answer = Take();
      }
      if (answer == std::vector<std::string>{"grant 3 a 2"}) return now - begin;
      EXPECT_THAT(answer, ::testing::ElementsAre("refuse 3 a"));
    }
  }
  static std::chrono::nanoseconds FreeAfter(std::chrono::milliseconds lease) {
    return LeaseOptions{.duration = lease}.free_after();
  }

  std::vector<std::string> Take() { return std::exchange(said, {}); }

  explicit GlobalServerTest(const GlobalOptions& machine = {}) : options(machine) {}

  std::chrono::nanoseconds now = std::chrono::seconds(100);
  const GlobalOptions options;
  std::map<std::int32_t, LiveServer> rows;
  std::set<ConnectionId> speaking;  // On which something is heard at each step.
  std::set<std::int32_t> renewing;  // Servers that renew their leases at each step.
  std::vector<YieldedServer> yields;
  std::vector<std::string> said;
  std::vector<std::string> alerts;
  std::vector<ConnectionId> asked;
  std::set<std::int32_t> wanted;
  std::uint64_t last_serial = 0;
  EvictUnless last_unless;
  bool list_asked = false;
  bool yields_asked = false;
  std::vector<std::int32_t> want_asked;
  GlobalServer global{options, *this};
};

}  // namespace zeze::global
