#include "zeze/arch/redirect/redirect.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/arch/redirect/direct_links.h"
#include "zeze/arch/redirect/internal/redirect_executor.h"
#include "zeze/arch/redirect/internal/redirect_impl.h"
#include "zeze/arch/redirect/internal/redirect_inl.h"
#include "zeze/arch/redirect/internal/redirect_raw.h"
#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/usage_error.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

namespace {

namespace direct = Zeze::Builtin::ProviderDirect;

using internal::RedirectEntry;
using internal::RedirectExecutor;

// What a message has besides parameters or results.
constexpr std::size_t kMessageBytes = 64 << 10;

// How long Stop waits for the service manager to hear that this server is not to be chosen.
constexpr std::chrono::seconds kUnregisterPatience(2);

// And for calls that were accepted in the last moment.
constexpr std::chrono::milliseconds kLastMoment(100);

DirectLinksOptions DirectOptionsOf(const Application& application, const RedirectOptions& options) {
  DirectLinksOptions direct = options.direct;
  direct.server_id = application.options().server_id;
  direct.main_version =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(options.app_version) >> 48);
  return direct;
}

std::size_t ResultBytesMax(const RedirectOptions& options) {
  const std::size_t frame = options.direct.service.frame_bytes_max;
  return frame > kMessageBytes ? frame - kMessageBytes : 0;
}

}  // namespace

Redirect::Impl::Impl(Application& application, IoThreads& io, registry::RegistryAgent& agent,
                     RedirectOptions options)
    : application_(application),
      io_(io),
      agent_(agent),
      options_(std::move(options)),
      message_bytes_max_(ResultBytesMax(options_)),
      links_(io, agent, DirectOptionsOf(application, options_)),
      executor_(application, {.jobs_max = options_.executions_max,
                              .bytes_max = options_.execution_bytes_max,
                              .result_bytes_max = message_bytes_max_,
                              .clock = &io.clock()}) {}

void Redirect::Impl::AddHandlers() {
  // They end with links_, a member: no need to keep this object alive.
  links_.Handle<direct::ModuleRedirect>(
      [this](Request<direct::ModuleRedirect> request) { OnRedirect(std::move(request)); });
  links_.Handle<direct::ModuleRedirectAllRequest>(
      [this](const Message<direct::ModuleRedirectAllRequest>& message) { OnRedirectAll(message); });
  links_.Handle<direct::ModuleRedirectAllResult>(
      [this](const Message<direct::ModuleRedirectAllResult>& message) {
        OnRedirectAllResult(message);
      });
  links_.OnLost([this](std::int32_t, const Connection& connection) { OnLost(connection.id()); });
}

const RedirectEntry* Redirect::Impl::AddEntry(RedirectEntry entry) {
  ZEZE_REQUIRE(!started_, "redirected method " + entry.full_name +
                              " was added after the start: add it before Redirect::Start");
  entries_.push_back(std::make_unique<RedirectEntry>(std::move(entry)));
  const RedirectEntry* added = entries_.back().get();
  if (!by_name_.emplace(added->full_name, added).second) two_methods_ = added->full_name;
  links_.AddService(added->service, added->is_here());
  return added;
}

void Redirect::Impl::AddMethod(std::int32_t module_id, std::string_view module_name, Module* module,
                               const internal::RedirectDescriptor& method) {
  const bool whole = method.name.find(':') != std::string_view::npos;
  const std::string full_name =
      whole ? std::string(method.name) : fmt::format("{}:{}", module_name, method.name);
  RedirectEntry entry{.module_id = module_id,
                      .module = module,
                      .full_name = full_name,
                      .service = options_.name_prefix + std::to_string(module_id),
                      .procedure = ProcedureName::Intern(full_name),
                      .version = method.options.version,
                      .in_transaction = method.in_transaction,
                      .decode = nullptr};
  if (module != nullptr) entry.decode = method.decode;
  by_method_[method.key] = AddEntry(std::move(entry));
}

namespace {

class EncodedInvocation final : public internal::RedirectInvocation {
 public:
  using Function = decltype(EncodedRedirectMethod::run);

  EncodedInvocation(const Function& run, ByteReader& in)
      : run_(run), parameters_(in.ReadRaw(in.remaining())) {}

