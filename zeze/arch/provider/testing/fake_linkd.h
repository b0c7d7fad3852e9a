// FakeLinkd: a gateway without sockets for its clients, which live in the test.
//
//   testing::FakeLinkd linkd(io, &agent);                  // Registers itself; servers connect.
//   const std::int64_t ann = linkd.AddClient("ann");
//   auto reply = linkd.Call<Add>(ann, {.count = 1});       // Waits for the server's answer.
//   linkd.Await([&] { return linkd.client(ann).kicks.size() == 1; });
//   linkd.CloseClient(ann);                                // The server hears LinkBroken.
//
// Speaks to servers as a gateway must: routing by module, affinity, dynamic binding per client,
// choice only among servers that are announced, bound and not disabled; in turn.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch::testing {

// Thread-safe.
class FakeLinkd {
 public:
  struct Options {
    std::string name = "Linkd";
    std::int64_t first_sid = 1;
    // As gateways of Zeze 1.6 do it: a server that unbinds its modules goes on getting the messages
    // of clients that it has.
    bool keeps_clients_of_unbound = false;
  };

  // What a server's connection has told.
  struct Server {
    ConnectionPtr connection;
    Zeze::Builtin::Provider::BAnnounceProviderInfo announcement = {};
    bool announced = false;
    bool disabled = true;
    std::map<std::int32_t, Zeze::Builtin::Provider::BModule> static_modules = {};
    std::map<std::int32_t, Zeze::Builtin::Provider::BModule> dynamic_modules = {};
  };

  struct Client {
    std::string account = {};
    Zeze::Builtin::Provider::BUserState state = {};
    std::map<std::int32_t, std::int64_t> bound = {};  // Module to connection of a server.
    std::vector<std::string> frames = {};             // All that came, whole.
    std::vector<Zeze::Builtin::Provider::BKick> kicks = {};
    bool closed = false;
  };

  // With an agent: registers itself there as long as it lives.
  FakeLinkd(IoThreads& io, registry::RegistryAgent* agent, Options options)
      : options_(std::move(options)),
        next_sid_(options_.first_sid),
        agent_(agent),
        service_(io, {.name = "FakeLinkd", .handshake = HandshakeOptions{}}) {
    AddHandlers();
    Result<std::shared_ptr<Acceptor>> acceptor = service_.Listen({.ip = "127.0.0.1"});
    EXPECT_TRUE(acceptor.ok()) << acceptor.error().message();
    port_ = acceptor.value()->address().port();
    if (agent_ != nullptr) {
      EXPECT_TRUE(agent_->Register(Info()).ok());
    }
  }
  FakeLinkd(IoThreads& io, registry::RegistryAgent* agent) : FakeLinkd(io, agent, Options{}) {}
  ~FakeLinkd() { Stop(); }
  FakeLinkd(const FakeLinkd&) = delete;
  FakeLinkd& operator=(const FakeLinkd&) = delete;

  void Stop() {
    if (agent_ != nullptr) agent_->Unregister(Info().key());
    service_.Stop();
  }

  // As servers call it.
  std::string link_name() const { return "127.0.0.1_" + std::to_string(port_); }
  std::uint16_t port() const { return port_; }
  registry::ServiceInfo Info() const {
    return {.name = options_.name,
            .identity = "@" + link_name(),
            .passive_ip = "127.0.0.1",
            .passive_port = port_};
  }

  // --- Waiting ---

  // False if the condition, evaluated after each change, does not hold in time.
  bool Await(const std::function<bool()>& condition) {
    const auto deadline = SystemClock().Now() + kPatience;
    while (true) {
      std::uint64_t seen = 0;
      {
        MutexLock lock(mutex_);
        seen = changes_;
      }
      if (condition()) return true;
      MutexLock lock(mutex_);
      while (changes_ == seen) {
        if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
      }
    }
  }
  // So many servers offer the module and may be chosen.
  bool AwaitServers(std::int32_t module, std::size_t count) {
    return Await([&] { return Choosable(module) == count; });
  }
  std::size_t Choosable(std::int32_t module) const {
    MutexLock lock(mutex_);
    std::size_t count = 0;
    for (const auto& [id, server] : servers_) count += CanChoose(server, module) ? 1 : 0;
    return count;
  }

