#include "zeze/arch/provider/provider.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/provider/internal/dispatcher.h"
#include "zeze/arch/provider/internal/link_set.h"
#include "zeze/arch/provider/internal/load_level.h"
#include "zeze/arch/provider/internal/load_watch.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/module_binds.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/registry/service/service_list.h"

namespace zeze::arch {

namespace {

namespace wire = Zeze::Builtin::Provider;

using internal::Dispatcher;
using internal::LinkConnection;
using internal::LinkSet;
using internal::LoadLevel;
using std::chrono::nanoseconds;

// For the service manager to hear that this server has gone.
constexpr std::chrono::seconds kGoodbye{2};
// For gateways to confirm the last answers, if the rest has taken all the time there was.
constexpr std::chrono::seconds kSettle{1};

std::int64_t MainVersion(std::int64_t app_version) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(app_version) >> 48);
}

}  // namespace

ServiceOptions DefaultLinkServiceOptions() {
  return {.name = "Link",
          .handshake = HandshakeOptions{},
          .keep_alive = {.check_period = std::chrono::seconds(5),
                         .receive_timeout = std::chrono::seconds(60),
                         .send_timeout = std::chrono::seconds(20)},
          .frame_bytes_max = 16 << 20,
          // Beyond half of it requests are refused and nothing is pushed: the other half is for
          // answers.
          .output_bytes_max = std::size_t{256} << 20,
          .read_always = true,
          .calls_max = 1 << 20};
}

class Provider::Impl {
 public:
  Impl(Application& application, IoThreads& io, registry::RegistryAgent& agent,
       ProviderOptions options)
      : application_(application), io_(io), agent_(agent), options_(std::move(options)) {}

  void AddModule(Module& module) {
    CheckSetUp();
    modules_.push_back(&module);
  }
  void OnLinkBroken(LinkBrokenHandler handler) {
    CheckSetUp();
    on_link_broken_ = std::move(handler);
  }
  void OnUnbound(UnboundHandler handler) {
    CheckSetUp();
    on_unbound_ = std::move(handler);
  }
  void SetOnlineCounter(std::function<OnlineCount()> counter) {
    CheckSetUp();
    online_counter_ = std::move(counter);
  }

  Result<void> Start(bool ready);
  void SetReady(bool ready) { links().SetReady(ready); }
  void Stop();

  LinkSet& links() {
    ZEZE_REQUIRE(links_ != nullptr, "the provider was used before its start");
    return *links_;
  }
  const ProviderOptions& options() const { return options_; }
  Statistics GetStatistics() const;

 private:
  void CheckSetUp() const {
    ZEZE_REQUIRE(links_ == nullptr,
                 "a provider gets its modules and callbacks before Provider::Start");
  }

  Result<void> Check() const;
  internal::Introduction Introduce() const;
  void CollectRegistrations();
  void StartLinks();

  Application& application_;
  IoThreads& io_;
  registry::RegistryAgent& agent_;
  const ProviderOptions options_;
  std::vector<Module*> modules_;
  LinkBrokenHandler on_link_broken_;
  UnboundHandler on_unbound_;
  std::function<OnlineCount()> online_counter_;

  ModuleBinds::Offer offer_;
  std::vector<registry::ServiceInfo> registrations_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::shared_ptr<LinkSet> links_;  // Shared with a callback of the agent.
  std::shared_ptr<internal::LoadWatch> load_;
  std::atomic<bool> stopped_ = false;
};

Result<void> Provider::Impl::Check() const {
  if (options_.name_prefix.empty() || options_.name_prefix.back() != '#') {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("name_prefix is \"{}\": it must end in '#', where others cut it off",
                             options_.name_prefix));
  }
  const std::vector<std::string> unknown = options_.binds.UnknownNames(modules_);
  if (!unknown.empty()) {
    ZEZE_LOG_WARNING("provider.module.binds.xml lists modules that this server does not have: {}",
                     fmt::join(unknown, ", "));
  }
  return {};
}

internal::Introduction Provider::Impl::Introduce() const {
  internal::Introduction introduction;
  introduction.announcement = {.ServiceNamePrefix = options_.name_prefix,
                               .ServiceIdentity = std::to_string(application_.options().server_id),
                               .ProviderDirectIp = options_.direct_ip,
                               .ProviderDirectPort = options_.direct_port,
                               .AppVersion = options_.app_version,
                               .DisableChoice = true,
                               .HearsUnbound = true};
  for (const auto& [id, module] : offer_.static_modules) {
    introduction.static_modules.modules.Put(id, module);
  }
  for (const auto& [id, module] : offer_.dynamic_modules) {
    introduction.dynamic_modules.modules.Put(id, module);
  }
  return introduction;
}

void Provider::Impl::CollectRegistrations() {
  for (const auto* modules : {&offer_.static_modules, &offer_.dynamic_modules}) {
    for (const auto& [id, module] : *modules) {
      registrations_.push_back({.name = options_.name_prefix + std::to_string(id),
                                .identity = std::to_string(application_.options().server_id),
                                .version = MainVersion(options_.app_version),
                                .passive_ip = options_.direct_ip,
                                .passive_port = options_.direct_port});
    }
  }
}

