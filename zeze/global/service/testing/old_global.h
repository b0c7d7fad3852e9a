// OldGlobal: a Global as Zeze 1.6 has it, for tests: it knows no fenced login, asks holders for
// everything, lets nobody wait who is being asked himself, and forgets everything when it ends.
//
//   OldGlobal global;
//   ... connect to 127.0.0.1:global.port() ...
//   global.CutAll();                           // All connections; the book stays.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"

namespace zeze::global::testing {

class OldGlobal {
 public:
  // `timing`: what it tells servers.
  explicit OldGlobal(std::uint16_t port = 0, const wire::LoginResult& timing = {})
      : timing_(timing), io_({.name = "old-global-io"}), service_(io_, {.name = "OldGlobal"}) {
    service_.OnClose([this](const ConnectionPtr& connection, const Error&) {
      const auto at = servers_.find(connection->id());
      if (at == servers_.end()) return;
      Session& session = sessions_[at->second];
      if (session.connection == connection) session.connection = nullptr;
      servers_.erase(at);
    });
    HandleLogins();
    service_.Handle<wire::Acquire>([this](Request<wire::Acquire> request) {
      const auto at = servers_.find(request.connection()->id());
      if (at == servers_.end()) {
        (void)request.Answer(wire::kNotLoggedIn, {.key = request.argument().key, .state = 0});
        return;
      }
      const std::string key(request.argument().key);
      const std::uint32_t wanted = request.argument().state;
      auto owned = std::make_shared<Request<wire::Acquire>>(std::move(request));
      const Answer answer = [owned, key](std::int64_t code, std::uint32_t state) {
        (void)owned->Answer(code, {.key = key, .state = state});
      };
      if (wanted == kInvalid) {
        Release(at->second, key, answer);
      } else {
        Acquire(at->second, key, wanted, answer);
      }
    });
    Result<std::shared_ptr<Acceptor>> listening =
        service_.Listen({.ip = "127.0.0.1", .port = port});
    EXPECT_TRUE(listening.ok()) << listening.error().message();
    acceptor_ = listening.value();
  }
  ~OldGlobal() { service_.Stop(); }
  OldGlobal(const OldGlobal&) = delete;
  OldGlobal& operator=(const OldGlobal&) = delete;

  std::uint16_t port() const { return acceptor_->address().port(); }
  void CutAll() {
    for (const ConnectionPtr& connection : service_.connections()) connection->Close("cut");
  }

  struct Counts {
    int logins = 0;
    int relogins = 0;  // Accepted.
    int normal_closes = 0;
    std::size_t keys = 0;  // Held by anybody.
  };
  Counts counts() {
    std::promise<Counts> promise;
    io_.Post([&] {
      Counts counts = counts_;
      counts.keys = 0;
      for (const auto& [key, entry] : entries_) {
        if (entry.modify >= 0 || !entry.share.empty()) ++counts.keys;
      }
      promise.set_value(counts);
    });
    return promise.get_future().get();
  }

 private:
  static constexpr std::uint32_t kInvalid = 0;
  static constexpr std::uint32_t kShare = 1;
  static constexpr std::uint32_t kModify = 2;
  using Answer = std::function<void(std::int64_t code, std::uint32_t state)>;

  struct Session {
    ConnectionPtr connection;
    bool logged_in = false;
  };
  struct Entry {
    std::int32_t modify = -1;
    std::set<std::int32_t> share;
    std::uint32_t pending = 0;
    std::deque<std::function<void()>> waiting;
  };

  bool Bind(const ConnectionPtr& connection, std::int32_t server) {
    Session& session = sessions_[server];
    if (session.connection != nullptr || servers_.contains(connection->id())) return false;
    session.connection = connection;
    servers_[connection->id()] = server;
    return true;
  }

  void HandleLogins() {
    service_.Handle<wire::Login>([this](Request<wire::Login> request) {
      const std::int32_t server = request.argument().server_id;
      sessions_[server].logged_in = true;
      if (!Bind(request.connection(), server)) {
        (void)request.AnswerCode(wire::kLoginRefused);
        return;
      }
      ReleaseAll(server);
      ++counts_.logins;
      (void)request.Answer(timing_);
    });
    service_.Handle<wire::ReLogin>([this](Request<wire::ReLogin> request) {
      const std::int32_t server = request.argument().server_id;
      const bool known = sessions_[server].logged_in && Bind(request.connection(), server);
      if (known) ++counts_.relogins;
      (void)request.AnswerCode(known ? 0 : wire::kReloginRefused);
    });
    service_.Handle<wire::NormalClose>([this](Request<wire::NormalClose> request) {
      const auto at = servers_.find(request.connection()->id());
      if (at == servers_.end()) {
        (void)request.AnswerCode(wire::kNotLoggedIn);
        return;
      }
      ++counts_.normal_closes;
      sessions_[at->second].connection = nullptr;
      ReleaseAll(at->second);
      (void)request.Answer({});
    });
    service_.Handle<wire::KeepAlive>([this](Request<wire::KeepAlive> request) {
      (void)request.AnswerCode(servers_.contains(request.connection()->id()) ? 0
                                                                             : wire::kNotLoggedIn);
    });
  }