  // Clients have got so many frames together.
  bool AwaitFrames(std::int64_t count) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (delivered_ < count) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }

  // --- Servers ---

  std::vector<Server> servers() const {
    MutexLock lock(mutex_);
    std::vector<Server> servers;
    for (const auto& [id, server] : servers_) servers.push_back(server);
    return servers;
  }
  // The names of what servers have said, in order, without Send.
  std::vector<std::string> story() const {
    MutexLock lock(mutex_);
    return story_;
  }
  // Refuses the next `count` Binds with this code.
  void RefuseBinds(int count, std::int64_t code = Zeze::Builtin::Provider::Bind::Failed) {
    MutexLock lock(mutex_);
    binds_to_refuse_ = count;
    refusal_code_ = code;
  }
  void CloseServers() {
    for (const ConnectionPtr& connection : service_.connections()) connection->Close("test");
  }

  // --- Clients ---

  std::int64_t AddClient(std::string account) {
    MutexLock lock(mutex_);
    const std::int64_t sid = next_sid_++;
    clients_[sid].account = std::move(account);
    return sid;
  }
  Client client(std::int64_t sid) const {
    MutexLock lock(mutex_);
    const auto at = clients_.find(sid);
    return at == clients_.end() ? Client{.closed = true} : at->second;
  }
  void CloseClient(std::int64_t sid) {
    MutexLock lock(mutex_);
    CloseLocked(sid);
  }

  // The body of a client's frame, as it is. False if there is no server for it.
  bool SendBody(std::int64_t sid, std::int64_t type_id, std::string_view body) {
    MutexLock lock(mutex_);
    Client& client = clients_[sid];
    const auto module = static_cast<std::int32_t>(type_id >> 32);
    const ConnectionPtr server = ServerFor(client, module);
    if (server == nullptr) return false;
    return server
        ->Send<Zeze::Builtin::Provider::Dispatch>({.linkSid = sid,
                                                   .account = client.account,
                                                   .protocolType = type_id,
                                                   .protocolData = Binary{std::string(body)},
                                                   .context = client.state.context,
                                                   .contextx = client.state.contextx,
                                                   .onlineSetName = client.state.onlineSetName})
        .ok();
  }

  template <OneWayProtocol P>
  bool Send(std::int64_t sid, const typename P::Argument& argument) {
    return SendBody(sid, P::kDescriptor.type_id(), BodyOf<P>(FrameFamily::kOneWay, 0, argument));
  }
  // The id to ask for the answer with; 0 if there is no server for it.
  template <RpcProtocol P>
  std::int64_t Request(std::int64_t sid, const typename P::Argument& argument) {
    std::int64_t id = 0;
    {
      MutexLock lock(mutex_);
      id = ++last_request_;
    }
    const std::string body = BodyOf<P>(FrameFamily::kRequest, id, argument);
    return SendBody(sid, P::kDescriptor.type_id(), body) ? id : 0;
  }
  // The answers to a request so far; honest servers give one.
  template <RpcProtocol P>
  std::vector<RpcReply<P>> Answers(std::int64_t sid, std::int64_t id) const {
    std::vector<RpcReply<P>> answers;
    for (const std::string& whole : client(sid).frames) {
      std::string_view stream = whole;
      const auto raw = TakeFrame(stream, whole.size());
      if (!raw.ok() || !raw.value() || raw.value()->module_id != P::kDescriptor.module_id ||
          raw.value()->protocol_id != P::kDescriptor.protocol_id) {
        continue;
      }
      const Result<Frame> frame = ParseFrame(*raw.value());
      if (!frame.ok() || frame.value().family != FrameFamily::kResponse ||
          frame.value().session_id != id) {
        continue;
      }
      RpcReply<P>& reply = answers.emplace_back();
      reply.result_code = frame.value().result_code;
      ByteReader in(frame.value().payload);
      reply.result.Decode(in);
      EXPECT_TRUE(in.ok()) << in.error_message();
    }
    return answers;
  }
  template <RpcProtocol P>
  std::optional<RpcReply<P>> AwaitAnswer(std::int64_t sid, std::int64_t id) {
    if (id == 0 || !Await([&] { return !Answers<P>(sid, id).empty(); })) return std::nullopt;
    return Answers<P>(sid, id).front();
  }
  // Waits for the answer; kProviderNotExist (-9) if no server takes it, kTimeout (-10) if none
  // answers.
  template <RpcProtocol P>
  RpcReply<P> Call(std::int64_t sid, const typename P::Argument& argument) {
    const std::int64_t id = Request<P>(sid, argument);
    if (id == 0) return {.result_code = -9};
    std::optional<RpcReply<P>> answer = AwaitAnswer<P>(sid, id);
    return answer ? std::move(*answer) : RpcReply<P>{.result_code = -10};
  }
  // What the client got of this protocol, in order.
  template <OneWayProtocol P>
  std::vector<typename P::Argument> Received(std::int64_t sid) const {
    std::vector<typename P::Argument> received;
    for (const std::string& whole : client(sid).frames) {
      std::string_view stream = whole;
      const auto raw = TakeFrame(stream, whole.size());
      if (!raw.ok() || !raw.value() || raw.value()->module_id != P::kDescriptor.module_id ||
          raw.value()->protocol_id != P::kDescriptor.protocol_id) {
        continue;
      }
      const Result<Frame> frame = ParseFrame(*raw.value());
      if (!frame.ok()) continue;
      ByteReader in(frame.value().payload);
      received.emplace_back().Decode(in);
    }
    return received;
  }

 private:
  // Far beyond what anything takes: a test that waits for it has failed.
  static constexpr std::chrono::seconds kPatience{20};

  template <typename P>
  static std::string BodyOf(FrameFamily family, std::int64_t id,
                            const typename P::Argument& argument) {
    ByteWriter payload;
    argument.Encode(payload);
    ByteWriter out;
    EncodeFrame({.module_id = P::kDescriptor.module_id,
                 .protocol_id = P::kDescriptor.protocol_id,
                 .family = family,
                 .session_id = id,
                 .payload = payload.view()},
                out);
    return std::string(out.view().substr(kFrameHeaderBytes));
  }

  void Changed() ZEZE_REQUIRES(mutex_) {
    ++changes_;
    changed_.NotifyAll();
  }

  static bool CanChoose(const Server& server, std::int32_t module) {
    return server.announced && !server.disabled && server.static_modules.contains(module);
  }

  ConnectionPtr ServerFor(Client& client, std::int32_t module) ZEZE_REQUIRES(mutex_) {
    if (const auto bound = client.bound.find(module); bound != client.bound.end()) {
      return servers_.at(bound->second).connection;
    }
    std::vector<std::int64_t> usable;
    for (const auto& [id, server] : servers_) {
      if (CanChoose(server, module)) usable.push_back(id);
    }
    if (usable.empty()) return nullptr;
    const std::int64_t chosen = usable[turn_++ % usable.size()];
    const Server& server = servers_.at(chosen);
    for (const auto& [id, offered] : server.static_modules) client.bound[id] = chosen;
    return server.connection;
  }

  void Forget(std::int64_t server, std::optional<std::int32_t> module) ZEZE_REQUIRES(mutex_) {
    for (auto& [sid, client] : clients_) {
      std::erase_if(client.bound, [&](const auto& bound) {
        return bound.second == server && (!module || bound.first == *module);
      });
    }
  }

  void TellFormer(std::int64_t sid, const Client& client, std::int32_t module, std::int64_t server)
      ZEZE_REQUIRES(mutex_) {
    const auto bound = client.bound.find(module);
    if (bound == client.bound.end() || bound->second == server) return;
    const Server& former = servers_.at(bound->second);
    if (!former.announcement.HearsUnbound) return;
    Zeze::Builtin::Provider::BUnbound notice{
        .account = client.account, .linkSid = sid, .userState = client.state};
    notice.modules.Add(module);
    (void)former.connection->Send<Zeze::Builtin::Provider::Unbound>(notice);
  }

  void CloseLocked(std::int64_t sid) ZEZE_REQUIRES(mutex_) {
    const auto at = clients_.find(sid);
    if (at == clients_.end() || at->second.closed) return;
    Client& client = at->second;
    client.closed = true;
    std::set<std::int64_t> told;
    for (const auto& [module, server] : client.bound) told.insert(server);
    client.bound.clear();
    for (const std::int64_t server : told) {
      (void)servers_.at(server).connection->Send<Zeze::Builtin::Provider::LinkBroken>(
          {.account = client.account, .linkSid = sid, .userState = client.state});
    }
    Changed();
  }

  void AddHandlers();
  void OnBind(::zeze::Request<Zeze::Builtin::Provider::Bind> request);
  void OnUnBind(::zeze::Request<Zeze::Builtin::Provider::UnBind> request);
  void OnSend(::zeze::Request<Zeze::Builtin::Provider::Send> request);

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::uint64_t changes_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::map<std::int64_t, Server> servers_ ZEZE_GUARDED_BY(mutex_);  // By connection.
  std::map<std::int64_t, Client> clients_ ZEZE_GUARDED_BY(mutex_);
  std::vector<std::string> story_ ZEZE_GUARDED_BY(mutex_);
  std::int64_t next_sid_ ZEZE_GUARDED_BY(mutex_);
  std::int64_t delivered_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::int64_t last_request_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::size_t turn_ ZEZE_GUARDED_BY(mutex_) = 0;
  int binds_to_refuse_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::int64_t refusal_code_ ZEZE_GUARDED_BY(mutex_) = 0;

  registry::RegistryAgent* const agent_;
  std::uint16_t port_ = 0;
  Service service_;
};

