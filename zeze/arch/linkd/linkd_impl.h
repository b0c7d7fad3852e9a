// Linkd::Impl: the two sides of a gateway, what passes between them, and what they share. See
// linkd.h. To read the way of a message: linkd_forward.cc.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/accept_ramp.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/bandwidth_fuse.h"
#include "zeze/arch/linkd/bindings.h"
#include "zeze/arch/linkd/client_session.h"
#include "zeze/arch/linkd/gateway_messages.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_options.h"
#include "zeze/arch/linkd/provider_directory.h"
#include "zeze/arch/linkd/sid_source.h"
#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

// The state of a server's connection: the link is there until OnClose has run.
struct ProviderState final : ConnectionState {
  explicit ProviderState(const ProviderLinkPtr& link_in) : link(link_in) {}
  // Not owned: it owns the connection. links_ does.
  std::weak_ptr<ProviderLink> link;
};

class Linkd::Impl : public std::enable_shared_from_this<Linkd::Impl> {
 public:
  Impl(IoThreads& io, Executor& workers, LinkdOptions options);

  // --- Life (linkd.cc). ---

  void AddHandlers();
  Result<void> Start();
  void Stop();
  Statistics GetStatistics() const;
  std::vector<AddressBook::Ban> Bans() const { return book_->Bans(Now()); }
  Service& clients() { return *clients_; }
  const NetAddress& client_address() const { return client_address_; }
  const std::vector<NetAddress>& client_addresses() const { return client_addresses_; }
  const NetAddress& provider_address() const { return provider_address_; }

  // --- Clients (linkd_clients.cc). On the client's network thread unless said otherwise. ---

  Result<void> Accept(Connection& client, const ClientIdentity& identity);  // Any thread.

 private:
  using Time = std::chrono::nanoseconds;
  using Phase = ClientSession::Phase;

  // How often a client hears of what it cannot help at the moment.
  static constexpr std::chrono::seconds kReportPeriod{1};

  std::shared_ptr<ConnectionState> Admit(const NetAddress& peer);
  void OnClientOpen(const ConnectionPtr& client);
  void OnClientClose(const ConnectionPtr& client, const Error& reason);
  Result<void> OnAuth(Connection& client, const Frame& frame);
  void Authenticate(const ConnectionPtr& client, std::int64_t call,
                    const Zeze::Builtin::LinkdAuth::BAuth& given,
                    std::string_view binding);  // A worker.
  Result<void> OnKeepAlive(Connection& client, const Frame& frame);
  void ExpireUnauthenticated(Time now);  // The first network thread.

  // --- Forwarding (linkd_forward.cc). On the network thread of whoever sent the message. ---

  // A client's message on its way to a server.
  struct ClientMessage {
    std::int32_t module = 0;
    std::int64_t type = 0;
    std::string_view body = {};                       // Of its frame.
    std::optional<std::int64_t> call = std::nullopt;  // Of a request: the client's number for it.
  };
  enum class Outcome : std::uint8_t {
    kSent,
    kNotBound,  // No server has bound the client for the module.
    kBusy,      // The server is overloaded.
    kFull,      // The server does not read.
    kInFlight,  // The client has too many requests without an answer.
    kNoServer,  // There is none, or it is gone.
  };
  struct Forwarded {
    Outcome outcome;
    int failure = 0;  // Of kNoServer: the number that a choice gives for it.
  };
  Result<void> OnClientMessage(Connection& client, const Frame& frame, std::string_view body);
  Forwarded SendToServer(ClientSession& session, const ClientMessage& message) const;
  Forwarded ChooseAndSend(Connection& client, ClientSession& session, const ClientMessage& message,
                          Outcome why);
  // Binds those of the server's static modules that are free. False if it has gone or offers other
  // modules by now.
  static bool BindChosen(ClientSession& session, const ProviderLinkPtr& link,
                         const std::vector<std::int32_t>& modules, std::uint64_t offer);
  void AnswerUnsent(Connection& client, ClientSession& session, const ClientMessage& message,
                    const Forwarded& forwarded);

  Result<void> OnSend(Connection& connection, const Frame& frame);
  Result<void> OnBroadcast(Connection& connection, const Frame& frame);
  // False: the client is gone, or was closed because it has no room.
  bool SendToClient(Connection& client, std::int64_t type, const ClientFrames& frames);
  // The requests that the frames answer are not outstanding any more.
  static void NoteAnswers(ClientSession& session, const ClientFrames& frames);
  enum class Reader : std::uint8_t {
    kReads,
    kShed,     // It is behind, and a message of this level is dropped.
    kTooSlow,  // It has been behind for too long.
  };
  Reader JudgeReader(Connection& client, ClientSession& session, CriticalLevel level) const;

  // --- Limits, and what clients are told (linkd_limits.cc). On the client's network thread. ---

  bool TakeUnauthenticatedBytes(Connection& client, ClientSession& session, const Frame& frame);
  // Of what the gateway answers itself. False: there is no answer to this one.
  bool TakeOwnMessage(Connection& client, ClientSession& session);
  void RefuseUnauthenticated(Connection& client, ClientSession& session, std::string_view why);
  // True: within all limits. False: it was refused, and told so as far as it needs to know.
  bool WithinLimits(Connection& client, ClientSession& session, const ClientMessage& message);
  Refusal FindExceeded(ClientSession& session, const ClientMessage& message, Time now);
  bool HasRoomForRequest(ClientSession& session) const ZEZE_REQUIRES(session.mutex);
  void RefuseMessage(Connection& client, ClientSession& session, const ClientMessage& message,
                     Refusal why, Time now);
  // Any thread, from here on. If it is a request.
  static void AnswerCode(Connection& client, const ClientMessage& message, std::int64_t code);
  static void AnswerCall(Connection& client, std::int64_t type, std::int64_t call,
                         std::int64_t code);
  static void AnswerBusy(Connection& client, const ClientMessage& message);
  static void Report(Connection& client, std::int32_t from, std::int32_t code,
                     std::string_view description);
  static void CloseClient(Connection& client, std::string_view reason);