Result<void> Provider::Impl::Start(bool ready) {
  if (links_ != nullptr) {
    return Error(ErrorCode::kInvalidArgument, "a provider can be started only once");
  }
  if (Result<void> fine = Check(); !fine.ok()) return fine;
  offer_ = options_.binds.OfferOf(application_.options().server_id, modules_);
  CollectRegistrations();
  dispatcher_ = std::make_unique<Dispatcher>(
      application_, Dispatcher::Options{.client_requests_max = options_.client_requests_max,
                                        .requests_max = options_.requests_max});
  for (Module* module : modules_) {
    if (Result<void> added = dispatcher_->AddModule(*module); !added.ok()) return added;
  }
  dispatcher_->OnLinkBroken(on_link_broken_);
  dispatcher_->OnUnbound(on_unbound_);
  StartLinks();
  if (ready) links_->SetReady(true);
  if (Result<void> registered = agent_.Edit({.add = registrations_}); !registered.ok()) {
    return registered;
  }
  agent_.Subscribe({.name = options_.linkd_name},
                   [weak = std::weak_ptr<LinkSet>(links_)](const registry::ServiceListPtr& list,
                                                           const registry::ServiceChange&) {
                     if (const std::shared_ptr<LinkSet> links = weak.lock()) links->Update(*list);
                   });
  load_ = std::make_shared<internal::LoadWatch>(
      io_, application_.workers(), agent_,
      internal::LoadWatch::Owner{
          .options = options_,
          .online_counter = online_counter_,
          .on_level = [this](LoadLevel level) { dispatcher_->SetLoad(level); }});
  load_->Start();
  return {};
}

void Provider::Impl::StartLinks() {
  links_ = std::make_shared<LinkSet>(
      io_, options_.link_service, options_.link_connector, Introduce(),
      internal::LinkHandlers{
          .on_dispatch =
              [this](LinkConnection& connection, const Frame& dispatch) {
                return dispatcher_->Dispatch(connection, dispatch);
              },
          .on_broken =
              [this](LinkConnection& connection, const wire::BLinkBroken& broken) {
                dispatcher_->LinkBroken(connection, broken);
              },
          .on_unbound =
              [this](LinkConnection& connection, const wire::BUnbound& taken) {
                dispatcher_->Unbound(connection, taken);
              }});
}

void Provider::Impl::Stop() {
  if (links_ == nullptr || stopped_.exchange(true)) return;
  Clock& clock = SystemClock();
  const nanoseconds deadline = clock.Now() + options_.drain_timeout;
  agent_.Unsubscribe(options_.linkd_name);
  static_cast<void>(agent_.Edit({.remove = registrations_}).ok());
  const bool left = links_->Leave(clock, deadline);
  dispatcher_->Leave();
  const bool idle = dispatcher_->AwaitIdle(clock, deadline);
  if (!idle) {
    dispatcher_->Abandon();
    static_cast<void>(dispatcher_->AwaitIdle(clock, clock.Now() + kSettle));
  }
  const bool settled = links_->Settle(clock, std::max(deadline, clock.Now() + kSettle));
  if (!left || !idle || !settled) {
    ZEZE_LOG_WARNING(
        "this server leaves although {} after {} s",
        !left   ? "not all gateways have let it go"
        : !idle ? "not all requests have been answered"
                : "not all gateways have confirmed the last answers",
        std::chrono::duration_cast<std::chrono::seconds>(options_.drain_timeout).count());
  }
  if (agent_.connected()) static_cast<void>(agent_.AwaitSettled(kGoodbye).ok());
  links_->Stop();
  // Handlers that still run refer to the dispatcher.
  dispatcher_->AwaitAll();
  if (load_ != nullptr) load_->Stop();
}

Provider::Statistics Provider::Impl::GetStatistics() const {
  if (dispatcher_ == nullptr) return {};
  return {.dispatched = dispatcher_->dispatched,
          .answered = dispatcher_->answered,
          .shed = dispatcher_->shed,
          .refused = dispatcher_->refused,
          .unknown_types = dispatcher_->unknown_types,
          .undecodable = dispatcher_->undecodable};
}

Provider::Provider(Application& application, IoThreads& io, registry::RegistryAgent& agent,
                   ProviderOptions options)
    : impl_(std::make_unique<Impl>(application, io, agent, std::move(options))) {}

Provider::~Provider() {
  Stop();
}

void Provider::AddModule(Module& module) {
  impl_->AddModule(module);
}

void Provider::OnLinkBroken(LinkBrokenHandler handler) {
  impl_->OnLinkBroken(std::move(handler));
}

void Provider::OnUnbound(UnboundHandler handler) {
  impl_->OnUnbound(std::move(handler));
}

void Provider::SetOnlineCounter(std::function<OnlineCount()> counter) {
  impl_->SetOnlineCounter(std::move(counter));
}

Result<void> Provider::Start(bool ready) {
  return impl_->Start(ready);
}

void Provider::SetReady(bool ready) {
  impl_->SetReady(ready);
}

void Provider::Stop() {
  impl_->Stop();
}

Links& Provider::links() {
  return impl_->links();
}

const ProviderOptions& Provider::options() const {
  return impl_->options();
}

Provider::Statistics Provider::GetStatistics() const {
  return impl_->GetStatistics();
}

}  // namespace zeze::arch