inline void FakeLinkd::AddHandlers() {
  namespace wire = Zeze::Builtin::Provider;
  service_.OnOpen([this](const ConnectionPtr& connection) {
    MutexLock lock(mutex_);
    servers_[connection->id()].connection = connection;
    Changed();
  });
  service_.OnClose([this](const ConnectionPtr& connection, const Error&) {
    MutexLock lock(mutex_);
    Forget(connection->id(), std::nullopt);
    servers_.erase(connection->id());
    Changed();
  });
  service_.Handle<wire::AnnounceProviderInfo>([this](Message<wire::AnnounceProviderInfo> message) {
    MutexLock lock(mutex_);
    Server& server = servers_.at(message.connection->id());
    server.announcement = message.argument;
    server.announced = true;
    server.disabled = message.argument.DisableChoice;
    story_.emplace_back("AnnounceProviderInfo");
    Changed();
  });
  service_.Handle<wire::Bind>(
      [this](::zeze::Request<wire::Bind> request) { OnBind(std::move(request)); });
  service_.Handle<wire::UnBind>(
      [this](::zeze::Request<wire::UnBind> request) { OnUnBind(std::move(request)); });
  service_.Handle<wire::Subscribe>([this](::zeze::Request<wire::Subscribe> request) {
    MutexLock lock(mutex_);
    Server& server = servers_.at(request.connection()->id());
    for (const auto& [id, module] : request.argument().modules) server.dynamic_modules[id] = module;
    story_.emplace_back("Subscribe");
    (void)request.AnswerCode(0);
    Changed();
  });
  service_.Handle<wire::SetDisableChoice>([this](::zeze::Request<wire::SetDisableChoice> request) {
    MutexLock lock(mutex_);
    servers_.at(request.connection()->id()).disabled = request.argument().DisableChoice;
    story_.emplace_back(request.argument().DisableChoice ? "DisableChoice" : "EnableChoice");
    (void)request.AnswerCode(0);
    Changed();
  });
  service_.Handle<wire::Send>(
      [this](::zeze::Request<wire::Send> request) { OnSend(std::move(request)); });
  service_.Handle<wire::Broadcast>([this](const Message<wire::Broadcast>& message) {
    MutexLock lock(mutex_);
    for (auto& [sid, client] : clients_) {
      if (client.closed || client.state.context.empty()) continue;
      client.frames.push_back(message.argument.protocolWholeData.bytes);
    }
    story_.emplace_back("Broadcast");
    Changed();
  });
  service_.Handle<wire::SetUserState>([this](const Message<wire::SetUserState>& message) {
    MutexLock lock(mutex_);
    clients_[message.argument.linkSid].state = message.argument.userState;
    story_.emplace_back("SetUserState");
    Changed();
  });
  service_.Handle<wire::Kick>([this](const Message<wire::Kick>& message) {
    MutexLock lock(mutex_);
    clients_[message.argument.linksid].kicks.push_back(message.argument);
    story_.emplace_back("Kick");
    if (message.argument.control == wire::BKick::eControlClose) {
      CloseLocked(message.argument.linksid);
    }
    Changed();
  });
}