  std::int64_t Run(Module*, Transaction* tx, std::int32_t hash) override {
    result_.clear();
    return run_(*tx, hash, parameters_, result_);
  }
  void EncodeResult(ByteWriter& out) const override { out.WriteRaw(result_); }

 private:
  const Function& run_;
  const std::string_view parameters_;  // Of the job, which outlives this.
  std::string result_;
};

}  // namespace

void Redirect::Impl::AddEncoded(EncodedRedirectMethod method) {
  AddEntry({.module_id = method.module_id,
            .module = nullptr,
            .full_name = method.full_name,
            .service = options_.name_prefix + std::to_string(method.module_id),
            .procedure = ProcedureName::Intern(method.full_name),
            .version = method.version,
            .in_transaction = true,
            .decode = [run = std::move(method.run)](
                          ByteReader& in) -> std::unique_ptr<internal::RedirectInvocation> {
              return std::make_unique<EncodedInvocation>(run, in);
            }});
}

std::set<std::string> Redirect::Impl::OfferedHere() const {
  std::set<std::string> services;
  if (!options_.register_modules) return services;
  for (const auto& entry : entries_) {
    if (entry->is_here()) services.insert(entry->service);
  }
  return services;
}

Result<void> Redirect::Impl::Start() {
  if (started_) {
    return Error(ErrorCode::kInvalidArgument, "redirect can be started only once");
  }
  started_ = true;
  if (!two_methods_.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "two redirected methods are called " + two_methods_ +
                     ": a module is added once, and its methods have different names");
  }
  if (!options_.name_prefix.ends_with('#')) {
    return Error(ErrorCode::kInvalidArgument,
                 "the prefix of module names must end in '#', as other servers expect, but it is " +
                     options_.name_prefix);
  }
  if (Result<void> started = links_.Start(); !started.ok()) return started;
  if (!options_.register_modules) return {};
  registry::ServiceEdit edit;
  for (const std::string& service : OfferedHere()) {
    edit.add.push_back({.name = service,
                        .identity = std::to_string(links_.server_id()),
                        .version = DirectOptionsOf(application_, options_).main_version,
                        .passive_ip = links_.ip(),
                        .passive_port = links_.port()});
  }
  return agent_.Edit(edit);
}

Result<void> Redirect::Impl::AwaitReady(std::chrono::nanoseconds patience) {
  const std::chrono::nanoseconds deadline = io_.clock().Now() + patience;
  if (Result<void> settled = agent_.AwaitSettled(patience); !settled.ok()) return settled;
  return links_.AwaitConnected(deadline - io_.clock().Now(), OfferedHere());
}

void Redirect::Impl::Stop() {
  if (stopped_) return;
  const std::chrono::nanoseconds deadline = io_.clock().Now() + options_.drain_timeout;
  if (started_ && options_.register_modules) {
    for (const std::string& service : OfferedHere()) {
      agent_.Unregister({service, std::to_string(links_.server_id())});
    }
    if (agent_.connected()) (void)agent_.AwaitSettled(kUnregisterPatience);
  }
  // Those that still come are served as long as there is time; the last of them are refused, so
  // that their callers know that nothing was done.
  (void)executor_.AwaitIdle(deadline);
  executor_.Close();
  if (!executor_.AwaitIdle(std::max(deadline, io_.clock().Now() + kLastMoment))) {
    ZEZE_LOG_WARNING("{} redirected calls have not ended in time; their callers learn nothing",
                     executor_.GetStatistics().waiting);
  }
  stopped_ = true;
  links_.Stop();
  for (const auto& gather : Gathers()) {
    gather->FailAll({.outcome = RedirectOutcome::kUnknown, .code = result_code::kClosed});
  }
  if (!calls_.WaitUntil(io_.clock(), std::max(deadline, io_.clock().Now() + kLastMoment))) {
    ZEZE_LOG_WARNING("completions of redirected calls have not ended in time");
  }
}

const RedirectEntry& Redirect::Impl::Find(const void* method) const {
  const auto found = by_method_.find(method);
  ZEZE_REQUIRE(found != by_method_.end(), "the module of a redirected method was not added");
  return *found->second;
}

const RedirectEntry& Redirect::Impl::Find(std::string_view full_name) const {
  const auto found = by_name_.find(full_name);
  ZEZE_REQUIRE(found != by_name_.end(),
               fmt::format("the redirected method {} was not added", full_name));
  return *found->second;
}

