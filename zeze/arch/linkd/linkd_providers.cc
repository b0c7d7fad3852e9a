// The side of a gateway to which servers connect.

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

#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/bindings.h"
#include "zeze/arch/linkd/client_session.h"
#include "zeze/arch/linkd/gateway_messages.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/linkd_impl.h"
#include "zeze/arch/linkd/outstanding_requests.h"
#include "zeze/arch/linkd/provider_directory.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/service_list.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::arch {

namespace provider = Zeze::Builtin::Provider;
using Zeze::Builtin::LinkdBase::BReportError;

namespace {

// Where logins are handled (Online of accounts, Game.Online): who was logged in there has to log in
// again.
constexpr std::int32_t kLoginModules[] = {11013, 11100};

// A misconfigured server repeats its mistake about once a second. The first one is logged, and then
// every kSayAgain-th.
constexpr std::uint64_t kSayAgain = 30;

// How long a kicked client may wait for answers to what it asked before. Servers of Zeze 1.6 send
// the kick at once, and the answer when their transaction has committed.
constexpr std::chrono::seconds kLastAnswersWait{2};

bool HasLogin(const std::vector<std::int32_t>& modules) {
  for (const std::int32_t module : modules) {
    for (const std::int32_t login : kLoginModules) {
      if (module == login) return true;
    }
  }
  return false;
}

}  // namespace

void Linkd::Impl::AddProviderHandlers() {
  providers_->OnOpen([this](const ConnectionPtr& connection) { OnProviderOpen(connection); });
  providers_->OnClose(
      [this](const ConnectionPtr& connection, const Error&) { OnProviderClose(connection); });
  providers_->Handle<provider::AnnounceProviderInfo>(
      [this](const Message<provider::AnnounceProviderInfo>& message) { OnAnnounce(message); });
  providers_->Handle<provider::Bind>(
      [this](Request<provider::Bind> request) { OnBind(std::move(request)); });
  providers_->Handle<provider::UnBind>(
      [this](Request<provider::UnBind> request) { OnUnbind(std::move(request)); });
  providers_->Handle<provider::Subscribe>(
      [this](Request<provider::Subscribe> request) { OnSubscribe(std::move(request)); });
  providers_->Handle<provider::SetDisableChoice>(
      [this](Request<provider::SetDisableChoice> request) {
        OnSetDisableChoice(std::move(request));
      });
  providers_->HandleRaw(
      provider::Send::kDescriptor,
      [this](Connection& connection, const Frame& frame) { return OnSend(connection, frame); });
  providers_->HandleRaw(provider::Broadcast::kDescriptor,
                        [this](Connection& connection, const Frame& frame) {
                          return OnBroadcast(connection, frame);
                        });
  providers_->Handle<provider::SetUserState>(
      [this](const Message<provider::SetUserState>& message) { OnSetUserState(message); });
  providers_->Handle<provider::Kick>(
      [this](const Message<provider::Kick>& message) { OnKick(message); });
}

void Linkd::Impl::OnProviderOpen(const ConnectionPtr& connection) {
  auto link = std::make_shared<ProviderLink>(connection->id(), connection);
  connection->set_state(std::make_shared<ProviderState>(link));
  const MutexLock lock(directory_mutex_);
  links_.emplace(link->id, std::move(link));
}

void Linkd::Impl::OnProviderClose(const ConnectionPtr& connection) {
  ProviderLinkPtr link;
  {
    const MutexLock lock(directory_mutex_);
    const auto found = links_.find(connection->id());
    link = std::move(found->second);
    links_.erase(found);
    directory_.Remove(link->id);
  }
  UnbindEverywhere(*link);
}

void Linkd::Impl::UnbindEverywhere(ProviderLink& link) {
  link.closed = true;
  sessions_.ForEach([&](const ConnectionPtr& client) {
    auto& session = *client->state<ClientSession>();
    std::vector<std::int32_t> modules;
    std::vector<OutstandingRequests::Request> lost;
    {
      const MutexLock lock(session.mutex);
      modules = session.bindings.UnbindAll(link);
      std::erase(session.former_providers, link.id);
      lost = session.outstanding.TakeOf(link.id);
      session.stuck_since = Time(0);
    }
    for (const OutstandingRequests::Request& request : lost) {
      Count(Refusal::kLostWithServer);
      AnswerCall(*client, request.type, request.call, result_code::kProviderNotExist);
    }
    if (HasLogin(modules))
      Report(*client, BReportError::FromLink, BReportError::CodeProviderBroken, {});
  });
}