  void ReleaseAll(std::int32_t server) {
    for (auto& [key, entry] : entries_) {
      if (entry.modify == server) entry.modify = -1;
      entry.share.erase(server);
    }
  }

  void Release(std::int32_t server, const std::string& key, const Answer& answer) {
    Entry& entry = entries_[key];
    if (entry.pending != 0) {  // Nothing is released; the caller is asked soon.
      answer(0, entry.modify == server ? kModify : entry.share.contains(server) ? kShare : 0);
      return;
    }
    if (entry.modify == server) entry.modify = -1;
    entry.share.erase(server);
    answer(0, kInvalid);
  }

  void Acquire(std::int32_t server, const std::string& key, std::uint32_t wanted,
               const Answer& answer) {
    Entry& entry = entries_[key];
    if (entry.pending != 0) {
      const bool asked =
          entry.modify == server || (entry.pending == kModify && entry.share.contains(server));
      if (asked) {
        answer(wanted == kShare ? wire::kShareDeadlock : wire::kModifyDeadlock, kInvalid);
      } else {
        entry.waiting.emplace_back([=, this] { Acquire(server, key, wanted, answer); });
      }
      return;
    }
    if (entry.modify == server) {
      answer(wanted == kShare ? wire::kShareOfModify : wire::kAlreadyModify, kModify);
      return;
    }
    entry.pending = wanted;
    std::vector<std::int32_t> holders;
    if (entry.modify >= 0) {
      holders.push_back(entry.modify);
    } else if (wanted == kModify) {
      for (const std::int32_t sharer : entry.share) {
        if (sharer != server) holders.push_back(sharer);
      }
    }
    auto states = std::make_shared<std::map<std::int32_t, std::uint32_t>>();
    const std::size_t count = holders.size();
    if (count == 0) Finish(server, key, wanted, *states, answer);
    for (const std::int32_t holder : holders) {
      const auto done = [=, this](std::uint32_t state) {
        (*states)[holder] = state;
        if (states->size() == count) Finish(server, key, wanted, *states, answer);
      };
      // As the peer does it: the result code is not looked at.
      const auto on_reply = [done](const RpcReply<wire::Reduce>& reply) {
        done(reply.outcome == RpcOutcome::kAnswered ? reply.result.state : wire::kStateFailed);
      };
      const ConnectionPtr& connection = sessions_[holder].connection;
      const wire::KeyState question{.key = key, .state = kInvalid};
      const CallOptions call{.timeout = std::chrono::seconds(17)};
      const bool sent =
          connection != nullptr && connection->Call<wire::Reduce>(question, call, on_reply).ok();
      if (!sent) done(wire::kStateFailed);
    }
  }

  void Finish(std::int32_t server, const std::string& key, std::uint32_t wanted,
              const std::map<std::int32_t, std::uint32_t>& states, const Answer& answer) {
    Entry& entry = entries_[key];
    bool fresh = false;
    bool failed = false;
    for (const auto& [holder, state] : states) {
      if (state == kInvalid || (state == kShare && wanted == kShare)) {
        if (entry.modify == holder) entry.modify = -1;
        if (state == kInvalid) entry.share.erase(holder);
        if (state == kShare) entry.share.insert(holder);
      } else {
        fresh = fresh || state == wire::kStateFresh;
        failed = true;
      }
    }
    entry.pending = 0;
    if (failed) {
      const std::int64_t code = wanted == kShare ? wire::kShareFailed : wire::kModifyFailed;
      answer(fresh ? wire::kHolderFresh : code, kInvalid);
    } else {
      entry.share.erase(server);
      if (wanted == kModify) {
        entry.modify = server;
      } else {
        entry.share.insert(server);
      }
      answer(0, wanted);
    }
    for (auto& next : std::exchange(entry.waiting, {})) next();
  }

  const wire::LoginResult timing_;
  IoThreads io_;  // One thread, which has all that follows to itself.
  std::map<std::int32_t, Session> sessions_;
  std::map<std::int64_t, std::int32_t> servers_;  // By connection.
  std::map<std::string, Entry> entries_;
  Counts counts_;
  std::shared_ptr<Acceptor> acceptor_;
  Service service_;  // Last: its callbacks use the rest.
};

}  // namespace zeze::global::testing