Redirect::Statistics Redirect::Impl::GetStatistics() const {
  const RedirectExecutor::Statistics executor = executor_.GetStatistics();
  MutexLock lock(mutex_);
  return {.local_calls = local_calls_,
          .remote_calls = remote_calls_,
          .failed_calls = failed_calls_,
          .executions = executor.executions,
          .refused_busy = executor.refused,
          .bad_parameters = executor.bad_parameters,
          .unknown_methods = unknown_methods_,
          .ignored_results = ignored_results_,
          .executions_waiting = executor.waiting,
          .all_calls = gathers_.size()};
}

Redirect::Redirect(Application& application, IoThreads& io, registry::RegistryAgent& agent,
                   RedirectOptions options)
    : impl_(std::make_shared<Impl>(application, io, agent, std::move(options))) {
  impl_->AddHandlers();
}

Redirect::~Redirect() {
  Stop();
}

void Redirect::AddMethod(std::int32_t module_id, std::string_view module_name, Module* module,
                         const internal::RedirectDescriptor& method) {
  impl_->AddMethod(module_id, module_name, module, method);
}

void Redirect::AddEncoded(EncodedRedirectMethod method) {
  impl_->AddEncoded(std::move(method));
}

void Redirect::CallEncoded(std::string_view full_name, const internal::RedirectTarget& target,
                           std::string parameters, EncodedCallback callback) {
  const auto where =
      callback ? internal::RedirectWhere::kWorker : internal::RedirectWhere::kAnywhere;
  impl_->Begin(impl_->Find(full_name), target, {}, std::move(parameters), where,
               [callback = std::move(callback)](const internal::RedirectRaw& raw) {
                 if (!callback) return;
                 RedirectReply<Binary> reply;
                 internal::DecodeRedirectReply(raw, reply);
                 callback(reply);
               });
}

Result<void> Redirect::Start() {
  return impl_->Start();
}

Result<void> Redirect::AwaitReady(std::chrono::nanoseconds patience) {
  return impl_->AwaitReady(patience);
}

void Redirect::Stop() {
  impl_->Stop();
}

std::optional<std::int32_t> Redirect::OwnerOf(std::int32_t module_id, RedirectHash hash) const {
  return impl_->OwnerOf(impl_->options().name_prefix + std::to_string(module_id), hash);
}

std::int32_t Redirect::server_id() const {
  return impl_->links().server_id();
}

DirectLinks& Redirect::links() {
  return impl_->links();
}

Redirect::Statistics Redirect::GetStatistics() const {
  return impl_->GetStatistics();
}

namespace internal {

void BeginRedirect(Redirect& redirect, const void* method, const RedirectTarget& target,
                   const RedirectCallOptions& options, std::string parameters, RedirectWhere where,
                   RedirectDone done) {
  redirect.impl().Begin(redirect.impl().Find(method), target, options, std::move(parameters), where,
                        std::move(done));
}

void BeginRedirectAll(Redirect& redirect, const void* method, std::uint32_t level,
                      const RedirectCallOptions& options, const std::string& parameters,
                      RedirectWhere where, RedirectAllDone done) {
  redirect.impl().BeginAll(redirect.impl().Find(method), level, options, parameters, where,
                           std::move(done));
}

RedirectHere FindRedirect(Redirect& redirect, const void* method) {
  const RedirectEntry& entry = redirect.impl().Find(method);
  ZEZE_REQUIRE(entry.module != nullptr,
               fmt::format("the module of {} is not on this server", entry.full_name));
  return {*entry.module, entry.procedure, redirect.server_id()};
}

RedirectPatience PatienceOf(Redirect& redirect, const RedirectCallOptions& options) {
  ZEZE_REQUIRE(!IoThreads::IsIoThread(), "an io thread must not wait for a redirected call");
  Clock& clock = redirect.impl().io().clock();
  return {clock, clock.Now() + redirect.impl().TimeoutOf(options)};
}

void LogBadRedirectResult(std::int32_t server_id, const std::string& why) {
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "a result of server {} cannot be decoded: {}",
                         server_id, why);
}

}  // namespace internal

}  // namespace zeze::arch