void Linkd::Impl::OnAnnounce(const Message<provider::AnnounceProviderInfo>& message) {
  const ProviderLinkPtr link = LinkOf(*message.connection);
  const provider::BAnnounceProviderInfo& info = message.argument;
  link->hears_unbound = info.HearsUnbound;
  // Of the server before: it is the same one, which has noticed sooner that its connection broke.
  ProviderLinkPtr replaced;
  {
    const MutexLock lock(directory_mutex_);
    const std::optional<ProviderId> old =
        directory_.Announce(link->id, std::shared_ptr<ProviderGauge>(link, &link->gauge), info);
    if (old.has_value()) replaced = links_.at(*old);
  }
  ZEZE_LOG_INFO("{}: server {} of {}, version {:x}", message.connection->Describe(),
                info.ServiceIdentity, info.ServiceNamePrefix, info.AppVersion);
  if (replaced == nullptr) return;
  if (replaced_.fetch_add(1) % kSayAgain == 0) {
    ZEZE_LOG_WARNING(
        "{}: server {} of {} has connected again, from {}, and its connection from {} is closed; "
        "if both processes are running, they have the same server id",
        options_.name, info.ServiceIdentity, info.ServiceNamePrefix,
        message.connection->peer_address().ToString(),
        replaced->connection->peer_address().ToString());
  }
  UnbindEverywhere(*replaced);
  replaced->connection->Close("the server has connected again");
}

void Linkd::Impl::SubscribeServices(const std::vector<std::string>& names) {
  if (agent_ == nullptr) return;
  for (const std::string& name : names) {
    {
      const MutexLock lock(directory_mutex_);
      if (!subscribed_.emplace(name, true).second) continue;
    }
    agent_->Subscribe({.name = name},
                      [this](const registry::ServiceListPtr& list, const registry::ServiceChange&) {
                        const MutexLock lock(directory_mutex_);
                        directory_.OnServiceList(*list);
                      });
  }
}

void Linkd::Impl::OnLoad(const registry::ServerLoad& load) {
  provider::BLoad decoded;
  ByteReader in(load.param);
  decoded.Decode(in);
  if (!in.ok()) {
    ZEZE_LOG_WARNING("{}: the load of {}:{} cannot be decoded: {}", options_.name, load.ip,
                     load.port, in.error_message());
    return;
  }
  const MutexLock lock(directory_mutex_);
  directory_.OnLoad(load.ip, load.port, decoded);
}

template <typename T>
std::int64_t Linkd::Impl::CodeOf(const ProviderLink& link, const Result<T>& offered) {
  if (offered.ok()) return provider::Bind::Success;
  if (offered.error().code() != ErrorCode::kConflict) return provider::Bind::Failed;
  // The server connects and asks again until the others are gone or somebody mends it.
  if (Count(Refusal::kModuleOfOthers) % kSayAgain == 1) {
    ZEZE_LOG_ERROR("{}: {} is refused: {}", options_.name, link.connection->Describe(),
                   offered.error().message());
  }
  return provider::Bind::OfOtherServers;
}

void Linkd::Impl::OnBind(Request<provider::Bind> request) {
  const ProviderLinkPtr link = LinkOf(*request.connection());
  const provider::BBind& bind = request.argument();
  if (bind.linkSids.empty()) {
    const Result<std::vector<std::string>> names = [&] {
      const MutexLock lock(directory_mutex_);
      ++link->offer;
      return directory_.Bind(link->id, bind.modules);
    }();
    if (names.ok()) SubscribeServices(names.value());
    static_cast<void>(request.AnswerCode(CodeOf(*link, names)));
    return;
  }
  const Result<void> checked = [&] {
    const MutexLock lock(directory_mutex_);
    return directory_.CheckKind(link->id, bind.modules);
  }();
  if (!checked.ok()) {
    static_cast<void>(request.AnswerCode(CodeOf(*link, checked)));
    return;
  }
  std::size_t bound = 0;
  for (const std::int64_t sid : bind.linkSids) {
    const ConnectionPtr client = sessions_.Find(sid);
    if (client == nullptr) continue;
    auto& session = *client->state<ClientSession>();
    const MutexLock lock(session.mutex);
    if (!TakeOver(session, link, bind.modules)) continue;
    // Under the lock: if another server takes the last client over, this one gets its answer first,
    // and then hears of it.
    if (++bound == bind.linkSids.size()) {
      static_cast<void>(request.AnswerCode(provider::Bind::Success));
      return;
    }
  }
  static_cast<void>(request.AnswerCode(provider::Bind::Failed));
}

bool Linkd::Impl::TakeOver(ClientSession& session, const ProviderLinkPtr& link,
                           const ProviderDirectory::Modules& modules) {
  if (link->closed || session.closed) return false;
  std::map<ProviderLink*, provider::BUnbound> taken;
  for (const auto& [module, about] : modules) {
    ProviderLink* before = session.bindings.Find(module);
    if (before != nullptr && before != link.get()) taken[before].modules.Add(module);
  }
  for (auto& [owner, notice] : taken) {
    session.NoteFormer(owner->id);
    if (!owner->hears_unbound) continue;
    notice.account = session.account;
    notice.linkSid = session.sid;
    if (session.user_state != nullptr) notice.userState = *session.user_state;
    // A server that cannot be told has gone, or is as good as gone.
    static_cast<void>(owner->connection->Send<provider::Unbound>(notice));
  }
  for (const auto& [module, about] : modules) session.bindings.Bind(module, link);
  return true;
}