  // --- Servers (linkd_providers.cc). On the server's network thread. ---

  void AddProviderHandlers();
  void OnProviderOpen(const ConnectionPtr& connection);
  void OnProviderClose(const ConnectionPtr& connection);
  void OnAnnounce(const Message<Zeze::Builtin::Provider::AnnounceProviderInfo>& message);
  void OnBind(Request<Zeze::Builtin::Provider::Bind> request);
  // The answer to a server that offers modules; a refusal is counted and logged.
  template <typename T>
  std::int64_t CodeOf(const ProviderLink& link, const Result<T>& offered);
  // Binds modules to the server that asks for it; servers that had them are told. False if it, or
  // the client, has gone.
  static bool TakeOver(ClientSession& session, const ProviderLinkPtr& link,
                       const ProviderDirectory::Modules& modules) ZEZE_REQUIRES(session.mutex);
  void OnUnbind(Request<Zeze::Builtin::Provider::UnBind> request);
  void OnSubscribe(Request<Zeze::Builtin::Provider::Subscribe> request);
  void OnSetDisableChoice(Request<Zeze::Builtin::Provider::SetDisableChoice> request);
  void OnSetUserState(const Message<Zeze::Builtin::Provider::SetUserState>& message);
  void OnKick(const Message<Zeze::Builtin::Provider::Kick>& message);
  // Closes a kicked client that has all the answers it was promised.
  static void CloseIfAnswered(Connection& client, ClientSession& session);

  static ProviderLinkPtr LinkOf(const Connection& connection) {
    return connection.state<ProviderState>()->link.lock();
  }
  // Null if there is none, or the server has no right to it.
  ConnectionPtr FindClient(std::int64_t sid, const ProviderLink& provider);
  void UnbindModules(const ProviderLink& link, const Zeze::Builtin::Provider::BBind& taken_back);
  void UnbindEverywhere(ProviderLink& link);
  void SubscribeServices(const std::vector<std::string>& names);
  void OnLoad(const registry::ServerLoad& load);

  // --- Both. ---

  Time Now() const { return io_.clock().Now(); }
  // Returns how many there have been.
  std::uint64_t Count(Refusal refusal) {
    return counts_[static_cast<std::size_t>(refusal)].fetch_add(1, std::memory_order_relaxed) + 1;
  }
  void Strike(ClientSession& session, Time now);
  void Tick();
  void ScheduleTick();
  void RefillSids();
  Result<void> Register();
  struct Rule {
    ProtocolRule rule;
    BucketRate rate;
    std::size_t index = 0;
  };
  const Rule* RuleOf(std::int64_t type) const {
    if (rules_.empty()) return nullptr;
    const auto found = rules_.find(type);
    return found == rules_.end() ? nullptr : &found->second;
  }

  IoThreads& io_;
  Executor& workers_;
  const LinkdOptions options_;
  const BucketRate session_messages_;
  const BucketRate session_bytes_;
  const BucketRate account_messages_;
  const BucketRate refused_messages_;
  const BucketRate retry_hints_;
  const bool limits_rates_;
  boost::unordered_flat_map<std::int64_t, Rule> rules_;  // Constant.

  const std::shared_ptr<AddressBook> book_;
  BandwidthFuse fuse_;
  SessionTable sessions_;
  TokenBucket retry_bucket_;
  std::unique_ptr<registry::RegistryAgent> agent_;
  std::unique_ptr<SidSource> sid_source_;
  std::unique_ptr<SidCounter> sids_;
  NetAddress client_address_;
  std::vector<NetAddress> client_addresses_;
  NetAddress provider_address_;

  Mutex directory_mutex_;
  ProviderDirectory directory_ ZEZE_GUARDED_BY(directory_mutex_);
  std::map<ProviderId, ProviderLinkPtr> links_ ZEZE_GUARDED_BY(directory_mutex_);
  std::map<std::string, bool> subscribed_ ZEZE_GUARDED_BY(directory_mutex_);

  Mutex accounts_mutex_;
  std::map<std::string, std::shared_ptr<AccountEntry>, std::less<>> accounts_
      ZEZE_GUARDED_BY(accounts_mutex_);

  // Who has to be authenticated until when.
  Mutex waiting_mutex_;
  std::multimap<Time, std::weak_ptr<Connection>> waiting_ ZEZE_GUARDED_BY(waiting_mutex_);

  Mutex ramp_mutex_;
  AcceptRamp ramp_ ZEZE_GUARDED_BY(ramp_mutex_);

  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Refusal::kCount)> counts_ = {};
  std::atomic<std::uint64_t> replaced_ = 0;  // Connections of servers that connected again.
  std::atomic<std::uint64_t> authenticated_ = 0;
  std::atomic<std::uint64_t> forwarded_ = 0;
  std::atomic<std::uint64_t> delivered_ = 0;
  const std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  Time swept_at_{0};  // Of the first network thread.

  // Last: their threads use everything above.
  std::unique_ptr<Service> clients_;
  std::unique_ptr<Service> providers_;
};

}  // namespace zeze::arch