inline void FakeLinkd::OnBind(::zeze::Request<Zeze::Builtin::Provider::Bind> request) {
  MutexLock lock(mutex_);
  story_.emplace_back("Bind");
  Changed();
  if (binds_to_refuse_ > 0) {
    --binds_to_refuse_;
    (void)request.AnswerCode(refusal_code_);
    return;
  }
  const std::int64_t server = request.connection()->id();
  for (const auto& [id, module] : request.argument().modules) {
    if (request.argument().linkSids.empty()) servers_.at(server).static_modules[id] = module;
    for (const std::int64_t sid : request.argument().linkSids) {
      if (const auto at = clients_.find(sid); at != clients_.end() && !at->second.closed) {
        TellFormer(sid, at->second, id, server);
        at->second.bound[id] = server;
      }
    }
  }
  (void)request.AnswerCode(0);
}

inline void FakeLinkd::OnUnBind(::zeze::Request<Zeze::Builtin::Provider::UnBind> request) {
  MutexLock lock(mutex_);
  const std::int64_t server = request.connection()->id();
  for (const auto& [id, module] : request.argument().modules) {
    if (request.argument().linkSids.empty()) {
      servers_.at(server).static_modules.erase(id);
      if (!options_.keeps_clients_of_unbound) Forget(server, id);
    }
    for (const std::int64_t sid : request.argument().linkSids) {
      const auto at = clients_.find(sid);
      if (at == clients_.end()) continue;
      const auto bound = at->second.bound.find(id);
      if (bound != at->second.bound.end() && bound->second == server) at->second.bound.erase(bound);
    }
  }
  story_.emplace_back("UnBind");
  (void)request.AnswerCode(0);
  Changed();
}

inline void FakeLinkd::OnSend(::zeze::Request<Zeze::Builtin::Provider::Send> request) {
  namespace wire = Zeze::Builtin::Provider;
  MutexLock lock(mutex_);
  wire::BSendResult result;
  const wire::BSend& send = request.argument();
  for (const std::int64_t sid : send.linkSids) {
    const auto at = clients_.find(sid);
    if (at == clients_.end() || at->second.closed) {
      result.ErrorLinkSids.PushBack(sid);
    } else if (send.protocolType != wire::CheckLinkSession::kDescriptor.type_id()) {
      at->second.frames.push_back(send.protocolWholeData.bytes);
      ++delivered_;
    }
  }
  (void)request.Answer(result);
  Changed();
}

}  // namespace zeze::arch::testing