void Linkd::Impl::OnUnbind(Request<provider::UnBind> request) {
  const ProviderLinkPtr link = LinkOf(*request.connection());
  const provider::BBind& bind = request.argument();
  if (bind.linkSids.empty()) {
    {
      const MutexLock lock(directory_mutex_);
      directory_.Unbind(link->id, bind.modules);
      ++link->offer;
    }
    // Before the answer: then nothing more comes for these modules behind it.
    UnbindModules(*link, bind);
  }
  for (const std::int64_t sid : bind.linkSids) {
    const ConnectionPtr client = sessions_.Find(sid);
    if (client == nullptr) continue;
    auto& session = *client->state<ClientSession>();
    const MutexLock lock(session.mutex);
    for (const auto& [module, about] : bind.modules) {
      if (session.bindings.Unbind(module, *link)) session.NoteFormer(link->id);
    }
  }
  static_cast<void>(request.AnswerCode(0));
}

// The next message of each client chooses another server; what is on its way to this one is
// answered by it.
void Linkd::Impl::UnbindModules(const ProviderLink& link, const provider::BBind& taken_back) {
  sessions_.ForEach([&](const ConnectionPtr& client) {
    auto& session = *client->state<ClientSession>();
    std::vector<std::int32_t> modules;
    {
      const MutexLock lock(session.mutex);
      for (const auto& [module, about] : taken_back.modules) {
        if (session.bindings.Unbind(module, link)) modules.push_back(module);
      }
      if (!modules.empty()) session.NoteFormer(link.id);
    }
    if (HasLogin(modules)) {
      Report(*client, BReportError::FromLink, BReportError::CodeProviderBroken, {});
    }
  });
}

void Linkd::Impl::OnSubscribe(Request<provider::Subscribe> request) {
  const ProviderLinkPtr link = LinkOf(*request.connection());
  const Result<std::vector<std::string>> names = [&] {
    const MutexLock lock(directory_mutex_);
    return directory_.Subscribe(link->id, request.argument().modules);
  }();
  if (names.ok()) SubscribeServices(names.value());
  static_cast<void>(request.AnswerCode(CodeOf(*link, names)));
}

void Linkd::Impl::OnSetDisableChoice(Request<provider::SetDisableChoice> request) {
  const ProviderLinkPtr link = LinkOf(*request.connection());
  bool known = false;
  {
    const MutexLock lock(directory_mutex_);
    known = directory_.SetDisableChoice(link->id, request.argument().DisableChoice);
  }
  static_cast<void>(request.AnswerCode(known ? 0 : 1));
}

ConnectionPtr Linkd::Impl::FindClient(std::int64_t sid, const ProviderLink& provider) {
  ConnectionPtr client = sessions_.Find(sid);
  if (client == nullptr || !options_.strict_provider_rights) return client;
  auto& session = *client->state<ClientSession>();
  {
    const MutexLock lock(session.mutex);
    if (session.bindings.Has(provider) || session.WasBoundTo(provider.id)) return client;
  }
  Count(Refusal::kProviderRights);
  return nullptr;
}

void Linkd::Impl::OnSetUserState(const Message<provider::SetUserState>& message) {
  const ProviderLinkPtr link = LinkOf(*message.connection);
  const ConnectionPtr client = FindClient(message.argument.linkSid, *link);
  if (client == nullptr) return;
  auto& session = *client->state<ClientSession>();
  const MutexLock lock(session.mutex);
  session.user_state = std::make_unique<provider::BUserState>(message.argument.userState);
}

void Linkd::Impl::OnKick(const Message<provider::Kick>& message) {
  const ProviderLinkPtr link = LinkOf(*message.connection);
  const provider::BKick& kick = message.argument;
  const ConnectionPtr client = FindClient(kick.linksid, *link);
  if (client == nullptr) return;
  Report(*client, BReportError::FromProvider, kick.code, kick.desc);
  if (kick.control != provider::BKick::eControlClose) return;
  auto& session = *client->state<ClientSession>();
  session.SetClosing();
  {
    const MutexLock lock(session.mutex);
    session.kicked = std::make_unique<std::string>("a server has kicked it: " + kick.desc);
  }
  CloseIfAnswered(*client, session);
  if (!client->IsOpen()) return;
  io_.PostAfter(kLastAnswersWait,
                Task("close a kicked client", [weak = std::weak_ptr<Connection>(client)] {
                  const ConnectionPtr still = weak.lock();
                  if (still != nullptr) still->CloseWhenSent("a server has kicked it");
                }));
}

void Linkd::Impl::CloseIfAnswered(Connection& client, ClientSession& session) {
  std::string reason;
  {
    const MutexLock lock(session.mutex);
    if (session.kicked == nullptr || session.outstanding.size() != 0) return;
    reason = *session.kicked;
  }
  client.CloseWhenSent(reason);
}

}  // namespace zeze::arch
